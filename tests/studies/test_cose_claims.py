"""Claims of COSE's paper on its own table, and on rows that are made up to hold or fail."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from cose_study_toys import block, evidence, pairs_for, printed, trained
from saliometer.cose.table import CHANGED, UNCHANGED
from saliometer.studies._claims import MissingError
from saliometer.studies._cose_accuracy import followed
from saliometer.studies._cose_claims import CLAIMS, judged
from saliometer.studies._cose_evidence import Evidence, reading
from saliometer.studies._cose_paper import (
    CONV,
    DATA,
    METHODS,
    OVERALL,
    TRANSFORMER,
    data_named,
    family,
    kin,
    mean,
    table,
)

FOUR = ("resnet20", "convnext_tiny", "vit_tiny", "swin_tiny")


@pytest.fixture(scope="module")
def paper() -> Evidence:
    return printed()


def verdict(number: int, e: Evidence) -> dict:
    return CLAIMS[number - 1].judged(e)


def small(**more) -> Evidence:
    """Four models on CIFAR-10; all methods alike but what a function says."""
    value = more.pop("value", lambda model, method: (60.0, 60.0))
    return evidence([trained("cifar10", arch) for arch in FOUR], value, **more)


# The paper's own table


def test_the_table_is_the_papers_and_its_means_are_its_overall_row():
    assert len(table()) == 147
    cells = [value for (data, *_), value in table().items() if data != OVERALL]
    assert (min(cells), max(cells)) == (40.30, 71.54)
    for method in METHODS:
        assert mean(method) == pytest.approx(table()[OVERALL, OVERALL, method], abs=0.006)
    assert mean("IG", family=CONV) == pytest.approx(57.10, abs=0.01)
    assert mean("GuidedIG", family=TRANSFORMER) == pytest.approx(56.48, abs=0.01)
    assert mean("GradCAM", data="CUB200") == pytest.approx(57.95, abs=0.01)


def test_rows_give_back_the_papers_table(paper):
    assert len(paper.models()) == 55
    for method in METHODS:
        assert paper.mean("harmonic", paper.models(), [method])[0] == pytest.approx(mean(method), abs=1e-3)


@pytest.mark.parametrize("number", [1, 2, 3, 5, 6, 9, 10])
def test_the_papers_table_holds_what_the_sheet_says_of_it(paper, number):
    found = verdict(number, paper)
    assert found["holds"] is True, found


def test_what_the_papers_table_says_in_figures(paper):
    assert verdict(1, paper)["ours"].startswith("GradCAM 64.7, BlurIG 63.2, IG 61.3, LIME 60.1, SmoothGrad 57.9")
    assert "best in 20 rows: GradCAM 13, GradCAM++ 1, IG 3, BlurIG 3" in verdict(2, paper)["ours"]
    assert verdict(3, paper)["ours"].startswith("35 of 35 combinations, 25 ConvNets and 30 Transformers")
    assert "ResNet 54.1, ConvNeXt 60, Swin 60.6" in verdict(5, paper)["ours"]
    assert verdict(10, paper)["ours"].startswith("44.0, next lowest 60.6")


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (1, {(data, model, "IG"): 70.0 for data in DATA for model in ("ResNet50", "ViT-B/16")}),
        (2, {(data, model, "GradCAM"): 50.0 for data in DATA for model in ("ResNet50", "ViT-B/16", "Swin-T")}),
        (3, {("EuroSAT", "ViT-B/16", "LIME"): 40.0}),
        (5, {("EuroSAT", "ConvNext", "GradCAM++"): 45.0}),
        (6, {("EuroSAT", "ResNet50", "GradCAM++"): 55.0}),
        (6, {("EuroSAT", "ConvNext", "GradCAM++"): 45.0}),
        (9, {("EuroSAT", model, "LIME"): 30.0 for model in ("ResNet50", "ConvNext", "ViT-B/16", "Swin-T")}),
        (10, {("CIFAR10", "Swin-T", "GradCAM"): 47.0}),
    ],
)
def test_a_table_that_says_otherwise_fails(number, change):
    assert verdict(number, printed(change))["holds"] is False


def test_without_a_gap_it_cannot_be_resnets():
    """ConvNets ahead, ResNet least of all: nothing of the gap that the claim is about is there."""
    scores = {"resnet20": 60.0, "convnext_tiny": 64.0, "vit_tiny": 50.0, "swin_tiny": 63.0}
    found = verdict(5, small(value=lambda model, method: (scores[model.arch],) * 2))
    assert found["holds"] is False
    assert found["why"].startswith("fails: a gap, and less than half of it without ResNet")


def test_a_resample_without_a_value_is_won_by_nobody_who_has_none():
    """LIME changes on one image only: resamples without that image have no COSE of it."""
    models, tables = [trained("cifar10", arch) for arch in FOUR], {}
    lone = block("LIME", [*pairs_for(60, 60)[:1]])
    one = block("LIME", pairs_for(60, 55)[1:], images=1)
    one = one.filter(pa.compute.equal(one["metric"].cast(pa.string()), CHANGED))
    for model in models:
        others = [block(m, pairs_for(*(70 if m == "GradCAM" else 60,) * 2)) for m in METHODS if m != "LIME"]
        tables[model.data, model.label] = [pa.concat_tables([*others, lone, one]).unify_dictionaries()]
    found = verdict(2, Evidence(models, tables))
    assert "share of rows over a half: +0.5 [0.5, 0.5]" in found["ours"]


@pytest.mark.parametrize(("number", "said"), [(9, "CUB200 and EuroSAT were not run"), (10, "CUB200 was not run")])
def test_claims_about_data_sets_that_were_not_run_stay_open(number, said):
    found = verdict(number, small())
    assert found["holds"] is None
    assert said in found["why"]


# Rows that are made up


def test_sensitivity_and_consistency_of_families_are_compared():
    def value(model, method):
        cam = method.startswith("GradCAM")
        return (70.0 if cam and model.family == CONV else 68.0 if cam else 60.0, 50.0 if model.family == CONV else 60.0)

    assert verdict(4, small(value=value))["holds"] is True
    assert (
        verdict(4, small(value=lambda model, method: (60.0, 60.0 if model.family == CONV else 50.0)))["holds"] is False
    )
    assert (
        verdict(4, small(value=lambda m, method: (60.0 + 20 * (m.family == CONV), 50 + (m.family != CONV))))["holds"]
        is False
    )


def test_consistency_is_ordered():
    order = {"GradCAM": 80.0, "GradCAM++": 75.0, "BlurIG": 70.0}
    assert verdict(7, small(value=lambda model, method: (order.get(method, 60.0), 50.0)))["holds"] is True
    worse = order | {"IG": 72.0}
    assert verdict(7, small(value=lambda model, method: (worse.get(method, 60.0), 50.0)))["holds"] is False


def checkpointed(slopes: dict[str, float]) -> Evidence:
    """Two models of five checkpoints, whose maps come nearer as accuracy rises by a slope, with a wave on top."""
    accuracy = {f"epoch_{place}.safetensors": 0.1 + 0.1 * place for place in range(1, 6)}
    models = [trained("cifar10", arch, checkpoints=accuracy, untrained=0.1) for arch in ("resnet20", "vit_tiny")]
    tables = {}
    for number, model in enumerate(models):
        blocks = []
        for method in METHODS:
            pairs = [*pairs_for(60, 60)[:1], (CHANGED, "random_model", 0.1 * slopes.get(method, 0.0) + 0.2)]
            for place, (name, value) in enumerate(accuracy.items()):
                wave = 0.02 * (-1) ** (place + number)
                pairs.append((UNCHANGED, f"checkpoint(name='{name}')", 0.2 + slopes.get(method, 0.0) * value + wave))
            blocks += [block(method, pairs, how) for how in ("published", "default")]
        tables[model.data, model.label] = blocks
    return Evidence(models, tables)


def test_maps_that_come_nearer_with_accuracy():
    e = checkpointed({"GradCAM": 1.0, "LIME": 0.8, "IG": -0.5})
    found = {one.method: one for one in followed(e)}
    assert found["GradCAM"].r > 0.9
    assert found["GradCAM"].points == 12  # five checkpoints and the untrained copy of two models
    assert found["IG"].r < -0.9
    assert not found["GuidedIG"].significant
    assert verdict(8, e)["holds"] is True
    assert verdict(8, checkpointed({"GradCAM": 1.0, "LIME": 0.8, "GuidedIG": 1.0}))["holds"] is False
    assert verdict(8, checkpointed({"GradCAM": -1.0, "LIME": 0.8}))["holds"] is False


def test_the_last_checkpoint_is_a_point_at_1_for_methods_that_do_not_draw():
    e = checkpointed({"GradCAM": 1.0})
    without, with_last = ({one.method: one.points for one in followed(e, last)} for last in (False, True))
    assert with_last["GradCAM"] == without["GradCAM"] + 2
    assert with_last["LIME"] == without["LIME"]


def test_without_checkpoints_the_claim_stays_open():
    found = verdict(8, small())
    assert found["holds"] is None
    assert "too few checkpoints" in found["why"]


def by_magnitude(photometric: tuple[float, float], geometric: tuple[float, float]) -> Evidence:
    """Consistency falls by so much per bin, sensitivity rises by so much, in percent."""
    model, blocks = trained("cifar10", "resnet20"), []
    for how in ("published", "default"):
        pairs = []
        for name, (falls, rises) in (("contrast", photometric), ("rotate", geometric)):
            for number in (*range(1, 11), *range(21, 31)):
                condition = f"{name}(bin={-number},magnitude=-1)"
                pairs.append((UNCHANGED, condition, 0.8 - falls * number / 100))
                pairs.append((CHANGED, condition.replace("-", ""), 0.5 - rises * number / 100))
        blocks += [block(method, pairs, how) for method in METHODS]
    return Evidence([model], {(model.data, model.label): blocks})


def test_trends_with_magnitude():
    as_told = by_magnitude((0.5, 0.5), (0.05, 0.05))
    assert verdict(11, as_told)["holds"] is True
    assert verdict(12, as_told)["holds"] is True
    (found,) = as_told.by_magnitude(("photometric",), (1, 10))
    assert found["consistency"][0] == pytest.approx(80 - 0.5 * 5.5, abs=0.01)
    assert found["sensitivity"][0] == pytest.approx(50 + 0.5 * 5.5, abs=0.01)
    curve = as_told.curve(("photometric",))
    assert curve["consistency"][29] == pytest.approx(80 - 15, abs=0.01)
    assert math.isnan(curve["consistency"][14])
    assert verdict(11, by_magnitude((0.0, -0.5), (0, 0)))["holds"] is False
    assert verdict(12, by_magnitude((0.5, 0.5), (0.6, 0.0)))["holds"] is False


def test_small_and_large_magnitudes_are_compared_on_the_same_models_and_methods():
    """All methods are steady; half of them change no prediction at small magnitudes, and are lower altogether."""
    model, blocks = trained("cifar10", "resnet20"), []
    for place, method in enumerate(METHODS):
        value, smallest = (0.8, 1) if place % 2 else (0.4, 21)
        pairs = [(UNCHANGED, f"rotate(bin={number},magnitude=1)", value) for number in range(1, 31)]
        pairs += [(CHANGED, f"rotate(bin={-number},magnitude=-1)", value / 2) for number in range(smallest, 31)]
        blocks.append(block(method, pairs))
    e = Evidence([model], {(model.data, model.label): blocks})
    found = verdict(12, e)
    assert found["holds"] is True
    assert "consistency 80.0 to 80.0, sensitivity 60.0 to 60.0" in found["ours"]


def test_correlations_in_ssims_place():
    order = {method: 50.0 + 3 * place for place, method in enumerate(METHODS)}

    def value(model, method):
        return (order[method] + 3 * (model.family == TRANSFORMER),) * 2

    same = small(value=value, hows=("published", "default", "pearson", "spearman"))
    assert verdict(13, same)["holds"] is True
    tables = {}
    for model in same.models():
        tables[model.data, model.label] = [
            *(
                block(m, pairs_for(*value(model, m)), how)
                for m in METHODS
                for how in ("published", "default", "spearman")
            ),
            *(block(m, pairs_for(110 - value(model, m)[0], 60), "pearson") for m in METHODS),
        ]
    assert verdict(13, Evidence(same.models(), tables))["holds"] is False


def test_methods_are_ordered_by_models_that_have_them_all():
    """GradCAM has a value on the lower of two models alone: over other models its mean would be the lowest."""
    order = ("GradCAM", "BlurIG", "IG", "LIME", "SmoothGrad", "GuidedIG", "GradCAM++")

    def value(model, method):
        high = 25.0 * (model.arch == "vit_tiny")
        return None if high and method == "GradCAM" else (60.0 + high - order.index(method),) * 2

    found = verdict(1, evidence([trained("cifar10", arch) for arch in ("resnet20", "vit_tiny")], value))
    assert found["ours"].startswith("GradCAM 60, BlurIG 59, IG 58")
    assert "of the 1 of 2 models that have a value for every method" in found["why"]
    assert found["holds"] is True


def test_controls_that_explain_nothing():
    def with_controls(cam: float, parity: float, moved: str = "") -> Evidence:
        scores = {
            "fresh_noise": 5.0,
            "fresh_smooth_noise": 50.0,
            "fresh_cam_7": cam,
            "fresh_cam_14": 47.0,
            "parity_edge": parity,
        }
        models = [trained("cifar10", arch) for arch in FOUR]
        tables = {
            (model.data, model.label): [
                *(
                    block(name, [(m, moved or c, v) for m, c, v in pairs_for(value, value)], how)
                    for name, value in scores.items()
                    for how in ("published", "default")
                ),
                *(block("constant", pairs_for(100, 0), how) for how in ("published", "default")),
            ]
            for model in models
        }
        return Evidence(models, tables)

    assert verdict(14, with_controls(49.0, 76.0))["holds"] is True
    assert verdict(14, with_controls(37.0, 76.0))["holds"] is False
    small_images = with_controls(37.0, 76.0, "translate_x(bin=30,magnitude=32,side=32)")
    assert verdict(14, small_images)["holds"] is True
    assert "49 of a random 7x7 CAM is for 224 pixels, these images have 32" in verdict(14, small_images)["why"]
    assert verdict(14, with_controls(49.0, 66.0))["holds"] is False
    assert verdict(14, with_controls(55.0, 76.0))["holds"] is False
    assert verdict(14, small())["holds"] is None


# Both modes


def test_claims_are_judged_by_the_published_mode_and_say_where_the_default_differs():
    models = [trained("cifar10", arch) for arch in FOUR]
    ahead = {"published": 5, "default": -5}
    tables = {
        (model.data, model.label): [
            block(m, pairs_for(*(60 + ahead[how] * (model.family == TRANSFORMER),) * 2), how)
            for m in METHODS
            for how in ahead
        ]
        for model in models
    }
    third = judged(Evidence(models, tables))[2]
    assert third["holds"] is True
    assert "by mode default it fails" in third["why"]
    assert "2 ConvNets and 2 Transformers" in third["ours"]


def test_every_claim_is_open_without_rows():
    found = judged(Evidence([], {}))
    assert [claim["id"] for claim in found] == list(range(1, 15))
    assert all(claim["holds"] is None and claim["why"] for claim in found)


def test_a_cell_without_a_value_is_missing_with_its_reason():
    model = trained("cifar10", "resnet20")
    e = Evidence([model], {(model.data, model.label): [block("GradCAM", pairs_for(60, 60)[:1])]})
    with pytest.raises(MissingError, match="no pair changed the prediction"):
        e.of("harmonic", model, "GradCAM")
    assert e.of("consistency", model, "GradCAM")[0] == pytest.approx(60)


def test_names():
    assert [kin(arch) for arch in (*FOUR, "alexnet")] == ["ResNet50", "ConvNext", "ViT-B/16", "Swin-T", ""]
    assert (family("swin_t"), family("resnet50"), family("vgg16")) == (TRANSFORMER, CONV, "")
    assert data_named("cifar10_train_a") == "CIFAR10"
    assert data_named("CUB_200_2011") == "CUB200"
    assert (data_named("cifar"), data_named("cifar-10"), data_named("cifar100")) == ("CIFAR10", "CIFAR10", "cifar100")
    assert data_named("flowers102") == "Oxford102"
    assert data_named("complex-fr") == "complex-fr"
    definition = (
        "default_abs_sum_percentile(fixed_target=true,magnitudes=6,mode=default,operations=all,similarity=ssim)"
    )
    assert reading(definition) == "fixed"
    assert np.isnan(trained("a", "b").untrained)

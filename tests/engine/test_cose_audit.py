"""COSE in an audit, on a model that tells light images from dark ones."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

import saliometer
from audit_toys import measured, same
from cose_toys import pictures
from saliometer.cli import app
from saliometer.cose.controls import CONTROLS
from saliometer.cose.pairs import data_pairs
from saliometer.cose.scaling import family_scaled, scaled
from saliometer.cose.summary import coses
from saliometer.cose.table import CHANGED, CORRECT, GRAIN, UNCHANGED
from saliometer.engine import asked as asked_module
from saliometer.engine import audit as audit_module
from saliometer.engine.battery import Measure
from saliometer.engine.cose import read
from saliometer.engine.cose_pictures import PLACES
from saliometer.engine.resolve import one_method
from saliometer.report.page import book_of
from saliometer.seeds import fork

SIDE, COUNT = 16, 4
SCALE = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.3, 0.25)}
ALL = ["cose", "cose(mode=published)", "cose(mode=equation)", "cose(similarity=pearson)"]
SOME = "cose(operations='brightness,rotate,flip_lr',magnitudes=2)"
LABELS = torch.tensor([0, 1, 0, 1])


class Light(nn.Module):
    """Class 1 where the weighted mean of the pixels is above a threshold."""

    def __init__(self, threshold: float = 0.0, weight: float = 1.0) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2)
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor([[0.0] * 3, [weight] * 3]))
            self.head.bias.copy_(torch.tensor([threshold, 0.0]))

    def forward(self, images: Tensor) -> Tensor:
        return self.head(images.mean((2, 3)))


def images(count: int = COUNT) -> Tensor:
    """Photographs' kind of pixels, some near the threshold, as the model takes them."""
    pixels = pictures(count, 3, SIDE, SIDE, seed=2).float() / 255
    mean, std = (torch.tensor(SCALE[word]).view(1, 3, 1, 1) for word in ("mean", "std"))
    return (pixels - mean) / std


def others() -> list[dict[str, Tensor]]:
    """Checkpoints: one calls everything what the model does not, one is the model itself."""
    return [Light(weight=-1.0).state_dict(), Light(threshold=0.2).state_dict(), Light().state_dict()]


def looks(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The image itself, whatever the model."""
    return images.mean(1)


def run(folder: Path, metrics=("cose",), methods=(looks,), **options):
    options = {"checkpoints": others(), "out": folder, **SCALE, **options}
    return saliometer.audit(Light().eval(), images(), LABELS, methods=methods, metrics=metrics, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(tmp_path_factory.mktemp("whole") / "run", ALL, [looks, "gradient"])


def one(outcome, method: str, metric: str = "cose"):
    """The summary of a method in a definition, which is named by the start of its word."""
    mode = {"cose": "default_"}.get(metric, metric)
    return next(c for c in outcome.coses if c.method == method and c.definition.startswith(mode))


def pairs_of(outcome, method: str) -> list[dict]:
    return [r for r in measured(outcome) if r["method"] == method and r["metric"] in (UNCHANGED, CHANGED)]


# Rows


def test_every_image_has_its_48_pairs_and_one_for_every_other_model(whole):
    rows = [r for r in pairs_of(whole, "looks") if "mode=default,operations=all,similarity=ssim" in r["definition"]]
    by_image = Counter(row["sample"] for row in rows)
    assert set(by_image.values()) == {48 + 3}  # the random copy and the two checkpoints that are not the model
    conditions = {row["condition"] for row in rows if row["sample"] == "image-0"}
    seeds = torch.tensor([fork("audit", 0, "image-0")])
    listed = {label for pair in data_pairs(seeds) for label in pair.labels((1, 3, SIDE, SIDE))}
    assert conditions == listed | {"random_model", "checkpoint(name='0')", "checkpoint(name='1')"}


def test_methods_and_controls_meet_the_same_pairs_and_predictions(whole):
    changes: dict[str, set[tuple[str, str, str]]] = {}
    for row in measured(whole):
        if row["metric"] in (UNCHANGED, CHANGED):
            changes.setdefault(row["method"], set()).add((row["sample"], row["condition"], row["metric"]))
    assert all(changes[name] == changes["looks"] for name in ("gradient", "random", *CONTROLS))
    assert {metric for _, _, metric in changes["looks"]} == {UNCHANGED, CHANGED}


def test_predictions_are_those_of_the_model_on_the_transformed_image(whole):
    net, shown = Light().eval(), images()
    pixels = pictures(COUNT, 3, SIDE, SIDE, seed=2)
    mean, std = (torch.tensor(SCALE[word]).view(1, 3, 1, 1) for word in ("mean", "std"))
    seeds = torch.tensor([fork("audit", 0, f"image-{place}") for place in range(COUNT)])
    told = {(r["sample"], r["condition"]): r["metric"] for r in pairs_of(whole, "looks")}
    for pair in data_pairs(seeds):
        moved = net((pair.images(pixels).float() / 255 - mean) / std).argmax(1) != net(shown).argmax(1)
        for place, label in enumerate(pair.labels(shown.shape)):
            assert told[f"image-{place}", label] == (CHANGED if moved[place] else UNCHANGED)


def test_rows_say_whether_the_model_is_right(whole):
    right = {r["sample"]: r["value"] for r in measured(whole) if r["metric"] == CORRECT and r["method"] == "looks"}
    predicted = Light()(images()).argmax(1)
    assert list(right.values()) == (predicted == LABELS).double().tolist()


# Known answers


def test_a_map_that_moves_with_the_image_is_the_same_after_a_flip(whole):
    flips = [r for r in pairs_of(whole, "looks") if r["condition"] in ("flip_lr", "flip_ud")]
    assert len(flips) == 2 * COUNT * len(ALL)
    assert [row["value"] for row in flips] == pytest.approx([1.0] * len(flips), abs=1e-6)


@pytest.mark.parametrize("mode", ["default", "published", "equation"])
def test_the_constant_map_is_consistent_never_sensitive_and_scores_0(whole, mode):
    found = one(whole, "constant", mode)
    assert found.value("consistency") == pytest.approx(1, abs=2e-6 if mode != "published" else 0.02)
    if mode == "published":  # pixels that a turn fills in part are darker, and count
        assert found.value("consistency") < 0.999
    else:
        assert found.value("sensitivity") == pytest.approx(0, abs=2e-6)
        assert found.value("harmonic") == pytest.approx(0, abs=4e-6)


@pytest.mark.parametrize("method", ["fixed_noise", "fixed_cam_7", "fixed_centre", "sobel_edge", "looks", "edge"])
def test_what_never_looks_at_the_model_has_no_sensitivity_to_models(whole, method):
    assert one(whole, method).count(CHANGED, "checkpoint") > 0
    assert one(whole, method).value("sensitivity_model") == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("mode", "across"), [("default", 1e-4), ("published", 4e-4)])
def test_a_level_that_tells_the_label_scores_almost_all(whole, mode, across):
    """Two classes: 1 within, C1 / (1 + C1) across, so COSE is 2 s / (1 + s)."""
    found = one(whole, "label_level", mode)
    s = 1 - across / (1 + across)
    assert found.value("sensitivity_model") == pytest.approx(s, abs=1e-9)
    if mode == "default":
        assert found.value("harmonic") == pytest.approx(2 * s / (1 + s), abs=2e-6)
        assert found.value("harmonic") > one(whole, "looks").value("harmonic")


def test_published_counts_only_the_images_that_are_right(whole):
    right = int((Light()(images()).argmax(1) == LABELS).sum())
    assert 0 < right < COUNT
    found = one(whole, "looks", "published")
    pairs = sum(found.count(metric, group) for metric in (UNCHANGED, CHANGED) for group in ("geometric", "photometric"))
    assert pairs == 48 * right


def test_columns_stand_in_the_table_the_report_and_for_machines(whole):
    shown = {column.metric for column in whole.columns}
    assert {"cose", "cose.consistency", "cose.sensitivity", "cose.discrimination"} <= shown
    heads = [head.metric for head in book_of(whole.run).heads]
    assert heads[:4] == ["cose", "cose.consistency", "cose.sensitivity", "cose.discrimination"]
    note = book_of(whole.run).note
    assert note.count("COSE is 50 % at most") == 1
    assert note.count("is made of these pairs") == 3  # a correlation has the default's
    assert "cose(similarity=pearson)" in [head.name for head in book_of(whole.run).heads]
    told = whole.as_dict()["cose"]
    assert {row["method"] for row in told} >= {"looks", "gradient", *CONTROLS}
    assert json.dumps(told)
    first = next(row for row in told if row["method"] == "looks")
    assert first["chance"] == 0.5
    assert first["translations_by_0"] > 0  # side 16: bins 1 to 13 do not move


def test_a_checkpoint_that_is_the_model_is_left_out_and_told(whole):
    assert any("checkpoint '2' is the model itself" in text for text in whole.problems())


# One pass for each distinct model and image, in any batches, going on after a stop


def test_each_distinct_image_and_model_is_explained_once(tmp_path):
    seen: list[int] = []

    def counting(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        seen.append(len(images))
        return images.mean(1)

    run(tmp_path / "run", ALL, [counting], controls=False)
    assert sum(seen) == COUNT * (1 + 48 + 3)


def test_rows_do_not_depend_on_batches_and_go_on_after_a_stop(tmp_path, monkeypatch):
    first = run(tmp_path / "one", [SOME], ["gradient"], controls=False)
    for module in (asked_module, audit_module):
        monkeypatch.setattr(module, "UNIT", 3)
    second = run(tmp_path / "two", [SOME], ["gradient"], controls=False, batch_size=2)
    key = lambda row: (row["metric"], row["condition"], row["sample"])  # noqa: E731
    same(sorted(measured(first), key=key), sorted(measured(second), key=key), 1e-5)
    parts = sorted((tmp_path / "two" / "rows").rglob("*.parquet"))
    assert len(parts) == 2
    kept = parts[0].stat().st_mtime_ns
    parts[1].unlink()
    again = run(tmp_path / "two", [SOME], ["gradient"], controls=False, batch_size=2)
    assert parts[0].stat().st_mtime_ns == kept
    same(measured(second), measured(again))
    with pytest.raises(ValueError, match="holds a run with models"):
        run(tmp_path / "two", [SOME], ["gradient"], controls=False, checkpoints=others()[:1])


def test_maps_of_a_fixed_target_explain_the_first_prediction(tmp_path):
    asked: dict[bool, list[int]] = {}
    for fixed in (False, True):

        def spying(model: nn.Module, images: Tensor, targets: Tensor, fixed: bool = fixed) -> Tensor:
            asked.setdefault(fixed, []).extend(targets.tolist())
            return images.mean(1)

        metric = f"cose(operations=brightness,magnitudes=4,fixed_target={str(fixed).lower()})"
        run(tmp_path / str(fixed), [metric], [spying], controls=False)
    predicted = Light()(images()).argmax(1).tolist()
    assert asked[True] == predicted * (1 + 4 + 3)
    assert asked[False] != asked[True]


def test_a_fixed_target_beside_its_own_is_explained_only_where_the_prediction_differs(tmp_path):
    """And gives the same similarities as alone, also for a method that draws."""
    seen: list[int] = []

    def counting(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        seen.append(len(images))
        return images.mean(1) * (1 + targets[:, None, None])

    both = [SOME, SOME.replace(")", ",fixed_target=true)")]
    methods = [counting, "smooth_grad(draws=3)"]
    together = run(tmp_path / "both", both, methods, controls=False, batch_size=16)
    changed = [
        r for r in pairs_of(together, "counting") if r["metric"] == CHANGED and "fixed_target=false" in r["definition"]
    ]
    assert sum(seen) == COUNT * (1 + 5 + 3) + len(changed)
    alone = run(tmp_path / "alone", both[1:], methods, controls=False)
    key = lambda row: (row["method"], row["metric"], row["condition"], row["sample"])  # noqa: E731
    fixed = [row for row in measured(together) if "fixed_target=true" in row["definition"]]
    held = [row for row in measured(alone) if row["metric"].startswith("cose.")]
    same(sorted(fixed, key=key), sorted(held, key=key), 1e-5)


def test_rows_say_how_fine_maps_are(whole):
    sizes = {
        row["method"]: row for row in measured(whole) if row["metric"] == GRAIN and row["sample"] == "image-0"
    }  # fmt: skip
    assert 0 < sizes["gradient"]["value"] <= SIDE / 2 or sizes["gradient"]["note"]
    assert sizes["fresh_cam_7"]["value"] > sizes["fresh_noise"]["value"]
    assert math.isnan(sizes["constant"]["value"])
    assert sizes["constant"]["note"] == "a constant map has no grain"


def test_noise_of_any_grain_joins_the_controls(tmp_path):
    found = run(tmp_path / "run", [SOME], grains=[0.0, 1.5])
    size = {
        name: [r["value"] for r in measured(found) if r["metric"] == GRAIN and r["method"] == name]
        for name in ("smooth_noise(sigma=0)", "smooth_noise(sigma=1.5)")
    }
    assert max(size["smooth_noise(sigma=0)"]) < 1 < min(size["smooth_noise(sigma=1.5)"])
    assert {"smooth_noise(sigma=0)", *CONTROLS} <= set(found.controls)
    pairs = pairs_of(found, "smooth_noise(sigma=0)")
    assert abs(sum(r["value"] for r in pairs) / len(pairs)) < 0.1  # drawn anew for each
    first = [r["value"] for r in pairs if r["sample"] == "image-0" and r["condition"].startswith("brightness")]
    assert len(set(first)) == len(first) == 2  # for each magnitude, too


def test_pictures_of_a_few_pairs_are_kept(whole):
    path = whole.run.pairs(whole.run.manifest["request"]["settings"][0], "looks")
    with np.load(path) as held:
        kept = {name: held[name] for name in held.files}
    assert kept["ids"].tolist() == [f"image-{place}" for place in range(COUNT)]
    assert kept["maps"].shape == (COUNT, len(PLACES), SIDE, SIDE)
    assert kept["conditions"][0, :3].tolist() == ["itself", "flip_lr", "equalize"]
    assert (kept["maps"][:, 1, :, ::-1] == kept["maps"][:, 0]).all()  # the map of the flipped image, as it is
    rows = pairs_of(whole, "looks")
    default = [r for r in rows if "mode=default,operations=all,similarity=ssim" in r["definition"]]
    for image in range(COUNT):
        mine = [r for r in default if r["sample"] == f"image-{image}" and "model" not in r["condition"]]
        mine = [r for r in mine if not r["condition"].startswith("checkpoint")]
        kept_ones = [r["value"] for r in mine if r["metric"] == UNCHANGED]
        moved = [r["value"] for r in mine if r["metric"] == CHANGED]
        assert kept["similar"][image, 3] == pytest.approx(max(kept_ones))
        assert (
            kept["similar"][image, 4] == pytest.approx(min(moved)) if moved else math.isnan(kept["similar"][image, 4])
        )
        assert kept["changed"][image].tolist()[3:] == [False, bool(moved)]


def test_images_off_8_bits_are_rounded_for_both_sides_of_a_pair(tmp_path):
    shown = images() + 0.3 / 255
    found = saliometer.audit(
        Light().eval(), shown, methods=[looks], metrics=[SOME], out=tmp_path / "run", controls=False, **SCALE
    )
    flips = [r["value"] for r in pairs_of(found, "looks") if r["condition"] == "flip_lr"]
    assert flips == pytest.approx([1.0] * COUNT, abs=1e-6)
    assert {r["note"] for r in measured(found) if r["metric"] == CORRECT} == {"no label"}


def test_modes_read_maps_by_one_rule_or_by_the_family():
    maps = torch.randn(2, 1, 9, 9, generator=torch.Generator().manual_seed(0))
    usual, published = Measure.parse("cose"), Measure.parse("cose(mode=published)")
    cam, lime = one_method("grad_cam"), one_method("lime")
    assert torch.equal(read(maps, cam, usual), scaled(maps))
    assert torch.equal(read(maps, cam, published), family_scaled(maps, "grad_cam"))
    assert torch.equal(read(maps, lime, published), maps[:, 0])


# What is missing or wrong


def test_without_checkpoints_it_says_so_and_takes_data_pairs_and_a_random_copy(tmp_path):
    found = run(tmp_path / "run", [SOME], controls=False, checkpoints=None)
    assert {r["condition"] for r in pairs_of(found, "looks") if "model" in r["condition"]} == {"random_model"}
    assert any("COSE had no training checkpoints" in text for text in found.problems())


class Sure(Light):
    """Class 0, whatever its weights."""

    def forward(self, images: Tensor) -> Tensor:
        return 0 * super().forward(images) + torch.tensor([3.0, -2.0])


def test_predictions_that_never_change_give_nan_with_a_reason(tmp_path):
    found = saliometer.audit(
        Sure().eval(), images(), methods=["edge"], metrics=[SOME], out=tmp_path / "run", controls=False,
        checkpoints=others(), **SCALE,
    )  # fmt: skip
    (told,) = coses(found.rows)
    assert math.isnan(told.value("harmonic"))
    assert math.isnan(told.value("sensitivity"))
    assert told.value("consistency") > 0
    assert told.reasons() == [
        "no pair changed the prediction, so there is no sensitivity: these checkpoints predict the same, give earlier "
        "ones"
    ]


def test_maps_that_are_constant_or_broken_are_told(tmp_path):
    def dead(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        return 0 * images.mean(1)

    def broken(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        return images.mean(1) / 0 * 0

    found = run(tmp_path / "run", ["cose(operations=flip_lr)"], [dead, broken, looks], controls=False)
    notes = {row["method"]: row["note"] for row in measured(found) if row["metric"] == GRAIN}
    asked = {method: notes[method] for method in ("dead", "broken", "looks")}
    assert asked == {"dead": "a constant map has no grain", "broken": "nan map", "looks": ""}
    told = {one.method: one.reasons() for one in coses(found.rows)}
    assert told["dead"] == [
        "maps of 4 of 4 images are constant: they count as 0 everywhere, so that they stay whatever changes"
    ]
    assert told["looks"] == []
    assert told["broken"][-1].endswith("pairs have no similarity: nan map")
    assert any("dead" in text and "maps of 4 of 4 images are constant" in text for text in found.problems())


def test_a_method_that_fails_on_a_changed_image_is_written_down_and_the_others_go_on(tmp_path):
    calls: list[int] = []

    def breaking(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("only once")
        return images.mean(1)

    found = run(tmp_path / "run", [SOME], [breaking, looks], controls=False)
    assert "only once" in found.failed["breaking, cose"]
    assert pairs_of(found, "looks")


@pytest.mark.parametrize(
    ("metrics", "options", "said"),
    [
        (["cose"], {"target": "least"}, "metric 'cose' explains what is predicted, but target is 'least'"),
        (["cose(mode=publisht)"], {}, "Did you mean 'published'"),
        (["cose(operations='rotate,blurr')"], {}, "Did you mean 'blur'"),
        (["cose(magnitudes=99)"], {}, "magnitudes=99, wanted 1 to 60"),
        (["cose(window=7)"], {}, "there is no parameter 'window'"),
        (["sparseness"], {}, "checkpoints are for the metric 'cose', which was not asked for"),
        (["cose"], {"checkpoints": [nn.Linear(3, 2).state_dict()]}, "2 missing: head.weight, head.bias; 2 unexpected"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_made(metrics, options, said, tmp_path):
    with pytest.raises((ValueError, LookupError), match=said):
        run(tmp_path / "run", metrics, **options)
    assert not (tmp_path / "run").exists()


def test_published_wants_labels(tmp_path):
    with pytest.raises(ValueError, match="counts only images that the model gets right, but the images came without"):
        saliometer.audit(Light().eval(), images(), metrics=["cose(mode=published)"], out=tmp_path / "run", **SCALE)


@pytest.mark.parametrize(("shape", "said"), [((2, 3, 4, 8), "wants images of 5 pixels a side or more, these are 4x8")])
def test_images_too_small_for_the_window_are_refused(shape, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        saliometer.audit(Light().eval(), torch.rand(shape), metrics=["cose"], out=tmp_path / "run")


def test_a_model_of_one_logit_tells_two_classes(tmp_path):
    net = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 1)).eval()
    with torch.no_grad():
        net[2].weight.copy_(torch.ones(1, 3))
        net[2].bias.zero_()
    found = saliometer.audit(
        net, images(), methods=[looks], metrics=[SOME], out=tmp_path / "run", controls=False, **SCALE
    )
    two = run(tmp_path / "two", [SOME], controls=False, checkpoints=None)
    data = [
        [(r["metric"], r["value"]) for r in pairs_of(one, "looks") if r["condition"] != "random_model"]
        for one in (found, two)
    ]
    assert data[0] == data[1]
    assert {metric for metric, _ in data[0]} == {UNCHANGED, CHANGED}


# The command


def test_the_command_takes_a_folder_of_checkpoints(tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\nfrom torch import nn\n\n\ndef build():\n    torch.manual_seed(0)\n    return nn.Sequential("
        "nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))\n"
    )
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for epoch in (1, 2):
        torch.manual_seed(epoch)
        net = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
        )  # fmt: skip
        torch.save(net.state_dict(), folder / f"epoch_{epoch}.pt")
    done = CliRunner().invoke(
        app,
        [
            "audit", "--model", f"{tmp_path}/net.py:build", "--images", "photographs", "--size", "32", "--mean", "0",
            "--std", "1", "--limit", "3", "--method", "gradient", "--metric", SOME, "--checkpoints", str(folder),
            "--out", str(tmp_path / "run"), "--device", "cpu",
        ],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "COSE ↑" in done.output
    assert "COSE is 50 % at most" in done.output
    assert (tmp_path / "run" / "report.html").exists()

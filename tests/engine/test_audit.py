"""The audit end to end on toys: known answers, going on after a stop, failures, targets, bad input."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import saliometer
from audit_toys import SIDE, Filled, failing, half, measured, network, noise, same, values, white
from saliometer.engine import asked as asked_module
from saliometer.engine import audit as audit_module
from saliometer.engine.asked import METHODS, METRICS, methods_asked
from saliometer.engine.resolve import one_method
from saliometer.registry import methods as known_methods
from saliometer.report.page import book_of, page
from saliometer.types import Model

CONTROLS = ["all_ones", "centre", "edge", "fake_cam", "random"]
FEW = {
    "methods": ["gradient", "smooth_grad(draws=3)"],
    "metrics": ["average_drop", "deletion(steps=4)", "max_sensitivity(draws=2)"],
}
LABELS = torch.tensor([0, 1, 2, 0, 1])


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (asked_module, audit_module):
        monkeypatch.setattr(module, "UNIT", 2)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """The rows of an undisturbed run in units of 2."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (asked_module, audit_module):
            patch.setattr(module, "UNIT", 2)
        return measured(saliometer.audit(network(), noise(), out=tmp_path_factory.mktemp("whole"), **FEW))


def part_times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in sorted((folder / "rows").rglob("*.parquet"))}


# Known answers


def test_the_mean_of_pixels_gives_what_is_worked_out_by_hand(tmp_path):
    """Half of a white image masked away halves what a score of 0.01 + 0.98 x the mean has above 0.01."""
    chosen = [
        "average_drop", "average_increase", "average_gain", "deletion(steps=8)", "sparseness", "complexity",
        "probability", "local_accuracy",
    ]  # fmt: skip
    found = saliometer.audit(Filled().eval(), white(), methods=["gradient", half], metrics=chosen, out=tmp_path / "run")
    assert not found.failed
    wanted = {
        "average_drop": 0.49 / 0.99, "average_increase": 0.0, "average_gain": 0.0, "deletion": 0.5, "sparseness": 0.5,
        "complexity": math.log(SIDE * SIDE / 2), "probability": 0.99,
    }  # fmt: skip
    for metric, value in wanted.items():
        assert values(found, metric, "half") == pytest.approx([value] * 3, abs=1e-5), metric
    for control in CONTROLS:
        assert values(found, "deletion", control) == pytest.approx([0.5] * 3, abs=1e-5)  # any order of pixels


def test_by_default_come_the_quick_methods_the_controls_and_nine_metrics(tmp_path):
    found = saliometer.audit(network(), noise(2), out=tmp_path / "run")
    assert {row["method"] for row in measured(found)} == {*METHODS, *CONTROLS}
    assert {row["metric"] for row in measured(found)} >= {text.split("(")[0] for text in METRICS}
    assert set(found.methods) == set(METHODS)
    assert found.controls == CONTROLS
    assert found.verdict()


def test_rows_say_whose_and_what_they_are(tmp_path):
    found = saliometer.audit(network(), noise(3), LABELS[:3], name="my pets", out=tmp_path / "run", **FEW)
    row = measured(found)[0]
    assert (row["task"], row["setting"], row["model"]) == ("images", "my-pets", "Sequential")
    assert (row["target"], row["condition"], row["region"], row["note"]) == ("predicted", "", "", "")
    assert [r["bucket"] for r in measured(found)[:3]] == ["0", "1", "2"]
    assert [r["sample"] for r in measured(found)[:3]] == ["image-0", "image-1", "image-2"]
    definitions = {row["metric"]: row["definition"] for row in measured(found)}
    assert definitions["average_drop"] == "abs_max_minmax(space=raw)"
    assert definitions["deletion"] == "abs_max(draws=1,space=normalised,steps=4,ties=seed)"


# Repeating and going on


def test_the_same_call_gives_the_same_bits_and_another_batch_size_the_same_to_rounding(tmp_path):
    one, two = (saliometer.audit(network(), noise(), out=tmp_path / name, **FEW) for name in "ab")
    same(measured(one), measured(two))
    for size in (1, 3):
        other = saliometer.audit(network(), noise(), out=tmp_path / str(size), batch_size=size, **FEW)
        same(measured(one), measured(other), 1e-5)


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("when", [1, 10, 40])
def test_a_run_that_is_stopped_goes_on_where_it_was(tmp_path, when, whole):
    told = 0

    def stop(share: float, text: str) -> None:
        nonlocal told
        told += 1
        if told == when:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        saliometer.audit(network(), noise(), out=tmp_path / "run", watch=stop, **FEW)
    before = part_times(tmp_path / "run")
    found = saliometer.audit(network(), noise(), out=tmp_path / "run", **FEW)
    same(measured(found), whole)
    assert len(before) < len(part_times(tmp_path / "run")) == 3 * 7
    assert before.items() <= part_times(tmp_path / "run").items()


@pytest.mark.usefixtures("small_units")
def test_a_run_that_goes_on_is_estimated_by_what_is_left(tmp_path):
    """Of a unit that was not finished, the methods that are there are not counted again."""
    told = []

    def once():
        return saliometer.audit(
            network(), noise(), out=tmp_path, tell=lambda expected, *_: told.append(expected), **FEW
        )  # fmt: skip

    found = once()
    for part in ("rows/*/gradient*/000002*", "rows/*/edge*/000002*", "rows/*/edge*/000004*"):
        next(found.run.folder.glob(part)).unlink()
    same(measured(once()), measured(found))
    whole, rest = told
    assert (whole.images, rest.images) == (5, 3)  # images 2 to 4
    once_each = (whole.passes - 5 * sum(whole.passes_each.values())) / 5
    assert rest.passes == 3 * once_each + 2 * rest.passes_each["gradient"] + 3 * rest.passes_each["edge"]
    assert set(rest.each) == {"gradient", "edge"}


def test_a_finished_run_is_only_read(tmp_path):
    told: list[object] = []
    one = saliometer.audit(network(), noise(), out=tmp_path, tell=lambda *about: told.append(about), **FEW)
    before = part_times(tmp_path)
    two = saliometer.audit(network(), noise(), out=tmp_path, tell=lambda *about: told.append(about), **FEW)
    same(measured(one), measured(two))
    assert part_times(tmp_path) == before
    assert len(told) == 1


def test_a_method_may_join_later(tmp_path):
    saliometer.audit(network(), noise(), out=tmp_path / "run", **FEW)
    before = part_times(tmp_path / "run")
    both = {**FEW, "methods": [*FEW["methods"], "grad_cam"]}
    later = saliometer.audit(network(), noise(), out=tmp_path / "run", **both)
    fresh = saliometer.audit(network(), noise(), out=tmp_path / "fresh", **both)
    assert before.items() <= part_times(tmp_path / "run").items()

    def order(row: dict) -> tuple[str, ...]:
        return row["method"], row["metric"], row["sample"]

    same(sorted(measured(later), key=order), sorted(measured(fresh), key=order))
    assert set(later.methods) == {"gradient", "smooth_grad(draws=3)", "grad_cam"}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"metrics": ["sparseness"]}, "metrics"),
        ({"target": "least"}, "target"),
        ({"seed": 1}, "seed"),
        ({"images": noise(4)}, "count"),
        ({"images": noise() + 0.1}, "images"),
        ({"labels": LABELS.flip(0)}, "labels"),
        ({"normalisations": ["signed_joint_minmax"]}, "normalisations"),
        ({"mean": 0.5}, "input"),
        ({"multilabel": True}, "output"),
        ({"references": noise(2)}, "references"),
    ],
)
def test_another_request_in_the_same_folder_is_refused_in_words(tmp_path, change, word):
    given = {"images": noise(), "labels": LABELS, **FEW}
    saliometer.audit(network(), out=tmp_path, **given)
    before = part_times(tmp_path)
    if word == "count":
        change = {**change, "labels": LABELS[:4]}
    with pytest.raises(ValueError, match=rf"holds a run with {word} .*, you asked for .*: choose another folder"):
        saliometer.audit(network(), out=tmp_path, **{**given, **change})
    assert part_times(tmp_path) == before


def test_other_weights_in_the_same_folder_are_refused(tmp_path):
    saliometer.audit(network(), noise(), out=tmp_path, **FEW)
    other = network()
    with torch.no_grad():
        other[0].weight[0, 0, 0, 0] += 0.01
    with pytest.raises(ValueError, match="holds a run with weights"):
        saliometer.audit(other, noise(), out=tmp_path, **FEW)


def test_another_seed_changes_what_is_drawn_and_nothing_else(tmp_path):
    one, two = (saliometer.audit(network(), noise(), out=tmp_path / str(seed), seed=seed, **FEW) for seed in (0, 1))
    assert values(one, "average_drop", "gradient") == values(two, "average_drop", "gradient")
    assert values(one, "average_drop", "smooth_grad(draws=3)") != values(two, "average_drop", "smooth_grad(draws=3)")
    assert values(one, "max_sensitivity", "gradient") != values(two, "max_sensitivity", "gradient")


# What fails, and what does not fit


def test_a_metric_that_fails_leaves_the_other_rows_and_a_traceback(tmp_path):
    chosen = ["sparseness", "deletion(steps=4)", "complexity"]
    for _ in range(2):  # it is tried again, and said again
        with failing("deletion"):
            found = saliometer.audit(network(), noise(2), methods=["gradient"], metrics=chosen, out=tmp_path)
        assert set(found.failed) == {f"{name}, deletion" for name in ("gradient", *CONTROLS)}
        assert "deletion broke" in found.failed["gradient, deletion"]
        for metric in ("sparseness", "complexity"):
            assert not any(map(math.isnan, values(found, metric, "gradient")))
        assert all(map(math.isnan, values(found, "deletion", "gradient")))
        assert "Traceback" in found.run.failures()["gradient"][0]
        notes = {row["note"] for row in measured(found) if row["metric"] == "deletion" and row["method"] == "gradient"}
        assert all(note.startswith("failed: RuntimeError") for note in notes)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("deletion(steps=0)", "steps=0: wanted 1 or more"),
        ("average_drop(space=grey)", "there is no space 'grey'"),
        ("road(shares='0,50')", "wanted percentages between 0 and 100"),
    ],
)
def test_bad_parameters_of_a_metric_are_said_before_anything_is_made(tmp_path, metric, message):
    with pytest.raises(ValueError, match=message):
        saliometer.audit(network(), noise(2), methods=["gradient"], metrics=[metric], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_method_that_fails_leaves_the_others_and_is_tried_again(tmp_path):
    def broken(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        raise RuntimeError("no such hook")

    given = {"methods": ["gradient", broken], "metrics": ["sparseness"]}
    for _ in range(2):
        found = saliometer.audit(network(), noise(2), out=tmp_path, **given)
        assert found.failed == {"broken": "RuntimeError: no such hook"}
        assert "no such hook" in found.run.failures()["broken"][0]
        assert len(values(found, "sparseness", "gradient")) == 2
        assert found.methods == ["gradient"]


class Detached(nn.Module):
    """A network whose scores no gradient leads back from."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network()

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images).detach()


def test_where_no_gradient_can_be_taken_the_methods_that_want_none_are_judged(tmp_path):
    asked = {"methods": ["gradient", "rise(masks=8)"], "metrics": ["sparseness"]}
    found = saliometer.audit(Detached().eval(), noise(2), out=tmp_path, **asked)
    assert list(found.failed) == ["gradient"]
    assert "no gradient reaches the images from the score" in found.failed["gradient"]
    assert all(math.isfinite(value) for value in values(found, "sparseness", "rise(masks=8)"))


def test_pictures_that_were_left_out_are_named_and_the_rest_counted(tmp_path):
    found = saliometer.audit(network(), noise(2), methods=["gradient"], metrics=["sparseness"], out=tmp_path)
    found.run.manifest["skipped"] = {f"{number}.jpg": "the file is empty" for number in range(12)}
    (said,) = found.problems()
    assert said.startswith("12 images could not be read and were left out: 0.jpg (the file is empty); 1.jpg")
    assert said.endswith("9.jpg (the file is empty); and 2 more")


class Still(nn.Module):
    """Never moved by an image, though gradients pass."""

    def forward(self, images: Tensor) -> Tensor:
        return images.mean((2, 3)) * 0


def test_a_model_that_no_image_moves_is_told_with_the_maps_it_leaves_empty(tmp_path):
    given = {"methods": ["gradient"], "metrics": ["average_drop", "complexity", "sparseness", "average_gain"]}
    found = saliometer.audit(Still().eval(), noise(2), out=tmp_path, **given)
    drop, complexity, still = found.problems()
    why = "zero map; zero_gradient; constant maps cannot be scaled"
    assert drop == f"average_drop and average_gain of gradient are undefined for 2 of 2 images ({why})"
    assert complexity.endswith("is undefined for 2 of 2 images (zero map; zero_gradient; a map of zeros has no shares)")
    assert still.startswith("the model: it gives every image the same scores, noise too")


def test_a_compiled_network_is_judged_as_the_one_inside_it(tmp_path):
    asked = {"methods": ["grad_cam", "guided_backprop"], "metrics": ["sparseness"], "controls": False}
    in_place = network()
    in_place.compile(backend="eager")
    plain, *others = [
        measured(saliometer.audit(net, noise(), out=tmp_path / name, **asked))
        for name, net in (("plain", network()), ("compiled", torch.compile(network())), ("in place", in_place))
    ]
    for one in others:
        same(plain, one)


def test_one_metric_and_one_normalisation_need_no_list(tmp_path):
    given = {"methods": "gradient", "metrics": "sparseness", "normalisations": "signed_max_minmax"}
    found = saliometer.audit(network(), noise(2), out=tmp_path, **given)
    assert {row["metric"] for row in measured(found)} >= {"sparseness"}


def test_maps_that_are_nan_are_undefined_and_said(tmp_path):
    def nowhere(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        maps = images[:, 0].clone()
        maps[0, 0, 0] = float("nan")
        return maps

    given = {"methods": ["gradient", nowhere], "metrics": ["sparseness", "deletion(steps=2)"]}
    found = saliometer.audit(network(), noise(3), out=tmp_path, **given)
    assert [math.isnan(value) for value in values(found, "deletion", "nowhere")] == [True, False, False]
    assert {row["note"] for row in measured(found) if math.isnan(row["value"])} == {"nan map"}
    assert found.problems() == ["sparseness and deletion of nowhere are undefined for 1 of 3 images (nan map)"]
    assert found.as_dict()["table"][0]["undefined"] == 0


def test_a_map_of_nan_is_told_as_that_and_not_as_empty(tmp_path):
    given = {"methods": {"lost": lambda model, images, targets: images / 0}, "controls": False}
    found = saliometer.audit(
        network(), noise(2), metrics=["max_sensitivity(draws=2)", "complexity"], out=tmp_path, **given
    )
    assert {row["note"] for row in measured(found) if row["method"] == "lost"} == {"nan map"}


def test_a_network_in_another_precision_is_run_in_single_and_that_is_said(tmp_path):
    given = {"methods": ["gradient"], "metrics": ["sparseness"], "controls": False}
    plain = saliometer.audit(network(), noise(2), out=tmp_path / "single", **given)
    net = network().double()
    found = saliometer.audit(net, noise(2).double(), out=tmp_path / "double", **given)
    same(measured(plain), measured(found))
    assert found.problems() == ["the model: weights of type torch.float64 are run as torch.float32"]
    assert {values.dtype for values in net.parameters()} == {torch.float64}


def test_where_every_method_failed_it_is_not_said_that_none_was_run(tmp_path):
    found = saliometer.audit(network(), noise(2), methods=["cam"], metrics=["deletion(steps=2)"], out=tmp_path)
    assert set(found.failed) == {"cam"}
    assert found.verdict() == ["Only controls have scores, so there is no method to judge."]


def test_a_method_that_does_not_fit_is_left_out_under_all_and_fails_if_it_was_named(tmp_path, monkeypatch):
    """CAM wants a pooled head, which the small network does not have."""
    unasked = [replace(one_method("cam"), unasked=True), one_method("gradient")]
    monkeypatch.setattr(audit_module, "methods_asked", lambda *_: unasked)
    found = saliometer.audit(network(), noise(2), metrics=["sparseness"], out=tmp_path / "all")
    assert set(found.left_out) == {"cam"}
    assert not found.failed
    assert found.methods == ["gradient"]
    monkeypatch.undo()
    named = saliometer.audit(network(), noise(2), methods=["cam"], metrics=["sparseness"], out=tmp_path / "named")
    assert set(named.failed) == {"cam"}
    assert not named.left_out


def test_a_metric_that_shakes_images_out_of_a_rules_bounds_is_left_out_under_all(tmp_path, monkeypatch):
    """Deep Taylor wants every image within [0, 1]; its other metrics are scored."""
    given = {"metrics": ["sparseness", "max_sensitivity(draws=2)"], "controls": False}
    unasked = [replace(one_method("deep_taylor"), unasked=True), one_method("gradient")]
    monkeypatch.setattr(audit_module, "methods_asked", lambda *_: unasked)
    found = saliometer.audit(network(), white(), out=tmp_path / "all", **given)
    assert set(found.left_out) == {"deep_taylor, max_sensitivity"}
    assert not found.failed
    assert len(values(found, "sparseness", "deep_taylor")) == len(white())
    notes = {row["note"][:10] for row in found.rows.to_pylist() if row["metric"] == "max_sensitivity"}
    assert "left out: " in notes
    assert not any(note.startswith("failed") for note in notes)
    monkeypatch.undo()
    named = saliometer.audit(network(), white(), methods=["deep_taylor"], out=tmp_path / "named", **given)
    assert set(named.failed) == {"deep_taylor, max_sensitivity"}
    assert "noise added" in named.failed["deep_taylor, max_sensitivity"]


def test_all_means_every_method_but_those_that_know_the_truth():
    names = {method.spec.name for method in methods_asked("all", "", False)}
    assert names == {name for name, entry in known_methods.items() if not entry.facts.control} | set(CONTROLS)
    assert {method.spec.name for method in methods_asked((), "", True)} == names


@pytest.mark.parametrize("controls", [True, False])
def test_the_mask_of_ones_comes_along_with_the_controls_or_by_name_and_once(controls):
    unasked = [method.label for method in methods_asked("gradient", "", False, controls)]
    named = [method.label for method in methods_asked(("gradient", "all_ones"), "", False, controls)]
    assert unasked.count("all_ones") == controls
    assert named.count("all_ones") == 1


# What is shared


def test_metrics_share_passes_and_rows_say_so(tmp_path):
    """AD, AI and AG are one masked pass; the two sensitivities are one set of explanations."""
    chosen = [
        "average_drop", "average_increase", "average_gain", "max_sensitivity(draws=4)", "avg_sensitivity(draws=4)",
        "sparseness",
    ]  # fmt: skip
    found = saliometer.audit(network(), noise(), methods=["gradient"], metrics=chosen, out=tmp_path)
    rows = [row for row in found.rows.to_pylist() if row["method"] == "gradient" and row["metric"].startswith("cost.")]
    cost = {(row["definition"].split(" ")[0], row["metric"].removeprefix("cost.")): row["value"] for row in rows}
    count = len(noise())
    assert cost["maps", "passes"] == count
    assert cost["average_drop", "passes"] == count
    assert cost["average_increase", "passes"] == cost["average_gain", "passes"] == 0
    assert cost["average_increase", "passes_shared"] == cost["average_gain", "passes_shared"] == count
    assert cost["max_sensitivity", "passes"] == cost["avg_sensitivity", "passes_shared"] == 4 * count
    assert cost["avg_sensitivity", "passes"] == cost["sparseness", "passes"] == 0
    assert all(row["value"] >= 0 and row["sample"] == "0-5" for row in rows)
    assert found.costs()["average_drop"]["passes"] == count * (1 + len(CONTROLS))
    assert found.run.manifest["passes"] == sum(one["passes"] for one in found.costs().values())


def test_the_order_of_metrics_changes_no_value(tmp_path):
    one = saliometer.audit(network(), noise(), out=tmp_path / "a", **FEW)
    turned = {**FEW, "metrics": FEW["metrics"][::-1]}
    two = saliometer.audit(network(), noise(), out=tmp_path / "b", **turned)

    def order(row: dict) -> tuple[str, ...]:
        return row["method"], row["metric"], row["sample"]

    same(sorted(measured(one), key=order), sorted(measured(two), key=order))


# The class that is explained


@pytest.mark.parametrize("target", ["predicted", "label", "least"])
def test_the_target_is_the_class_that_was_asked_for(tmp_path, target):
    given = {"methods": ["gradient"], "metrics": ["probability"]}
    found = saliometer.audit(network(), noise(), LABELS, target=target, out=tmp_path, **given)
    chances = network()(noise()).softmax(1)
    wanted = {
        "predicted": chances.amax(1), "least": chances.amin(1), "label": chances.gather(1, LABELS[:, None])[:, 0],
    }[target]  # fmt: skip
    assert values(found, "probability", "gradient") == pytest.approx(wanted.tolist(), rel=1e-5)
    assert {row["target"] for row in measured(found)} == {target}


def test_without_labels_the_label_cannot_be_explained_and_all_else_can(tmp_path):
    with pytest.raises(ValueError, match="target 'label' wants labels, but the images came without"):
        saliometer.audit(network(), noise(), target="label", out=tmp_path / "label")
    found = saliometer.audit(network(), noise(), out=tmp_path / "run", **FEW)
    assert {row["bucket"] for row in measured(found)} == {""}
    assert not found.run.manifest["labelled"]


# Bad input: nothing is written, one clear sentence


def test_a_target_that_is_no_name_is_told():
    with pytest.raises(LookupError, match=r"there is no target '3'\. There are: label, least, predicted"):
        saliometer.audit(network(), noise(), methods=["gradient"], metrics=["sparseness"], target=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": torch.tensor([0, 1, 2, 3, 0])}, "label 3 of 'image-3' is out of range: model .* has 3 classes"),
        ({"labels": torch.tensor([0, 1])}, r"labels have shape \(2,\).*: wanted 5 whole numbers of 0 or more"),
        ({"labels": torch.tensor([0, -1, 0, 0, 0])}, "wanted 5 whole numbers of 0 or more"),
        ({"labels": [0.5] * 5}, "wanted 5 whole numbers of 0 or more"),
        ({"labels": list("aabbc")}, "labels: a list came .*, wanted whole numbers of 0 or more, one for each image"),
        ({"labels": "labels.csv"}, "labels and masks in files go with images in files"),
        ({"images": noise() * float("nan")}, "images hold NaN or infinity"),
        ({"images": noise()[0]}, r"images: shape \(3, 8, 8\).*wanted a floating point tensor \(N, C, H, W\)"),
        ({"images": noise()[:0]}, r"N of 1 or more"),
        ({"images": (noise() * 255).byte()}, "torch.uint8 came, wanted a floating point tensor"),
        ({"images": noise().tolist()}, "the DataLoader gave a batch of list: wanted a tensor of images"),
        ({"images": None}, "images are of type NoneType: wanted a tensor"),
        ({"images": noise().numpy()}, "images are of type ndarray: wanted a tensor"),
        ({"images": "nowhere"}, "nothing says how the model takes pictures: give size, mean and std"),
        ({"images": torch.rand(2, 3, 5, 5)}, "does not take images of shape"),
        ({"model": network().train()}, r"train mode.*: call model.eval\(\) first"),
        ({"model": nn.Sequential(network(), nn.Softmax(1)).eval()}, "the model gives probabilities; wanted logits"),
        ({"model": nn.Sequential(network(), nn.Unflatten(1, (3, 1))).eval()}, r"wanted a tensor \(images, classes\)"),
        ({"model": nn.Sequential(nn.Flatten(), nn.Linear(192, 1), nn.Softmax(1)).eval()}, "fewer than two classes"),
        ({"model": 7}, "model is of type int, wanted a torch.nn.Module or a name"),
        ({"output": "probability"}, "--output probability, but the model gives values from"),
        ({"weights": "w.safetensors"}, "weights go with a model's name"),
        ({"metrics": ["pafl"]}, "metric 'pafl' reads a task's objects and their roles"),
        ({"metrics": ["iou"]}, "metric 'iou' compares with masks or boxes, but the images came without"),
        ({"masks": torch.ones(5, 4, 4)}, r"masks have shape \(5, 4, 4\), wanted \(5, 8, 8\)"),
        ({"masks": torch.full((5, 8, 8), 0.5)}, "masks hold torch.float32 from 0.5 to 0.5: wanted True and False"),
        ({"masks": torch.full((5, 8, 8), math.nan)}, "masks hold torch.float32 from nan to nan: wanted"),
        ({"mean": (0.5, 0.5)}, r"mean is \(0.5, 0.5\): wanted one number or 3, as the images have channels"),
        ({"std": 0.0}, r"std is \(0.0,\): wanted one number or 3, as the images have channels, above 0"),
        ({"limit": -1}, "limit is -1: wanted 1 or more, or 0 for all"),
        ({"methods": {" ": lambda model, images, targets: images}}, "' ' is no name of a method: wanted words"),
        ({"maps": {None: torch.ones(5, 8, 8)}}, "None is no name of a method: wanted words"),
        ({"maps": torch.ones(5, 8, 8)}, "maps are of type Tensor: wanted them by name"),
        ({"methods": ["mine.py"]}, "method 'mine.py' is a file: wanted file.py:name"),
        ({"batch_size": -1}, "batch size is -1: wanted 1 or more, or 0 to find it"),
    ],
)
def test_bad_input_is_refused_in_words_and_nothing_is_written(tmp_path, change, message):
    given = {"model": network(), "images": noise(), "metrics": ["sparseness"], "methods": ["gradient"]}
    with pytest.raises(ValueError, match=message):
        saliometer.audit(out=tmp_path / "run", **{**given, **change})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "labels"}, "there is no target 'labels'. Did you mean 'label'"),
        ({"metrics": ["insertoin"]}, "there is no metric 'insertoin'. Did you mean 'insertion'"),
        ({"metrics": ["insertion(step=3)"]}, "there is no parameter 'step'. Did you mean 'steps'"),
        ({"methods": ["gradeint"]}, "there is no method 'gradeint'"),
        ({"normalisations": ["minmax"]}, "there is no normalisation 'minmax'"),
        ({"constant": "one"}, "there is no constant 'one'. Did you mean 'ones'"),
    ],
)
def test_unknown_words_name_the_nearest(tmp_path, change, message):
    given = {"metrics": ["sparseness"], "methods": ["gradient"]}
    with pytest.raises(LookupError, match=message):
        saliometer.audit(network(), noise(), out=tmp_path / "run", **{**given, **change})
    assert not (tmp_path / "run").exists()


# What the model gives


class Chances(nn.Module):
    """Its softmax is no layer that could be taken out."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network()

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images).softmax(1)


@pytest.mark.parametrize("squashed", [nn.Sequential(network(), nn.Softmax(1)), Chances()])
def test_a_network_of_probabilities_is_judged_as_the_one_of_its_logits(tmp_path, squashed):
    """The softmax of log p is p, whatever the logits were."""
    given = {"metrics": ["average_drop", "deletion(steps=4)", "probability"], "methods": ["rise(masks=20)"]}
    plain = saliometer.audit(network(), noise(), out=tmp_path / "logits", **given)
    found = saliometer.audit(squashed.eval(), noise(), output="probability", out=tmp_path / "chances", **given)
    assert not found.failed
    for control in CONTROLS:
        for metric in ("average_drop", "deletion", "probability"):
            wanted = pytest.approx(values(plain, metric, control), rel=1e-4, abs=1e-6, nan_ok=True)  # a drop of float32
            assert values(found, metric, control) == wanted
    assert found.run.manifest["model"]["output"].startswith("probability, its l")


def test_methods_that_walk_work_where_the_softmax_is_a_layer(tmp_path):
    squashed = nn.Sequential(network(), nn.Softmax(1)).eval()
    given = {"metrics": ["sparseness"], "methods": ["lrp_epsilon", "grad_cam"]}
    found = saliometer.audit(squashed, noise(2), output="probability", out=tmp_path / "a", **given)
    plain = saliometer.audit(network(), noise(2), out=tmp_path / "b", **given)
    assert not found.failed
    for method in given["methods"]:
        assert values(found, "sparseness", method) == pytest.approx(values(plain, "sparseness", method), rel=1e-4)
    assert isinstance(squashed[1], nn.Softmax)


def test_a_model_of_ours_that_gives_probabilities_is_turned_into_logits_too(tmp_path):
    whole = Model("mine", Chances().eval().requires_grad_(False), "net.3", "", middle_layer="net.1")
    given = {"metrics": ["probability"], "methods": ["grad_cam"]}
    found = saliometer.audit(whole, noise(), output="probability", out=tmp_path, **given)
    assert not found.failed
    wanted = network()(noise()).softmax(1).amax(1).tolist()
    assert values(found, "probability", "grad_cam") == pytest.approx(wanted, rel=1e-4)


def test_one_logit_means_two_classes(tmp_path):
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 1)).eval()
    given = {"metrics": ["probability"], "methods": ["gradient"]}
    found = saliometer.audit(net, noise(), torch.tensor([0, 1, 1, 0, 1]), target="label", out=tmp_path, **given)
    yes = net(noise())[:, 0].sigmoid()
    wanted = torch.where(torch.tensor([0, 1, 1, 0, 1]) == 1, yes, 1 - yes)
    assert values(found, "probability", "gradient") == pytest.approx(wanted.tolist(), rel=1e-5)


def test_several_labels_at_once_are_judged_one_by_one(tmp_path):
    given = {"metrics": ["probability"], "methods": ["gradient"], "multilabel": True}
    found = saliometer.audit(network(), noise(), LABELS, target="label", out=tmp_path, **given)
    wanted = network()(noise()).sigmoid().gather(1, LABELS[:, None])[:, 0]
    assert values(found, "probability", "gradient") == pytest.approx(wanted.tolist(), rel=1e-5)


# How images come


class Loader:
    def __init__(self, *parts: Tensor) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[object]:
        for start in range(0, 5, 2):
            batch = [part[start : start + 2] for part in self.parts]
            yield batch if len(batch) > 1 else batch[0]


def test_a_loader_gives_what_the_tensor_gives(tmp_path):
    with_labels = saliometer.audit(network(), noise(), LABELS, target="label", out=tmp_path / "a", **FEW)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(noise(), LABELS), batch_size=2)
    same(
        measured(saliometer.audit(network(), loader, target="label", out=tmp_path / "b", **FEW)), measured(with_labels)
    )
    bare = saliometer.audit(network(), noise(), out=tmp_path / "c", **FEW)
    same(measured(saliometer.audit(network(), Loader(noise()), out=tmp_path / "d", **FEW)), measured(bare))
    first = saliometer.audit(network(), noise()[:3], LABELS[:3], out=tmp_path / "e", **FEW)
    cut = saliometer.audit(network(), Loader(noise(), LABELS), limit=3, out=tmp_path / "f", **FEW)
    same(measured(cut), measured(first))


def test_images_in_double_precision_are_run_in_single(tmp_path):
    one = saliometer.audit(network(), noise(), out=tmp_path / "a", **FEW)
    same(measured(saliometer.audit(network(), noise().double(), out=tmp_path / "b", **FEW)), measured(one))


# Masks


def test_masks_bring_their_metrics_along_and_the_object_itself_scores_1(tmp_path):
    masks = torch.zeros(2, SIDE, SIDE, dtype=torch.bool)
    masks[:, :, : SIDE // 2] = True
    found = saliometer.audit(network(), noise(2), methods=["gradient", half], masks=masks, out=tmp_path)
    assert values(found, "pointing_game", "half") == [1, 1]
    assert values(found, "iou", "half") == [1, 1]
    assert values(found, "pointing_game.chance", "gradient") == [0.5, 0.5]
    assert values(found, "iou", "gradient") != [1, 1]


# Normalisations


def test_every_normalisation_that_makes_a_difference_has_its_rows(tmp_path):
    chosen = ["average_drop", "sparseness", "max_sensitivity(draws=2)"]
    both = ["abs_max_minmax", "signed_joint_minmax"]
    given = {"methods": ["gradient"], "metrics": chosen, "normalisations": both}
    found = saliometer.audit(network(), noise(), out=tmp_path, **given)
    stages = {(row["metric"], row["definition"].partition("(")[0]) for row in measured(found)}
    assert stages >= {
        ("average_drop", "abs_max_minmax"), ("average_drop", "signed_joint_minmax"),
        ("sparseness", "abs_max_minmax"), ("sparseness", "signed_joint_minmax"),
    }  # fmt: skip
    assert [stage for metric, stage in stages if metric == "max_sensitivity"] == ["attribution"]


def test_a_constant_map_counts_as_it_is_asked_to(tmp_path):
    def flat(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        return torch.ones(len(images), SIDE, SIDE)

    for constant, wanted in (("invalid", math.nan), ("ones", 0.0), ("zeros", 0.98 / 0.99)):
        found = saliometer.audit(
            Filled().eval(), white(2), methods=["gradient", flat], metrics=["average_drop"], constant=constant,
            out=tmp_path / constant,
        )  # fmt: skip
        assert values(found, "average_drop", "flat") == pytest.approx([wanted] * 2, nan_ok=True, abs=1e-5)


def test_images_that_were_normalised_without_a_word_are_warned_of(tmp_path):
    given = {"methods": ["gradient"], "metrics": ["sparseness"]}
    images = (noise() - 0.5) / 0.25
    silent = saliometer.audit(network(), images, out=tmp_path / "a", **given)
    assert "pixels reach from -1.99 to 2, not from 0 to 1" in silent.problems()[0]
    assert not saliometer.audit(network(), images, mean=0.5, std=0.25, out=tmp_path / "b", **given).problems()


def test_images_of_other_than_one_or_three_channels_are_shown_grey(tmp_path):
    net = nn.Sequential(nn.Conv2d(4, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 36, 2)).eval()
    given = {"methods": ["gradient"], "metrics": ["sparseness"]}
    found = saliometer.audit(net, torch.rand(2, 4, SIDE, SIDE), out=tmp_path, **given)
    assert not found.failed
    assert "data:image/png" in page(book_of(found.run))


# What belongs to the caller


def test_the_callers_network_images_and_generator_are_as_they_were(tmp_path):
    net, images = network(), noise()
    net[0].weight.requires_grad_(False)
    net[3].register_forward_hook(lambda *_: None)
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

    def state() -> list[object]:
        return [
            [len(getattr(module, kind)) for module in net.modules() for kind in hooks],
            [module.training for module in net.modules()],
            [(one.requires_grad, one.device, one.dtype, one._version, one.grad) for one in net.parameters()],
            [type(module) for module in net.modules()],
            torch.is_grad_enabled(), torch.get_rng_state().tolist(), images.requires_grad, images._version,
        ]  # fmt: skip

    before, copy = state(), images.clone()
    saliometer.audit(net, images, out=tmp_path / "run", **FEW)
    assert state() == before
    assert torch.equal(images, copy)


def test_a_caller_without_gradients_gets_the_same(tmp_path):
    one = saliometer.audit(network(), noise(), out=tmp_path / "a", **FEW)
    net, images = network(), noise()
    with torch.inference_mode():
        two = saliometer.audit(net, images, out=tmp_path / "b", **FEW)
    same(measured(one), measured(two))


def test_folders_that_are_fewer_than_the_classes_are_no_labels(tmp_path):
    """Synsets of three of ImageNet's classes are not its classes 0, 1 and 2."""
    from PIL import Image

    for name in ("n01440764", "n02102040"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (SIDE, SIDE), (200, 30, 90)).save(tmp_path / name / "a.png")
    given = {"methods": ["gradient"], "metrics": ["sparseness"], "size": SIDE, "mean": 0.0, "std": 1.0}
    with pytest.raises(ValueError, match=r"labels count the 2 folders .* but model 'Sequential' has 3 classes"):
        saliometer.audit(network(), tmp_path, target="label", out=tmp_path / "label", **given)
    found = saliometer.audit(network(), tmp_path, out=tmp_path / "predicted", **given)
    assert {row["bucket"] for row in measured(found)} == {""}
    assert any("were left aside" in text for text in found.problems())


def test_a_run_goes_on_in_the_units_it_was_begun_with(tmp_path, monkeypatch):
    """Units are larger on a GPU, and a run begun there can end on a CPU."""
    for unit, methods in ((2, ["gradient"]), (4, ["gradient", "input_x_gradient"])):
        monkeypatch.setattr(audit_module, "UNIT", unit)
        found = saliometer.audit(network(), noise(), methods=methods, metrics=["sparseness"], out=tmp_path)
    names = {path.stem for path in (tmp_path / "rows").rglob("*.parquet")}
    assert names == {"000000-000002", "000002-000004", "000004-000005"}
    assert len(values(found, "sparseness", "input_x_gradient")) == 5

"""Numbers of the causal study on maps made by hand, and maps that are asked for once."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from saliometer.engine.causal import Causal
from saliometer.engine.resolve import one_method
from saliometer.engine.score import Failure
from saliometer.graph import Network
from saliometer.studies._yona_cast import both_sides
from saliometer.studies._yona_classical import Extent, _curves, _Seen, _Shaken, complexity_gain
from saliometer.studies._yona_evidence import Evidence
from saliometer.studies._yona_maps import controlled, explained, in_turn, predicted
from saliometer.studies._yona_measure import divides, local_spearman, measured
from saliometer.studies._yona_rows import Rows
from saliometer.studies._yona_scenes import Comparison, Group, Scene, named, spread
from saliometer.studies._yona_tables import invalid
from saliometer.tasks.pairs import pairs
from saliometer.tasks.pairs import seen_as as seen_as_pairs
from saliometer.tasks.shape_digits import seen_as, shape_digits
from saliometer.types import PRIMARY, SECONDARY, Model

CPU = torch.device("cpu")
IMAGES = 30
SEEN: list[int] = []  # images that went through a network


class Small(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 5, stride=3)
        self.relu = nn.ReLU()
        self.out = nn.Linear(3 * 8 * 8, classes)

    def forward(self, images: Tensor) -> Tensor:
        SEEN.append(len(images))
        return self.out(self.relu(self.conv(images)).flatten(1))


def models(count: int, classes: int, start: int) -> list[Model]:
    found = []
    for number in range(count):
        torch.manual_seed(start + number)
        found.append(Model(f"small {start + number}", Small(classes).eval().requires_grad_(False), "conv", ""))
    return found


def scene() -> Scene:
    """Digits with shapes, by three models for each group."""
    shapes = shape_digits("shape", count=IMAGES)
    groups = {
        "t1": Group(models(3, 3, 0), "t1"), "t2": Group(models(3, 10, 10), "t2"), "random": Group(models(3, 3, 20)),
        "random.t2": Group(models(3, 10, 30)),
    }  # fmt: skip
    return Scene(
        "shapes", {"t1": shapes, "t2": seen_as(shapes, "digit")}, groups,
        [Comparison("t1", "t1", "random"), Comparison("t2", "t2", "random.t2")],
        {"t1": ("t1", "random", "t2"), "t2": ("t2", "random.t2", "t1")},
        [({"t1": 0.5, "t2": 0.5}, "random", (shapes.roles != -1).all(1).nonzero()[:, 0])], shown=spread(IMAGES, 3),
    )  # fmt: skip


def numbers(rows: Rows) -> dict[tuple[str, ...], float]:
    """Without images: (setting, model, metric, definition, region, condition) -> value."""
    return {
        tuple(row[name] for name in ("setting", "model", "metric", "definition", "region", "condition")): row["value"]
        for row in rows.table().to_pylist()
        if not row["sample"]
    }


def right(some: Scene) -> dict[str, Tensor]:
    return {name: torch.ones(len(group.models), IMAGES, dtype=torch.bool) for name, group in some.groups.items()}


def test_perfect_maps_have_an_energy_of_one_and_dissociate_fully():
    """Trained models mark what they learned to name, random ones the top left pixel, which is neither."""
    some = scene()
    corner = torch.zeros(IMAGES, 1, 28, 28)
    corner[:, :, 0, 0] = 1
    shape, digit = (some.samples["t1"].region(role, "ink").float()[:, None] for role in (PRIMARY, SECONDARY))
    there = shape.flatten(1).any(1)[:, None, None, None]
    marked = {"t1": shape.where(there, digit), "t2": digit, "random": corner, "random.t2": corner}
    maps = {name: one.expand(3, *one.shape) for name, one in marked.items()}
    found = numbers(measured("made", some, maps, right(some), beside=10, draws=200, seed=0))
    for setting, who in (("shape", "t1"), ("digit", "t2")):
        which = ("total_variation", "", "against(random)")
        assert found[setting, who, "B", *which] == pytest.approx(1.0, abs=1e-6)
        assert found[setting, who, "W_T", *which] == found[setting, who, "W_R", *which] == pytest.approx(0.0, abs=1e-6)
        assert found[setting, who, "E", *which] == pytest.approx(1.0, abs=1e-6)
        assert found[setting, who, "E.p", *which] == pytest.approx(1 / 10)  # 20 splits, 2 of them this one
        assert found[setting, who, "focus", "", "mask", ""] == pytest.approx(1.0)
        assert found[setting, "", "DD", "", "mask", ""] == pytest.approx(1.0)
        assert found[setting, f"{who}(seed=0)", "coverage", "", "mask", ""] == pytest.approx(1.0)  # where a shape is
        other = {"t1": "t2", "t2": "t1"}[who]
        assert found[setting, other, "focus", "", "mask", ""] == pytest.approx(0.0, abs=1e-6)
    weights = "posterior(t1=0.5,t2=0.5)"
    assert found["shape", "", "lambda", "", "", weights] == pytest.approx(1.0, abs=1e-5)


def test_controls_come_out_as_they_must():
    some = scene()
    for name in ("edge", "input", "fake_cam", "centre"):
        found = numbers(measured(name, some, controlled(name, some, CPU), right(some), beside=5, draws=50, seed=0))
        which = ("total_variation", "", "against(random)")
        assert [found["shape", "t1", metric, *which] for metric in ("E", "B", "W_T", "W_R")] == [0.0] * 4
        assert found["shape", "", "DD", "", "mask", ""] == 0.0
        assert found["shape", "t1", "E.p", *which] == 1.0
    noise = numbers(
        measured("fresh_noise", some, controlled("fresh_noise", some, CPU), right(some), beside=5, draws=50, seed=0)
    )
    which = ("total_variation", "", "against(random)")
    assert noise["shape", "t1", "B", *which] == pytest.approx(1 / 3, abs=0.01)  # of two uniform maps
    assert abs(noise["shape", "t1", "E", *which]) < 0.005
    assert abs(noise["shape", "", "DD", "", "mask", ""]) < 0.05
    truth = numbers(measured("oracle", some, controlled("oracle", some, CPU), right(some), beside=5, draws=50, seed=0))
    assert truth["shape", "t1", "E.low", *which] > 0.2
    assert truth["shape", "", "DD.low", "", "mask", ""] > 0.5


def test_maps_without_mass_are_counted_for_each_head():
    some = scene()
    maps = {name: torch.ones(3, IMAGES, 1, 28, 28) for name in some.groups}
    maps["random"][:, :2], maps["random.t2"][1, 0] = 0, torch.nan
    rows = measured("made", some, maps, right(some), beside=5, draws=20, seed=0).table()
    found = Evidence(rows, {})
    assert found.invalid == [("t1", "random", "made", 6), ("t1", "random.t2", "made", 1)]
    assert "| made | t1 | random | 6 |" in invalid(found)


def test_errors_are_told_from_what_a_model_gets_right():
    some = scene()
    maps = controlled("oracle", some, CPU)
    answers = right(some)
    answers["t1"][:, :12] = False
    maps["t1"] = maps["t1"].clone()
    maps["t1"][:, :12] = some.samples["t2"].region(PRIMARY, "ink").float()[:12, None]  # wrong ones mark the digit
    found = numbers(measured("made", some, maps, answers, beside=5, draws=50, seed=0))
    shaped = (some.samples["t1"].roles != -1).all(1)[:12]
    assert found["shape", "t1", "wrong", "", "mask", ""] == 3 * int(shaped.sum())
    assert found["shape", "t1(seed=0)", "right_minus_wrong", "", "mask", ""] > 0.9


def test_dividing_out_the_multiplier_leaves_the_gradient():
    images = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    images[:, :, :3] = 0
    slopes = torch.randn(5, 4, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    times = local_spearman(slopes * images, images, True, 2)
    torch.testing.assert_close(times, local_spearman(slopes, images, False, 2))
    assert local_spearman((images + 0.01 * slopes) * images, images, False, 2).min() > 0.9  # the image, everywhere
    assert all(map(divides, ("input_x_gradient", "integrated_gradients(steps=8)", "input")))
    assert not any(map(divides, ("gradient", "fresh_noise")))


def test_each_image_goes_through_each_model_once_for_methods_that_share_a_pass():
    some = scene()
    wanted = predicted(some, CPU)
    SEEN.clear()
    found = explained([one_method(name) for name in ("gradient", "input_x_gradient", "grad_cam")], some, wanted, CPU)
    assert sum(SEEN) == 12 * IMAGES + len(some.groups)  # one of each group tells how many go through at once
    images = some.images
    torch.testing.assert_close(found["input_x_gradient"]["t1"][1], found["gradient"]["t1"][1] * images)


def test_a_method_that_fails_on_one_model_is_left_out_with_its_reason():
    some = scene()
    found = explained([one_method("grad_cam(layer=nowhere)")], some, predicted(some, CPU), CPU)
    failure = found["grad_cam(layer=nowhere)"]
    assert isinstance(failure, Failure)
    assert "nowhere" in failure.message


def test_a_group_may_be_shown_some_images_only():
    some = scene()
    places = torch.arange(5, 15)
    some = replace(some, groups={**some.groups, "t": Group(models(2, 10, 40), "", places)})
    wanted = predicted(some, CPU)
    assert wanted["t"].shape == (2, 10)
    found = explained([one_method("gradient")], some, wanted, CPU)["gradient"]
    assert found["t"].shape == (2, 10, 1, 28, 28)
    assert controlled("edge", some, CPU)["t"].shape == (2, 10, 1, 28, 28)
    assert controlled("fresh_noise", some, CPU)["t"].shape == (2, 10, 1, 28, 28)


# The classical curves


def test_efficient_mprt_is_the_rise_of_entropy():
    even = torch.arange(100.0).view(1, 1, 10, 10)
    half = torch.cat((torch.zeros(50), torch.ones(50))).view(1, 1, 10, 10)
    assert complexity_gain(half, even).item() == pytest.approx((math.log(100) - math.log(2)) / math.log(2))
    assert complexity_gain(torch.ones(1, 1, 10, 10), even).isnan().all()


def test_curves_leave_the_model_as_it_was_and_place_the_controls():
    one, batch = models(1, 3, 0)[0], scene().samples["t1"].batch[:8]
    before = {name: value.clone() for name, value in one.net.state_dict().items()}
    labels = ["gradient", "guided_backprop", "edge", "fresh_noise"]
    rows = {label: Rows(label) for label in labels}
    assert _curves(rows, "t1", 0, one, batch, labels, Extent(1, 8, 2, 2), 0, CPU) == {}
    for name, value in one.net.state_dict().items():
        assert torch.equal(value, before[name])
    found = {label: numbers(some) for label, some in rows.items()}
    which = ("shape", "t1(seed=0)", "spearman_abs", "plain", "")
    states = [
        f"{order}(layer={layer},stage={stage})"
        for order, layers in (("top_down", ("out", "conv")), ("bottom_up", ("conv", "out")))
        for stage, layer in enumerate(layers, 1)
    ]
    for state in states:
        assert found["edge"][(*which, state)] == pytest.approx(1.0)
        assert abs(found["fresh_noise"][(*which, state)]) < 0.05
        assert found["gradient"][(*which, state)] < 0.999
    assert found["gradient"][(*which, states[1])] == found["gradient"][(*which, states[3])]  # all layers, either way
    smooth = [key for key in found["gradient"] if key[3] == "smooth"]
    assert {key[5].partition("(")[0] for key in smooth} == {"bottom_up"}
    for key in smooth:
        assert found["edge"][key] == pytest.approx(1.0)
        assert abs(found["fresh_noise"][key]) < 0.05
    assert ("shape", "t1(seed=0)", "efficient", "", "", "") in found["gradient"]


def test_noisy_copies_explain_what_the_image_itself_is_taken_for(monkeypatch):
    one, batch = models(1, 10, 4)[0], scene().samples["t1"].batch[:12]
    explained: list[Tensor] = []

    def seen(methods, answers, some):
        explained.append(some.targets)
        return {}

    monkeypatch.setattr("saliometer.studies._yona_classical.attributions", seen)
    shaken = _Shaken(_Seen(one, batch, ["gradient"], "t1(seed=0)", CPU), 5, 0)
    shaken.maps("")
    own = one.net(batch.images).argmax(1)
    assert not torch.equal(one.net(shaken.batch.images).argmax(1), own.repeat(5))  # some copies are taken for others
    torch.testing.assert_close(explained[0], own.repeat(5))


def test_the_head_of_a_random_model_goes_without_saying():
    assert [named(group) for group in ("random.half", "random", "t1")] == ["random", "random", "t1"]


def test_models_take_turns_in_one_network_and_stay_as_they_are():
    group = Group(models(3, 3, 0))
    image = torch.rand(2, 1, 28, 28)
    wanted = [one.net(image) for one in group.models]
    seen = []
    for one, own in zip(in_turn(group), wanted, strict=True):
        torch.testing.assert_close(one.net(image), own)
        seen.append(one.net)
    assert len({id(net) for net in seen}) == 1
    for one, own in zip(group.models, wanted, strict=True):
        torch.testing.assert_close(one.net(image), own)


def test_a_walk_on_the_next_model_or_state_is_made_once(monkeypatch):
    tried, own = [], Network._tried

    def kept(self, walk, rows):
        tried.append(own(self, walk, rows))
        return tried[-1]

    monkeypatch.setattr(Network, "_tried", kept)
    some = scene()
    targets = predicted(some, CPU)
    explained([one_method("guided_backprop")], some, targets, CPU)
    rows = {"guided_backprop": Rows("guided_backprop")}
    batch = some.samples["t1"].batch[:2]
    _curves(rows, "t1", 0, some.groups["t1"].models[0], batch, list(rows), Extent(1, 2, 1, 2), 0, CPU)
    assert len(tried) > 12
    assert all(found is not None for found in tried)  # none found out at its end that the network was another one


@pytest.mark.parametrize("count", [4, 7, 24, 50, 60, 100])
def test_few_pairs_have_what_decides_on_either_side(count):
    found = both_sides(Causal("pairs", "first"), count)
    assert len(found) == len(set(found.ids)) == count
    right = found.boxes[:, 0, 2] > 0  # the first group's tile
    assert right[:4].tolist() == [False, True, True, False]
    assert abs(2 * int(right.sum()) - count) <= 1
    own = pairs("first", count=100)
    at = [own.ids.index(one) for one in found.ids]
    assert torch.equal(found.batch.images, own.batch.images[at])
    assert torch.equal(found.labels, own.labels[at])
    assert torch.equal(seen_as_pairs(found, "second").labels, pairs("second", count=100).labels[at])
    assert torch.equal(found.region(PRIMARY, "ink"), own.region(PRIMARY, "ink")[at])
    if count > 8:
        assert set(found.labels.tolist()) == set(range(5))

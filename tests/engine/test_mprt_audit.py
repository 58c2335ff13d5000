"""The randomisation tests in an audit: known answers, one pass for each state, and a model that is as it was."""

import json
import math
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from typer.testing import CliRunner

import saliometer
from audit_toys import measured, same
from saliometer.cli import app
from saliometer.engine import asked as asked_module
from saliometer.engine import audit as audit_module
from saliometer.engine.answer import Answers
from saliometer.engine.battery import Measure
from saliometer.engine.mprt import Randomised
from saliometer.engine.resolve import one_method
from saliometer.graph import Network
from saliometer.graph.capture import capture
from saliometer.report.page import book_of, page
from saliometer.sanity.entropy import entropy
from saliometer.sanity.layers import layers_in_order
from saliometer.sanity.randomise import fresh, randomised
from saliometer.sanity.similarity import USUAL, hog_similarity, spearman, ssim
from saliometer.types import Samples
from sanity_toys import backwards, changed, pictures, state
from toys import CPU, model_of, noise_batch

SIDE, COUNT = 16, 3
ORDERS = ("top_down", "bottom_up", "independent", "full")
DRAWS = 2


def images(count: int = COUNT) -> Tensor:
    return pictures(count, SIDE)


def gradients(net: nn.Module, shown: Tensor, targets: Tensor) -> Tensor:
    leaf = shown.clone().requires_grad_()
    return torch.autograd.grad(net(leaf).gather(1, targets[:, None]).sum(), leaf)[0]


def run(
    folder: Path, metrics, methods=("gradient",), net: nn.Module | None = None, shown: Tensor | None = None, **options
):
    shown = images() if shown is None else shown
    return saliometer.audit(
        net or backwards(), shown, methods=methods, metrics=metrics, **{"out": folder, "device": "cpu", **options}
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Every order, similarity and variant."""
    orders = [f"mprt(order={order},draws={DRAWS})" for order in ORDERS]
    more = ["mprt(order=bottom_up,draws=2,target=own,similarity=spearman)", "mprt(similarity=ssim_5x5,draws=1)"]
    more += ["smooth_mprt(samples=3,draws=1)", "efficient_mprt(draws=2)"]
    folder = tmp_path_factory.mktemp("mprt") / "run"
    return run(folder, [*orders, *more], ["gradient", "guided_backprop", "grad_cam", "smooth_grad(draws=2)"])


def curve(
    outcome, method: str, order: str = "top_down", similarity: str = "spearman_abs", metric: str = "mprt", **params
):
    wanted = {"order": order, "similarity": similarity, **params}
    found = [
        one
        for one in outcome.curves
        if (one.metric, one.method) == (metric, method)
        and all(one.params.get(key, one.order if key == "order" else None) == value for key, value in wanted.items())
    ]
    assert len(found) == 1, [one.definition for one in found]
    return found[0]


# Known answers


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("similarity", USUAL)
def test_what_never_looks_at_the_model_stays_the_same_at_every_stage(whole, order, similarity):
    for control in ("edge", "input", "centre"):
        found = curve(whole, control, order, similarity, target="fixed")
        assert found.values.shape == (COUNT, DRAWS, 1 if order == "full" else 3)
        assert found.values.ravel().tolist() == pytest.approx([1.0] * found.values.size, abs=1e-6)


def test_fresh_noise_has_nothing_in_common_with_itself(whole):
    for similarity in ("spearman_abs", "spearman"):
        values = curve(whole, "random", similarity=similarity).values
        assert abs(values.mean()) < 0.05
        assert abs(values).max() < 0.3
        assert len(set(values.ravel().tolist())) == values.size


def test_a_linear_models_gradient_is_its_weights_so_its_similarity_is_theirs(tmp_path):
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 3)).eval()
    found = curve(run(tmp_path / "run", ["mprt(draws=2)"], net=net), "gradient")
    targets = net(images()).argmax(1)
    part = layers_in_order(net, images())[0].parts[0]
    own = net[1].weight.detach()[targets].view(-1, 3, SIDE, SIDE)
    for draw in range(2):
        drawn = fresh(part, 0, draw)["weight"][targets].view(-1, 3, SIDE, SIDE)
        assert found.values[:, draw, 0].tolist() == pytest.approx(spearman(own, drawn).tolist(), abs=1e-9)


def test_every_stage_is_the_similarity_to_a_network_with_those_layers_drawn_anew(whole):
    net, shown = backwards(), images()
    targets = net(shown).argmax(1)
    own, layers = gradients(net, shown, targets), layers_in_order(net, shown)
    assert [layer.name for layer in layers] == ["first", "second", "head"]
    sets = {"top_down": [[2], [1, 2], [0, 1, 2]], "bottom_up": [[0], [0, 1], [0, 1, 2]], "independent": [[0], [1], [2]]}
    measures = {"spearman_abs": spearman, "ssim": ssim, "hog": hog_similarity}
    for order, several in sets.items():
        for stage, chosen in enumerate(several):
            copy = deepcopy(net)
            some = [layers_in_order(copy, shown)[place] for place in chosen]
            with randomised(copy, some, draw=1, references=shown):
                other = gradients(copy, shown, targets)
            for name, measure in measures.items():
                found = curve(whole, "gradient", order, name, target="fixed").values[:, 1, stage]
                assert found.tolist() == pytest.approx(measure(own, other).tolist(), abs=1e-4)


def test_a_layer_that_has_no_part_in_the_map_leaves_it_as_it_is(tmp_path):
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.shift = backwards(), nn.Linear(3, 3)

        def forward(self, shown: Tensor) -> Tensor:
            return self.net(shown) + self.shift(shown.detach().mean((2, 3)))

    metrics = ["mprt(order=independent,draws=1,similarity=spearman)"]
    found = curve(run(tmp_path / "run", metrics, net=Shifted().eval()), "gradient", "independent", "spearman")
    at = found.layers.index("shift")
    assert found.values[:, :, at].ravel().tolist() == pytest.approx([1.0] * COUNT)
    assert found.values[:, :, 1 - at].max() < 0.9


@pytest.mark.parametrize("method", ["gradient", "guided_backprop", "grad_cam"])
def test_both_cascades_end_where_all_is_drawn_anew_and_begin_with_one_layer_alone(whole, method):
    for similarity in USUAL:
        down, up, alone, full = (
            curve(whole, method, order, similarity, target="fixed").values.round(12) for order in ORDERS
        )
        assert (down[..., -1:] == full).all()
        assert (up[..., -1:] == full).all()
        assert (down[..., 0] == alone[..., 2]).all()
        assert (up[..., 0] == alone[..., 0]).all()


def test_the_class_explained_is_the_first_or_each_models_own(whole):
    net, shown = backwards(), images()
    own = gradients(net, shown, net(shown).argmax(1))
    values = curve(whole, "gradient", "bottom_up", "spearman", target="own").values
    with randomised(net, layers_in_order(net, shown), references=shown):
        predicted = net(shown).argmax(1)
        other = gradients(net, shown, predicted)
    assert values[:, 0, -1].tolist() == pytest.approx(spearman(own, other, absolute=False).tolist(), abs=1e-4)


def test_own_is_of_the_model_itself_too_where_an_audit_explains_another_class(tmp_path):
    metrics = [f"mprt(order=full,draws=1,similarity=spearman,target={word})" for word in ("own", "fixed")]
    labels = (backwards()(images()).argmax(1) + 1) % 3
    own, fixed = [], []
    for target in ("predicted", "label", "least"):
        found = run(tmp_path / target, metrics, labels=labels, target=target)
        own.append(curve(found, "gradient", "full", "spearman", target="own").values.flatten().tolist())
        fixed.append(curve(found, "gradient", "full", "spearman", target="fixed").values.flatten().tolist())
    assert own[1] == own[2] == pytest.approx(own[0], abs=1e-6)
    assert fixed[1] != pytest.approx(fixed[0], abs=1e-2)


def test_walks_see_the_weights_of_each_state(whole):
    """They run on a captured graph, which must not be that of other weights."""
    net, shown = backwards(), images()
    targets = net(shown).argmax(1)
    own = saliometer.explain(net, shown, "guided_backprop", targets, channels=True)
    copy = deepcopy(net)
    with randomised(copy, layers_in_order(copy, shown), references=shown):
        other = saliometer.explain(deepcopy(copy), shown, "guided_backprop", targets, channels=True)
    wanted = spearman(own, other).tolist()
    found = curve(whole, "guided_backprop", "full", target="fixed").values[:, 0, 0]
    assert found.tolist() == pytest.approx(wanted, abs=1e-4)


# Smooth and efficient


def test_one_clean_copy_is_the_plain_test(tmp_path):
    metrics = ["smooth_mprt(samples=1,draws=1,scaling=plain)", "mprt(order=bottom_up,draws=1)"]
    outcome = run(tmp_path / "run", metrics)
    for similarity in USUAL:
        smooth, plain = (
            curve(outcome, "gradient", "bottom_up", similarity, metric=name).values for name in ("smooth_mprt", "mprt")
        )
        assert smooth.ravel().tolist() == pytest.approx(plain.ravel().tolist(), abs=1e-6)


def test_smooth_maps_are_means_over_noisy_copies_made_by_the_users_own_method(tmp_path):
    seen = []

    def mine(model: nn.Module, shown: Tensor, targets: Tensor) -> Tensor:
        seen.append(shown.clone())
        return shown

    outcome = run(
        tmp_path / "run", ["smooth_mprt(samples=4,draws=1,noise=0.2,similarity=spearman)"], [mine, "gradient"]
    )
    assert curve(outcome, "mine", "bottom_up", "spearman", metric="smooth_mprt").means.tolist() == pytest.approx(
        [1] * 3
    )
    copies = torch.cat([one for one in seen if len(one) > COUNT]).unflatten(0, (-1, 4, COUNT))  # states, copies, images
    assert len(copies) == 4  # the model itself and three stages
    assert all(torch.equal(state, copies[0]) for state in copies)
    assert torch.equal(copies[0, -1], images())
    noise = copies[0, :-1] - images()
    spread = images().amax((1, 2, 3)) - images().amin((1, 2, 3))
    assert noise.std((0, 2, 3, 4)).tolist() == pytest.approx((0.2 * spread).tolist(), rel=0.1)


def test_smooth_maps_of_the_model_itself_are_made_with_its_own_weights(whole):
    assert curve(whole, "gradient", "bottom_up", metric="smooth_mprt").values[..., -1].max() < 0.9
    found = curve(whole, "edge", "bottom_up", metric="smooth_mprt").values
    assert found.ravel().tolist() == pytest.approx([1.0] * found.size)


def test_efficient_mprt_is_the_relative_rise_of_entropy(whole):
    still, found = (
        next(one for one in whole.curves if (one.metric, one.method) == ("efficient_mprt", method))
        for method in ("edge", "gradient")
    )
    assert still.values.ravel().tolist() == [0] * COUNT * DRAWS
    net, shown = backwards(), images()
    targets = net(shown).argmax(1)
    before = entropy(gradients(net, shown, targets).sum(1))
    for draw in range(DRAWS):
        with randomised(net, layers_in_order(net, shown), draw=draw, references=shown):
            after = entropy(gradients(net, shown, targets).sum(1))
        wanted = ((after - before) / before).tolist()
        assert found.values[:, draw, 0].tolist() == pytest.approx(wanted, abs=1e-3)


# The input multiplier


def test_divided_by_the_multiplier_input_x_gradient_is_the_gradient(tmp_path):
    shown = images()
    shown[:, :, :4] = 0  # pixels where the multiplier is 0
    kinds = [f"mprt(draws=1,similarity=spearman,multiplier={word})" for word in ("keep", "drop", "divide")]
    outcome = run(tmp_path / "run", kinds, ["gradient", "input_x_gradient"], shown=shown)
    keep, drop, divide = (
        curve(outcome, "input_x_gradient", similarity="spearman", multiplier=word).values.ravel()
        for word in ("keep", "drop", "divide")
    )
    net = backwards()
    targets, valid = net(shown).argmax(1), (shown != 0).any(1)
    own = gradients(net, shown, targets)
    with randomised(net, layers_in_order(net, shown)[2:], references=shown):
        other = gradients(net, shown, targets)

    def wanted(factor: Tensor, valid: Tensor | None) -> list[float]:
        return spearman(own * factor, other * factor, absolute=False, valid=valid).tolist()

    assert keep[::3].tolist() == pytest.approx(wanted(shown, None), abs=1e-4)
    assert drop[::3].tolist() == pytest.approx(wanted(shown, valid), abs=1e-4)
    assert divide[::3].tolist() == pytest.approx(wanted(torch.ones(()), valid), abs=1e-3)


def test_integrated_gradients_of_a_linear_model_are_its_weights_once_divided(tmp_path):
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 3)).eval()
    kinds = [f"mprt(draws=1,similarity=spearman,multiplier={word})" for word in ("keep", "divide")]
    outcome = run(tmp_path / "run", kinds, ["gradient", "integrated_gradients(steps=2,baseline=black)"], net)
    divided = curve(outcome, "integrated_gradients(baseline=black,steps=2)", similarity="spearman", multiplier="divide")
    plain = curve(outcome, "gradient", similarity="spearman", multiplier="keep")
    assert divided.values.ravel().tolist() == pytest.approx(plain.values.ravel().tolist(), abs=1e-3)


# Passes


class Counted(nn.Module):
    """Counts images, forwards and backwards."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net, self.seen = net, 0

    def forward(self, shown: Tensor) -> Tensor:
        self.seen += len(shown)
        return self.net(shown)


def samples_of(net: nn.Module, count: int = COUNT) -> Samples:
    shown = images(count)
    batch = replace(noise_batch(count, 3, SIDE), images=shown, targets=net(shown).argmax(1))
    nothing = torch.zeros(count, 0, SIDE, SIDE, dtype=torch.bool)
    ids = tuple(f"image-{place}" for place in range(count))
    return Samples(
        batch, ids, batch.targets, nothing, torch.zeros(count, 0, 4, dtype=torch.int64),
        torch.zeros(count, 0, dtype=torch.int8), ("",) * count,
    )  # fmt: skip


def randomisation_of(net: nn.Module, *metrics: str) -> tuple[Randomised, Answers]:
    measures = [Measure.parse(f"mprt(similarity={kind},{metric})") for metric in metrics for kind in USUAL]
    answers = Answers(model_of(net), CPU)
    return Randomised(measures, answers, images(1), images(), 0), answers


def test_every_state_is_explained_once_whatever_is_asked_and_estimated_once_for_all_methods():
    net = Counted(backwards())
    samples = samples_of(net)
    tests, answers = randomisation_of(net, "order=top_down", "order=bottom_up", "order=independent", "order=full")
    states = 5 * (1 + 3 + 3 - 1)  # draws x (all, three alone, two of each cascade but the middle one is its own)
    assert sum(len(group.states) for group in tests.groups) == states
    maps = gradients(net.net, samples.batch.images, samples.batch.targets)
    net.seen = 0
    rows = tests.rows(one_method("gradient"), maps, samples)
    assert len(rows) == 5 * len(USUAL) * (3 + 3 + 3 + 1)
    estimated = sum(
        any(place == 0 for place in state.chosen) for state in tests.groups[0].states
    )  # with the batch norm
    assert net.seen == COUNT * (states + estimated)
    assert answers.passes == net.seen
    net.seen = 0
    tests.rows(one_method("input_x_gradient"), maps, samples)
    assert net.seen == COUNT * states * 1


def test_own_predictions_are_found_once_for_all_methods():
    net = Counted(backwards())
    samples = samples_of(net)
    tests, _ = randomisation_of(net, "order=full,target=own,norms=reset,draws=2", "order=full,norms=reset,draws=2")
    maps = gradients(net.net, samples.batch.images, samples.batch.targets)
    counts = []
    for _ in range(2):
        net.seen = 0
        tests.rows(one_method("gradient"), maps, samples)
        counts.append(net.seen)
    assert counts == [2 * 3 * COUNT, 2 * 2 * COUNT]


def test_a_network_is_captured_once_and_walked_once_for_each_state(monkeypatch):
    captures, walks = [], []

    def counted(*given):
        captures.append(1)
        return capture(*given)

    monkeypatch.setattr("saliometer.graph.network.capture", counted)
    monkeypatch.setattr(Network, "run", lambda *given, run=Network.run, **more: walks.append(1) or run(*given, **more))
    net = backwards()
    samples = samples_of(net)
    tests, _ = randomisation_of(net, "order=top_down,draws=2")
    tests.rows(one_method("guided_backprop"), samples.batch.images, samples)
    assert (len(captures), len(walks)) == (1, 2 * 3)


# The model is as it was


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_the_model_is_as_it_was_after_an_error_in_a_method(error):
    net = backwards()
    samples, before = samples_of(net), state(net)
    flags = [module.training for module in net.modules()], [value.requires_grad for value in net.parameters()]
    tests, _ = randomisation_of(net, "draws=2")
    calls = []

    def breaks(model: nn.Module, shown: Tensor, targets: Tensor) -> Tensor:
        calls.append(changed(net, before))
        if len(calls) == 3:
            raise error
        return shown

    maps = samples.batch.images
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            tests.rows(one_method(("breaks", breaks)), maps, samples)
    else:
        tests.rows(one_method(("breaks", breaks)), maps, samples)
    assert {"head.weight"} <= calls[0]
    assert not changed(net, before)
    assert flags == ([m.training for m in net.modules()], [value.requires_grad for value in net.parameters()])
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in net.modules())


def test_the_users_network_is_never_touched(whole):
    net = backwards()
    before, versions = state(net), [value._version for value in net.parameters()]
    run(whole.run.folder.parent / "untouched", ["mprt(draws=1)"], net=net)
    assert not changed(net, before)
    assert versions == [value._version for value in net.parameters()]


def test_a_state_in_which_a_method_fails_has_no_value_and_says_why(tmp_path):
    calls = []

    def sometimes(model: nn.Module, shown: Tensor, targets: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) == 3:
            raise ValueError("not here")
        return shown

    outcome = run(tmp_path / "run", ["mprt(draws=1)"], [sometimes, "gradient"])
    found = curve(outcome, "sometimes")
    assert [math.isnan(value) for value in found.values[0, 0]] == [False, True, False]
    assert found.undefined == {"failed: ValueError: not here": COUNT}
    said = "mprt top_down of sometimes (spearman_abs, spearman, ssim, hog): 3 of 9 comparisons have no value: failed: "
    assert f"{said}ValueError: not here" in outcome.problems()
    assert outcome.failed == {}


def test_a_method_that_fails_in_every_state_is_a_failure(tmp_path):
    calls = []

    def once(model: nn.Module, shown: Tensor, targets: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) > 1:
            raise ValueError("no more")
        return shown

    outcome = run(tmp_path / "run", ["mprt(draws=1)"], [once, "gradient"])
    assert "no more" in outcome.failed["once, mprt"]
    assert curve(outcome, "gradient").values.shape == (COUNT, 1, 3)


# Repeatable, and goes on where it was


def test_the_same_numbers_for_any_batch_size_and_chunk(whole, tmp_path, monkeypatch):
    metrics = [f"mprt(order={order},draws={DRAWS})" for order in ("top_down", "bottom_up")]
    found = run(tmp_path / "one", metrics, ["gradient", "smooth_grad(draws=2)"], batch_size=1)
    for name in (asked_module, audit_module):
        monkeypatch.setattr(name, "UNIT", 2)
    split = run(tmp_path / "two", metrics, ["gradient", "smooth_grad(draws=2)"])
    for method in ("gradient", "smooth_grad(draws=2)", "random"):
        for order in ("top_down", "bottom_up"):
            wanted = curve(whole, method, order, target="fixed").values.ravel().tolist()
            for outcome in (found, split):
                assert curve(outcome, method, order).values.ravel().tolist() == pytest.approx(
                    wanted, abs=1e-4
                )  # near ties


def test_a_run_that_was_stopped_goes_on_to_the_same_rows(tmp_path):
    calls, stop = [], True

    def mine(model: nn.Module, shown: Tensor, targets: Tensor) -> Tensor:
        calls.append(1)
        if stop and len(calls) == 4:
            raise KeyboardInterrupt
        return shown * 2

    metrics = ["mprt(draws=2)", "smooth_mprt(draws=1,samples=2)"]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", metrics, ["gradient", mine])
    stop = False
    again = run(tmp_path / "run", metrics, ["gradient", mine])
    other = run(tmp_path / "other", metrics, ["gradient", mine])
    same(measured(again), measured(other), 1e-6)


def test_other_seeds_draw_other_weights(whole, tmp_path):
    other = run(tmp_path / "run", ["mprt(draws=2)"], seed=1)
    assert not (curve(other, "gradient").values == curve(whole, "gradient", target="fixed").values).any()


# Bad input


@pytest.mark.parametrize(
    ("metric", "error", "words"),
    [
        ("mprt(layers='heda')", LookupError, "no layer 'heda'. Did you mean 'head'"),
        ("mprt(order=topdown)", LookupError, "no order 'topdown'. Did you mean 'top_down'"),
        ("mprt(by=blocks)", LookupError, "no by 'blocks'. Did you mean 'block'"),
        ("mprt(norms=kept)", LookupError, "no norms 'kept'. Did you mean 'keep'"),
        ("mprt(similarity=sim)", LookupError, "no similarity 'sim'. Did you mean 'ssim'"),
        ("mprt(scaling=moment)", LookupError, "no scaling 'moment'"),
        ("mprt(target=mine)", LookupError, "no target 'mine'"),
        ("mprt(multiplier=no)", LookupError, "no multiplier 'no'"),
        ("mprt(draws=0)", ValueError, "mprt: draws=0, wanted 1 or more"),
        ("smooth_mprt(samples=0)", ValueError, "smooth_mprt: samples=0, wanted 1 or more"),
        ("smooth_mprt(noise=-1.0)", ValueError, "smooth_mprt: noise=-1.0, wanted 0 or more"),
        ("efficient_mprt(bins=0)", ValueError, "efficient_mprt: bins=0, wanted 1 or more"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_said_before_anything_is_made(tmp_path, metric, error, words):
    with pytest.raises(error) as caught:
        run(tmp_path / "run", [metric])
    assert words in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_model_without_weights_is_refused(tmp_path):
    class Mean(nn.Module):
        def forward(self, shown: Tensor) -> Tensor:
            return shown.mean((2, 3))

    with pytest.raises(ValueError, match="no parameters, so there is nothing to randomise"):
        run(tmp_path / "run", ["mprt"], net=Mean().eval())


def test_one_image_is_too_few_for_batch_norms_of_vectors(tmp_path):
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE**2, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)).eval()
    outcome = run(tmp_path / "run", ["mprt(draws=1)"], net=net, shown=images(1))
    assert "give 2 references or more" in outcome.failed["gradient, mprt"]
    other = run(tmp_path / "other", ["mprt(draws=1,norms=reset)"], net=net, shown=images(1))
    assert other.failed == {}


def test_maps_that_were_made_elsewhere_are_left_out(tmp_path):
    np.savez(tmp_path / "maps.npz", maps=images().mean(1).numpy())
    outcome = run(tmp_path / "run", ["mprt(draws=1)"], maps={"theirs": tmp_path / "maps.npz"})
    assert "only maps" in outcome.left_out["theirs, mprt"]


# Rows, tables, report


def test_rows_name_the_layer_order_draw_and_normalisation(whole):
    rows = [row for row in measured(whole) if row["metric"] == "mprt" and row["method"] == "gradient"]
    conditions = {row["condition"] for row in rows}
    assert "randomised(draw=1,layer=second,order=top_down,stage=2)" in conditions
    stages = {row["definition"].partition("(")[0] for row in rows}
    assert stages == {"abs_sum", "sum", "joint_minmax", "abs_sum_percentile"}
    assert all("norms=reestimate" in row["definition"] and "similarity=" in row["definition"] for row in rows)


def test_columns_leave_the_self_comparison_out(whole):
    column = next(
        c
        for c in whole.columns
        if c.metric == "mprt" and "order=top_down,scaling=plain,similarity=spearman_abs" in c.definition
    )
    place = column.methods.index("gradient")
    values = curve(whole, "gradient", target="fixed").values
    assert column.values[:, place].tolist() == pytest.approx(values.mean((1, 2)).tolist())
    full = next(c for c in whole.columns if c.metric == "mprt.full" and c.definition == column.definition)
    assert full.values[:, place].tolist() == pytest.approx(values[..., -1].mean(1).tolist())
    spread = next(c for c in whole.columns if c.metric == "mprt.spread" and c.definition == column.definition)
    assert spread.values[:, place].tolist() == pytest.approx(values.mean(2).std(1, ddof=1).tolist())
    assert column.ranks(["gradient", "edge"]) == {}  # nobody is ranked by it


def test_beside_cose_each_has_its_own_controls(tmp_path):
    outcome = run(tmp_path / "run", ["mprt(draws=1)", "cose(operations=flip_lr)"])
    tests, pairs = ({curve.method for curve in outcome.curves}, {one.method for one in outcome.coses})
    assert "input" in tests - pairs
    assert {"sobel_edge", "label_level"} <= pairs - tests
    assert {"gradient", "edge", "random"} <= tests & pairs
    assert outcome.failed == {}


def test_the_report_has_curves_and_says_how_to_read_them(whole):
    book = book_of(whole.run)
    drawing = next(one.drawing for one in book.figures if one.figure.name == "randomisation")
    assert len(drawing.charts) > 4
    first = drawing.charts[0]
    assert first.option["xAxis"]["data"] == ["none", "head", "second", "first"]
    edge = next(one for one in first.option["series"] if one["name"] == "edge")
    assert edge["data"] == [1.0] * 4
    assert any(row["method"] == "gradient" and row["layer"] == "second" for row in first.rows)
    html = page(book)
    assert "While layers are drawn anew" in html
    assert "Neither end of the randomisation tests is good" in html


def test_the_command_line_tells_the_same(tmp_path):
    (tmp_path / "net.py").write_text(
        "from torch import nn\n\n\ndef build():\n    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), "
        f"nn.Linear({4 * (SIDE - 2) ** 2}, 3))\n"
    )
    (tmp_path / "pictures").mkdir()
    for place, shown in enumerate(images(2)):
        pixels = (shown.permute(1, 2, 0) * 255).byte().numpy()
        Image.fromarray(pixels).save(tmp_path / "pictures" / f"{place}.png")
    line = ["audit", "--model", f"{tmp_path}/net.py:build", "--images", f"{tmp_path}/pictures", "--size", str(SIDE)]
    line += ["--mean", "0", "--std", "1", "--method", "gradient", "--metric", "mprt(draws=1)", "--device", "cpu"]
    line += ["--out", f"{tmp_path}/run"]
    shown = CliRunner().invoke(app, line, catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    assert "mprt top_down" in shown.output
    assert "spearman_abs" in shown.output
    told = CliRunner().invoke(app, [*line, "--json"], catch_exceptions=False)
    (one, *_) = json.loads(told.stdout)["mprt"]
    assert [stage["layer"] for stage in one["stages"]] == ["3", "0"]

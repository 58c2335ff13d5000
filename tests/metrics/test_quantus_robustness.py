"""Quantus 0.6.0 on complexity, completeness and sensitivity: where it is right we agree, where not we show it."""

import numpy as np
import pytest
import torch

import saliometer
from audit_toys import failing
from battery_toys import judged, photos, value
from linear_toys import linear, pictures, some, weights
from saliometer.metrics._draws import drawn
from saliometer.seeds import uniform
from toys import explain, model_of, noise_batch, small_cnn

quantus = pytest.importorskip("quantus")

QUIET = {"disable_warnings": True, "display_progressbar": False}
W = weights()
LINEAR = linear(W)


def theirs(judge, maps, samples, net=None, **given):
    """A Quantus metric's values on maps (N, C or 1, H, W) that were made before."""
    images, targets = (values.numpy() for values in (samples.batch.images, samples.batch.targets))
    return np.array(judge(net, images.copy(), targets, a_batch=maps.numpy(), **given), dtype=np.float64)


def scaled(maps):
    """Each map from 0 to 1, as ours are read."""
    low, high = maps.amin((2, 3), keepdim=True), maps.amax((2, 3), keepdim=True)
    return (maps - low) / (high - low)


@pytest.mark.parametrize(("name", "judge"), [("sparseness", quantus.Sparseness), ("complexity", quantus.Complexity)])
def test_parity_on_maps_that_are_scaled_one_by_one(name, judge):
    samples, maps = pictures(6), scaled(some(6, 1, 8, 8).abs())
    found = value(name, LINEAR, maps, samples)
    assert found.tolist() == pytest.approx(theirs(judge(**QUIET), maps.clone(), samples), rel=1e-5)


@pytest.mark.parametrize(("name", "judge"), [("sparseness", quantus.Sparseness), ("complexity", quantus.Complexity)])
def test_they_write_into_the_callers_map_and_we_do_not(name, judge):
    samples, maps = pictures(2), some(2, 1, 8, 8).abs()
    given = maps.clone()
    theirs(judge(abs=False, normalise=False, **QUIET), given, samples)
    assert not torch.equal(given, maps)
    given = maps.clone()
    value(name, LINEAR, given, samples)
    assert torch.equal(given, maps)


def test_they_scale_by_the_largest_value_of_the_batch_and_we_image_by_image():
    samples, maps = pictures(2), scaled(some(2, 1, 8, 8).abs())
    loud = maps.clone()
    loud[1] *= 1e9
    judge = quantus.Sparseness(**QUIET)
    alone = theirs(judge, maps.clone(), samples)[0]
    assert theirs(judge, loud.clone(), samples)[0] < 0.1 * alone
    assert value("sparseness", LINEAR, maps, samples)[0] == value("sparseness", LINEAR, loud, samples)[0]


def test_a_map_of_zeros_among_others_has_their_nan_and_our_reason():
    samples, maps = pictures(2), some(2, 1, 8, 8).abs()
    maps[1] = 0
    with np.errstate(invalid="ignore"):
        found = theirs(quantus.Complexity(**QUIET), maps.clone(), samples)
    assert np.isnan(found[1])
    values, notes, _ = judged("complexity", LINEAR, maps, samples)
    assert values["complexity"].isnan().tolist() == [False, True]
    assert "no shares" in notes[1]
    with pytest.raises(AssertionError):
        theirs(quantus.Sparseness(**QUIET), torch.zeros(2, 1, 8, 8), samples)
    assert value("sparseness", LINEAR, torch.zeros(2, 1, 8, 8), samples).tolist() == pytest.approx([0, 0], abs=1e-12)


def test_a_map_of_nan_is_the_simplest_to_them_and_invalid_to_us():
    samples, maps = pictures(2), some(2, 1, 8, 8).abs()
    maps[1] = torch.nan
    judge = quantus.EffectiveComplexity(normalise=False, **QUIET)
    assert theirs(judge, maps.clone(), samples).tolist() == [64, 0]
    for name in ("sparseness", "complexity"):
        assert value(name, LINEAR, maps, samples).isnan().tolist() == [False, True]


@pytest.mark.parametrize("normalise", [True, False])
def test_an_exact_attribution_is_incomplete_to_them_and_complete_to_us(normalise):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2, bias=False))
    net[1].weight.data.copy_(torch.stack((W.flatten(), -W.flatten())))
    model, samples = model_of(net), pictures(20)
    black = samples.batch.images.amin((1, 2, 3), keepdim=True)  # what they call so
    maps = (samples.batch.images - black) * W
    judge = quantus.Completeness(normalise=normalise, **QUIET)
    assert theirs(judge, maps.clone(), samples, net.eval(), channel_first=True).mean() < 0.5
    exact = explain(model, samples.batch, "integrated_gradients")
    values, _, _ = judged("completeness", model, exact, samples, method="integrated_gradients")
    assert (values["completeness"] < 1e-5).all()
    assert (values["completeness.passed"] == 1).all()


@pytest.mark.parametrize("name", ["max_sensitivity", "avg_sensitivity"])
def test_parity_of_sensitivity_on_the_same_noise(name):
    batch, net = noise_batch(), small_cnn()
    model, samples, draws = model_of(net), photos(batch.images, batch.targets), 5
    maps = explain(model, samples.batch, "gradient")
    noise = uniform(drawn(samples.batch.seeds, "sensitivity", range(draws)), "noise", 3, 8, 8)
    steps = iter(0.2 * (2 * noise - 1).view(draws, 5, -1))

    def shaken(arr, **_):
        return arr + next(steps).numpy()

    def again(model, inputs, targets, **_):
        return explain(model_of(net), type(batch)(torch.from_numpy(inputs), torch.from_numpy(targets), batch.seeds),
                       "gradient").numpy()  # fmt: skip

    judge = {"max_sensitivity": quantus.MaxSensitivity, "avg_sensitivity": quantus.AvgSensitivity}[name]
    made = judge(nr_samples=draws, perturb_func=shaken, **QUIET)
    wanted = theirs(made, maps.clone(), samples, net, channel_first=True, explain_func=again)
    assert value(f"{name}(draws={draws})", model, maps, samples).tolist() == pytest.approx(wanted, rel=1e-4)


def test_evaluate_explains_anew_by_a_gradient_where_maps_were_given_and_an_audit_leaves_that_out(tmp_path):
    """Fake-CAM's map cannot move, so its sensitivity is 0."""
    batch, net = noise_batch(), small_cnn()
    fake = torch.ones(len(batch), 1, 8, 8)
    fake[..., 0, 0] = 0
    judge = quantus.MaxSensitivity(nr_samples=3, **QUIET)
    given = {"x_batch": batch.images.numpy(), "y_batch": batch.targets.numpy()}
    found = quantus.evaluate({"MS": judge}, {"Gradient": fake.numpy()}, net, **given)
    assert min(found["Gradient"]["MS"]) > 0.5
    metrics = ["max_sensitivity(draws=3)", "sparseness"]
    ours = saliometer.audit(net, batch.images, metrics=metrics, methods=["fake_cam"], maps={"mine": fake}, out=tmp_path)
    assert ours.left_out == {"mine, max_sensitivity": "it calls the method again, and there are only maps"}
    (column,) = (column for column in ours.columns if column.metric == "max_sensitivity")
    assert column.estimate("fake_cam").value == 0


def test_evaluate_prints_what_went_wrong_and_leaves_a_hole_and_an_audit_keeps_and_tells_it(tmp_path, capsys):
    batch, net = noise_batch(), small_cnn()
    maps = explain(model_of(net), batch, "gradient")
    given = {"x_batch": batch.images.numpy(), "y_batch": batch.targets.numpy()}

    def broken(**_: object) -> None:
        raise RuntimeError("it broke")

    judges = {"one": broken, "other": quantus.Sparseness(**QUIET)}
    calls = {"first": {}, "second": {}}
    found = quantus.evaluate(judges, {"Gradient": maps.numpy()}, net, call_kwargs=calls, **given)
    assert "Failed to evaluate Gradient explanations on one" in capsys.readouterr().out
    assert found["Gradient"]["one"] == {}
    assert set(found["Gradient"]["other"]) == {"first", "second"}
    with failing("deletion"):
        ours = saliometer.audit(
            net, batch.images, metrics=["deletion(steps=4)", "sparseness"], methods=["gradient"], out=tmp_path
        )
    assert list(ours.failed) == [f"{name}, deletion" for name in ("gradient", *ours.controls)]
    assert {column.metric for column in ours.columns} == {"deletion", "sparseness"}

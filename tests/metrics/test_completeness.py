"""Completeness: exact on linear models, each method against its own baseline, and what must fail."""

import pytest
import torch

from battery_toys import judged, photos
from linear_toys import linear, pictures, weights
from saliometer.engine.shipped import load
from saliometer.tasks.textbox import textbox
from saliometer.types import Batch
from toys import explain, model_of, noise_batch, small_cnn

W = weights()
SCALE = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.25, 0.3)}


def complete(method, model, samples, text="completeness", maps=None):
    maps = explain(model, samples.batch, method) if maps is None else maps
    values, _, cost = judged(text, model, maps, samples, method=method)
    return {name.removeprefix("completeness").strip(".") or "error": found for name, found in values.items()}, cost


def normalised(samples):
    mean, std = (torch.tensor(SCALE[word]).view(1, 3, 1, 1) for word in ("mean", "std"))
    return photos((samples.batch.images - mean) / std)


@pytest.mark.parametrize(
    "method",
    [
        "integrated_gradients",
        "integrated_gradients(baseline=black)",
        "integrated_gradients(baseline=white)",
        "integrated_gradients(baseline=blur)",
        "integrated_gradients(baseline=uniform)",
        "guided_ig(steps=5)",
        "blur_ig(steps=20)",
        "input_x_gradient",
    ],
)
def test_exact_on_a_linear_model_whatever_the_methods_own_baseline(method):
    samples = normalised(pictures())
    found, cost = complete(method, linear(W, **SCALE), samples)
    assert (found["error"] < 1e-5).all()
    assert (found["passed"] == 1).all()
    assert cost.passes == 2 * len(samples)


def test_googles_blur_ig_counts_from_its_own_blur():
    """Its sigma is in pixels of any image, and its sum only comes near."""
    found, _ = complete("blur_ig(scheme=pair,sigma=3,steps=2000)", linear(W, **SCALE), normalised(pictures()))
    assert found["error"].median() < 1e-3


@pytest.mark.parametrize("method", ["deep_shap(count=7)", "expected_gradients(draws=100)"])
def test_methods_that_compare_with_references_count_from_their_mean_score(method):
    batch, net = noise_batch(), model_of(small_cnn())
    samples = photos(batch.images, batch.targets)
    object.__setattr__(samples, "batch", Batch(batch.images, batch.targets, samples.batch.seeds, batch.references))
    maps = explain(net, samples.batch, method)
    found, _ = complete(method, net, samples, maps=maps)
    count = 7 if "shap" in method else 100
    with torch.no_grad():
        score = net.logits(batch.images).gather(1, batch.targets[:, None])[:, 0]
        start = net.logits(batch.references[:count])[:, batch.targets].mean(0)
    residual = maps.double().sum((1, 2, 3)) - (score - start).double()
    torch.testing.assert_close(found["residual"], residual, rtol=0, atol=1e-5)
    if "shap" in method:
        assert (found["error"] < 1e-3).all()


def test_the_residual_keeps_its_sign_and_the_error_is_relative():
    samples, model = pictures(), linear(W)
    rise = (samples.batch.images * W).sum((1, 2, 3)).double()
    for share in (0.0, 0.995, 1.5):
        found, _ = complete("input_x_gradient", model, samples, maps=share * samples.batch.images * W)
        torch.testing.assert_close(found["residual"], (share - 1) * rise, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            found["error"], torch.full((4,), abs(share - 1), dtype=torch.float64), rtol=1e-3, atol=1e-5
        )
        assert (found["passed"] == (abs(share - 1) <= 1e-2)).all()


def test_constant_maps_sum_to_n_times_their_value_and_empty_ones_miss_everything():
    samples, model = pictures(), linear(W)
    rise = (samples.batch.images * W).sum((1, 2, 3)).double()
    found, _ = complete("fake_cam", model, samples, maps=torch.full((4, 1, 8, 8), 0.25))
    torch.testing.assert_close(found["residual"], 0.25 * 64 - rise, rtol=1e-5, atol=1e-5)
    found, _ = complete("fake_cam", model, samples, maps=torch.zeros(4, 1, 8, 8))
    assert (found["error"] == 1).all()


def test_gradients_and_scaled_maps_fail():
    batch = noise_batch()
    net, samples = model_of(small_cnn()), photos(batch.images, batch.targets)
    for method in ("gradient", "grad_cam"):
        found, _ = complete(method, net, samples)
        assert (found["passed"] == 0).all()
    attribution = explain(net, batch, "integrated_gradients").abs().amax(1, keepdim=True)
    found, _ = complete(
        "integrated_gradients", net, samples, maps=attribution / attribution.amax((1, 2, 3), keepdim=True)
    )
    assert (found["passed"] == 0).all()


def test_a_named_baseline_is_taken_instead_and_a_wrong_one_is_told():
    samples = normalised(pictures())
    model = linear(W, **SCALE)
    maps = explain(model, samples.batch, "integrated_gradients(baseline=black)")
    found, _ = complete("integrated_gradients", model, samples, "completeness(baseline=black)", maps)
    assert (found["passed"] == 1).all()
    found, _ = complete("integrated_gradients", model, samples, maps=maps)
    assert (found["error"] > 0.1).any()
    with pytest.raises(AssertionError, match="there is no baseline 'blak'"):
        complete("gradient", model, samples, "completeness(baseline=blak)", maps)


def test_no_difference_at_all_is_floored():
    samples = photos(torch.zeros(2, 3, 8, 8))
    found, _ = complete("integrated_gradients", linear(W), samples, maps=torch.full((2, 3, 8, 8), 1e-9))
    assert found["error"].tolist() == pytest.approx([192 * 1e-9 / 1e-6] * 2, rel=1e-3)


@pytest.mark.parametrize("setting", ["simple-fr", "simple-nr"])
def test_integrated_gradients_pass_on_the_textbox_models_and_the_gradient_does_not(setting):
    """Judged by the median: a small difference of logits makes the relative error of an image large."""
    model, samples = load(setting), textbox(setting, count=16)
    found, _ = complete("integrated_gradients(baseline=black)", model, samples)
    assert found["error"].median() < 1e-2
    assert found["passed"].mean() > 0.6
    found, _ = complete("gradient", model, samples)
    assert found["passed"].mean() < 0.1

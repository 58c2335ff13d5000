"""Infidelity: closed forms on a linear model, units, the three kinds of noise, Captum on the same draws."""

import pytest
import torch
from torch.nn import functional as F

from battery_toys import judged, photos
from linear_toys import linear, one, pictures, some, weights
from saliometer.engine.answer import Answers
from saliometer.engine.battery import Measure, Shelf, measured
from saliometer.metrics._baselines import baseline_of
from saliometer.metrics._noise import NOISES, squares
from saliometer.registry import Spec, methods
from saliometer.types import Subject
from toys import CPU, asked, explain, model_of, noise_batch, small_cnn

W = weights()
SCALE = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.25, 0.3)}
NOISE = ["gaussian", "square", "noisy_baseline"]


def infidelities(method, model, samples, maps=None, *, size=0, **params):
    """The metric and its parts: scaled, unscaled, relative."""
    maps = explain(model, samples.batch, method) if maps is None else maps
    text = str(Spec("infidelity", tuple(sorted(params.items()))))
    values, notes, _ = judged(text, model, maps, samples, method=method, size=size)
    return values["infidelity"], values["infidelity.unscaled"], values["infidelity.relative"], notes


def normalised(samples):
    mean, std = (torch.tensor(SCALE[word]).view(1, 3, 1, 1) for word in ("mean", "std"))
    return photos((samples.batch.images - mean) / std)


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("method", ["gradient", "input_x_gradient", "integrated_gradients(baseline=black)", "lrp_z"])
def test_what_is_exact_on_a_linear_model_has_none(noise, method):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2, bias=False))
    net[1].weight.data.copy_(torch.stack((W.flatten(), -W.flatten())))
    model = model_of(net, **SCALE)
    scaled, unscaled, relative, _ = infidelities(method, model, normalised(pictures()), noise=noise, draws=64)
    assert (scaled < 1e-6).all()
    assert (unscaled < 1e-6).all()
    assert (relative < 1e-7).all()


def test_any_map_against_the_gaussian_closed_forms():
    """0.04 |w - a|^2, and 0.04 |w|^2 (1 - cos^2) for the best factor."""
    samples = pictures(16)
    size = W.square().sum().double()
    maps = some(3, 8, 8, seed=1).expand(16, -1, -1, -1)
    angle = F.cosine_similarity(maps[0].flatten(), W.flatten(), 0).double()
    scaled, unscaled, _, _ = infidelities("gradient", linear(W), samples, maps, draws=1500)
    assert unscaled.mean().item() == pytest.approx(0.04 * (W - maps[0]).square().sum().item(), rel=0.05)
    assert scaled.mean().item() == pytest.approx((0.04 * size * (1 - angle**2)).item(), rel=0.05)


def test_three_times_the_gradient_and_nothing():
    samples = pictures(16)
    size = W.square().sum().item()
    scaled, unscaled, relative, _ = infidelities(
        "gradient", linear(W), samples, 3 * W.expand(16, -1, -1, -1), draws=1500
    )
    assert unscaled.mean().item() == pytest.approx(0.16 * size, rel=0.05)
    assert (scaled < 1e-6).all()
    scaled, unscaled, relative, _ = infidelities("gradient", linear(W), samples, torch.zeros(16, 3, 8, 8), draws=1500)
    assert scaled.mean().item() == pytest.approx(0.04 * size, rel=0.05)
    assert torch.equal(scaled, unscaled)
    assert (relative == 1).all()


def test_noise_counts_in_pixels_so_that_the_models_scale_drops_out():
    """The same function of pixels, once with its own normalisation."""
    samples, std = pictures(), torch.tensor(SCALE["std"]).view(3, 1, 1)
    maps = some(4, 3, 8, 8, seed=2)
    plain = infidelities("gradient", linear(W), samples, maps)
    scaled = infidelities("gradient", linear(W * std, **SCALE), normalised(samples), maps * std)
    for one_, other in zip(plain[:3], scaled[:3], strict=True):
        torch.testing.assert_close(one_, other, rtol=1e-3, atol=1e-6)


def test_an_unrelated_map_explains_as_much_as_chance_does():
    samples = pictures(200, (1, 6, 6))
    w = weights((1, 6, 6))
    maps = some(200, 1, 6, 6, seed=3)
    maps -= (maps * w).sum((1, 2, 3), keepdim=True) * w / w.square().sum()
    _, _, relative, _ = infidelities("gradient", linear(w), samples, maps)
    assert relative.mean().item() == pytest.approx(1 - 1 / 128, abs=2e-3)


def test_maps_without_a_unit_have_no_unscaled_value_and_are_spread_over_channels():
    samples, maps = pictures(), some(4, 1, 8, 8).abs()
    for method in ("grad_cam", "rise", "smooth_grad(squared=true)", "var_grad"):
        scaled, unscaled, relative, notes = infidelities(method, linear(W), samples, maps, draws=16)
        assert unscaled.isnan().all()
        assert scaled.isfinite().all()
        assert relative.isfinite().all()
        assert notes == [""] * 4
    spread = infidelities("grad_cam", linear(W), samples, (maps / 3).expand(-1, 3, -1, -1), draws=16)
    torch.testing.assert_close(scaled, spread[0])


def test_units_are_declared():
    wanted = {"gradient": "gradient", "smooth_grad": "gradient", "guided_backprop": "gradient", "deconvnet": "gradient"}
    contributions = {
        "input_x_gradient", "integrated_gradients", "ig_smooth_grad", "expected_gradients", "blur_ig", "guided_ig",
        "deep_taylor", "deeplift_rescale", "deeplift_reveal_cancel", "deep_shap", "lrp_alpha_beta", "lrp_epsilon",
        "lrp_epsilon_plus", "lrp_gamma", "lrp_preset_a_flat", "lrp_preset_b_flat", "lrp_z",
    }  # fmt: skip
    for name, entry in methods.items():
        assert entry.facts.unit == ("contribution" if name in contributions else wanted.get(name, "map")), name


def test_a_score_that_does_not_move_leaves_only_the_relative_form_undefined():
    model, samples = linear(torch.zeros_like(W)), pictures()
    scaled, unscaled, relative, _ = infidelities("gradient", model, samples, torch.zeros(4, 3, 8, 8), draws=8)
    assert (scaled == 0).all()
    assert (unscaled == 0).all()
    assert relative.isnan().all()


def changes(noise, model, samples, method="gradient", clip=False):
    spec = Spec.parse(method)
    subject = Subject(model, spec, methods[spec.name].facts.unit)
    return NOISES[noise](samples, model, baseline_of(samples, subject, otherwise="black"), clip).made


def test_gaussian_noise_is_cut_only_on_demand():
    model, samples = linear(W, **SCALE), normalised(pictures(edge=0.0))
    free, cut = (changes("gaussian", model, samples, clip=clip) for clip in (False, True))
    noise = free(range(200))[1] * torch.tensor(SCALE["std"]).view(3, 1, 1)
    assert noise.std().item() == pytest.approx(0.2, rel=0.02)
    assert noise.mean().item() == pytest.approx(0, abs=0.003)
    pixels = model.pixels(cut(range(50))[0].flatten(0, 1))
    assert pixels.min() >= -1e-6
    assert pixels.max() <= 1 + 1e-6
    low, high = model.bounds(samples.batch.images)
    assert torch.equal(cut(range(9))[0], free(range(9))[0].clamp(low, high))
    unscaled = infidelities("gradient", model, samples, clip=True, draws=16)[1]
    assert (unscaled < 1e-6).all()  # the change that was really made is the one that counts


def test_the_noisy_baseline_does_not_look_at_the_image():
    model, samples = linear(W, **SCALE), normalised(pictures())
    pixels = model.pixels(changes("noisy_baseline", model, samples)(range(200))[0].flatten(0, 1))
    assert pixels.min().abs() < 1e-6
    assert (pixels.abs() < 1e-6).float().mean().item() == pytest.approx(0.5, abs=0.01)
    assert pixels.mean().item() == pytest.approx(0.08, abs=0.002)


def test_squares_have_the_sides_of_a_grid_and_lie_anywhere_inside():
    samples = photos(torch.rand(40, 1, 56, 56))
    inside = squares(samples, range(50)).flatten(0, 2)
    sides = inside.any(2).sum(1)
    assert torch.equal(sides, inside.any(1).sum(1))
    assert torch.equal(inside.sum((1, 2)), sides**2)
    counts = torch.bincount(sides, minlength=21)
    assert counts[2::2].sum() == 2000  # k 56 / 28 for k of 1 to 10
    assert counts[2::2].min() > 150
    assert inside[sides == 2].any(0).float().mean() > 0.2
    assert inside.any(0).all()


def test_a_square_shows_black_or_the_methods_own_baseline():
    model, samples = linear(W, **SCALE), normalised(pictures())
    inside = squares(samples, range(3)).expand(-1, -1, 3, -1, -1)
    for method, pixel in (("gradient", 0.0), ("integrated_gradients(baseline=white)", 1.0), ("grad_cam", 0.0)):
        shown = changes("square", model, samples, method)(range(3))[0]
        pixels = model.pixels(shown.flatten(0, 1)).view_as(shown)
        torch.testing.assert_close(pixels[inside], torch.full_like(pixels[inside], pixel), rtol=0, atol=1e-6)
        assert torch.equal(shown[~inside], samples.batch.images.expand(3, -1, -1, -1, -1)[~inside])
    shown = changes("square", model, samples, "input_x_gradient")(range(3))[0]
    assert (shown[inside] == 0).all()  # contributions that name no baseline count from zero inputs


def test_what_the_model_is_shown_in_a_square_is_black():
    """For an empty map of a method without a baseline: the mean square of w . (x - black) over squares."""
    model, samples = linear(W, **SCALE), normalised(pictures())
    black = -torch.tensor(SCALE["mean"]).view(3, 1, 1) / torch.tensor(SCALE["std"]).view(3, 1, 1)
    falls = (squares(samples, range(16)) * W * (samples.batch.images - black)).sum((2, 3, 4)).double()
    found = infidelities("gradient", model, samples, torch.zeros(4, 3, 8, 8), noise="square", draws=16)[0]
    torch.testing.assert_close(found, falls.square().mean(0), rtol=1e-3, atol=1e-5)


def test_a_map_of_one_channel_is_shared_out_evenly():
    samples, maps = pictures(), some(4, 1, 8, 8)
    one_, three = (infidelities("gradient", linear(W), samples, m) for m in (maps, (maps / 3).expand(-1, 3, -1, -1)))
    torch.testing.assert_close(one_[1], three[1])


@pytest.mark.parametrize("noise", NOISE)
def test_the_same_draws_alone_in_any_batch_and_for_every_method(noise):
    batch, model = noise_batch(), model_of(small_cnn())
    samples = photos(batch.images, batch.targets)
    maps = explain(model, samples.batch, "gradient")
    together = infidelities("gradient", model, samples, maps, noise=noise, draws=8)[0]
    for size in (1, 7):
        again = infidelities("gradient", model, samples, maps, noise=noise, draws=8, size=size)[0]
        torch.testing.assert_close(together, again, rtol=1e-4, atol=1e-7)
    alone = [
        infidelities("gradient", model, one(samples, i), maps[i : i + 1], noise=noise, draws=8)[0] for i in range(5)
    ]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-4, atol=1e-7)
    few, many = (changes(noise, model, samples, method)(range(5))[0] for method in ("gradient", "grad_cam"))
    assert torch.equal(few, many)
    assert torch.equal(few[3:4], changes(noise, model, samples)(range(3, 4))[0])


@pytest.mark.parametrize("noise", ["gaussian", "noisy_baseline"])
def test_captum_on_the_same_draws(noise):
    metrics = pytest.importorskip("captum.metrics")
    batch, model = noise_batch(), model_of(small_cnn())
    samples, draws = photos(batch.images, batch.targets), 32
    maps = explain(model, samples.batch, "gradient")
    shown = changes(noise, model, samples)(range(draws))[0].transpose(0, 1)  # Captum repeats each image
    scaled, unscaled, _, _ = infidelities("gradient", model, samples, maps, noise=noise, draws=draws)

    def perturb(inputs):
        return inputs - shown.flatten(0, 1), shown.flatten(0, 1)

    for normalize, ours in ((False, unscaled), (True, scaled)):
        theirs = metrics.infidelity(
            model.logits,
            perturb,
            batch.images,
            maps,
            target=batch.targets,
            n_perturb_samples=draws,
            normalize=normalize,
        )
        torch.testing.assert_close(ours.float(), theirs.flatten(), rtol=1e-3, atol=1e-6)


def test_captum_on_the_same_squares():
    """Contributions inside a square are what Captum gets when they are divided by the difference to the baseline."""
    metrics = pytest.importorskip("captum.metrics")
    batch, model = noise_batch(), model_of(small_cnn())
    samples, draws = photos(batch.images, batch.targets), 32
    maps = explain(model, samples.batch, "integrated_gradients")
    shown = changes("square", model, samples, "integrated_gradients")(range(draws))[0].transpose(0, 1)
    ours = infidelities("integrated_gradients", model, samples, maps, noise="square", draws=draws)[1]
    theirs = metrics.infidelity(
        model.logits, lambda inputs: (inputs - shown.flatten(0, 1), shown.flatten(0, 1)), batch.images,
        maps / batch.images, target=batch.targets, n_perturb_samples=draws,
    )  # fmt: skip
    torch.testing.assert_close(ours.float(), theirs.flatten(), rtol=1e-3, atol=1e-6)


def test_changes_are_asked_about_once_for_all_methods():
    batch, model = noise_batch(), model_of(small_cnn())
    samples = photos(batch.images, batch.targets)
    shelf, measure = Shelf(Answers(model, CPU)), Measure.parse("infidelity(draws=8)")
    for method, passes in (("gradient", 9 * 5), ("input_x_gradient", 0)):
        maps = explain(model, samples.batch, method)
        ((_, (found, *_), cost),) = measured([measure], asked(method), maps, samples, shelf)
        assert cost.passes == passes
        torch.testing.assert_close(found.values, infidelities(method, model, samples, maps, draws=8)[0])


def test_probabilities_on_demand():
    batch, model = noise_batch(), model_of(small_cnn())
    samples = photos(batch.images, batch.targets)
    maps = torch.zeros(5, 3, 8, 8)
    shown = changes("gaussian", model, samples)(range(8))[0]
    places = torch.arange(5), batch.targets
    with torch.no_grad():
        before = model.logits(batch.images).softmax(1)[places]
        after = torch.stack([model.logits(images).softmax(1)[places] for images in shown])
    wanted = (before - after).double().square().mean(0)
    found = infidelities("gradient", model, samples, maps, output="probability", draws=8)[0]
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-9)


def test_bad_parameters_are_told():
    for params, words in (({"noise": "laplace"}, "no noise 'laplace'"), ({"draws": 0}, "wanted 1 or more")):
        with pytest.raises(AssertionError, match=words):
            infidelities("gradient", linear(W), pictures(), torch.zeros(4, 3, 8, 8), **params)

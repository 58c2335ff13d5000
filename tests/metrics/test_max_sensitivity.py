"""Max- and avg-sensitivity: exact zeros, closed forms, draws that depend on the image alone, shared explanations."""

import pytest
import torch

from battery_toys import all_costs, judged, photos, value
from linear_toys import linear, one, pictures, some, weights
from saliometer.correlation import mean_ranks
from saliometer.metrics._distances import DISTANCES, distance
from saliometer.metrics._draws import drawn
from saliometer.seeds import uniform
from toys import explain, model_of, noise_batch, small_cnn

W = weights()
BOTH = ("max_sensitivity", "avg_sensitivity")


def sensitivity(text, method, model, samples, **given):
    return value(text, model, explain(model, samples.batch, method), samples, method=method, **given)


def toy():
    batch = noise_batch()
    return model_of(small_cnn()), photos(batch.images, batch.targets)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("distance", ["relative", "absolute", "cosine", "spearman"])
def test_fake_cam_never_changes(name, distance):
    model, samples = toy()
    assert (sensitivity(f"{name}(draws=3,distance={distance})", "fake_cam", model, samples) == 0).all()


@pytest.mark.parametrize("name", BOTH)
def test_the_gradient_of_a_linear_model_never_changes(name):
    assert (sensitivity(f"{name}(draws=5)", "gradient", linear(W), pictures()) == 0).all()


def test_noise_maps_move_by_the_square_root_of_a_half():
    model, samples = linear(weights((3, 64, 64))), pictures(3, (3, 64, 64))
    for name in BOTH:
        found = sensitivity(f"{name}(draws=10)", "random", model, samples)
        assert found.tolist() == pytest.approx([0.5**0.5] * 3, abs=0.03)


@pytest.mark.parametrize("space", ["normalised", "pixel"])
def test_input_x_gradient_of_a_linear_model_moves_as_its_input_does(space):
    model = linear(W, mean=(0.5,) * 3, std=(0.5, 0.25, 0.2))
    samples = pictures()
    images, seeds = samples.batch.images, samples.batch.seeds
    noise = uniform(drawn(seeds, "sensitivity", range(6)), "noise", 3, 8, 8).view(6, 4, 3, 8, 8) * 2 - 1
    reach = 0.1 / (torch.tensor(model.std).view(3, 1, 1) if space == "pixel" else 1)
    assert noise.abs().max() <= 1
    assert noise.mean().abs() < 0.03
    wanted = (W * reach * noise).flatten(2).norm(dim=2) / (W * images).flatten(1).norm(dim=1)
    for name, found in zip(BOTH, (wanted.amax(0), wanted.mean(0)), strict=True):
        text = f"{name}(draws=6,radius=0.1,space={space})"
        torch.testing.assert_close(
            sensitivity(text, "input_x_gradient", model, samples).float(), found, rtol=1e-4, atol=0
        )


def test_the_scale_of_maps_drops_out_and_the_average_is_below_the_largest():
    model, samples = toy()
    maps = explain(model, samples.batch, "gradient")
    largest, mean = (value(f"{n}(draws=8)", model, maps, samples) for n in BOTH)
    assert (mean < largest).all()
    assert (mean > 0).all()


def test_both_share_one_set_of_explanations():
    model, samples = toy()
    maps = explain(model, samples.batch, "gradient")
    first, second = all_costs([f"{name}(draws=7)" for name in BOTH], model, maps, samples)
    assert first.passes == 7 * len(samples)
    assert second.passes == 0
    assert second.shared == first.passes
    other = all_costs(["max_sensitivity(draws=7)", "avg_sensitivity(draws=7,radius=0.1)"], model, maps, samples)[1]
    assert other.passes == first.passes


@pytest.mark.parametrize("size", [1, 4, 64])
def test_values_are_the_same_alone_and_in_any_batch(size):
    model, samples = toy()
    text = "max_sensitivity(draws=4)"
    together = sensitivity(text, "gradient", model, samples)
    again = sensitivity(text, "gradient", model, samples, size=size)
    torch.testing.assert_close(together, again, rtol=1e-5, atol=0)
    alone = torch.cat([sensitivity(text, "gradient", model, one(samples, i), size=size) for i in range(len(samples))])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=0)


def test_a_map_of_zeros_is_invalid_unless_nothing_is_relative_to_it():
    model, samples = toy()
    values, notes, _ = judged("max_sensitivity(draws=2)", model, torch.zeros(5, 3, 8, 8), samples)
    assert values["max_sensitivity"].isnan().all()
    assert "map of zeros" in notes[0]
    found = value("max_sensitivity(draws=2,distance=absolute)", model, torch.zeros(5, 3, 8, 8), samples)
    assert (found > 0).all()


def test_the_target_stays_when_the_prediction_changes():
    """f of class 0 is w . x, of class 1 its opposite: a map that followed the prediction would turn over."""
    samples = photos(torch.full((1, 3, 8, 8), 1e-3))
    found = sensitivity("max_sensitivity(draws=20,radius=1.0)", "gradient", linear(W), samples)
    assert found.item() == 0


def test_distances_by_hand():
    maps, others = torch.tensor([3.0, 4, 0]).view(1, 1, 1, 3), torch.tensor([3.0, 4, 5]).view(1, 1, 1, 3)
    assert distance("relative", maps, others).item() == pytest.approx(1)
    assert distance("absolute", maps, others).item() == pytest.approx(5)
    assert distance("cosine", maps, others).item() == pytest.approx(1 - 25 / 5 / 50**0.5)
    assert distance("spearman", maps, others).item() == pytest.approx(1 + 0.5)
    assert distance("spearman", maps, -maps).item() == pytest.approx(2)


@pytest.mark.parametrize("name", DISTANCES)
def test_several_others_are_compared_as_one_at_a_time(name):
    maps, others = some(2, 3, 4, 4), torch.stack([some(2, 3, 4, 4) + 1, some(2, 3, 4, 4) ** 2, some(2, 3, 4, 4)])
    torch.testing.assert_close(distance(name, maps, others), torch.stack([distance(name, maps, o) for o in others]))


def test_equal_values_share_their_rank():
    scipy = pytest.importorskip("scipy.stats")
    values = torch.randint(0, 5, (3, 20), generator=torch.Generator().manual_seed(0)).float()
    torch.testing.assert_close(mean_ranks(values), torch.from_numpy(scipy.rankdata(values.numpy(), axis=1)) - 1)
    other = some(3, 20)
    wanted = [1 - scipy.spearmanr(a.numpy(), b.numpy()).statistic for a, b in zip(values, other, strict=True)]
    assert distance("spearman", values[:, None, None], other[:, None, None]).tolist() == pytest.approx(wanted)


def test_bad_parameters_are_told():
    model, samples = toy()
    for text, words in (
        ("draws=0", "draws of 1 or more"),
        ("space=raw", "no space 'raw'"),
        ("distance=l1", "distance"),
    ):
        with pytest.raises(AssertionError, match=words):
            value(f"max_sensitivity({text})", model, torch.ones(5, 3, 8, 8), samples)

"""Beside Quantus 0.6.0: the same where it is right, and where it is not, what it says and what is right."""

import warnings

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from battery_toys import Odds, photos, value
from toys import model_of

quantus = pytest.importorskip("quantus")

GENERATOR = torch.Generator().manual_seed(0)
IMAGES = torch.rand(4, 1, 8, 8, generator=GENERATOR) * 0.8 + 0.1
MAPS = torch.rand(4, 8, 8, generator=GENERATOR)
QUIET = {"disable_warnings": True, "display_progressbar": False}


class Intact(nn.Module):
    """Log-odds that fall with what differs from one image, by weight, whatever it is changed to."""

    def __init__(self, image: Tensor, weights: Tensor, offset: float = 0.0) -> None:
        super().__init__()
        self.image, self.weights, self.offset = image, weights, offset

    def forward(self, images: Tensor) -> Tensor:
        intact = (images == self.image).all(1).float()
        odds = self.offset + (intact * self.weights).sum((1, 2)) / 20
        return torch.stack((odds, torch.zeros_like(odds)), 1)


def theirs(metric: object, net: nn.Module, images: Tensor, maps: Tensor) -> list:
    """What Quantus gives for class 0."""
    targets = np.zeros(len(images), dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return metric(
            model=net.eval(), x_batch=images.numpy(), y_batch=targets, a_batch=maps[:, None].numpy().copy(),
            channel_first=True, device="cpu",
        )  # fmt: skip


@pytest.mark.parametrize("step", [1, 4, 16])
def test_pixel_flipping_is_our_deletion_less_its_start(step):
    net = Odds(lambda x: (x.mean((1, 2, 3)) * 4 - 1).sigmoid())
    flipping = quantus.PixelFlipping(features_in_step=step, perturb_baseline=0.0, **QUIET)
    curves = torch.tensor(theirs(flipping, net, IMAGES, MAPS)).double()
    steps = 64 // step
    assert curves.shape == (4, steps)
    start = net.probability(IMAGES).double()
    wanted = (start / 2 + curves[:, :-1].sum(1) + curves[:, -1] / 2) / steps
    ours = value(f"deletion(steps={steps})", net, MAPS, photos(IMAGES))
    assert ours.tolist() == pytest.approx(wanted.tolist(), abs=1e-6)


class Kept(nn.Module):
    """Two classes, and the images that it was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, images: Tensor) -> Tensor:
        self.seen.append(images.clone())
        odds = images.mean((1, 2, 3))
        return torch.stack((odds, -odds), 1)


def test_black_is_the_lowest_value_of_the_image_to_them_and_black_to_us():
    """A picture without a dark pixel, as the network takes it: one value for all channels, and none of them black."""
    mean, std = torch.tensor([0.4, 0.5, 0.6]), torch.tensor([0.2, 0.25, 0.3])
    pixels = 0.5 + 0.4 * torch.rand(1, 3, 8, 8, generator=GENERATOR)
    images = (pixels - mean.view(3, 1, 1)) / std.view(3, 1, 1)
    spies = Kept(), Kept()
    theirs(quantus.PixelFlipping(features_in_step=64, perturb_baseline="black", **QUIET), spies[0], images, MAPS[:1])
    model = model_of(spies[1], mean=tuple(mean.tolist()), std=tuple(std.tolist()))
    value("deletion(steps=2,space=raw)", model, MAPS[:1], photos(images))
    black = (-mean / std).view(1, 3, 1, 1).expand_as(images)
    last = spies[0].seen[-1]
    torch.testing.assert_close(last, torch.full_like(last, images.min().item()))
    assert (last - black).abs().min() > 0.5
    assert any(torch.allclose(one, black) for seen in spies[1].seen for one in seen.split(1))


def test_a_set_of_pixels_gets_one_random_number_there_and_one_each_here():
    spies = Kept(), Kept()
    metric = quantus.MonotonicityCorrelation(nr_samples=1, features_in_step=16, **QUIET)
    theirs(metric, spies[0], IMAGES[:1], MAPS[:1])
    value("monotonicity(sets=4,fills=1)", spies[1], MAPS[:1], photos(IMAGES[:1]))
    for spy, wanted in zip(spies, (1, 16), strict=True):
        changed = [one[one != IMAGES[:1]] for seen in spy.seen for one in seen.split(1)]
        assert [len(some.unique()) for some in changed if len(some) == 16] == [wanted] * 4


def test_pixel_flipping_takes_the_channels_of_a_pixel_apart():
    """A map of one channel is copied to three and all copies are sorted: after one step a pixel is a third gone."""
    image = torch.rand(1, 3, 4, 4, generator=GENERATOR) + 0.1
    net = Odds(lambda x: (x == image).all(1).float().mean((1, 2)) * 0.5 + 0.25)
    flipping = quantus.PixelFlipping(features_in_step=1, perturb_baseline=0.0, **QUIET)
    assert len(theirs(flipping, net, image, MAPS[:1, :4, :4])[0]) == 48
    assert value("deletion(steps=16)", net, MAPS[:1, :4, :4], photos(image)).item() == pytest.approx(0.5)


@pytest.mark.parametrize("sets", [8, 16, 64])
def test_monotonicity_correlation_agrees_where_the_fill_does_not_matter(sets):
    metric = quantus.MonotonicityCorrelation(
        nr_samples=1, features_in_step=64 // sets, perturb_baseline=0.0, similarity_func=quantus.correlation_spearman,
        **QUIET,
    )  # fmt: skip
    found, ours = [], []
    for place, (image, maps) in enumerate(zip(IMAGES.split(1), MAPS.split(1), strict=True)):
        weights = torch.rand(8, 8, generator=torch.Generator().manual_seed(place)) + maps[0]
        net = Intact(image, weights)
        found += theirs(metric, net, image, maps)
        ours += value(f"monotonicity(sets={sets},fills=2)", net, maps, photos(image)).tolist()
    assert ours == pytest.approx(found, abs=1e-6)
    assert max(map(abs, ours)) > 0.2


def test_monotonicity_correlation_crashes_on_tiny_probabilities_and_ours_does_not():
    metric = quantus.MonotonicityCorrelation(nr_samples=1, features_in_step=8, **QUIET)
    weights = MAPS[0]

    class Mixed(nn.Module):
        """The first image's class is all but impossible."""

        def forward(self, images: Tensor) -> Tensor:
            odds = (images[:, 0] * weights).sum((1, 2)) - 40 * (images[:, 0, 0, 0] == IMAGES[0, 0, 0, 0])
            return torch.stack((odds, torch.zeros_like(odds)), 1)

    with pytest.raises(ValueError, match=r"shape mismatch|cannot assign"):
        theirs(metric, Mixed(), IMAGES, MAPS)
    assert value("monotonicity(sets=8,fills=2)", Mixed(), MAPS, photos(IMAGES)).isfinite().all()


def test_monotonicity_correlation_crashes_on_one_constant_map_and_ours_says_it_is_invalid():
    metric = quantus.MonotonicityCorrelation(nr_samples=1, features_in_step=8, **QUIET)
    net = Odds(lambda x: (x.mean((1, 2, 3)) * 4 - 1).sigmoid())
    maps = MAPS.clone()
    maps[1] = 0.5
    with pytest.raises(AttributeError, match="'float' object has no attribute 'shape'"):
        theirs(metric, net, IMAGES, maps)
    ours = value("monotonicity(sets=8,fills=2)", net, maps, photos(IMAGES))
    assert ours.isnan().tolist() == [False, True, False, False]


def test_monotonicity_is_true_for_a_map_and_for_its_opposite_and_ours_is_not():
    """Claim 21. The class has evidence for it in one half and against it in the other."""
    net = Odds(lambda x: 0.5 + (x[:, :, 4:].mean((1, 2, 3)) - x[:, :, :4].mean((1, 2, 3))) / 4)
    order = torch.arange(64.0).view(1, 8, 8).expand(4, 8, 8) / 63
    settings = {"features_in_step": 4, "abs": False, "normalise": False, "perturb_baseline": 0.0, **QUIET}
    for maps in (order, -order, 1 - order, MAPS):
        assert theirs(quantus.Monotonicity(**settings), net, IMAGES, maps) == [True] * 4
    helps = Odds(lambda x: (x[:, :, 4:].mean((1, 2, 3)) - x[:, :, :4].mean((1, 2, 3))).relu() + 0.2)
    ours = [
        value("monotonicity(definition=arya,sets=16)", helps, maps, photos(IMAGES), normalisation="signed_max_minmax")
        for maps in (order, -order)
    ]
    assert ours[0].tolist() == [1.0] * 4  # what speaks against it comes first, and cannot lower what is not there yet
    assert ours[1].tolist() == [0.0] * 4
    assert theirs(quantus.Monotonicity(**settings), helps, IMAGES, -order) == [True] * 4


def test_effective_complexity_agrees_on_one_map():
    metric = quantus.EffectiveComplexity(**QUIET)
    net = Odds(lambda x: x.mean((1, 2, 3)))
    maps = (MAPS - 0.4).relu()
    for image, one in zip(IMAGES.split(1), maps.split(1), strict=True):
        found = theirs(metric, net, image, one)
        assert value("effective_complexity", net, one, photos(image)).tolist() == [float(count) for count in found]


def test_effective_complexity_depends_on_a_large_neighbour_there_and_not_here():
    net = Odds(lambda x: x.mean((1, 2, 3)))
    maps = torch.stack((MAPS[0] + 0.1, MAPS[1] * 1e6))
    metric = quantus.EffectiveComplexity(**QUIET)
    assert theirs(metric, net, IMAGES[:1], maps[:1])[0] == 64
    assert theirs(metric, net, IMAGES[:2], maps)[0] == 0
    ours = value("effective_complexity", net, maps, photos(IMAGES[:2]))
    assert ours.tolist() == [63, 63]  # scaled, so that the lowest pixel is 0


def test_a_broken_map_has_the_best_effective_complexity_there_and_none_here():
    net = Odds(lambda x: x.mean((1, 2, 3)))
    maps = MAPS[:2].clone()
    maps[0] = torch.nan
    metric = quantus.EffectiveComplexity(normalise=False, **QUIET)
    assert theirs(metric, net, IMAGES[:2], maps)[0] == 0
    assert value("effective_complexity", net, maps, photos(IMAGES[:2])).isnan().tolist() == [True, False]

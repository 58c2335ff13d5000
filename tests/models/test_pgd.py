"""PGD: answers worked out by hand on a linear model, bounds that hold, and the library's images to the last digit."""

import pytest
import torch
from torch import nn

from saliometer.engine.robust import library_pgd, library_version
from saliometer.models._pgd import Attack, pgd
from saliometer.seeds import forks, scoped

IMAGES = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(6) % 2
SEEDS = forks(3, torch.arange(6))


def linear(weight: torch.Tensor) -> nn.Module:
    """Class 1 minus class 0 is the sum of pixels times weight."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(weight.numel(), 2, bias=False))
    with torch.no_grad():
        net[1].weight[0] = -weight.flatten() / 2
        net[1].weight[1] = weight.flatten() / 2
    return net


def small() -> nn.Module:
    with scoped("pgd"):
        return nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 2)
        )


def test_a_linear_model_is_attacked_against_its_weights_as_far_as_allowed():
    """Label 0 is wrong where the sum grows: every pixel moves by eps along its weight's sign, within [0, 1]."""
    weight = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(1))
    signs = torch.where(LABELS == 0, 1.0, -1.0).view(-1, 1, 1, 1) * weight.sign()
    found = pgd(linear(weight), IMAGES, LABELS, Attack(eps=0.3, step=0.1, iterations=10))
    torch.testing.assert_close(found, (IMAGES + 0.3 * signs).clamp(0, 1))
    one = pgd(linear(weight), IMAGES, LABELS, Attack(eps=0.3, step=0.1, iterations=1))
    torch.testing.assert_close(one, (IMAGES + 0.1 * signs).clamp(0, 1))


def test_from_any_start_a_linear_model_is_attacked_to_the_same_place():
    weight = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(1))
    attack = Attack()
    found = (pgd(linear(weight), IMAGES, LABELS, attack, seeds) for seeds in (None, SEEDS))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("seeds", [None, SEEDS])
def test_images_stay_pixels_within_eps(seeds):
    found = pgd(small(), IMAGES, LABELS, Attack(), seeds)
    assert found.min() >= 0
    assert found.max() <= 1
    assert (found - IMAGES).abs().max() <= 0.3 + 1e-6
    assert not found.requires_grad


def test_the_start_follows_each_images_seed_and_nothing_else():
    still = Attack(iterations=0)
    together = pgd(small(), IMAGES, LABELS, still, SEEDS)
    torch.rand(3)
    assert torch.equal(together[4:5], pgd(small(), IMAGES[4:5], LABELS[4:5], still, SEEDS[4:5]))
    assert not torch.equal(together, pgd(small(), IMAGES, LABELS, still, SEEDS + 1))
    assert (together - IMAGES).abs().max() > 0.25


def test_the_start_lies_anywhere_in_the_box():
    """Uniform from -eps to eps: both ends are come near to, and the mean is 0."""
    grey = torch.full((6, 3, 8, 8), 0.5)
    moved = pgd(small(), grey, LABELS, Attack(iterations=0), SEEDS) - grey
    assert moved.min() < -0.29
    assert moved.max() > 0.29
    assert moved.mean().abs() < 0.02  # its standard deviation is 0.005


def test_the_network_comes_back_as_it_was():
    net = small().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    pgd(net, IMAGES, LABELS, Attack(), SEEDS)
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())  # batch norm's too
    assert all(value.grad is None for value in net.parameters())


def test_it_raises_the_loss():
    net = small().eval()
    loss = [nn.functional.cross_entropy(net(x), LABELS) for x in (IMAGES, pgd(net, IMAGES, LABELS, Attack(), SEEDS))]
    assert loss[1] > loss[0] + 0.1


def test_without_a_random_start_the_librarys_images_are_ours():
    """Golden: ProjectedGradientDescentPyTorch of the Adversarial Robustness Toolbox 1.20."""
    if not library_version():
        pytest.skip("adversarial-robustness-toolbox is not installed: pip install 'saliometer[robust]'")
    net, attack = small().eval(), Attack()
    theirs = library_pgd(net, IMAGES, LABELS, attack, random_starts=0)
    torch.testing.assert_close(theirs, pgd(net, IMAGES, LABELS, attack), rtol=0, atol=1e-5)

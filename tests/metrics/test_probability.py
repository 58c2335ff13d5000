"""Probability: the target's own, whatever the map."""

import pytest
import torch

from battery_toys import Odds, all_costs, judged, photos
from toys import model_of, small_cnn

SHARES = torch.tensor([0.1, 0.25, 0.5, 0.9])
IMAGES = SHARES[:, None, None, None].expand(4, 3, 8, 8).contiguous()
MODEL = model_of(Odds(lambda images: images.mean((1, 2, 3)).clamp(1e-6, 1 - 1e-6)))


def probability(maps: torch.Tensor, targets: torch.Tensor | int = 0) -> torch.Tensor:
    return judged("probability", MODEL, maps, photos(IMAGES, targets))[0]["probability"]


def test_it_is_the_models_for_the_target():
    assert probability(torch.rand(4, 3, 8, 8)).tolist() == pytest.approx(SHARES.tolist(), abs=1e-6)
    targets = torch.tensor([0, 1, 0, 1])
    assert probability(torch.rand(4, 3, 8, 8), targets).tolist() == pytest.approx([0.1, 0.75, 0.5, 0.1], abs=1e-6)


@pytest.mark.parametrize("maps", [torch.ones(4, 1, 8, 8), torch.zeros(4, 1, 8, 8), torch.randn(4, 3, 8, 8)])
def test_no_map_changes_it(maps):
    assert torch.equal(probability(maps), probability(torch.rand(4, 3, 8, 8)))


def test_it_agrees_with_softmax():
    net, images = small_cnn(), torch.rand(5, 3, 8, 8)
    targets = torch.tensor([0, 1, 2, 1, 0])
    found = judged("probability", net, torch.rand(5, 1, 8, 8), photos(images, targets))[0]["probability"]
    wanted = net(images).double().softmax(1)[torch.arange(5), targets]
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


def test_tiny_probabilities_are_not_lost():
    class Sure(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return torch.stack((images.new_zeros(len(images)), images.new_full((len(images),), 60.0)), 1)

    found = judged("probability", Sure(), torch.rand(4, 1, 8, 8), photos(IMAGES))[0]["probability"]
    assert found.tolist() == pytest.approx([torch.tensor(-60.0, dtype=torch.float64).exp().item()] * 4, rel=1e-5)


def test_it_shares_its_pass_with_the_others():
    costs = all_costs(["average_drop", "probability"], MODEL, torch.rand(4, 1, 8, 8), photos(IMAGES))
    assert costs[1].passes == 0

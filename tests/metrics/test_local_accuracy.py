"""Local accuracy: known answers, with probabilities and with logits."""

import pytest
import torch
from torch import nn

from battery_toys import Odds, photos, value
from saliometer import registry

IMAGE = torch.tensor([[[[0.8, 0.5], [0.5, 0.5]]]])
HALF = torch.tensor([[[0.5, 1.0], [0.0, 0.2]]])


class Ten(nn.Module):
    """Logits 10 and -10 times the first pixel."""

    def forward(self, images):
        return torch.stack((10 * images[:, 0, 0, 0], -10 * images[:, 0, 0, 0]), 1)


@pytest.mark.parametrize("formula", [lambda x: x[:, 0, 0, 0], lambda x: 1 - x[:, 0, 0, 0]])
def test_it_is_the_distance_in_either_direction(formula):
    assert value("local_accuracy", Odds(formula), HALF, photos(IMAGE)).item() == pytest.approx(0.4)


def test_only_logits_pass_its_bounds():
    assert registry.metrics["local_accuracy"].facts.bounds == (0, 1)
    assert value("local_accuracy(output=logit)", Ten(), HALF, photos(IMAGE)).item() > 1


def test_a_logit_is_not_squeezed():
    assert value("local_accuracy(output=logit)", Ten(), HALF, photos(IMAGE)).item() == pytest.approx(4.0)
    assert value("local_accuracy(output=logit)", Ten(), HALF, photos(IMAGE, 1)).item() == pytest.approx(4.0)
    saturated = value("local_accuracy", Ten(), HALF, photos(IMAGE)).item()  # from 16 to 8 log-odds
    assert saturated == pytest.approx(1 / (1 + torch.e**8) - 1 / (1 + torch.e**16), rel=1e-4)


def test_one_pixel_that_does_not_matter_costs_all_of_p():
    single = torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])
    assert value("local_accuracy", Odds(lambda x: x[:, 0, 0, 0]), single, photos(IMAGE)).item() == pytest.approx(0.8)


def test_another_output_is_refused():
    with pytest.raises(AssertionError, match="there is no output 'loss'"):
        value("local_accuracy(output=loss)", Ten(), HALF, photos(IMAGE))

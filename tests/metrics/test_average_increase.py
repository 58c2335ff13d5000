"""Average increase: known answers."""

import torch

from battery_toys import Odds, photos, value

IMAGE = torch.tensor([[[[0.8, 0.5], [0.5, 0.5]]]])
HALF = torch.tensor([[[0.5, 1.0], [0.0, 0.2]]])


def test_it_is_1_where_the_probability_rises_and_0_where_it_falls():
    assert value("average_increase", Odds(lambda x: 1 - x[:, 0, 0, 0]), HALF, photos(IMAGE)).item() == 1.0
    assert value("average_increase", Odds(lambda x: x[:, 0, 0, 0]), HALF, photos(IMAGE)).item() == 0.0


def test_it_is_strict():
    unmoved = Odds(lambda x: x[:, 0, 0, 1])  # a pixel that the map shows wholly
    assert value("average_increase", unmoved, HALF, photos(IMAGE)).item() == 0.0


def test_rises_falls_and_ties_are_all_images():
    generator = torch.Generator().manual_seed(0)
    images, maps = torch.rand(40, 1, 4, 4, generator=generator), torch.rand(40, 4, 4, generator=generator)
    net = Odds(lambda x: (0.5 + x[:, 0, 0, 0] - x[:, 0, 1, 1]).clamp(0.3, 0.7))
    for target, other in ((0, 1), (1, 0)):
        rise = value("average_increase", net, maps, photos(images, target))
        fall = value("average_increase", net, maps, photos(images, other))  # what the other class wins
        ties = (value("local_accuracy", net, maps, photos(images, target)) == 0).double()
        assert 0 < ties.sum() < 40
        assert (rise + fall + ties).tolist() == [1.0] * 40

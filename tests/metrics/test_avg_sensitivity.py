"""Avg-sensitivity is the mean where max-sensitivity is the largest: the rest is tested there."""

import torch

from battery_toys import value
from linear_toys import linear, pictures, weights
from toys import explain


def test_one_draw_has_one_value():
    model, samples = linear(weights()), pictures()
    maps = explain(model, samples.batch, "input_x_gradient")
    found = [
        value(f"{name}(draws=1)", model, maps, samples, method="input_x_gradient")
        for name in ("avg_sensitivity", "max_sensitivity")
    ]
    assert torch.equal(*found)
    assert (found[0] > 0).all()

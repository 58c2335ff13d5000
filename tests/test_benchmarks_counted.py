"""The benchmarks' counter: what runs, the bytes it moves, and how often the host asks for a value."""

import torch
from torch import nn

from counted import Counted


def test_operations_and_their_bytes():
    rows = torch.rand(8, 16)
    with Counted() as counted:
        found = rows * 2
        found.add_(rows)
        rows.view(16, 8).t()  # a view moves nothing
        torch.rand(1, 16).expand(8, 16).exp()
    assert counted.others["mul"] == counted.others["add_"] == 1
    assert counted.moved["mul"] == 2 * rows.nbytes
    assert counted.moved["add_"] == 3 * rows.nbytes
    assert counted.moved["exp"] == (1 + 8) * 16 * 4  # what is spread out is read once
    assert "view" not in counted.others
    assert not counted.products


def test_passes_back_count_too_and_products_stand_apart():
    images = torch.rand(2, 3, 4, 4, requires_grad=True)
    with Counted() as counted:
        nn.Conv2d(3, 2, 1)(images).relu().sum().backward()
    assert dict(counted.products) == {"convolution": 1, "convolution_backward": 1}
    assert counted.others["threshold_backward"] == 1


def test_waits_are_values_that_the_host_asks_for():
    values = torch.tensor([0.0, 1.0, 2.0])
    with Counted() as counted:
        values.sum().item()
        bool(values.any())
        values.tolist()
        values.nonzero()
        values + 1
    assert counted.waits == 4

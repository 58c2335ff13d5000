"""Which layers are drawn anew at each stage."""

import pytest

from saliometer.registry import Spec
from saliometer.sanity.plan import stages

NAMES = ["conv", "body.0", "head"]


@pytest.mark.parametrize(
    ("order", "layers", "chosen"),
    [
        ("top_down", ["head", "body.0", "conv"], [{2}, {1, 2}, {0, 1, 2}]),
        ("bottom_up", NAMES, [{0}, {0, 1}, {0, 1, 2}]),
        ("independent", NAMES, [{0}, {1}, {2}]),
        ("full", ["all"], [{0, 1, 2}]),
    ],
)
def test_orders(order, layers, chosen):
    found = stages(order, NAMES)
    assert [stage.layer for stage in found] == layers
    assert [set(stage.chosen) for stage in found] == chosen
    assert [stage.number for stage in found] == list(range(1, len(layers) + 1))


def test_a_condition_can_be_read_back():
    text = stages("top_down", NAMES)[1].condition("top_down", 3)
    assert text == "randomised(draw=3,layer='body.0',order=top_down,stage=2)"
    assert dict(Spec.parse(text).params) == {"draw": 3, "layer": "body.0", "order": "top_down", "stage": 2}


def test_an_unknown_order_is_told_the_nearest():
    with pytest.raises(LookupError, match="Did you mean 'bottom_up'"):
        stages("bottomup", NAMES)

"""How images lie in memory, and how many go through at once: what is fast, and never what a network cannot take."""

import pytest
import torch
from torch import Tensor, nn

from saliometer import audit, explain
from saliometer.engine import device as devices
from saliometer.engine.answer import Answers
from saliometer.engine.memory import GIB, fitting
from toys import CPU, model_of


class Viewed(nn.Module):
    """A network that looks at its feature maps by `view`, which is for values that lie in the plain order."""

    def __init__(self, plain: bool = False) -> None:
        super().__init__()
        self.plain, self.failed = plain, 0
        torch.manual_seed(0)
        self.features, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 8 * 8, 5)

    def forward(self, images: Tensor) -> Tensor:
        values = self.features(images).relu()
        self.failed += not values.is_contiguous()
        return self.head(values.flatten(1) if self.plain else values.view(len(values), -1))


def network(plain: bool = False) -> nn.Module:
    return Viewed(plain).eval().requires_grad_(False)


@pytest.mark.parametrize("method", ["gradient", "deconvnet", "lrp_epsilon", "rise(masks=20)", "grad_cam"])
def test_a_network_that_views_its_values_gets_them_in_order(method: str) -> None:
    images = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(explain(network(), images, method), explain(network(plain=True), images, method), atol=1e-6)


def test_it_fails_once_and_is_known_from_then_on() -> None:
    net, images = network(), torch.rand(8, 3, 8, 8)
    for _ in range(2):
        Answers(model_of(net, ""), CPU, 4).predicted(images)
    assert net.failed == 1
    assert devices.memory_format(CPU) == torch.channels_last  # for others


def test_it_can_be_audited() -> None:
    found = audit(network(), torch.rand(2, 3, 8, 8), methods=["gradient"], metrics=["average_drop"], mean=0.0, std=1.0)
    values = [
        row["value"]
        for row in found.rows.to_pylist()
        if row["metric"] == "average_drop" and row["method"] == "gradient"
    ]
    assert len(values) == 2
    assert all(value == value for value in values)


@pytest.mark.parametrize("method", ["gradient", "deconvnet", "lrp_epsilon"])
def test_maps_lie_in_the_plain_order(method: str) -> None:
    assert explain(network(plain=True), torch.rand(2, 3, 8, 8), method, channels=True).is_contiguous()


def test_other_errors_are_told() -> None:
    class Broken(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        Answers(model_of(Broken().eval(), ""), CPU, 4).predicted(torch.rand(2, 3, 8, 8))


def test_passes_on_a_cpu_make_half_a_gib_but_are_of_eight_images() -> None:
    plenty = 1000.0
    assert fitting(10**6, CPU, plenty) == 64
    assert fitting(GIB // 40, CPU, plenty) == 20
    assert fitting(GIB // 4, CPU, plenty) == 8
    assert fitting(GIB // 4, CPU, 1.5) == 2  # as many as memory has room for

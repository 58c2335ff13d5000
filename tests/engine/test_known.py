"""Facts about a network are believed at first, looked after while passes run, and never used once they are stale."""

import pytest
import torch
from torch import Tensor, nn

from saliometer import explain
from saliometer.engine.known import Known
from saliometer.engine.later import Later
from toys import small_cnn

IMAGES = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
TARGETS = torch.tensor([0, 1, 2])
METHODS = ("gradient", "grad_cam", "lrp_epsilon", "rise(masks=8)", "random")


def normed() -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
        return nn.Sequential(*layers, nn.Linear(16, 3)).eval()


def head_of(classes: int) -> nn.Linear:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return nn.Linear(16, classes).eval()


def test_a_fact_is_found_once_and_again_when_the_network_changed():
    net, found = small_cnn().eval(), []

    def find() -> int:
        found.append(1)
        return len(found)

    assert [Known(net, IMAGES[:1], believed=believed)("count", find) for believed in (False, True, False)] == [1, 1, 1]
    net[0].weight.data = net[0].weight.data + 1
    with torch.no_grad():
        net[0].weight.add_(1)
    believed = Known(net, IMAGES[:1], believed=True)
    assert believed("count", find) == 1
    assert not believed.true
    with pytest.raises(ValueError, match="was changed since it was last seen"):
        believed("another", find)
    assert Known(net, IMAGES[:1])("count", find) == 2
    assert Known(net, IMAGES[:1, :, :4], believed=True)("count", find) == 3  # images of another size


@pytest.mark.parametrize("method", METHODS)
def test_a_head_of_fewer_classes_refuses_a_target_that_was_one(method):
    net = normed()
    explain(net, IMAGES, method, TARGETS)
    net[-1] = head_of(2)
    with pytest.raises(ValueError, match=r"targets are 0\.\.2, but model 'Sequential' has 2 classes, 0\.\.1"):
        explain(net, IMAGES, method, TARGETS)


@pytest.mark.parametrize("method", METHODS)
def test_a_head_of_more_classes_takes_a_target_that_was_none(method):
    net = normed()
    explain(net, IMAGES, method, TARGETS)
    net[-1] = head_of(5)
    twin = normed()
    twin[-1] = head_of(5)
    found = explain(net, IMAGES, method, TARGETS + 2)
    torch.testing.assert_close(found, explain(twin, IMAGES, method, TARGETS + 2))


def test_a_single_logit_instead_of_several_is_seen():
    net, twin = normed(), normed()
    explain(net, IMAGES, "gradient(output=probability)", TARGETS)
    net[-1], twin[-1] = head_of(1), head_of(1)
    zeros = torch.zeros(3, dtype=torch.int64)
    found = explain(net, IMAGES, "gradient(output=probability)", zeros)
    torch.testing.assert_close(found, explain(twin, IMAGES, "gradient(output=probability)", zeros))


def test_a_forward_that_was_exchanged_for_one_of_other_classes_is_refused():
    net = normed()
    explain(net, IMAGES, "gradient", TARGETS)
    net.forward = lambda images: images.flatten(1)[:, :2]
    with pytest.raises(ValueError, match="model 'Sequential' gave 2 classes, and 3 before"):
        explain(net, IMAGES, "gradient", TARGETS)


@pytest.mark.parametrize("method", METHODS[:-1])
def test_train_mode_is_refused_before_anything_runs(method):
    net = normed()
    explain(net, IMAGES, method, TARGETS)
    net[1].train()
    before = net[1].running_mean.clone()
    with pytest.raises(ValueError, match="in train mode"):
        explain(net, IMAGES, method, TARGETS)
    assert torch.equal(net[1].running_mean, before)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"images": IMAGES * float("nan")}, "images hold NaN or infinity: wanted finite"),
        ({"references": IMAGES / 0}, "references hold NaN or infinity: wanted finite"),
        ({"targets": TARGETS + 1}, r"targets are 1\.\.3, but model"),
        ({"targets": TARGETS - 1}, r"targets are -1\.\.1, but model"),
    ],
)
def test_what_comes_is_refused_also_when_all_is_known(method, changes, words):
    net = normed()
    given = {"images": IMAGES, "targets": TARGETS, "references": IMAGES}
    explain(net, method=method, **given)
    with pytest.raises(ValueError, match=words):
        explain(net, method=method, **given | changes)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.calls = small_cnn(), 0

    def forward(self, images: Tensor) -> Tensor:
        self.calls += 1
        return self.net(images)


def test_many_passes_stop_at_the_first_that_runs_on_something_else():
    net = Counting().eval()
    explain(net, IMAGES, "rise(masks=40)", TARGETS, batch_size=3)
    before, net.calls = net.calls, 0
    explain(net, IMAGES, "rise(masks=40)", TARGETS, batch_size=3)
    usual, net.calls = net.calls, 0
    with torch.no_grad():
        net.net[0].weight.mul_(2)
    found = explain(net, IMAGES, "rise(masks=40)", TARGETS, batch_size=3)
    assert usual == 40
    assert net.calls <= before + 1
    twin = Counting().eval()
    with torch.no_grad():
        twin.net[0].weight.mul_(2)
    torch.testing.assert_close(found, explain(twin, IMAGES, "rise(masks=40)", TARGETS, batch_size=3))


def test_values_are_read_later():
    assert Later(torch.tensor([1.5, -2.0])).read() == [1.5, -2.0]

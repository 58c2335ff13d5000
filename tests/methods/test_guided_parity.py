"""Guided backprop and DeConvNet against Captum 0.9, and where Captum goes wrong without a word."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from doubles import raw
from saliometer import explain
from saliometer.types import Batch, Model
from toys import model_of

DOUBLE = torch.float64
THEIRS = {"guided_backprop": "GuidedBackprop", "deconvnet": "Deconvolution"}
captum = pytest.importorskip("captum.attr")


class Block(nn.Module):
    """A residual block with norms whose factors may be negative, and a ReLU for each use."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(6, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
        self.norm, self.relu, self.last = nn.BatchNorm2d(6), nn.ReLU(), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.last(x + self.second(self.relu(self.norm(self.first(x)))))


def network(seed: int = 0) -> nn.Sequential:
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Block(), nn.Conv2d(6, 5, 3, 2), nn.ReLU(),
        nn.AvgPool2d(2, 1), nn.Flatten(), nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3),
    ).double().eval()  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    for values in net.parameters():
        values.data.normal_(0, 0.2, generator=generator)
    net[3].norm.running_mean.normal_(generator=generator)
    net[3].norm.running_var.uniform_(0.5, 2, generator=generator)
    return net


def batch_of(count: int = 6, side: int = 12) -> Batch:
    images = torch.randn(count, 3, side, side, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    return Batch(images, torch.arange(count) % 3, torch.arange(count))


def theirs(name: str, net: nn.Module, batch: Batch) -> Tensor:
    return getattr(captum, THEIRS[name])(net).attribute(batch.images, target=batch.targets).detach()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", THEIRS)
def test_relus_that_are_modules_are_treated_as_by_captum(name, seed):
    net, batch = network(seed), batch_of()
    wanted = theirs(name, net, batch)
    assert wanted.abs().max() > 0
    torch.testing.assert_close(raw(model_of(net), batch, name).maps, wanted, rtol=1e-10, atol=1e-13)
    assert not torch.allclose(wanted, raw(model_of(net), batch, "gradient").maps, rtol=1e-2)


class Spelled(nn.Module):
    """The same network with its ReLUs written in another way."""

    def __init__(self, net: nn.Sequential, relu) -> None:
        super().__init__()
        self.net, self.relu = net, relu

    def forward(self, images: Tensor) -> Tensor:
        x = self.net[2](self.relu(self.net[0](images)))
        block = self.net[3]
        x = self.relu(x + block.second(self.relu(block.norm(block.first(x)))))
        x = self.net[6](self.relu(self.net[4](x))).flatten(1)
        return self.net[10](self.relu(self.net[8](x)))


SPELLINGS = {
    "function": F.relu,
    "method": lambda x: x.relu(),
    "clamp": lambda x: x.clamp(min=0),
    "relu6": nn.ReLU6(),
    "mask": lambda x: x * (x > 0).to(x.dtype),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", THEIRS)
def test_captum_gives_the_plain_gradient_for_other_spellings_and_we_do_not(name, spelling):
    """The trap of methods.md 0.1: nothing is said, and the map is the gradient's."""
    net, batch = network(), batch_of()
    batch = replace(batch, images=batch.images / 20)  # nothing reaches 6
    wanted = raw(model_of(net), batch, name).maps
    twin = Spelled(net, SPELLINGS[spelling]).eval()
    torch.testing.assert_close(twin(batch.images), net(batch.images))
    gradient = raw(model_of(twin), batch, "gradient").maps
    torch.testing.assert_close(theirs(name, twin, batch), gradient)
    torch.testing.assert_close(raw(model_of(twin), batch, name).maps, wanted, rtol=1e-10, atol=1e-13)
    assert not torch.allclose(wanted, gradient, rtol=1e-2)


def test_one_relu_for_all_is_no_trouble():
    net, batch, relu = network(), batch_of(), nn.ReLU(inplace=True)
    for name in THEIRS:
        wanted = raw(model_of(net), batch, name).maps
        found = raw(model_of(Spelled(net, relu)), batch, name).maps
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", THEIRS)
def test_biases_of_the_head_and_the_size_of_other_logits_do_not_matter(name):
    net, batch = network(), batch_of()
    wanted = raw(model_of(net), batch, name).maps
    net[10].bias.data += 7
    torch.testing.assert_close(raw(model_of(net), batch, name).maps, wanted)


def test_between_zero_and_the_ceiling_only():
    """ReLU6 of (-1, 3, 7), each with weight 1: guided backprop passes the middle, DeConvNet all, also for clamp."""
    for cap in (F.relu6, lambda x: x.clamp(0, 6), nn.Hardtanh(0, 6)):

        class Capped(nn.Module):
            def forward(self, images: Tensor, cap=cap) -> Tensor:
                score = cap(images.flatten(1)).sum(1, keepdim=True)
                return torch.cat((score, -score), 1)

        pixels = torch.tensor([-1.0, 3, 7]).view(1, 1, 1, 3)
        target = torch.tensor([0])
        assert explain(Capped().eval(), pixels, "guided_backprop", target).flatten().tolist() == [0, 1, 0]
        assert explain(Capped().eval(), pixels, "deconvnet", target).flatten().tolist() == [1, 1, 1]
        assert explain(Capped().eval(), pixels, "deconvnet", 1 - target).flatten().tolist() == [0, 0, 0]


def test_where_every_positive_signal_dies_it_is_said():
    net = nn.Sequential(nn.Flatten(), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)).double().eval()
    net[3].weight.data = torch.tensor([[-1.0, -2.0], [1.0, 2.0]], dtype=DOUBLE)
    images = torch.ones(2, 1, 1, 2, dtype=DOUBLE)
    net[1].weight.data.fill_(1)
    for name in THEIRS:
        found = raw(model_of(net), Batch(images, torch.tensor([0, 1]), torch.arange(2)), name)
        assert found.flags["zero_gradient"].tolist() == [True, False]
        assert found.maps.flatten(1).abs().amax(1).tolist() == [0, 3]


def test_guided_grad_cam_is_one_times_the_other():
    batch = batch_of()
    model = Model("toy", network(), "4", "")
    guided, cam, both = (raw(model, batch, name) for name in ("guided_backprop", "grad_cam", "guided_grad_cam"))
    torch.testing.assert_close(both.maps, guided.maps * cam.maps)
    assert (cam.maps >= 0).all()
    dead = cam.flags["dead_cam"]
    assert both.flags["dead_cam"].equal(dead)
    assert both.maps[dead].abs().sum() == 0


@pytest.mark.parametrize("name", [*THEIRS, "guided_grad_cam"])
def test_the_true_derivative_of_other_nonlinearities_is_let_through_if_asked_for(name):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3))
    net, images = net.double().eval(), batch_of().images
    with pytest.raises(ValueError, match=r"no rule for the operation 'silu' in '1'\. Works on model"):
        explain(net, images, name)
    found = explain(net, images, f"{name}(other=gradient)", channels=True)
    if name in THEIRS:  # Captum lets it through unasked
        batch = Batch(images, net(images).argmax(1), torch.arange(len(images)))
        torch.testing.assert_close(found, theirs(name, net, batch))
    with pytest.raises(LookupError, match="there is no other 'anything'"):
        explain(net, images, f"{name}(other=anything)")

"""Frozen features: from a file or torchvision's cache, in their places, or a sentence on what to do."""

import pytest
import torch
from torchvision.models import vgg16

from saliometer import registry
from saliometer.engine import imagenet
from saliometer.registry import Spec

FROZEN, SCRATCH = Spec.parse("vgg16(frozen=true)"), Spec.parse("vgg16")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "vgg16.pth"
    state = {name: value for name, value in vgg16().state_dict().items() if name.startswith("features")}
    torch.save(state, path)
    return path


def test_the_convolutions_of_a_file_are_put_in_their_places(file):
    net = registry.models["vgg16"].function(2, 3, frozen=True)
    told = imagenet.fill(net, FROZEN, imagenet.features(FROZEN, file))
    assert told["features"].startswith("of ImageNet, frozen: vgg16.pth, sha256 ")
    theirs = vgg16()
    theirs.load_state_dict(torch.load(file), strict=False)
    image = torch.rand(1, 3, 64, 64)
    assert torch.equal(net[:31](image), theirs.features.eval()(image))  # up to the last pooling


def test_torchvisions_cache_is_looked_into(file, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(ValueError, match="cache holds none: give a file with --weights, or ask for vgg16"):
        imagenet.features(FROZEN, None)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "vgg16_bn-6c64b313.pth").touch()
    assert imagenet.cached() == []
    (tmp_path / "checkpoints" / "vgg16-397923af.pth").write_bytes(file.read_bytes())
    assert imagenet.features(FROZEN, None).name == "vgg16-397923af.pth"


def test_from_scratch_needs_no_file_and_says_so(file):
    assert imagenet.features(SCRATCH, None) is None
    assert imagenet.fill(None, SCRATCH, None) == {"features": "trained from scratch, with batch norm"}
    assert imagenet.features(Spec.parse("alexnet"), None) is None
    with pytest.raises(ValueError, match=r"ask for vgg16\(frozen=true\)"):
        imagenet.features(SCRATCH, file)


def test_weights_that_lean_on_batch_norm_are_refused(tmp_path):
    """Convolutions of the same shapes, which mean nothing without their norms."""
    net = registry.models["vgg16"].function(2, 3, frozen=True, width=0.05)
    convolutions = [layer for layer in net if isinstance(layer, torch.nn.Conv2d)]
    state = {f"features.{3 * n}.weight": layer.weight for n, layer in enumerate(convolutions)}
    state |= {f"features.{3 * n}.bias": layer.bias for n, layer in enumerate(convolutions)}
    torch.save(state | {"features.1.running_mean": torch.zeros(3)}, tmp_path / "vgg16_bn.pth")
    with pytest.raises(ValueError, match=r"13 convolutions with batch norm, .* wanted VGG16 without batch norm"):
        imagenet.fill(net, FROZEN, tmp_path / "vgg16_bn.pth")
    torch.save(state, tmp_path / "vgg16.pth")
    assert imagenet.fill(net, FROZEN, tmp_path / "vgg16.pth")["features"].startswith("of ImageNet")


def test_other_weights_are_refused(tmp_path):
    torch.save({"features.0.weight": torch.zeros(4, 3, 3, 3)}, tmp_path / "other.pth")
    net = registry.models["vgg16"].function(2, 3, frozen=True, width=0.05)
    with pytest.raises(ValueError, match="wanted VGG16 without batch norm"):
        imagenet.fill(net, FROZEN, tmp_path / "other.pth")
    with pytest.raises(ValueError, match="there are no weights at"):
        imagenet.features(FROZEN, tmp_path / "nothing.pth")

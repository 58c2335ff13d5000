"""Grad-CAM: fixtures A and C of methods.md, where the ReLU goes, the layer, and two other libraries."""

import pytest
import torch
from captum.attr import LayerAttribution, LayerGradCam
from torch.nn import functional as F

from cam_toys import FIXTURE_A, FIXTURE_C, IMAGE_A, IMAGE_C, ChannelsLast, Tokens, assert_parity, made
from saliometer.engine.answer import Answers
from saliometer.engine.score import attributions
from toys import CPU, asked, batch_of, explain, explained, model_of, noise_batch, small_cnn


@pytest.mark.parametrize(
    ("relu", "wanted"),
    [("none", [[-0.75, 0.5], [0.75, 1]]), ("before", [[0, 0.5], [0.75, 1]]), ("after", [[0, 0.5], [0.75, 1]])],
)
def test_fixture_a(relu, wanted):
    assert explain(FIXTURE_A, batch_of(IMAGE_A), f"grad_cam(relu={relu})")[0, 0].tolist() == wanted


def test_fixture_c_is_dead_for_its_mean_slope_is_zero():
    for relu in ("none", "before", "after"):
        found = explained(FIXTURE_C, batch_of(IMAGE_C), f"grad_cam(relu={relu})")
        assert found.maps.abs().max() == 0
        assert found.flags["dead_cam"].tolist() == [True]


def test_a_map_without_positive_places_is_dead_unless_it_is_signed():
    """Class 1 of fixture A with its first map alone: -0.25 times (1, 2, 3, 4)."""
    image = torch.cat((IMAGE_A[:, :1], 0 * IMAGE_A[:, :1]), 1)
    rectified, signed = (
        explained(FIXTURE_A, batch_of(image, 1), f"grad_cam(relu={relu})") for relu in ("before", "none")
    )
    assert rectified.maps.abs().max() == 0
    assert rectified.flags["dead_cam"].tolist() == [True]
    assert signed.maps[0, 0].tolist() == [[-0.25, -0.5], [-0.75, -1]]
    assert signed.flags["dead_cam"].tolist() == [False]


def test_the_relu_comes_before_or_after_enlarging():
    """A map (-0.75, 0.5; 0.75, 1) behind a layer that halves the image, so enlarging mixes signs."""

    class Halved(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = torch.nn.AvgPool2d(2)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            score = (self.features(images).mean((2, 3)) * torch.tensor([1.0, -1.0])).sum(1)
            return torch.stack((score, -score), 1)

    images = IMAGE_A.repeat_interleave(2, 2).repeat_interleave(2, 3)
    model, small = model_of(Halved(), "features"), torch.tensor([[[[-0.75, 0.5], [0.75, 1.0]]]])

    def enlarged(maps: torch.Tensor) -> torch.Tensor:
        return F.interpolate(maps, (4, 4), mode="bilinear", align_corners=False)

    wanted = {"none": enlarged(small), "before": enlarged(small.relu()), "after": enlarged(small).relu()}
    for relu, maps in wanted.items():
        torch.testing.assert_close(explain(model, batch_of(images), f"grad_cam(relu={relu})"), maps)
    assert not torch.allclose(wanted["before"], wanted["after"])


def test_another_layer_may_be_named():
    model, batch = model_of(small_cnn()), noise_batch()
    default, named, other = (explain(model, batch, f"grad_cam({p})") for p in ("", 'layer="3"', 'layer="1"'))
    assert torch.equal(default, named)
    assert not torch.allclose(default, other)


def test_two_layers_in_one_call_keep_their_own_maps():
    """The layer that runs last comes first in the alphabet."""
    net = torch.nn.Sequential()
    for name, module in zip(("z_first", "relu", "a_last", "relu2", "flat", "out"), small_cnn(), strict=True):
        net.add_module(name, module)
    model, batch = model_of(net, "relu2"), noise_batch()
    texts = ["grad_cam(layer=z_first,relu=none)", "grad_cam(layer=a_last,relu=none)"]
    together = attributions([asked(text) for text in texts], Answers(model, CPU), batch)
    for text in texts:
        torch.testing.assert_close(together[asked(text).label].maps, explain(model, batch, text))


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ("relu9", "there is no layer 'relu9'. Did you mean 'relu"),
        ("dense", r"grad_cam: layer 'dense' gives shape \(12, 200\), wanted \(N, channels, height, width\)"),
    ],
)
def test_a_layer_without_places_is_refused(layer, words, simple_model, simple_samples):
    with pytest.raises(AssertionError, match=words):
        explain(simple_model, simple_samples.batch, f"grad_cam(layer={layer})")


@pytest.mark.parametrize("which", ["simple", "complex"])
def test_parity_with_captum(which, request):
    """Captum 0.9.0: LayerGradCam with its ReLU on, enlarged by bilinear interpolation; 1e-5 of the largest value."""
    model, samples = request.getfixturevalue(f"{which}_model"), request.getfixturevalue(f"{which}_samples")
    layer = dict(model.net.named_modules())[model.cam_layer]
    small = LayerGradCam(model.net, layer).attribute(
        samples.batch.images.clone().requires_grad_(), target=samples.batch.targets, relu_attributions=True
    )
    wanted = LayerAttribution.interpolate(small, (64, 64), interpolate_mode="bilinear").detach()
    maps = explain(model, samples.batch, "grad_cam")
    assert wanted.max() > 0
    torch.testing.assert_close(maps, wanted, rtol=0, atol=1e-5 * wanted.abs().max().item())


def test_parity_with_pytorch_grad_cam(simple_model, simple_samples):
    """1.5.7 scales each map to 0..1 (plus 1e-7) before and after cv2's resize, so ours is scaled too; 1e-5."""
    maps = explain(simple_model, simple_samples.batch, "grad_cam")
    assert_parity("GradCAM", maps, simple_model, simple_samples.batch, atol=1e-5)


@pytest.mark.parametrize("kind", [ChannelsLast, Tokens])
def test_parity_with_pytorch_grad_cam_in_other_layouts(kind):
    """Their reshape_transform, written by hand: 4 x 4 places, the class token dropped; 2e-5."""
    model, batch = made(kind), noise_batch(12)

    def reshape(output: torch.Tensor) -> torch.Tensor:
        grid = output[:, 1:].reshape(len(output), 4, 4, -1) if kind is Tokens else output
        return grid.permute(0, 3, 1, 2)

    assert_parity("GradCAM", explain(model, batch, "grad_cam"), model, batch, reshape)

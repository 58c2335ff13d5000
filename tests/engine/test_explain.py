"""Maps for any classifier: `saliometer.explain`."""

from copy import deepcopy
from threading import Thread

import pytest
import torch
from torch import Tensor, nn

from saliometer import explain


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 3 * 3, 3)]
    return nn.Sequential(*layers).eval()


def test_maps_are_the_channel_sum_and_channels_gives_the_attribution(net: nn.Module) -> None:
    images = torch.rand(5, 1, 8, 8)
    whole = explain(net, images, "gradient", channels=True)
    assert whole.shape == (5, 1, 8, 8)
    torch.testing.assert_close(explain(net, images, "gradient"), whole.sum(1))


def test_the_predicted_class_is_explained_unless_targets_are_given(net: nn.Module) -> None:
    images = torch.rand(5, 1, 8, 8)
    predicted = net(images).argmax(1)
    torch.testing.assert_close(explain(net, images, "gradient"), explain(net, images, "gradient", predicted))
    assert not torch.equal(explain(net, images, "gradient"), explain(net, images, "gradient", (predicted + 1) % 3))


def test_a_spec_and_keyword_parameters_say_the_same(net: nn.Module) -> None:
    images = torch.rand(2, 1, 8, 8)
    by_spec = explain(net, images, "integrated_gradients(steps=3,rule=left)")
    by_word = explain(net, images, "integrated_gradients", steps=3, rule="left")
    torch.testing.assert_close(by_spec, by_word)


def test_the_cam_layer_is_the_last_feature_map_that_no_pooling_made(net: nn.Module) -> None:
    images = torch.rand(2, 1, 8, 8)
    torch.testing.assert_close(explain(net, images, "grad_cam"), explain(net, images, "grad_cam", layer="1"))


@pytest.mark.parametrize("method", ["xrai(steps=2)", "expected_gradients(draws=2)", "grad_cam"])
def test_images_may_ask_for_gradients_of_their_own(method: str, net: nn.Module) -> None:
    images, others = torch.rand(2, 1, 8, 8), torch.rand(2, 1, 8, 8)
    asking = images.clone().requires_grad_()
    maps = explain(net, asking, method, references=others.clone().requires_grad_())
    torch.testing.assert_close(maps, explain(net, images, method, references=others))
    assert (maps.requires_grad, asking.requires_grad, asking.grad) == (False, True, None)


@pytest.mark.parametrize("method", ["gradient", "rise(masks=20)", "guided_backprop", "grad_cam"])
def test_half_precision_around_it_changes_nothing(method: str, net: nn.Module) -> None:
    """A caller's autocast is not for numbers that are to be right to five digits."""
    images = torch.rand(2, 1, 8, 8)
    wanted = explain(net, images, method)
    with torch.autocast("cpu", torch.bfloat16):
        found = explain(net, images, method)
        assert net(images).dtype == torch.bfloat16
    assert torch.equal(found, wanted)


def test_a_callable_is_taken(net: nn.Module) -> None:
    def mine(model: nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return images * 2

    images = torch.rand(2, 1, 8, 8)
    torch.testing.assert_close(explain(net, images, mine), 2 * images[:, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": torch.rand(1, 8, 8)}, "wanted finite floating point numbers of shape (N, C, H, W)"),
        ({"images": torch.full((1, 1, 8, 8), float("nan"))}, "wanted finite floating point numbers"),
        ({"images": torch.zeros(1, 1, 8, 8, dtype=torch.int64)}, "torch.int64: wanted finite floating point"),
        ({"targets": torch.tensor([3])}, "targets are 3..3, but model 'Sequential' has 3 classes, 0..2"),
        ({"targets": torch.tensor([0, 1])}, "wanted int64 of shape (1,), one class for each image"),
        ({"method": "grad_cam(layer=2x)"}, "cannot read"),
        ({"method": "grad_cam(layer=nowhere)"}, "model 'Sequential': there is no layer 'nowhere'"),
        ({"method": "grad_cam(layer='4')"}, "layer '4' gives shape (1, 3), wanted (N, channels, height, width)"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_words(change: dict, message: str, net: nn.Module) -> None:
    wanted = {"images": torch.rand(1, 1, 8, 8), "method": "gradient", "targets": None} | change
    with pytest.raises((ValueError, LookupError)) as caught:
        explain(net, **wanted)
    assert message in str(caught.value)


def test_a_model_in_train_mode_is_refused(net: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"is in train mode.*call model\.eval\(\) first"):
        explain(net.train(), torch.rand(1, 1, 8, 8), "gradient")


@pytest.mark.parametrize("method", ["gradient", "guided_backprop", "grad_cam"])
def test_a_compiled_model_is_explained_as_the_one_it_was_made_of(method: str, net: nn.Module) -> None:
    images = torch.rand(2, 1, 8, 8)
    torch.testing.assert_close(explain(torch.compile(net), images, method), explain(net, images, method))


@pytest.mark.parametrize("method", ["guided_backprop", "lrp_epsilon", "grad_cam"])
@pytest.mark.parametrize("how", ["whole, in place", "one layer, in place", "one layer, wrapped"])
def test_layers_compiled_in_place_are_explained_as_they_were_written(method: str, how: str, net: nn.Module) -> None:
    images, plain = torch.rand(2, 1, 8, 8), deepcopy(net)
    if how == "one layer, wrapped":
        net[0] = torch.compile(net[0], backend="eager")
    else:
        (net if how.startswith("whole") else net[0]).compile(backend="eager")
    compiled = net._compiled_call_impl, net[0]._compiled_call_impl, getattr(net[0], "forward", None)
    torch.testing.assert_close(explain(net, images, method), explain(plain, images, method))
    assert (net._compiled_call_impl, net[0]._compiled_call_impl, getattr(net[0], "forward", None)) == compiled


def test_a_model_whose_batch_norms_read_the_batch_is_refused(net: nn.Module) -> None:
    net[1] = nn.BatchNorm2d(4, track_running_stats=False).eval()
    with pytest.raises(
        ValueError, match=r"1 batch norms have no running statistics \(1\): .* so do its maps; let them"
    ):
        explain(net, torch.rand(2, 1, 8, 8), "gradient")


class Counts(nn.Module):
    """Writes to a buffer of its own in every pass; `grows` has the logits depend on it."""

    def __init__(self, net: nn.Module, grows: bool) -> None:
        super().__init__()
        self.net, self.grows = net, grows
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        logits: torch.Tensor = self.net(images)
        return logits * self.passes if self.grows else logits


@pytest.mark.parametrize("method", ["grad_cam", "lrp_z"])
def test_a_model_that_only_keeps_books_is_explained(net: nn.Module, method: str) -> None:
    images = torch.rand(2, 1, 8, 8)
    torch.testing.assert_close(explain(Counts(net, False).eval(), images, method), explain(net, images, method))


def test_a_model_that_is_another_one_in_every_pass_is_told_what_works(net: nn.Module) -> None:
    images = torch.rand(2, 1, 8, 8)
    with pytest.raises(
        ValueError, match="if its own forward writes to its weights or buffers, use gradient, path, CAM"
    ):
        explain(Counts(net, True).eval(), images, "lrp_z")


def test_a_model_of_another_output_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"gave \(1, 4, 6, 6\) for one image, wanted logits of shape \(1, classes\)"):
        explain(nn.Conv2d(1, 4, 3).eval(), torch.rand(2, 1, 8, 8), "gradient")


def test_threads_that_explain_one_network_wait_for_each_other(net: nn.Module) -> None:
    """What one sends through the network would reach the hooks of the other."""
    images, found = torch.rand(2, 1, 8, 8), list[Tensor]()
    wanted = explain(net, images, "gradient")
    other = Thread(target=lambda: found.append(explain(net, images, "gradient")))

    def slow(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        other.start()
        other.join(0.3)
        assert not found
        return explain(model, images, "gradient", targets, channels=True)

    torch.testing.assert_close(explain(net, images, slow), wanted)
    other.join()
    torch.testing.assert_close(found[0], wanted)

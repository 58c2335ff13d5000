"""Ablation-CAM: fixture A of methods.md, negative scores and scores of 0, other layouts, and pytorch-grad-cam."""

import pytest
import torch
from torch import Tensor, nn

from cam_toys import FIXTURE_A, IMAGE_A, ChannelsLast, Tokens, assert_parity, gap_cnn, made
from saliometer.engine.answer import Answers
from saliometer.engine.score import attributions
from toys import CPU, asked, batch_of, explain, explained, model_of, noise_batch, small_cnn


def test_fixture_a():
    maps = explain(FIXTURE_A, batch_of(IMAGE_A), "ablation_cam(relu=none)")
    assert maps.flatten().tolist() == pytest.approx([-1, 3.3333, 5, 6.6667], abs=1e-4)


def test_a_negative_score_does_not_turn_the_map_round():
    """Class 1: f = -1.5, f without map 1 is 1, without map 2 -2.5; weights -2.5 / 1.5 and 1 / 1.5."""
    maps = explain(FIXTURE_A, batch_of(IMAGE_A, 1), "ablation_cam(relu=none)")
    assert maps.flatten().tolist() == pytest.approx([1, -3.3333, -5, -6.6667], abs=1e-4)


def test_a_score_of_0_is_not_divided_by():
    """Two maps of the same mean, 2.5: f = 0, without map 1 -2.5, without map 2 2.5; weights 2.5 and -2.5."""
    image = IMAGE_A.clone()
    image[:, 1] = image[:, 0].flip(-1)
    maps = explain(FIXTURE_A, batch_of(image), "ablation_cam(relu=none)")
    assert torch.equal(maps[0, 0], 2.5 * (image[0, 0] - image[0, 1]))


def test_a_dead_layer_makes_a_dead_map():
    found = explained(FIXTURE_A, batch_of(0 * IMAGE_A), "ablation_cam")
    assert found.maps.abs().max() == 0
    assert found.flags["dead_cam"].tolist() == [True]


@pytest.mark.parametrize(("kind", "cut"), [(ChannelsLast, slice(None)), (Tokens, slice(1, None))])
def test_in_other_layouts_a_channel_is_cut_at_every_place_and_the_class_token_left_alone(kind, cut):
    model, batch = made(kind, dtype=torch.float64), noise_batch(3)
    batch = type(batch)(batch.images.double(), batch.targets, batch.seeds)
    layer, heard = model.net.norm, []
    handle = layer.register_forward_hook(lambda _module, _inputs, output: heard.append(output.detach()))
    score = model.logits(batch.images).gather(1, batch.targets[:, None])[:, 0].detach()
    handle.remove()
    others = []
    for channel in range(layer.normalized_shape[0]):

        def zeroed(_module: object, _inputs: object, output: Tensor, channel: int = channel) -> Tensor:
            output = output.clone()
            output[:, cut][..., channel] = 0
            return output

        handle = layer.register_forward_hook(zeroed)
        others.append(model.logits(batch.images).gather(1, batch.targets[:, None])[:, 0].detach())
        handle.remove()
    weights = (score - torch.stack(others)) / score.abs()
    features = heard[0][:, cut].reshape(3, 4, 4, -1)
    wanted = torch.einsum("kn,nhwk->nhw", weights, features)
    wanted = nn.functional.interpolate(wanted[:, None], (8, 8), mode="bilinear", align_corners=False)
    found = explain(model, batch, "ablation_cam(relu=none)")
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


def test_no_pass_is_spent_on_channels_that_are_0_on_all_images():
    net = gap_cnn()
    net.append(nn.Softplus())  # else none is spent at all
    with torch.no_grad():
        net[2].weight[1], net[2].bias[1] = 0, -1
    answers, batch = Answers(model_of(net), CPU), noise_batch(3)
    attributions([asked("ablation_cam")], answers, batch)
    alive = (net[:4](batch.images) != 0).any(0).flatten(1).any(1).sum()
    assert 0 < alive < 5
    assert answers.passes == 3 + 3 * (1 + alive)


class Pooled(nn.Module):
    """A mean over places, a batch norm and two linear layers behind the feature maps, or something else in between."""

    def __init__(self, between: nn.Module, hidden: bool = False) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.layer, self.norm, self.between = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), between
            self.first, self.head = nn.Linear(6, 5), nn.Linear(5, 3)
            nn.init.normal_(self.norm.running_mean)
        self.hidden = hidden

    def forward(self, images: Tensor) -> Tensor:
        features = self.first(self.between(self.norm(self.layer(images)).mean((2, 3))))
        if self.hidden and features.sum() > 1e9:  # a branch on values: its operations cannot be captured
            features = features.relu()
        return self.head(features)


@pytest.mark.parametrize(
    ("net", "passes"),
    [(Pooled(nn.Identity()), 1 + 2 + 1), (Pooled(nn.Tanh()), 1 + 1 + 6), (Pooled(nn.Identity(), True), 1 + 1 + 6)],
)
def test_where_only_affine_operations_follow_no_channel_is_tried(net, passes):
    model, batch = model_of(net.double().eval(), "layer"), noise_batch(3)
    batch = type(batch)(batch.images.double(), batch.targets, batch.seeds)
    answers = Answers(model, CPU)
    found = attributions([asked("ablation_cam(relu=none)")], answers, batch)["ablation_cam(relu=none)"].maps
    assert answers.passes == 3 * passes
    features = net.layer(batch.images).detach()
    weights = []
    for channel in range(6):
        handle = net.layer.register_forward_hook(
            lambda _module, _inputs, output, channel=channel: output.index_fill(1, torch.tensor([channel]), 0)
        )
        weights.append(model.logits(batch.images).gather(1, batch.targets[:, None])[:, 0].detach())
        handle.remove()
    score = model.logits(batch.images).gather(1, batch.targets[:, None])[:, 0].detach()
    weights = (score - torch.stack(weights)) / score.abs()
    wanted = nn.functional.interpolate(
        torch.einsum("kn,nkhw->nhw", weights, features)[:, None], (8, 8), mode="bilinear", align_corners=False
    )
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


def test_parity_with_pytorch_grad_cam():
    """1.5.7 divides by f, and cuts to 0 only where the smallest activation is 0: scores above 0 behind a ReLU; 2e-5.

    It subtracts scores, so its rounding grows with them.
    """
    net = small_cnn()
    with torch.no_grad():
        net[5].bias.add_(1)
    model, batch = model_of(net), noise_batch(4)
    assert (net(batch.images) > 0).all()
    assert (net[:4](batch.images).flatten(1).amin(1) == 0).all()
    assert_parity("AblationCAM", explain(model, batch, "ablation_cam"), model, batch)

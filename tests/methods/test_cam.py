"""CAM: fixture A of methods.md, its mean, heads it can and cannot read."""

import pytest
import torch
from torch import Tensor, nn

from cam_toys import IMAGE_A, ChannelsLast, Tokens, gap_cnn, made
from toys import batch_of, explain, explained, model_of, noise_batch, small_cnn


class Pooled(nn.Module):
    """Fixture A with the linear layer that it describes: weights (1, -1) for class 0, and a bias."""

    def __init__(self, outputs: int = 2, bias: float | None = None) -> None:
        super().__init__()
        self.features, self.drop = nn.Identity(), nn.Dropout()
        self.head = nn.Linear(2, outputs, bias=bias is not None)
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor([[1.0, -1.0], [-1.0, 1.0]])[:outputs])
            if bias is not None:
                self.head.bias.fill_(bias)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.drop(self.features(images).mean((2, 3))))


def test_fixture_a():
    found = explained(model_of(Pooled(), "features"), batch_of(IMAGE_A), "cam")
    assert found.maps[0, 0].tolist() == [[-3, 2], [3, 4]]
    assert found.maps.mean() == found.promised == 1.5
    assert found.residual.tolist() == [0]


def test_the_relu_is_off_unless_asked_for():
    maps = explain(model_of(Pooled(), "features"), batch_of(IMAGE_A), "cam(relu=before)")
    assert maps[0, 0].tolist() == [[0, 2], [3, 4]]


def test_the_mean_and_the_bias_are_the_score():
    found = explained(model_of(Pooled(bias=0.25), "features"), batch_of(IMAGE_A), "cam")
    assert found.maps[0, 0].tolist() == [[-3, 2], [3, 4]]
    assert found.promised.tolist() == [1.75]
    assert found.residual.tolist() == [0]


@pytest.mark.parametrize(("target", "sign"), [(0, -1), (1, 1)])
def test_one_logit_stands_for_two_classes(target, sign):
    """One output z = 1.5 + 0.25: class 1 has the score z, class 0 has -z."""
    found = explained(model_of(Pooled(outputs=1, bias=0.25), "features"), batch_of(IMAGE_A, target), "cam")
    assert found.maps[0, 0].tolist() == [[sign * -3, sign * 2], [sign * 3, sign * 4]]
    assert found.promised.tolist() == [sign * 1.75]


def test_it_keeps_its_promise_on_a_network():
    found = explained(model_of(gap_cnn()), noise_batch(), "cam")
    assert found.residual.abs().max() < 1e-6
    assert found.promised.abs().min() > 1e-3


def test_channels_may_be_last():
    class Mean(ChannelsLast):
        def forward(self, images: Tensor) -> Tensor:
            return self.head(self.norm(self.patches(images).permute(0, 2, 3, 1)).mean((1, 2)))

    model, batch = made(Mean), noise_batch(2)
    maps = model.net.norm(model.net.patches(batch.images).permute(0, 2, 3, 1)) @ model.net.head.weight[batch.targets].T
    wanted = torch.stack([maps[n, :, :, n] for n in range(2)])
    wanted = nn.functional.interpolate(wanted[:, None], (8, 8), mode="bilinear", align_corners=False)
    torch.testing.assert_close(explain(model, batch, "cam"), wanted)


class Nearly(nn.Module):
    """Changes what passes by less than a glance at the score would show."""

    def forward(self, features: Tensor) -> Tensor:
        return 1.001 * features


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model_of(small_cnn()), id="no mean"),
        pytest.param(made(ChannelsLast), id="a mean of squares"),
        pytest.param(made(Tokens), id="a class token"),
        pytest.param(model_of(gap_cnn(), "1"), id="another layer behind it"),
        pytest.param(model_of(nn.Sequential(*gap_cnn()[:6], nn.Linear(5, 5), nn.Linear(5, 3))), id="two linear layers"),
        pytest.param(model_of(nn.Sequential(*gap_cnn()[:6], Nearly(), gap_cnn()[6])), id="nearly the head"),
    ],
)
def test_any_other_head_is_refused(model):
    with pytest.raises(
        AssertionError,
        match=r"UnfitError: cam: what follows layer '.*' of model 'toy' is not a mean over its places and",
    ):
        explain(model, noise_batch(2), "cam")

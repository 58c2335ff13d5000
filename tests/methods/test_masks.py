"""What the methods that switch parts of an image on and off share."""

import pytest
import torch
from torch import Tensor, nn

from saliometer.methods._masks import cut, flat, painted, segment_means, sizes, switched
from toys import explain, fixture_l, model_of, noise_batch, small_cnn

LABELS = torch.tensor([[[0, 0, 1], [2, 2, 2]], [[0, 0, 0], [0, 0, 1]]])  # two images of 2 x 3 pixels


def test_sizes_count_the_pixels_of_each_segment():
    assert sizes(LABELS).tolist() == [[2, 1, 3], [5, 1, 0]]


def test_painted_gives_every_pixel_its_segments_value():
    values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert painted(values, LABELS).tolist() == [[[[1, 1, 2], [3, 3, 3]]], [[[4, 4, 4], [4, 4, 5]]]]


def test_switched_keeps_what_is_on():
    images, blank = torch.ones(2, 3, 2, 3), torch.zeros(2, 3, 2, 3)
    switches = torch.tensor([[[1, 1, 1], [1, 1, 1]], [[1, 0, 0], [0, 1, 0]], [[0, 1, 1], [0, 0, 0]]], dtype=torch.bool)
    variants = switched(images, blank, LABELS, switches)
    copies = variants(range(3))
    assert copies.shape == (3, 2, 3, 2, 3)
    assert (copies[0] == 1).all()
    assert copies[1, 0, 2].tolist() == [[1, 1, 0], [0, 0, 0]]
    assert copies[1, 1, 0].tolist() == [[0, 0, 0], [0, 0, 1]]
    assert copies[2, 0, 1].tolist() == [[0, 0, 1], [1, 1, 1]]
    assert torch.equal(variants(range(1, 3)), copies[1:])


def test_segment_means_are_each_channels_own():
    images = torch.stack((torch.arange(6.0), 10 * torch.arange(6.0))).view(1, 2, 2, 3).expand(2, -1, -1, -1)
    means = segment_means(images, LABELS)
    assert means[0, 0].tolist() == [[0.5, 0.5, 2], [4, 4, 4]]
    assert means[0, 1].tolist() == [[5, 5, 20], [40, 40, 40]]
    assert means[1, 0].tolist() == [[2, 2, 2], [2, 2, 5]]


def test_flat_scores_are_those_that_rounding_alone_moves():
    scores = torch.tensor([[1.0, 1.0, 1e-9, 0.0, -3.0], [1.0, 1 + 1e-5, 2e-9, 0.0, -3 - 1e-6]])
    assert flat(scores).tolist() == [True, False, False, True, True]


def test_a_grid_cuts_all_images_alike():
    labels = cut(model_of(fixture_l()), torch.zeros(2, 3, 4, 6), "grid", max_dist=0.0, cells=2)
    assert labels[1].tolist() == [[0, 0, 0, 1, 1, 1]] * 2 + [[2, 2, 2, 3, 3, 3]] * 2


class Lifted(nn.Module):
    """A network with the same number added to all its logits."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images) + 2


@pytest.mark.parametrize(
    "text",
    [
        "rise(masks=20)",
        "lime(samples=30,segments=grid)",
        "kernel_shap(samples=40,segments=grid,cells=3)",
        "occlusion",
        "extremal_perturbation(steps=25,areas='0.2')",
    ],
)
def test_a_number_added_to_all_logits_changes_nothing(text):
    """methods.md 11.9: these explain differences or probabilities."""
    one, two = (explain(model_of(net), noise_batch(), text) for net in (small_cnn(), Lifted(small_cnn())))
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)

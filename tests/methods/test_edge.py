"""Edge: Sobel slopes worked out by hand, and OpenCV's."""

import cv2
import numpy as np
import pytest
import torch

from toys import batch_of, explain, fixture_l, flat, model_of

PLAIN = model_of(fixture_l())


def test_a_step_between_columns():
    """Columns 0, 0, 1, 1: slopes 0, 4, 4, 0 in every row."""
    images = torch.tensor([0.0, 0.0, 1.0, 1.0]).expand(1, 1, 3, 4)
    assert explain(PLAIN, batch_of(images), "edge")[0, 0].tolist() == [[0, 4, 4, 0]] * 3


def test_a_lone_spot():
    """2 beside it, the square root of 2 at its corners, 0 on it."""
    images = torch.zeros(1, 1, 5, 5)
    images[0, 0, 2, 2] = 1
    wanted = torch.zeros(5, 5)
    wanted[1:4, 1:4] = torch.tensor([[2**0.5, 2, 2**0.5], [2, 0, 2], [2**0.5, 2, 2**0.5]])
    torch.testing.assert_close(explain(PLAIN, batch_of(images), "edge")[0, 0], wanted)


def test_channels_are_summed_after_the_root():
    images = torch.tensor([0.0, 0.0, 1.0, 1.0]).expand(1, 3, 3, 4)
    assert explain(PLAIN, batch_of(images), "edge")[0, 0].tolist() == [[0, 12, 12, 0]] * 3


def test_it_reads_pixels_and_not_the_models_input():
    images = torch.tensor([0.0, 0.0, 1.0, 1.0]).expand(1, 3, 3, 4)
    scaled = model_of(fixture_l(), mean=(0.5, 0.5, 0.5), std=(0.5, 0.25, 0.125))
    inputs = (images - 0.5) / torch.tensor([0.5, 0.25, 0.125]).view(1, 3, 1, 1)
    torch.testing.assert_close(explain(scaled, batch_of(inputs), "edge"), explain(PLAIN, batch_of(images), "edge"))


@pytest.mark.parametrize("kernel", [3, 5])
def test_parity_with_opencv(kernel):
    """cv2.Sobel of OpenCV 5.0, x-derivative, inside the border (theirs is mirrored, ours repeated)."""
    images = torch.rand(2, 3, 20, 24, generator=torch.Generator().manual_seed(0))
    maps = explain(PLAIN, batch_of(images), f"edge(axis=x,kernel={kernel})")
    assert maps.shape == images.shape
    inside = slice(kernel // 2, -(kernel // 2))
    for i in range(2):
        wanted = cv2.Sobel(images[i].permute(1, 2, 0).double().numpy(), cv2.CV_64F, 1, 0, ksize=kernel)
        found = maps[i].permute(1, 2, 0).numpy()
        np.testing.assert_allclose(found[inside, inside], wanted[inside, inside], atol=1e-5)


@pytest.mark.parametrize("kernel", [3, 5])
def test_both_axes_against_opencv_with_the_same_border(kernel):
    images = torch.rand(1, 3, 20, 24, generator=torch.Generator().manual_seed(1))
    picture = images[0].permute(1, 2, 0).double().numpy()
    dx, dy = (
        cv2.Sobel(picture, cv2.CV_64F, *axes, ksize=kernel, borderType=cv2.BORDER_REPLICATE)
        for axes in ((1, 0), (0, 1))
    )
    wanted = np.sqrt(dx**2 + dy**2).sum(2)
    np.testing.assert_allclose(
        explain(PLAIN, batch_of(images), f"edge(kernel={kernel})")[0, 0].numpy(), wanted, atol=1e-4
    )


@pytest.mark.parametrize("kernel", [3, 5])
def test_a_flat_picture_has_no_edge_at_all(kernel):
    """Not even by rounding, which scaling would blow up to a map."""
    images = torch.rand(16, 3, 1, 1).expand(16, 3, 9, 9)
    assert not explain(PLAIN, batch_of(images), f"edge(kernel={kernel})").any()


def test_the_derivative_keeps_its_sign():
    images = torch.tensor([0.0, 0.0, 1.0, 1.0, 0.0, 0.0]).expand(1, 1, 3, 6)
    assert explain(PLAIN, batch_of(images), "edge(axis=x)")[0, 0].tolist() == [[0, 4, 4, -4, -4, 0]] * 3


@pytest.mark.parametrize(
    ("params", "words"), [("kernel=4", "edge: kernel=4, wanted 3 or 5"), ("axis=z", "no axis 'z'")]
)
def test_what_cannot_be_done_is_refused(params, words):
    with pytest.raises(AssertionError, match=words):
        explain(PLAIN, flat([1, 1]), f"edge({params})")

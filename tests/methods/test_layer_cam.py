"""LayerCAM: fixtures A and C of methods.md, and pytorch-grad-cam."""

from cam_toys import FIXTURE_A, FIXTURE_C, IMAGE_A, IMAGE_C, assert_parity
from toys import batch_of, explain, explained


def test_fixture_a():
    assert explain(FIXTURE_A, batch_of(IMAGE_A), "layer_cam")[0, 0].tolist() == [[0.25, 0.5], [0.75, 1]]


def test_fixture_c():
    assert explain(FIXTURE_C, batch_of(IMAGE_C), "layer_cam")[0, 0].tolist() == [[2, 0], [0, 0]]


def test_without_positive_slopes_it_is_dead():
    """Class 1 of fixture A has no positive slope on its first map, and the second is 0."""
    image = IMAGE_A.clone()
    image[:, 1] = 0
    found = explained(FIXTURE_A, batch_of(image, 1), "layer_cam")
    assert found.maps.abs().max() == 0
    assert found.flags["dead_cam"].tolist() == [True]


def test_parity_with_pytorch_grad_cam(simple_model, simple_samples):
    """1.5.7 rectifies the products before they are summed, which is the same where activations are positive; 2e-5."""
    maps = explain(simple_model, simple_samples.batch, "layer_cam")
    assert_parity("LayerCAM", maps, simple_model, simple_samples.batch)

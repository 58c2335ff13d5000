"""XGrad-CAM: fixtures A and C of methods.md, its sum, empty channels, and pytorch-grad-cam."""

import torch

from cam_toys import FIXTURE_A, FIXTURE_C, IMAGE_A, IMAGE_C, assert_parity
from toys import batch_of, explain, explained, model_of, noise_batch, small_cnn


def test_fixture_a():
    assert explain(FIXTURE_A, batch_of(IMAGE_A), "xgrad_cam(relu=none)")[0, 0].tolist() == [[-0.75, 0.5], [0.75, 1]]


def test_fixture_c():
    assert explain(FIXTURE_C, batch_of(IMAGE_C), "xgrad_cam")[0, 0].tolist() == [[0.5, 0.25], [0, 0.25]]


def test_a_channel_that_sums_to_0_has_no_weight():
    image = torch.tensor([[[[1.0, -1.0], [2.0, -2.0]]]])
    found = explained(FIXTURE_C, batch_of(image), "xgrad_cam")
    assert found.maps.abs().max() == 0
    assert found.flags["dead_cam"].tolist() == [True]
    assert found.residual.tolist() == [-3.0]


def test_it_sums_to_what_hires_cam_sums_to():
    """sum u_k S_k = sum g A, in float64."""
    batch = noise_batch()
    batch = type(batch)(batch.images.double(), batch.targets, batch.seeds)
    model = model_of(small_cnn().double())
    one, two = (explained(model, batch, name) for name in ("xgrad_cam", "hires_cam"))
    torch.testing.assert_close(one.residual, two.residual, rtol=0, atol=1e-13)
    assert torch.equal(one.promised, two.promised)
    assert not torch.allclose(one.maps, two.maps)


def test_parity_with_pytorch_grad_cam(complex_model, complex_samples):
    """1.5.7 adds 1e-7 to S_k; scaled as theirs, 2e-5."""
    maps = explain(complex_model, complex_samples.batch, "xgrad_cam")
    assert_parity("XGradCAM", maps, complex_model, complex_samples.batch)

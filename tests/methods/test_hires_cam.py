"""HiResCAM: fixtures A and C of methods.md, its sum and the later biases, and pytorch-grad-cam."""

import pytest
import torch

from cam_toys import FIXTURE_A, FIXTURE_C, IMAGE_A, IMAGE_C, assert_parity, gap_cnn
from toys import batch_of, explain, explained, model_of, noise_batch, small_cnn


def test_fixture_a():
    found = explained(FIXTURE_A, batch_of(IMAGE_A), "hires_cam(relu=none)")
    assert found.maps[0, 0].tolist() == [[-0.75, 0.5], [0.75, 1]]
    assert found.promised.tolist() == [1.5]
    assert found.residual.tolist() == [0]
    assert found.flags["loose"].tolist() == [False]


def test_fixture_c():
    assert explain(FIXTURE_C, batch_of(IMAGE_C), "hires_cam(relu=none)")[0, 0].tolist() == [[2, 0], [0, -1]]
    assert explain(FIXTURE_C, batch_of(IMAGE_C), "hires_cam")[0, 0].tolist() == [[2, 0], [0, 0]]


@pytest.mark.parametrize("make", [gap_cnn, small_cnn])
def test_what_is_missing_from_the_score_is_the_bias_behind_the_layer(make):
    model, batch = model_of(make()), noise_batch()
    found = explained(model, batch, "hires_cam")
    score = model.logits(batch.images).gather(1, batch.targets[:, None])[:, 0].double()
    bias = model.net[-1].bias[batch.targets].double()
    assert found.residual.dtype == torch.float64
    torch.testing.assert_close(found.promised, score)
    torch.testing.assert_close(found.residual, -bias, rtol=0, atol=1e-6)
    assert torch.equal(found.flags["loose"], bias.abs() > 0.01 * score.abs())


def test_without_that_bias_it_sums_to_the_score():
    found = explained(model_of(gap_cnn(bias=False).double()), batch_of(noise_batch().images.double()), "hires_cam")
    assert found.promised.abs().max() > 0
    torch.testing.assert_close(found.residual, torch.zeros_like(found.residual), rtol=0, atol=1e-12)
    assert not found.flags["loose"].any()


def test_parity_with_pytorch_grad_cam(complex_model, complex_samples):
    """1.5.7, scaled as theirs; 2e-5."""
    maps = explain(complex_model, complex_samples.batch, "hires_cam")
    assert_parity("HiResCAM", maps, complex_model, complex_samples.batch)

"""Input: methods.md 9.3."""

import torch

from toys import batch_of, explain, fixture_l, model_of, noise_batch

PIXELS = noise_batch().images


def test_it_is_the_image_where_the_model_takes_pixels():
    assert torch.equal(explain(model_of(fixture_l()), batch_of(PIXELS), "input"), PIXELS)


def test_it_is_in_pixels_where_the_model_does_not():
    model = model_of(fixture_l(), mean=(0.5, 0.25, 0.1), std=(0.5, 0.25, 0.2))
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (model.mean, model.std))
    torch.testing.assert_close(explain(model, batch_of((PIXELS - mean) / std), "input"), PIXELS)

"""The controls that look at nothing: all_ones, fake_cam, random and oracle."""

import pytest
import torch

from saliometer import registry
from saliometer.seeds import uniform
from saliometer.types import Batch
from toys import batch_of, explain, fixture_l, model_of, seeds_of

PLAIN = model_of(fixture_l())


def test_fake_cam_marks_everything_but_one_corner():
    assert explain(PLAIN, batch_of(torch.zeros(1, 3, 2, 2)), "fake_cam")[0, 0].tolist() == [[0, 1], [1, 1]]


def test_all_ones_is_a_mask_that_hides_nothing_and_comes_along_in_audits_alone():
    assert (explain(PLAIN, batch_of(torch.zeros(2, 3, 4, 4)), "all_ones") == 1).all()
    facts = registry.methods["all_ones"].facts
    assert facts.mask
    assert facts.control
    assert not facts.usual
    assert [name for name, entry in registry.methods.items() if entry.facts.mask] == ["all_ones"]


def test_random_is_uniform_noise_of_each_images_seed():
    batch = batch_of(torch.zeros(4, 3, 64, 64))
    maps = explain(PLAIN, batch, "random")
    assert torch.equal(maps, uniform(batch.seeds, "random", 1, 64, 64))
    assert maps.mean((1, 2, 3)).tolist() == pytest.approx([0.5] * 4, abs=4 / (12 * 4096) ** 0.5)
    assert maps.var((1, 2, 3)).tolist() == pytest.approx([1 / 12] * 4, rel=0.05)


def test_random_can_have_a_value_for_each_channel():
    maps = explain(PLAIN, batch_of(torch.zeros(1, 3, 8, 8)), "random(channels=3)")
    assert maps.shape == (1, 3, 8, 8)
    assert len(maps.unique()) == 192
    with pytest.raises(AssertionError, match="random: channels=0, wanted 1 or more"):
        explain(PLAIN, batch_of(torch.zeros(1, 3, 8, 8)), "random(channels=0)")


def test_random_knows_neither_image_nor_target():
    seeds = seeds_of(3)
    one = Batch(torch.zeros(3, 3, 8, 8), torch.zeros(3, dtype=torch.int64), seeds)
    other = Batch(torch.ones(3, 3, 8, 8), torch.ones(3, dtype=torch.int64), seeds)
    assert torch.equal(explain(PLAIN, one, "random"), explain(PLAIN, other, "random"))


def test_oracle_is_the_truth_it_is_handed():
    truth = torch.rand(2, 8, 8) > 0.5
    maps = explain(PLAIN, batch_of(torch.zeros(2, 3, 8, 8)), "oracle", truth=truth)
    assert maps.dtype == torch.float32
    assert torch.equal(maps[:, 0].bool(), truth)
    assert maps.unique().tolist() == [0, 1]


def test_oracle_may_have_noise_of_its_own():
    truth = torch.rand(2, 8, 8, generator=torch.Generator().manual_seed(0)) > 0.5
    batch = batch_of(torch.zeros(2, 3, 8, 8))
    added = explain(PLAIN, batch, "oracle(noise=0.1)", truth=truth) - truth[:, None].float()
    assert added.min() >= 0
    assert 0.09 < added.max() < 0.1
    assert len(added.unique()) > 100  # of 128 places
    with pytest.raises(AssertionError, match="oracle: noise=-1"):
        explain(PLAIN, batch, "oracle(noise=-1)", truth=truth)


def test_oracle_without_a_truth_is_refused():
    with pytest.raises(AssertionError, match="method 'oracle' shows the truth itself: it needs a task that knows it"):
        explain(PLAIN, batch_of(torch.zeros(2, 3, 8, 8)), "oracle")

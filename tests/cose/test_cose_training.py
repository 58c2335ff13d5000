"""Operations as a training draws them: how often, for whom, and the same whatever the batches are."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cose_toys import pictures
from saliometer.cose.operations import OPERATIONS, applied
from saliometer.cose.training import NAMES, blocks, drawn, jittered, steps_of, transformed

CPU = torch.device("cpu")


def test_operations_bins_and_signs_come_equally_often():
    """28,000 draws; 5 standard errors of a share p are 5 sqrt(p (1 - p) / n)."""
    operations, bins = drawn(3, 0, torch.arange(28_000))
    shares = operations.bincount(minlength=14) / 28_000
    assert len(NAMES) == 14
    assert (shares - 1 / 14).abs().max() < 5 * (1 / 14 * 13 / 14 / 28_000) ** 0.5
    sizes = bins.abs().bincount(minlength=31) / 28_000
    assert (sizes - 1 / 31).abs().max() < 5 * (1 / 31 * 30 / 31 / 28_000) ** 0.5
    assert abs((bins > 0).sum() / (bins != 0).sum() - 0.5) < 0.016
    assert torch.corrcoef(torch.stack((operations.double(), bins.double())))[0, 1].abs() < 0.03


def test_draws_are_the_images_own_and_change_with_epoch_and_seed():
    everyone = drawn(0, 4, torch.arange(50))
    some = drawn(0, 4, torch.tensor([7, 3]))
    for one, other in zip(everyone, some, strict=True):
        assert torch.equal(one[[7, 3]], other)
    assert not torch.equal(everyone[0], drawn(0, 5, torch.arange(50))[0])
    assert not torch.equal(everyone[0], drawn(1, 4, torch.arange(50))[0])


@given(count=st.integers(2, 60), batch=st.integers(2, 9), seed=st.integers(0, 9))
def test_an_epoch_shows_every_image_once_but_a_single_last_one(count, batch, seed):
    found = list(blocks(seed, 1, count, batch, CPU))
    order = torch.cat([block.order for block in found]).tolist()
    left_out = count % batch == 1 and count > batch
    assert len(order) == len(set(order)) == count - left_out
    assert sum(-(-len(block.order) // batch) for block in found) == steps_of(count, batch)
    for block in found:
        assert torch.equal(block.by_operation[block.back], block.order)


@pytest.mark.parametrize("batch", [3, 5, 40])
def test_each_image_is_changed_by_its_own_operation_as_if_it_were_alone(batch):
    levels = pictures(40, 3, 16, 16)
    operations, bins = drawn(0, 2, torch.arange(40))
    assert len(operations.unique()) > 9
    seen = 0
    for block in blocks(0, 2, 40, batch, CPU):
        found = transformed(levels[block.by_operation], block)
        for number, image in zip(block.order.tolist(), found, strict=True):
            name = NAMES[operations[number]]
            alone = levels[number][None]
            wanted = alone if name == "identity" else applied(name, alone, bins[number : number + 1])
            assert torch.equal(image, wanted[0]), name
            seen += 1
    assert seen == 40 - (40 % batch == 1)


def test_every_operation_is_one_of_cose():
    assert set(NAMES) - {"identity"} == set(OPERATIONS)


def test_jitter_moves_by_an_eighth_at_most_and_mirrors_half():
    levels = torch.zeros(400, 3, 16, 16, dtype=torch.uint8)
    levels[:, :, 8, 7] = 255  # one white pixel, a column left of the middle
    found = jittered(levels, 0, 0, torch.arange(400))
    where = found[:, 0].nonzero()
    assert len(where) == 400  # it is never lost, nor doubled
    rows, columns = where[:, 1], where[:, 2]
    assert sorted(rows.unique().tolist()) == [6, 7, 8, 9, 10]
    assert sorted(columns.unique().tolist()) == [5, 6, 7, 8, 9, 10]  # 5 to 9, and mirrored 6 to 10
    assert (columns == 5).sum() < 400 / 5
    assert torch.equal(jittered(levels[[9]], 0, 0, torch.tensor([9])), found[[9]])
    assert not torch.equal(jittered(levels, 0, 1, torch.arange(400)), found)

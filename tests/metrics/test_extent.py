"""Extent: areas and pieces counted by hand."""

import pytest
import torch

from battery_toys import judged, photos
from toys import small_cnn

SIDE = 8


def extent(*maps: torch.Tensor) -> tuple[list[float], list[float], list[str], int]:
    found, notes, cost = judged("extent", small_cnn(), torch.stack(maps), photos(torch.rand(len(maps), 3, SIDE, SIDE)))
    return found["extent"].tolist(), found["extent.largest"].tolist(), notes, cost.passes


def drawn(*places: tuple[slice | int, slice | int]) -> torch.Tensor:
    found = torch.zeros(SIDE, SIDE)
    for place in places:
        found[place] = 1
    return found


def test_a_square_counts_its_pixels_in_one_piece_without_a_pass():
    area, largest, _, passes = extent(drawn((slice(2, 5), slice(1, 5))))
    assert area == largest == [12 / 64]
    assert passes == 0


def test_pieces_that_touch_at_corners_are_one():
    diagonal = drawn(*((i, i) for i in range(SIDE)))
    apart = drawn((slice(0, 2), slice(0, 3)), (slice(3, 4), slice(0, 4)))  # a row lies between
    touching = drawn((slice(0, 2), slice(0, 3)), (slice(2, 3), slice(3, 7)))
    area, largest, *_ = extent(diagonal, apart, touching)
    assert area == [8 / 64, 10 / 64, 10 / 64]
    assert largest == [8 / 64, 6 / 64, 10 / 64]


def test_half_of_the_maximum_counts_and_less_does_not():
    values = torch.zeros(SIDE, SIDE)
    values[0, :4] = torch.tensor([1.0, 0.75, 0.5, 0.4375])
    assert extent(values)[0] == [3 / 64]
    assert extent(7 * values)[0] == [3 / 64]
    assert extent(values + 3)[0] == [3 / 64]  # of the scaled map
    assert extent(-values)[0] == [3 / 64]  # of absolute values


def test_fake_cam_marks_all_but_one_pixel():
    fake = torch.ones(SIDE, SIDE)
    fake[0, 0] = 0
    area, largest, *_ = extent(fake)
    assert area == largest == [63 / 64]


def test_a_chessboard_is_one_piece_by_corners():
    board = (torch.arange(SIDE)[:, None] + torch.arange(SIDE)) % 2
    area, largest, *_ = extent(board.float())
    assert area == largest == [0.5]


def test_a_single_pixel_and_maps_that_cannot_be_scaled():
    nan = torch.full((SIDE, SIDE), float("nan"))
    area, largest, notes, _ = extent(drawn((3, 3)), torch.ones(SIDE, SIDE), torch.zeros(SIDE, SIDE), nan)
    assert area[0] == largest[0] == 1 / 64
    assert torch.tensor(area[1:] + largest[1:]).isnan().all()
    assert all(notes[1:])


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_piece_agrees_with_a_flood_fill(seed):
    values = torch.rand(SIDE, SIDE, generator=torch.Generator().manual_seed(seed))
    values[0, 0], values[7, 7] = 0, 1
    strong = {(r, c) for r in range(SIDE) for c in range(SIDE) if values[r, c] >= 0.5}
    best, left = 0, set(strong)
    while left:
        edge, size = [left.pop()], 0
        while edge:
            r, c = edge.pop()
            size += 1
            near = {(r + i, c + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
            left -= near
            edge += near
        best = max(best, size)
    area, largest, *_ = extent(values)
    assert area == [len(strong) / 64]
    assert largest == [best / 64]

"""The 13 operations, beside PIL and torchvision on the same pixels."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter
from torch import Tensor
from torchvision.transforms import functional as T

from cose_toys import pictures
from saliometer.cose.operations import BINS, GEOMETRIC, OPERATIONS, applied, shifts

SIDES = [(32, 32), (33, 33), (224, 224), (225, 225), (40, 57)]
BINS_TRIED = (-30, -21, -20, -7, -1, 1, 2, 13, 15, 20, 29, 30)
PEERS = {
    "rotate": lambda image, m: T.rotate(image, m),
    "brightness": lambda image, m: T.adjust_brightness(image, 1 + m),
    "color": lambda image, m: T.adjust_saturation(image, 1 + m),
    "contrast": lambda image, m: T.adjust_contrast(image, 1 + m),
    "sharpness": lambda image, m: T.adjust_sharpness(image, 1 + m),
    "flip_lr": lambda image, _: T.hflip(image),
    "flip_ud": lambda image, _: T.vflip(image),
    "auto_contrast": lambda image, _: T.autocontrast(image),
    "equalize": lambda image, _: T.equalize(image),
    "blur": lambda image, _: image.filter(ImageFilter.BLUR),
    "smooth": lambda image, _: image.filter(ImageFilter.SMOOTH),
}


def as_picture(image: Tensor) -> Image.Image:
    array = image.permute(1, 2, 0).numpy()
    return Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)


def as_tensor(picture: Image.Image) -> Tensor:
    array = torch.from_numpy(np.array(picture))
    return array[None] if array.ndim == 2 else array.permute(2, 0, 1)


def theirs(name: str, image: Tensor, number: int) -> Tensor:
    return as_tensor(PEERS[name](as_picture(image), OPERATIONS[name].magnitude(number)))


def most_apart(one: Tensor, other: Tensor) -> int:
    return int((one.int() - other.int()).abs().max())


def test_there_are_five_geometric_and_eight_photometric_ones():
    assert len(OPERATIONS) == 13
    assert sum(one.kind == GEOMETRIC for one in OPERATIONS.values()) == 5
    assert sum(one.most > 0 for one in OPERATIONS.values()) == 7


@pytest.mark.parametrize(("height", "width"), SIDES)
@pytest.mark.parametrize("name", sorted(PEERS))
def test_each_image_of_a_batch_is_changed_as_by_pil(name, height, width):
    bins = torch.tensor(BINS_TRIED) if OPERATIONS[name].most else torch.zeros(3, dtype=torch.int64)
    images = pictures(len(bins), 3, height, width)
    found = applied(name, images, bins)
    assert found.dtype == torch.uint8
    for image, number, ours in zip(images, bins.tolist(), found, strict=True):
        assert most_apart(ours, theirs(name, image, number)) == 0, number


@pytest.mark.parametrize("name", sorted(set(PEERS) - {"color"}))  # torchvision's refuses grey pictures
def test_grey_images_are_changed_as_by_pil(name):
    bins = torch.tensor([-30, -4, 11]) if OPERATIONS[name].most else torch.zeros(3, dtype=torch.int64)
    images = pictures(3, 1, 31, 44)
    for image, number, ours in zip(images, bins.tolist(), applied(name, images, bins), strict=True):
        assert most_apart(ours, theirs(name, image, number)) == 0, number


def test_grey_images_have_no_colour_to_change():
    images = pictures(2, 1, 16, 16)
    assert torch.equal(applied("color", images, torch.tensor([-30, 30])), images)


@pytest.mark.parametrize("number", [-30, -16, -1, 1, 15, 29, 30])
@pytest.mark.parametrize(("name", "place"), [("translate_x", 0), ("translate_y", 1)])
def test_translations_are_torchvisions_at_224_and_grow_with_the_side(name, place, number):
    magnitude = OPERATIONS[name].magnitude(number)
    for side in (224, 64, 225):
        image = pictures(1, 3, side, side)
        by = [0, 0]
        by[place] = int(magnitude) if side == 224 else int(magnitude * side / 224)
        wanted = as_tensor(T.affine(as_picture(image[0]), 0.0, by, 1.0, [0.0, 0.0]))
        assert torch.equal(applied(name, image, torch.tensor([number]))[0], wanted)


def test_translations_reach_one_seventh_of_the_side_and_small_ones_stay_in_place():
    every = torch.arange(1, BINS + 1)
    for side in (32, 64, 224, 448):
        assert int(shifts(every, side)[-1]) == int(side / 7)
    assert (shifts(every, 64) == 0).nonzero().flatten().tolist() == [0, 1, 2]  # bins 1-3
    assert (shifts(every, 32) == 0).nonzero().flatten().tolist() == [0, 1, 2, 3, 4, 5]  # bins 1-6
    assert torch.equal(shifts(-every, 64), -shifts(every, 64))


def test_an_image_of_one_level_and_one_of_two_are_left_to_pil_too():
    flat, two = torch.full((1, 3, 12, 12), 90, dtype=torch.uint8), torch.full((1, 3, 12, 12), 7, dtype=torch.uint8)
    two[..., ::2] = 251
    for name in ("auto_contrast", "equalize"):
        for image in (flat, two):
            assert torch.equal(applied(name, image, torch.zeros(1, dtype=torch.int64))[0], theirs(name, image[0], 0))


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_an_image_is_changed_alike_alone_and_in_a_batch(name):
    images, bins = pictures(4, 3, 20, 21), torch.tensor([-30, 9, -3, 22])
    bins = bins if OPERATIONS[name].most else bins * 0
    together = applied(name, images, bins)
    alone = [applied(name, images[i : i + 1], bins[i : i + 1]) for i in range(4)]
    assert torch.equal(together, torch.cat(alone))


def test_labels_say_bin_magnitude_and_the_side_of_a_translation():
    assert OPERATIONS["rotate"].label(-3, (3, 64, 48)) == "rotate(bin=-3,magnitude=-13.5)"
    assert OPERATIONS["translate_x"].label(30, (3, 64, 48)) == "translate_x(bin=30,magnitude=32,side=48)"
    assert OPERATIONS["translate_y"].label(30, (3, 64, 48)) == "translate_y(bin=30,magnitude=32,side=64)"
    assert OPERATIONS["blur"].label(0, (3, 64, 48)) == "blur"


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (torch.zeros(1, 3, 4, 9, dtype=torch.uint8), "images of 4x9 are too small for COSE: wanted 5 pixels a side"),
        (torch.zeros(1, 3, 9, 9), "torch.float32 of shape .* wanted uint8"),
        (torch.zeros(1, 2, 9, 9, dtype=torch.uint8), "wanted uint8 \\(N, 1 or 3, H, W\\)"),
    ],
)
def test_what_cannot_be_transformed_is_refused(images, said):
    with pytest.raises(ValueError, match=said):
        applied("blur", images, torch.zeros(1, dtype=torch.int64))

"""Where pictures of ten classes come from, and what is said where they do not."""

import os
import struct
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from saliometer.seeds import forks
from saliometer.tasks._bank import PAPER, bank, digit_bank

DATA = Path(os.environ.get("SALIOMETER_DATA") or Path(__file__).parents[3] / "shared" / "data")


def picture(level: int, side: int = 64, mode: str = "RGB") -> bytes:
    data = BytesIO()
    Image.new(mode, (side, side), level if mode == "L" else (level, 0, 255 - level)).save(data, "PNG")
    return data.getvalue()


def folder(place: Path, classes: list[str], side: int = 64, mode: str = "RGB", each: int = 2) -> Path:
    for split in ("train", "val"):
        for number, name in enumerate(classes):
            (place / split / name).mkdir(parents=True)
            for copy in range(each):
                (place / split / name / f"{copy}.png").write_bytes(picture(20 * number + copy, side, mode))
    return place


def arrays(place: Path, x: np.ndarray, y: np.ndarray) -> Path:
    place.mkdir(exist_ok=True)
    for split in ("train", "test"):
        np.savez(place / f"some_{split}.npz", x=x, y=y)
    return place


def test_scikit_learns_digits_are_framed_as_mnists_and_split_in_two():
    train, test = (digit_bank("sklearn", split) for split in ("train", "test"))
    assert (len(train.labels), len(test.labels)) == (1438, 359)
    assert train.name == "sklearn"
    assert train.pixels.shape[1:] == (1, 28, 28)
    assert not train.pixels[:, :, :4].any()
    assert not train.pixels[:, :, :, -4:].any()
    seen = {one.tobytes() for one in train.pixels.numpy()}
    assert len(seen & {one.tobytes() for one in test.pixels.numpy()}) == 0
    assert train.digest != test.digest


def test_every_picture_of_a_class_comes_once_before_any_comes_again():
    held = digit_bank("sklearn", "test")
    many = int((held.labels == 3).sum())
    threes = torch.full((3 * many,), 3)
    numbers = torch.arange(3 * many)
    found = held.picked(threes, numbers, forks(0, numbers), seed=1)
    wanted = {one.tobytes() for one in held.pixels[held.labels == 3].numpy()}
    assert {(one * 255).round().to(torch.uint8).numpy().tobytes() for one in found[:many]} == wanted
    assert {(one * 255).round().to(torch.uint8).numpy().tobytes() for one in found[many:]} <= wanted
    other = held.picked(threes, numbers, forks(0, numbers), seed=2)
    assert not torch.equal(found, other)


def test_mnist_is_read_from_a_torchvision_root(tmp_path):
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    images = np.arange(20 * 784, dtype=np.int64).reshape(20, 28, 28).astype(np.uint8)
    labels = (np.arange(20) % 10).astype(np.uint8)
    for split, shift in (("train", 0), ("t10k", 1)):
        head = struct.pack(">4B3i", 0, 0, 8, 3, 20, 28, 28)
        (raw / f"{split}-images-idx3-ubyte").write_bytes(head + (images + shift).tobytes())
        (raw / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">4Bi", 0, 0, 8, 1, 20) + labels.tobytes())
    train, test = (digit_bank(f"mnist:{tmp_path}", split) for split in ("train", "test"))
    assert train.name == "mnist"
    assert torch.equal(train.pixels[:, 0], torch.from_numpy(images))
    assert torch.equal(test.pixels[:, 0], torch.from_numpy(images + 1))
    assert train.labels.tolist() == labels.tolist()
    (raw / "train-images-idx3-ubyte").write_bytes(b"cut")
    with pytest.raises(ValueError, match=r"torchvision reads no MNIST at .*\(\w+\): wanted a folder"):
        digit_bank(f"mnist:{tmp_path}/", "train")


def test_arrays_of_digits_and_of_colour_pictures(tmp_path):
    labels = np.arange(20) % 10
    grey = arrays(tmp_path / "digits", np.zeros((20, 28, 28), np.uint8), labels)
    assert digit_bank(str(grey), "train").name == "digits"
    np.savez(grey / "more_train.npz", x=np.ones((10, 28, 28), np.uint8), y=np.arange(10))
    assert len(bank(str(grey) + "/", "train").labels) == 30
    colour = arrays(tmp_path / "colour", np.zeros((20, 32, 32, 3), np.uint8), labels)
    assert bank(str(colour), "test").pixels.shape == (20, 3, 32, 32)
    np.savez(colour / "trainval.npz", x=np.ones((10, 32, 32, 3), np.uint8), y=np.arange(10))
    parts = {split: len(bank(str(colour) + "/", split).labels) for split in ("train", "test")}
    assert parts == {"train": 30, "test": 20}  # no picture is in both


def test_a_folder_for_each_class_and_a_zip_of_it_are_the_same(tmp_path):
    names = [f"kind{n}" for n in range(10)]
    place = folder(tmp_path / "photos", names)
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as file:
        for one in sorted(place.rglob("*.png")):
            file.write(one, one.relative_to(tmp_path))  # below a folder of its own
        file.writestr("__MACOSX/photos/val/kind0/._0.png", b"what macOS keeps beside a file")
    unpacked, packed = (bank(str(tmp_path / name), "test") for name in ("photos", "photos.zip"))
    assert unpacked.digest == packed.digest
    assert unpacked.name == packed.name == "photos"
    assert unpacked.classes == tuple(names)
    assert unpacked.pixels.shape == (20, 3, 64, 64)
    assert unpacked.pixels[::2, 0, 0, 0].tolist() == [20 * n for n in range(10)]


def test_the_papers_classes_are_taken_from_among_others_in_its_order(tmp_path):
    place = folder(tmp_path / "tiny", [*sorted(PAPER), "n00000001", "n99999999"], each=1)
    held = bank(str(place), "train")
    assert held.classes == PAPER
    assert held.pixels[0, 0, 0, 0] == 20 * sorted(PAPER).index(PAPER[0])


def test_tiny_imagenet_is_read_as_it_is_released(tmp_path):
    """Pictures lie one folder deeper, val/ has a list, and test/ has no labels."""
    for number, name in enumerate(PAPER):
        (tmp_path / "train" / name / "images").mkdir(parents=True)
        (tmp_path / "train" / name / "images" / f"{name}_0.JPEG").write_bytes(picture(20 * number))
    for split in ("val", "test"):
        (tmp_path / split / "images").mkdir(parents=True)
        for number in range(10):
            (tmp_path / split / "images" / f"{split}_{number}.JPEG").write_bytes(picture(20 * number + 1))
    lines = [f"val_{number}.JPEG\t{name}\t0\t0\t63\t63\n" for number, name in enumerate(PAPER)]
    (tmp_path / "val" / "val_annotations.txt").write_text("".join(lines))
    train, test = (bank(str(tmp_path), split) for split in ("train", "test"))
    assert train.classes == test.classes == PAPER
    assert train.pixels[:, 0, 0, 0].tolist() == [20 * n for n in range(10)]
    assert test.pixels[:, 0, 0, 0].tolist() == [20 * n + 1 for n in range(10)]


def test_folders_named_0_to_9_are_digits_and_other_sizes_are_made_to_fit(tmp_path):
    place = folder(tmp_path / "drawn", list("0123456789"), side=40, mode="L")
    assert digit_bank(str(place), "test").pixels.shape == (20, 1, 28, 28)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda place: "nowhere", "there are no pictures at 'nowhere': wanted 'sklearn', 'mnist:ROOT'"),
        (lambda place: f"mnist:{place}", "torchvision reads no MNIST at .* nothing is downloaded"),
        (lambda place: place, "no pictures of the train part in .* files in train/CLASS/: wanted .* 'mnist:ROOT'"),
        (lambda place: folder(place, ["a", "b"]), "has 2 classes with pictures in its train part: wanted ten"),
        (lambda place: folder(place, [f"c{n:02d}" for n in range(11)]), "has 11 classes .* wanted ten"),
        (
            lambda place: arrays(place, np.zeros((9, 28, 28), np.uint8), np.arange(9)),
            "has 9 classes with pictures in its train part",
        ),
        (lambda place: arrays(place, np.zeros((10, 28, 28)), np.arange(10)), "type float64: wanted uint8"),
        (lambda place: arrays(place, np.zeros((10, 28), np.uint8), np.arange(10)), r"x of shape \(10, 28\)"),
        (lambda place: arrays(place, np.zeros((10, 28, 28), np.uint8), np.arange(10) + 1), "wanted a class of 0 to 9"),
        (lambda place: arrays(place, np.zeros((10, 28, 28), np.uint8), np.arange(9)), "wanted a class of 0 to 9"),
    ],
)  # fmt: skip
def test_what_holds_no_ten_classes_is_refused_in_words(tmp_path, spoil, message):
    with pytest.raises(ValueError, match=message):
        bank(str(spoil(tmp_path)), "train")


def test_files_that_are_no_pictures_arrays_or_zips_are_named(tmp_path):
    place = folder(tmp_path / "photos", [f"kind{n}" for n in range(10)], each=1)
    (place / "train" / "kind3" / "0.png").write_bytes(b"not a picture")
    with pytest.raises(ValueError, match=r"'train/kind3/0.png' in .* is no readable picture"):
        bank(str(place), "train")
    (tmp_path / "broken.zip").write_bytes(b"no zip")
    with pytest.raises(ValueError, match="is no readable zip"):
        bank(str(tmp_path / "broken.zip"), "train")
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "train.npz").write_bytes(b"no arrays")
    with pytest.raises(ValueError, match=r"wanted an .npz with x and y"):
        bank(str(tmp_path / "arrays"), "train")
    np.savez(tmp_path / "arrays" / "train.npz", pictures=np.zeros(3))
    with pytest.raises(ValueError, match=r"wanted an .npz with x and y"):
        bank(str(tmp_path / "arrays"), "train")


def test_a_folder_of_photographs_holds_no_digits(tmp_path):
    place = folder(tmp_path / "photos", [f"kind{n}" for n in range(10)], each=1)
    with pytest.raises(ValueError, match=r"holds no digits but pictures of 3 x 64 x 64 .* wanted 1 x 28 x 28"):
        digit_bank(str(place), "train")


def test_parts_of_different_sizes_do_not_go_together(tmp_path):
    place = arrays(tmp_path / "mixed", np.zeros((10, 28, 28), np.uint8), np.arange(10))
    np.savez(place / "b_train.npz", x=np.zeros((10, 20, 20), np.uint8), y=np.arange(10))
    with pytest.raises(ValueError, match="different sizes or classes"):
        bank(str(place), "train")


@pytest.mark.parametrize(
    ("place", "shape"),
    [
        ("mnist", (20000, 1, 28, 28)),
        ("cifar10", (20000, 3, 32, 32)),
        ("tiny_imagenet10/tiny_imagenet10.zip", (2800, 3, 64, 64)),
    ],
)
def test_real_data_is_read(place, shape):
    if not (DATA / place).exists():
        pytest.skip(f"no {place} here: set SALIOMETER_DATA")
    held = bank(str(DATA / place), "train")
    assert held.pixels.shape == shape
    assert len(held.classes) == 10
    assert held.classes == PAPER or "tiny" not in place

"""A user's pictures: every kind of file and place, what is left out, what is refused, and the models' view of them."""

import gzip
import os
import pickle
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms

from saliometer.images import Pictures, Preprocessing, preprocess, read_images

DATA = Path(os.environ.get("SALIOMETER_DATA") or Path(__file__).parents[2] / "shared" / "data")


def noise(width: int = 8, height: int = 6, channels: int = 3, seed: int = 0) -> np.ndarray:
    shape = (height, width) if channels == 1 else (height, width, channels)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def put(path: Path, pixels: np.ndarray | None = None, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise() if pixels is None else pixels).save(path, **options)
    return path


def only(folder: Path) -> np.ndarray:
    """The pixels of a folder's only picture."""
    pictures = read_images(folder)
    assert len(pictures) == 1
    assert pictures.picture(0).mode == "RGB"
    return np.asarray(pictures.picture(0))


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# Kinds of files


def test_a_16_bit_grey_png_is_scaled_and_not_cut_off(tmp_path):
    levels = np.array([[0, 255, 256, 257], [32768, 65278, 65535, 1000]], np.uint16)
    Image.fromarray(levels).save(tmp_path / "deep.png")
    found = only(tmp_path)
    assert np.array_equal(found[..., 0], np.rint(levels / 257).astype(np.uint8))
    assert (found[..., 0] == found[..., 2]).all()


def test_deep_tiffs_of_whole_and_real_numbers(tmp_path):
    Image.fromarray(np.array([[0, 65535, 257 * 7]], np.int32)).save(tmp_path / "a.tif")
    Image.fromarray(np.array([[0, 1, 0.2]], np.float32)).save(tmp_path / "b.tif")
    Image.fromarray(np.array([[0, 70000, 1]], np.int32)).save(tmp_path / "c.tif")
    Image.fromarray(np.array([[-1, 1, np.nan]], np.float32)).save(tmp_path / "d.tif")
    pictures = read_images(tmp_path)
    assert np.asarray(pictures.picture(0))[0, :, 0].tolist() == [0, 255, 7]
    assert np.asarray(pictures.picture(1))[0, :, 1].tolist() == [0, 255, 51]
    assert set(pictures.skipped) == {"c.tif", "d.tif"}
    assert "wanted 0 to 65535" in pictures.skipped["c.tif"]


@pytest.mark.parametrize("turn", range(1, 9))
def test_a_photograph_is_turned_upright(tmp_path, turn):
    upright = noise()
    stored = {
        1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1], 5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, 1), 7: upright[::-1, ::-1].transpose(1, 0, 2), 8: np.rot90(upright, -1),
    }[turn]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = turn
    put(tmp_path / "a.png", np.ascontiguousarray(stored), exif=exif)
    assert np.array_equal(only(tmp_path), upright)


def test_what_is_transparent_shows_black(tmp_path):
    pixels = noise(channels=4)
    pixels[..., 3] = 0
    pixels[0, 0] = (200, 100, 50, 255)
    pixels[0, 1] = (200, 100, 50, 128)
    put(tmp_path / "a.png", pixels)
    found = only(tmp_path)
    assert found[0, 0].tolist() == [200, 100, 50]
    assert np.abs(found[0, 1] - np.array([100, 50, 25])).max() <= 1
    assert (found[1:] == 0).all()


def test_grey_with_alpha_and_a_transparent_palette(tmp_path):
    put(tmp_path / "a.png", np.dstack([np.full((2, 2), 90, np.uint8), np.array([[255, 0], [255, 0]], np.uint8)]))
    picture = Image.new("P", (2, 1))
    picture.putpalette([10, 20, 30, 200, 210, 220])
    picture.putpixel((1, 0), 1)
    picture.save(tmp_path / "b.png", transparency=0)
    pictures = read_images(tmp_path)
    assert np.asarray(pictures.picture(0))[0].tolist() == [[90, 90, 90], [0, 0, 0]]
    assert np.asarray(pictures.picture(1))[0].tolist() == [[0, 0, 0], [200, 210, 220]]


def test_a_palette_grey_bilevel_and_the_first_frame_of_a_film(tmp_path):
    colours = np.zeros((4, 4, 3), np.uint8)
    colours[:2] = (250, 10, 60)
    Image.fromarray(colours).convert("P", palette=Image.Palette.ADAPTIVE).save(tmp_path / "a.png")
    put(tmp_path / "b.png", noise(channels=1))
    Image.fromarray(noise(channels=1) > 99).save(tmp_path / "c.png")
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue", "lime")]
    frames[0].save(tmp_path / "d.gif", save_all=True, append_images=frames[1:])
    pictures = read_images(tmp_path)
    assert np.array_equal(np.asarray(pictures.picture(0)), colours)
    assert np.array_equal(np.asarray(pictures.picture(1))[..., 1], noise(channels=1))
    assert np.array_equal(np.asarray(pictures.picture(2))[..., 0], np.where(noise(channels=1) > 99, 255, 0))
    assert np.asarray(pictures.picture(3))[0, 0].tolist() == [255, 0, 0]


def test_four_inks_become_three_lights(tmp_path):
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(tmp_path / "red.jpg", quality=95)
    red = only(tmp_path).astype(int)
    assert (red[..., 0] > 240).all()
    assert (red[..., 1:] < 15).all()


# What cannot be read


def test_unreadable_files_are_left_out_with_names_and_reasons(tmp_path):
    put(tmp_path / "good.png")
    (tmp_path / "empty.jpg").touch()
    write(tmp_path / "text.jpg", "no picture")
    whole = put(tmp_path / "cut.jpg", noise(200, 200)).read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    write(tmp_path / "notes.txt", "not looked at")
    write(tmp_path / ".hidden.png", "not looked at")
    pictures = read_images(tmp_path)
    assert pictures.names == ("good.png",)
    assert list(pictures.skipped) == ["cut.jpg", "empty.jpg", "text.jpg"]
    assert pictures.skipped["empty.jpg"] == "the file is empty"
    assert pictures.skipped["text.jpg"] == "not a picture in a known format"
    assert "truncated" in pictures.skipped["cut.jpg"]


def test_a_link_that_leads_nowhere_is_left_out_and_named(tmp_path):
    put(tmp_path / "good.png")
    (tmp_path / "gone.png").symlink_to("nowhere.png")
    (tmp_path / "ring.png").symlink_to("ring.png")
    pictures = read_images(tmp_path)
    assert pictures.names == ("good.png",)
    assert pictures.skipped["gone.png"] == "No such file or directory"
    assert "symbolic links" in pictures.skipped["ring.png"]


@pytest.mark.skipif(sys.platform != "linux", reason="file systems elsewhere take no such names")
def test_a_name_that_is_no_utf_8_is_one_that_can_be_printed(tmp_path):
    odd = os.fsdecode(b"caf\xe9")
    for folder in ("all", "masks"):
        put(tmp_path / folder / f"{odd}.png", np.zeros((6, 8), np.uint8))
    pictures = read_images(tmp_path / "all", masks=tmp_path / "masks")
    assert pictures.names == (r"caf\xe9.png",)
    assert pictures.has_masks
    put(tmp_path / "kinds" / odd / "a.png")
    kinds = read_images(tmp_path / "kinds")
    assert (kinds.names, kinds.classes) == ((r"caf\xe9/a.png",), (r"caf\xe9",))


def test_a_huge_picture_is_left_out(tmp_path, monkeypatch):
    put(tmp_path / "a.png", noise(10, 10))
    put(tmp_path / "b.png", noise(11, 11))
    put(tmp_path / "c.png", noise(30, 30))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    pictures = read_images(tmp_path)
    assert pictures.names == ("a.png",)
    assert all("too large: more than 100 pixels" in why for why in pictures.skipped.values())


def test_nothing_left_is_an_error_that_names_files_and_reasons(tmp_path):
    (tmp_path / "a.png").touch()
    with pytest.raises(ValueError, match=r"none of the 1 pictures .*a\.png: the file is empty"):
        read_images(tmp_path)


def test_a_picture_that_vanishes_later_is_named(tmp_path):
    path = put(tmp_path / "a.png")
    pictures = read_images(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"'a\.png' has changed"):
        pictures.picture(0)


# Places


def test_a_folder_is_read_in_sorted_order_and_its_fingerprint_is_of_names_and_bytes(tmp_path):
    for name, seed in (("b.png", 1), ("a.PNG", 2), ("c.bmp", 3)):
        put(tmp_path / name, noise(seed=seed))
    pictures = read_images(tmp_path)
    assert pictures.names == ("a.PNG", "b.png", "c.bmp")
    assert pictures.labels is None
    assert not pictures.has_masks
    assert np.array_equal(np.asarray(pictures.picture(2)), noise(seed=3))
    again = read_images(str(tmp_path))
    assert again.fingerprint == pictures.fingerprint
    (tmp_path / "b.png").rename(tmp_path / "bb.png")
    renamed = read_images(tmp_path).fingerprint
    put(tmp_path / "bb.png", noise(seed=9))
    assert len({pictures.fingerprint, renamed, read_images(tmp_path).fingerprint}) == 3


def test_a_folder_for_each_class_gives_labels_by_sorted_name(tmp_path):
    for name in ("dog/b.png", "cat/z.png", "dog/a.png"):
        put(tmp_path / name)
    (tmp_path / "none").mkdir()
    pictures = read_images(tmp_path)
    assert pictures.names == ("cat/z.png", "dog/a.png", "dog/b.png")
    assert pictures.labels == (0, 1, 1)
    assert pictures.classes == ("cat", "dog")


def test_folders_that_are_numbers_are_their_labels(tmp_path):
    for name in ("207/b.png", "7/z.png"):
        put(tmp_path / name)
    pictures = read_images(tmp_path)
    assert dict(zip(pictures.names, pictures.labels, strict=True)) == {"207/b.png": 207, "7/z.png": 7}


def test_pictures_beside_folders_of_pictures_are_refused(tmp_path):
    put(tmp_path / "a.png")
    put(tmp_path / "cat/a.png")
    with pytest.raises(ValueError, match="wanted one or the other"):
        read_images(tmp_path)


@pytest.mark.parametrize("beside", [True, False])
def test_pictures_deeper_than_a_folder_for_each_class_are_not_left_out_in_silence(tmp_path, beside):
    put(tmp_path / "cat/tabby/a.png")
    put(tmp_path / ".cache/dog/b.png")
    if beside:
        put(tmp_path / "dog/b.png")
    with pytest.raises(ValueError, match=r"more than one folder deep in .* \(cat/tabby\): wanted them in the folder"):
        read_images(tmp_path)


def test_a_limit_is_spread_over_the_classes(tmp_path):
    for label in ("cat", "dog", "eel"):
        for i in range(4):
            put(tmp_path / label / f"{i}.png", noise(seed=i))
    assert read_images(tmp_path, limit=3).names == ("cat/0.png", "dog/0.png", "eel/0.png")
    assert len(read_images(tmp_path, limit=99)) == 12
    with pytest.raises(ValueError, match="limit=-1, wanted 1 or more"):
        read_images(tmp_path, limit=-1)


@pytest.mark.parametrize(
    ("place", "words"), [("", "no pictures in"), ("gone", "nothing at"), ("a.txt", "wanted a picture")]
)
def test_places_without_pictures(tmp_path, place, words):
    write(tmp_path / "a.txt", "")
    with pytest.raises(ValueError, match=words):
        read_images(tmp_path / place)


def test_no_place_is_not_the_folder_one_is_in(tmp_path, monkeypatch):
    put(tmp_path / "a.png")
    monkeypatch.chdir(tmp_path)
    assert read_images(".").names == ("a.png",)
    with pytest.raises(ValueError, match="there is nothing at ''"):
        read_images("")


def test_one_file_is_a_set_of_one(tmp_path):
    assert read_images(put(tmp_path / "a.png")).names == ("a.png",)


def test_a_csv_lists_files_labels_masks_and_boxes(tmp_path):
    for name in ("in/a.png", "in/b.png", "in/c.png"):
        put(tmp_path / name)
    mask = np.zeros((6, 8), np.uint8)
    mask[1:3], mask[3] = 255, 128
    put(tmp_path / "m.png", mask)
    text = "\ufefffile, label ,mask,x0,y0,x1,y1\nin/c.png,5,,1,2,4,5\nin/a.png,3,m.png,,,,\nin/b.png,4,,,,,\n"
    pictures = read_images(write(tmp_path / "set.csv", text))
    assert pictures.names == ("in/a.png", "in/b.png", "in/c.png")
    assert pictures.labels == (3, 4, 5)
    assert pictures.has_masks
    assert np.array_equal(np.asarray(pictures.mask(0)), mask)
    assert not np.asarray(pictures.mask(1)).any()
    box = np.zeros((6, 8), np.uint8)
    box[2:5, 1:4] = 255
    assert np.array_equal(np.asarray(pictures.mask(2)), box)


def test_a_csv_without_labels_and_body_boxes(tmp_path):
    put(tmp_path / "a.png")
    path = write(tmp_path / "s.csv", "path,body_x0,body_y0,body_x1,body_y1\na.png,0.4,0,2.6,6\n")
    pictures = read_images(path)
    assert pictures.labels is None
    assert np.asarray(pictures.mask(0)).sum() == 255 * 6 * 3  # the columns whose centres 0.5, 1.5 and 2.5 lie inside


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name\na.png\n", "has the columns name: wanted one named 'file'"),
        ("file\n", "holds no rows"),
        ("file\na.png\na.png\n", r"lists 1 pictures twice: a\.png"),
        ("file\na.png\nx.png\ny.png\n", r"lists 2 files that are not there: x\.png, y\.png"),
        ("file,label\na.png,-1\n", r"a\.png \(-1\)"),
        ("file,label\na.png,\n", r"a\.png \(empty\)"),
        ("file,mask\na.png,m.png\n", r"lists the mask 'm\.png' that is not there"),
        ("file,x0,y0,x1,y1\na.png,5,0,2,9\n", "wanted x0 < x1 and y0 < y1"),
        ("file,x0,y0,x1,y1\na.png,5,,2,9\n", "wanted x0 < x1"),
    ],
)
def test_a_bad_csv_is_one_clear_error(tmp_path, text, words):
    put(tmp_path / "a.png")
    with pytest.raises(ValueError, match=words):
        read_images(write(tmp_path / "s.csv", text))


def test_a_label_that_no_tensor_holds_is_told_with_its_picture(tmp_path):
    put(tmp_path / "a.png")
    with pytest.raises(ValueError, match=r"label 9{20} of 'a\.png' is no class's place"):
        read_images(write(tmp_path / "s.csv", f"file,label\na.png,{'9' * 20}\n"))


def test_a_csv_that_is_no_text(tmp_path):
    path = tmp_path / "s.csv"
    path.write_bytes(b"file\n\xff\xfe\x00\n")
    with pytest.raises(ValueError, match="cannot be read as CSV in UTF-8"):
        read_images(path)


def test_labels_come_from_a_csv_beside_the_folder(tmp_path):
    for name in ("b.png", "a.png"):
        put(tmp_path / "in" / name)
    labels = write(tmp_path / "labels.csv", "file,class_index,more\nb.png,7,x\na.png,0,y\n")
    assert read_images(tmp_path / "in", labels=labels).labels == (0, 7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("file,label\na.png,1\n", r"does not match the pictures: 1 pictures have no label: b\.png"),
        ("file,label\na.png,1\nb.png,1\nc.png,1\n", r"1 labels have no picture: c\.png"),
        ("file,label\na.png,1\nb.png,1.5\n", r"b\.png \(1\.5\)"),
        ("file,label\na.png,1\nb.png,1\nb.png,2\n", r"gives 'b\.png' two labels, 1 and 2"),
        ("file,what\na.png,1\n", "has the columns file, what: wanted file and class_index"),
    ],
)
def test_labels_that_do_not_match_are_one_clear_error(tmp_path, text, words):
    for name in ("a.png", "b.png"):
        put(tmp_path / "in" / name)
    with pytest.raises(ValueError, match=words):
        read_images(tmp_path / "in", labels=write(tmp_path / "l.csv", text))
    with pytest.raises(ValueError, match="there are no labels at"):
        read_images(tmp_path / "in", labels=tmp_path / "gone.csv")


def test_many_wrong_names_are_counted(tmp_path):
    for i in range(9):
        put(tmp_path / "in" / f"{i}.png")
    with pytest.raises(ValueError, match=r"8 pictures have no label: 1\.png, 2\.png, 3\.png and 5 more"):
        read_images(tmp_path / "in", labels=write(tmp_path / "l.csv", "file,label\n0.png,1\n"))


def test_masks_lie_in_a_folder_of_their_own_under_the_same_names(tmp_path):
    for name in ("in/a.jpg", "in/b.jpg"):
        put(tmp_path / name)
    put(tmp_path / "masks/a.png", np.full((6, 8), 255, np.uint8))
    pictures = read_images(tmp_path / "in", masks=tmp_path / "masks")
    assert [np.asarray(pictures.mask(i)).mean() for i in range(2)] == [255, 0]
    (tmp_path / "masks/a.png").rename(tmp_path / "masks/x.png")
    with pytest.raises(ValueError, match=r"no mask in .* has the name of a picture: a\.jpg, b\.jpg"):
        read_images(tmp_path / "in", masks=tmp_path / "masks")


def test_masks_of_ones_of_other_sizes_and_of_other_kinds(tmp_path):
    for name in "abcde":
        put(tmp_path / f"in/{name}.jpg")
    ones = np.zeros((6, 8), np.uint8)
    ones[2] = 1
    put(tmp_path / "masks/a.png", ones)
    put(tmp_path / "masks/b.png", np.zeros((6, 6), np.uint8))
    put(tmp_path / "masks/c.png", noise())
    Image.fromarray(ones == 1).save(tmp_path / "masks/d.png")
    indexed = Image.fromarray(3 * ones).convert("P")
    indexed.save(tmp_path / "masks/e.png")
    pictures = read_images(tmp_path / "in", masks=tmp_path / "masks")
    for place in (0, 3):
        assert np.array_equal(np.asarray(pictures.mask(place)), 255 * ones)
    for place, words in ((1, r"size \(6, 6\), wanted that of the picture, \(8, 6\)"), (2, "mode RGB"), (4, "palette")):
        with pytest.raises(ValueError, match=words):
            pictures.mask(place)


def test_arrays_in_one_file(tmp_path):
    pixels = np.stack([noise(seed=i) for i in range(11)])
    np.savez(tmp_path / "a.npz", x=pixels, y=np.arange(11), classes=np.array(["cat", "dog"]))
    pictures = read_images(tmp_path / "a.npz")
    assert pictures.names[:2] == ("00", "01")
    assert pictures.labels == tuple(range(11))
    assert pictures.classes == ("cat", "dog")
    assert np.array_equal(np.asarray(pictures.picture(10)), pixels[10])
    np.savez(tmp_path / "b.npz", x=pixels[..., 0])
    grey = read_images(tmp_path / "b.npz", limit=2)
    assert grey.names == ("00", "05")
    assert grey.labels is None
    assert np.array_equal(np.asarray(grey.picture(1))[..., 2], pixels[5, ..., 0])


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({"z": np.zeros(3)}, "holds no x"),
        ({"x": np.zeros((2, 4, 4, 3))}, "type float64: wanted uint8"),
        ({"x": np.zeros((2, 4, 4, 2), np.uint8)}, "wanted uint8"),
        ({"x": np.zeros((0, 4, 4, 3), np.uint8)}, "holds no pictures"),
        ({"x": np.zeros((2, 4, 4, 3), np.uint8), "y": np.zeros(3, int)}, "wanted 2 whole numbers"),
        ({"x": np.zeros((2, 4, 4, 3), np.uint8), "y": np.array([0, -1])}, "wanted 2 whole numbers"),
        ({"x": np.array([{}, {}], dtype=object)}, "cannot be read"),
    ],
)
def test_bad_arrays(tmp_path, held, words):
    np.savez(tmp_path / "a.npz", **held)
    with pytest.raises(ValueError, match=words):
        read_images(tmp_path / "a.npz")
    write(tmp_path / "b.npz", "text")
    with pytest.raises(ValueError, match="cannot be read"):
        read_images(tmp_path / "b.npz")


# torchvision's data sets, written out by hand


def written_mnist(root: Path) -> tuple[np.ndarray, list[int]]:
    pixels, labels = np.stack([noise(28, 28, 1, seed=i) for i in range(5)]), [3, 1, 4, 1, 5]
    raw = root / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "t10k"):
        images = struct.pack(">IIII", 2051, 5, 28, 28) + pixels.tobytes()
        (raw / f"{part}-images-idx3-ubyte").write_bytes(images)
        (raw / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        named = struct.pack(">II", 2049, 5) + bytes(labels)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(named)
        (raw / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(named))
    return pixels, labels


def test_mnist_by_name_and_root(tmp_path):
    pixels, labels = written_mnist(tmp_path)
    pictures = read_images(f"mnist:{tmp_path}")
    assert pictures.labels == tuple(labels)
    assert pictures.classes[3] == "3 - three"
    assert np.array_equal(np.asarray(pictures.picture(4))[..., 0], pixels[4])
    assert read_images("MNIST", root=tmp_path, limit=2).names == ("0", "2")


def test_cifar10_by_name_and_root(tmp_path, monkeypatch):
    from torchvision.datasets import CIFAR10

    monkeypatch.setattr(CIFAR10, "_check_integrity", lambda self: True)  # sums of the real files
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *_: True)
    folder = tmp_path / CIFAR10.base_folder
    folder.mkdir()
    pixels = np.stack([noise(32, 32, seed=i) for i in range(3)])
    rows = pixels.transpose(0, 3, 1, 2).reshape(3, -1)
    (folder / "test_batch").write_bytes(pickle.dumps({"data": rows, "labels": [6, 0, 9]}))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": ["plane"] * 10}))
    pictures = read_images(f"cifar10:{tmp_path}")
    assert pictures.labels == (6, 0, 9)
    assert np.array_equal(np.asarray(pictures.picture(1)), pixels[1])


def test_an_image_folder_by_torchvision_is_the_folder_read_by_us(tmp_path):
    for name in ("dog/b.png", "cat/z.png", "dog/a.png"):
        put(tmp_path / name, noise(seed=len(name)))
    ours, theirs = read_images(tmp_path), read_images(f"imagefolder:{tmp_path}")
    assert ours.labels == theirs.labels
    assert ours.classes == theirs.classes
    for place in range(3):
        assert np.array_equal(np.asarray(ours.picture(place)), np.asarray(theirs.picture(place)))


def test_data_sets_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match="torchvision cannot read data set 'cifar10' at") as caught:
        read_images(f"cifar10:{tmp_path}")
    assert "nothing is downloaded here" in str(caught.value)
    assert "download=True" not in str(caught.value)
    with pytest.raises(ValueError, match="data set 'cifar10' wants the folder in which it lies: cifar10:FOLDER"):
        read_images("cifar10:")
    with pytest.raises(LookupError, match="There are: ") as listed:
        read_images(f"nosuchset:{tmp_path}")
    assert not {"kittiflow", "visiondataset", "wrap_dataset_for_transforms_v2"} & set(str(listed.value).split(", "))
    with pytest.raises(LookupError, match="Did you mean 'cifar10'"):
        read_images(f"cifer10:{tmp_path}")


# The models' view


@pytest.mark.parametrize("size", [(640, 427), (300, 451), (100, 100), (225, 224), (37, 500), (224, 224)])
@pytest.mark.parametrize(("resize", "crop"), [(256, 224), (224, 224), (64, 100), (235, 224), (33, 32)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_pixels_are_torchvisions(size, resize, crop, interpolation):
    picture = Image.fromarray(noise(*size))
    mode = transforms.InterpolationMode(interpolation)
    theirs = transforms.Compose(
        [transforms.Resize(resize, mode), transforms.CenterCrop(crop), transforms.ToTensor()]
    )  # fmt: skip
    ours = Preprocessing(resize, crop, interpolation=interpolation).tensor(picture)
    assert ours.dtype == torch.float32
    assert torch.equal(ours, theirs(picture))


@pytest.mark.parametrize("size", [(3, 900), (900, 3)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_a_long_strip_is_cut_before_it_is_resized_and_looks_the_same(size, interpolation, monkeypatch):
    picture, how = Image.fromarray(noise(*size)), Preprocessing(36, 32, interpolation=interpolation)
    whole = how.levels(picture).int()
    monkeypatch.setattr(preprocess, "ROOM", 1000)
    cut = how.levels(picture).int()
    assert cut.shape == whole.shape == (3, 32, 32)
    assert (cut - whole)[:, 2:-2, 2:-2].abs().max() <= 2  # of 255: places are rounded


def test_a_strip_that_would_be_huge_is_never_made(monkeypatch):
    made: list[tuple[int, int]] = []
    resize = Image.Image.resize
    monkeypatch.setattr(
        Image.Image, "resize", lambda one, size, *a, **k: made.append(size) or resize(one, size, *a, **k)
    )
    assert Preprocessing(32, 32).tensor(Image.new("RGB", (1, 70_000), "red")).tolist()[0] == [[1.0] * 32] * 32
    assert made == [(32, 32)]


def test_a_squashed_picture_and_one_left_as_it_is():
    picture = Image.fromarray(noise(50, 30))
    theirs = transforms.Compose([transforms.Resize((24, 24)), transforms.ToTensor()])
    assert torch.equal(Preprocessing(24, 24, squash=True).tensor(picture), theirs(picture))
    assert torch.equal(Preprocessing(0, 0).tensor(picture), transforms.ToTensor()(picture))
    cut = Preprocessing(0, 20).tensor(picture)
    assert torch.equal(cut, transforms.ToTensor()(picture)[:, 5:25, 15:35])


def test_a_grey_model_gets_one_channel():
    picture = Image.fromarray(noise(50, 30))
    steps = [transforms.Grayscale(), transforms.Resize(28), transforms.CenterCrop(28), transforms.ToTensor()]
    theirs = transforms.Compose(steps)
    ours = Preprocessing(28, 28, channels=1).tensor(picture)
    assert ours.shape == (1, 28, 28)
    assert torch.equal(ours, theirs(picture))


def test_a_mask_is_cut_like_its_picture_and_gets_no_new_values():
    mask = np.zeros((90, 120), np.uint8)
    mask[20:60, 30:70], mask[60:63, 30:70] = 255, 128
    same = Preprocessing(64, 56)
    found = same.mask(Image.fromarray(mask))
    assert found.shape == (56, 56)
    assert found.dtype == torch.uint8
    assert set(found.unique().tolist()) == {0, 128, 255}
    seen = same.tensor(Image.fromarray(np.where(mask == 255, 255, 0).astype(np.uint8)).convert("RGB"))[0]
    assert ((found == 255) == (seen > 0.5)).float().mean() > 0.98  # they lie on each other
    exact = Preprocessing(0, 80).mask(Image.fromarray(mask))
    assert torch.equal(exact, torch.from_numpy(mask[5:85, 20:100]))


@pytest.mark.parametrize(
    "given", [{"interpolation": "cubic"}, {"channels": 2}, {"resize": -1}, {"mean": (0.5, 0.5)}, {"std": (0.0,)}]
)
def test_bad_preprocessing_is_refused(given):
    with pytest.raises((ValueError, LookupError), match="wanted"):
        Preprocessing(**given)


# Real data, where it lies beside the repository


def real(*parts: str, limit: int = 12) -> Pictures:
    place = DATA.joinpath(*parts)
    if not place.exists():
        pytest.skip(f"no {'/'.join(parts)} in the data folder: set SALIOMETER_DATA")
    return read_images(place, limit=limit)


def test_pets_come_with_masks_and_imagenet_labels():
    pictures = real("pets_masks", limit=24)
    assert len(pictures) == 24
    label, mask = {Path(name).stem: (pictures.labels[i], pictures.mask(i)) for i, name in enumerate(pictures.names)}[
        "basset_hound_10"
    ]
    assert label == 161
    assert len(set(pictures.labels)) > 20
    values = np.asarray(mask)
    assert set(np.unique(values)) == {0, 128, 255}
    assert (values == 255).mean() == pytest.approx(0.2919, abs=1e-4)


def test_a_folder_with_labels_beside_the_pictures():
    pictures = real("imagenet_sample")
    assert pictures.labels[0] == 0
    assert not pictures.has_masks
    assert pictures.picture(3).size == (224, 224)


def test_an_array_of_real_digits():
    pictures = real("mnist", "mnist_test.npz")
    assert pictures.picture(0).size == (28, 28)
    assert max(pictures.labels) <= 9


def test_a_list_beside_the_pictures_must_name_them_all(tmp_path):
    for name in ("a.png", "b.png", "c.png"):
        put(tmp_path / name)
    write(tmp_path / "labels.csv", "file,label\na.png,1\n")
    with pytest.raises(ValueError, match=r"does not list 2 pictures of its folder: .*b\.png.*name the CSV itself"):
        read_images(tmp_path)
    assert read_images(tmp_path / "labels.csv").names == ("a.png",)


def test_a_csv_may_name_classes(tmp_path):
    for name in "abc":
        put(tmp_path / f"{name}.png")
    path = write(tmp_path / "s.csv", "file,label\na.png,owl\nb.png,cat\nc.png,owl\n")
    for pictures in (read_images(path), read_images(tmp_path, labels=path)):
        assert pictures.classes == ("cat", "owl")
        assert list(pictures.labels) == [1, 0, 1]
    mixed = write(tmp_path / "m.csv", "file,label\na.png,owl\nb.png,3\nc.png,owl\n")
    with pytest.raises(
        ValueError, match=r"2 are no whole number .*: a\.png \(owl\), c\.png \(owl\)\. Wanted the place"
    ):
        read_images(mixed)


def test_numbers_in_a_csv_are_not_names_of_folders(tmp_path):
    """A folder for each class, and labels that say otherwise."""
    for name in ("cat", "owl"):
        put(tmp_path / name / "a.png")
    pictures = read_images(tmp_path, labels=write(tmp_path / "l.csv", "file,label\ncat/a.png,281\nowl/a.png,24\n"))
    assert pictures.classes == ()
    assert list(pictures.labels) == [281, 24]

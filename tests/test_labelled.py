"""Data to train on: folders, arrays and data sets by name become two parts of 8-bit images with labels."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch
from PIL import Image

from saliometer.images import Preprocessing
from saliometer.images.labelled import Data, read_data


def noise(side: int = 12, seed: int = 0, width: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (side, width or side, 3), dtype=np.uint8)


def picture(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def arrays(path: Path, count: int = 20, seed: int = 0, **more) -> np.ndarray:
    """An .npz of noise, two classes in turn."""
    pixels = np.stack([noise(seed=seed + i) for i in range(count)])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, x=pixels, y=np.arange(count) % 2, **more)
    return pixels


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Ten cats and five dogs, all of one size."""
    for name, count in (("cat", 10), ("dog", 5)):
        for i in range(count):
            picture(tmp_path / "pets" / name / f"{i}.png", noise(seed=i))
    return tmp_path / "pets"


# Folders


def test_a_folder_per_class_is_split_by_seed_a_fifth_of_every_class(pets):
    data = read_data(str(pets))
    assert (data.name, data.classes, data.side, data.resized) == ("pets", ("cat", "dog"), 12, 0)
    assert data.train_labels.bincount().tolist() == [8, 4]
    assert data.test_labels.bincount().tolist() == [2, 1]
    assert "a fifth of every class was kept for them, by seed 0" in data.notes[0]
    assert data.train.dtype == torch.uint8
    wanted = {noise(seed=i).tobytes() for i in range(10)}
    assert {image.permute(1, 2, 0).numpy().tobytes() for image in (*data.train, *data.test)} == wanted
    assert read_data(str(pets)).sha256 == data.sha256
    assert read_data(str(pets), seed=1).sha256 != data.sha256


def test_a_split_stays_when_a_picture_joins(pets):
    before = {image.numpy().tobytes() for image in read_data(str(pets)).test}
    picture(pets / "cat" / "a.png", noise(seed=77))
    after = {image.numpy().tobytes() for image in read_data(str(pets)).test}
    assert len(before ^ after) <= 2


@pytest.mark.parametrize("word", ["test", "val"])
def test_train_and_test_folders_are_the_parts(tmp_path, word):
    for part, names in (("train", ("ant", "bee", "cow")), (word, ("cow", "ant"))):
        for name in names:
            for i in range(2):
                picture(tmp_path / part / name / f"{i}.png", noise(seed=len(part) + i))
    data = read_data(str(tmp_path))
    assert data.classes == ("ant", "bee", "cow")
    assert data.train_labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.test_labels.tolist() == [0, 0, 2, 2]  # by name: cow is 2 there, too
    assert data.notes == ()


def test_a_train_folder_alone_is_split_unless_a_test_place_is_given(tmp_path):
    for part in ("set/train", "elsewhere"):
        for i in range(6):
            picture(tmp_path / part / "ab"[i % 2] / f"{i}.png", noise(seed=i))
    assert (len((data := read_data(str(tmp_path / "set"))).train), len(data.test)) == (4, 2)
    data = read_data(str(tmp_path / "set"), test=str(tmp_path / "elsewhere"))
    assert (len(data.train), len(data.test)) == (6, 6)


def test_a_class_that_is_only_tested_is_refused(tmp_path):
    for name in ("train/ant/0.png", "train/bee/0.png", "test/cow/0.png"):
        picture(tmp_path / name, noise())
    with pytest.raises(ValueError, match="classes that are not trained on: cow"):
        read_data(str(tmp_path))


def test_pictures_of_several_sizes_are_resized_and_their_middle_cut_out(tmp_path):
    shapes = {"a/0.png": (30, 20), "a/1.png": (20, 40), "b/0.png": (16, 16), "b/1.png": (64, 64)}
    for i, (name, (height, width)) in enumerate(shapes.items()):
        picture(tmp_path / "all" / name, noise(height, i, width))
    data = read_data(str(tmp_path / "all"), 16, resize=20)
    assert (data.side, data.resized) == (16, 20)
    assert "resized to 20 and cut to 16" in data.notes[-1]
    held = torch.cat((data.train, data.test))
    for i, (height, width) in enumerate(shapes.values()):
        wanted = Preprocessing(20, 16).levels(Image.fromarray(noise(height, i, width)))
        assert any(torch.equal(one, wanted) for one in held)


@pytest.mark.parametrize(("side", "wanted", "resized"), [(0, 12, 0), (12, 12, 0), (20, 12, 0), (8, 8, 8)])
def test_squares_of_one_size_stay_unless_they_are_too_large(pets, side, wanted, resized):
    data = read_data(str(pets), side)
    assert (data.side, data.resized) == (wanted, resized)


def test_pictures_that_cannot_be_read_are_left_out_and_named(pets):
    (pets / "cat" / "zz.png").write_bytes(b"no picture")
    data = read_data(str(pets))
    assert len(data.train) + len(data.test) == 15
    assert "1 pictures cannot be read and were left out: cat/zz.png (not a picture" in data.notes[-1]


def test_grey_pictures_have_three_equal_channels(tmp_path):
    for i in range(4):
        picture(tmp_path / "ab"[i % 2] / f"{i}.png", noise(seed=i)[..., 0])
    data = read_data(str(tmp_path))
    assert torch.equal(data.train[:, 0], data.train[:, 2])


# Arrays


def test_an_npz_is_split_and_a_test_file_is_not(tmp_path):
    pixels = arrays(tmp_path / "small.npz")
    assert len(read_data(str(tmp_path / "small.npz")).test) == 4
    others = arrays(tmp_path / "others.npz", 6, seed=50)
    data = read_data(str(tmp_path / "small.npz"), test=str(tmp_path / "others.npz"))
    assert data.notes == ()
    assert np.array_equal(data.train.permute(0, 2, 3, 1).numpy(), pixels)
    assert np.array_equal(data.test.permute(0, 2, 3, 1).numpy(), others)
    assert data.classes == ("0", "1")


def test_a_folder_of_npz_files_has_its_parts_by_name(tmp_path):
    names = np.array(["ant", "bee"])
    first = arrays(tmp_path / "set" / "set_train_a.npz", classes=names)
    second = arrays(tmp_path / "set" / "set_train_b.npz", seed=100, classes=names)
    arrays(tmp_path / "set" / "set_test.npz", 8, seed=200, classes=names)
    data = read_data(str(tmp_path / "set"))
    assert (data.name, data.classes) == ("set", ("ant", "bee"))
    assert np.array_equal(data.train.permute(0, 2, 3, 1).numpy(), np.concatenate((first, second)))
    assert len(data.test) == 8
    some = ",".join(str(tmp_path / "set" / f"set_{part}.npz") for part in ("train_b", "test"))
    assert read_data(some).train.shape == (20, 3, 12, 12)


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({"x": None}, "holds no x"),
        ({"y": None}, "20 of 20 training pictures .* have no label: .* an .npz with x and y"),
        ({"y": np.arange(20) % 2 + 1}, "no training image of 1 of 3 classes: 0"),
        ({"y": np.zeros(20, dtype=int)}, "one class only"),
        ({"y": np.arange(20) % 2 * 3}, "no training image of 2 of 4 classes: 1 .*, 2"),
        ({"y": np.arange(20) % 2, "classes": np.array(["ant"])}, "labels from 0 to 1: wanted 0 to 0, for 1 classes"),
        ({"y": np.arange(20) - 1}, "wanted 20 whole numbers of 0 or more"),
    ],
)
def test_arrays_that_cannot_be_trained_on_are_refused(tmp_path, held, words):
    whole = {"x": np.stack([noise(seed=i) for i in range(20)]), "y": np.arange(20) % 2} | held
    np.savez(tmp_path / "a.npz", **{key: value for key, value in whole.items() if value is not None})
    np.savez(tmp_path / "b.npz", x=whole["x"] if whole["x"] is not None else noise()[None], y=np.arange(20) % 2)
    with pytest.raises(ValueError, match=words):
        read_data(
            str(tmp_path / "a.npz"), test=str(tmp_path / "b.npz") if held.keys() == {"y"} and held["y"] is None else ""
        )


def test_files_of_different_classes_are_not_joined(tmp_path):
    arrays(tmp_path / "a.npz", classes=np.array(["ant", "bee"]))
    arrays(tmp_path / "b.npz", classes=np.array(["bee", "ant"]))
    with pytest.raises(ValueError, match="name different classes"):
        read_data(f"{tmp_path}/a.npz,{tmp_path}/b.npz")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nothing", "there is nothing at"),
        ("empty", "no pictures in"),
        ("nothing.npz", "there is no file"),
        ("cifar10:nothing", "there is no folder 'nothing' with the data set 'cifar10': nothing is downloaded"),
        ("cub200:empty", "holds no CUB-200-2011: wanted its images.txt"),
    ],
)
def test_a_place_with_nothing_is_refused(tmp_path, monkeypatch, place, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=words):
        read_data(place)


def test_data_of_one_class_only_is_refused(tmp_path):
    for i in range(5):
        picture(tmp_path / "cat" / f"{i}.png", noise(seed=i))
    with pytest.raises(ValueError, match="one class only: wanted two classes or more"):
        read_data(str(tmp_path))


def test_data_of_ones_own_are_checked_too():
    images, labels = torch.zeros(4, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, 0, 1])
    assert Data("mine", images, labels, images, labels, ("a", "b")).side == 8
    with pytest.raises(ValueError, match=r"torch.float32 of shape \(4, 3, 8, 8\).*wanted uint8 \(N, 3, S, S\)"):
        Data("mine", images.float(), labels, images, labels, ("a", "b"))
    with pytest.raises(ValueError, match=r"shape \(4, 3, 8, 4\).*wanted uint8 \(N, 3, S, S\)"):
        Data("mine", images[..., :4], labels, images[..., :4], labels, ("a", "b"))
    with pytest.raises(ValueError, match=r"two parts are of \(8, 8\) and \(4, 4\)"):
        Data("mine", images, labels, images[..., :4, :4], labels, ("a", "b"))
    with pytest.raises(ValueError, match="0 test images"):
        Data("mine", images, labels, images[:0], labels[:0], ("a", "b"))


# Data sets by name, written out by hand


def test_cifar10_has_its_two_parts(tmp_path, monkeypatch):
    from torchvision.datasets import CIFAR10

    monkeypatch.setattr(CIFAR10, "_check_integrity", lambda self: True)  # sums of the real files
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *_: True)
    folder = tmp_path / CIFAR10.base_folder
    folder.mkdir()
    names = [f"data_batch_{n}" for n in range(1, 6)] + ["test_batch"]
    for number, name in enumerate(names):
        rows = np.full((10, 3072), number, dtype=np.uint8)
        (folder / name).write_bytes(pickle.dumps({"data": rows, "labels": list(range(10))}))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": [f"c{i}" for i in range(10)]}))
    data = read_data(f"cifar10:{tmp_path}")
    assert (data.train.shape, data.test.shape) == ((50, 3, 32, 32), (10, 3, 32, 32))
    assert data.train.unique().tolist() == [0, 1, 2, 3, 4]
    assert data.test.unique().tolist() == [5]
    assert data.classes[9] == "c9"


def test_caltech101_is_split_as_the_papers_code_splits_it(tmp_path):
    from sklearn.model_selection import train_test_split

    root = tmp_path / "caltech101"
    (root / "Annotations").mkdir(parents=True)
    for name in ("BACKGROUND_Google", "ant", "bee"):
        for i in range(1, 11):
            picture(root / "101_ObjectCategories" / name / f"image_{i:04d}.jpg", noise(16, seed=i))
    data = read_data(f"caltech101:{tmp_path}")
    assert data.classes == ("ant", "bee")  # without the background
    _, wanted = train_test_split(np.repeat([0, 1], 10), test_size=0.2, random_state=0)
    assert data.test_labels.tolist() == wanted.tolist()
    assert len(data.train) == 16


def test_eurosat_is_split_by_seed(tmp_path):
    for name in ("Forest", "River"):
        for i in range(5):
            picture(tmp_path / "eurosat" / "2750" / name / f"{i}.jpg", noise(16, seed=i))
    data = read_data(f"eurosat:{tmp_path}")
    assert data.classes == ("Forest", "River")
    assert data.test_labels.tolist() == [0, 1]


def test_oxford102_trains_on_the_official_training_part(tmp_path, monkeypatch):
    monkeypatch.setattr("torchvision.datasets.flowers102.check_integrity", lambda *_: True)
    folder = tmp_path / "flowers-102"
    for i in range(1, 307):
        picture(folder / "jpg" / f"image_{i:05d}.jpg", noise(8, seed=i))
    labels = np.tile(np.arange(1, 103), 3)
    scipy.io.savemat(folder / "imagelabels.mat", {"labels": labels[None]})
    ids = {"trnid": np.arange(1, 103), "valid": np.arange(103, 205), "tstid": np.arange(205, 307)}
    scipy.io.savemat(folder / "setid.mat", ids)
    data = read_data(f"oxford102:{tmp_path}")
    assert (data.name, len(data.train), len(data.test)) == ("oxford102", 102, 102)
    assert data.train_labels.tolist() == list(range(102))


def test_cub200_is_read_from_its_folder_with_its_official_split(tmp_path):
    folder = tmp_path / "CUB_200_2011"
    files = [f"{n:03d}.{name}/{name}_{i}.jpg" for n, name in ((1, "Albatross"), (2, "Wren")) for i in range(3)]
    for i, file in enumerate(files):
        picture(folder / "images" / file, noise(16, seed=i, width=24))
    lists = {
        "images.txt": files, "image_class_labels.txt": [1, 1, 1, 2, 2, 2], "train_test_split.txt": [1, 0, 1, 1, 0, 0],
    }  # fmt: skip
    for name, values in lists.items():
        (folder / name).write_text("".join(f"{i} {value}\n" for i, value in enumerate(values, 1)))
    (folder / "classes.txt").write_text("1 001.Albatross\n2 002.Wren\n")
    for place in (tmp_path, folder):
        data = read_data(f"cub200:{place}", 16)
        assert data.classes == ("001.Albatross", "002.Wren")
        assert data.train_labels.tolist() == [0, 0, 1]
        assert data.test_labels.tolist() == [0, 1, 1]
        assert data.resized == 16
    (folder / "classes.txt").write_text("1\n")
    with pytest.raises(ValueError, match=r"classes.txt' cannot be read .* wanted a number and a value"):
        read_data(f"cub200:{tmp_path}")

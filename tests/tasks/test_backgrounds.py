"""What lies behind the objects: values worked out from the definition, streams of their own, loud errors."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from saliometer.photos import photographs
from saliometer.seeds import forks
from saliometer.tasks import _backgrounds as backgrounds
from saliometer.tasks._backgrounds import BACKGROUNDS, background, parsed, photographs_of
from saliometer.tasks.textbox import counterfactuals, draw, textbox

DATA = Path(os.environ.get("SALIOMETER_DATA") or Path(__file__).parents[3] / "shared" / "data")
SEEDS = forks(7, torch.arange(64))
NAMES = ("noise", "natural", "natural(photographs=shared)")


@pytest.fixture(autouse=True)
def _fresh():
    """Folders are read once a process; tests write their own under one name."""
    backgrounds._bank.cache_clear()
    backgrounds._pictures.cache_clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eight photographs of one colour each: 10, 20, ..., 80 of red."""
    for number in range(1, 9):
        write(tmp_path / f"{number}.png", (10 * number, 0, 255))
    return tmp_path


def write(path: Path, colour: tuple[int, int, int], size: tuple[int, int] = (100, 80)) -> None:
    Image.new("RGB", size, colour).save(path)


def reds(images: Tensor) -> set[int]:
    """The photographs of the fixture that are seen."""
    return {round(value * 255 / 0.7) for value in images[:, 0, 0, 0].tolist()}


# All of them


def test_black_is_nothing_at_all():
    assert background("black", "train") is None
    assert not BACKGROUNDS["black"](SEEDS, split="train").any()


@pytest.mark.parametrize("name", NAMES)
def test_a_background_is_pixels_and_the_same_alone_and_among_others(name):
    behind = background(name, "test")
    images = behind(SEEDS)
    assert images.shape == (64, 3, 64, 64)
    assert images.dtype == torch.float32
    assert images.min() >= 0
    assert images.max() <= 0.7
    assert torch.equal(behind(SEEDS[5:6])[0], images[5])
    assert len({image.sum().item() for image in images}) > 32


@pytest.mark.parametrize("name", NAMES)
def test_images_follow_seed_split_and_number_and_objects_stay_white(name):
    black = textbox("simple-fr", count=24)
    samples = textbox("simple-fr", count=24, background=name)
    images = samples.batch.images
    full = black.batch.images == 1
    assert full.any()
    assert (images[full] == 1).all()
    assert torch.equal(samples.boxes, black.boxes)  # the background moves nothing
    assert torch.equal(samples.objects, black.objects)
    assert torch.equal(samples.batch.seeds, black.batch.seeds)
    assert torch.equal(images[20:24], textbox("simple-fr", start=20, count=4, background=name).batch.images)
    for other in ({"seed": 1}, {"split": "train"}):
        drawn = textbox("simple-fr", count=24, background=name, **other).batch.images
        assert not torch.equal(drawn[0, :, 0, 0], images[0, :, 0, 0])


@pytest.mark.parametrize("name", NAMES)
def test_a_letters_edge_lets_the_background_through(name):
    """Opacity a of white over b: a + (1 - a) b."""
    letter = draw("simple-nr", "test", torch.arange(16), 0)
    drawn = draw("simple-nr", "test", torch.arange(16), 0, background=name)
    opacity, behind = letter.images(), drawn.behind(drawn.seeds)
    assert ((opacity > 0) & (opacity < 1)).any()
    torch.testing.assert_close(drawn.images(), opacity + (1 - opacity) * behind)


def test_black_images_are_those_without_a_background():
    one, other = (textbox("complex-fr", count=36, **params) for params in ({}, {"background": "black"}))
    assert torch.equal(one.batch.images, other.batch.images)


@pytest.mark.parametrize("name", NAMES)
def test_a_counterfactual_pair_keeps_its_background(name):
    for _, before, after in counterfactuals("complex-fr", 12, 4, 0, background=name):
        same = before.layers().amax(1) == after.layers().amax(1)
        one, other = before.images(), after.images()
        assert torch.equal(one.permute(1, 0, 2, 3)[:, same], other.permute(1, 0, 2, 3)[:, same])
        assert not torch.equal(one, other)


def test_a_scene_keeps_its_background_when_it_is_cut():
    scene = draw("simple-fr", "train", torch.arange(30), 0, background="noise")
    assert torch.equal(scene[torch.tensor([7, 3])].images(), scene.images()[[7, 3]])


# Noise


def test_noise_is_uniform_over_the_whole_numbers_from_0_to_150():
    values = (background("noise", "train")(SEEDS) * 255).round().long()
    counts = values.flatten().bincount(minlength=256)
    assert (counts[:151] > 0).all()
    assert counts[151:].sum() == 0
    assert torch.equal(values.float() / 255, background("noise", "train")(SEEDS))
    expected = values.numel() / 151
    assert ((counts[:151] - expected).square() / expected).sum() < 220  # chi squared, 150 degrees: 99.98 %


def test_noise_is_independent_between_pixels_and_channels():
    values = background("noise", "train")(SEEDS).double()
    values = values - values.mean()
    neighbours = (values[..., 1:] * values[..., :-1]).mean() / values.var()
    channels = (values[:, 0] * values[:, 1]).mean() / values.var()
    assert abs(neighbours) < 0.01
    assert abs(channels) < 0.01


def test_the_authors_noise_is_a_parameter():
    assert background("noise(most=99)", "train")(SEEDS).max() == pytest.approx(99 / 255)


# Photographs


def test_a_folders_photographs_are_whole_dimmed_and_split_between_train_and_test(folder):
    name = f"natural:{folder}"
    train, test = (background(name, split)(forks(1, torch.arange(400))) for split in ("train", "test"))
    assert train.max() == pytest.approx(0.7)  # blue is 255 everywhere
    assert len(reds(train)) == 6
    assert len(reds(test)) == 2
    assert reds(train) | reds(test) == set(range(10, 90, 10))
    assert not reds(train) & reds(test)
    told = photographs_of(name)
    assert told["photographs"] == {"train": 6, "test": 2, "split": "disjoint"}


def test_shared_photographs_are_all_in_both(folder):
    name = f"natural(folder={str(folder)!r},photographs=shared)"
    for split in ("train", "test"):
        assert reds(background(name, split)(forks(1, torch.arange(400)))) == set(range(10, 90, 10))


def test_who_is_in_which_split_depends_on_content_not_on_names(folder):
    name = f"natural:{folder}"
    before = reds(background(name, "test")(SEEDS))
    backgrounds._bank.cache_clear()
    backgrounds._pictures.cache_clear()
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(folder / f"x{9 - number}.png")
    assert reds(background(name, "test")(SEEDS)) == before


def test_a_photograph_that_is_there_twice_counts_once(folder):
    write(folder / "copy.png", (10, 0, 255))
    assert photographs_of(f"natural:{folder}")["photographs"]["train"] == 6


def test_a_photograph_is_resized_as_pillow_does(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (90, 130, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "one.png")
    seen = background(f"natural(folder={str(tmp_path)!r},photographs=shared)", "train")(SEEDS[:1])[0]
    wanted = np.array(Image.fromarray(pixels).resize((64, 64)), dtype=np.float32) * 0.7 / 255
    np.testing.assert_allclose(seen.permute(1, 2, 0).numpy(), wanted, atol=1e-6)


def test_the_built_in_ones_are_pieces_of_the_packages_photographs():
    told = photographs_of("natural")
    assert told["photographs"]["train"] + told["photographs"]["test"] == len(photographs())
    assert "installed packages" in told["photographs_from"]
    bank = backgrounds._bank("", "disjoint", "test", torch.device("cpu"))
    pieces = (background("natural", "test")(SEEDS[:8]) / 0.7 * 255).round().byte()
    for piece in pieces:
        assert any(_holds(photo, piece) for photo in bank.pixels)


def _holds(photo: Tensor, piece: Tensor) -> bool:
    """Whether the piece is somewhere in the photograph."""
    height, width = photo.shape[1] - 63, photo.shape[2] - 63
    starts = (photo[:, :height, :width] == piece[:, :1, :1]).all(0).nonzero().tolist()
    return any(torch.equal(photo[:, y : y + 64, x : x + 64], piece) for y, x in starts)


def test_train_and_test_pieces_are_of_other_photographs():
    train, test = (backgrounds._bank("", "disjoint", split, torch.device("cpu")) for split in ("train", "test"))
    assert not set(train.digests) & set(test.digests)
    assert len(test.digests) == 2


def test_real_photographs_where_they_lie_beside_the_repository(tmp_path):
    place = DATA / "natural_backgrounds" / "backgrounds_64.npz"
    if not place.exists():
        pytest.skip("no natural_backgrounds in the data folder: set SALIOMETER_DATA")
    with np.load(place) as file:
        scenes = file["scenes"][:40]
    for number, scene in enumerate(scenes):
        Image.fromarray(scene).save(tmp_path / f"{number}.png")
    images = textbox("complex-cr1", count=20, background=f"natural:{tmp_path}").batch.images
    corner = (images[:, :, 0, 0] * 255 / 0.7).round()
    known = torch.from_numpy(scenes[:, 0, 0].astype(np.float32))
    assert all((one == known).all(1).any() for one in corner if one.max() <= 255)


# What cannot be


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no pictures in"):
        background(f"natural:{tmp_path}", "train")(SEEDS)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is nothing at"):
        background(f"natural:{tmp_path / 'nowhere'}", "train")(SEEDS)


def test_a_picture_that_cannot_be_read_is_named(folder):
    (folder / "broken.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"cannot read 'broken.png'.*not a picture"):
        background(f"natural:{folder}", "train")(SEEDS)


def test_one_photograph_cannot_be_split(tmp_path):
    write(tmp_path / "one.png", (1, 2, 3))
    with pytest.raises(ValueError, match=r"holds 1 photograph, wanted 2 or more.*photographs=shared"):
        background(f"natural:{tmp_path}", "train")(SEEDS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nois", "there is no background 'nois'. Did you mean 'noise'"),
        ("noise(high=9)", "there is no parameter 'high'"),
        ("noise(most=many)", "most=many is str, wanted int"),
        ("natural(photographs=both)", "there is no way to share photographs 'both'"),
    ],
)
def test_an_unknown_background_or_parameter_is_refused(text, words):
    with pytest.raises((LookupError, ValueError), match=words.replace("(", r"\(")):
        background(text, "train")(SEEDS)


def test_a_background_of_ones_own_is_one_function(monkeypatch):
    def grey(seeds: Tensor, *, split: str, level: float = 0.5) -> Tensor:
        return torch.full((len(seeds), 3, 64, 64), level)

    monkeypatch.setitem(BACKGROUNDS, "grey", grey)
    images = textbox("simple-fr", count=4, background="grey(level=0.25)").batch.images
    assert images[0].unique().tolist() == [0.25]  # bucket 1 shows nothing
    assert parsed("grey").name == "grey"

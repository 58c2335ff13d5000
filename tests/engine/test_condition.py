"""Conditions: the names of models in rows and files, what is told of them, and what is refused."""

import pytest
import torch
from PIL import Image

from saliometer.engine.condition import PLAIN, Condition, few_photographs
from saliometer.tasks import _backgrounds
from saliometer.tasks.textbox import textbox

OWN = """
import torch
def grey(seeds, *, split, level=0.5):
    return torch.full((len(seeds), 3, 64, 64), level)
def wrong(seeds, *, split):
    return torch.zeros(len(seeds), 64, 64)
def bright(seeds, *, split):
    return torch.full((len(seeds), 3, 64, 64), 2.0)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setattr(_backgrounds, "BACKGROUNDS", dict(_backgrounds.BACKGROUNDS))
    monkeypatch.setattr("saliometer.engine.condition.BACKGROUNDS", _backgrounds.BACKGROUNDS)
    (tmp_path / "mine.py").write_text(OWN)
    return f"{tmp_path}/mine.py"


@pytest.mark.parametrize(
    ("condition", "seed", "name", "stem"),
    [
        (PLAIN, 0, "complex_cnn(seed=0)", "complex-cr1"),
        (PLAIN, 1, "complex_cnn(seed=1)", "complex-cr1.seed1"),
        (Condition("noise"), 1, "complex_cnn(background=noise,seed=1)", "complex-cr1.noise.seed1"),
        (
            Condition("noise", "alexnet", True), 1, "alexnet(background=noise,robust=true,seed=1)",
            "complex-cr1.alexnet.noise.robust.seed1",
        ),
        (Condition(arch="vgg16(frozen=true)"), 0, "vgg16(frozen=true,seed=0)", "complex-cr1.vgg16-frozen=true"),
        (Condition(arch="complex_cnn"), 0, "complex_cnn(seed=0)", "complex-cr1"),
        (
            Condition("natural(photographs=shared)"), 0,
            "complex_cnn(background='natural(photographs=shared)',seed=0)",
            "complex-cr1.natural-photographs=shared",
        ),
    ],
)  # fmt: skip
def test_a_model_has_one_name_in_rows_and_one_for_its_files(condition, seed, name, stem):
    assert condition.name("complex-cr1", seed) == name
    assert condition.stem("complex-cr1", seed) == stem


def test_the_usual_condition_says_nothing_of_itself():
    assert PLAIN.told() == PLAIN.told("simple-fr") == PLAIN.behind() == {}
    assert Condition(arch="simple_cnn").told("simple-fr") == {}
    assert Condition("noise", "alexnet", True).told() == {"background": "noise", "arch": "alexnet", "robust": True}


def test_a_folder_is_named_without_its_path_and_known_by_its_photographs(tmp_path):
    folder = tmp_path / "stadiums"
    folder.mkdir()
    for number in range(4):
        Image.new("RGB", (70, 70), (number, 0, 0)).save(folder / f"{number}.png")
    condition = Condition(f"natural:{folder}")
    assert condition.shown == "natural(folder=stadiums)"
    assert str(tmp_path) not in condition.name("simple-fr", 0)
    assert condition.behind()["photographs"] == {"train": 3, "test": 1, "split": "disjoint"}
    assert "3 in training images, 1 in test images" in few_photographs(condition.behind())


def test_the_built_in_photographs_are_said_to_be_few():
    assert "few photographs" in few_photographs(Condition("natural").behind())
    assert few_photographs(Condition("noise").behind()) == ""


def test_a_background_of_ones_own_comes_from_a_file(own):
    condition = Condition(f"{own}:grey(level=0.25)")
    assert condition.name("simple-fr", 0) == "simple_cnn(background='grey(level=0.25)',seed=0)"
    assert len(condition.behind()["background_sha256"]) == 64
    assert textbox("simple-fr", count=1, background=condition.background).batch.images.unique().tolist() == [0.25]


@pytest.mark.parametrize(
    ("name", "words"), [("wrong", r"gives \(2, 64, 64\)"), ("bright", r"not in \[0, 1\]"), ("none", "no callable")]
)
def test_a_background_of_ones_own_is_looked_at_before_it_is_used(own, name, words):
    with pytest.raises((ValueError, LookupError), match=words):
        Condition(f"{own}:{name}")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"background": "nois"}, "no background 'nois'"),
        ({"arch": "alexnett"}, "Did you mean 'alexnet'"),
        ({"arch": "alexnet(depth=3)"}, "no parameter 'depth'"),
    ],
)
def test_what_does_not_exist_is_refused(given, words):
    with pytest.raises(LookupError, match=words):
        Condition(**given)


def test_the_network_is_built_with_its_parameters():
    net = Condition(arch="alexnet(width=0.05)").build("simple-fr")
    assert net.conv1.out_channels == 5
    assert net(torch.zeros(2, 3, 64, 64)).shape == (2, 2)

"""Models in a folder: found by their cards, every seed of a condition, refused in words."""

import json

import pytest
import torch

from saliometer.engine import shipped, train
from saliometer.engine.condition import PLAIN, Condition

NOISE = Condition("noise")


@pytest.fixture
def folder(tmp_path):
    """Seeds 0 and 2 on noise, seed 1 on black."""
    for condition, seed in ((NOISE, 0), (NOISE, 2), (PLAIN, 1)):
        kept(tmp_path, condition, seed)
    return tmp_path


def kept(folder, condition, seed, setting="simple-fr"):
    card = train.settled_by(setting, seed, condition, "paper", "disjoint", 24)
    card |= {"accepted": True, "accuracy": 1.0, "loss": "cross_entropy"}
    return train.save(condition.build(setting), folder / f"{condition.stem(setting, seed)}.safetensors", card)


def test_the_wheel_holds_seed_0_on_black():
    assert shipped.found("simple-fr") == {0: "simple-fr"}


def test_all_seeds_of_a_condition_are_found(folder):
    assert shipped.found("simple-fr", folder, NOISE) == {0: "simple-fr.noise", 2: "simple-fr.noise.seed2"}
    assert shipped.found("simple-fr", folder) == {1: "simple-fr.seed1"}


def test_a_model_is_known_by_its_card_and_not_by_its_files_name(folder):
    for ending in (".json", ".safetensors"):
        (folder / f"simple-fr.seed1{ending}").rename(folder / f"simple-fr{ending}")
    assert shipped.found("simple-fr", folder) == {1: "simple-fr"}
    assert shipped.load("simple-fr", folder).name == "simple_cnn(seed=1)"


def test_what_is_loaded_is_what_was_saved(tmp_path):
    condition = Condition(arch="alexnet(width=0.05)")
    net = condition.build("simple-fr")
    net(torch.rand(8, 3, 64, 64))
    net.norm1.num_batches_tracked.fill_(70001)  # more than float16 can count to
    card = train.settled_by("simple-fr", 0, condition, "paper", "disjoint", 24)
    stem = condition.stem("simple-fr", 0)
    train.save(net, tmp_path / f"{stem}.safetensors", card)
    model, image = shipped.load("simple-fr", tmp_path, stem), torch.rand(2, 3, 64, 64)
    assert torch.equal(model.net(image), train.rounded(net)(image))
    assert model.net.norm1.num_batches_tracked == 70001
    assert model.cam_layer == "relu5"


def test_what_is_not_there_is_said_with_the_command_that_makes_it(folder):
    with pytest.raises(ValueError, match=r'saliometer train textbox --setting simple-fr --arch "alexnet" --robust'):
        shipped.found("simple-fr", folder, Condition(arch="alexnet", robust=True))
    with pytest.raises(ValueError, match="no readable card"):
        shipped.found("simple-nr", folder)


def test_two_models_of_one_seed_are_refused(folder):
    for ending in (".json", ".safetensors"):
        (folder / f"simple-fr.again{ending}").write_bytes((folder / f"simple-fr.noise{ending}").read_bytes())
    with pytest.raises(ValueError, match="two models of simple_cnn"):
        shipped.found("simple-fr", folder, NOISE)


def test_one_trained_on_other_photographs_is_refused(tmp_path):
    natural = Condition("natural")
    kept(tmp_path, natural, 0)
    assert shipped.found("simple-fr", tmp_path, natural) == {0: "simple-fr.natural"}
    path = tmp_path / "simple-fr.natural.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"photographs_sha256": "other"}))
    with pytest.raises(ValueError, match="trained on other photographs"):
        shipped.found("simple-fr", tmp_path, natural)

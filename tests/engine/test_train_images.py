"""Training on images: what is learnt, kept and told; the same numbers after a kill; and networks loaded again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch

import saliometer
from saliometer.engine import train_images as training
from saliometer.engine.data import Data
from saliometer.engine.image_cards import preprocessing_of
from saliometer.engine.shown import Shown
from saliometer.engine.subjects import load_model
from saliometer.engine.train_images import checkpoint_epochs, checkpoints_of, load_trained, train_images
from saliometer.engine.weights import fingerprint, read

COLOURS = ("red", "green", "blue")


def coloured(count: int, seed: int, side: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """Noise in which the class's colour is stronger."""
    labels = torch.arange(count) % 3
    noise = torch.randint(0, 100, (count, 3, side, side), generator=torch.Generator().manual_seed(seed))
    noise[torch.arange(count), labels] += 120
    return noise.to(torch.uint8), labels


DATA = Data("colours", *coloured(46, 0), *coloured(15, 1), classes=COLOURS)
FAST = {"epochs": 3, "batch": 16}


def trained(out: Path, data: Data = DATA, arch: str = "resnet20", **params) -> dict:
    return train_images(data, arch, out, **(FAST | params))


def states(folder: Path) -> list[dict[str, torch.Tensor]]:
    return [read(path) for path in (*checkpoints_of(folder), folder / "final.safetensors")]


def same(one: Path, other: Path) -> bool:
    pairs = zip(states(one), states(other), strict=True)
    return all(torch.equal(value, there[key]) for here, there in pairs for key, value in here.items())


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("images") / "done"
    return folder, trained(folder)


# What is left


def test_the_folder_holds_checkpoints_final_weights_and_a_card(done):
    folder, card = done
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == [
        "card.json", "checkpoints/epoch_01.safetensors", "checkpoints/epoch_02.safetensors",
        "checkpoints/epoch_03.safetensors", "final.safetensors",
    ]  # fmt: skip
    assert json.loads((folder / "card.json").read_text()) == card
    last, final = (
        safetensors.torch.load_file(path) for path in (checkpoints_of(folder)[-1], folder / "final.safetensors")
    )
    assert all(torch.equal(value, final[key]) for key, value in last.items())


def test_the_card_says_what_was_trained_how_on_what(done):
    card = done[1]
    assert (card["arch"], card["init"], card["seed"], card["side"]) == ("resnet20", "random", 0, 16)
    assert card["classes"] == list(COLOURS)
    about = {"name": "colours", "sha256": DATA.sha256, "train": 46, "test": 15, "largest_class": 1 / 3, "notes": []}
    assert card["data"] == about
    assert (card["recipe"]["optimiser"], card["recipe"]["epochs"], card["recipe"]["batch"]) == ("sgd", 3, 16)
    assert (card["precision"], card["trained_on"], card["parameters"]) == ("float32", "cpu", 269_267)
    assert set(card["versions"]) == {"saliometer", "torch", "torchvision", "python"}
    assert card["preprocessing"]["mean"] == [0.485, 0.456, 0.406]
    assert [entry["epoch"] for entry in card["checkpoints"]] == [1, 2, 3]
    assert len({entry["sha256"] for entry in card["checkpoints"]}) == 3
    assert card["checkpoints"][-1]["sha256"] == card["sha256"]


def test_the_accuracies_are_those_of_the_weights_that_were_kept(done):
    folder, card = done
    net, _ = load_trained(folder)
    way = preprocessing_of(card)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (way.mean, way.std))
    for path, entry in zip(checkpoints_of(folder), card["checkpoints"], strict=True):
        net.load_state_dict(read(path))
        logits = net((DATA.test / 255 - mean) / std)
        assert entry["test_accuracy"] == pytest.approx((logits.argmax(1) == DATA.test_labels).float().mean().item())
        wanted = torch.nn.functional.cross_entropy(logits, DATA.test_labels).item()
        assert entry["test_loss"] == pytest.approx(wanted, rel=1e-4)


def lag(folder: Path, weights: Path, epoch: int) -> float:
    """How far running means are from those of what comes in, in the images of an epoch; in standard deviations."""
    net, card = load_trained(folder)
    net.load_state_dict(read(weights))
    way, recipe = preprocessing_of(card), card["recipe"]
    shown = Shown.on(torch.device("cpu"), DATA.train, DATA.train_labels, way, torch.contiguous_format)
    images = torch.cat([part for _, part in shown.batches(epoch - 1, recipe["batch"], card["seed"], recipe["jitter"])])
    found = []

    def hear(norm: torch.nn.Module, inputs: tuple[torch.Tensor]) -> None:
        away = (inputs[0].mean((0, 2, 3)) - norm.running_mean).abs() / norm.running_var.sqrt()
        found.append(float(away.max()))

    for norm in (module for module in net.modules() if isinstance(module, torch.nn.BatchNorm2d)):
        norm.register_forward_pre_hook(hear)
    net(images)
    assert len(found) == 19
    return max(found)


def test_batch_norms_of_every_checkpoint_have_the_statistics_of_its_weights(done):
    """While weights move fast, those of the last steps are of others, and a network that has learnt all guesses."""
    folder, card = done
    for path, entry in zip(checkpoints_of(folder), card["checkpoints"], strict=True):
        assert lag(folder, path, entry["epoch"]) < 1e-3


def test_colours_are_learnt_and_the_gate_says_so(tmp_path):
    card = trained(tmp_path, epochs=12, rate=0.03)
    assert card["test_accuracy"] > 0.75
    assert card["gate"] == {"wanted": 0.75, "got": card["test_accuracy"], "passes": True, "says": "passes 75 %"}
    assert [entry["epoch"] for entry in card["checkpoints"]] == [2, 3, 4, 5, 6, 8, 9, 10, 11, 12]


def test_a_model_below_the_gate_is_kept_and_marked(tmp_path):
    data = replace(DATA, test_labels=(DATA.test_labels + 1) % 3)  # nothing that is learnt is right
    card = trained(tmp_path, data)
    assert card["gate"]["says"] == "misses 75 %"
    assert (tmp_path / "final.safetensors").exists()


@pytest.mark.parametrize(
    ("epochs", "wanted"),
    [
        (20, list(range(2, 21, 2))), (100, list(range(10, 101, 10))), (10, list(range(1, 11))), (3, [1, 2, 3]),
        (1, [1]), (25, [3, 5, 8, 10, 13, 15, 18, 20, 23, 25]),
    ],
)  # fmt: skip
def test_checkpoints_come_every_tenth_at_least_an_epoch_apart(epochs, wanted):
    assert checkpoint_epochs(epochs) == wanted


# The same numbers


def test_the_same_call_gives_the_same_weights_and_another_seed_others(done, tmp_path):
    folder, _ = done
    torch.rand(5)  # the caller's generator plays no part
    trained(tmp_path / "same")
    assert same(folder, tmp_path / "same")
    trained(tmp_path / "other", seed=1)
    assert not same(folder, tmp_path / "other")


class Killed(BaseException):
    """As a kill would, it passes by whatever catches errors."""


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_killed_training_goes_on_with_the_same_numbers(done, tmp_path, share, monkeypatch):
    monkeypatch.setattr(training, "KEEP_EVERY", 0.0)

    def kill(so_far: float, text: str) -> None:
        if so_far > share:
            raise Killed

    with pytest.raises(Killed):
        trained(tmp_path, watch=kill)
    assert not json.loads((tmp_path / "card.json").read_text())["finished"]
    with pytest.raises(ValueError, match="is not finished: the same `saliometer train images` goes on there"):
        load_trained(tmp_path)
    told: list[float] = []
    card = trained(tmp_path, watch=lambda so_far, text: told.append(so_far))
    assert told[0] > share - 1 / 3  # not from the start again
    assert same(done[0], tmp_path)
    assert card["checkpoints"] == done[1]["checkpoints"]
    assert not (tmp_path / "training.checkpoint").exists()


def test_a_killed_training_on_a_plateau_goes_on_with_the_same_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "KEEP_EVERY", 0.0)
    options = {"recipe": "eurosat", "epochs": 6, "batch": 16, "rate": 0.5}  # so high that it does not get better
    whole = trained(tmp_path / "whole", **options)

    def kill(so_far: float, text: str) -> None:
        if so_far > 0.7:
            raise Killed

    with pytest.raises(Killed):
        trained(tmp_path / "killed", watch=kill, **options)
    assert trained(tmp_path / "killed", **options)["checkpoints"] == whole["checkpoints"]
    assert same(tmp_path / "whole", tmp_path / "killed")


def test_a_finished_training_is_not_done_again(done):
    folder, card = done
    assert trained(folder, watch=lambda *_: pytest.fail("it was trained again")) == card


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epochs": 4}, "its recipe epochs is 3, and 4 is asked for"),
        ({"seed": 7}, "its seed is 0, and 7 is asked for"),
        ({"arch": "vit_tiny"}, "its arch is resnet20, and vit_tiny is asked for"),
        ({"data": replace(DATA, name="others")}, "its data name is colours, and others is asked for"),
        ({"amp": True}, "its precision is float32, and bfloat16 is asked for"),
    ],
)
def test_another_training_is_not_written_over(done, change, words):
    with pytest.raises(ValueError, match=f"holds another training: {words}. Give another --out"):
        trained(done[0], **change)


def test_damaged_weights_are_trained_anew(done, tmp_path):
    for path in done[0].rglob("*.*"):
        (tmp_path / path.relative_to(done[0])).parent.mkdir(exist_ok=True)
        (tmp_path / path.relative_to(done[0])).write_bytes(path.read_bytes())
    (tmp_path / "final.safetensors").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="missing or not those of their card"):
        load_trained(tmp_path)
    trained(tmp_path)
    assert same(done[0], tmp_path)


# Ways to train


@pytest.mark.parametrize("frozen", [True, False])
def test_a_frozen_backbone_keeps_its_weights_and_a_full_one_does_not(tmp_path, frozen):
    trained(tmp_path, frozen=frozen)
    first, last = read(checkpoints_of(tmp_path)[0]), read(tmp_path / "final.safetensors")
    moved = {key for key, value in first.items() if not torch.equal(value, last[key])}
    assert {"linear.weight", "linear.bias"} <= moved
    learnt = {key for key in moved if not key.startswith("linear.") and "running" not in key and "tracked" not in key}
    assert bool(learnt) != frozen
    assert any("running_mean" in key for key in moved)  # in train mode, frozen or not, as in the paper's code


def test_a_recipe_of_the_paper_brings_its_head_and_freezes(tmp_path):
    card = trained(tmp_path, recipe="cifar10", epochs=1)
    assert card["recipe"]["hidden"] == [1024, 256]
    assert card["recipe"]["frozen"]
    net, _ = load_trained(tmp_path)
    assert [layer.out_features for layer in net.linear if isinstance(layer, torch.nn.Linear)] == [1024, 256, 3]
    assert lag(tmp_path, tmp_path / "final.safetensors", 1) > 0.1  # batch norms are as the paper's code leaves them


def test_gradients_are_cut_off_value_by_value():
    from saliometer.models._loop import Learning

    net = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(net.weight)
    learning = Learning(torch.optim.SGD(net.parameters(), 1.0), lambda logits, labels: (-7 * logits).sum(), clip=0.1)
    learning.step(net, torch.ones(1, 1), torch.zeros(1))
    assert net.weight.item() == pytest.approx(0.1)


@pytest.mark.parametrize("arch", ["vit_tiny", "swin_tiny", "convnext_tiny"])
def test_small_networks_are_trained_in_bfloat16_and_explained(tmp_path, arch):
    """Pictures of 16 pixels are enlarged to what the network takes."""
    data = replace(DATA, train=DATA.train[:6], train_labels=DATA.train_labels[:6])
    card = trained(tmp_path, data, arch, epochs=1, batch=3, amp=True)
    assert card["precision"] == "bfloat16"
    net, _ = load_trained(tmp_path)
    assert {values.dtype for values in net.parameters()} == {torch.float32}
    images = torch.rand(1, 3, card["side"], card["side"])
    for method in ("grad_cam", "integrated_gradients(steps=2)"):
        assert saliometer.explain(net, images, method).shape == (1, card["side"], card["side"])


def test_a_file_of_weights_is_where_training_starts(done, tmp_path):
    card = trained(tmp_path, init=str(done[0] / "final.safetensors"), frozen=True, epochs=1, batch=16)
    assert (card["init"], card["init_file"]) == ("file", "final.safetensors")
    start, end = read(done[0] / "final.safetensors"), read(tmp_path / "final.safetensors")
    assert torch.equal(start["layer2.0.conv1.weight"], end["layer2.0.conv1.weight"])
    assert not torch.equal(start["linear.weight"], end["linear.weight"])
    assert card["recipe"]["rate"] == 1e-2  # ours, from trained weights


def test_a_limit_takes_as_many_of_each_class(tmp_path):
    card = trained(tmp_path, limit=9, epochs=1, batch=4)
    assert card["data"]["train"] == 9
    part = training._limited(DATA, 9)
    assert part.train_labels.bincount().tolist() == [3, 3, 3]
    assert training._limited(DATA, 10_000) is DATA


def test_pictures_cut_from_larger_ones_are_told_as_they_were_cut():
    """So that an audit cuts pictures from elsewhere in the same way."""
    kind = training.arch_given("resnet20")[0]
    device, told = training._ways(kind, replace(DATA, resized=20), 16)
    assert (device.resize, device.crop) == (16, 16)  # it is done
    assert (told.resize, told.crop) == (20, 16)
    large = training.arch_given("vit_b_16")[0]
    assert [(way.resize, way.crop) for way in training._ways(large, DATA, 224)] == [(256, 224)] * 2


# Bad input


def test_a_training_that_diverges_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"resnet20 on colours diverged in epoch \d .*try a lower --rate than 1e\+30"):
        trained(tmp_path, rate=1e30)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"arch": "resnet21"}, LookupError, "there is no architecture 'resnet21'"),
        ({"recipe": "cifar100"}, LookupError, "there is no recipe 'cifar100'"),
        ({"epochs": -1}, ValueError, "wanted 0 \\(the usual\\) or more"),
        ({"batch": 1}, ValueError, "batches of 2 or more"),
        ({"side": 4}, ValueError, "resnet20 on images of 4 pixels: wanted 8 or more"),
        ({"limit": 2}, ValueError, "no training image of 1 of 3 classes"),
        ({"init": "nowhere"}, ValueError, "there is no such file"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(tmp_path, change, error, words):
    with pytest.raises(error, match=words):
        trained(tmp_path / "new", **change)
    assert not (tmp_path / "new").exists()


def test_a_folder_without_a_card_of_ours_is_refused(tmp_path):
    (tmp_path / "card.json").write_text("{}")
    with pytest.raises(ValueError, match="it is not a card of `saliometer train images`"):
        load_trained(tmp_path)


# Loaded again


def test_a_folder_is_a_model_for_an_audit(done, tmp_path):
    folder, card = done
    _, preprocessing, facts = load_model(str(folder))
    assert facts["name"] == "resnet20(data=colours,init=random,seed=0)"
    assert facts["classes"] == 3
    assert preprocessing == preprocessing_of(card)
    assert facts["sha256"] == fingerprint(load_trained(folder)[0])
    other, _, told = load_model(str(folder), weights=checkpoints_of(folder)[0])
    assert told["name"] == "resnet20(data=colours,init=random,seed=0,weights='epoch_01.safetensors')"
    assert torch.equal(other.linear.weight, read(checkpoints_of(folder)[0])["linear.weight"])


def test_cose_is_measured_on_a_trained_folder_and_its_checkpoints(done, tmp_path):
    import numpy as np

    folder, _ = done
    np.savez(tmp_path / "test.npz", x=DATA.test[:2].permute(0, 2, 3, 1).numpy(), y=DATA.test_labels[:2].numpy())
    found = saliometer.audit(
        str(folder), tmp_path / "test.npz", methods=["gradient"], checkpoints=str(folder / "checkpoints"),
        metrics=["cose(operations='flip_lr')"], out=tmp_path / "run",
    )  # fmt: skip
    assert "gradient" in {one.method for one in found.coses}
    assert any("epoch_03.safetensors' is the model itself" in warning for warning in found.problems())

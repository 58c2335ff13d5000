"""docs/training.md tells of every network and recipe there is, with their numbers."""

import re
from pathlib import Path

import pytest

from saliometer.engine.architectures import ARCHS, built
from saliometer.engine.initial import ORIGINS
from saliometer.engine.recipes import PAPER, recipe_for
from saliometer.registry import Spec

PAGE = (Path(__file__).parents[1] / "docs" / "training.md").read_text()


def row(name: str) -> list[str]:
    line = next(line for line in PAGE.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1])
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("name", [name for name, arch in ARCHS.items() if not arch.large])
def test_small_networks_have_their_size(name):
    count = sum(values.numel() for values in built(Spec(name), 10, 32).parameters())
    assert row(name)[2] == f"{count / 1e6:.1f}"


def test_every_network_and_origin_is_named():
    assert {name for name in ARCHS if f"`{name}`" not in PAGE} == set()
    assert {name for name in ORIGINS if f"`{name}:FILE`" not in PAGE} == set()


@pytest.mark.parametrize("name", PAPER)
def test_recipes_have_their_numbers(name):
    recipe, (_, head, learns, optimiser, rate, epochs) = PAPER[name], row(name)
    assert head == ", ".join([*map(str, recipe.hidden), "K"])
    assert learns.startswith("head" if recipe.frozen else "all")
    assert optimiser.lower().startswith(recipe.optimiser)
    decay = re.search(r"decay ([\d.e-]+)", optimiser)
    assert float(decay[1] if decay else 0) == recipe.decay
    assert (float(rate.split()[0]), int(epochs.split()[0])) == (recipe.rate, recipe.epochs)


def test_our_own_recipes_have_their_numbers():
    for words, origin in (("ours, from random weights", "random"), ("ours, from trained weights", "supervised")):
        line = next(line for line in PAGE.splitlines() if line.startswith(f"| {words}"))
        *_, rates, epochs = [cell.strip() for cell in line.strip("|").split("|")]
        found = [recipe_for("", arch, origin) for arch in ("resnet50", "vit_tiny")]
        assert [float(one) for one in rates.split(",")] == [recipe.rate for recipe in found]
        assert {int(epochs)} == {recipe.epochs for recipe in found}

"""Recipes: the table of the COSE paper's code, its exceptions, and how rates rise and fall."""

import math

import pytest
import torch
from torch import nn

from saliometer.engine.architectures import ARCHS
from saliometer.engine.recipes import (
    PAPER,
    ImageRecipe,
    optimiser_of,
    plateau_of,
    recipe_for,
    schedule_of,
    share_of_rate,
)

TABLE = {  # cose.md 3.2: frozen, hidden layers, optimiser, rate, decay, epochs, clip
    "caltech101": (True, (1024,), "adam", 1e-4, 0.0, 20, 0.1),
    "cifar10": (True, (1024, 256), "adam", 8e-4, 1e-3, 20, 0.1),
    "eurosat": (True, (256,), "adam", 1e-4, 1e-3, 10, 0.1),
    "oxford102": (True, (1024,), "adam", 8e-4, 1e-3, 30, 0.0),
    "cub200": (False, (), "sgd", 1e-3, 1e-4, 100, 0.1),
}


def facts(recipe: ImageRecipe) -> tuple:
    return (
        recipe.frozen, recipe.hidden, recipe.optimiser, recipe.rate, recipe.decay, recipe.epochs, recipe.clip
    )  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_a_recipe_is_the_papers(name):
    recipe = recipe_for(name, "resnet50", "supervised")
    assert facts(recipe) == TABLE[name]
    assert (recipe.batch, recipe.schedule, recipe.smoothing, recipe.warmup, recipe.jitter) == (
        32,
        "plateau",
        0,
        0,
        False,
    )
    assert recipe.momentum == (0.85 if name == "cub200" else 0)


def test_there_are_no_other_recipes():
    assert set(PAPER) == set(TABLE)
    with pytest.raises(LookupError, match="there is no recipe 'cifar'"):
        recipe_for("cifar", "resnet50", "random")


def test_exceptions_are_for_one_origin_and_network():
    assert recipe_for("caltech101", "convnext_small", "spark").epochs == 40
    spark = recipe_for("oxford102", "convnext_small", "spark")
    assert (spark.epochs, spark.rate, spark.clip) == (100, 1e-3, 0.1)
    assert recipe_for("cub200", "resnet50", "dino").epochs == 200
    assert recipe_for("cub200", "vit_b_16", "dino").epochs == 100
    assert recipe_for("cub200", "swin_t", "ibot").frozen
    assert not recipe_for("cub200", "vit_b_16", "ibot").frozen


@pytest.mark.parametrize("arch", ARCHS)
def test_our_own_recipe_starts_lower_from_trained_weights(arch):
    fresh, tuned = recipe_for("", arch, "random"), recipe_for("ours", arch, "supervised")
    assert fresh.name == tuned.name == "ours"
    assert tuned.rate <= fresh.rate / 10
    assert not fresh.frozen
    assert fresh.optimiser == ("sgd" if arch.startswith("resnet") else "adamw")


def test_the_rate_rises_then_falls_along_a_cosine():
    share = share_of_rate(0.1, 100)
    assert [share(step) for step in (0, 4, 9)] == pytest.approx([0.1, 0.5, 1.0])
    assert share(10) == pytest.approx(1.0)
    assert share(55) == pytest.approx(0.5)
    assert share(100) == pytest.approx(0.0, abs=1e-9)
    assert share(70) == pytest.approx(0.5 * (1 + math.cos(math.pi * 60 / 90)))
    assert share_of_rate(0.0, 10)(0) == 1.0


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.class_token = nn.Parameter(torch.ones(1, 1, 4))
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.layer, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)


def test_adamw_leaves_scales_offsets_and_tokens_out_of_its_decay():
    net = Tokens()
    optimiser = optimiser_of(net, ImageRecipe("x", 1, 2, "adamw", 1e-2, decay=0.5))
    decayed, kept = optimiser.param_groups
    assert [tuple(values.shape) for values in decayed["params"]] == [(4, 4)]
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.5, 0.0)
    assert sum(values.numel() for values in kept["params"]) == 4 + 4 + 4 + 4


@pytest.mark.parametrize(("name", "kind"), [("adam", torch.optim.Adam), ("sgd", torch.optim.SGD)])
def test_the_papers_optimisers_decay_everything_that_learns(name, kind):
    optimiser = optimiser_of(Tokens(), ImageRecipe("x", 1, 2, name, 1e-2, decay=0.5, momentum=0.9))
    assert isinstance(optimiser, kind)
    [group] = optimiser.param_groups
    assert (group["weight_decay"], group["lr"], len(group["params"])) == (0.5, 1e-2, 5)
    assert group.get("momentum", 0.9) == 0.9


def test_a_plateau_of_three_epochs_as_good_as_ends_the_training():
    """Patience 2: the third epoch without a better loss cuts the rate to 1e-5 of what it was."""
    recipe = recipe_for("cifar10", "resnet50", "supervised")
    optimiser = optimiser_of(nn.Linear(2, 2), recipe)
    plateau = plateau_of(optimiser, recipe)
    rates = []
    for loss in (1.0, 0.9, 0.95, 0.95, 0.95, 0.95):
        plateau.step(loss)
        rates.append(optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([8e-4] * 4 + [8e-9] * 2)
    assert schedule_of(optimiser, recipe, 10) is None
    assert plateau_of(optimiser, recipe_for("", "vit_tiny", "random")) is None

"""Training: repeatable bit for bit, going on after an interruption, with losses worked out by hand."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saliometer.models.fit import Recipe, clipped_loss, fit
from saliometer.seeds import fork, scoped

COUNT = 50
LABELS = torch.arange(COUNT) % 2
IMAGES = torch.rand(COUNT, 3, 8, 8, generator=torch.Generator().manual_seed(0))
IMAGES = IMAGES + 0.3 * LABELS[:, None, None, None]  # the class is the brightness


def fresh() -> nn.Module:
    with scoped("fit"):
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Dropout(0.0), nn.Flatten(), nn.Linear(4 * 36, 2))


def weights(net: nn.Module) -> Tensor:
    return torch.cat([value.detach().flatten() for value in net.parameters()])


def trained(recipe: Recipe, seed: int = 0, **params) -> tuple[Tensor, float]:
    net = fresh()
    loss = fit(net, lambda chosen: IMAGES[chosen], LABELS, recipe, seed, **params)
    return weights(net), loss


RECIPE = Recipe(epochs=3, batch=16)


def test_the_same_seed_gives_the_same_weights_to_the_last_bit():
    one, loss = trained(RECIPE)
    torch.rand(7)  # the caller's generator plays no part
    again, loss_again = trained(RECIPE)
    assert torch.equal(one, again)
    assert loss == loss_again
    assert not torch.equal(one, trained(RECIPE, seed=1)[0])


def test_dropout_follows_the_seed_too():
    def dropping() -> nn.Module:
        net = fresh()
        net[2].p = 0.5
        return net

    found = []
    for seed in (0, 0, 1):
        net = dropping()
        torch.rand(3)
        fit(net, lambda chosen: IMAGES[chosen], LABELS, RECIPE, seed)
        found.append(weights(net))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [("cosine", [1e-3 * (1 + math.cos(math.pi * step / 8)) / 2 for step in range(8)]), ("constant", [1e-3] * 8)],
)
def test_the_rate_falls_along_a_cosine_or_stays(monkeypatch, schedule, wanted):
    """Read off the optimiser in each of its steps."""
    rates, step = [], torch.optim.Adam.step

    def seen(self, *args, **params):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *args, **params)

    monkeypatch.setattr(torch.optim.Adam, "step", seen)
    trained(Recipe(epochs=2, batch=16, schedule=schedule))
    assert rates == pytest.approx(wanted)


def test_images_can_be_altered_before_every_step():
    """Told the images, their labels and numbers, and how many epochs are done, by the image."""
    told = []

    def altered(images: Tensor, labels: Tensor, chosen: Tensor, done: float) -> Tensor:
        told.append(
            (round(50 * done), len(images), torch.equal(images, IMAGES[chosen]) and torch.equal(labels, LABELS[chosen]))
        )
        return images + 1

    net = fresh()
    fit(net, lambda chosen: IMAGES[chosen], LABELS, RECIPE, 0, altered=altered)
    assert told == [
        (50 * epoch + before, count, True)
        for epoch in range(3)
        for before, count in ((0, 16), (16, 16), (32, 16), (48, 2))
    ]
    brighter = fresh()
    fit(brighter, lambda chosen: IMAGES[chosen] + 1, LABELS, RECIPE, 0)
    assert torch.equal(weights(net), weights(brighter))


class KilledError(Exception):
    pass


@pytest.mark.parametrize("at", [0.3, 0.5, 0.9])
def test_a_killed_training_goes_on_to_the_same_weights(tmp_path, at):
    checkpoint, seen = tmp_path / "a.checkpoint", []

    def watch(share: float, text: str) -> None:
        if share > at:
            raise KilledError

    wanted, loss = trained(RECIPE)
    with pytest.raises(KilledError):
        trained(RECIPE, checkpoint=checkpoint, watch=watch)
    found = trained(RECIPE, checkpoint=checkpoint, watch=lambda share, text: seen.append(text))
    assert torch.equal(found[0], wanted)
    assert found[1] == loss
    assert seen[0] == f"epoch {math.floor(at * 3) + 1}"  # epochs that were finished are not trained again


def test_a_finished_checkpoint_gives_its_weights_and_loss_without_training(tmp_path):
    checkpoint, seen = tmp_path / "a.checkpoint", []
    wanted = trained(RECIPE, checkpoint=checkpoint)
    found = trained(RECIPE, checkpoint=checkpoint, watch=lambda share, text: seen.append(text))
    assert seen == []
    assert torch.equal(found[0], wanted[0])
    assert found[1] == wanted[1]


@pytest.mark.parametrize(
    ("recipe", "seed"),
    [(Recipe(epochs=3, batch=16, rate=1e-2), 0), (RECIPE, 1), (Recipe(epochs=3, batch=16, schedule="constant"), 0)],
)
def test_another_recipe_or_seed_does_not_go_on_from_a_checkpoint(tmp_path, recipe, seed):
    checkpoint = tmp_path / "a.checkpoint"
    trained(RECIPE, checkpoint=checkpoint)
    found = trained(recipe, seed, checkpoint=checkpoint)
    assert torch.equal(found[0], trained(recipe, seed)[0])


def test_training_is_adam_along_a_cosine_over_batches_in_the_seeds_order():
    """Written out once more with nothing shared but the order's seed."""
    net, recipe = fresh(), Recipe(epochs=2, batch=20, rate=5e-3)
    optimiser = torch.optim.Adam(net.parameters(), lr=recipe.rate)
    steps, step, total = 2 * 3, 0, 0.0
    for epoch in range(2):
        order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(fork(4, "order", epoch)))
        total = 0.0
        for chosen in order.split(20):
            for group in optimiser.param_groups:
                group["lr"] = recipe.rate * (1 + math.cos(math.pi * step / steps)) / 2
            loss = F.cross_entropy(net(IMAGES[chosen]), LABELS[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step, total = step + 1, total + loss.item() * len(chosen)
    found, loss = trained(recipe, seed=4)
    torch.testing.assert_close(found, weights(net), rtol=1e-4, atol=1e-6)
    assert loss == pytest.approx(total / COUNT, rel=1e-5)


def test_every_image_is_seen_once_an_epoch_and_the_watch_is_told():
    asked, told = [], []

    def images_of(chosen: Tensor) -> Tensor:
        asked.append(chosen)
        return IMAGES[chosen]

    fit(fresh(), images_of, LABELS, Recipe(epochs=2, batch=8), 0, watch=lambda share, text: told.append((share, text)))
    per_epoch = torch.cat(asked).view(2, COUNT)
    assert per_epoch.sort(1).values.tolist() == [list(range(COUNT))] * 2
    assert per_epoch[0].tolist() != per_epoch[1].tolist()
    assert told[0] == (8 / 100, "epoch 1")
    assert told[-1] == (1.0, "epoch 2")


def test_a_trained_network_comes_back_in_eval_mode():
    net = fresh()
    fit(net, lambda chosen: IMAGES[chosen], LABELS, Recipe(epochs=1), 0)
    assert not net.training


def test_training_learns_what_can_be_learnt():
    net = fresh()
    fit(net, lambda chosen: IMAGES[chosen], LABELS, Recipe(epochs=60, batch=16, rate=1e-2), 0)
    assert (net(IMAGES).argmax(1) == LABELS).all()


def test_the_clipped_loss_reads_linear_outputs_as_probabilities():
    """Outputs (0.8, 0.3), class 0: -(log 0.8 + log 0.7) / 2."""
    loss = clipped_loss(torch.tensor([[0.8, 0.3]]), torch.tensor([0]))
    assert loss.item() == pytest.approx(-(math.log(0.8) + math.log(0.7)) / 2, rel=1e-6)


def test_the_clipped_loss_has_no_slope_beyond_0_and_1():
    """Right beyond the interval costs nothing; wrong beyond it costs -log 1e-7 and cannot be repaired."""
    outputs = torch.tensor([[1.7, -0.4], [-0.4, 1.7]], requires_grad=True)
    each = torch.stack([clipped_loss(outputs[i : i + 1], torch.tensor([0])) for i in range(2)])
    each.sum().backward()
    assert each[0].item() == pytest.approx(0, abs=2e-7)
    assert each[1].item() == pytest.approx(-math.log(1e-7), rel=0.02)
    assert outputs.grad.abs().max() == 0


def test_the_loss_of_a_recipe_is_the_one_it_trains_with():
    one, _ = trained(Recipe(epochs=1, batch=16))
    other, loss = trained(Recipe(epochs=1, batch=16, loss="clipped"))
    assert not torch.equal(one, other)
    assert math.isfinite(loss)

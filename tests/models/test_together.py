"""Several networks trained at once: each as if it were alone, from its own seed, and on where a kill was."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from saliometer.models import _together
from saliometer.models._together import fit_together
from saliometer.models.digit_cnn import digit_cnn
from saliometer.models.fit import Recipe
from saliometer.seeds import fork, forks, scoped, uniform

RECIPE = Recipe(epochs=3, batch=8, rate=3e-3)


def nets(*seeds: int) -> list[nn.Module]:
    found = []
    for seed in seeds:
        with scoped("together", seed):
            found.append(digit_cnn(2, 1, rows=8, columns=8, width=0.05))
    return found


def data(count: int = 20) -> tuple[torch.Tensor, torch.Tensor]:
    """Bright or dark images."""
    labels = torch.arange(count) % 2
    images = uniform(forks(fork("together"), torch.arange(count)), "image", 1, 8, 8)
    return images + labels[:, None, None, None], labels


def fixed(images: torch.Tensor, labels: torch.Tensor):
    """The same images in every epoch, (R, n) labels."""
    return (lambda epoch: (images, labels)), len(images)


def weights(net: nn.Module) -> torch.Tensor:
    return torch.cat([value.detach().flatten() for value in net.parameters()])


def test_each_ends_where_it_would_alone():
    images, labels = data()
    together, alone = nets(0, 1, 2), nets(0, 1, 2)
    both = fit_together(together, *fixed(images, labels.expand(3, -1)), RECIPE, [10, 11, 12])
    single = [
        fit_together([net], *fixed(images, labels[None]), RECIPE, [seed])[0]
        for net, seed in zip(alone, (10, 11, 12), strict=True)
    ]
    assert both == pytest.approx(single)
    for one, other, fresh in zip(together, alone, nets(0, 1, 2), strict=True):
        torch.testing.assert_close(weights(one), weights(other), rtol=1e-3, atol=1e-4)
        assert (weights(one) - weights(fresh)).abs().max() > 1e-3
        assert not one.training


def test_it_is_adam_on_each_networks_own_mean_loss():
    images, labels = data(8)
    (ours,), (plain,) = nets(0), nets(0)
    fit_together([ours], *fixed(images, labels[None]), Recipe(1, 8, 1e-2), [0])
    optimiser = torch.optim.Adam(plain.parameters(), lr=1e-2)
    nn.functional.cross_entropy(plain(images), labels).backward()  # one batch of all, in any order
    optimiser.step()
    torch.testing.assert_close(weights(ours), weights(plain), rtol=1e-4, atol=1e-5)


def test_what_is_returned_is_the_accuracy_on_the_images():
    images, labels = data()
    some = nets(0, 1)
    found = fit_together(some, *fixed(images, torch.stack((labels, 1 - labels))), Recipe(30, 8, 3e-3), [0, 1])
    assert found == [
        (net(images).argmax(1) == own).double().mean().item()
        for net, own in zip(some, (labels, 1 - labels), strict=True)
    ]
    assert found == [1.0, 1.0]


def test_training_ends_when_all_know_enough():
    images, labels = data()
    seen = []
    fit_together(
        nets(0),
        *fixed(images, labels[None]),
        Recipe(200, 8, 3e-3),
        [0],
        enough=0.95,
        watch=lambda s, text: seen.append(text),
    )
    assert 0 < len(set(seen)) < 100


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    images, labels = data()
    whole, broken, resumed = nets(0, 1), nets(0, 1), nets(0, 1)
    given = labels.expand(2, -1)
    fit_together(whole, *fixed(images, given), RECIPE, [0, 1])

    def stop(share: float, text: str) -> None:
        if text.startswith("epoch 3"):
            raise KeyboardInterrupt

    place = tmp_path / "some.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fit_together(broken, *fixed(images, given), RECIPE, [0, 1], checkpoint=place, watch=stop)
    epochs = set()
    fit_together(
        resumed, *fixed(images, given), RECIPE, [0, 1], checkpoint=place, watch=lambda s, text: epochs.add(text)
    )
    assert epochs == {"epoch 3 of 3"}
    for one, other in zip(whole, resumed, strict=True):
        torch.testing.assert_close(weights(one), weights(other))
    other = nets(0, 1)
    fit_together(other, *fixed(images, given), RECIPE, [0, 2], checkpoint=place, watch=lambda s, text: epochs.add(text))
    assert "epoch 1 of 3" in epochs  # another request starts anew


def test_a_checkpoint_is_not_written_more_often_than_wanted(tmp_path, monkeypatch):
    images, labels = data()
    clock, written = iter(range(0, 100, 10)), []  # every look at it is ten seconds later
    monkeypatch.setattr(_together, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(_together.Kept, "write", lambda self, state, epoch, loss: written.append(epoch))
    given = fixed(images, labels.expand(2, -1))
    fit_together(nets(0, 1), *given, Recipe(5, 8, 1e-2), [0, 1], checkpoint=tmp_path / "some", every=15.0)
    assert written == [2, 4]


def test_every_epoch_may_draw_images_of_its_own():
    images, labels = data(40)
    asked, (net,) = [], nets(0)

    def drawn(epoch: int) -> tuple[torch.Tensor, torch.Tensor]:
        asked.append(epoch)
        part = slice(10 * epoch, 10 * epoch + 10)
        return images[part], labels[None, part]

    fit_together([net], drawn, 10, RECIPE, [0])
    assert asked == [0, 1, 2, 0]  # the accuracy is that on the first

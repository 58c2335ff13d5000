"""Attack sensitivity: closed forms on a linear model, what may not change, smooth ReLUs however they are spelt."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from battery_toys import judged, photos, value
from linear_toys import linear, one, pictures, some, weights
from saliometer.metrics._smooth import BETA, Softplus, climb
from saliometer.registry import metrics
from toys import Formula, explain, model_of, noise_batch, small_cnn

W = weights()
RADIUS = 8 / 255


def attacked(method, model, samples, text="attack_sensitivity", **given):
    maps = explain(model, samples.batch, method)
    return judged(text, model, maps, samples, method=method, **given)


def toy():
    """Targets are what the network predicts."""
    model, images = model_of(small_cnn()), noise_batch().images
    with torch.no_grad():
        return model, photos(images, model.logits(images).argmax(1))


def test_the_gradient_of_a_linear_model_cannot_be_attacked():
    values, _, _ = attacked("gradient", linear(W), pictures())
    assert (values["attack_sensitivity"] == 0).all()
    assert (values["attack_sensitivity.transfer"] == 0).all()


def sure(w):
    """w . x with an added constant, so that no small change turns the prediction."""
    return model_of(Formula(lambda x: x @ w.flatten() + 1000), std=(0.2, 0.25, 0.3), mean=(0.4, 0.5, 0.6))


def inside():
    """Inputs of `sure` whose pixels are at least 8/255 inside [0, 1]."""
    samples = pictures()
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ((0.4, 0.5, 0.6), (0.2, 0.25, 0.3)))
    samples.batch.images.sub_(mean).div_(std)
    return samples, std


def test_input_x_gradient_of_a_linear_model_moves_as_far_as_it_can():
    """8/255 |w| / |w x| in the model's inputs: to rounding, where random draws reach about 0.6 of it."""
    samples, std = inside()
    wanted = (RADIUS / std * W).norm().double() / (W * samples.batch.images).flatten(1).norm(dim=1).double()
    found = attacked("input_x_gradient", sure(W), samples)[0]["attack_sensitivity"]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=0)
    maps = explain(sure(W), samples.batch, "input_x_gradient")
    text = f"max_sensitivity(draws=50,radius={RADIUS},space=pixel)"
    drawn = value(text, sure(W), maps, samples, method="input_x_gradient")
    assert ((drawn / wanted > 0.5) & (drawn / wanted < 0.7)).all()


def test_points_stay_in_the_ball_and_in_the_image(monkeypatch):
    model, samples = toy()
    seen = []
    inner = model.net.forward
    monkeypatch.setattr(model.net, "forward", lambda images: seen.append(images.detach().clone()) or inner(images))
    attacked("gradient", model, samples, size=5)
    points = torch.stack([images for images in seen if len(images) == 5])
    assert len(points) > 20
    assert (points - samples.batch.images).abs().max() <= RADIUS + 1e-6
    assert points.min() >= 0
    assert points.max() <= 1


def test_it_finds_more_than_as_many_random_draws():
    model, samples = toy()
    found = attacked("gradient", model, samples)[0]["attack_sensitivity"]
    maps = explain(model, samples.batch, "gradient")
    drawn = value(f"max_sensitivity(draws=20,radius={RADIUS},space=pixel)", model, maps, samples)
    assert (found >= drawn).float().mean() >= 0.6
    assert found.mean() > 1.2 * drawn.mean()


@pytest.mark.parametrize("method", ["fake_cam", "centre"])
def test_maps_that_do_not_look_at_the_image_stay_and_the_attack_is_a_transfer(method):
    model, samples = toy()
    values, _, _ = attacked(method, model, samples)
    assert (values["attack_sensitivity"] == 0).all()
    assert (values["attack_sensitivity.transfer"] == 1).all()


def test_methods_without_a_slope_are_attacked_through_the_gradient_map():
    model, samples = toy()
    for method in ("integrated_gradients", "gradient(output=probability)"):
        values, _, _ = attacked(method, model, samples)
        assert (values["attack_sensitivity.transfer"] == 1).all()
        assert (values["attack_sensitivity"] > 0).all()


def test_an_empty_map_is_invalid():
    model, samples = toy()
    values, notes, _ = judged("attack_sensitivity(steps=1)", model, torch.zeros(5, 3, 8, 8), samples)
    assert values["attack_sensitivity"].isnan().all()
    assert "map of zeros" in notes[0]


class Edge(nn.Module):
    """Says class 0 exactly where an image is the one it knows, to within `width`; its map is x^2 w."""

    def __init__(self, image, width):
        super().__init__()
        self.image, self.width = image, width

    def forward(self, images):
        near = (images - self.image).abs().amax((1, 2, 3)) <= self.width
        score = (images**3).sum((1, 2, 3))
        return torch.stack((score, score + torch.where(near, -1.0, 1.0)), 1)


def test_a_prediction_that_never_holds_leaves_nothing():
    samples = pictures(1)
    values, notes, _ = attacked("gradient", model_of(Edge(samples.batch.images, 1e-6)), samples)
    assert values["attack_sensitivity"].isnan().all()
    assert "changes the prediction" in notes[0]


def test_moves_are_halved_until_the_prediction_holds():
    """An eighth of the start is inside; steps of 2/255 are halved too, and never leave the width."""
    samples = pictures(1)
    width = RADIUS / 5
    model = model_of(Edge(samples.batch.images, width))
    found = attacked("gradient", model, samples)[0]["attack_sensitivity"].item()
    images = samples.batch.images.double()
    most = ((images + width) ** 2 - images**2).norm() / (images**2).norm()
    assert 0.5 * most < found <= most * (1 + 1e-4)


def test_cost_is_what_the_facts_say():
    """Eleven explanations, ten slopes through the map, and the predictions on the way."""
    model, samples = linear(W), pictures()
    samples.batch.images.mul_(torch.where(W > 0, 1.0, 0.1))  # far from the other class
    samples.batch.images.clamp_(0.05, 0.95)
    cost = attacked("gradient", model, samples)[2]
    assert cost.passes == 4 * (1 + 1 + 11 + 2 * 10 + 11) == 4 * metrics["attack_sensitivity"].facts.passes


def test_the_same_alone_and_in_any_batch():
    model, samples = toy()
    together = attacked("gradient", model, samples, "attack_sensitivity(steps=3)")[0]["attack_sensitivity"]
    for size in (1, 3):
        again = attacked("gradient", model, samples, "attack_sensitivity(steps=3)", size=size)[0]["attack_sensitivity"]
        torch.testing.assert_close(together, again, rtol=1e-3, atol=1e-6)
    alone = [
        attacked("gradient", model, one(samples, i), "attack_sensitivity(steps=3)")[0]["attack_sensitivity"]
        for i in range(5)
    ]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-3, atol=1e-6)


SPELLINGS = {
    "nn.ReLU": nn.ReLU(),
    "nn.ReLU in place": nn.ReLU(inplace=True),
    "F.relu": F.relu,
    "F.relu_": F.relu_,
    "torch.relu": torch.relu,
    "torch.relu_": torch.relu_,
    "Tensor.relu": lambda x: x.relu(),
    "Tensor.relu_": lambda x: x.relu_(),
    "clamp": lambda x: x.clamp(min=0),
    "clamp_": lambda x: x.clamp_(0),
    "torch.clamp": lambda x: torch.clamp(x, min=0),
    "clamp_min": lambda x: torch.clamp_min(x, 0),
}
CEILED = {
    "nn.ReLU6": nn.ReLU6(),
    "nn.ReLU6 in place": nn.ReLU6(inplace=True),
    "F.relu6": F.relu6,
    "hardtanh": nn.Hardtanh(0, 6),
    "clamp": lambda x: x.clamp(0, 6),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_of_a_relu_becomes_smooth_and_is_itself_again(name):
    values = some(50)
    with Softplus():
        found = SPELLINGS[name](values.clone())
    torch.testing.assert_close(found, F.softplus(values, beta=BETA))
    assert torch.equal(SPELLINGS[name](values.clone()), values.relu())


@pytest.mark.parametrize("name", CEILED)
def test_every_spelling_of_a_relu6_becomes_smooth(name):
    values = 5 * some(50)
    with Softplus():
        found = CEILED[name](values.clone())
    torch.testing.assert_close(found, values.clamp(0, 6), rtol=0, atol=0.03)
    assert not torch.equal(found, values.clamp(0, 6))
    bent = torch.tensor(6.0, requires_grad=True)
    with Softplus():
        (slope,) = torch.autograd.grad(CEILED[name](bent.clone()), [bent])
    assert slope.item() == pytest.approx(0.5)


def test_an_in_place_relu_changes_what_it_was_given():
    values = some(10)
    copy = values.clone()
    with Softplus():
        copy.relu_()
    torch.testing.assert_close(copy, F.softplus(values, beta=BETA))


def test_other_cuts_are_left_alone():
    values = 3 * some(20)
    with Softplus():
        assert torch.equal(values.clamp(min=-1), torch.clamp_min(values, -1))
        assert torch.equal(F.hardtanh(values), values.clip(-1, 1))
        assert values.clamp(min=-1).min() == -1


def test_the_slope_of_the_distance_is_that_of_finite_differences():
    net = small_cnn().double()
    samples = pictures(2)
    images, targets = samples.batch.images.double(), samples.batch.targets

    class Just:
        logits = staticmethod(net)

    def maps(at):
        leaf = at.clone().requires_grad_()
        with Softplus():
            score = net(leaf).gather(1, targets[:, None]).sum()
        return torch.autograd.grad(score, [leaf])[0]

    first, here, way = maps(images), images + 0.03 * some(2, 3, 8, 8).double(), some(2, 3, 8, 8, seed=4).double()
    slope = climb(Just, here, targets, first, False)
    rise = ((maps(here + 1e-6 * way) - first).square().sum() - (maps(here - 1e-6 * way) - first).square().sum()) / 2e-6
    assert (slope * way).sum().item() == pytest.approx(rise.item(), rel=1e-4)


def test_a_caller_in_inference_mode_gets_the_same():
    model, samples = toy()
    wanted = attacked("gradient", model, samples, "attack_sensitivity(steps=2)")[0]["attack_sensitivity"]
    with torch.inference_mode():
        inner = photos(samples.batch.images.clone(), samples.batch.targets.clone())
        found = attacked("gradient", model, inner, "attack_sensitivity(steps=2)")[0]["attack_sensitivity"]
    torch.testing.assert_close(found, wanted)


def test_the_network_is_as_it_was():
    model, samples = toy()
    weights_before = [value.clone() for value in model.net.state_dict().values()]
    state = torch.get_rng_state()
    attacked("gradient", model, samples, "attack_sensitivity(steps=2)")
    assert all(torch.equal(a, b) for a, b in zip(weights_before, model.net.state_dict().values(), strict=True))
    assert torch.equal(state, torch.get_rng_state())
    assert all(value.grad is None for value in model.net.parameters())


def test_bad_parameters_are_told():
    for given in ("radius=0.0", "steps=0"):
        with pytest.raises(AssertionError, match=f"{given}.*wanted all above 0"):
            attacked("gradient", linear(W), pictures(), f"attack_sensitivity({given})")

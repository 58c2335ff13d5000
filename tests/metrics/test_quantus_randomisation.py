"""Quantus 0.6.0 on randomisation: where it is right we agree, where it is not we show it."""

import numpy as np
import pytest
import torch
import torchvision
from torch import Tensor, nn

from saliometer.metrics.efficient_mprt import efficient_mprt
from saliometer.metrics.mprt import mprt
from saliometer.sanity.layers import layers_in_order
from saliometer.sanity.randomise import Weights, fresh
from saliometer.sanity.summary import Curve
from saliometer.seeds import normal, scoped

quantus = pytest.importorskip("quantus")

from quantus.functions import similarity_func  # noqa: E402
from quantus.helpers.model.pytorch_model import PyTorchModel  # noqa: E402

QUIET = {"disable_warnings": True, "display_progressbar": False}
SIDE, COUNT, SEED = 10, 3, 42


def network() -> nn.Module:
    """Three layers, two of them of one shape, defined in the order in which they run."""
    with scoped("quantus"):
        return nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)
        ).eval()  # fmt: skip


def images() -> Tensor:
    return normal(torch.arange(COUNT), "quantus", torch.zeros(COUNT, 1, SIDE, SIDE))


def gradients(net: nn.Module, shown: Tensor, targets: Tensor) -> Tensor:
    leaf = shown.clone().requires_grad_()
    return torch.autograd.grad(net(leaf).gather(1, targets[:, None]).sum(), leaf)[0]


def explained(model, inputs, targets, **_) -> np.ndarray:
    return gradients(model, torch.as_tensor(inputs), torch.as_tensor(targets)).detach().numpy()


def theirs(judge, net: nn.Module, explain=explained):
    shown = images()
    targets = net(shown).argmax(1)
    return judge(net, shown.numpy().copy(), targets.numpy(), explain_func=explain, channel_first=True)


def their_states(net: nn.Module, order: str = "top_down") -> dict[str, dict[str, Tensor]]:
    """The weights of each of their stages."""
    wrapped = PyTorchModel(net, channel_first=True)
    return {
        name: {key: value.clone() for key, value in model.state_dict().items()}
        for name, model in wrapped.get_random_layer_generator(order=order, seed=SEED)
    }


# Where it is right


def test_spearman_of_map_pairs_is_theirs():
    one, other = (normal(torch.arange(COUNT), word, torch.zeros(COUNT, 1, 20, 20)) for word in ("a", "b"))
    flat = [some.abs().flatten(1).numpy() for some in (one, one + other)]
    wanted = similarity_func.correlation_spearman(*flat, batched=True)
    assert mprt(one, one + other).values.tolist() == pytest.approx(wanted.tolist(), abs=1e-9)


@pytest.mark.parametrize("order", ["top_down", "bottom_up", "independent"])
def test_mprt_on_the_same_weights_has_their_scores_and_our_layers_are_theirs(order):
    net = network()
    found = theirs(quantus.MPRT(layer_order=order, seed=SEED, **QUIET), net)
    shown, states = images(), their_states(net, order)
    ours = [layer.name for layer in layers_in_order(net, shown, by="module")]
    assert list(states) == (ours[::-1] if order == "top_down" else ours)
    targets = net(shown).argmax(1)
    own, copy = gradients(net, shown, targets), network()
    for name, weights in states.items():
        copy.load_state_dict(weights)
        values = mprt(own, gradients(copy, shown, targets)).values
        assert values.tolist() == pytest.approx(found[name], abs=1e-5), name


def test_efficient_mprt_on_the_same_weights_has_their_scores():
    net = network()
    found = theirs(quantus.EfficientMPRT(seed=SEED, **QUIET), net)
    shown, copy = images(), network()
    copy.load_state_dict(list(their_states(net, "bottom_up").values())[-1])
    targets = net(shown).argmax(1)
    values = efficient_mprt(gradients(net, shown, targets), gradients(copy, shown, targets)).values
    assert values.tolist() == pytest.approx(found, abs=1e-5)


# Where it is not


def test_their_layers_of_one_shape_get_the_same_weights_and_ours_do_not():
    net = network()
    last = list(their_states(net).values())[-1]
    assert torch.equal(last["3.weight"], last["5.weight"])
    first, second = (layer.parts[0] for layer in layers_in_order(net, images(), by="module")[1:])
    assert not torch.equal(fresh(first, 0, 0)["weight"], fresh(second, 0, 0)["weight"])


def test_their_average_holds_the_comparison_of_the_map_with_itself_and_ours_does_not():
    net = network()
    stages = theirs(quantus.MPRT(seed=SEED, **QUIET), net)
    assert stages["original"] == pytest.approx([1.0] * COUNT)
    found = theirs(quantus.MPRT(seed=SEED, return_average_correlation=True, **QUIET), net)
    several = np.array([stages[name] for name in stages if name != "original"])  # (stages, images)
    assert found == pytest.approx((several.sum(0) + 1) / (len(several) + 1))
    names = tuple(f"image-{place}" for place in range(COUNT))
    layers = tuple(name for name in stages if name != "original")
    curve = Curve("mprt", "gradient", "abs_sum", "top_down", layers, names, several.T[:, None], {})
    assert curve.each[""].tolist() == pytest.approx(several.mean(0).tolist())
    assert np.mean(found) > np.mean(curve.each[""]) + 0.1


def test_they_never_draw_a_transformers_in_projection_token_and_positions_and_we_do():
    net = torchvision.models.VisionTransformer(32, 16, 2, 2, 16, 32, num_classes=3).eval()
    for value in net.parameters():
        nn.init.normal_(value.data)  # none is what an initialiser gives
    before = {name: value.clone() for name, value in net.state_dict().items()}
    last = list(their_states(net).values())[-1]
    kept = {name for name, value in before.items() if torch.equal(value, last[name])}
    missed = {"class_token", "encoder.pos_embedding"}
    missed |= {
        f"encoder.layers.encoder_layer_{k}.self_attention.in_proj_{w}" for k in (0, 1) for w in ("weight", "bias")
    }
    assert missed <= kept
    layers = layers_in_order(net.requires_grad_(False), torch.zeros(1, 3, 32, 32))
    with Weights(net, layers) as weights:
        weights.become(range(len(layers)))
        assert {name for name, value in net.state_dict().items() if torch.equal(value, before[name])} == set()


def test_their_mprt_crashes_with_ssim_and_ours_does_not():
    net = network()
    with pytest.raises(AttributeError, match="tolist"):
        theirs(quantus.MPRT(similarity_func=quantus.ssim, seed=SEED, **QUIET), net)
    one = normal(torch.arange(COUNT), "a", torch.zeros(COUNT, 1, 20, 20))
    assert mprt(one, -one, similarity="ssim").values.isfinite().all()


def test_their_smooth_mprt_never_calls_the_users_method():
    """Ours does: tests/engine/test_mprt_audit.py."""
    calls = []

    def mine(model, inputs, targets, **_) -> np.ndarray:
        calls.append(len(inputs))
        return np.ones_like(inputs)

    judge = quantus.SmoothMPRT(nr_samples=2, seed=SEED, **QUIET)
    found = theirs(judge, network(), mine)
    stages = [name for name in found if name != "original"]
    assert len(stages) == 3
    assert sum(calls) <= COUNT  # the maps of the model itself at most; every stage is explained by another method


def test_their_batch_norms_are_not_drawn_but_reset_and_count_as_stages():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(256, 3)).eval()
    with torch.no_grad():
        net[1].running_mean.fill_(5.0)
    states = their_states(net)
    assert list(states) == ["3", "1", "0"]
    assert states["0"]["1.running_mean"].tolist() == [0.0] * 4
    layers = layers_in_order(net.requires_grad_(False), images())
    assert [layer.name for layer in layers] == ["0", "3"]
    with Weights(net, layers, references=images()) as weights:
        weights.become([0, 1])
        given = net[0](images()).transpose(0, 1).flatten(1)
        torch.testing.assert_close(net[1].running_mean, given.mean(1), rtol=1e-4, atol=1e-5)


def test_their_rules_for_bins_take_the_number_of_axes_for_that_of_values():
    """A hundred times as many pixels of the same spread get no more bins there; ours are as many as are asked for."""
    from quantus.functions import n_bins_func

    small, large = (np.random.default_rng(0).normal(size=(2, 1, side, side)) for side in (20, 200))
    for maps in (small, large):
        found = [getattr(n_bins_func, name)(maps) for name in ("sturges_formula", "rice_rule", "square_root_choice")]
        assert found == [int(np.log2(3) + 1), int(2 * 3 ** (1 / 3)), int(3**0.5)] == [2, 2, 1]

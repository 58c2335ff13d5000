"""Layers drawn anew in place: each from its own seed, nothing else touched, and everything back at the end."""

from contextlib import suppress

import pytest
import torch
import torchvision
from torch import Tensor, nn

from saliometer.sanity.layers import layers_in_order
from saliometer.sanity.randomise import TOGETHER, Weights, estimate, fresh, randomised
from sanity_toys import attending, backwards, changed, pictures, state
from toys import small_cnn


def weights_of(net: nn.Module, **asked) -> Weights:
    return Weights(net, layers_in_order(net, pictures(), by="layer"), references=pictures(), **asked)


@pytest.mark.parametrize("make", [backwards, attending])
def test_every_number_is_drawn_anew_and_comes_back(make):
    net = make()
    before = state(net)
    with weights_of(net) as weights:
        weights.become(range(len(weights.layers)))
        left = {name for name in before if name not in changed(net, before)}
    assert {name for name in left if "unused" not in name and "num_batches" not in name} == set()
    assert not changed(net, before)


def test_one_layer_alone_leaves_the_others_bit_equal():
    net = attending()
    layers = layers_in_order(net, pictures(), by="layer")
    before = state(net)
    for layer in layers:
        own = {id(getattr(part.module, name)) for part in layer.parts for name in part.tensors}
        wanted = {name for name, value in net.named_parameters() if id(value) in own}
        with randomised(net, [layer]):
            assert changed(net, before) == wanted, layer.name


def test_layers_of_one_shape_differ_and_each_draw_is_another():
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, 192)).requires_grad_(False)
    first, second = (layer.parts[0] for layer in layers_in_order(net, pictures()))
    one, two = fresh(first, 0, 0)["weight"], fresh(second, 0, 0)["weight"]
    assert abs(float(torch.corrcoef(torch.stack((one.flatten(), two.flatten())))[0, 1])) < 0.02
    assert not torch.equal(one, fresh(first, 0, 1)["weight"])
    assert not torch.equal(one, fresh(first, 1, 0)["weight"])
    assert torch.equal(one, fresh(first, 0, 0)["weight"])


def test_the_initialiser_is_the_layers_own():
    linear = nn.Linear(400, 300)
    found = fresh(layers_in_order(nn.Sequential(nn.Flatten(), linear), torch.zeros(1, 400, 1, 1))[0].parts[0], 0, 0)
    bound = 400**-0.5  # kaiming_uniform with a = sqrt(5)
    for value in found.values():
        assert float(value.abs().max()) <= bound
        assert float(value.std()) == pytest.approx(bound / 3**0.5, rel=0.1)
    attention = next(part for part in _parts(attending()) if part.name.endswith("0.attention.in_proj"))
    drawn = fresh(attention, 0, 0)
    assert float(drawn["in_proj_bias"].abs().max()) == 0
    assert float(drawn["in_proj_weight"].abs().max()) <= (6 / (24 + 8)) ** 0.5  # xavier_uniform


def _parts(net):
    return [part for layer in layers_in_order(net, pictures()) for part in layer.parts]


def test_what_no_initialiser_sets_is_normal_and_a_vector_of_it_shuffled():
    net = attending()
    positions, token, scale = (
        next(part for part in _parts(net) if part.name == name) for name in ("positions", "token", "blocks.0.scale")
    )
    drawn = fresh(positions, 0, 0)["positions"]
    assert 0.01 < float(drawn.std()) < 0.03
    for part, name in ((token, "token"), (scale, "scale")):
        own, shuffled = getattr(part.module, name), fresh(part, 0, 0)[name]
        assert not torch.equal(own, shuffled)
        assert torch.equal(own.flatten().sort().values, shuffled.flatten().sort().values)


def test_the_global_generator_is_left_alone_and_does_not_matter():
    net = small_cnn()
    part = layers_in_order(net, pictures())[0].parts[0]
    torch.manual_seed(1)
    before, one = torch.get_rng_state(), fresh(part, 0, 0)["weight"]
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(fresh(part, 0, 0)["weight"], one)


class Own(nn.Module):
    """An initialiser that a user wrote."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.weight = how, nn.Parameter(torch.ones(3, 4))

    def reset_parameters(self) -> None:
        if self.how == "replaced":
            self.weight = nn.Parameter(7 + torch.randn(3, 4))
        elif self.how == "orthogonal":
            nn.init.orthogonal_(self.weight)
        elif self.how == "truncated":
            nn.init.trunc_normal_(self.weight, 7, 0.1, 6, 8)
        elif self.how == "odd":
            self.weight.data.random_()
        else:
            raise RuntimeError("no")

    def forward(self, images: Tensor) -> Tensor:
        return images.mean((2, 3)) @ self.weight


def test_initialisers_that_users_wrote():
    for how in ("replaced", "truncated"):
        assert 6 < float(fresh(_parts(Own(how))[0], 0, 0)["weight"].mean()) < 8
    drawn = fresh(_parts(Own("orthogonal"))[0], 0, 0)["weight"]
    torch.testing.assert_close(drawn @ drawn.T, torch.eye(3))
    for how, words in (("odd", "draws by 'random_', wanted uniform or normal"), ("bad", "fails: RuntimeError: no")):
        with pytest.raises(ValueError, match=f"layer 'weight' cannot be drawn anew.*{words}"):
            fresh(_parts(Own(how))[0], 0, 0)


def test_a_cascade_changes_only_what_is_new_and_ends_in_the_same_weights_from_both_sides():
    net = backwards()
    with weights_of(net) as weights:
        for count in (1, 2, 3):
            weights.become(range(count))
        up = state(net)
        for first in (2, 1, 0):
            weights.become(range(first, 3))
        down = state(net)
        weights.become((0, 1, 2), draw=1)
        other = state(net)
        weights.become((0, 1, 2))
        assert not changed(net, up)
    assert all(torch.equal(up[name], down[name]) for name in up)
    assert not torch.equal(up["first.weight"], other["first.weight"])


# Batch norms


def test_policies_for_running_statistics():
    net = backwards()
    own = state(net)
    for norms in ("keep", "reset", "reestimate"):
        with weights_of(net, norms=norms) as weights:
            weights.become([0])
            assert torch.equal(net.norm.weight, torch.ones(4))
            assert torch.equal(net.norm.bias, torch.zeros(4))
            mean, var = net.norm.running_mean.clone(), net.norm.running_var.clone()
            given = net.first(pictures()).transpose(0, 1).flatten(1)
        if norms == "keep":
            assert torch.equal(mean, own["norm.running_mean"])
        elif norms == "reset":
            assert (mean.tolist(), var.tolist()) == ([0.0] * 4, [1.0] * 4)
        else:
            torch.testing.assert_close(mean, given.mean(1))
            torch.testing.assert_close(var, given.var(1))
    assert not changed(net, own)


def test_estimated_statistics_are_those_of_pytorchs_own_training_mode():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torchvision.models.resnet18(weights=None, num_classes=3).eval().requires_grad_(False)
        images = torch.rand(8, 3, 96, 96)
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    estimate(net, norms, images)
    ours = state(net)
    for module in norms:
        module.reset_running_stats()
        module.momentum = None
    net.train()(images)
    for name, value in net.named_buffers():
        if "running" in name:  # training normalises with the biased variance, and keeps the unbiased
            torch.testing.assert_close(ours[name], value, rtol=0.03, atol=0.03)


def test_several_passes_join_into_the_statistics_of_all():
    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(256, 2)).eval()
    images = pictures(TOGETHER + 30)
    estimate(net, [net[1]], images)
    given = net[0](images).transpose(0, 1).flatten(1)
    torch.testing.assert_close(net[1].running_mean, given.mean(1), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(net[1].running_var, given.var(1), rtol=1e-3, atol=1e-5)


def test_statistics_are_estimated_once_for_each_state():
    net, passes = backwards(), []
    net.register_forward_hook(lambda *_: passes.append(1))
    with weights_of(net) as weights:
        passes.clear()
        for _ in range(3):
            weights.become([0, 1])
            weights.become([0])
        weights.become([0], draw=1)
        assert len(passes) == 3
        weights.become([1])
        weights.become([])
    assert len(passes) == 3


def test_frozen_batch_norms_and_those_without_affine_part_or_statistics():
    for norm in (
        torchvision.ops.FrozenBatchNorm2d(4),
        nn.BatchNorm2d(4, affine=False),
        nn.BatchNorm2d(4, track_running_stats=False),
    ):
        net = nn.Sequential(nn.Conv2d(3, 4, 3), norm, nn.Flatten(), nn.Linear(144, 3)).eval().requires_grad_(False)
        for value in net[1].buffers():
            if value.is_floating_point():
                value.fill_(3.0)
        before = state(net)
        with weights_of(net) as weights:
            assert [part.name for part in weights.layers[0].parts] == ["0", "1"]
            weights.become([0])
            if "running_mean" in net[1]._buffers and net[1].running_mean is not None:
                given = net[0](pictures()).transpose(0, 1).flatten(1)
                torch.testing.assert_close(net[1].running_mean, given.mean(1))
            if isinstance(norm, torchvision.ops.FrozenBatchNorm2d):
                assert (norm.weight.tolist(), norm.bias.tolist()) == ([1.0] * 4, [0.0] * 4)
        assert not changed(net, before)


class Named(nn.Module):
    """Hands its batch norm what it takes by name."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.head = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.norm(input=self.first(images)).mean((2, 3)))


def test_a_batch_norm_whose_input_comes_by_name():
    net = Named().eval().requires_grad_(False)
    with weights_of(net) as weights:
        weights.become([0])
        given = net.first(pictures()).transpose(0, 1).flatten(1)
        torch.testing.assert_close(net.norm.running_mean, given.mean(1))


def test_weights_that_are_parametrised_are_drawn_by_what_makes_them():
    norm = nn.utils.parametrizations.weight_norm
    net = nn.Sequential(norm(nn.Conv2d(3, 4, 3)), nn.Flatten(), norm(nn.Linear(144, 3))).eval().requires_grad_(False)
    before, made = state(net), net[0].weight.clone()
    with randomised(net, layers_in_order(net, pictures())):
        assert changed(net, before) == set(before)
        assert net[0].weight.isfinite().all()
        assert not torch.allclose(net[0].weight, made)
    assert not changed(net, before)
    assert torch.equal(net[0].weight, made)


def test_what_statistics_need_is_said():
    net = backwards()
    layers = layers_in_order(net, pictures())
    with pytest.raises(ValueError, match="give references, images without labels, or norms"):
        Weights(net, layers)
    with pytest.raises(LookupError, match=r"no norms 'kept'\. Did you mean 'keep'"):
        Weights(net, layers, norms="kept")
    flat = nn.Sequential(nn.Flatten(), nn.Linear(192, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)).eval()
    with (
        pytest.raises(ValueError, match="give 2 references or more"),
        randomised(flat, layers_in_order(flat, pictures()), references=pictures()[:1]),
    ):
        pass


# Everything comes back


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_weights_flags_and_hooks_come_back_after_an_error(error):
    net = backwards()
    net.head.weight.requires_grad_()
    net.first.train()
    before, layers = state(net), layers_in_order(net, pictures())
    flags = [module.training for module in net.modules()], [value.requires_grad for value in net.parameters()]
    places = [value.data_ptr() for value in net.parameters()]
    with suppress(error), randomised(net, layers, references=pictures()):
        assert "first.weight" in changed(net, before)
        raise error
    assert not changed(net, before)
    assert flags == ([m.training for m in net.modules()], [value.requires_grad for value in net.parameters()])
    assert places == [value.data_ptr() for value in net.parameters()]
    assert not any(module._forward_pre_hooks for module in net.modules())


def test_a_network_in_train_mode_comes_back_with_all_its_buffers():
    net = backwards().train()
    before = state(net)
    with randomised(net, layers_in_order(net, pictures()), references=pictures()):
        assert int(net.norm.num_batches_tracked) == int(before["norm.num_batches_tracked"])
        net(pictures())
    assert not changed(net, before)
    assert all(module.training for module in net.modules())


def test_weights_come_back_when_a_stop_comes_while_statistics_are_estimated():
    net, seen = backwards(), []
    before, layers = state(net), layers_in_order(net, pictures())

    def stop(*_):
        seen.append(1)
        raise KeyboardInterrupt

    handle = net.second.register_forward_pre_hook(stop)
    with pytest.raises(KeyboardInterrupt), randomised(net, layers, references=pictures()):
        raise AssertionError("it does not come so far")
    handle.remove()
    assert seen
    assert not changed(net, before)
    assert not any(module._forward_pre_hooks for module in net.modules())


def test_a_stop_while_weights_come_back_waits_until_all_are_back(monkeypatch):
    net = backwards()
    before, layers = state(net), layers_in_order(net, pictures())
    weights, seen = Weights(net, layers, references=pictures()), []

    class Stopping(dict):
        def values(self):
            for number, value in enumerate(super().values()):
                if number == 2 and not seen:
                    seen.append(1)
                    raise KeyboardInterrupt
                yield value

    monkeypatch.setattr(weights, "_kept", Stopping(weights._kept))
    with pytest.raises(KeyboardInterrupt), weights:
        weights.become(range(3))
    assert seen
    assert not changed(net, before)

"""Forward passes are lean ones on a GPU, where they give what the network gives; here a CPU stands for it."""

import pytest
import torch
from torch import Tensor, nn

import saliometer
from graph_toys import pictures, torchvision_net
from saliometer.engine import forward
from saliometer.engine.answer import Answers
from saliometer.engine.forward import forward_of
from saliometer.engine.known import Known
from saliometer.graph.lean import Lean
from saliometer.types import Gradients, Logits, Scores, each, unaltered
from toys import CPU, model_of


class Random(nn.Module):
    """Its logits are never the same."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.conv(images).relu().mean((2, 3)) + torch.rand(len(images), 4))


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(forward, "kernels", lambda *values: True)


@pytest.fixture(scope="module")
def net() -> nn.Module:
    return torchvision_net("resnet18").requires_grad_(False)


def test_a_cpu_runs_the_network_itself(net):
    model = model_of(net)
    assert forward_of(model, pictures(1, 32)) == model.logits


def test_a_gpu_runs_a_lean_one_prepared_once(net, gpu):
    model, image = model_of(net), pictures(1, 32)
    lean = forward_of(model, image)
    assert isinstance(lean, Lean)
    assert forward_of(model, image, Known(net, image)) is lean


@pytest.mark.parametrize("net", [Random().eval(), nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 3))])
def test_one_that_differs_or_gains_nothing_is_not_used(net, gpu):
    model = model_of(net)
    assert forward_of(model, pictures(1, 32)) == model.logits


def test_it_is_compared_in_full_precision(net, gpu, monkeypatch):
    seen = []
    monkeypatch.setattr(Lean, "agrees", lambda *_: seen.append(torch.backends.cudnn.allow_tf32) or True)
    forward_of(model_of(torchvision_net("resnet18").requires_grad_(False)), pictures(1, 32))
    assert seen == [False]


def test_answers_take_it_for_scores_but_not_for_gradients(net):
    model, images, targets = model_of(net), pictures(3, 32), torch.tensor([1, 2, 3])
    taken = []

    def counted(rows: Tensor) -> Tensor:
        taken.append(len(rows))
        return model.logits(rows)

    answers, plain = Answers(model, CPU, 8, forward=counted), Answers(model, CPU, 8)
    dark = each(lambda k: images / (k + 1))
    for question, used in (
        (Gradients(unaltered(images), 1), 0), (Scores(dark, 2), 6), (Logits(dark, 3), 9), (Gradients(dark, 2), 0),
        (Scores(unaltered(images), 1), 3),  # not from the pass back, which rounds in another way
    ):  # fmt: skip
        taken.clear()
        found = answers({"toy": question}, targets)["toy"]
        assert sum(taken) == used
        torch.testing.assert_close(found, plain({"toy": question}, targets)["toy"])


def test_an_audit_with_it_finds_the_same(net, gpu, tmp_path):
    images = pictures(4, 32)
    asked = {"methods": ["gradient", "rise(masks=40)"], "metrics": ["average_drop", "insertion(steps=4)", "road"]}
    lean = saliometer.audit(net, images, out=tmp_path / "lean", **asked).rows.to_pandas()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward, "kernels", lambda *values: None)
        plain = saliometer.audit(net, images, out=tmp_path / "plain", **asked).rows.to_pandas()
    lean, plain = (rows[~rows.metric.str.startswith("cost")].reset_index() for rows in (lean, plain))
    assert len(lean) == len(plain) > 20
    torch.testing.assert_close(
        torch.tensor(lean.value), torch.tensor(plain.value), rtol=1e-4, atol=1e-5, equal_nan=True
    )


def test_explain_takes_it_where_passes_are_many(gpu, monkeypatch):
    net, images = torchvision_net("resnet18").requires_grad_(False), pictures(2, 32)
    monkeypatch.setattr(forward, "kernels", lambda *values: None)
    plain = saliometer.explain(net, images, "rise(masks=30)")
    monkeypatch.setattr(forward, "kernels", lambda *values: True)
    prepared = []
    monkeypatch.setattr(forward, "_lean", lambda *given: prepared.append(1) or Lean(net, net, given[1]))
    monkeypatch.setattr("saliometer.engine.explain.WORTH", 60)
    torch.testing.assert_close(saliometer.explain(net, images, "rise(masks=30)"), plain)
    saliometer.explain(net, images, "rise(masks=29)")  # fewer than it is worth
    saliometer.explain(net, images, "smooth_grad(draws=50)")  # goes back
    assert prepared == [1]

"""What a network gives out, checked: shapes, probabilities, and words for what is wrong."""

from collections import OrderedDict, namedtuple
from copy import deepcopy
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from saliometer.engine.checked import LogProbabilities, as_logits, checked_model, looks_like_probability, oddities

IMAGE = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
Outputs = namedtuple("Outputs", ["logits", "aux_logits"])


def linear(classes: int = 4) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, classes))


class Then(nn.Module):
    """A linear classifier, and something after it."""

    def __init__(self, after, classes: int = 4) -> None:
        super().__init__()
        self.net, self.after = linear(classes), after

    def forward(self, images):
        return self.after(self.net(images))


@dataclass
class ImageClassifierOutput:
    logits: torch.Tensor


def test_a_classifier_is_put_in_eval_mode_and_frozen():
    net = nn.Sequential(linear(), nn.Dropout(0.9)).train()
    assert checked_model(net, IMAGE) == 4
    assert not any(module.training for module in net.modules())
    assert not any(values.requires_grad for values in net.parameters())


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("made", [torch.jit.script, lambda net: deepcopy(nn.Sequential(torch.jit.script(net)))])
def test_torchscript_is_checked_and_frozen_too(made):
    net = made(linear())
    assert checked_model(net, IMAGE) == 4
    assert not any(values.requires_grad for values in net.parameters())


def test_one_logit_means_two_classes():
    assert checked_model(linear(1), IMAGE) == 2


@pytest.mark.parametrize("classes", [2, 4, 1000])
def test_a_softmax_is_detected_and_its_logarithm_taken(classes):
    net = Then(nn.Softmax(1), classes)
    with pytest.raises(
        ValueError, match=r"gives probabilities; wanted logits: remove its softmax.*--output probability"
    ):
        checked_model(net, IMAGE)
    assert checked_model(net, IMAGE, "probability") == classes
    wrapped = LogProbabilities(net)
    assert checked_model(wrapped, IMAGE) == classes
    torch.testing.assert_close(wrapped(IMAGE).softmax(1), net(IMAGE))
    torch.testing.assert_close(wrapped(IMAGE), net.net(IMAGE).log_softmax(1))


def test_a_fault_of_its_forward_is_not_taken_for_one_of_shapes():
    with pytest.raises(ValueError, match=r"\(ZeroDivisionError: division by zero\): mend its forward"):
        checked_model(Then(lambda z: z * (1 / 0), 3), IMAGE)
    with pytest.raises(ValueError, match=r"\(RuntimeError: .*\): check --size and the channels"):
        checked_model(nn.Sequential(nn.Flatten(), nn.Linear(7, 3)), IMAGE)


def test_a_sigmoid_of_one_output_is_detected_and_its_log_odds_taken():
    net = Then(torch.sigmoid, 1)
    with pytest.raises(ValueError, match="gives probabilities; wanted logits: remove its sigmoid"):
        checked_model(net, IMAGE)
    assert checked_model(net, IMAGE, "probability") == 2
    torch.testing.assert_close(LogProbabilities(net)(IMAGE), net.net(IMAGE))


@pytest.mark.parametrize(("last", "classes"), [(nn.Softmax(1), 4), (nn.Softmax(-1), 4), (nn.Sigmoid(), 1)])
def test_a_last_layer_is_taken_out(last, classes):
    net = nn.Sequential(linear(classes), nn.Sequential(last)).eval()
    logits = net[0](IMAGE)
    assert as_logits(net, IMAGE) is net
    assert torch.equal(net(IMAGE), logits)
    assert not any(module._forward_hooks for module in net.modules())


def test_the_logarithm_is_taken_where_no_layer_can_go():
    shared = nn.Softmax(1)
    twice = nn.Sequential(linear(), shared, linear_of_four(), shared)
    for net in (Then(lambda z: z.softmax(1)), Then(Tempered()), twice):
        given = net(IMAGE)
        wrapped = as_logits(net, IMAGE)
        assert isinstance(wrapped, LogProbabilities)
        torch.testing.assert_close(wrapped(IMAGE).softmax(1), given)


class Tempered(nn.Softmax):
    def forward(self, logits):
        return (3 * logits).softmax(1)


def linear_of_four() -> nn.Linear:
    torch.manual_seed(2)
    return nn.Linear(4, 4)


def test_a_probability_of_zero_or_one_has_a_finite_logarithm():
    sure = LogProbabilities(nn.Identity())
    assert sure(torch.tensor([[0.0, 1.0]])).isfinite().all()
    assert sure(torch.tensor([[0.0], [1.0]])).isfinite().all()


def test_log_probabilities_are_logits():
    assert checked_model(Then(nn.LogSoftmax(1)), IMAGE) == 4


@pytest.mark.parametrize("after", [torch.relu, lambda z: z - z.mean(1, keepdim=True) + 0.25])
def test_outputs_above_0_or_of_sum_1_are_no_softmax(after):
    assert checked_model(Then(after), IMAGE) == 4


def test_sigmoids_of_several_classes_are_refused():
    with pytest.raises(ValueError, match="never leave 0 to 1, like sigmoids"):
        checked_model(Then(torch.sigmoid), IMAGE)
    assert checked_model(Then(torch.sigmoid), IMAGE, "logit") == 4


def test_one_image_that_sums_to_one_by_chance_is_not_enough():
    rows = torch.tensor([[0.5, 0.5], [0.2, 0.7]])
    assert looks_like_probability(rows[:1])
    assert not looks_like_probability(rows)


def test_the_user_has_the_last_word():
    assert checked_model(Then(nn.Softmax(1)), IMAGE, "logit") == 4
    with pytest.raises(ValueError, match=r"--output probability, but the model gives values from -"):
        checked_model(linear(), IMAGE, "probability")
    with pytest.raises(LookupError, match="Did you mean 'probability'"):
        checked_model(linear(), IMAGE, "probabilities")


WRONG = {
    r"gives Outputs\(logits: \(\d, 4\), aux_logits: \(\d, 4\)\).*wrap it": lambda z: Outputs(z, z),
    r"gives tuple\(\(\d, 4\), \(\d, 4\)\)": lambda z: (z, z),
    r"gives OrderedDict\(logits: \(\d, 4\)\)": lambda z: OrderedDict(logits=z),
    r"gives ImageClassifierOutput\(logits: \(\d, 4\)\)": ImageClassifierOutput,
    r"shape \(\d, 4, 1, 1\).*segmentation": lambda z: z[..., None, None],
    r"shape \(\d,\) for \d images.*\(images, 1\)": lambda z: z[:, 0],
    r"shape \(1, 4\) for \d images": lambda z: z.mean(0, keepdim=True),
    r"shape \(\d, 0\)": lambda z: z[:, :0],
    r"torch.int64.*not the class they choose": lambda z: z.argmax(1, keepdim=True),
    r"4 values of 4 that are NaN or infinite": lambda z: z * float("nan"),
    r"fewer than two classes": lambda z: z[:, :1].softmax(1),
    r"fewer than two classes.*its logarithm 0": lambda z: z[:, :1].log_softmax(1),
    r"does not take images of shape \(\d, 3, 8, 8\) \(RuntimeError": lambda z: z @ z,
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_said(words):
    with pytest.raises(ValueError, match=words):
        checked_model(Then(WRONG[words]), IMAGE)


@pytest.mark.parametrize("after", [lambda z: nn.functional.dropout(z, 0.5), lambda z: z + torch.rand_like(z)])
def test_a_network_whose_eval_mode_leaves_something_to_chance_is_refused(after):
    with pytest.raises(ValueError, match=r"other values for the same images twice .* wanted a model without chance"):
        checked_model(Then(after), IMAGE)


def test_rounding_that_differs_is_no_chance():
    assert checked_model(Then(lambda z: z * (1 + 1e-5 * torch.rand(()))), IMAGE) == 4
    assert checked_model(Then(torch.zeros_like), IMAGE) == 4


def test_batch_norms_that_read_the_batch_are_told():
    assert oddities(nn.Sequential(nn.BatchNorm2d(3), nn.InstanceNorm2d(3))) == []
    [words] = oddities(nn.Sequential(nn.BatchNorm2d(3), nn.BatchNorm2d(3, track_running_stats=False)))
    assert "1 batch norms have no running statistics (1)" in words

"""Local accuracy: how far the target's score moves on the image times its map (Zhang et al.)."""

from torch import Tensor

from saliometer.metrics._masked import both_scores, moved
from saliometer.registry import metric, one_of
from saliometer.types import Measuring, Samples, Subject

OUTPUTS = {"probability": "log_odds", "logit": "logit"}


@metric(
    better="lower",
    formula="|p(x) − p(x·m)|",
    bounds=(0, 1),
    beyond=("output=logit",),
    reads="scaled",
    passes=2,
    degenerate=("invalid, for it cannot be scaled", "invalid, for it cannot be scaled", "near p(x)"),
)
def local_accuracy(
    maps: Tensor, samples: Samples, subject: Subject, *, output: str = "probability", space: str = "raw"
) -> Measuring:
    """|f(x) - f(x m)|; `output` f is the target's probability or logit, `space` as for average_drop.

    A fraction for probabilities; logits may move by more than 1.
    """
    of = OUTPUTS[one_of("output", output, OUTPUTS)]
    before, after = yield from both_scores(maps, samples, subject, space, of)
    return (after - before if output == "logit" else moved(before, after)).abs()

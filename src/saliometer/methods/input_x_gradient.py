"""Input times gradient: the first-order share of every input value in the score (Shrikumar et al., 2016)."""

from saliometer.methods._path import OUTPUTS, missed, vanishes
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Explained, Gradients, Model, Scores, unaltered


@method(unit="contribution", multiplier="input")
def input_x_gradient(model: Model, batch: Batch, *, output: str = "logit") -> Asking:
    """The input times the gradient there; sums to the score on networks without biases."""
    one_of("output", output, OUTPUTS)
    slope = yield Gradients(unaltered(batch.images), of=output)
    score = (yield Scores(unaltered(batch.images), of=output))[0].double()
    maps = batch.images * slope
    return Explained(maps, missed(maps, score), score, flags={"zero_gradient": vanishes(slope)})

"""Expected gradients: integrated gradients averaged over reference images as baselines (Erion et al., 2021)."""

import torch
from torch import Tensor

from saliometer.methods._path import OUTPUTS, missed, vanishes
from saliometer.methods._references import some_references
from saliometer.registry import method, one_of
from saliometer.seeds import uniform
from saliometer.types import Asking, Batch, Explained, Gradients, Logits, Model


@method(random=True, quick={"draws": 4}, passes=200, budget="draws", needs_references=True, unit="contribution")
def expected_gradients(model: Model, batch: Batch, *, draws: int = 200, output: str = "logit") -> Asking:
    """The gradient at a random point between a reference and the image, times their difference, averaged over draws.

    Every image goes round the references in an order of its own; points are spread evenly over the way.
    """
    one_of("output", output, OUTPUTS)
    images, references = batch.images, some_references("expected_gradients", batch)
    if draws < 1:
        raise ValueError(f"expected_gradients: draws={draws}, wanted 1 or more")
    order = uniform(batch.seeds, "expected_gradients references", len(references)).argsort(dim=1, stable=True)
    chosen = order.repeat(1, -(-draws // len(references)))[:, :draws].T  # (draws, N)
    strata = uniform(batch.seeds, "expected_gradients strata", draws).argsort(dim=1, stable=True)
    places = (strata + uniform(batch.seeds, "expected_gradients places", draws).double()) / draws
    places = places.T[..., None, None, None].to(images.dtype)
    sums, same, flat = list[Tensor](), list[Tensor](), list[Tensor]()

    def between(ks: range) -> Tensor:
        start: Tensor = references[chosen[ks.start : ks.stop]]
        return start + places[ks.start : ks.stop] * (images - start)

    def taken(k: int, slope: Tensor) -> Tensor:
        way = images - references[chosen[k]]
        share = way * slope
        sums.append(share.sum((1, 2, 3), dtype=torch.float64))
        same.append(vanishes(way))
        flat.append(vanishes(slope))
        return share

    maps = (yield Gradients(between, draws, taken, of=output)) / draws
    used, which = chosen.unique(return_inverse=True)
    shown = torch.cat((references[used], images))
    scores = _scores(model, (yield Logits(lambda ks: shown[None]))[0].double(), output)
    own = torch.arange(len(images), device=images.device)
    rises = scores[len(used) + own, batch.targets] - scores[which, batch.targets]  # (draws, N)
    errors = torch.stack(sums) - rises
    promised = rises.mean(0)
    equal = torch.stack(same).all(0)
    flags = {"equal_baseline": equal, "zero_gradient": torch.stack(flat).all(0) & ~equal}
    error = errors.std(0, correction=min(1, draws - 1)) / draws**0.5
    return Explained(maps, missed(maps, promised), promised, flags, {"standard_error": error})


def _scores(model: Model, logits: Tensor, output: str) -> Tensor:
    if output == "logit":
        return logits
    return logits.sigmoid() if model.link == "sigmoid" or logits.shape[1] == 1 else logits.softmax(1)

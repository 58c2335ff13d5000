"""Infidelity: how badly an attribution foretells what a change of the image does to the score (Yeh et al., 2019)."""

from math import inf, nan

import torch
from torch import Tensor

from saliometer.metrics._baselines import Baseline, baseline_of, per_value, spread, unit_of
from saliometer.metrics._noise import NOISES, Noise
from saliometer.registry import metric, one_of
from saliometer.types import Measuring, Samples, Scored, Scores, Subject, unaltered

OUTPUTS = ("logit", "probability")


@metric(
    better="lower",
    formula="minimum over β of the mean, over noise I, of (f(x) − f(x − I) − β Σ I·E)², E as slopes if it has a unit",
    bounds=(0, inf),
    reads="attribution",
    random=True,
    passes=129,
    quick={"draws": 8},
    parts={"unscaled": "lower", "relative": "lower"},
    degenerate=("ordinary, nothing is scaled", "the mean square of the score's changes", "ordinary, nothing is scaled"),
)
def infidelity(
    maps: Tensor,
    samples: Samples,
    subject: Subject,
    *,
    noise: str = "gaussian",
    draws: int = 128,
    clip: bool = False,
    output: str = "logit",
) -> Measuring:
    """The mean of (d - beta e)^2 over changes I: d = f(x) - f(x - I) is what happens, e = I . a what is foretold.

    beta is the best factor for the map; `unscaled` takes 1 and needs a method whose values have a unit; `relative` is
    the share of d's mean square that stays unexplained: 1 for an empty map. `noise` is gaussian (0.2 in pixel values,
    with `clip` cut to those there are), square (set to the method's baseline, else black) or noisy_baseline.
    """
    one_of("noise", noise, NOISES)
    one_of("output", output, OUTPUTS)
    if draws < 1:
        raise ValueError(f"infidelity: draws={draws}, wanted 1 or more")
    images = samples.batch.images
    start = baseline_of(samples, subject, otherwise="black")
    changes = NOISES[noise](samples, subject.model, start, clip)
    values = _in_unit(maps, images, start, changes, subject)
    said: dict[int, Tensor] = {}  # what the values say that each change does, (N,) float64

    def shown(ks: range) -> Tensor:
        copies, sizes = changes.made(ks)
        said.update(zip(ks, (sizes * values).sum((2, 3, 4), dtype=torch.float64), strict=True))
        return copies

    score = (yield Scores(unaltered(images), of=output, key="image"))[0].double()
    after = yield Scores(shown, draws, of=output, key=f"image infidelity {changes.name}")
    for k in range(draws):
        if k not in said:  # another method's maps were the first to ask, so that no copies were made for these
            shown(range(k, k + 1))
    happens, foretold = score - after.double(), torch.stack([said[k] for k in range(draws)])

    sizes = foretold.square().mean(0)
    factor = (happens * foretold).mean(0) / sizes.where(sizes > 0, 1.0)
    scaled = (happens - factor * foretold).square().mean(0)
    unscaled = (happens - foretold).square().mean(0)
    if unit_of(subject) == "map":
        unscaled = torch.full_like(unscaled, nan)
    return Scored(scaled, {"unscaled": unscaled, "relative": scaled / happens.square().mean(0)})


def _in_unit(maps: Tensor, images: Tensor, start: Baseline, changes: Noise, subject: Subject) -> Tensor:
    """(N, C, H, W): contributions for changes that take all of a value away, slopes for others; maps as they are."""
    unit, values, way = unit_of(subject), spread(maps, images), images - start.images
    if unit == "gradient" and changes.whole:
        return values * way
    if unit == "contribution" and not changes.whole:
        return per_value(values, way)
    return values

"""The numbers of one method on one scene: energy with its floors, focus, dissociation, equation (1) (sanity.md 3)."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from saliometer.registry import Spec, methods
from saliometer.sanity import effect, focus, uncertainty
from saliometer.sanity.similarity import joined, ranked
from saliometer.studies._yona_evidence import OTHER, PRIMARY
from saliometer.studies._yona_maps import Maps
from saliometer.studies._yona_rows import Rows
from saliometer.studies._yona_scenes import RANDOM, Comparison, Scene, named

SECONDARY = ("spearman_abs", "spearman", "ssim", "hog")
MASK = {"region": "mask"}
BLANK = 1e-6  # a multiplier below it has no part in a map


def measured(
    label: str, scene: Scene, maps: Maps, right: Mapping[str, Tensor], *, beside: int, draws: int, seed: int
) -> Rows:
    """`right` says by group which images each model classifies rightly; secondary distances are of `beside` images."""
    rows = Rows(label)
    for pair in scene.comparisons:
        _energy(rows, scene, maps, pair, beside, draws, seed)
    flat = {group: effect.shares(some)[0] for group, some in maps.items()}
    for group, some in flat.items():
        lost = some.flatten(2).isnan().any(2).sum()
        if lost:
            rows.add(scene.tasks[0], group, "invalid", float(lost), note="maps without any mass")
    for task, groups in scene.focus.items():
        _focus(rows, scene, flat, task, list(groups), right, beside, draws, seed)
    for weights, random, places in scene.effects:
        _effect(rows, scene, flat, weights, random, places, seed)
    return rows


def energy(
    rows: Rows, task: str, who: str, condition: str, one: Tensor, other: Tensor, *, draws: int, seed: int
) -> Tensor:
    """E of one group's maps against another's with both noise floors; gives back (n,), E of each image."""
    both, trained = torch.cat((one, other)), len(one)
    distances = effect.pairwise(both, PRIMARY)
    which = {"definition": PRIMARY, "condition": condition}
    rows.estimate(task, who, "E", uncertainty.bootstrap_energy(distances, trained, draws=draws, seed=seed), **which)
    rows.add(task, who, "E.p", effect.permutation(distances, trained, seed=seed).p, **which)
    _floors(rows, task, who, effect.energy(distances, trained), which)
    rows.by_seed(task, who, "E", effect.energy_per_seed(distances, trained), **which)
    return effect.energy_per_image(distances, trained)


def _energy(
    rows: Rows, scene: Scene, maps: Maps, pair: Comparison, beside: int, draws: int, seed: int
) -> None:  # fmt: skip
    one, other, task = maps[pair.trained], maps[pair.against], pair.task
    who, condition = named(pair.trained), f"against({named(pair.against)})"
    each = energy(rows, task, who, condition, one, other, draws=draws, seed=seed)
    samples = scene.samples[task]
    rows.by_image(
        task, who, "E", each, samples.ids, samples.buckets, definition=PRIMARY, condition=condition
    )  # fmt: skip
    if named(pair.against) != RANDOM or who != task:
        return
    some, trained = torch.cat((one, other))[:, :beside], len(one)
    for definition in SECONDARY:
        nearer, which = effect.pairwise(some, definition), {"definition": definition, "condition": condition}
        found = effect.energy(nearer, trained)
        rows.add(task, who, "E", found.energy, **which)
        _floors(rows, task, who, found, which)
        rows.by_seed(task, who, "B", nearer[:, :trained, trained:].nanmean((0, 2)), **which)
    if task == "t":
        local = local_spearman(some, scene.images[:beside], divides(rows.method), trained)
        rows.by_seed(task, who, "B", 1 - local, definition="spearman_abs", region="local", condition=condition)


def _floors(rows: Rows, task: str, who: str, found: effect.Energy, which: dict[str, str]) -> None:
    for metric, value in (("B", found.between), ("W_T", found.trained), ("W_R", found.random)):
        rows.add(task, who, metric, value, **which)


def divides(label: str) -> bool:
    """Whether a method's maps hold the input as a factor: contributions to the score from a baseline of 0."""
    name = Spec.parse(label).name
    return name == "input" or (name in methods and methods[name].facts.unit == "contribution")


def local_spearman(maps: Tensor, images: Tensor, divided: bool, trained: int) -> Tensor:
    """(R,) rank correlation of absolute maps, trained with random, on pixels that are not 0; the factor divided out.

    Elsewhere a product with the image is 0 in both maps, whatever the weights (Sundararajan & Taly, 2018).
    """
    there = (images.abs().amax(1) > BLANK).repeat(len(maps), 1, 1)  # (M x n, H, W)
    parts = maps / images.where(images.abs() > BLANK, 1) if divided else maps
    unit = ranked(joined(parts.flatten(0, 1), absolute=True), there).unflatten(0, maps.shape[:2])
    return torch.einsum("anp,bnp->abn", unit[:trained], unit[trained:]).nanmean((1, 2))


def _focus(
    rows: Rows, scene: Scene, flat: Maps, task: str, groups: Sequence[str], right: Mapping[str, Tensor], beside: int,
    draws: int, seed: int,
) -> None:  # fmt: skip
    """Of each group's models on what decides the task, and how far the task's own stand above the others."""
    deciding, distracting = scene.regions(task)
    samples = scene.samples[task]
    found = {group: focus.focus(flat[group], deciding, distracting) for group in groups}  # (R, n)
    wide = focus.dilated(deciding, distracting)
    for group, values in found.items():
        who = named(group)
        rows.estimate(task, who, "focus", uncertainty.bootstrap_contrast([(1, values)], draws=draws, seed=seed), **MASK)
        rows.by_seed(task, who, "focus", values.nanmean(1), **MASK)
        rows.by_image(task, who, "focus", values.nanmean(0), samples.ids, samples.buckets, **MASK)
        rows.by_seed(task, who, "focus", focus.focus(flat[group], *wide).nanmean(1), region="dilated(2)")
        rows.by_seed(task, who, "coverage", focus.coverage(flat[group], deciding, distracting).nanmean(1), **MASK)
        some = flat[group][:, :beside]
        rows.by_seed(task, who, "auroc", focus.auroc(some, deciding[:beside], distracting[:beside]).nanmean(1), **MASK)
        hits = focus.pointing(some, deciding[:beside], samples.batch.seeds[:beside])
        rows.by_seed(task, who, "pointing", hits.nanmean(1), **MASK)
    own, *others = groups
    for one, other in [*((own, group) for group in others), *_further(groups)]:
        gap = uncertainty.bootstrap_contrast([(1, found[one]), (-1, found[other])], draws=draws, seed=seed)
        rows.estimate(task, named(one), "contrast", gap, condition=f"against({named(other)})", **MASK)
        if OTHER.get(own) == other and one == own:
            rows.estimate(task, "", "DD", gap, **MASK)
            rows.by_seed(task, "seed", "DD", focus.dissociation(found[own], found[other]).nanmean(1), **MASK)
    _errors(rows, task, own, found[own], right[own])


def _further(groups: Sequence[str]) -> list[tuple[str, str]]:
    """Contrasts beside those of the task's own models."""
    return [("pretrained", group) for group in groups if named(group) == RANDOM and "pretrained" in groups]


def _errors(rows: Rows, task: str, own: str, values: Tensor, right: Tensor) -> None:
    """How far the focus of images that a model gets right stands above that of those it gets wrong."""
    known = ~values.isnan()
    means = [values.where(known & chosen, torch.nan).nanmean(1) for chosen in (right, ~right)]
    rows.add(task, own, "wrong", float((known & ~right).sum()), **MASK)
    rows.by_seed(task, own, "right_minus_wrong", means[0] - means[1], **MASK)


def _effect(
    rows: Rows, scene: Scene, flat: Maps, weights: Mapping[str, float], random: str, places: Tensor | None, seed: int
) -> None:
    """Equation (1) on the images that all these tasks may show."""
    trained = {}
    for task in weights:
        some = flat[task]
        trained[task] = some if places is None or scene.groups[task].places is not None else some[:, places]
    others = flat[random] if places is None else flat[random][:, places]
    found = effect.weighted_effect(trained, others, weights, seed=seed)
    condition = str(Spec("posterior", tuple((task, round(weight, 4)) for task, weight in sorted(weights.items()))))
    for metric, values in (
        ("lambda", found.effect), ("lambda.bias", found.effect_bias), ("lambda.corrected", found.corrected),
        ("lambda.companion", found.companion), ("lambda.companion_corrected", found.companion_corrected),
    ):  # fmt: skip
        rows.add(scene.tasks[0], "", metric, float(values.nanmean()), condition=condition)

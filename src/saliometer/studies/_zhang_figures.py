"""Figures 1 and 2 of the ten-methods study: the numbers and pictures behind them, and drawings of these."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from saliometer.engine.run import opened
from saliometer.judgement import interval
from saliometer.studies._claims import MissingError
from saliometer.studies._zhang_evidence import FAKE, METHODS, METRICS, Evidence, with_confidence
from saliometer.studies._zhang_tables import Value

CONFIDENCE = {"AG": ("AG", 1), "AD": ("AD_bar", -1), "I": ("I", 1), "D": ("D_bar", -1)}  # drawn -> key and sign
ORDER = ("AD_bar", "AI", "AG", "I", "D_bar")
SHOWN = ("IG", "Score-CAM", "Grad-CAM", "RISE", "LIME")  # IG for the gradients, Score-CAM for the CAMs


def confidence(evidence: Evidence) -> list[Value]:
    """Spearman's correlation of each score with the model's confidence, by method, where there is one."""
    found = []
    for name, (key, sign) in CONFIDENCE.items():
        for method in METHODS:
            with suppress(MissingError):
                rho = sign * with_confidence(evidence, key, method)
                if not np.isnan(rho[0]):
                    one = interval(float(rho[0]), rho[1:], 2)
                    found.append(Value("Figure 2", "ground_truth", method, name, one.value, one.low, one.high, None))
    return found


def figure_2(evidence: Evidence, path: Path) -> Path:
    """How each score follows the model's confidence: Spearman's correlation with its interval, by method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    axes = dict(zip(CONFIDENCE, figure.subplots(1, len(CONFIDENCE), sharey=True), strict=True))
    for value in confidence(evidence):
        axis, place = axes[value.metric], METHODS.index(value.method)
        axis.plot([value.low, value.high], [place, place], color="#8aa0b4", linewidth=3, solid_capstyle="round")
        axis.plot(value.ours, place, "o", color="#16456b")
    for name, axis in axes.items():
        axis.axvline(0, color="#999999", linewidth=1)
        axis.set_xlim(-1, 1)
        axis.set_title(name)
        axis.set_xlabel("Spearman with p")
    axes["AG"].set_yticks(range(len(METHODS)), METHODS)
    axes["AG"].invert_yaxis()
    figure.suptitle("Figure 2: does a score follow the model's confidence? Points with 95 % intervals", fontsize=11)
    figure.savefig(path, dpi=130)
    return path


@dataclass(frozen=True, eq=False)
class Case:
    """An image on which the best or the worst method of a metric scores highest or lowest."""

    metric: str
    place: str  # 'best' or 'worst': the method's mean among the methods'
    method: str
    word: str  # 'highest' or 'lowest': the image's score among the images'
    score: float
    image: str
    photo: npt.NDArray[np.uint8]  # (H, W, 1 or 3)
    maps: Mapping[str, npt.NDArray[np.float64]]  # the paper's name -> (h, w), from 0 to 1; its method's first


def cases(evidence: Evidence, folder: Path) -> list[Case]:
    """For each fidelity metric four; `folder` holds the label's run, and only images whose picture it kept count."""
    pictures = _sprites(folder) if (folder / "run.json").is_file() else {}
    found = []
    for key in ORDER:
        for place, method, word, score, image in _extremes(evidence, key, pictures):
            photo, maps = pictures[image]
            names = [name for name in dict.fromkeys((method, *SHOWN)) if evidence.specs[name] in maps]
            shades = {name: _strength(maps[evidence.specs[name]]) for name in names}
            found.append(Case(key, place, method, word, score, image, photo, shades))
    return found


def _strength(values: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    """A map as the study reads it: absolute values, from 0 to 1."""
    plain = np.abs(values.astype(np.float64))
    found: npt.NDArray[np.float64] = (plain - plain.min()) / max(float(np.ptp(plain)), 1e-9)
    return found


def figure_1(evidence: Evidence, path: Path) -> Path:
    """A row for each metric's best and worst method: the image on which it scores highest, beside the lowest."""
    from matplotlib.figure import Figure

    some = cases(evidence, path.parent / "label")
    if not some:
        raise MissingError("the run kept no pictures for Figure 1")
    rows = dict.fromkeys((case.metric, case.place, case.method) for case in some)
    columns = 2 + len(SHOWN)  # the image, the method's own map, and the others'
    ratios = [1.4, *[1.0] * columns, 0.2, *[1.0] * columns]
    figure = Figure(figsize=(1.2 * sum(ratios), 1.38 * len(rows) + 0.6), layout="constrained")
    axes = figure.subplots(len(rows), len(ratios), squeeze=False, width_ratios=ratios)
    for axis in axes.flat:
        axis.set_axis_off()
    for row, (metric, place, method) in zip(axes, rows, strict=True):
        row[0].text(0.0, 0.5, f"{metric}\n{place}: {method}", fontsize=9, va="center", transform=row[0].transAxes)
        for case in (case for case in some if (case.metric, case.place) == (metric, place)):
            first = 1 if case.word == "highest" else 2 + columns
            row[first].imshow(case.photo)
            row[first].set_title(f"{case.word} {case.score:.1f}", fontsize=8, pad=2, fontweight="bold")
            shown = {f"{method} (own)": case.maps.get(method), **{name: case.maps.get(name) for name in SHOWN}}
            for axis, (name, shades) in zip(row[first + 1 :], shown.items(), strict=False):
                if shades is not None:
                    axis.imshow(case.photo, extent=(0, 1, 0, 1))
                    axis.imshow(shades, cmap="inferno", alpha=0.75, extent=(0, 1, 0, 1), vmin=0, vmax=1)
                    axis.set_title(name, fontsize=8, pad=2)
    figure.suptitle(
        "Figure 1: where the best and the worst method of each metric score highest and lowest", fontsize=12
    )
    figure.savefig(path, dpi=100)
    return path


def _extremes(evidence: Evidence, key: str, images: Collection[str]) -> list[tuple[str, str, str, float, str]]:
    """(best or worst, method, highest or lowest, score, image); Fake-CAM is left out."""
    means: dict[str, float] = {}
    for method in METHODS:
        with suppress(MissingError):  # the figure shows what is there
            means |= {method: float(evidence.of(key, method)[0])} if method != FAKE else {}
    if not means:
        return []
    column, found = evidence.column(key), []
    _, factor, offset = METRICS[key]
    for place, method in (("best", max(means, key=lambda m: means[m])), ("worst", min(means, key=lambda m: means[m]))):
        scores = offset + factor * column.values[:, evidence.place(column, method)]
        scored = zip(scores.tolist(), column.images, strict=True)
        there = [(score, image) for score, image in scored if image in images and not np.isnan(score)]
        if there:
            found += [(place, method, "highest", *max(there)), (place, method, "lowest", *min(there))]
    return found


def _sprites(folder: Path) -> dict[str, tuple[npt.NDArray[np.uint8], dict[str, npt.NDArray[np.int8]]]]:
    """image -> its picture and each method's map of it, as the run kept them."""
    run = opened(folder)
    found: dict[str, tuple[Any, dict[str, Any]]] = {}
    for path in sorted((folder / "thumbs").glob("*/images/*.npz")):
        with np.load(path, allow_pickle=False) as kept:
            ids, images = kept["ids"].tolist(), kept["images"]
        maps = {}
        for method in run.manifest["methods"]:
            place = path.parent.parent / run.slug(method) / path.name
            if place.is_file():
                with np.load(place, allow_pickle=False) as kept:
                    maps[method] = kept["maps"]
        for i, name in enumerate(ids):
            found[name] = images[i], {method: values[i] for method, values in maps.items()}
    return found

"""Tables 1 to 4 and Figures 1 and 2 of the ten-methods study, ours beside the paper's."""

import csv
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from saliometer.judgement import Column, interval
from saliometer.studies._claims import Draws, MissingError
from saliometer.studies._zhang_evidence import METHODS, TRANSFORMS, Evidence, with_confidence

FIDELITY = ("AI", "AD_bar", "AG", "I", "D_bar")
LABEL = {"ground_truth": "label"}
TABLES = {  # number -> title, the paper's conditions with our targets, columns
    1: ("Fidelity, explained and scored for the label", LABEL, (*FIDELITY, "Monotonicity")),
    2: ("Three target classes", {**LABEL, "predicted": "predicted", "least_probable": "least"}, FIDELITY),
    3: ("Robustness and complexity", LABEL, ("MS", "AS", "Sparseness", "Complexity", "EC")),
    4: ("Transformed images, means over the variations", {name: name for name in TRANSFORMS}, FIDELITY),
}


@cache
def paper() -> dict[tuple[int, str, str, str], float]:
    """(table, condition, method, metric) -> value as printed."""
    text = files("saliometer.studies").joinpath("data/zhang.csv").read_text(encoding="utf-8")
    return {
        (int(row["table"]), row["condition"], row["method"], row["metric"]): float(row["value"])
        for row in csv.DictReader(text.splitlines())
    }


def cell(evidence: Evidence, table: int, condition: str, method: str, metric: str) -> Draws:
    if table == 4:
        return evidence.under(metric, method, condition)[0]
    return evidence.of(metric, method, TABLES[table][1][condition])


def markdown(evidence: Evidence) -> str:
    """All tables: ours with half of the 95 % interval, the paper's value after the stroke."""
    parts = []
    for number, (title, conditions, metrics) in TABLES.items():
        for condition in conditions:
            lines = [f"**Table {number}**, {title.lower()}: {condition} (ours ± / paper)", ""]
            lines += ["| method | " + " | ".join(metrics) + " |", "|---|" + "---:|" * len(metrics)]
            cells = {m: [_shown(evidence, number, condition, m, metric) for metric in metrics] for m in METHODS}
            if any("±" in one for some in cells.values() for one in some):
                lines += [f"| {method} | " + " | ".join(shown) + " |" for method, shown in cells.items()]
                parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _shown(evidence: Evidence, table: int, condition: str, method: str, metric: str) -> str:
    theirs = paper().get((table, condition, method, metric))
    beside = "-" if theirs is None else f"{theirs:g}"
    try:
        ours = cell(evidence, table, condition, method, metric)
    except MissingError:
        return f"- / {beside}"
    found = interval(float(ours[0]), ours[1:], 2)
    half = max(found.high - found.value, found.value - found.low)
    digits = 0 if metric == "EC" else 2 if metric in ("MS", "AS", "Complexity", "Monotonicity") else 1
    return f"{found.value:.{digits}f} ±{half:.{digits}f} / {beside}"


def figure_2(evidence: Evidence, path: Path) -> Path:
    """How each score follows the model's confidence: Spearman's correlation with its interval, by method."""
    from matplotlib.figure import Figure

    keys = {"AG": 1, "AD_bar": -1, "I": 1, "D_bar": -1}  # drawn as AG, AD, I, D
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    axes = figure.subplots(1, len(keys), sharey=True)
    for axis, (key, sign) in zip(axes, keys.items(), strict=True):
        for place, method in enumerate(METHODS):
            try:
                rho = sign * with_confidence(evidence, key, method)
            except MissingError:
                continue
            if np.isnan(rho[0]):
                continue
            low, high = np.nanpercentile(rho[1:], [2.5, 97.5])
            axis.plot([low, high], [place, place], color="#8aa0b4", linewidth=3, solid_capstyle="round")
            axis.plot(rho[0], place, "o", color="#16456b")
        axis.axvline(0, color="#999999", linewidth=1)
        axis.set_xlim(-1, 1)
        axis.set_title(key.removesuffix("_bar"))
        axis.set_xlabel("Spearman with p")
    axes[0].set_yticks(range(len(METHODS)), METHODS)
    axes[0].invert_yaxis()
    figure.suptitle("Figure 2: does a score follow the model's confidence? Points with 95 % intervals", fontsize=11)
    figure.savefig(path, dpi=130)
    return path


SHOWN = ("IG", "Score-CAM", "Grad-CAM", "RISE", "LIME")  # IG for the gradients, Score-CAM for the CAMs


def figure_1(evidence: Evidence, path: Path) -> Path:
    """For each fidelity metric the best and the worst method, and for it the images with the best and worst score."""
    from matplotlib.figure import Figure

    pictures = _sprites(path.parent / "label")
    cases = [case for key in ("AD_bar", "AI", "AG", "I", "D_bar") for case in _extremes(evidence, key, pictures)]
    if not cases:
        raise MissingError("the run kept no pictures for Figure 1")
    names = list(dict.fromkeys(SHOWN))
    figure = Figure(figsize=(1.5 * (len(names) + 2), 1.45 * len(cases)), layout="constrained")
    axes = figure.subplots(len(cases), len(names) + 2, squeeze=False)
    for row, (words, image, method) in zip(axes, cases, strict=True):
        for axis in row:
            axis.set_axis_off()
        row[0].text(1.0, 0.5, words, fontsize=7, ha="right", va="center", transform=row[0].transAxes)
        photo, maps = pictures[image]
        row[1].imshow(photo)
        for axis, name in zip(row[2:], names, strict=True):
            values = maps.get(evidence.specs[name])
            if values is None:
                continue
            axis.imshow(photo, extent=(0, 1, 0, 1))
            strength = np.abs(values.astype(float))
            strength = (strength - strength.min()) / max(float(np.ptp(strength)), 1e-9)
            axis.imshow(strength, cmap="inferno", alpha=0.75, extent=(0, 1, 0, 1), vmin=0, vmax=1)
            axis.set_title(name + (" ◂" if name == method else ""), fontsize=7, pad=2)
    figure.suptitle(
        "Figure 1: images on which the best and the worst method of each metric score best and worst", fontsize=9
    )
    figure.savefig(path, dpi=120)
    return path


def _extremes(evidence: Evidence, key: str, pictures: Mapping[str, object]) -> list[tuple[str, str, str]]:
    means: dict[str, float] = {}
    for method in METHODS:
        with suppress(MissingError):  # the figure shows what is there
            means |= {method: float(evidence.of(key, method)[0])} if method != "Fake-CAM" else {}
    if not means:
        return []
    column, found = evidence.column(key), []
    for which, method in (("best", max(means, key=lambda m: means[m])), ("worst", min(means, key=lambda m: means[m]))):
        scores = _printed(evidence, column, key, method)
        there = [
            (value, image)
            for value, image in zip(scores, column.images, strict=True)
            if image in pictures and not np.isnan(value)
        ]
        for word, (value, image) in (("highest", max(there, default=(0, ""))), ("lowest", min(there, default=(0, "")))):
            if image:
                found.append((f"{key}\n{which}: {method}\n{word} {value:.1f}", image, method))
    return found


def _printed(evidence: Evidence, column: Column, key: str, method: str) -> Draws:
    from saliometer.studies._zhang_evidence import METRICS

    _, factor, offset = METRICS[key]
    found: Draws = offset + factor * column.values[:, column.methods.index(evidence.specs[method])]
    return found


def _sprites(folder: Path) -> dict[str, tuple[np.ndarray, dict[str, np.ndarray]]]:
    """image -> its picture and each method's map of it, as the run kept them."""
    from saliometer.engine.run import opened

    run = opened(folder)
    found: dict[str, tuple[np.ndarray, dict[str, np.ndarray]]] = {}
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

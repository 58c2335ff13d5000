"""SMERF (Kim, Plumb, Talwalkar, ICML 2022): the paper's methods with its parameters, and its numbers beside ours.

python -m saliometer.studies.smerf run RUN      # 100 images a bucket, all definitions; minutes on a GPU
python -m saliometer.studies.smerf train DIR    # the seven models; --background, --arch, --robust, --seed: see -h
python -m saliometer.studies.smerf run RUN --models DIR --background noise   # all seeds of them that are there
python -m saliometer.studies.smerf tables RUN   # the tables of docs/results/smerf.md
python -m saliometer.studies.smerf claims RUN   # what of the paper holds
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from saliometer.engine.bench import bench
from saliometer.engine.presets import SMERF
from saliometer.engine.run import opened
from saliometer.studies._smerf_claims import claims
from saliometer.studies._smerf_models import asked, train_all
from saliometer.studies._smerf_paper import stored
from saliometer.summary import Scores

PER_BUCKET = 100
DEFINITIONS = ("clean", "clean_positive", "authors")
METHODS = SMERF
OURS = (
    "smooth_grad", "integrated_gradients", "grad_cam", "deep_taylor", "lrp_preset_a_flat", "lrp_preset_b_flat",
    "lrp_alpha_beta", "deep_shap",
)  # fmt: skip  # with our own defaults
COLUMNS = (
    ("pafl", "simple", "mean"), ("safl", "simple", "mean"), ("pafl", "complex", "mean"), ("safl", "complex", "mean"),
    ("pafl", "simple", "min"), ("piou", "simple", "mean"), ("piou", "simple", "min"), ("piou", "complex", "mean"),
    ("piou", "complex", "min"),
)  # fmt: skip


def run(folder: Path, device: str = "auto", **models: Any) -> None:
    """The paper's methods with its parameters and ours with our defaults, in every definition."""
    bench(OURS, preset="smerf", per_bucket=PER_BUCKET, definitions=DEFINITIONS, out=folder, device=device, **models)


def figure(scores: Scores, method: str, group: str, join: str) -> float:
    values = scores.means[scores.of(group), scores.methods.index(method)]
    return float(values.mean() if join == "mean" else values.min())


def _cells(values: list[float]) -> str:
    return " | ".join("-" if np.isnan(value) else f"{value:.2f}" for value in values)


def beside(rows: pa.Table) -> str:
    """Markdown: the authors' numbers and ours in their definition, and the gaps above 0.10."""
    scores = {metric: Scores(rows, metric, "authors") for metric in ("pafl", "safl", "piou")}
    titles = " | ".join(f"{metric.upper()} {group} {join}" for metric, group, join in COLUMNS)
    lines = [f"| method | whose | {titles} |", "|---|---|" + "---:|" * len(COLUMNS)]
    gaps = []
    for name, spec in METHODS.items():
        ours = [figure(scores[metric], spec, group, join) for metric, group, join in COLUMNS]
        theirs = [stored(*column, spec) for column in COLUMNS]
        lines.append(f"| {name} | paper | {_cells(theirs)} |")
        lines.append(f"| | ours | {_cells(ours)} |")
        for column, reference, value in zip(COLUMNS, theirs, ours, strict=True):
            if abs(reference - value) > 0.10:
                gaps.append(f"- {name}, {' '.join(column)}: paper {reference:.3g}, ours {value:.3f}")
    return "\n".join([*lines, "", "Differences above 0.10:", *(gaps or ["- none"])])


def definitions(rows: pa.Table) -> str:
    """Markdown: mean and worst PAFL, simple and complex, in every definition, best first by the clean one."""
    lines = [
        "| method | clean: simple | worst | complex | worst | worst bucket | positive only: simple | complex "
        "| authors: simple | complex |",
        "|---|---:|---:|---:|---:|---|---:|---:|---:|---:|",
    ]
    clean, positive, authors = (Scores(rows, "pafl", definition) for definition in DEFINITIONS)
    places = {method: place for place, method in enumerate(clean.methods)}

    def both(scores: Scores, method: str, joins: tuple[str, ...] = ("mean",)) -> list[float]:
        return [figure(scores, method, group, join) for group in ("simple", "complex") for join in joins]

    for method in sorted(places, key=lambda method: -sum(both(clean, method))):
        worst = clean.cells[int(clean.means[:, places[method]].argmin())]
        first, rest = both(clean, method, ("mean", "min")), both(positive, method) + both(authors, method)
        lines.append(f"| {method} | {_cells(first)} | {' '.join(worst)} | {_cells(rest)} |")
    return "\n".join(lines)


def by_bucket(rows: pa.Table, setting: str, methods: tuple[str, ...]) -> str:
    """Markdown: PAFL of one setting by bucket, clean and authors, beside the oracle under the authors' metric."""
    clean, authors = Scores(rows, "pafl", "clean"), Scores(rows, "pafl", "authors")
    places = clean.of(setting)
    lines = [f"| {setting} | " + " | ".join(clean.cells[place][1] for place in places) + " | mean |"]
    lines.append("|---|" + "---:|" * (len(places) + 1))
    for name, scores, method in [
        *((f"{m}, {d}", s, m) for m in methods for d, s in (("clean", clean), ("authors", authors))),
        ("oracle, authors", authors, "oracle"),
    ]:
        values = scores.means[places, scores.methods.index(method)]
        lines.append(f"| {name} | {_cells([*values, values.mean()])} |")
    return "\n".join(lines)


def tables(folder: Path) -> str:
    rows = opened(folder).rows()
    parts = [beside(rows), definitions(rows), by_bucket(rows, "complex-cr2", (METHODS["IG"], METHODS["I*G"]))]
    return "\n\n".join(parts)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", place, *options]:
            run(Path(place), **asked(options))
        case ["train", *options]:
            sys.exit(train_all(options))
        case ["tables", place]:
            print(tables(Path(place)))
        case ["claims", place]:
            print(claims(opened(Path(place)).rows()))
        case _:
            sys.exit(__doc__)

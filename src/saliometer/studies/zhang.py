"""Ten methods over fidelity, robustness and complexity (Zhang, Torres, Hermanns), rerun: Tables 1-4 and 25 claims."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from PIL import Image
from torch import Tensor

from saliometer import transforms
from saliometer.engine.answer import Answers
from saliometer.engine.asked import REFERENCES
from saliometer.engine.audit import audit
from saliometer.engine.class_names import class_names
from saliometer.engine.device import find
from saliometer.engine.judged import Judged
from saliometer.engine.presets import ZHANG
from saliometer.engine.ready import Loaded, check_labels, model_given, model_ready, source_given
from saliometer.engine.run import Run
from saliometer.engine.run import opened as open_run
from saliometer.engine.shared import Memory
from saliometer.engine.source import Source
from saliometer.engine.thumbs import PHOTOS
from saliometer.files import put
from saliometer.photos import photographs
from saliometer.registry import Spec, one_of
from saliometer.results import SCHEMA
from saliometer.seeds import fork
from saliometer.studies._claims import MissingError, as_json, claims_markdown
from saliometer.studies._folder import begin
from saliometer.studies._zhang_claims import CLAIMS
from saliometer.studies._zhang_evidence import Evidence
from saliometer.studies._zhang_figures import Case, cases, confidence, figure_1, figure_2
from saliometer.studies._zhang_tables import Value, markdown, values
from saliometer.types import Model, Watch

SHOTS = 4  # photographs, where no images are given
FEW = 100  # images, below which methods that compare with others get more, or crops of photographs
VARIATIONS = tuple(text for some in transforms.VARIATIONS.values() for text in some)


@dataclass(frozen=True)
class Scale:
    """How much of the study is run."""

    model: str
    side: int  # of images; 0 as the model has it
    images: int  # of Tables 1 and 2; 0 for all
    transformed: int  # of Table 4
    shaken: int  # of max- and avg-sensitivity
    steps: int  # of insertion and deletion
    sets: int  # of monotonicity
    fills: int
    draws: int  # of max- and avg-sensitivity
    methods: Mapping[str, str]  # the paper's name -> parameters that differ from the preset
    variations: tuple[str, ...] = VARIATIONS


SCALES = {
    "smoke": Scale(
        "efficientnet_lite0", 64, 4, 4, 2, 8, 8, 2, 2,
        {"RISE": "masks=64", "LIME": "samples=64,segments=grid", "IG": "steps=10", "IBA": "steps=3,copies=2"},
        tuple(VARIATIONS[place] for place in (0, 4, 9, 13)),
    ),
    "quick": Scale("efficientnet_lite0", 0, 300, 100, 32, 28, 28, 4, 8, {"RISE": "masks=1000", "LIME": "samples=1000"}),
    "paper": Scale("resnet50(weights=IMAGENET1K_V1)", 0, 0, 1000, 1000, 224, 224, 8, 200, {"RISE": "masks=8000"}),
}  # fmt: skip


def _methods(scale: Scale) -> dict[str, str]:
    """The paper's name -> spec."""
    return {name: _joined(spec, scale.methods.get(name, "")) for name, spec in ZHANG.items()}


def _joined(spec: str, more: str) -> str:
    one, other = Spec.parse(spec), Spec.parse(f"x({more})")
    return str(Spec(one.name, tuple(sorted((dict(one.params) | dict(other.params)).items()))))


@dataclass(frozen=True)
class Study:
    """What was run: the rows of all tables, and what they say."""

    folder: Path
    scale: str
    rows: pa.Table
    evidence: Evidence
    failed: Mapping[str, str]

    def claims(self) -> list[dict[str, Any]]:
        return [claim.judged(self.evidence) for claim in CLAIMS]

    def table(self, number: int) -> list[Value]:
        """One of the paper's four tables, as far as it was run."""
        return values(self.evidence, number)

    def confidence(self) -> list[Value]:
        """The paper's Figure 2 in numbers."""
        return confidence(self.evidence)

    def cases(self) -> list[Case]:
        """The paper's Figure 1 in pictures."""
        return cases(self.evidence, self.folder / "label")

    def write(self) -> list[Path]:
        """Tables, figures and claims as files in the study's folder."""
        written, claims = [self.folder / "tables.md", self.folder / "claims.json"], self.claims()
        put(written[0], f"{markdown(self.evidence)}\n\n{claims_markdown(claims)}\n".encode())
        put(written[1], (as_json(claims) + "\n").encode())
        for draw, name in ((figure_1, "figure1.png"), (figure_2, "figure2.png")):
            with suppress(MissingError):
                written.append(draw(self.evidence, self.folder / name))
        return written


def reproduce(
    folder: Path,
    scale: str = "smoke",
    *,
    model: str = "",
    images: str = "",
    labels: Path | None = None,
    weights: Path | None = None,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    size: int = 0,
    resize: int = 0,
    device: str = "auto",
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
    watch: Watch = lambda share, text: None,
) -> Study:
    """Tables 1 to 4 as audits under one folder, each of which goes on where it was."""
    chosen = SCALES[one_of("scale", scale, SCALES)]
    if not images and scale == "paper":
        raise ValueError("scale 'paper' wants images: give --images, an ImageNet validation folder")
    place = find(device)
    loaded = model_given(model or chosen.model, weights, mean, std, size or chosen.side, "auto", resize)
    source = source_given(images or "photographs", labels, None, loaded.preprocessing, 0 if images else SHOTS, "")
    ready = model_ready(loaded, source, False, place)
    names = class_names(model or chosen.model, str(loaded.facts["name"]))
    source = check_labels(source, int(loaded.facts["classes"]), loaded.facts, "label", names)
    labelled = source.labels is not None
    if not labelled:
        source = replace(source, labels=_predicted(ready, source, place))
        say("The images have no labels: the predicted class stands for the label, claims about labels stay open.")
    told = {"study": "zhang", "scale": scale, "labelled": labelled, "pixels": source.images(0, 1).shape[2:].numel()}
    begin(folder, told)
    put(folder / "study.json", (json.dumps(told, indent=1) + "\n").encode())
    others = _crops(loaded, seed) if len(source) < FEW else source.references(REFERENCES, seed, torch.device("cpu"))
    parts = list(_parts(chosen, source, ready, labelled, seed, say))
    loaded = replace(loaded, net=ready.net, output="logit", whole=ready, names=names)  # so that it is captured once
    asked = list(_methods(chosen).values())
    judged: list[Judged] = []
    remembered = Memory()
    total = sum(part.weight for part in parts)
    done = 0.0
    for part in parts:

        def told_of(share: float, text: str, part: Part = part, done: float = done) -> None:
            watch((done + share * part.weight) / total, f"{part.name}: {text}")

        judged.append(
            audit(
                loaded,
                part.source,
                methods=asked,
                metrics=part.metrics,
                target=part.target,
                seed=seed,
                device=device,
                controls=part.controls,
                pictures=PHOTOS if part.controls else 0,
                references=others if len(part.source) < FEW else None,
                remembered=remembered,
                out=folder / part.name,
                watch=told_of,
            )
        )
        done += part.weight
    failed = {
        f"{part.name}: {name}": why for part, one in zip(parts, judged, strict=True) for name, why in one.failed.items()
    }
    return replace(opened(folder), failed=failed)


def opened(folder: Path) -> Study:
    """A study that is there already; tables that are not finished are left out."""
    path = folder / "study.json"
    if not path.is_file():
        raise ValueError(
            f"'{folder}' holds no study (no study.json in it): `saliometer reproduce zhang --out {folder}`"
        )
    told = json.loads(path.read_text(encoding="utf-8"))
    runs = [open_run(place.parent) for place in sorted(folder.glob("*/run.json"))]
    tables = [run.rows() for run in runs if finished(run)]
    rows = pa.concat_tables([SCHEMA.empty_table(), *tables]).unify_dictionaries()
    specs = _methods(SCALES[told["scale"]])
    return Study(folder, told["scale"], rows, Evidence(rows, told["pixels"], told["labelled"], specs), {})


def finished(run: Run) -> bool:
    """Whether every method has scored every image."""
    request = run.manifest["request"]
    units = -(-int(request["count"]) // int(run.manifest["fixed"]["unit"]))
    return len(list(run.parts())) == units * len(run.manifest["methods"])


@dataclass(frozen=True)
class Part:
    """One audit of the study."""

    name: str
    source: Source
    metrics: tuple[str, ...]
    target: str = "label"
    controls: bool = False

    @property
    def weight(self) -> float:
        again = any("sensitivity" in metric for metric in self.metrics)
        return len(self.source) * (10 if again else 1)


def _parts(
    scale: Scale, source: Source, model: Model, labelled: bool, seed: int, say: Callable[[str], None]
) -> Iterator[Part]:
    """Table 4 first takes the images of Table 1 again, transformed."""
    drops = ("average_drop", "average_increase", "average_gain")
    curves = (f"insertion(steps={scale.steps})", f"deletion(steps={scale.steps})")
    monotone = f"monotonicity(fills={scale.fills},sets={scale.sets})"
    whole = source.some(scale.images, seed)
    still = ("sparseness", "complexity", "effective_complexity", "probability", "extent")
    signed = tuple(f"{metric}@signed_joint_minmax" for metric in drops)
    yield Part("label", whole, (*drops, *curves, monotone, *still, *signed), controls=True)
    for target in ("predicted", "least") if labelled else ("least",):
        yield Part(target, whole, (*drops, *curves), target)
    draws = f"draws={scale.draws}"
    yield Part("shaken", source.some(scale.shaken, seed), (f"max_sensitivity({draws})", f"avg_sensitivity({draws})"))
    for variation in scale.variations:
        try:
            changed = source.some(scale.transformed, seed).under(variation, seed, model)
        except ValueError as error:  # images too small, or nearly all of one class
            say(f"Left out: {variation}: {error}.")
            continue
        both = (changed,) if changed.blended is None else (changed, changed.second())
        for one in both:
            yield Part(re.sub(r"[^a-z0-9.]+", "-", one.condition).strip("-"), one, (*drops, *curves, "probability"))


def _normalised(pixels: Tensor, loaded: Loaded) -> Tensor:
    mean, std = (pixels.new_tensor(values).view(1, -1, 1, 1) for values in (loaded.mean, loaded.std))
    return (pixels - mean) / std


def _crops(loaded: Loaded, seed: int) -> Tensor:
    """Where images are few: random halves of photographs, for methods that compare with many."""
    assert loaded.preprocessing is not None
    rng, pictures = np.random.default_rng(fork("crops", seed)), list(photographs().values())
    found = []
    for _ in range(FEW):
        array = pictures[rng.integers(len(pictures))]
        side = min(array.shape[:2]) // 2
        top, left = (int(rng.integers(size - side)) for size in array.shape[:2])
        found.append(loaded.preprocessing.tensor(Image.fromarray(array[top : top + side, left : left + side])))
    return _normalised(torch.stack(found), loaded)


def _predicted(model: Model, source: Source, place: torch.device) -> Tensor:
    answers = Answers(model, place, 32)
    return torch.cat(
        [answers.predicted(source.images(i, min(i + 32, len(source)), place)).cpu() for i in range(0, len(source), 32)]
    )

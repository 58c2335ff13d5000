"""Rows of COSE's study: those that give the paper's own table, and made-up ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from saliometer import results
from saliometer.cose.table import CHANGED, CORRECT, GRAIN, UNCHANGED
from saliometer.engine.battery import Measure
from saliometer.engine.presets import COSE
from saliometer.studies._cose_evidence import TABLE, Evidence, Trained
from saliometer.studies._cose_paper import FAMILIES, METHODS, OVERALL, accuracies, table, variants

IMAGES = 4
OURS = {"ResNet50": "resnet50", "ConvNext": "convnext_small", "ViT-B/16": "vit_b_16", "Swin-T": "swin_t"}
MEASURES = {
    "published": "cose(mode=published)", "default": "cose", "pearson": "cose(similarity=pearson)",
    "spearman": "cose(similarity=spearman)", "fixed": "cose(fixed_target=true)",
}  # fmt: skip
DEFINITIONS = {name: Measure.parse(text).definition for name, text in MEASURES.items()}
Pair = tuple[str, str, float]  # metric, condition, similarity


def block(
    method: str, pairs: Iterable[Pair], how: str = "published", grain: float = 1.0, images: int = IMAGES
) -> pa.Table:
    """Rows of one method: each pair on every image, a little above and below its value."""
    return _block(method, tuple(pairs), how, grain, images)


@lru_cache(maxsize=4096)
def _block(method: str, pairs: tuple[Pair, ...], how: str, grain: float, images: int) -> pa.Table:
    held = [(CORRECT, "", 1.0), (GRAIN, "", grain), *pairs]
    ids = [f"test-{place}" for place in range(images)]
    shake = 1e-6 * np.array([1 if place % 2 else -1 for place in range(images)])
    constant = dict.fromkeys(results.COLUMNS, "") | {
        "task": "images", "method": COSE.get(method, method), "definition": DEFINITIONS[how], "target": "predicted",
    }  # fmt: skip
    blocks = []
    for metric in dict.fromkeys(metric for metric, *_ in held):
        some = [(condition, value) for name, condition, value in held if name == metric]
        count = len(some) * images
        values = np.concatenate([value + (shake if condition else 0 * shake) for condition, value in some])
        found = results.block(constant | {"metric": metric}, ids * len(some), [""] * count, values, [""] * count)
        blocks.append(results.with_texts(found, "condition", [condition for condition, _ in some for _ in ids]))
    return pa.concat_tables(blocks)


def pairs_for(consistency: float, sensitivity: float) -> list[Pair]:
    """Two pairs whose consistency and sensitivity are as given, in percent."""
    return [(UNCHANGED, "flip_lr", consistency / 100), (CHANGED, "random_model", 1 - sensitivity / 100)]


def trained(data: str, arch: str, init: str = "random", accuracy: float = 0.9, **more: object) -> Trained:
    return Trained(data, f"{arch}(init={init})", arch, init, False, TABLE, accuracy, **more)


Value = Callable[[Trained, str], tuple[float, float] | None]  # model, method -> consistency and sensitivity in percent


def evidence(models: Sequence[Trained], value: Value, hows: Sequence[str] = ("published", "default")) -> Evidence:
    """Of models whose methods have such a consistency and sensitivity in every reading; None leaves one out."""
    tables: dict[tuple[str, str], list[pa.Table]] = {}
    for model in models:
        blocks = [
            block(method, pairs_for(*found), how)
            for method in METHODS
            if (found := value(model, method)) is not None
            for how in hows
        ]
        tables[model.data, model.label] = [pa.concat_tables(blocks).unify_dictionaries()]
    return Evidence(models, tables)


def printed(change: Mapping[tuple[str, str, str], float] | None = None) -> Evidence:
    """The 55 settings of the paper, every variant with the mean of its cell; `change` puts others in."""
    held = table() | dict(change or {})
    models = [
        trained(data, OURS[model], variant.replace(" ", "_"), accuracies()[data, model, variant] / 100)
        for data, model in dict.fromkeys((data, model) for data, model, _ in held if data != OVERALL)
        for variant in variants(model)
    ]
    assert {model.kin for model in models} == set(FAMILIES)
    return evidence(models, lambda model, method: (held[model.of, model.kin, method],) * 2, ["published"])

"""Rows of the causal study in which every claim holds, and changed ones."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from saliometer import results
from saliometer.sanity.gates import Gate
from saliometer.studies._yona_evidence import TASKS, Evidence
from saliometer.studies._yona_pictures import Pictures

SEEDS = 4
METHODS = ("gradient", "guided_backprop", "input_x_gradient", "integrated_gradients(steps=8)", "grad_cam")
CONTROLS = ("edge", "fresh_noise", "oracle")
LAYERS = ("fc2", "fc1", "conv2", "conv1")
ALIKE = {  # Spearman (abs) of trained with random by method and task
    "gradient": (0.18, 0.15, 0.14, 0.2), "guided_backprop": (0.44, 0.41, 0.42, 0.38),
    "input_x_gradient": (0.97, 0.96, 0.96, 0.96), "integrated_gradients": (0.9, 0.9, 0.9, 0.9),
    "grad_cam": (0.5, 0.3, 0.3, 0.3), "edge": (1.0,) * 4, "fresh_noise": (0.0,) * 4, "oracle": (0.1,) * 4,
}  # fmt: skip
ENERGY = {"edge": 0.0, "fresh_noise": 0.0, "oracle": 0.5, "guided_backprop": 0.12, "gradient": 0.11}
FOCUS = {
    "t1": (0.6, 0.36, 0.22),
    "t2": (0.78, 0.64, 0.4),
    "half": (0.87, 0.505, 0.507),
    "pairs": (0.7, 0.5, 0.5),
    "pairs2": (0.7, 0.5, 0.5),
}
GROUPS = {
    "digits": ("t", "half", "labels", "random", "random.half"),
    "shapes": ("t1", "t2", "random", "random.t2"),
    "pairs": ("pairs", "pairs2", "pretrained", "random"),
}
Key = tuple[str, str, str, str, str, str, str]  # task, model, method, metric, definition, region, condition
Change = Callable[[Key, float], float | None]  # None to leave it out


def near(middle: float, *, by: float = 0.004) -> list[float]:
    """One value for each seed, with that mean."""
    return [middle + by * step for step in (-1.5, -0.5, 0.5, 1.5)]


def numbers() -> dict[Key, float]:
    """Every number the claims read."""
    found: dict[Key, float] = {}

    def add(task, model, method, metric, value, *, definition="", region="", condition=""):
        found[task, model, method, metric, definition, region, condition] = value

    def interval(task, model, method, metric, value, *, by=0.01, **which):
        for end, moved in (("", 0.0), (".low", -by), (".high", by)):
            add(task, model, method, metric + end, value + moved, **which)

    def seeded(task, group, method, metric, values, **which):
        for seed, value in enumerate(values):
            add(task, f"{group}(seed={seed})", method, metric, value, **which)

    for label in (*METHODS, *CONTROLS):
        name = label.partition("(")[0]
        blind = name in ("edge", "fresh_noise")
        for task in TASKS:
            against = {"definition": "total_variation", "condition": "against(random)"}
            effect = ENERGY.get(name, 0.08)
            interval(task, task, label, "E", effect, by=0.0 if name == "edge" else 0.01, **against)
            between = 0.0 if name == "edge" else 0.33 + effect
            for metric, value in (("E.p", 1.0 if blind else 0.0001), ("B", between), ("W_T", 0.3), ("W_R", 0.36)):
                add(task, task, label, metric, value, **against)
            alike = ALIKE[name][min(("t", "t1", "t2", "half").index(task) if task in ("t", "t1", "t2") else 3, 3)]
            which = {"definition": "spearman_abs", "condition": "against(random)"}
            seeded(task, task, label, "B", near(1 - alike), **which)
            if task == "t":
                local = ALIKE["gradient"][0] + 0.01 * (name != "gradient")
                seeded(task, task, label, "B", near(1 - local), region="local", **which)
        for metric, value in (("E.p", 0.01), ("B", 0.3), ("W_T", 0.3), ("W_R", 0.3)):
            add("t", "t", label, metric, value, definition="total_variation", condition="against(labels)")
        shuffled = {"definition": "total_variation", "condition": "against(labels)"}
        interval("t", "t", label, "E", 0.03 if name == "guided_backprop" else 0.05, **shuffled)
        for task, (own, random, other) in FOCUS.items():
            own, random, other = (0.4, 0.4, 0.4) if blind else (own, random, other)
            groups = {task: own, "random": random, {"t1": "t2", "t2": "t1", "half": "t"}.get(task, "pretrained"): other}
            for group, value in groups.items():
                interval(task, group, label, "focus", value, region="mask")
                if group != task:
                    condition = f"against({group})"
                    interval(task, task, label, "contrast", own - value, region="mask", condition=condition)
            dd = 0.0 if blind else own - other
            interval(task, "", label, "DD", dd, by=0.0 if name == "edge" else 0.01, region="mask")
            add(task, task, label, "wrong", 30.0, region="mask")
            seeded(task, task, label, "right_minus_wrong", near(0.1), region="mask")
        gap = {"region": "mask", "condition": "against(random)"}
        interval("pairs", "pretrained", label, "contrast", 0.0, **gap)
        for order in ("top_down", "bottom_up"):
            for stage, layer in enumerate(LAYERS if order == "top_down" else LAYERS[::-1], 1):
                alike = ALIKE[name][0]
                if order == "top_down" and stage < len(LAYERS) and name not in ("edge", "fresh_noise"):
                    alike = {"gradient": 0.6, "guided_backprop": 0.95}.get(name, 0.7)
                for measure in ("spearman_abs", "ssim"):
                    seeded(
                        "t", "t", label, measure, near(alike), definition="plain",
                        condition=f"{order}(layer={layer},stage={stage})",
                    )  # fmt: skip
    for task in FOCUS:
        add(task, "", "", "area_share", 0.34, region="mask")
    return found


def rows_of(given: Mapping[Key, float]) -> pa.Table:
    blocks = []
    for (task, model, method, metric, definition, region, condition), value in given.items():
        name, setting = TASKS[task]
        constant = dict.fromkeys(results.COLUMNS, "") | {
            "task": name, "setting": setting, "model": model, "method": method, "metric": metric,
            "definition": definition, "region": region, "condition": condition,
        }  # fmt: skip
        blocks.append((constant, value))
    table = {name: [constant[name] for constant, _ in blocks] for name in results.COLUMNS if name != "value"}
    table["value"] = np.array([value for _, value in blocks])
    return pa.table({name: table[name] for name in results.COLUMNS}).cast(results.SCHEMA)


def gates(missed: Mapping[str, str] = {}) -> dict[str, list[Gate]]:
    """All passed, but for the named one of a task."""
    names = ("accuracy", "chance", "A erased", "N erased")
    return {
        task: [Gate(name, 0.5, "0.9 or more", missed.get(task) != name) for name in names]
        for task in (*TASKS, "labels")
    }


def evidence(change: Change = lambda key, value: value, missed: Mapping[str, str] = {}) -> Evidence:
    changed = {key: change(key, value) for key, value in numbers().items()}
    return Evidence(rows_of({key: value for key, value in changed.items() if value is not None}), gates(missed))


def pictures(scene: str) -> Pictures:
    """Eight images of noise with maps of noise."""
    lots = np.random.default_rng(1)
    size = (16, 32) if scene == "pairs" else (16, 16)
    colour = (3,) if scene == "pairs" else ()
    names = [label.partition("(")[0] for label in (*METHODS, *CONTROLS)]
    tasks = ("pairs", "pairs2") if scene == "pairs" else ("t", "half") if scene == "digits" else ("t1", "t2")
    return Pictures(
        lots.integers(0, 255, (8, *size, *colour)).astype(np.uint8), np.ones((8, *size), bool),
        {task: np.arange(8) % 5 for task in tasks},
        {group: np.arange(8) % 5 for group in GROUPS[scene]},
        {"pairs": ("acorn", "espresso", "banana", "ice cream", "gondola"), "t": tuple("0123456789")},
        {name: {g: lots.normal(0, 0.4, (8, *size)).astype(np.float16) for g in GROUPS[scene]} for name in names},
    )  # fmt: skip


def study(e: Evidence | None = None) -> Any:
    """What figures are drawn from."""
    found = {scene: pictures(scene) for scene in GROUPS}
    return SimpleNamespace(
        evidence=e or evidence(), pictures=found.get, unrun=[("networks of half the width", "not part of this scale")]
    )

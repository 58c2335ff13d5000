"""Runs without a model: a folder with the rows a test wants."""

from pathlib import Path

import numpy as np

from saliometer import registry, results
from saliometer.engine.run import Run, Unit

CONTROLS = ("random", "edge", "centre", "oracle", "fake_cam")


def toy_bench(folder: Path, values: dict[str, list[float]], *, keys=None, scored=None, weights="0", **request) -> Run:
    """`values` is method -> PAFL of every image, all of bucket 8 (A + Box1); only the `scored` methods have rows."""
    images = len(next(iter(values.values())))
    asked = {
        "settings": ["simple-fr"], "per_bucket": images, "limit": 0, "definitions": ["clean"], "region": "box",
        "target": "predicted", "seed": 0, "sampler": "disjoint", "labelling": "paper",
    } | request  # fmt: skip
    fixed = {"task": "textbox-1", "sampler": "disjoint", "glyphs": "0", "weights": {"simple-fr": weights}, "unit": 128}
    run = Run(folder, asked, fixed)
    run.manifest["models"] = {"simple-fr": {"sha256": weights, "accepted": True, "accuracy": 1.0}}
    _enlist(run, values, keys)
    for method in values if scored is None else scored:
        constant = {"task": "textbox", "setting": "simple-fr", "model": "m", "method": method, "region": "box"}
        pafl = np.array(values[method], float)
        blocks = [
            _block(constant, metric, "clean", numbers, "8") for metric, numbers in (("pafl", pafl), ("safl", 1 - pafl))
        ]
        results.write(run.part(Unit("simple-fr", 0, 128), method), blocks)
    return run


def toy_audit(folder: Path, values: dict[str, dict[str, list[float]]], *, keys=None, images="0", **request) -> Run:
    """`values` is metric -> method -> value of every image; `images` is their fingerprint."""
    methods = list(dict.fromkeys(method for some in values.values() for method in some))
    count = max(len(numbers) for some in values.values() for numbers in some.values())
    asked = {
        "model": "net", "images": "photos", "count": count, "metrics": list(values), "constant": "invalid",
        "normalisations": ["abs_max_minmax"], "target": "predicted", "seed": 0, "condition": "", "pictures": 0,
        "kind": "audit", "settings": ["photos"],
    } | request  # fmt: skip
    fixed = {
        "images": images,
        "weights": "0",
        "unit": 32,
        "input": {},
        "output": ["logit", "softmax"],
        "references": "",
    }
    run = Run(folder, asked, fixed)
    run.manifest["model"] = {"name": asked["model"], "classes": 3, "parameters": 10, "weights": "own", "sha256": "0"}
    _enlist(run, dict.fromkeys(methods), keys)
    for method in methods:
        constant = {"task": "images", "setting": "photos", "model": "net", "method": method, "region": ""}
        blocks = [
            _block(constant, metric, "abs_max_minmax()", np.array(some[method], float), "")
            for metric, some in values.items()
            if method in some
        ]
        results.write(run.part(Unit("photos", 0, 32), method), blocks)
    return run


def _enlist(run: Run, methods, keys) -> None:
    for method in methods:
        key = (keys or {}).get(method, "0" * 64)
        run.manifest["methods"][method] = {"key": key, "own": False, "control": method in CONTROLS}
    run.keep()


def _block(constant, metric, definition, numbers, bucket):
    count = len(numbers)
    named = {**constant, "metric": metric, "definition": definition, "target": "predicted", "condition": ""}
    return results.block(named, [f"test-{i}" for i in range(count)], [bucket] * count, numbers, [""] * count)


def big_audit(folder: Path, *, methods: int, metrics: int, images: int, pictures: int = 100) -> Run:
    """Numbers and pictures of noise, as many as asked for; five of the methods are controls."""
    rng = np.random.default_rng(0)
    names = [*CONTROLS, *(f"method_{i}(steps={i})" for i in range(methods - len(CONTROLS)))]
    battery = [name for name in registry.metrics if registry.metrics[name].facts.reads]
    shown = {metric: {name: rng.random(images).tolist() for name in names} for metric in battery}
    run = toy_audit(folder, shown)
    extra = metrics - len(battery) + 2
    for name in names if extra > 0 else ():
        constant = {"task": "images", "setting": "photos", "model": "net", "method": name, "region": ""}
        blocks = [
            _block(constant, metric, "signed_joint_minmax()", rng.random(images), "") for metric in battery[:extra]
        ]
        results.write(run.part(Unit("photos", 32, 64), name), blocks)
    keep_pictures(run, names, pictures)
    return run


def keep_pictures(run: Run, methods, count: int) -> None:
    """Of noise, which nothing can compress."""
    rng = np.random.default_rng(1)
    unit = Unit("photos", 0, 32)
    kept = {
        "images": rng.integers(0, 255, (count, 112, 112, 3), dtype=np.uint8), "labels": np.full(count, -1),
        "targets": np.zeros(count, int), "ids": np.array([f"test-{i}" for i in range(count)]),
        "objects": np.zeros((count, 0, 112, 112), bool),
    }  # fmt: skip
    run.sprites(unit).parent.mkdir(parents=True, exist_ok=True)
    np.savez(run.sprites(unit), **kept)
    for method in methods:
        run.sprites(unit, method).parent.mkdir(parents=True, exist_ok=True)
        np.savez(run.sprites(unit, method), maps=rng.integers(-127, 127, (count, 56, 56), dtype=np.int8))

"""Benchmarks of SMERF without a model: a view of a run with the values, and the thumbnails, that a test wants."""

import numpy as np

from saliometer import results
from saliometer.engine.run import Run, Unit
from saliometer.report.view import View

FR, NR, CR2 = "simple-fr", "simple-nr", "complex-cr2"
PAFL = {
    "good": {(FR, 7): 0.9, (FR, 8): 0.7, (FR, 11): 0.6, (NR, 2): 0.8, (NR, 8): 0.5, (CR2, 8): 0.4, (CR2, 5): 0.6},
    "gradient": {(FR, 7): 0.3, (FR, 8): 0.2, (FR, 11): 0.1, (NR, 2): 0.3, (NR, 8): 0.1, (CR2, 8): 0.2, (CR2, 5): 0.1},
    "random": dict.fromkeys([(FR, 7), (FR, 8), (FR, 11), (NR, 2), (NR, 8), (CR2, 8), (CR2, 5)], 0.05),
    "oracle": dict.fromkeys([(FR, 7), (FR, 8), (FR, 11), (NR, 2), (NR, 8), (CR2, 8), (CR2, 5)], 1.0),
}
SAFL = {
    "good": {(FR, 8): 0.2, (FR, 11): 0.4, (NR, 8): 0.3, (CR2, 8): 0.5, (CR2, 5): 0.1},
    "gradient": {(FR, 8): 0.3, (FR, 11): 0.5, (NR, 8): 0.1, (CR2, 8): 0.3, (CR2, 5): 0.2},
    "random": dict.fromkeys([(FR, 8), (FR, 11), (NR, 8), (CR2, 8), (CR2, 5)], 0.05),
    "oracle": dict.fromkeys([(FR, 8), (FR, 11), (NR, 8), (CR2, 8), (CR2, 5)], 0.0),
}


def toy(folder, metrics, *, images=2, definition="clean", **more):
    """A view of a run without a model: `metrics` is metric -> method -> (setting, bucket) -> value of its images."""
    settings = list(dict.fromkeys(s for methods in metrics.values() for cells in methods.values() for s, _ in cells))
    request = {
        "settings": settings, "per_bucket": images, "limit": 0, "definitions": [definition], "region": "box",
        "target": "predicted", "seed": 0,
    } | more  # fmt: skip
    run = Run(folder, request, {"task": "textbox-1", "sampler": "disjoint", "glyphs": "0", "weights": {}, "unit": 128})
    methods = list(dict.fromkeys(method for some in metrics.values() for method in some))
    for method in methods:
        control = method.partition("(")[0] in ("random", "edge", "oracle")
        run.manifest["methods"][method] = {"key": "0" * 64, "own": False, "control": control}
    run.keep()
    for method in methods:
        for setting in settings:
            cells = {
                metric: {b: v for (s, b), v in some.get(method, {}).items() if s == setting}
                for metric, some in metrics.items()
            }
            blocks = [_block(metric, definition, setting, method, some, images) for metric, some in cells.items()]
            results.write(run.part(Unit(setting, 0, 128), method), [one for one in blocks if one is not None])
    return View(run, run.rows(), definition)


def _block(metric, definition, setting, method, cells, images):
    constant = {
        "task": "textbox", "setting": setting, "model": "m", "method": method, "region": "box", "target": "predicted",
        "condition": "", "metric": metric, "definition": definition,
    }  # fmt: skip
    buckets = [str(bucket) for bucket in cells for _ in range(images)]
    ids = [f"test-{bucket}-{i}" for bucket in cells for i in range(images)]
    values = np.repeat(np.array(list(cells.values()), float), images)
    return results.block(constant, ids, buckets, values, [""] * len(ids)) if cells else None


def rows_of(drawing, **wanted):
    """Of all charts: method -> row."""
    every = [row for chart in drawing.charts for row in chart.rows]
    return {row["method"]: row for row in every if all(row[key] == value for key, value in wanted.items())}


def drawn(chart, name, kind="", panel=0):
    """The items of a series."""
    found = [
        one for one in chart.option["series"]
        if one["name"] == name and one["xAxisIndex"] == panel and one["type"] == (kind or one["type"])
    ]  # fmt: skip
    return found[0]["data"]


def scene(view, setting, images, seed):
    """Thumbnails as a run keeps them: buckets 8 and 11, a map for each method of the run."""
    rng = np.random.default_rng(seed)
    folder = view.run.folder / "thumbs" / setting
    folder.mkdir(parents=True)
    np.savez(
        folder / "scene.npz", shown=np.arange(2), images=images, ids=np.array(["test-8-0", "test-11-0"]),
        boxes=np.tile(np.array([[0, 4, 0, 4], [8, 12, 8, 12], [16, 20, 16, 20]]), (2, 1, 1)),
        roles=np.array([[2, 1, -1], [2, 1, 2]], np.int8), labels=np.array([1, 1]), targets=np.array([1, 1]),
        buckets=np.array(["8", "11"]),
    )  # fmt: skip
    for method in view.methods:
        maps = rng.uniform(-1, 1, (2, 64, 64)).astype(np.float16)
        np.savez(view.run.thumbnails(setting, method), maps=maps)

"""Can the model's reasoning be told from one method's maps alone? Figure 9 of SMERF as a number (smerf.md 5.7).

The rows hold, for the same images through every model, the share of a map's attribution on each object and on the
background. A map is given to the setting whose mean shares in its bucket, over images of other folds, are nearest.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from saliometer import results, summary
from saliometer.registry import Spec
from saliometer.summary import RESAMPLES, Scores, Uncertain

SHARES = "share."  # the start of a metric's name: share.text, share.background
TOLD, EVERY = "told", "all settings"  # what the derived rows call their metric and their setting
FOLDS = 10
Floats = npt.NDArray[np.float64]


def credits(shares: Floats, folds: int = FOLDS) -> Floats:
    """(settings, images) from (settings, images, features) of one bucket: 1 where a map goes to its own setting.

    Folds are by image, so that the maps of one image are all learnt from or all judged. Where several settings are
    equally near, their lot decides: the map counts 1 over their number if its own is among them.
    """
    settings, images, _ = shares.shape
    if images < 2:
        raise ValueError(f"{images} image in a bucket: wanted 2 or more, to learn from others than are judged")
    fold = np.arange(images) % min(folds, images)
    found = np.empty((settings, images))
    for one in range(fold.max() + 1):
        judged = fold == one
        centroids = shares[:, ~judged].mean(1)  # (settings, features)
        gaps = shares[:, judged, None, :] - centroids  # (settings, judged images, settings, features)
        far = np.square(gaps).sum(3)
        nearest = far <= far.min(2, keepdims=True)
        own = nearest[np.arange(settings), :, np.arange(settings)]  # (settings, judged images)
        found[:, judged] = own / nearest.sum(2)
    return found


def told(rows: pa.Table, folds: int = FOLDS) -> pa.Table:
    """Rows of the metric `told`: for each method and image, the share of its maps that go to their own setting.

    Where settings have several trainings, those of one seed are told apart from each other, and the rows name the seed
    in place of a model. A method that lacks maps of a setting has no rows.
    """
    chosen = rows.filter(pc.starts_with(rows["metric"].cast(pa.string()), SHARES))
    blocks = [results.SCHEMA.empty_table()]
    settings = sorted(chosen["setting"].unique().to_pylist())
    for (method, bucket, seed), maps in _by_bucket(chosen).items():
        samples = sorted({sample for _, sample in maps}, key=lambda sample: (len(sample), sample))
        if any((setting, sample) not in maps for setting in settings for sample in samples):
            continue
        shares = np.array([[[*maps[setting, s].values()] for s in samples] for setting in settings])
        constant = {name: chosen[name][0].as_py() for name in ("task", "definition", "region", "target")}
        constant |= {"setting": EVERY, "model": seed, "method": method, "metric": TOLD, "condition": ""}
        values = credits(shares, folds).mean(0)
        blocks.append(results.block(constant, samples, [bucket] * len(samples), values, [""] * len(samples)))
    return pa.concat_tables(blocks).unify_dictionaries()


def _by_bucket(rows: pa.Table) -> Mapping[tuple[str, str, str], dict[tuple[str, str], dict[str, float]]]:
    """(method, bucket, seed) -> (setting, sample) -> object -> share, objects in the order of their names."""
    found: dict[tuple[str, str, str], dict[tuple[str, str], dict[str, float]]] = {}
    names = ("method", "bucket", "model", "setting", "sample", "metric", "value")
    columns = {name: rows[name].to_pylist() for name in names}
    seeds = {model: str(dict(Spec.parse(model).params).get("seed", "")) for model in set(columns["model"])}
    for place in sorted(range(len(rows)), key=columns["metric"].__getitem__):
        method, bucket, model, setting, sample, metric, value = (columns[name][place] for name in names)
        found.setdefault((method, bucket, seeds[model]), {}).setdefault((setting, sample), {})[metric] = value
    return found


def identifiability(rows: pa.Table, folds: int = FOLDS, resamples: int = RESAMPLES) -> Scores:
    """The accuracy of every method by bucket, with intervals over images and paired differences."""
    found = told(rows, folds)
    definitions = found["definition"].unique().to_pylist()
    return Scores(found, TOLD, definitions[0] if definitions else "clean", resamples)


def over_models(rows: pa.Table, folds: int = FOLDS) -> dict[str, Uncertain]:
    """method -> its accuracy with intervals over images and, apart from it, over models; {} with one of each."""
    found = told(rows, folds)
    return summary.over_models(found, TOLD, found["definition"][0].as_py()) if len(found) else {}


def empty_maps(rows: pa.Table) -> dict[str, dict[str, int]]:
    """method -> why -> how many maps say nothing: their shares are all 0."""
    of_one = rows.filter(pc.equal(rows["metric"], f"{SHARES}background"))
    found: dict[str, dict[str, int]] = {}
    for method, note in zip(of_one["method"].to_pylist(), of_one["note"].to_pylist(), strict=True):
        for word in set(note.split("; ")) & {"nan map", "zero map", "scored as empty"}:
            counts = found.setdefault(method, {})
            counts[word] = counts.get(word, 0) + 1
    return found

"""Sanity checks, done causally (Yona & Greenfeld, 2021; Adebayo et al., 2018), rerun: Figures 1-7 and 15 claims."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from saliometer import results
from saliometer.engine import device as devices
from saliometer.engine.causal_models import FAINTEST, Training
from saliometer.engine.run import Run, key
from saliometer.engine.run import opened as open_run
from saliometer.files import put
from saliometer.models.fit import Recipe
from saliometer.registry import one_of
from saliometer.sanity.gates import Gate
from saliometer.studies._claims import as_json, claims_markdown
from saliometer.studies._folder import begin
from saliometer.studies._yona_ablations import ablations, measure_ablations
from saliometer.studies._yona_cast import (
    TRAINED,
    Casting,
    Sizes,
    digits_scene,
    named_classes,
    pairs_scene,
    shapes_scene,
)
from saliometer.studies._yona_claims import CLAIMS
from saliometer.studies._yona_classical import BESIDE, Extent, measure_curves
from saliometer.studies._yona_evidence import CONTROLS, Evidence
from saliometer.studies._yona_headline import sentences
from saliometer.studies._yona_jobs import jobs_of, train
from saliometer.studies._yona_parts import Timings, areas, begun, measure_scene
from saliometer.studies._yona_pictures import Pictures, pictures
from saliometer.studies._yona_scenes import Scene
from saliometer.studies._yona_tables import pages
from saliometer.tasks._bank import SPLITS, bank, digit_bank
from saliometer.types import Watch

METHODS = (  # of gradient type, the paper's two first
    "gradient", "guided_backprop", "input_x_gradient", "integrated_gradients", "smooth_grad", "var_grad",
    "ig_smooth_grad", "deconvnet", "grad_cam", "grad_cam_plus_plus", "layer_cam", "guided_grad_cam", "lrp_epsilon",
    "lrp_alpha_beta", "deep_taylor", "deeplift_rescale",
)  # fmt: skip
TILE = 112  # pixels of a photograph, for networks of ImageNet
MAPS, PAIRS, CURVES, ABLATIONS = "maps", "pairs", "curves", "ablations"  # runs in the study's folder
UNRUN = {
    "target": "the class explained: label, fixed", "softmax": "probabilities in the place of logits",
    "init": "random networks of another initialisation", "norms": "batch norms of random models reset",
    "half": "the top half deleted", "width": "networks of half the width",
}  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """How much of the study is run."""

    digits: Sizes
    pairs: Sizes  # of digits, where there are no photographs
    photos: Sizes
    methods: Mapping[str, str]  # parameters, where they are not a method's own
    on_photos: Mapping[str, str]  # the same for photographs, whose networks are slower
    resamples: int
    curves: Extent
    ablations: tuple[str, ...]

    def labels(self, photos: bool = False) -> list[str]:
        given = self.on_photos if photos else self.methods
        return [f"{name}({given[name]})" if name in given else name for name in METHODS]


def _digit_sizes(
    seeds: int, draws: int, images: int, beside: int, tested: int, arch: str, many: int, by_heart: tuple[int, float],
    epochs: Mapping[str, int], batch: int, rate: float,
) -> Sizes:  # fmt: skip
    """`epochs` by task; labels in disorder are learned `by_heart`: on so many images, at that rate."""
    made = {task: Training(arch, many, Recipe(some, batch, rate)) for task, some in epochs.items()}
    made["t1"] = replace(made["t1"], faintest=FAINTEST)
    known, slower = by_heart
    made["labels"] = Training(arch, known, Recipe(epochs["labels"], batch, slower), shuffled=True)
    return Sizes(seeds, draws, images, beside, tested, made)


def _pair_sizes(seeds: int, draws: int, images: int, beside: int, tested: int, training: Training) -> Sizes:
    return Sizes(seeds, draws, images, beside, tested, {"pairs": training, "pairs2": training})


SCALES = {
    "smoke": Scale(
        _digit_sizes(
            4, 4, 200, 40, 500, "digit_cnn(width=0.25)", 5000, (300, 3e-3),
            {"t": 3, "half": 2, "t1": 4, "t2": 4, "labels": 60}, 32, 3e-3,
        ),
        _pair_sizes(4, 4, 100, 20, 500, Training("digit_cnn(width=0.25)", 2500, Recipe(4, 32, 3e-3))),
        _pair_sizes(2, 4, 20, 10, 100, Training("efficientnet_lite0", 128, Recipe(1, 16, 3e-4))),
        {
            "integrated_gradients": "steps=8", "smooth_grad": "draws=5", "var_grad": "draws=5",
            "ig_smooth_grad": "draws=2,steps=4",
        },
        {
            "integrated_gradients": "steps=4", "smooth_grad": "draws=3", "var_grad": "draws=3",
            "ig_smooth_grad": "draws=2,steps=2",
        },
        2000, Extent(2, 20, 1, 3), ("target", "softmax", "init"),
    ),
    "cpu": Scale(
        _digit_sizes(
            10, 20, 300, 60, 10_000, "digit_cnn(init=pytorch,width=0.5)", 20_000, (1000, 1e-3),
            {"t": 6, "half": 1, "t1": 24, "t2": 48, "labels": 60}, 64, 2e-3,
        ),
        _pair_sizes(5, 20, 200, 40, 1000, Training("digit_cnn(init=pytorch,width=0.5)", 10_000, Recipe(4, 64, 2e-3))),
        _pair_sizes(5, 20, 40, 20, 1000, Training("efficientnet_lite0", 2400, Recipe(3, 32, 3e-4))),
        {
            "integrated_gradients": "steps=10", "smooth_grad": "draws=10", "var_grad": "draws=10",
            "ig_smooth_grad": "draws=3,steps=5",
        },
        {
            "integrated_gradients": "steps=4", "smooth_grad": "draws=3", "var_grad": "draws=3",
            "ig_smooth_grad": "draws=2,steps=2",
        },
        10_000, Extent(2, 40, 1, 3), ("target", "softmax", "init", "norms"),
    ),
    "quick": Scale(
        _digit_sizes(
            10, 20, 1000, 200, 10_000, "digit_cnn(init=pytorch)", 20_000, (2000, 1e-3),
            {"t": 10, "half": 3, "t1": 24, "t2": 48, "labels": 100}, 64, 2e-3,
        ),
        _pair_sizes(5, 20, 500, 100, 2000, Training("digit_cnn(init=pytorch)", 20_000, Recipe(8, 64, 2e-3))),
        _pair_sizes(5, 20, 200, 40, 1000, Training("efficientnet_lite0", 8_000, Recipe(3, 128, 3e-4))),
        {
            "integrated_gradients": "steps=10", "smooth_grad": "draws=10", "var_grad": "draws=10",
            "ig_smooth_grad": "draws=3,steps=5",
        },
        {
            "integrated_gradients": "steps=8", "smooth_grad": "draws=6", "var_grad": "draws=6",
            "ig_smooth_grad": "draws=3,steps=4",
        },
        10_000, Extent(5, 100, 1, 6), ("target", "softmax", "init", "norms", "half"),
    ),
    "paper": Scale(
        _digit_sizes(
            10, 20, 1000, 1000, 5000, "digit_cnn", 60_000, (5000, 1e-4),
            {"t": 50, "half": 10, "t1": 50, "t2": 50, "labels": 100}, 50, 1e-4,
        ),
        _pair_sizes(5, 20, 1000, 200, 2000, Training("digit_cnn", 20_000, Recipe(20, 50, 1e-3))),
        _pair_sizes(5, 20, 1000, 200, 5000, Training("torchvision:resnet18", 20_000, Recipe(20, 64, 1e-4), until=0.77)),
        {}, {}, 10_000, Extent(10, 200, 5, 50), tuple(UNRUN),
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Study:
    """What was run, as far as it is there."""

    folder: Path
    scale: str
    told: Mapping[str, Any]  # what study.json says
    runs: Mapping[str, Run]
    failed: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def evidence(self) -> Evidence:
        tables = [run.rows() for run in self.runs.values()]
        beside = self.folder / "images.parquet"
        tables += [results.read([beside])] if beside.is_file() else []
        rows = pa.concat_tables([results.SCHEMA.empty_table(), *tables]).unify_dictionaries()
        gates = {task: [Gate(**gate) for gate in some] for task, some in self.told.get("gates", {}).items()}
        return Evidence(rows, gates)

    @property
    def unrun(self) -> list[tuple[str, str]]:
        """Ablations that were left out, and why."""
        return [(name, why) for name, why in self.told.get("unrun", {}).items()]

    def pictures(self, scene: str) -> Pictures | None:
        """A few images of a scene with every method's maps."""
        name = PAIRS if scene == PAIRS else MAPS
        return pictures(self.runs[name], scene) if name in self.runs else None

    def timings(self) -> dict[str, float]:
        """Seconds by part."""
        return Timings(self.folder / "timings.json").seconds

    def claims(self) -> list[dict[str, Any]]:
        return [claim.judged(self.evidence) for claim in CLAIMS]

    def headline(self) -> list[str]:
        return sentences(self.evidence)

    def missed(self) -> list[str]:
        """Gates that were missed, in words, and what follows."""
        follows = {"labels": "what is said of shuffled labels rests on it"}
        return [
            f"{line}; {follows.get(group, 'every verdict of that task is undecided')}"
            for group in self.evidence.gates
            for line in self.evidence.missed([group], notes=True)
        ]

    def write(self) -> list[Path]:
        """Tables and claims as files in the study's folder."""
        written, claims = [self.folder / "tables.md", self.folder / "claims.json"], self.claims()
        made = "\n\n".join(pages(self.evidence, self.unrun))
        put(written[0], f"{made}\n\n**Claims**\n\n{claims_markdown(claims)}\n".encode())
        put(written[1], (as_json(claims) + "\n").encode())
        return written


def reproduce(
    folder: Path,
    scale: str = "smoke",
    *,
    digits: str = "",
    photos: str = "",
    weights: Path | None = None,
    jobs: int = 0,
    device: str = "auto",
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
    watch: Watch = lambda share, text: None,
) -> Study:
    """Train, check the gates, explain, measure: every step goes on where it was.

    `digits` is MNIST, a folder of npz files or a torchvision root as mnist:ROOT, else those of scikit-learn. `photos`
    is a folder or zip of ten classes in the layout of TinyImageNet; without it pairs are made of digits. `weights` are
    those of the network that is fine-tuned on photographs, where they are not found by its name. With `jobs` so many
    processes train networks side by side; all else is done by this one.
    """
    if jobs < 0:
        raise ValueError(f"--jobs {jobs}: wanted 1 or more processes")
    chosen = SCALES[one_of("scale", scale, SCALES)]
    if not digits and scale != "smoke":
        raise ValueError(
            f"scale '{scale}' wants more digits than scikit-learn has: give --digits, a folder with MNIST as npz "
            "files, or mnist:ROOT for a torchvision root"
        )
    place, source = devices.find(device), digits or "sklearn"
    for split in SPLITS:  # before anything is trained
        digit_bank(source, split)
        bank(photos or source, split)
    folder.mkdir(parents=True, exist_ok=True)
    asked = {"study": "yona", "scale": scale, "digits": source, "photos": photos, "seed": seed}
    begin(folder, asked)
    timed, steps = Timings(folder / "timings.json"), _Steps(watch)
    casting = Casting(folder / "models", str(place), seed, steps.of("models"), timed)
    sizes, side = (chosen.photos, TILE) if photos else (chosen.pairs, 0)
    sizes = _weighted(sizes, weights)
    if jobs > 1:
        of_pairs, of_digits = (photos or source, sizes, side), (source, chosen.digits, 0)
        with timed("training side by side"):
            asked_for = {group: of_pairs if group.startswith("pairs") else of_digits for group in TRAINED}
            train(jobs_of(casting, asked_for), jobs, steps.of("models"))
    plain = digits_scene(casting, source, chosen.digits)
    scenes = {"digits": plain, "shapes": shapes_scene(casting, source, chosen.digits, plain.groups["t"].models)}
    scenes["pairs"] = pairs_scene(casting, photos or source, sizes, side)
    if not photos:
        say("No photographs were given: the pairs are of digits, and no network is pretrained on those.")
    unrun = {UNRUN[name]: f"not part of scale {scale}" for name in UNRUN if name not in chosen.ablations}
    changes = ablations(chosen.ablations, scenes, casting, source, chosen.digits, place)
    if "norms" in chosen.ablations and not any("norms" in one.word for one in changes):
        unrun[UNRUN["norms"]] = "the network of the pairs has no batch norms"
    told = asked | {
        "gates": {task: [asdict(gate) for gate in some] for task, some in casting.gates.items()},
        "models": {group: [_card(card) for card in some] for group, some in casting.cards.items()}, "unrun": unrun,
    }  # fmt: skip
    put(folder / "study.json", (json.dumps(told, indent=1) + "\n").encode())
    results.write(folder / "images.parquet", [areas(list(scenes.values())).table()])
    for line in opened(folder).missed():
        say(f"Gate missed: {line}.")
    fixed = {"seed": seed, "scale": _digest(chosen), "models": _digest([_marks(one) for one in scenes.values()])}
    classes = named_classes(casting, source, photos or source)
    how = {"draws": chosen.resamples, "seed": seed}
    for part, some in ((MAPS, ("digits", "shapes")), (PAIRS, ("pairs",))):
        labels = [*chosen.labels(bool(photos) and part == PAIRS), *CONTROLS]
        run = begun(folder / part, "sanity", {name: len(scenes[name].images) for name in some}, fixed, labels)
        beside = (sizes if part == PAIRS else chosen.digits).beside
        for name in some:
            measure_scene(run, scenes[name], labels, classes, how | {"beside": beside}, place, timed, steps.of(name))
    extent = chosen.curves
    labels = [*chosen.labels(), *BESIDE]
    run = begun(folder / CURVES, "sanity", dict.fromkeys(("t", "t1", "t2"), extent.images), fixed, labels)
    for task, name in (("t", "digits"), ("t1", "shapes"), ("t2", "shapes")):
        models, batch = scenes[name].groups[task].models, scenes[name].samples[task].batch
        measure_curves(run, task, models, batch, labels, extent, seed, place, timed, steps.of(f"curves {task}"))
    if changes:
        counts = {one.name: len(scenes["digits"].images) for one in changes}
        run = begun(
            folder / ABLATIONS, "sanity", counts, fixed, list(dict.fromkeys(m for one in changes for m in one.methods))
        )
        measure_ablations(run, changes, chosen.resamples, seed, place, timed, steps.of(ABLATIONS))
    watch(1.0, "done")
    return opened(folder)


SHARES = {  # of the time, roughly
    "models": 0.4, "digits": 0.17, "shapes": 0.15, "pairs": 0.1, "curves t": 0.05, "curves t1": 0.04, "curves t2": 0.04,
    "ablations": 0.05,
}  # fmt: skip


class _Steps:
    """How far the whole is, from how far its steps are; it never goes back."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.most = watch, 0.0

    def of(self, step: str) -> Watch:
        before = sum(list(SHARES.values())[: list(SHARES).index(step)])

        def told(share: float, text: str) -> None:
            self.most = max(self.most, min(1.0, before + share * SHARES[step]))
            self.watch(self.most, text)

        return told


def _weighted(sizes: Sizes, weights: Path | None) -> Sizes:
    return replace(sizes, training={task: replace(one, weights=weights) for task, one in sizes.training.items()})


def _card(card: Mapping[str, Any]) -> dict[str, Any]:
    return {name: card[name] for name in ("accuracy", "train_accuracy", "accepted", "seed", "sha256") if name in card}


def _marks(scene: Scene) -> list[str]:
    return [model.fingerprint for group in scene.groups.values() for model in group.models]


def _digest(value: object) -> str:
    return key(repr(value))[:16]


def opened(folder: Path) -> Study:
    """The study of a folder, as far as it is there."""
    told = read(folder)
    there = {name: folder / name for name in (MAPS, PAIRS, CURVES, ABLATIONS) if (folder / name / "run.json").is_file()}
    runs = {name: open_run(path) for name, path in there.items()}
    return Study(folder, told["scale"], told, runs, _failed(runs))


def _failed(runs: Mapping[str, Run]) -> dict[str, str]:
    """Methods that broke; one that does not go with a network is not among them."""
    found = {}
    for name, run in runs.items():
        for method, texts in run.failures().items():
            said = [text.strip().splitlines()[-1] for text in texts if "UnfitError" not in text]
            if said:
                found[f"{name}: {method}"] = said[0]
    return found


def read(folder: Path) -> dict[str, Any]:
    """What study.json says."""
    try:
        told: dict[str, Any] = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"no readable study in '{folder}' ({error}): run `saliometer reproduce yona` first") from error
    return told

"""The models of COSE's study: trained, then explained, each in folders of its own that go on after a stop."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from saliometer.engine import device as devices
from saliometer.engine.architectures import ARCHS
from saliometer.engine.audit import audit
from saliometer.engine.checkpoints import randomised
from saliometer.engine.data import Data, data_given
from saliometer.engine.image_cards import preprocessing_of
from saliometer.engine.ready import Loaded, model_given
from saliometer.engine.recipes import PAPER, recipe_for
from saliometer.engine.source import Source, of_tensors
from saliometer.engine.train_images import checkpoints_of, load_trained, train_images
from saliometer.registry import Spec
from saliometer.seeds import fork, forks, uniform
from saliometer.studies._cose_evidence import ABLATION, TABLE
from saliometer.studies._cose_paper import data_named
from saliometer.studies._cose_scales import OF_ABLATION, OF_CONTROLS, Scale
from saliometer.types import Watch

HALF = "half"  # first weights: of a training on the other half of the images
FINAL = "final.safetensors"
MODELS = "models"


@dataclass(frozen=True)
class Job:
    """One network on one data set, as a process of its own may do it."""

    folder: Path
    scale: Scale
    data: str  # as it was asked for
    name: str  # of the data set
    arch: str
    init: str  # random, pretrained, half, or a file
    role: str
    seed: int
    device: str

    @property
    def label(self) -> str:
        return f"{self.name}, {self.arch} from {Path(self.init).stem}" + ", frozen and full" * (self.role == ABLATION)


@dataclass(frozen=True)
class Done:
    """What came of a job."""

    models: list[dict[str, Any]] = field(default_factory=list)  # as study.json has them
    failed: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)  # part -> how long it took this time
    notes: Sequence[str] = ()


def jobs_of(
    folder: Path, scale: Scale, data: Mapping[str, str], inits: Sequence[tuple[str, str]], seed: int, device: str
) -> list[Job]:
    """All of them, the longest first; `data` are places by name, `inits` further first weights of a network."""
    found = []
    for name, place in data.items():
        given = {arch: [one for other, one in inits if other == arch] for arch in scale.archs}
        for arch in reversed(scale.archs):
            for init in dict.fromkeys((scale.init, *given[arch])):
                found.append(Job(folder, scale, place, name, arch, init, TABLE, seed, device))
        for arch in reversed(scale.ablated):
            init = (given[arch] or [HALF if scale.init == "random" else scale.init])[0]
            found.append(Job(folder, scale, place, name, arch, init, ABLATION, seed, device))
    return found


@lru_cache(maxsize=1)
def data_of(place: str, side: int, resize: int, seed: int) -> Data:
    """A data set, read once for jobs that follow each other."""
    return data_given(place, side, resize=resize, seed=seed)


def data_for(scale: Scale, place: str, arch: str, seed: int) -> Data:
    """Pictures of several sizes are resized as the network wants it (cose.md 3.3) before their middle is cut out."""
    return data_of(place, scale.side, ARCHS[arch].resize_for(scale.side), seed)


def run(job: Job, watch: Watch) -> Done:
    """Train what is not trained, explain what is not explained."""
    timed = Timed()
    data = data_for(job.scale, job.data, job.arch, job.seed)
    trainings = list(_trainings(job, data))
    models, failed = [], dict[str, str]()
    for number, (frozen, folder, train) in enumerate(trainings):
        own = _within(watch, number / len(trainings), 1 / len(trainings))
        with timed(f"train {folder.name}"):
            train(_within(own, 0.0, 0.3))
        net, card = load_trained(folder)
        subject = _subject(job, net, card, frozen)
        with timed(f"untrained {folder.name}"):
            models.append(_told(job, subject, card, folder, _untrained(net, card, data, job)))
        parts = _ablation_parts(job) if job.role == ABLATION else _parts(job)
        for place, part in enumerate(parts):
            step = 0.7 / len(parts)
            with timed(f"{part.name} {folder.name}"):
                outcome = audit(
                    subject.loaded, _source(data, card, part.images, job), methods=part.methods, metrics=part.metrics,
                    controls=part.controls, grains=part.grains, checkpoints=list(checkpoints_of(folder)), seed=job.seed,
                    device=job.device, batch_size=_batch(job), out=job.folder / f"{folder.name}.{part.name}",
                    watch=_within(own, 0.3 + place * step, step),
                )  # fmt: skip
            failed |= {f"{subject.label}, {what}": why for what, why in outcome.failed.items()}
    return Done(models, failed, timed.seconds, data.notes)


def _within(watch: Watch, start: float, size: float) -> Watch:
    """Told how far a part is, it tells how far the whole is."""
    return lambda share, text: watch(start + share * size, text)


class Timed:
    """Seconds by what was done in them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, what: str) -> "_Span":
        return _Span(self.seconds, what)


@dataclass
class _Span:
    seconds: dict[str, float]
    what: str
    start: float = 0.0

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds[self.what] = round(time.perf_counter() - self.start, 2)


# Training

Train = Callable[[Watch], dict[str, Any]]


def _trainings(job: Job, data: Data) -> Iterator[tuple[bool | None, Path, Train]]:
    """Whether it is frozen (None: as the recipe has it), its folder, and what trains it."""
    stem = f"{job.name}.{job.arch}.{Path(job.init).stem}"
    shelf = job.folder / MODELS
    if job.role == TABLE:
        yield None, shelf / stem, lambda watch: _train(job, data, shelf / stem, job.init, None, watch)
        return
    for frozen in (True, False) if job.init == HALF else (not _usually_frozen(job),):
        folder = shelf / f"{stem}.{'frozen' if frozen else 'full'}"

        def train(watch: Watch, frozen: bool = frozen, folder: Path = folder) -> dict[str, Any]:
            start, rest = (job.init, data) if job.init != HALF else _pretrained(job, data, shelf / stem, watch)
            return _train(job, rest, folder, start, frozen, watch)

        yield frozen, folder, train


def _pretrained(job: Job, data: Data, folder: Path, watch: Watch) -> tuple[str, Data]:
    """Weights of a training on one half of the images, and the other half."""
    first = _first_half(data.train_labels, job.seed)
    one, other = (
        replace(data, train=data.train[some], train_labels=data.train_labels[some], name=f"{data.name}, {words} half")
        for some, words in ((first, "first"), (~first, "second"))
    )
    _train(job, one, folder, "random", None, watch)
    return str(folder / FINAL), other


def _first_half(labels: Tensor, seed: int) -> Tensor:
    """(N,) bool: every second image of each class, by lot."""
    lots = uniform(forks(fork("cose halves", seed), torch.arange(len(labels))), "lot", 1)[:, 0]
    chosen = torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique():
        mine = (labels == label).nonzero()[:, 0]
        chosen[mine[lots[mine].argsort(stable=True)[::2]]] = True
    return chosen


def _train(job: Job, data: Data, folder: Path, init: str, frozen: bool | None, watch: Watch) -> dict[str, Any]:
    asked = job.scale.training
    recipe = recipe_of(job.name) if asked.recipe else ""
    epochs = asked.epochs if init == "random" else asked.tuned
    return train_images(
        data, job.arch, folder, init=init, frozen=frozen, recipe=recipe, epochs=epochs, seed=job.seed,
        device=str(devices.find(job.device)), batch=asked.batch, limit=asked.limit, watch=watch,
    )  # fmt: skip


def _usually_frozen(job: Job) -> bool:
    """Whether the model of the table is, so that the other of the two is still to be trained."""
    recipe = recipe_of(job.name) if job.scale.training.recipe else ""
    return recipe_for(recipe, job.arch, "supervised").frozen


def recipe_of(data: str) -> str:
    """The paper's recipe for a data set; our own for another."""
    name = data_named(data).lower()
    return name if name in PAPER else ""


# What is explained


@dataclass(frozen=True, eq=False)
class Subject:
    label: str
    init: str
    frozen: bool
    loaded: Loaded


def _subject(job: Job, net: nn.Module, card: Mapping[str, Any], frozen: bool | None) -> Subject:
    is_frozen = bool(card["recipe"]["frozen"])
    init = str(card["init"]) if job.init != HALF else HALF
    init = Path(job.init).stem if init == "file" else init
    params: dict[str, Any] = {"init": init} | ({"frozen": is_frozen} if frozen is not None else {})
    label = str(Spec(job.arch, tuple(sorted(params.items()))))
    way = preprocessing_of(dict(card))
    loaded = model_given(net, None, way.mean, way.std, 0, "logit")
    loaded.facts["name"] = label
    return Subject(label, init, is_frozen, loaded)


def _told(job: Job, subject: Subject, card: Mapping[str, Any], folder: Path, untrained: float) -> dict[str, Any]:
    """What study.json says of a model."""
    accuracy = {Path(one["file"]).name: one["test_accuracy"] for one in card["checkpoints"]}
    return {
        "data": job.name, "label": subject.label, "folder": folder.name, "arch": job.arch, "init": subject.init,
        "frozen": subject.frozen, "role": job.role, "accuracy": card["test_accuracy"], "checkpoints": accuracy,
        "untrained": untrained,
        "train": card["data"]["train"], "test": card["data"]["test"], "classes": len(card["classes"]),
        "side": card["side"], "epochs": card["recipe"]["epochs"], "sha256": card["sha256"],
    }  # fmt: skip


@torch.no_grad()
def _untrained(net: nn.Module, card: Mapping[str, Any], data: Data, job: Job) -> float:
    """The accuracy of the randomly initialised copy that COSE compares with, on a thousand test images at most."""
    place = devices.find(job.device)
    images, labels, _ = _chosen(data, card, 1000, job)
    fresh = randomised(net, job.seed).eval().to(place)
    found = [fresh(some.to(place)).argmax(1).cpu() for some in images.split(100)]
    return float((torch.cat(found) == labels).double().mean())


@dataclass(frozen=True)
class Part:
    """An audit of a model."""

    name: str
    methods: list[str]
    images: int
    metrics: list[str]
    controls: bool = False
    grains: tuple[float, ...] = ()


def _parts(job: Job) -> list[Part]:
    scale, specs = job.scale, job.scale.specs()
    often, seldom = ([specs[m] for m in specs if (m in scale.often) == often] for often in (True, False))
    controls = scale.metrics(OF_CONTROLS)
    return [
        Part("many", often, scale.many, scale.metrics()),
        Part("few", seldom, scale.few, scale.metrics()),
        Part("controls", ["random"], max(scale.many, scale.few), controls, controls=True, grains=scale.grains),
    ]


def _ablation_parts(job: Job) -> list[Part]:
    specs, metrics = job.scale.specs(), job.scale.metrics(OF_ABLATION)
    return [Part("many", [specs[m] for m in job.scale.ablation], job.scale.ablation_images, metrics)]


def _source(data: Data, card: Mapping[str, Any], count: int, job: Job) -> Source:
    images, labels, places = _chosen(data, card, count, job)
    return replace(of_tensors(images, labels, name=job.name), ids=tuple(f"test-{place}" for place in places))


def _chosen(data: Data, card: Mapping[str, Any], count: int, job: Job) -> tuple[Tensor, Tensor, list[int]]:
    """So many test images by lot, as the model takes them, with labels and places; fewer are the first of more."""
    lots = uniform(forks(fork("cose images", job.seed), torch.arange(len(data.test))), "lot", 1)[:, 0]
    places = lots.argsort(stable=True)[:count].tolist()
    way = preprocessing_of(dict(card))
    if data.side == way.crop:  # they are cut already
        way = replace(way, resize=way.crop)
    pixels = torch.stack([way.tensor(Image.fromarray(data.test[i].permute(1, 2, 0).numpy())) for i in places])
    mean, std = (pixels.new_tensor(values).view(1, -1, 1, 1) for values in (way.mean, way.std))
    return (pixels - mean) / std, data.test_labels[places], places


def _batch(job: Job) -> int:
    return job.scale.batch if devices.find(job.device).type == "cuda" else 0

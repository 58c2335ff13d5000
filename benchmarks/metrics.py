"""Every metric of the battery against its floor of bare model passes, and against the same work of Quantus and others.

    python benchmarks/metrics.py [--device cuda] [--net small|resnet50] [--images 8] [--metric NAME ...] [--tf32]
                                 [--threads 1] [--no-peers] [--once] [--out file.json]

The floor is the count of passes that a metric's distinct questions take, as the engine counts them, over the network's
best throughput in the same process and precision: F forward, F + B there and back, S the slope of a slope through a
network whose ReLUs are softplus. A metric is timed as an audit runs it, on a shelf with no answers, warm. Metrics whose
passes are few or wait for each other judge an audit's chunk, 32 images on a CPU and 128 on a GPU, for a batch is no
larger than that; those that ask no model judge 64 maps. Maps are the gradient's, and smooth ones where a metric does
not explain anew. Every run is held against bare passes around it (bare.py). A table's columns: metric, passes, images,
floor, ours, ours over the floor, the same for the smooth maps, and others with their times and how much longer they
take; times in ms an image. Metrics that ask no model have no floor: theirs are microseconds a map.
"""

import argparse
import copy
import importlib.metadata
import platform
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import bare
import metric_peers
from methods import Setting, precision, setting, write
from saliometer import explain
from saliometer.allocator import keep_memory
from saliometer.engine import device as devices
from saliometer.engine.answer import Answers
from saliometer.engine.asked import METRICS, UNIT, UNIT_CUDA, methods_asked
from saliometer.engine.battery import Measure, Shelf, measured
from saliometer.engine.bench import ALIGN
from saliometer.engine.forward import forward_of
from saliometer.engine.ready import batch_size_for
from saliometer.engine.resolve import one_method
from saliometer.engine.score import Failure, attributions
from saliometer.engine.source import of_tensors
from saliometer.metrics._smooth import BETA
from saliometer.registry import Spec
from saliometer.types import Logits, Maps, Model, Question, Samples, Scores, Walk

MANY = 64  # maps of metrics that ask no model
METHOD = one_method("gradient")  # that metrics explain anew with


@dataclass(frozen=True)
class Case:
    """A metric as it is timed."""

    label: str  # as peers and --metrics know it
    params: dict[str, Any] = field(default_factory=dict)
    images: int = 0  # that are judged; 0 takes as many as --images says
    smooth: bool = True  # also on the smooth maps
    others: int = UNIT  # the most images that peers judge

    @property
    def metric(self) -> str:
        return self.label.split("(")[0]

    @cached_property
    def measure(self) -> Measure:
        """Read once, as an audit does."""
        return Measure.parse(str(Spec(self.metric, tuple(sorted(self.params.items())))))


def cases(side: int, unit: int = UNIT) -> list[Case]:
    """In numbers of steps that Quantus takes as well: it ranks every channel's pixels, and the steps must be equal."""
    steps = 3 * side // 4
    masked = ("local_accuracy", "average_drop", "average_increase", "average_gain", "completeness")
    free = ("sparseness", "complexity", "pointing_game", "iou")
    return [
        *(Case(name, images=unit) for name in masked),
        Case("insertion", {"steps": steps}),
        Case("deletion", {"steps": steps}),
        Case("monotonicity(nguyen)", {"sets": steps // 2, "fills": 4}),
        Case("monotonicity(arya)", {"definition": "arya", "sets": steps}),
        Case("monotonicity(cumulative)", {"definition": "cumulative_pearson", "sets": steps}),
        Case("max_sensitivity", {"draws": 20}, smooth=False),
        Case("avg_sensitivity", {"draws": 20}, smooth=False),
        Case("attack_sensitivity", images=unit, smooth=False),
        Case("effective_complexity(nguyen)", {"definition": "nguyen"}, unit),
        Case("sufficiency", images=unit),
        Case("necessity", images=unit),
        Case("road", images=unit, others=8),  # its peer takes seconds for an image
        Case("infidelity", {"draws": 128}),
        Case("faithfulness_correlation", {"runs": 100}),
        *(Case(name, images=MANY) for name in free),
        Case("effective_complexity(threshold)", images=MANY),
    ]


# One metric


@dataclass(frozen=True)
class Bench:
    """A model, images and the two kinds of map."""

    given: Setting
    model: Model
    masks: Tensor
    maps: Mapping[str, Tensor]
    few: int  # images of metrics that ask much
    room: int

    @cached_property
    def forward(self) -> Callable[[Tensor], Tensor]:
        """As an audit's passes run; found once for all of them."""
        return forward_of(self.model, self.given.images[:1])

    @cached_property
    def forth(self) -> bare.Pass:
        return bare.fastest(self.given.net, self.given.images[:1], bare.forth)

    @cached_property
    def both(self) -> bare.Pass:
        return bare.fastest(self.given.net, self.given.images[:1], bare.forth_and_back)

    @cached_property
    def second(self) -> bare.Pass:
        """A slope of a squared slope, where ReLUs are softplus."""
        net = _smooth(copy.deepcopy(self.given.net))
        one = self.given.images[:1]
        sizes = (4, 8) if self.device.type == "cpu" and one.numel() > bare.LARGE else (8, 16, UNIT)
        return bare.fastest(net, one, bare.slope_of_slope, sizes)

    def floor(self, forward: float, both: float, second: float) -> bare.Floor:
        """A forward pass stands for work that needs none."""
        counts = {"forth": forward or float(not both and not second), "both": both, "second": second}
        return bare.floor(*((count, getattr(self, kind)) for kind, count in counts.items() if count))

    @property
    def device(self) -> torch.device:
        return self.given.images.device

    def part(self, count: int) -> Samples:
        source = of_tensors(self.given.images[:count], None, self.masks[:count])
        return source.samples(0, count, 0, self.device).explaining(self.given.targets[:count])


def unit_on(device: torch.device) -> int:
    """The images that an audit judges together."""
    return UNIT if device.type == "cpu" else UNIT_CUDA


def bench(name: str, device: torch.device, few: int) -> Bench:
    given = setting(name, device, max(MANY, few, unit_on(device)))
    count, _, height, width = given.images.shape
    masks = torch.zeros(count, height, width, dtype=torch.bool, device=device)
    masks[:, height // 4 : height // 2, width // 3 : 2 * width // 3] = True
    model = Model(given.name, given.net, given.cam, "", middle_layer=given.middle)
    maps = {
        "gradient": explain(model, given.images, "gradient", given.targets, channels=True),
        "smooth": given.references[:1, :1] - given.images.mean(1, keepdim=True),
    }
    room = batch_size_for(model, given.images[:1], device, 0.0)
    return Bench(given, model, masks, maps, few, room)


class Counted(Answers):
    """Answers that remember how many images went through for each kind of question."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.counts = {"forward": 0, "both": 0, "second": 0}

    def __call__(self, questions: Mapping[str, Question], targets: Tensor) -> dict[str, Any]:
        before = self.passes
        found = super().__call__(questions, targets)
        (question,) = questions.values()
        if isinstance(question, Scores | Logits):
            self.counts["forward"] += self.passes - before
        elif isinstance(question, Walk) and question.passes == 2:
            self.counts["second"] += (self.passes - before) // 2
        else:
            self.counts["both"] += self.passes - before
        return found


def run(case: Case, made: Bench, kind: str, samples: Samples) -> Counted:
    """The metric once, on a shelf with no answers."""
    align = min(ALIGN, made.room)
    answers = Counted(made.model, made.device, made.room, align=align, forward=made.forward)
    maps = made.maps[kind][: len(samples)]
    ((_, found, _),) = measured([case.measure], METHOD, maps, samples, Shelf(answers))
    if isinstance(found, Failure):
        raise found.error
    return answers


def row(case: Case, made: Bench, with_peers: bool) -> dict[str, Any]:
    """Ours and others' over the floor, and the passes."""
    count = case.images or made.few
    fewer, samples = min(count, case.others), made.part(count)
    answers = run(case, made, "gradient", samples)
    passes = {kind: each / count for kind, each in answers.counts.items()}
    floor = made.floor(**passes)
    kinds = ("gradient", "smooth") if case.smooth else ("gradient",)
    return {
        "metric": case.label,
        "params": case.params,
        "images": count,
        **passes,
        "ratio": {kind: floor.held(partial(run, case, made, kind, samples), count) for kind in kinds},
        "others": peered(case, made, made.part(fewer), floor) if with_peers else {},
    }


def peered(case: Case, made: Bench, samples: Samples, floor: bare.Floor) -> dict[str, Any]:
    """Times over the floor, or the first line of why there are none, of every peer that is installed."""
    found: dict[str, Any] = {}
    kinds = ("gradient", "smooth") if case.metric == "road" else ("gradient",)
    for peer in metric_peers.of(case.label):
        for kind in kinds:
            count, batch = len(samples), samples.batch
            some = metric_peers.Asked(
                made.given.net, batch.images, batch.targets, made.maps[kind][:count], made.masks[:count], case.params,
                made.room,
            )  # fmt: skip
            name = peer.name if kind == "gradient" else f"{peer.name}, smooth maps"
            try:
                with devices.exact():
                    found[name] = floor.held(peer.ready(some), count)
            except ModuleNotFoundError as error:
                if error.name not in ("quantus", "captum", "pytorch_grad_cam"):
                    found[name] = f"wants {error.name}"
            except Exception as error:
                line = (str(error).strip().splitlines() or [""])[0]
                found[name] = f"fails: {type(error).__name__}: {line[:120]}"
    return found


def finished(row: dict[str, Any], floor: bare.Floor) -> dict[str, Any]:
    """With milliseconds for one image on a quiet machine, and how much slower others are."""
    lowest, ratios = 1e3 * floor.best(), row["ratio"]
    ours = {kind: lowest * ratio for kind, ratio in ratios.items()}
    others = {name: lowest * ratio if isinstance(ratio, float) else ratio for name, ratio in row["others"].items()}
    own = {name: ratios["smooth" if name.endswith("smooth maps") else "gradient"] for name in others}
    faster = {name: ratio / own[name] for name, ratio in row["others"].items() if isinstance(ratio, float)}
    return {**row, "floor_ms": lowest, "ours_ms": ours, "others_ms": others, "faster": faster}


def floor_of(row: dict[str, Any], made: Bench) -> bare.Floor:
    return made.floor(row["forward"], row["both"], row["second"])


def _smooth(module: nn.Module) -> nn.Module:
    for name, child in module.named_children():
        setattr(module, name, nn.Softplus(BETA) if isinstance(child, nn.ReLU) else _smooth(child))
    return module


def shown(row: dict[str, Any]) -> str:
    """A line of docs/speed.md's tables."""
    counts = ((row["forward"], "F"), (row["both"], "(F + B)"), (row["second"], "S"))
    asks = any(count for count, _ in counts)
    unit, scale = ("", 1.0) if asks else (" us", 1e3)
    others = [
        f"{name} {scale * took:.3g}{unit} ({row['faster'][name]:.1f}x)" if isinstance(took, float) else f"{name} {took}"
        for name, took in row["others_ms"].items()
    ]
    said = {
        "metric": str(row["metric"]) + "".join(f", {key}={value}" for key, value in row["params"].items()),
        "passes": " + ".join(f"{count:.4g}{word}" for count, word in counts if count) or "none",
        "images": row["images"],
        "floor": f"{row['floor_ms']:.3g}" if asks else "",
        "ours": f"{scale * row['ours_ms']['gradient']:.3g}{unit}",
        "ratio": f"{row['ratio']['gradient']:.2f}" if asks else "",
        "smooth": f"{row['ratio']['smooth']:.2f}" if asks and "smooth" in row["ratio"] else "",
        "others": "; ".join(others),
    }
    return "| " + " | ".join(map(str, said.values())) + " |"


# The battery together


class Asking(Shelf):
    """A shelf that also counts what would have to go through if it kept nothing."""

    wanted = 0

    def ask(self, question: Question, stage: str, find: Callable[[], Tensor]) -> Tensor:
        before, shared = self.answers.passes, self.shared
        found = super().ask(question, stage, find)
        took = self.answers.passes - before + self.shared - shared
        self.wanted += took if isinstance(question, Maps) else max(took, found.shape[:2].numel())
        return found


def saved(made: Bench) -> dict[str, dict[str, float]]:
    """Passes an image that the usual battery runs and would ask for one metric at a time: one method, and all usual."""
    found, measures = {}, [Measure.parse(text) for text in METRICS]
    methods = methods_asked((), "", full=False)
    samples = made.part(min(4, made.few))
    for name, chosen in (("gradient", [one_method("gradient")]), (f"{len(methods)} methods", methods)):
        shelf = Asking(Answers(made.model, made.device, made.room, align=min(ALIGN, made.room)))
        ran = maps = 0
        for method in chosen:
            before = shelf.answers.passes
            explained = attributions([method], shelf.answers, samples.batch)[method.label]
            if isinstance(explained, Failure):
                raise explained.error
            maps += shelf.answers.passes - before
            for _, scored, cost in measured(measures, method, explained.maps, samples, shelf):
                if isinstance(scored, Failure):
                    raise scored.error
                ran += cost.passes
        counts = {"asked": shelf.wanted, "ran": ran, "maps": maps}
        found[name] = {word: count / len(samples) for word, count in counts.items()}
    return found


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--net", choices=("small", "resnet50"), default="small")
    parser.add_argument("--images", type=int, default=8, help="judged by metrics that ask much")
    parser.add_argument("--metrics", default="", help="names, separated by commas; all by default")
    parser.add_argument("--metric", action="append", default=[], metavar="NAME", help="one more; can be given again")
    parser.add_argument("--tf32", action="store_true", help="of a GPU, for the floor, ours and others alike")
    parser.add_argument("--once", action="store_true", help="do not count the passes of the battery")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; all that PyTorch takes by default")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    keep_memory()  # as the command does
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    device, devices.TF32 = devices.find(arguments.device), arguments.tf32
    made = bench(arguments.net, device, arguments.images)
    names = [name for name in (*arguments.metrics.split(","), *arguments.metric) if name]
    every = cases(made.given.images.shape[2], unit_on(device))
    wanted = [one for one in every if not names or {one.label, one.metric} & set(names)]
    machine = torch.cuda.get_device_name() if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    versions = {name: importlib.metadata.version(name) for name in ("torch", "numpy")}
    about = f"{made.given.name} net, {precision()}, {machine}, {versions}, Python {platform.python_version()}"
    print(about, flush=True)
    said: dict[str, Any] = {
        "machine": machine, "net": made.given.name, "precision": precision(), "versions": versions, "rows": [],
    }  # fmt: skip
    for case in wanted:
        try:
            said["rows"].append(row(case, made, not arguments.no_peers))
            print(shown(finished(said["rows"][-1], floor_of(said["rows"][-1], made))), flush=True)
        except Exception as error:
            print(f"{case.label} fails: {type(error).__name__}: {error}", flush=True)
        write(said, arguments.out)
    said["rows"] = [finished(one, floor_of(one, made)) for one in said["rows"]]
    words = {"forth": "F", "both": "F + B", "second": "S"}
    passes = {word: vars(made)[kind] for kind, word in words.items() if kind in vars(made)}
    said["floor"] = {word: (each.best, each.how) for word, each in passes.items()}
    said["saved"] = {} if arguments.once else saved(made)
    write(said, arguments.out)
    print("\n".join(("", *map(shown, said["rows"]), "")))
    print(", ".join(f"{word} {1e3 * each.best:.4g} ms ({each.how})" for word, each in passes.items()))
    for name, passes in said["saved"].items():
        asked, ran, maps = (passes[word] for word in ("asked", "ran", "maps"))
        print(
            f"the usual battery, {name}: {ran:.4g} passes an image instead of {asked:.4g}, "
            f"{1 - ran / asked:.0%} saved; {maps:.4g} more for the maps"
        )


if __name__ == "__main__":
    main()

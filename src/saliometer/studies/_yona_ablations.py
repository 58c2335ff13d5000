"""One thing changed at a time (sanity.md 3.5): the class explained, softmax, weights, batch norms, half, width."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from saliometer import results
from saliometer.engine.causal import Causal
from saliometer.engine.causal_models import trained, untrained
from saliometer.engine.resolve import one_method
from saliometer.engine.run import Run, Unit
from saliometer.engine.score import Failure
from saliometer.files import put
from saliometer.models.digit_cnn import INITS
from saliometer.registry import Spec
from saliometer.studies._yona_cast import Casting, Sizes
from saliometer.studies._yona_maps import explained, predicted
from saliometer.studies._yona_measure import energy
from saliometer.studies._yona_parts import pending
from saliometer.studies._yona_rows import Rows
from saliometer.studies._yona_scenes import RANDOM, Group, Scene
from saliometer.types import Model, Watch

METHODS = ("gradient", "guided_backprop", "input_x_gradient", "grad_cam")
PROBABILITY = {label: f"{label}(output=probability)" for label in ("gradient", "input_x_gradient")}


@dataclass(frozen=True, eq=False)
class Ablation:
    """What is changed, on which task, for which methods, and the maps' models and classes."""

    word: str  # as rows have it behind the comparison: 'target=label'
    task: str
    made: Callable[[], tuple[Scene, Mapping[str, Tensor]]]  # a scene of two groups, and what each model explains
    methods: Mapping[str, str]  # what rows call it -> what is run

    @property
    def name(self) -> str:
        return f"{self.task}-{self.word}".replace("=", "-")


def measure_ablations(
    run: Run, ablations: Sequence[Ablation], draws: int, seed: int, device: torch.device,
    timed: Callable[[str], Any], watch: Watch,
) -> None:  # fmt: skip
    for number, one in enumerate(ablations):
        unit = Unit(one.name, 0, run.manifest["counts"][one.name])
        for label in pending(run, unit, sorted(set(run.manifest["methods"]) - set(one.methods))):
            results.write(run.part(unit, label), [results.SCHEMA.empty_table()])  # nothing to be changed there
        todo = pending(run, unit, list(one.methods))
        if not todo:
            continue
        watch(number / len(ablations), f"ablation {one.word} on {one.task}")
        with timed(f"ablation {one.name}"):
            scene, targets = one.made()
            asked = {one.methods[label]: label for label in todo}
            found = explained([one_method(spec) for spec in asked], scene, targets, device)
            for spec, maps in found.items():
                label = asked[spec]
                if isinstance(maps, Failure):
                    put(run.failure(unit, label), maps.traceback.encode())
                    continue
                rows = Rows(label)
                condition = f"against({RANDOM}), {one.word}"
                energy(rows, one.task, one.task, condition, maps[one.task], maps[RANDOM], draws=draws, seed=seed)
                results.write(run.part(unit, label), [rows.table()])


def ablations(
    wanted: Sequence[str], scenes: Mapping[str, Scene], casting: Casting, digits: str, sizes: Sizes,
    device: torch.device,
) -> list[Ablation]:  # fmt: skip
    """Those of `wanted` that these scenes can show."""
    every: dict[str, list[Ablation]] = {}
    scene = scenes["digits"]
    whole, plain = {label: label for label in METHODS}, _pair(scene, "t", "t", RANDOM)
    every["target"] = [
        Ablation("target=label", "t", lambda: (plain, _labels(plain)), whole),
        Ablation("target=fixed", "t", lambda: (plain, _fixed(plain, device)), whole),
    ]
    every["softmax"] = [Ablation("score=probability", "t", lambda: (plain, predicted(plain, device)), PROBABILITY)]
    if "shapes" in scenes:
        one = _pair(scenes["shapes"], "t1", "t1", RANDOM)
        every["target"].append(Ablation("target=label", "t1", lambda: (one, _labels(one)), whole))
        every["softmax"].append(Ablation("score=probability", "t1", lambda: (one, predicted(one, device)), PROBABILITY))
    natural = casting.labelling("t", digits)
    init = other_init(sizes.training["t"].arch)

    def begun_otherwise() -> tuple[Scene, Mapping[str, Tensor]]:
        training = replace(sizes.training["t"], arch=_with(sizes.training["t"].arch, init=init))
        changed = _with_random(plain, untrained(natural, range(sizes.draws), training, casting.device))
        return changed, predicted(changed, device)

    every["init"] = [Ablation(f"init={init}", "t", begun_otherwise, whole)]

    def top() -> tuple[Scene, Mapping[str, Tensor]]:
        """The same intact digits; E only."""
        causal = Causal("half_digits", "top", digits, casting.seed)
        models = [
            one.model
            for one in trained(
                causal, range(sizes.seeds), casting.folder, sizes.training["half"], device=casting.device
            )
        ]
        half = _pair(scene, "half", "half", "random.half")
        changed = replace(half, groups={**half.groups, "half": Group(models, "half")})
        return changed, predicted(changed, device)

    every["half"] = [Ablation("deleted=top", "half", top, whole)]

    def narrow() -> tuple[Scene, Mapping[str, Tensor]]:
        training = replace(
            sizes.training["t"], arch=_with(sizes.training["t"].arch, width=_width(sizes.training["t"].arch) / 2)
        )
        models = [
            one.model for one in trained(natural, range(sizes.seeds), casting.folder, training, device=casting.device)
        ]
        random = untrained(natural, range(sizes.draws), training, casting.device)
        changed = replace(plain, groups={"t": Group(models, "t"), RANDOM: Group(random)})
        return changed, predicted(changed, device)

    every["width"] = [Ablation("width=half", "t", narrow, whole)]
    if "pairs" in scenes:
        two = _pair(scenes["pairs"], "pairs", "pairs", RANDOM)
        every["target"].append(Ablation("target=own", "pairs", lambda: (two, predicted(two, device)), whole))
        if any(_norms(model.net) for model in two.groups[RANDOM].models[:1]):

            def reset() -> tuple[Scene, Mapping[str, Tensor]]:
                changed = _with_random(two, [_reset(model) for model in two.groups[RANDOM].models])
                return changed, _labels(changed)

            every["norms"] = [Ablation("norms=reset", "pairs", reset, whole)]
    return [one for name in wanted for one in every.get(name, ())]


def _pair(scene: Scene, task: str, trained: str, random: str) -> Scene:
    """Two groups alone, the second called random."""
    groups = {task: scene.groups[trained], RANDOM: scene.groups[random]}
    first = {task: scene.samples[task]}
    return replace(scene, samples=first, groups=groups)


def _with_random(scene: Scene, models: Sequence[Model]) -> Scene:
    return replace(scene, groups={**scene.groups, RANDOM: Group(models)})


def _labels(scene: Scene) -> dict[str, Tensor]:
    """Every model explains the label."""
    return {name: scene.labels(name).expand(len(group.models), -1) for name, group in scene.groups.items()}


def _fixed(scene: Scene, device: torch.device) -> dict[str, Tensor]:
    """Every model explains what the first trained one predicts."""
    first = predicted(scene, device)[scene.tasks[0]][0]
    return {name: first.expand(len(group.models), -1) for name, group in scene.groups.items()}


def _with(arch: str, **params: Any) -> str:
    spec = Spec.parse(arch)
    return str(Spec(spec.name, tuple(sorted((dict(spec.params) | params).items()))))


def other_init(arch: str) -> str:
    """The initialisation that a digit network was not begun with."""
    own = dict(Spec.parse(arch).params).get("init", INITS[0])
    return next(init for init in INITS if init != own)


def _width(arch: str) -> float:
    return float(dict(Spec.parse(arch).params).get("width", 1.0))


def _norms(net: nn.Module) -> list[nn.BatchNorm2d]:
    return [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]


def _reset(model: Model) -> Model:
    """With the statistics that a batch norm begins with."""
    net = deepcopy(model.net)
    for norm in _norms(net):
        norm.reset_running_stats()
    return replace(model, net=net, fingerprint="")

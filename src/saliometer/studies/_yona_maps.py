"""Maps of every model of a scene: each (model, image, class) is explained once, methods that share passes together."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor

from saliometer.engine.answer import Answers
from saliometer.engine.memory import at_once
from saliometer.engine.resolve import one_method
from saliometer.engine.score import Failure, Method, attributions
from saliometer.graph import Network
from saliometer.sanity import controls
from saliometer.studies._yona_rows import model
from saliometer.studies._yona_scenes import Group, Scene, named
from saliometer.types import PRIMARY, Batch, Model

FIXED = ("edge", "input", "fake_cam", "centre")  # controls whose maps know no model
Maps = dict[str, Tensor]  # group -> (models, images, channels, height, width)


def predicted(scene: Scene, device: torch.device) -> Maps:
    """group -> (models, images) int64: the class that each model gives each image."""
    found = {}
    for name, group in scene.groups.items():
        images, size = _batch(scene, group).images, _at_once(scene, group)
        found[name] = torch.stack([Answers(one, device, size).predicted(images) for one in in_turn(group)])
    return found


def in_turn(group: Group) -> Iterator[Model]:
    """The models of a group, one after another in the same network, so that its graph is captured once."""
    host = deepcopy(group.models[0].net)
    held = [*host.parameters(), *host.buffers()]
    for one in group.models:
        with torch.no_grad():
            for value, own in zip(held, (*one.net.parameters(), *one.net.buffers()), strict=True):
                value.copy_(own)
        Network(host, host).look_again()  # or the first walk is made on what was, found out, and made again
        yield replace(one, net=host)


def explained(
    methods: Sequence[Method], scene: Scene, targets: Mapping[str, Tensor], device: torch.device
) -> dict[str, Maps | Failure]:
    """label -> maps, or why the method does not go with these models; one that failed is not asked again."""
    found: dict[str, dict[str, list[Tensor]]] = {one.label: {} for one in methods}
    failed: dict[str, Failure] = {}
    for name, group in scene.groups.items():
        batch, size = _batch(scene, group), _at_once(scene, group)
        for place, one in enumerate(in_turn(group)):
            answers = Answers(one, device, size)
            asked = [each for each in methods if each.label not in failed]
            given = attributions(asked, answers, replace(batch, targets=targets[name][place]))
            for label, seen in given.items():
                if isinstance(seen, Failure):
                    failed[label] = seen
                else:
                    found[label].setdefault(name, []).append(seen.maps)
    return {
        label: failed[label] if label in failed else {name: torch.stack(some) for name, some in maps.items()}
        for label, maps in found.items()
    }


def _at_once(scene: Scene, group: Group) -> int:
    return at_once(group.models[0].logits, scene.images)


def _batch(scene: Scene, group: Group) -> Batch:
    whole = scene.samples[scene.tasks[0]].batch
    if group.places is None:
        return whole
    return Batch(whole.images[group.places], whole.targets[group.places], whole.seeds[group.places])


def controlled(name: str, scene: Scene, device: torch.device) -> Maps:
    """Maps of a control: the same for every model, fresh noise, or the truth of what a model learned with noise."""
    if name in FIXED:
        whole = scene.samples[scene.tasks[0]].batch
        any_model = next(iter(scene.groups.values())).models[0]
        (given,) = attributions([one_method(name)], Answers(any_model, device), whole).values()
        if isinstance(given, Failure):
            raise given.error
        return {
            key: (given.maps if group.places is None else given.maps[group.places]).expand(len(group.models), *[-1] * 4)
            for key, group in scene.groups.items()
        }
    return {key: _drawn(name, scene, key, group) for key, group in scene.groups.items()}


def _drawn(name: str, scene: Scene, key: str, group: Group) -> Tensor:
    batch = _batch(scene, group)
    truth = scene.samples[group.task].region(PRIMARY, "ink") if group.task in scene.samples else None
    if truth is not None and group.places is not None:
        truth = truth[group.places]
    height, width = batch.images.shape[2:]
    size, found = (height, width), []
    for seed in range(len(group.models)):
        who = f"{key} {model(named(key), seed)}"
        if name == "fresh_noise":
            found.append(controls.fresh_noise(batch.seeds, who, size))
        else:
            found.append(controls.oracle(truth, batch.seeds, who, size))
    return torch.stack(found)

"""A randomisation cascade's time over the floor of its explanations, where the rest goes, and beside Quantus.

    python benchmarks/mprt.py [--device cuda] [--net resnet50] [--images 64] [--side 224] [--by layer]
                              [--order top_down] [--repeat 3] [--peer-images 4] [--out file.json]

The floor is stages x images x one pass forward and backward at the best throughput of any batch size, in full float32
as the audit runs them, images ready on the device. Ours is what the audit does with a chunk of images and one draw:
weights drawn in place, maps made, compared, one transfer to the host. With `norms=reestimate` every state's batch norms
are estimated on the images (passes forward that the second floor counts), once for all chunks and methods of an audit:
`again` is the time of any later one. Quantus runs its own MPRT (Spearman) with gradients, on a few images, where it is
installed. Seconds for all images, the best of the repeats.
"""

import argparse
import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from torch import Tensor, nn

from cose import seconds
from saliometer.engine.answer import Answers
from saliometer.engine.battery import Measure
from saliometer.engine.bench import ALIGN
from saliometer.engine.device import exact, memory_format
from saliometer.engine.mprt import Randomised
from saliometer.engine.resolve import one_method
from saliometer.engine.score import Failure, attributions
from saliometer.engine.source import of_tensors
from saliometer.sanity.layers import layers_in_order
from saliometer.sanity.randomise import Weights
from saliometer.sanity.similarity import USUAL, similarity
from saliometer.seeds import scoped
from saliometer.types import Model, Samples

SIZES = (32, 64, 128, 256, 512)


def slopes(net: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    leaf = images.detach().clone().requires_grad_()
    return torch.autograd.grad(net(leaf).gather(1, targets[:, None]).sum(), leaf)[0]


def pace(work: Callable[[Tensor], object], images: Tensor, device: torch.device, repeat: int) -> float:
    """Seconds an image at the batch size that is fastest."""
    found = []
    for size in SIZES if device.type == "cuda" else SIZES[:2]:
        some = images.repeat(-(-size // len(images)), 1, 1, 1)[:size].to(memory_format=memory_format(device))
        with exact():
            found.append(seconds(lambda some=some: work(some), device, repeat) / size)
    return min(found)


def ours(
    samples: Samples, answers: Answers, measures: list[Measure], references: Tensor
) -> tuple[Callable[[], object], Randomised]:
    """A chunk's rows of one method."""
    method = one_method("gradient")
    found = attributions([method], answers, samples.batch)[method.label]
    if isinstance(found, Failure):
        raise found.error
    tests = Randomised(measures, answers, samples.batch.images[:1], references, 0)
    return lambda: tests.rows(method, found.maps, samples), tests


def measured(asked: argparse.Namespace, device: torch.device, net: nn.Module, samples: Samples) -> dict[str, Any]:
    images, targets = samples.batch.images, samples.batch.targets
    size = 512 if device.type == "cuda" else 32
    answers = Answers(Model(asked.net, net, "", "benchmark"), device, size, align=min(ALIGN, size))
    both = pace(lambda some: slopes(net, some, targets[:1].expand(len(some))), images, device, asked.repeat)
    with torch.no_grad():
        forward = pace(net, images, device, asked.repeat)
    layers = layers_in_order(net, images[:1], by=asked.by)
    stages, count = len(layers), len(images)
    floor = stages * count * both
    found: dict[str, Any] = {
        "stages": stages,
        "floor": floor,
        "floor_with_statistics": floor + stages * count * forward,
    }
    head = f"order={asked.order},by={asked.by},draws=1"
    for norms in ("keep", "reestimate"):
        for kinds in (USUAL[:1], USUAL):
            measures = [Measure.parse(f"mprt({head},norms={norms},similarity={kind})") for kind in kinds]
            work, tests = ours(samples, answers, measures, images)

            def first(work: Callable[[], object] = work, tests: Randomised = tests) -> None:
                for group in tests.groups:
                    group.weights.forget()
                work()

            name = f"{norms}, {'one similarity' if len(kinds) == 1 else 'four similarities'}"
            found[name] = seconds(first, device, asked.repeat)
            if norms == "reestimate":
                found[f"{name}, again"] = seconds(work, device, asked.repeat)

    def drawing() -> None:
        with Weights(net, layers, norms="keep") as weights:
            for stage in range(stages):
                weights.become(range(stages - 1 - stage, stages))

    maps = slopes(net, images, targets)
    measures_ = [similarity(kind, maps.shape) for kind in USUAL]
    read = [one.read(maps) for one in measures_]
    found["drawing weights"] = seconds(drawing, device, asked.repeat)
    for one, own in zip(measures_, read, strict=True):
        each = seconds(lambda one=one, own=own: one.compare(own, one.read(maps)), device, asked.repeat)
        found[f"similarity {one.name}"] = stages * each
    return found


def quantus(asked: argparse.Namespace, device: torch.device, net: nn.Module, samples: Samples) -> dict[str, float]:
    """Their MPRT on a few images: every module with reset_parameters is a stage of its own."""
    import quantus

    some = slice(min(asked.peer_images, len(samples)))
    images, targets = samples.batch.images[some], samples.batch.targets[some]

    def explain(model: nn.Module, inputs: np.ndarray, targets: np.ndarray, **_: object) -> np.ndarray:
        given = torch.as_tensor(inputs, device=device), torch.as_tensor(targets, device=device)
        return slopes(model, *given).sum(1, keepdim=True).cpu().numpy()

    judge = quantus.MPRT(layer_order=asked.order, disable_warnings=True, display_progressbar=False)
    arrays = images.cpu().numpy(), targets.cpu().numpy()

    def work() -> None:
        judge(net, arrays[0].copy(), arrays[1], explain_func=explain, channel_first=True, device=str(device))

    took = seconds(work, device, 1)
    stages = sum(hasattr(module, "reset_parameters") for module in net.modules())
    return {"seconds_an_image": took / len(images), "stages": stages, "images": len(images)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--net", default="", help="a torchvision classifier without weights; resnet50, on a CPU resnet18"
    )
    parser.add_argument("--images", type=int, default=0, help="0: 64 on a GPU, 16 on a CPU")
    parser.add_argument("--side", type=int, default=0, help="0: 224 on a GPU, 64 on a CPU")
    parser.add_argument("--by", default="layer")
    parser.add_argument("--order", default="top_down")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer-images", type=int, default=4)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    device = torch.device(asked.device)
    fast = device.type == "cuda"
    asked.net = asked.net or ("resnet50" if fast else "resnet18")
    count, side = asked.images or (64 if fast else 16), asked.side or (224 if fast else 64)
    with scoped("benchmark"):
        net = torchvision.models.get_model(asked.net, weights=None).eval().requires_grad_(False).to(device)
        net = net.to(memory_format=memory_format(device))
        images = torch.rand(count, 3, side, side)
    samples = of_tensors(images).samples(0, count, 0, device)
    samples = replace(samples, batch=replace(samples.batch, targets=net(samples.batch.images).argmax(1)))
    found = measured(asked, device, net, samples)
    floors = found["floor"], found["floor_with_statistics"]
    print(
        f"{asked.net}, {count} images of {side}, {found['stages']} stages by {asked.by}, {asked.order}, {asked.device}"
    )
    print(f"floor {floors[0]:.3f} s, with the passes of statistics {floors[1]:.3f} s")
    for name, took in found.items():
        if name.startswith(("keep", "reestimate")):
            extra = f", {took / floors[1]:.2f} of both" if name.startswith("reestimate") and "again" not in name else ""
            print(f"{name:40} {took:8.3f} s, {took / floors[0]:5.2f} of the floor{extra}")
        elif name.startswith(("drawing", "similarity")):
            print(f"  of it {name:34} {took:8.3f} s, {took / floors[0]:5.2f}")
    if importlib.util.find_spec("quantus"):
        found["quantus"] = peer = quantus(asked, device, net, samples)
        mine = found["keep, one similarity"] / count / found["stages"]
        theirs = peer["seconds_an_image"] / peer["stages"]
        print(
            f"Quantus: {peer['seconds_an_image']:.3f} s an image over {peer['stages']} stages, "
            f"{theirs / mine:.1f} times as long as ours for each image and stage"
        )
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

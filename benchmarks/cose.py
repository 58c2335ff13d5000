"""COSE's time over the floor of its explanations, the share of transforms and SSIM, and SSIM beside scikit-image.

    python benchmarks/cose.py [--device cuda] [--net resnet18] [--images 8] [--side 224] [--checkpoints 10]
                              [--method NAME ...] [--repeat 3] [--out file.json]

The floor is what it takes to predict and explain the distinct images of every model, 48 + 1 of the model itself and one
of every other, handed over ready in full batches. Ours is what the audit does with a chunk of images: transforms, the
predictions, the explanations, maps laid back, similarities, one transfer to the host. Transforms are timed alone;
similarities (scaling, masks and laying back included) on maps that are there. Seconds for all images, the best of the
repeats.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from skimage.metrics import structural_similarity
from torch import Tensor

from saliometer.cose.operations import OPERATIONS
from saliometer.cose.pairs import MAGNITUDES
from saliometer.cose.ssim import ssim
from saliometer.engine.answer import Answers
from saliometer.engine.battery import Measure
from saliometer.engine.bench import ALIGN
from saliometer.engine.cose import Paired, read, similarities
from saliometer.engine.cose_chunk import Changes, Chunk
from saliometer.engine.layers import cam_layer
from saliometer.engine.resolve import one_method
from saliometer.engine.score import Failure, Method, attributions
from saliometer.engine.source import of_tensors
from saliometer.seeds import scoped
from saliometer.types import Batch, Model

METHODS = ("gradient", "grad_cam", "integrated_gradients(steps=25)", "smooth_grad(draws=50)")


def seconds(work: Callable[[], object], device: torch.device, repeat: int) -> float:
    """The best of several, after one that does not count."""
    found = []
    for _ in range(repeat + 1):
        _wait(device)
        start = time.perf_counter()
        work()
        _wait(device)
        found.append(time.perf_counter() - start)
    return min(found[1:])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def explained(method: Method, answers: Answers, batch: Batch) -> Tensor:
    """Maps in full batches."""
    found = attributions([method], answers, batch)[method.label]
    if isinstance(found, Failure):
        raise found.error
    return found.maps


def floor(method: Method, paired: Paired, chunk: Chunk, ready: Tensor) -> None:
    """Predict and explain images that are there, of the model and of every other."""
    size = paired.answers.size
    for start in range(0, len(ready), size):
        some = ready[start : start + size]
        targets = paired.answers.predicted(some)
        explained(method, paired.answers, Batch(some, targets, torch.arange(len(some), device=some.device)))
    for answers in paired.others.values():
        targets = answers.predicted(chunk.batch.images)
        explained(method, answers, replace(chunk.batch, targets=targets))


def timed(name: str, paired: Paired, chunk: Chunk, device: torch.device, repeat: int) -> dict[str, Any]:
    method, samples = one_method(name), chunk.samples
    pairs, measure = chunk.pairs(tuple(OPERATIONS), MAGNITUDES), paired.measures[0]
    ready = torch.cat([chunk.input(pair.images(chunk.pixels)) for pair in pairs])
    own = explained(method, paired.answers, chunk.batch)

    def transforms() -> None:
        for pair in pairs:
            chunk.input(pair.images(chunk.pixels))

    def compared() -> None:
        one, found = read(own, method, measure), []
        together = max(1, paired.answers.size // len(samples))
        for start in range(0, len(pairs), together):
            some = pairs[start : start + together]
            for pair in some:  # the chunk keeps its masks, an audit's chunk makes them once
                pair.valid(own[:, 0])
            maps = own.repeat(len(some), 1, 1, 1)
            still = torch.zeros(len(some), len(samples), dtype=torch.bool, device=device)
            changes = Changes([], still, {}, some)
            laid = changes.undone(read(maps, method, measure).unflatten(0, still.shape))
            found += [scored.values for scored in similarities(measure, one, laid, changes, chunk)]
        torch.stack(found).tolist()

    def ours() -> None:
        paired.rows(method, own, replace(samples))  # another chunk: predictions are found anew

    least = seconds(lambda: floor(method, paired, chunk, ready), device, repeat)
    whole = seconds(ours, device, repeat)
    changing, comparing = (seconds(work, device, repeat) for work in (transforms, compared))
    return {
        "method": name, "floor": least, "ours": whole, "over_floor": whole / least, "transforms": changing / whole,
        "similarity": comparing / whole,
    }  # fmt: skip


def beside_skimage(side: int, device: torch.device, repeat: int, count: int = 64) -> dict[str, float]:
    """Milliseconds a pair, and how far apart the values are."""
    one, other = torch.rand(2, count, side, side, generator=torch.Generator().manual_seed(0))
    arrays = one.numpy(), other.numpy()
    start = time.perf_counter()
    theirs = [structural_similarity(a, b, win_size=5, data_range=1.0) for a, b in zip(*arrays, strict=True)]
    peer = time.perf_counter() - start
    one, other = one.to(device), other.to(device)
    ours = seconds(lambda: ssim(one, other).tolist(), device, repeat)
    apart = float(np.abs(np.array(theirs) - ssim(one, other).cpu().numpy()).max())
    return {"ours_ms": 1e3 * ours / count, "skimage_ms": 1e3 * peer / count, "faster": peer / ours, "apart": apart}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--net", default="resnet18", help="a torchvision classifier, without weights")
    parser.add_argument("--images", type=int, default=0, help="0 takes an audit's chunk: 128 on a GPU, 4 on a CPU")
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--checkpoints", type=int, default=10)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--method", action="append")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    device = torch.device(asked.device)
    with scoped("benchmark"):
        net = torchvision.models.get_model(asked.net, weights=None).eval().requires_grad_(False).to(device)
        states = [torchvision.models.get_model(asked.net, weights=None).state_dict() for _ in range(asked.checkpoints)]
    count = asked.images or (128 if device.type == "cuda" else 4)
    images = torch.randint(256, (count, 3, asked.side, asked.side), generator=torch.Generator().manual_seed(0)) / 255
    model = Model(asked.net, net, cam_layer(net, images[:1].to(device)), "benchmark")
    size = asked.batch or (512 if device.type == "cuda" else 32)
    answers = Answers(model, device, size, align=min(ALIGN, size))
    paired = Paired([Measure.parse("cose")], answers, states or None, 0, 1000)
    samples = of_tensors(images).samples(0, count, 0, device)
    chunk = Chunk(samples, answers, paired.others)
    found = []
    print(f"{asked.net}, {count} images of {asked.side}, {asked.checkpoints} checkpoints, {asked.device}, batch {size}")
    print(f"{'method':34} {'floor s':>9} {'ours s':>9} {'over floor':>11} {'transforms':>11} {'similarity':>11}")
    for name in asked.method or METHODS:
        one = timed(name, paired, chunk, device, asked.repeat)
        found.append(one)
        print(
            f"{name:34} {one['floor']:9.3f} {one['ours']:9.3f} {one['over_floor']:11.2f} {one['transforms']:11.1%} "
            f"{one['similarity']:11.1%}",
            flush=True,
        )
    peer = beside_skimage(asked.side, device, asked.repeat)
    print(
        f"SSIM: {peer['ours_ms']:.3f} ms a pair, scikit-image {peer['skimage_ms']:.3f} ms, {peer['faster']:.1f} times "
        f"as long; values {peer['apart']:.1e} apart"
    )
    if asked.out:
        asked.out.write_text(json.dumps({"methods": found, "ssim": peer}, indent=1) + "\n")


if __name__ == "__main__":
    main()

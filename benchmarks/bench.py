"""The time of `saliometer bench` over the floor of bare model passes, and over the same work done with Captum.

    python benchmarks/bench.py [--per-bucket 10] [--device auto] [--no-peer]

The floor is the count of passes that the methods need times the seconds of a pass at the model's best throughput, found
over batch sizes and memory formats in the same process. Peak memory is the process's largest resident set.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from saliometer.engine import device as devices
from saliometer.engine import shipped
from saliometer.engine.answer import Answers
from saliometer.engine.bench import ALIGN, bench
from saliometer.engine.request import Request
from saliometer.engine.resolve import one_method
from saliometer.engine.run import Unit
from saliometer.engine.score import attributions
from saliometer.tasks.textbox import SETTINGS

METHODS = ("gradient", "input_x_gradient", "integrated_gradients", "smooth_grad", "grad_cam")
STEPS, DRAWS = 50, 25
BACKWARD = 1 + STEPS + DRAWS  # gradient, input_x_gradient and grad_cam share the first
FORWARD = 1  # the predicted class


def seconds(work: Callable[[], object], device: torch.device, repeats: int = 4) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def best_pass(net: torch.nn.Module, device: torch.device, backward: bool) -> tuple[float, str]:
    """Seconds for one image at the best batch size and memory format, and which they are."""
    found = []
    sizes = (32, 64, 128, 256) if device.type == "cpu" else (512, 1024, 2048, 4096)
    for layout in (torch.contiguous_format, torch.channels_last):
        net.to(memory_format=layout)
        for size in sizes:
            images = torch.rand(size, 3, 64, 64, device=device).to(memory_format=layout).requires_grad_(backward)

            def work(images: torch.Tensor = images) -> None:
                if backward:
                    torch.autograd.grad(net(images)[:, 0].sum(), images)
                else:
                    with torch.no_grad():
                        net(images)

            found.append((seconds(work, device) / size, f"{str(layout).removeprefix('torch.')}, {size}"))
    return min(found)


def floor(request: Request, device: torch.device) -> float:
    total = 0.0
    with devices.exact():
        for setting in SETTINGS:
            net = shipped.load(setting).net.to(device)
            (both, how), (forward, _) = best_pass(net, device, True), best_pass(net, device, False)
            part = request.count(setting) * (BACKWARD * both + FORWARD * forward)
            print(f"  {setting:12} {1e6 * both:7.1f} us a pass ({how}), {part:6.2f} s", flush=True)
            total += part
    return total


def maps_alone(request: Request, device: torch.device) -> float:
    """Our five methods on all images, without metrics and files: what Captum is compared with."""
    chosen = [one_method(name) for name in METHODS]
    start = time.perf_counter()
    for setting in SETTINGS:
        model = shipped.load(setting)
        model.net.to(device).to(memory_format=devices.memory_format(device))
        answers = Answers(model, device, align=ALIGN)
        for unit in request.units(setting):
            samples = request.samples(unit, device)
            samples = samples.explaining(answers.predicted(samples.batch.images))
            attributions(chosen, answers, samples.batch)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def captum(request: Request, device: torch.device) -> float:
    """The same five methods on the same images with Captum, in batches of the size that is best for the model."""
    from captum.attr import InputXGradient, IntegratedGradients, LayerGradCam, NoiseTunnel, Saliency

    size = devices.BATCH[device.type]
    start = time.perf_counter()
    for setting in SETTINGS:
        model = shipped.load(setting)
        net = model.net.to(device).to(memory_format=devices.memory_format(device))
        samples = request.samples(Unit(setting, 0, request.count(setting)), device)
        for images in samples.batch.images.split(size):
            images = images.to(memory_format=devices.memory_format(device))
            targets = net(images).argmax(1)
            Saliency(net).attribute(images.clone(), targets, abs=False)
            InputXGradient(net).attribute(images.clone(), targets)
            IntegratedGradients(net).attribute(images, target=targets, n_steps=STEPS, internal_batch_size=size)
            tunnel = NoiseTunnel(Saliency(net))
            tunnel.attribute(images.clone(), target=targets, nt_samples=DRAWS, nt_samples_batch_size=1, abs=False)
            cam = LayerGradCam(net, dict(net.named_modules())[model.cam_layer]).attribute(images.clone(), targets)
            torch.nn.functional.interpolate(cam.relu(), (64, 64), mode="bilinear")
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-bucket", type=int, default=10)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    device = devices.find(arguments.device)
    request = Request(per_bucket=arguments.per_bucket)
    images = sum(map(request.count, SETTINGS))
    print(f"{images} images, {BACKWARD} forward and backward passes and {FORWARD} forward pass each, on {device}")
    before = floor(request, device)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        bench(METHODS, per_bucket=arguments.per_bucket, out=Path(folder), device=arguments.device)
        took = time.perf_counter() - start
    after = floor(request, device)
    lowest = min(before, after)
    scale = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 2**20
    row = {
        "device": str(device), "images": images, "floor_s": lowest, "bench_s": took, "over_floor": took / lowest,
        "peak_MiB": peak,
    }  # fmt: skip
    if device.type == "cuda":
        row["peak_gpu_MiB"] = torch.cuda.max_memory_allocated() / 2**20
    if not arguments.no_peer:
        warnings.simplefilter("ignore")
        row["maps_s"], row["captum_s"] = maps_alone(request, device), captum(request, device)
        row["faster_than_captum"] = row["captum_s"] / row["maps_s"]
    print(json.dumps({name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()}))


if __name__ == "__main__":
    main()

"""Every method against its floor of bare model passes, and against the same method of the best peer that is installed.

    python benchmarks/methods.py [--device cuda] [--net small|resnet50] [--method NAME ...] [--tf32] [--no-peers]
                                 [--threads 1] [--count] [--out file.json]

The floor is the count of passes that a method needs (forward F and backward B, for one image) over the network's best
throughput in the same process and precision, found over batch sizes and memory formats, and measured again around
every run (bare.py). A method is timed through `saliometer.explain`, warm: one call goes before, so that captured
networks, kernels and superpixels are there. Methods whose time is linear in their draws or steps take fewer of them,
and so do their floors and peers. A table's columns: method, passes, images, floor, ours, ours over the floor, the best
peer with its time and how much faster we are, and the same for the best peer as they come, with the batches they take
by themselves; all times in ms an image. Last comes how long a call of ours is busy before its first convolution, which
a GPU waits for. With --count nothing is timed: what calls ask of a machine is counted (counted.py), which needs no GPU
and no quiet; give few --images then.
"""

import argparse
import importlib.metadata
import json
import math
import platform
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import bare
import peers
from counted import Counted
from saliometer import explain
from saliometer.engine import device as devices
from saliometer.methods import _segments

REFERENCES = 100
COUNTS = "| method | images | products | other operations | MB an image | waits |\n|---|---:|---:|---:|---:|---:|"


@dataclass(frozen=True)
class Setting:
    """A network, what it is shown, and the layers that methods read."""

    name: str
    net: nn.Module
    images: Tensor
    targets: Tensor
    references: Tensor
    cam: str  # the layer of CAM methods
    channels: int  # which it has
    middle: str  # the layer of iba


@dataclass(frozen=True)
class Case:
    """A method as it is timed, and the passes that it needs for one image."""

    method: str
    forward: float = 1
    backward: float = 1
    images: int = 0  # of the batch; 0 takes all
    params: dict[str, Any] = field(default_factory=dict)
    tail: str = ""  # the layer behind which its passes run
    whole: float = 1  # forward passes of the whole network that come before those

    @property
    def passes(self) -> str:
        counts = ((self.forward, "F"), (self.backward, "B"))
        said = " + ".join(f"{count:g}{unit}" for count, unit in counts if count)
        return f"{self.whole:g}F + {said} of the tail" if self.tail else said


def small_net() -> nn.Sequential:
    """Four convolutions for images of 32 x 32."""
    convolutions = [(nn.Conv2d(i, o, 3, padding=1), nn.ReLU()) for i, o in ((3, 32), (32, 32), (32, 64), (64, 64))]
    first, second, third, fourth = convolutions
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
    return nn.Sequential(*first, *second, nn.MaxPool2d(2), *third, *fourth, *head)


def setting(name: str, device: torch.device, count: int) -> Setting:
    """Random weights and smooth random images, by seed: speed does not depend on what they show."""
    torch.manual_seed(0)
    if name == "small":
        net, side, layers = small_net(), 32, ("8", 64, "4")
    else:
        from torchvision.models import resnet50

        net, side, layers = resnet50(weights=None), 224, ("layer4", 2048, "layer2")
    net = net.eval().requires_grad_(False).to(device)
    coarse = torch.rand(count + REFERENCES, 3, side // 8, side // 8)
    images = nn.functional.interpolate(coarse, (side, side), mode="bicubic").clamp(0, 1).to(device)
    with torch.no_grad():
        targets = net(images[:count]).argmax(1)
    cam, channels, middle = layers
    return Setting(name, net, images[:count], targets, images[count:], cam, channels, middle)


def cases(given: Setting) -> list[Case]:
    """What is timed; `few` images where a method takes many passes for each."""
    few, side = min(16, len(given.images)), given.images.shape[2]
    pieces = {"segments": "quickshift" if side > 100 else "grid"}  # small images are all one superpixel
    quick = [Case(name) for name in (
        "gradient", "input_x_gradient", "deconvnet", "guided_backprop", "grad_cam", "grad_cam_plus_plus", "hires_cam",
        "layer_cam", "xgrad_cam", "lrp_z", "lrp_epsilon",
    )]  # fmt: skip
    window = max(1, round(side / 7))
    windows = (math.ceil((side - window) / max(1, round(side / 28))) + 1) ** 2
    return [
        *quick,
        Case("cam", 1, 0),
        Case("guided_grad_cam", 1, 2),
        Case("lrp_epsilon_plus", 2, 1),  # a rule with other weights needs a forward pass of its own for its sums
        Case("lrp_preset_a_flat", 2, 1),
        Case("deep_taylor", 2, 1),
        Case("lrp_alpha_beta", 3, 2),
        Case("lrp_preset_b_flat", 3, 2),
        Case("lrp_gamma", 3, 2),
        Case("deeplift_rescale", 2, 1),
        Case("deeplift_reveal_cancel", 3, 2),
        Case("deep_shap", 10, 10, few, {"count": 10}),
        Case("smooth_grad", 25, 25),
        Case("var_grad", 25, 25),
        Case("integrated_gradients", 50, 50),
        Case("ig_smooth_grad", 20, 20, 0, {"draws": 2, "steps": 10}),
        Case("expected_gradients", 50, 50, 0, {"draws": 50}),
        Case("blur_ig", 21, 21, 0, {"steps": 20}),
        Case("guided_ig", 20, 20, 0, {"steps": 20}),
        Case("xrai", 200, 200, few),
        Case("score_cam", given.channels + 1, 0, few),
        Case("ablation_cam", given.channels + 1, 0, 0, {}, given.cam),
        Case("opti_cam", 21, 20, 0, {"steps": 20}),
        Case("iba", 90, 90, few, {"layer": given.middle}, given.middle, 1 + REFERENCES / few),
        Case("rise", 256, 0, few, {"masks": 256}),
        Case("lime", 256, 0, few, {"samples": 256, **pieces}),
        Case("kernel_shap", 258, 0, few, {"samples": 256, **pieces}),
        Case("occlusion", windows + 1, 0, few),
        Case("extremal_perturbation", 80, 80, few, {"steps": 20}),
    ]


# Floors


def behind(net: nn.Module, layer: str) -> nn.Module:
    """The part of these two networks behind a layer: what its parts' order says, with a flattening before the last."""
    parts = list(net.named_children())
    names = [name for name, _ in parts]
    rest = [module for _, module in parts[names.index(layer) + 1 :]]
    if not isinstance(net, nn.Sequential):
        rest.insert(-1, nn.Flatten())
    return nn.Sequential(*rest)


class Floors:
    """Of the whole network and of tails, as cases ask for them; each way to pass is found once."""

    def __init__(self, given: Setting) -> None:
        self.given = given
        self.passes: dict[str, tuple[bare.Pass, bare.Pass]] = {}  # behind a layer, '' for the whole network

    def behind(self, layer: str) -> tuple[bare.Pass, bare.Pass]:
        """Forth, and forth and back."""
        if layer not in self.passes:
            net, one = self.given.net, self.given.images[:1]
            if layer:
                with peers.output_of(net, layer) as heard, torch.no_grad():
                    net(one)
                net, one = behind(net, layer), heard[0]
            self.passes[layer] = bare.fastest(net, one, bare.forth), bare.fastest(net, one, bare.forth_and_back)
        return self.passes[layer]

    def of(self, case: Case) -> bare.Floor:
        forth, both = self.behind(case.tail)
        before = [(case.whole, self.behind("")[0])] if case.tail else []
        return bare.floor((case.forward - case.backward, forth), (case.backward, both), *before)


# Rows


def called(case: Case, given: Setting) -> Callable[[], Tensor]:
    """Ours."""
    count = case.images or len(given.images)
    images, targets = given.images[:count], given.targets[:count]
    return lambda: explain(given.net, images, case.method, targets, references=given.references, **case.params)


def measured(case: Case, given: Setting, floor: bare.Floor) -> tuple[float, float]:
    """Ours over the floor, and seconds of a call before its first convolution."""
    work = called(case, given)
    work()
    with _First() as first:
        start = time.perf_counter()
        work()
    return floor.held(work, case.images or len(given.images)), first.at - start


class _First(TorchDispatchMode):
    """When the first convolution was launched."""

    at = math.nan

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if math.isnan(self.at) and "convolution" in str(func):
            self.at = time.perf_counter()
        return func(*args, **(kwargs or {}))


def counted(case: Case, given: Setting) -> Counted:
    """A call of ours, warm."""
    work = called(case, given)
    work()
    with Counted() as found:
        work()
    return found


def peered(case: Case, given: Setting, floor: bare.Floor) -> dict[str, Any]:
    """Times over the floor, or why there are none, of every peer that is installed."""
    found: dict[str, Any] = {}
    for peer in peers.of(case.method):
        count = min(peer.images or case.images or len(given.images), len(given.images))
        some = peers.Asked(
            given.net, given.images[:count], given.targets[:count], given.references, given.cam, case.params
        )
        try:
            with devices.exact():
                found[peer.name] = floor.held(peer.ready(some), count)
        except ModuleNotFoundError:
            continue
        except Exception as error:
            found[peer.name] = f"fails: {type(error).__name__}: {str(error)[:120]}"
    return found


def row(case: Case, given: Setting, floor: bare.Floor, with_peers: bool) -> dict[str, Any]:
    """Ours and others', over the floor."""
    ours, before = measured(case, given, floor)
    others = peered(case, given, floor) if with_peers else {}
    timed = {name: took for name, took in others.items() if isinstance(took, float)}
    best = min(timed, key=timed.__getitem__, default="")
    plain = timed.keys() & {peer.name for peer in peers.of(case.method) if not peer.tuned}
    as_they_come = min(sorted(plain), key=timed.__getitem__, default="")
    return {
        "method": case.method,
        "params": case.params,
        "images": case.images or len(given.images),
        "passes": case.passes,
        "ratio": ours,
        "before_ms": 1e3 * before,
        "peer_ratios": others,
        "best_peer": best,
        "faster": timed[best] / ours if best else None,
        "best_as_they_come": as_they_come,
        "faster_as_they_come": timed[as_they_come] / ours if as_they_come else None,
    }


def timed(row: dict[str, Any], floor: bare.Floor) -> dict[str, Any]:
    """With milliseconds for one image, as they are on a quiet machine."""
    lowest = 1e3 * floor.best()
    others = {name: lowest * one if isinstance(one, float) else one for name, one in row["peer_ratios"].items()}
    return {**row, "floor_ms": lowest, "ours_ms": lowest * row["ratio"], "peers": others}


def superpixels(given: Setting) -> dict[str, float]:
    """Milliseconds for one image, all cores, none remembered."""
    found, images = {}, given.images[:16]
    for cut in (_segments.quickshift, _segments.felzenszwalb):
        _segments._known.clear()
        start = time.perf_counter()
        with suppress(ModuleNotFoundError):
            cut(images)
            found[cut.__name__] = 1e3 * (time.perf_counter() - start) / len(images)
    return found


def shown(row: dict[str, Any]) -> str:
    """A line of docs/speed.md's tables."""
    peer, plain = row["best_peer"], row["best_as_they_come"]
    said = {
        "method": str(row["method"]) + "".join(f", {key}={value}" for key, value in row["params"].items()),
        "passes": row["passes"],
        "images": row["images"],
        "floor": f"{row['floor_ms']:.3g}",
        "ours": f"{row['ours_ms']:.3g}",
        "ratio": f"{row['ratio']:.2f}",
        "peer": peer or "; ".join(f"{name} {why}" for name, why in row["peers"].items()),
        "its": f"{row['peers'][peer]:.3g}" if peer else "",
        "faster": f"{row['faster']:.1f}" if peer else "",
        "as they come": f"{plain.removesuffix(', its defaults')} {row['peers'][plain]:.3g}" if plain else "",
        "faster then": f"{row['faster_as_they_come']:.1f}" if plain else "",
    }
    return "| " + " | ".join(map(str, said.values())) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--net", choices=("small", "resnet50"), default="small")
    parser.add_argument("--methods", default="", help="names, separated by commas; all by default")
    parser.add_argument("--method", action="append", default=[], metavar="NAME", help="one more; can be given again")
    parser.add_argument("--tf32", action="store_true", help="of a GPU, for the floor, ours and peers alike")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; all that PyTorch takes by default")
    parser.add_argument("--count", action="store_true", help="count operations, bytes and waits of ours, time nothing")
    parser.add_argument("--images", type=int, default=0, help="in the batch; 16 of the small net, 64 of ResNet-50")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    device, devices.TF32 = devices.find(arguments.device), arguments.tf32
    given = setting(arguments.net, device, arguments.images or {"small": 16, "resnet50": 64}[arguments.net])
    names = [name for name in (*arguments.methods.split(","), *arguments.method) if name]
    wanted = [case for case in cases(given) if not names or case.method in names]
    machine = torch.cuda.get_device_name() if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    about = f"{given.name} net, {precision()}, {machine}, torch {torch.__version__}, Python {platform.python_version()}"
    print(about, flush=True)
    if arguments.count:
        print(COUNTS)
        for case in wanted:
            print(counted(case, given).row(case.method, case.images or len(given.images)), flush=True)
        return
    versions = {name: importlib.metadata.version(name) for name in ("torch", "numpy")}
    said: dict[str, Any] = {
        "machine": machine, "net": given.name, "precision": precision(), "versions": versions, "rows": [],
    }  # fmt: skip
    cut = any(case.method in ("lime", "kernel_shap", "xrai") for case in wanted)
    said["superpixels_ms"], floors, known = superpixels(given) if cut else {}, Floors(given), {}
    for case in wanted:
        try:
            known[case.method] = floors.of(case)
            said["rows"].append(row(case, given, known[case.method], not arguments.no_peers))
            print(shown(timed(said["rows"][-1], known[case.method])), flush=True)
        except Exception as error:
            print(f"{case.method} fails: {type(error).__name__}: {error}", flush=True)
        write(said, arguments.out)
    said["rows"] = [timed(one, known[one["method"]]) for one in said["rows"]]
    said["floors"] = {layer: [(each.best, each.how) for each in both] for layer, both in floors.passes.items()}
    write(said, arguments.out)
    print("\n".join(("", *map(shown, said["rows"]), "")))
    for layer, (forth, both) in floors.passes.items():
        where = f"behind {layer}" if layer else "of the network"
        print(f"F {where} {1e3 * forth.best:.4g} ms ({forth.how}), F + B {1e3 * both.best:.4g} ms ({both.how})")
    print("superpixels, ms an image:", said["superpixels_ms"])
    print("before the first convolution of a call, ms:", {o["method"]: round(o["before_ms"], 2) for o in said["rows"]})


def precision() -> str:
    return "TF32" if devices.TF32 else "float32"


def write(said: dict[str, Any], out: Path | None) -> None:
    if out:
        out.write_text(json.dumps(said, indent=1))


if __name__ == "__main__":
    main()

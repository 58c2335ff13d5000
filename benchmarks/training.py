"""Trains TextBox models and prints what it costs: seconds, the share spent on making images, peak device memory.

python benchmarks/training.py [--out DIR] [--setting NAME]... [--device auto]
"""

import argparse
import time
from pathlib import Path

import torch

from saliometer.engine.train import PER_BUCKET_TRAIN as TRAIN
from saliometer.engine.train import size, train
from saliometer.models.fit import GENERATED_TOGETHER
from saliometer.tasks.textbox import SETTINGS, cycle, draw


def wait(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def generating(setting: str, device: str, batch: int = 512 * GENERATED_TOGETHER, most: int = 50) -> float:
    """Seconds to make one image of the training set, its places included once."""
    count = size(TRAIN, setting) * len(cycle(setting, "train"))
    scene = draw(setting, "train", torch.arange(count, device=device), 0)
    order = torch.randperm(count).to(device)
    scene[order[:batch]].images()
    start, steps = wait(device), min(most, count // batch)
    for step in range(steps):
        scene[order[step * batch : (step + 1) * batch]].images()
    return (wait(device) - start) / (steps * batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/models"))
    parser.add_argument("--setting", action="append", choices=SETTINGS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    device = arguments.device
    print(
        "setting      seconds  tries  images made: share  peak MiB  accuracy  worst bucket  pairs   worst cell accepted"
    )
    for setting in arguments.setting or SETTINGS:
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        start = wait(device)
        card = train(setting, arguments.out, seed=arguments.seed, device=device)
        seconds = wait(device) - start
        tries = card["attempt"] + 1
        share = generating(setting, device) * card["images"] * card["epochs"] * tries / seconds
        peak = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else float("nan")
        got = [part["got"] for part in card["acceptance"].values()]
        print(
            f"{setting:12} {seconds:7.1f} {tries:6} {share:19.1%} {peak:9.0f}  "
            + "  ".join(f"{value:8.4f}" for value in got)
            + f"  {card['accepted']}",
            flush=True,
        )


if __name__ == "__main__":
    main()

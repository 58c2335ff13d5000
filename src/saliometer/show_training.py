"""`saliometer train images`: what was asked, done, and said in the end."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from saliometer.engine.architectures import ARCHS, LARGE, SMALL, arch_given
from saliometer.engine.data import TEXTBOX, data_given
from saliometer.engine.initial import origin_of
from saliometer.engine.recipes import recipe_for
from saliometer.engine.train_images import checkpoints_of, train_images
from saliometer.images.parts import TESTS
from saliometer.types import Watch

RUNS = Path("runs") / "images"


def trained(
    data: str, arch: str, out: Path | None, *, test: str = "", init: str = "random", frozen: bool | None = None,
    recipe: str = "", side: int = 0, seed: int = 0, epochs: int = 0, batch: int | None = None,
    rate: float | None = None, limit: int = 0, device: str = "cpu", amp: bool | None = None, watch: Watch,
    say: Callable[[str], None],
) -> tuple[dict[str, Any], Path]:  # fmt: skip
    """The card and the folder of a training, from the words of the command line."""
    if not data or not arch:
        raise ValueError(
            f"train images wants --data (a folder, .npz files, cifar10:ROOT, textbox:SETTING) and --arch, one of "
            f"{', '.join(ARCHS)}"
        )
    if (batch is not None and batch < 2) or (rate is not None and not rate > 0):
        raise ValueError(f"batch {batch}, rate {rate}: wanted batches of 2 or more and a rate above 0")
    kind, spec = arch_given(arch)
    recipe_for(recipe, kind.name, origin_of(init)[0])  # a wrong name is told before pictures are read
    if side:
        kind.check_side(side)
    largest = side or (LARGE if kind.large else SMALL)
    held = data_given(data, largest, test=test, resize=kind.resize_for(largest), seed=seed, watch=watch)
    for note in held.notes:
        say(f"{held.name}: {note}.")
    folder = out or RUNS / _folder(str(spec), held.name, init, recipe, frozen, seed)
    card = train_images(
        held, arch, folder, init=init, frozen=frozen, recipe=recipe, epochs=epochs, seed=seed, device=device, amp=amp,
        batch=batch or 0, rate=rate or 0, limit=limit, side=side, watch=watch,
    )  # fmt: skip
    if card["test_accuracy"] <= (most := card["data"]["largest_class"]):
        say(f"Warning: always to name the largest class would be right on {100 * most:.1f} % of the test images, too.")
    return card, folder


def _folder(arch: str, data: str, init: str, recipe: str, frozen: bool | None, seed: int) -> str:
    """`vit_tiny-cifar10`, `resnet50-cub200-dino-frozen-seed1`."""
    origin = "" if init == "random" else re.split(r"[:.]", Path(init).name if ":" not in init else init)[0]
    words = [arch, data, origin, recipe, "frozen" * bool(frozen), f"seed{seed}" if seed else ""]
    return "-".join(re.sub(r"[^A-Za-z0-9_=-]+", "-", word).strip("-") for word in words if word)


def print_trained(card: dict[str, Any], folder: Path, data: str, test: str) -> None:
    """How good it is, where it lies and what to do with it."""
    about = card["data"]
    print(
        f"{card['arch']} on {about['name']} ({about['train']} training and {about['test']} test images): test accuracy "
        f"{100 * card['test_accuracy']:.2f} %, on training images {100 * card['train_accuracy']:.2f} %; "
        f"{card['gate']['says']}"
    )
    print(
        f"Wrote {folder / 'final.safetensors'}, {len(checkpoints_of(folder))} checkpoints in {folder / 'checkpoints'} "
        f"and {folder / 'card.json'}."
    )
    print(
        f"Next: saliometer audit --model {shlex.quote(str(folder))} --images {shlex.quote(_images(data, test))} "
        f"--metric cose --checkpoints {shlex.quote(str(folder / 'checkpoints'))} --preset cose"
    )


def _images(data: str, test: str) -> str:
    """Where the test images are, for an audit."""
    if test or data.startswith(TEXTBOX):
        return test or "FOLDER"
    path = Path(data)
    if path.is_dir():
        inside = [path / word for word in TESTS if (path / word).is_dir()]
        inside += [one for one in sorted(path.glob("*.npz")) if any(word in one.stem for word in TESTS)]
        return str((inside or [path])[0])
    files = data.split(",")
    return next((one for one in files if any(word in Path(one).stem for word in TESTS)), files[-1])

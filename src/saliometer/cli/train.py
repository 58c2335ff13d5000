"""`saliometer train`: the benchmark's models, or a classifier of the user's images."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from saliometer.cli.guard import plainly, say
from saliometer.cli.options import Arch, AsJson, Background, Device, Labelling, Limit, Robust, Sampler, Seed, Settings

IMAGES = "train images"


@plainly
def train(
    task: Annotated[
        str,
        typer.Argument(
            help="What to train on: textbox, shape_digits and its like, your own `my_task.py`, or images (with --data "
            "and --arch)."
        ),
    ] = "textbox",
    setting: Settings = [],  # noqa: B006
    background: Background = "black",
    arch: Arch = "",
    robust: Robust = False,
    ramp: Annotated[
        float | None,
        typer.Option(
            help="With --robust: the share of training in which the attack grows to its size, by default 0.5; 0 for "
            "all of it from the first step on, as the paper has it."
        ),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="ImageNet weights of VGG16, for `--arch 'vgg16(frozen=true)'`.")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    loss: Annotated[str, typer.Option(help="cross_entropy, or clipped (the authors').")] = "cross_entropy",
    labelling: Labelling = "paper",
    sampler: Sampler = "disjoint",
    epochs: Annotated[int, typer.Option(help="0 for the setting's or the recipe's own number.")] = 0,
    batch: Annotated[
        int | None, typer.Option(help="Images a step: 512, robust 256, your own task 128, images as the recipe.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="The learning rate at its highest, by default 1e-3; images as the recipe.")
    ] = None,
    restarts: Annotated[int, typer.Option(help="Fresh trainings until one is accepted.")] = 20,
    limit: Limit = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where weights and cards go; the same command goes on there. Default: under runs/models, runs/images."
        ),
    ] = None,
    data: Annotated[
        str,
        typer.Option(
            rich_help_panel=IMAGES,
            help="A folder per class (with train/ and test/ or val/ around them, or split by seed), .npz files with x "
            "and y (or a folder of them), `textbox:complex-fr`, or a data set that lies at ROOT, `cifar10:ROOT`: "
            "cifar10, caltech101, cub200, eurosat, oxford102 or any of torchvision's. Nothing is downloaded.",
        ),
    ] = "",
    test: Annotated[
        str, typer.Option(rich_help_panel=IMAGES, help="Another folder or .npz with the test images, if not in --data.")
    ] = "",
    init: Annotated[
        str,
        typer.Option(
            rich_help_panel=IMAGES,
            help="First weights: random, pretrained (torchvision's), or a file of pre-training, FILE, dino:FILE, "
            "moco_v3:FILE, ibot:FILE or spark:FILE.",
        ),
    ] = "random",
    recipe: Annotated[
        str,
        typer.Option(
            rich_help_panel=IMAGES,
            help="ours, or as the COSE paper's code trains: caltech101, cifar10, eurosat, oxford102 or cub200.",
        ),
    ] = "",
    frozen: Annotated[
        bool | None,
        typer.Option(
            "--frozen/--full", rich_help_panel=IMAGES, help="Train the head alone, or all; else as the recipe."
        ),
    ] = None,
    side: Annotated[
        int, typer.Option(rich_help_panel=IMAGES, help="Of the images; 0 for 224, small networks as the data to 64.")
    ] = 0,
    amp: Annotated[
        bool | None, typer.Option("--amp/--no-amp", rich_help_panel=IMAGES, help="bfloat16; by default on a GPU only.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train the benchmark's models until the acceptance rule holds, or a classifier of your images with checkpoints.

    Weights are kept as safetensors with a card beside them: sizes, seed, versions, hash, accuracy and reliance.

    - `saliometer train textbox --background noise --seed 1` writes runs/models/SETTING.noise.seed1.safetensors;
    - `saliometer train textbox --arch alexnet`, `--robust` and `--background natural:photos/` go together as you like;
    - `saliometer bench --models runs/models --background noise` then explains every seed that is there;
    - `saliometer train my_task.py` trains and verifies a reasoning of your own, then `saliometer bench --task
      my_task.py`; docs/tasks.md shows one;
    - `saliometer train images --data photos/ --arch convnext_tiny` trains on photos/CLASS/*.jpg under COSE's
      operations and keeps ten checkpoints for `saliometer audit --metric cose`; docs/training.md. Networks: resnet20,
      convnext_tiny, vit_tiny, swin_tiny (32 to 64 pixels), resnet50, convnext_small, vit_b_16, swin_t (224).
    """
    given = {"data": data, "test": test, "init": init != "random", "recipe": recipe, "frozen": frozen is not None}
    given |= {"side": side, "amp": amp is not None}
    tasks = {"setting": setting, "background": background != "black", "robust": robust, "weights": weights}
    tasks |= {"loss": loss != "cross_entropy", "labelling": labelling != "paper", "sampler": sampler != "disjoint"}
    tasks |= {"restarts": restarts != 20, "ramp": ramp is not None}
    strange = [name for name, value in (tasks if task == "images" else given).items() if value]
    if strange:
        raise ValueError(f"train {task} has no --{strange[0]}: leave it out")
    if ramp is not None and not robust:
        raise ValueError(f"--ramp {ramp} is of --robust: add that, or leave it out")
    if task == "images":
        _train_images(
            data, arch, out, as_json, test=test, init=init, frozen=frozen, recipe=recipe, side=side, seed=seed,
            epochs=epochs, batch=batch, rate=rate, limit=limit, device=device, amp=amp,
        )  # fmt: skip
        return
    from saliometer.engine.condition import Condition
    from saliometer.engine.device import find
    from saliometer.engine.tasks import MODELS, known
    from saliometer.progress import progress
    from saliometer.registry import one_of

    about = known(task)
    chosen = [one_of("setting", name, about.settings) for name in setting] or list(about.settings)
    place, condition = str(find(device)), Condition(background, arch, robust)
    about.check(sampler, labelling, condition)
    if about.train is None:
        raise ValueError(f"the models of '{task}' have weights set by hand: there is nothing to train")
    folder = out or (about.shelf if about.task else MODELS)
    cards: dict[str, Any] = {}
    for name in chosen:
        with progress() as watch:
            cards[name] = about.train(
                name, folder, condition=condition, weights=weights, seed=seed, device=place, loss=loss,
                labelling=labelling, sampler=sampler, epochs=epochs, batch=batch, rate=rate, limit=limit,
                restarts=restarts, watch=watch, **({} if ramp is None else {"ramp": ramp}),
            )  # fmt: skip
        if not as_json:
            verdict = "accepted" if cards[name]["accepted"] else "NOT accepted"
            kept = folder / about.stem(name, condition, seed)
            print(f"{name}: {verdict}, accuracy {cards[name]['accuracy']:.4f}; {kept}.safetensors and .json")
    if as_json:
        print(json.dumps(cards, indent=1))
    if not all(card["accepted"] for card in cards.values()):
        raise typer.Exit(1)


def _train_images(data: str, arch: str, out: Path | None, as_json: bool, *, device: str, **asked: Any) -> None:
    from saliometer.engine.device import find
    from saliometer.progress import progress
    from saliometer.show_training import print_trained, trained

    with progress() as watch:
        card, folder = trained(data, arch, out, device=str(find(device)), watch=watch, say=say, **asked)
    if as_json:
        print(json.dumps(card | {"folder": str(folder)}, indent=1))
    else:
        print_trained(card, folder, data, asked["test"])

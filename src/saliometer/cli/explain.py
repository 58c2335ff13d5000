"""`saliometer explain`: pictures beside what each method says of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saliometer.cli.guard import plainly, say
from saliometer.cli.options import (
    Classes,
    Device,
    ImagePlace,
    Limit,
    Mean,
    ModelName,
    Multilabel,
    Output,
    Resize,
    Seed,
    Size,
    Std,
    Weights,
    numbers,
)  # fmt: skip

if TYPE_CHECKING:
    from saliometer.engine.pictured import Pictured

TEXTBOX = "without --model: the benchmark's models"


@plainly
def explain(
    method: Annotated[
        list[str],
        typer.Option(help="As for bench; repeat for several side by side. Default: integrated_gradients."),
    ] = [],  # noqa: B006
    model: ModelName = "",
    images: ImagePlace = "",
    target: Annotated[
        str, typer.Option(help="The class to explain: its number, predicted, or least (probable).")
    ] = "predicted",
    out: Annotated[Path, typer.Option(help="Where the picture goes: .png, .pdf or .svg.")] = Path("explained.png"),
    maps: Annotated[
        Path | None,
        typer.Option(
            help="Also keep the maps of all images, as `audit --maps NAME=file.npz` reads them; several methods in a "
            "file each, file-METHOD.npz."
        ),
    ] = None,
    weights: Weights = None,
    mean: Mean = "",
    std: Std = "",
    size: Size = 0,
    resize: Resize = 0,
    classes: Classes = 0,
    output: Output = "auto",
    multilabel: Multilabel = False,
    limit: Limit = 0,
    seed: Seed = 0,
    device: Device = "auto",
    setting: Annotated[
        str, typer.Option(rich_help_panel=TEXTBOX, help="Whose model is asked; simple-fr by default.")
    ] = "",
    sample: Annotated[
        int | None, typer.Option(rich_help_panel=TEXTBOX, help="The image of that number in the test stream, from 0.")
    ] = None,
    image: Annotated[
        Path | None, typer.Option(rich_help_panel=TEXTBOX, help="A picture of your own instead, 64x64.")
    ] = None,
) -> None:
    """Explain images with one method or several, and draw the maps over them.

    - `saliometer explain --model resnet50 --images photo.jpg --method grad_cam --method integrated_gradients` draws
      photo.jpg beside both maps for the predicted class, into explained.png;
    - `--images photos/` draws a row for each of up to 8 pictures, `--target 281` explains another class;
    - `--maps mine.npz` keeps the maps as numbers, and `saliometer audit --maps mine=mine.npz` judges them;
    - `saliometer explain --setting complex-cr2 --method grad_cam` asks one of the benchmark's own models.
    """
    from saliometer.engine.pictured import pictured, textbox
    from saliometer.progress import progress
    from saliometer.show_explained import check_places

    own = {
        "weights": weights, "mean": mean, "std": std, "size": size, "resize": resize, "classes": classes,
        "output": output != "auto", "multilabel": multilabel, "limit": limit, "images": images,
    }  # fmt: skip
    ours = {"setting": setting, "sample": sample is not None, "image": image}
    if strange := [name for name, value in (ours if model else own).items() if value]:
        rather = "leave it out" if model else "add --model, or leave it out"
        raise ValueError(f"--{strange[0]} goes {'without' if model else 'with'} --model: {rather}")
    if model and not images:
        raise ValueError("--model without --images: name a picture or a folder, or `photographs`")
    asked = method or ["integrated_gradients"]
    check_places(out, maps)
    with progress() as watch:
        if model:
            found = pictured(
                model, images, asked, target=target, every=maps is not None, weights=weights, limit=limit,
                multilabel=multilabel, seed=seed, device=device, watch=watch, mean=numbers("mean", mean),
                std=numbers("std", std), size=size, resize=resize, classes=classes, output=output,
            )  # fmt: skip
        else:
            found = textbox(setting or "simple-fr", sample or 0, image, asked, target, seed, device, watch)
    _show(found, out, maps)


def _show(found: "Pictured", out: Path, maps: Path | None) -> None:
    """Draw what there is, keep the maps, and say so; exit code 1 if a method failed."""
    from saliometer.engine.pictured import keep_maps
    from saliometer.show_explained import draw, told

    for warning in found.warnings:
        say(f"Warning: {warning}")
    if not found.maps:
        raise ValueError("; ".join(found.failed.values()))
    draw(found, out)
    for line in told(found):
        print(line)
    many = f" ({len(found.pixels)} of {len(found.ids) + found.left} images)" if found.left or len(found.ids) > 1 else ""
    print(f"Wrote {out}{many}: {', '.join(found.maps)} on {found.model}.")
    for label, path in (keep_maps(found, maps) if maps else {}).items():
        print(f"Wrote {path}: the maps of {label}; `saliometer audit --maps NAME={path}` judges them.")
    for why in found.failed.values():
        say(f"Failed: {why}")
    if found.failed:
        raise typer.Exit(1)

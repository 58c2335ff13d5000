"""`saliometer reproduce`: a paper's experiment and its claims."""

import importlib
from pathlib import Path
from typing import Annotated

import typer

from saliometer.cli.guard import plainly, say
from saliometer.cli.options import AsJson, Device, Seed, numbers

STUDIES = {  # and the options that only some have
    "cose": ("data", "init", "jobs"),
    "smerf": ("images", "models"),
    "zhang": ("model", "images", "labels", "weights", "mean", "std", "size", "resize"),
    "yona": ("digits", "photos", "weights", "jobs"),
}


@plainly
def reproduce(
    study: Annotated[
        str,
        typer.Argument(
            help="The paper: smerf (sanity simulations, the benchmark's own), zhang (ten methods over fidelity, "
            "robustness, complexity), cose (do maps stay when the prediction stays, and move when it moves), or yona "
            "(sanity checks by randomisation, done causally)."
        ),
    ],
    scale: Annotated[
        str,
        typer.Option(
            help="smoke (minutes), quick (more minutes; cose and yona want a GPU) or paper (its own sizes, hours of a "
            "GPU); yona has cpu too (verdicts from 2 cores in an hour or two)."
        ),
    ] = "smoke",
    model: Annotated[str, typer.Option(help="zhang: another model than the scale's own, as for audit.")] = "",
    images: Annotated[
        str,
        typer.Option(
            help="zhang: your images, as for audit; photographs of installed packages if none. smerf: a folder of "
            "photographs for natural backgrounds."
        ),
    ] = "",
    labels: Annotated[Path | None, typer.Option(help="zhang: a CSV with columns file and class_index.")] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="zhang: weights for --model, as for audit. yona: of the network fine-tuned on photographs."),
    ] = None,
    mean: Annotated[str, typer.Option(help="zhang: the input mean of a --model of your own, as for audit.")] = "",
    std: Annotated[str, typer.Option(help="zhang: its standard deviation.")] = "",
    size: Annotated[
        int, typer.Option(help="zhang: the side of the model's input; 0 as the scale or the weights have it.")
    ] = 0,
    resize: Annotated[
        int, typer.Option(help="zhang: the shorter side before the centre is cut out, --size for no cut; 0 as usual.")
    ] = 0,
    digits: Annotated[
        str,
        typer.Option(
            help="yona: a folder with MNIST as train and test npz files, or mnist:ROOT for a torchvision root; those "
            "of scikit-learn if none."
        ),
    ] = "",
    photos: Annotated[
        str,
        typer.Option(help="yona: a folder or zip of ten classes as TinyImageNet has them; pairs of digits if none."),
    ] = "",
    models: Annotated[
        Path | None,
        typer.Option(
            help="smerf: a folder that `saliometer train` wrote, for conditions whose models do not ship; --scale "
            "paper trains what it lacks."
        ),
    ] = None,
    data: Annotated[
        list[str],
        typer.Option(help="cose: a data set, as for `train images`; repeat for several. smoke draws its own."),
    ] = [],  # noqa: B006
    init: Annotated[
        list[str],
        typer.Option(help="cose: ARCH=FILE, further first weights of a network, such as vit_b_16=dino.pth; repeat."),
    ] = [],  # noqa: B006
    jobs: Annotated[
        int, typer.Option(help="cose, yona: so many processes work on (yona: train) models side by side; 0 is one.")
    ] = 0,
    seed: Seed = 0,
    device: Device = "auto",
    out: Annotated[Path | None, typer.Option(help="The study's folder; the same command goes on there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Rerun a paper's experiment and print which of its claims hold.

    - `saliometer reproduce smerf` explains the seven models that ship, in minutes; `--models DIR` adds backgrounds,
      networks and robust models that you trained, `--scale paper` trains and runs everything;
    - `saliometer reproduce zhang` runs four photographs at 64 px in a few minutes; `--scale quick --images FOLDER` is
      the study in earnest;
    - `saliometer reproduce cose` trains a ConvNet and a ViT on TextBox and compares their maps, in minutes; `--scale
      quick --data cifar10:ROOT` is four networks on CIFAR-10, `--jobs 4` for a GPU.
    - `saliometer reproduce yona` trains small networks on scikit-learn's digits, in minutes; `--scale quick --digits
      MNIST --photos TINYIMAGENET` is the study in earnest, in minutes of a GPU.

    Tables, figures and a report go to the study's folder.
    """
    from saliometer.pages import written as write_report
    from saliometer.progress import progress
    from saliometer.registry import one_of
    from saliometer.studies._claims import as_json as claims_json
    from saliometer.studies._claims import print_claims

    name = one_of("study", study, STUDIES)
    given = {
        "model": model, "images": images, "labels": labels, "weights": weights,
        "mean": numbers("mean", mean), "std": numbers("std", std), "size": size, "resize": resize, "models": models,
        "data": data, "init": init, "jobs": jobs, "digits": digits, "photos": photos,
    }  # fmt: skip
    asked = {option: value for option, value in given.items() if option in STUDIES[name]}
    if strange := [option for option, value in given.items() if value and option not in asked]:
        raise ValueError(f"the study {name} has no --{strange[0]}: leave it out")
    folder = out or Path("runs") / f"{name}-{scale}"
    if (folder / "run.json").is_file():
        raise ValueError(f"'{folder}' holds a run, and a study would write over its report: choose another --out")
    rerun = importlib.import_module(f"saliometer.studies.{name}").reproduce
    with progress() as watch:
        found = rerun(folder, scale, device=device, seed=seed, say=say, watch=watch, **asked)
    claims, written = found.claims(), [*found.write(), write_report([folder])]
    if as_json:
        print(claims_json(claims))
    else:
        print_claims(claims)
        for sentence in found.headline() if name == "yona" else ():
            print(sentence)
        print("Wrote " + ", ".join(map(str, written)) + ".")
    for failed, why in found.failed.items():
        say(f"Failed: {failed}: {why}")
    if found.failed:
        raise typer.Exit(1)

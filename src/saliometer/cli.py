"""The command line: each command is a few lines over the functions that do the work."""

import functools
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer

P = ParamSpec("P")
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Measures whether saliency maps tell the truth.\n\n"
    "Start with `saliometer bench`: it scores every quick method on seven models whose reasoning is known, and writes "
    "a report. Your own method joins with `saliometer bench --method my_file.py:my_method`.\n\n"
    "`saliometer audit --model resnet50 --images photos/` says which methods hold up on your model and images.",
)

Settings = Annotated[
    list[str], typer.Option("--setting", help="A way of reasoning, e.g. complex-cr2; repeat for several. Default: all.")
]
Seed = Annotated[int, typer.Option(help="Another seed for noise and ties (audit), images (bench), weights (train).")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Limit = Annotated[int, typer.Option(help="At most this many samples (of each setting); 0 for all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Sampler = Annotated[str, typer.Option(help="disjoint, or authors (objects may overlap).")]
Labelling = Annotated[str, typer.Option(help="paper, or authors (box branch of the CR settings inverted).")]
Background = Annotated[
    str,
    typer.Option(
        help="Behind the objects: black, noise, natural (pieces of the few photographs that installed packages carry), "
        "natural:FOLDER, or your own as `file.py:name`. `natural(photographs=shared)`: train and test share them."
    ),
]
Arch = Annotated[
    str,
    typer.Option(
        help="Another network than the setting's own: alexnet, vgg16, `vgg16(frozen=true)` (ImageNet's features), "
        "resnet18, vit_small."
    ),
]
Robust = Annotated[bool, typer.Option("--robust", help="Models trained further on attacked images (PGD).")]
Resize = Annotated[
    int,
    typer.Option(help="The shorter side before the centre is cut out; 0 as the weights have it, --size for no cut."),
]
IMAGES = "train images"
STUDIES = {  # and the options that only some have
    "cose": ("data", "init", "jobs"),
    "smerf": ("images", "models"),
    "zhang": ("model", "images", "labels", "weights", "resize"),
    "yona": ("digits", "photos", "weights"),
}
RunFolder = Annotated[Path, typer.Argument(help="A run's folder, as `bench` printed it.", show_default=False)]


def _plainly(command: Callable[P, None]) -> Callable[P, None]:
    """One clear sentence for a user's mistake instead of a traceback (SALIOMETER_DEBUG=1 shows it); exit code 2."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except typer.Exit:
            raise
        except BrokenPipeError:  # the reader of our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            _say("\nStopped. What is finished is kept: the same command goes on from there.")
            raise typer.Exit(130) from None
        except (ValueError, LookupError, OSError, MemoryError, RuntimeError) as error:
            if os.environ.get("SALIOMETER_DEBUG"):
                raise
            _say(f"Error: {error}")
            raise typer.Exit(2) from None

    return guarded


def _say(text: str) -> None:
    print(text, file=sys.stderr)


@app.command()
@_plainly
def bench(
    method: Annotated[
        list[str],
        typer.Option(
            help="A name, one with parameters like `smooth_grad(draws=50)`, or your own as `file.py:name`; repeat for "
            "several, `all` for every one. If none or only your own are given, the quick ones run beside them (up to "
            "60 passes an image). Controls always do."
        ),
    ] = [],  # noqa: B006
    preset: Annotated[
        str, typer.Option(help="A paper's methods with its parameters: smerf, zhang or cose; --method adds to them.")
    ] = "",
    budget: Annotated[
        int, typer.Option(help="Also score methods that sample with so many passes an image: a column of its own.")
    ] = 0,
    seeds: Annotated[
        int, typer.Option(help="Score methods that draw at random with so many seeds of their own: their spread.")
    ] = 1,
    task: Annotated[
        str,
        typer.Option(
            help="textbox, handmade (networks with weights set by hand), shape_digits and its like (docs/tasks.md), or "
            "your own as `my_task.py`."
        ),
    ] = "textbox",
    setting: Settings = [],  # noqa: B006
    per_bucket: Annotated[int, typer.Option(help="Images of each bucket (kind of image).")] = 20,
    definition: Annotated[
        list[str],
        typer.Option(
            help="How a map is scored: clean (all attribution, sign ignored), clean_positive (positive only), authors "
            "(as the code of the SMERF paper does, bugs included); repeat for several."
        ),
    ] = ["clean"],  # noqa: B006
    region: Annotated[str, typer.Option(help="What counts as an object: its box, or its ink.")] = "box",
    target: Annotated[str, typer.Option(help="The class to explain: predicted, or the true label.")] = "predicted",
    maps: Annotated[list[str], typer.Option(help="NAME=file.npz: maps made elsewhere; see --export-images.")] = [],  # noqa: B006
    export_images: Annotated[
        Path | None, typer.Option(help="Write images, targets, ids and models to this folder instead of scoring.")
    ] = None,
    models: Annotated[
        Path | None, typer.Option(help="A folder of models that `saliometer train` wrote; all seeds there are taken.")
    ] = None,
    background: Background = "black",
    arch: Arch = "",
    robust: Robust = False,
    model_seed: Annotated[
        list[int], typer.Option(help="Only the models trained with this seed; repeat for several.")
    ] = [],  # noqa: B006
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train the models anew instead of using the shipped ones.")
    ] = False,
    sampler: Sampler = "disjoint",
    labelling: Labelling = "paper",
    seed: Seed = 0,
    device: Device = "auto",
    batch_size: Annotated[int, typer.Option(help="Images that go through the network at once; 0 finds it.")] = 0,
    memory: Annotated[float, typer.Option(help="The most memory to take, in GiB; 0 takes what is free.")] = 0.0,
    limit: Limit = 0,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; the same command goes on there. Default: under runs/.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score saliency methods against seven models whose reasoning is known, and write a report.

    The score is PAFL, the share of a map's attribution on the objects that decide the label: 100 is perfect.

    - `saliometer bench` scores every quick method, `--method all` every one, slow ones too;
    - `saliometer bench --method my_file.py:my_method` puts yours beside them, for any callable
      `(model, images, targets) -> maps`;
    - `saliometer bench --per-bucket 2 --setting simple-fr` is a first try of a few seconds.
    """
    from saliometer.engine.bench import bench as run_bench
    from saliometer.progress import progress

    settings, definitions = tuple(setting), tuple(definition)
    if export_images:
        usual = not (models or retrain or arch or robust) and background == "black" and task == "textbox"
        if method or preset or maps or out or not usual:
            raise ValueError(
                "--export-images writes the shipped benchmark and scores nothing: leave out --method, "
                "--preset, --out, --models, --retrain and --task"
            )
        from saliometer.engine.export import export
        from saliometer.engine.request import Request

        request = Request(settings, per_bucket, limit, definitions, region, target, seed, sampler, labelling)
        with progress() as watch:
            left_out = export(request, export_images, watch)
        print(
            f"Wrote {export_images}/ (README.md there says how to score what comes back)."
            + f" {left_out}" * bool(left_out)
        )
        return
    with progress() as watch:
        outcome = run_bench(
            method, task=task, preset=preset, budget=budget, seeds=seeds, settings=settings, per_bucket=per_bucket,
            limit=limit, definitions=definitions, region=region, target=target, seed=seed, sampler=sampler,
            labelling=labelling, device=device, out=out, maps=_named_files(maps), models=models, background=background,
            arch=arch, robust=robust, model_seeds=model_seed, retrain=retrain, batch_size=batch_size, memory=memory,
            watch=watch,
        )  # fmt: skip
    from saliometer.report.page import write as write_report
    from saliometer.show import as_dict, show

    page = write_report(outcome.run) if outcome.run.finished_any() else None
    if as_json:
        print(json.dumps(as_dict(outcome, page), indent=1))
    else:
        show(outcome, page)
    if outcome.failed or outcome.broken():
        raise typer.Exit(1)


@app.command()
@_plainly
def identify(
    method: Annotated[
        list[str], typer.Option(help="As for bench; repeat for several, `all` for every one. Controls always run.")
    ] = [],  # noqa: B006
    preset: Annotated[str, typer.Option(help="A paper's methods with its parameters: smerf, zhang or cose.")] = "",
    per_bucket: Annotated[int, typer.Option(help="Images of each bucket (kind of image), 2 or more.")] = 20,
    models: Annotated[Path | None, typer.Option(help="A folder of models that `saliometer train` wrote.")] = None,
    model_seed: Annotated[
        list[int], typer.Option(help="Only the models trained with this seed; repeat for several.")
    ] = [],  # noqa: B006
    seed: Seed = 0,
    device: Device = "auto",
    batch_size: Annotated[int, typer.Option(help="Images that go through the network at once; 0 finds it.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; the same command goes on there. Default: under runs/.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how well each method's maps alone tell the seven models apart, shown the same images.

    Chance is 1/7. `saliometer rows RUN` shows the shares of attribution that this is made from.
    """
    from saliometer.engine.identify import identify as run_identify
    from saliometer.progress import progress
    from saliometer.show_identify import as_dict, show

    with progress() as watch:
        found = run_identify(
            method, preset=preset, per_bucket=per_bucket, seed=seed, device=device, out=out, models=models,
            model_seeds=model_seed, batch_size=batch_size, watch=watch,
        )  # fmt: skip
    if as_json:
        print(json.dumps(as_dict(found), indent=1))
    else:
        show(found)
    if found.failed:
        raise typer.Exit(1)


@app.command()
@_plainly
def audit(
    model: Annotated[
        str,
        typer.Option(
            help="A torchvision or timm name (`resnet50`, `timm:vit_tiny_patch16_224`), `efficientnet_lite0`, one "
            "of ours as `textbox:simple-fr`, a folder that `saliometer train images` wrote, or your own as "
            "`module.py:build`.",
            show_default=False,
        ),
    ],
    images: Annotated[
        str,
        typer.Option(
            help="A folder of pictures, a folder per class, a CSV (columns file, label, mask), an npz, a "
            "torchvision data set as `cifar10:ROOT`, or `photographs`, a few that installed packages carry.",
            show_default=False,
        ),
    ],
    labels: Annotated[Path | None, typer.Option(help="A CSV with columns file and class_index (or label).")] = None,
    masks: Annotated[
        Path | None,
        typer.Option(help="A folder of masks named like the pictures: 255 the object, 0 not, between unknown."),
    ] = None,
    method: Annotated[
        list[str],
        typer.Option(help="As for bench; repeat for several, `all` for every one. Controls always come along."),
    ] = [],  # noqa: B006
    metric: Annotated[
        list[str],
        typer.Option(help="A metric, e.g. `insertion(steps=224)`; repeat for several. `saliometer list metrics`."),
    ] = [],  # noqa: B006
    preset: Annotated[str, typer.Option(help="A paper's methods with its parameters: smerf, zhang or cose.")] = "",
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Every method and metric at full defaults but attack_sensitivity, cose, mprt; see the estimate first.",
        ),
    ] = False,
    target: Annotated[
        str, typer.Option(help="The class to explain: predicted, label, or least (probable).")
    ] = "predicted",
    normalisation: Annotated[
        list[str],
        typer.Option(
            help="How maps are brought to [0, 1]: abs_max_minmax, abs_joint_minmax, signed_max_minmax or "
            "signed_joint_minmax; repeat for several, then see `compare-definitions`."
        ),
    ] = ["abs_max_minmax"],  # noqa: B006
    constant: Annotated[str, typer.Option(help="What a constant map counts as: invalid, ones or zeros.")] = "invalid",
    maps: Annotated[
        list[str],
        typer.Option(
            help="NAME=file.npz with `maps` (N, H, W) at the model's input size, and `ids` (file names) if in another "
            "order."
        ),
    ] = [],  # noqa: B006
    checkpoints: Annotated[
        list[str],
        typer.Option(
            help="For cose: checkpoints of the model's training, a folder, file or pattern; repeat for several. Read "
            "without running code."
        ),
    ] = [],  # noqa: B006
    weights: Annotated[
        Path | None, typer.Option(help="Your weights: safetensors or a state dict, read without running code.")
    ] = None,
    mean: Annotated[str, typer.Option(help="The model's input mean, e.g. 0.485,0.456,0.406.")] = "",
    std: Annotated[str, typer.Option(help="The model's input standard deviation.")] = "",
    size: Annotated[int, typer.Option(help="The side of the model's input; 0 takes it from the weights.")] = 0,
    resize: Resize = 0,
    classes: Annotated[int, typer.Option(help="How many classes to build the model with; 0 as its weights.")] = 0,
    output: Annotated[
        str,
        typer.Option(
            help="What the model gives out: logit, probability, or auto, which refuses what looks like probabilities."
        ),
    ] = "auto",
    multilabel: Annotated[bool, typer.Option("--multilabel", help="Each class by itself, with a sigmoid.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    batch_size: Annotated[int, typer.Option(help="Images that go through the network at once; 0 finds it.")] = 0,
    memory: Annotated[float, typer.Option(help="The most memory to take, in GiB; 0 takes what is free.")] = 0.0,
    limit: Limit = 0,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; the same command goes on there. Default: under runs/.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which saliency methods hold up on your own model and images, and write a report.

    - `saliometer audit --model resnet50 --images photos/` takes the quick methods and nine metrics;
    - `--metric road --metric monotonicity` asks for others, `--full` for all;
    - `--method my_file.py:my_method` puts yours beside the known ones.
    """
    from saliometer.engine.audit import audit as run_audit
    from saliometer.progress import progress
    from saliometer.report.page import write as write_report
    from saliometer.show_audit import announce, show

    with progress() as watch:
        outcome = run_audit(
            model, images, labels, methods=method, metrics=metric, target=target, full=full, preset=preset,
            normalisations=normalisation, constant=constant, maps=_named_files(maps), masks=masks,
            checkpoints=checkpoints or None, weights=weights,
            mean=_numbers("mean", mean), std=_numbers("std", std), size=size, resize=resize, classes=classes,
            output=output, multilabel=multilabel, limit=limit, seed=seed, device=device, batch_size=batch_size,
            memory=memory, out=out, watch=watch, tell=lambda *about: _say(announce(*about)),
        )  # fmt: skip
    page = write_report(outcome.run) if outcome.run.finished_any() else None
    if as_json:
        print(json.dumps({**outcome.as_dict(), "report": str(page) if page else None}, indent=1))
    else:
        show(outcome, page)
    if outcome.failed:
        raise typer.Exit(1)


def _numbers(name: str, text: str) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in text.split(",")) if text else None
    except ValueError:
        raise ValueError(f"--{name} {text}: wanted numbers like 0.485,0.456,0.406") from None


@app.command()
@_plainly
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
    resize: Resize = 0,
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
        int, typer.Option(help="cose: so many models are worked on at once, in processes of their own; 0 is one.")
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
        "model": model, "images": images, "labels": labels, "weights": weights, "resize": resize, "models": models,
        "data": data, "init": init, "jobs": jobs, "digits": digits, "photos": photos,
    }  # fmt: skip
    asked = {option: value for option, value in given.items() if option in STUDIES[name]}
    if strange := [option for option, value in given.items() if value and option not in asked]:
        raise ValueError(f"the study {name} has no --{strange[0]}: leave it out")
    folder = out or Path("runs") / f"{name}-{scale}"
    rerun = importlib.import_module(f"saliometer.studies.{name}").reproduce
    with progress() as watch:
        found = rerun(folder, scale, device=device, seed=seed, say=_say, watch=watch, **asked)
    claims, written = found.claims(), [*found.write(), write_report([folder])]
    if as_json:
        print(claims_json(claims))
    else:
        print_claims(claims)
        for sentence in found.headline() if name == "yona" else ():
            print(sentence)
        print("Wrote " + ", ".join(map(str, written)) + ".")
    for failed, why in found.failed.items():
        _say(f"Failed: {failed}: {why}")
    if found.failed:
        raise typer.Exit(1)


@app.command(name="compare-definitions")
@_plainly
def compare_definitions(
    run: RunFolder,
    metric: Annotated[list[str], typer.Option(help="Only these metrics; repeat for several.")] = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Show how the order of methods moves between the definitions of a metric that a run holds.

    Make such a run with `saliometer audit --normalisation abs_max_minmax --normalisation signed_joint_minmax`, with one
    metric asked for twice (`--metric "average_drop(space=raw)" --metric "average_drop(space=normalised)"`), or with
    `saliometer bench --definition clean --definition authors`.
    """
    from saliometer.engine.run import opened
    from saliometer.judgement import columns, moves
    from saliometer.show_audit import show_moves

    found = moves(columns(opened(run).rows(), metric))
    if not found:
        raise ValueError(f"the run '{run}' holds one definition of each metric: run it with several, see --help")
    if as_json:
        print(json.dumps([vars(move) for move in found], indent=1))
    else:
        show_moves(found)


def _named_files(given: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise ValueError(f"--maps {text}: wanted NAME=file.npz")
        if name in found:
            raise ValueError(f"--maps {text}: the name '{name}' is there twice")
        found[name] = Path(path)
    return found


@app.command()
@_plainly
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
    tasks |= {"restarts": restarts != 20}
    strange = [name for name, value in (tasks if task == "images" else given).items() if value]
    if strange:
        raise ValueError(f"train {task} has no --{strange[0]}: leave it out")
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
                restarts=restarts, watch=watch,
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
        card, folder = trained(data, arch, out, device=str(find(device)), watch=watch, say=_say, **asked)
    if as_json:
        print(json.dumps(card | {"folder": str(folder)}, indent=1))
    else:
        print_trained(card, folder, data, asked["test"])


@app.command(name="list")
@_plainly
def list_(
    what: Annotated[
        str, typer.Argument(help="methods, metrics, tasks, models or settings; or one name, for all about it.")
    ] = "methods",
    as_json: AsJson = False,
) -> None:
    """List what there is, with a line on each: `saliometer list`, `saliometer list grad_cam`."""
    from saliometer.catalogue import catalogue, print_catalogue

    entries = catalogue(what)
    if as_json:
        print(json.dumps(entries, indent=1))
    else:
        print_catalogue(what, entries)


@app.command()
@_plainly
def explain(
    method: Annotated[
        str, typer.Option(help="A method, as for bench; `saliometer list` shows them.")
    ] = "integrated_gradients",
    setting: Annotated[str, typer.Option(help="Whose model is asked.")] = "simple-fr",
    sample: Annotated[int, typer.Option(help="The image of that number in the test stream.")] = 0,
    image: Annotated[Path | None, typer.Option(help="A picture of your own instead, 64x64.")] = None,
    target: Annotated[int | None, typer.Option(help="The class to explain; the predicted one by default.")] = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("explained.png"),
) -> None:
    """Explain one image with one method, and draw the map over it."""
    from saliometer.show import draw_explanation

    print(draw_explanation(method, setting, sample, image, target, seed, out))


@app.command()
@_plainly
def show(run: RunFolder, as_json: AsJson = False) -> None:
    """Print what a run found: the verdict, the scoreboard, warnings and failures.

    - `saliometer show RUN` shows a benchmark, an audit, or a study with its claims, finished or not;
    - `saliometer show RUN | less` and `> file.txt` give plain text, `--json` the same for programs.
    """
    from saliometer import show as show_bench
    from saliometer import show_audit, show_identify, show_study
    from saliometer.engine.identify import Identified
    from saliometer.engine.judged import Judged
    from saliometer.state import is_study, outcome_of, run_in

    view: Any = show_study
    about: tuple[Any, ...] = (run,)
    if not is_study(run):
        outcome = outcome_of(run_in(run))
        view = show_audit if isinstance(outcome, Judged) else show_bench
        view = show_identify if isinstance(outcome, Identified) else view
        about = outcome, run / "report.html" if (run / "report.html").is_file() else None
    if as_json:
        print(json.dumps(view.as_dict(*about), indent=1))
    else:
        view.show(*about)


@app.command()
@_plainly
def report(
    run: Annotated[
        list[Path],
        typer.Argument(
            help="A run's or study's folder; several runs that measured the same go on one page.", show_default=False
        ),
    ],
    compare: Annotated[
        Path | None, typer.Option(help="Another run: where this one is better, worse, or no different.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where the page goes; by default report.html in the (first) run's folder.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write a run's report again, from its rows and thumbnails alone; or one of several runs.

    - `saliometer report RUN --open` writes RUN/report.html and shows it;
    - `saliometer report RUN1 RUN2` puts the methods of both in one scoreboard (RUN1/report-merged.html), where both
      measured the same: task or images, weights, metrics, target, seed;
    - `saliometer report RUN --compare OTHER` adds each method's difference to another run, of another model, images or
      version (RUN/report-compared.html).
    """
    from saliometer.pages import written

    page = written(run, compare, out)
    print(page)
    if open_:
        _open(page.resolve().as_uri())


@app.command()
@_plainly
def serve(
    runs: Annotated[Path, typer.Argument(help="A folder with runs in it, at any depth.")] = Path("runs"),
    port: Annotated[int, typer.Option(help="The port to listen on; 0 for any that is free.")] = 8420,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """List every run in a folder on a page of this machine, with search and a report of each.

    `saliometer serve runs/` answers on http://127.0.0.1:8420, to this machine alone. Reports are made when they are
    asked for, and again when rows have come since. Ctrl-C stops it.
    """
    from saliometer.serve import serve as run_server

    run_server(runs, port, lambda url: _open(url) if open_ else None)


def _open(url: str) -> None:
    """Show a page in the browser; without one, say where it is."""
    import webbrowser

    try:
        shown = webbrowser.open(url)
    except webbrowser.Error:
        shown = False
    if not shown:
        _say(f"No browser was found here: open {url} in one.")


@app.command()
@_plainly
def rows(
    run: RunFolder,
    sql: Annotated[str | None, typer.Option(help="A query over the table `rows`.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the result here as CSV.")] = None,
    limit: Limit = 0,
    as_json: AsJson = False,
) -> None:
    """Look into a run's rows: `saliometer rows RUN --sql "select method, avg(value) from rows group by all"`."""
    from saliometer.engine.run import opened
    from saliometer.show import print_table, query

    found = query(opened(run).rows(), sql, limit)
    if csv:
        from pyarrow.csv import write_csv

        csv.parent.mkdir(parents=True, exist_ok=True)
        write_csv(found, csv)
        print(f"Wrote {found.num_rows} rows to {csv}.")
    elif as_json:
        print(json.dumps(found.to_pylist(), indent=1, default=str))
    else:
        print_table(found)


def main() -> None:
    """The entry point of the `saliometer` command."""
    app()

"""`saliometer audit`: methods on the user's own model and images."""

import json
from pathlib import Path
from typing import Annotated

import typer

from saliometer.cli.guard import plainly, say
from saliometer.cli.options import (
    AsJson,
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
    named_files,
    numbers,
)  # fmt: skip


@plainly
def audit(
    model: ModelName,
    images: ImagePlace,
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
    weights: Weights = None,
    mean: Mean = "",
    std: Std = "",
    size: Size = 0,
    resize: Resize = 0,
    classes: Classes = 0,
    output: Output = "auto",
    multilabel: Multilabel = False,
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
            normalisations=normalisation, constant=constant, maps=named_files(maps), masks=masks,
            checkpoints=checkpoints or None, weights=weights,
            mean=numbers("mean", mean), std=numbers("std", std), size=size, resize=resize, classes=classes,
            output=output, multilabel=multilabel, limit=limit, seed=seed, device=device, batch_size=batch_size,
            memory=memory, out=out, watch=watch, tell=lambda *about: say(announce(*about)),
        )  # fmt: skip
    page = write_report(outcome.run) if outcome.run.finished_any() else None
    if as_json:
        print(json.dumps({**outcome.as_dict(), "report": str(page) if page else None}, indent=1))
    else:
        show(outcome, page)
    if outcome.failed:
        raise typer.Exit(1)

"""`saliometer bench`: methods against models whose reasoning is known."""

import json
from pathlib import Path
from typing import Annotated

import typer

from saliometer.cli.guard import plainly
from saliometer.cli.options import (
    Arch,
    AsJson,
    Background,
    Device,
    Labelling,
    Limit,
    Robust,
    Sampler,
    Seed,
    Settings,
    named_files,
)  # fmt: skip


@plainly
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
            labelling=labelling, device=device, out=out, maps=named_files(maps), models=models, background=background,
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

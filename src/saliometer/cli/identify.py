"""`saliometer identify`: can the models be told apart by one method's maps."""

import json
from pathlib import Path
from typing import Annotated

import typer

from saliometer.cli.guard import plainly
from saliometer.cli.options import AsJson, Device, Seed


@plainly
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

    Chance is 1/7. `saliometer identify --method grad_cam --per-bucket 5` is a first try; `saliometer rows RUN` shows
    the shares of attribution that this is made from.
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

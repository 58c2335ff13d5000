"""The benchmark for other tools: images, targets and ids as npz, models as safetensors and ONNX."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import torch

from saliometer.engine import shipped
from saliometer.engine.answer import Answers
from saliometer.engine.request import Request, fixed
from saliometer.engine.run import Unit
from saliometer.types import Watch

GUIDE = """# The TextBox benchmark of saliometer, {version}

- `images.npz`: for every setting, `SETTING.images` (N, 3, 64, 64) float32 in [0, 1], as the model takes them;
  `SETTING.targets` (N,) int64, the class to explain ({target}); `SETTING.ids` (N,), the samples' names.
- `models/SETTING.safetensors` (float16, load as float32; architecture in `SETTING.json`) and `models/SETTING.onnx`
  (input `images`, output `logits`){onnx}.

Make one map per image and setting, signed or not, and save them with numpy as an npz of arrays named like the settings:

    np.savez_compressed("mine.npz", **{{setting: maps}})   # maps (N, 64, 64), (N, 1, 64, 64) or (N, 3, 64, 64)

in the order of the images here, or in any order or number with `SETTING.ids` beside them. Then

    saliometer bench --maps mine=mine.npz{options}
"""


def export(request: Request, folder: Path, watch: Watch = lambda share, text: None) -> str:
    """Write everything to `folder`; returns '' or what was left out and why."""
    (folder / "models").mkdir(parents=True, exist_ok=True)
    lacking = [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]
    arrays = {}
    for number, setting in enumerate(request.settings):
        watch(number / len(request.settings), f"writing {setting}")
        model = shipped.load(setting)
        samples = request.samples(Unit(setting, 0, request.count(setting)))
        answers = Answers(model, torch.device("cpu"))
        targets = answers.predicted(samples.batch.images) if request.target == "predicted" else samples.labels
        arrays[f"{setting}.images"] = samples.batch.images.numpy()
        arrays[f"{setting}.targets"] = targets.numpy()
        arrays[f"{setting}.ids"] = np.array(samples.ids)
        for ending in (".safetensors", ".json"):
            shutil.copyfile(shipped.FOLDER / (setting + ending), folder / "models" / (setting + ending))
        if not lacking:
            _onnx(model.net, samples.batch.images[:2], folder / "models" / f"{setting}.onnx")
    np.savez_compressed(folder / "images.npz", **arrays)  # type: ignore[arg-type]
    left_out = (
        f"no ONNX files: {' and '.join(lacking)} not installed (pip install 'saliometer[onnx]')" if lacking else ""
    )
    usual = Request()
    options = "".join(f" --setting {setting}" for setting in request.settings if request.settings != usual.settings)
    for name in ("per_bucket", "seed", "limit", "target", "sampler", "labelling"):
        if getattr(request, name) != getattr(usual, name):
            options += f" --{name.replace('_', '-')} {getattr(request, name)}"
    version = json.dumps(fixed(request, shipped.FOLDER)["task"]).strip('"')
    guide = GUIDE.format(
        version=version, target=request.target, onnx=f": {left_out}" if left_out else "", options=options
    )
    (folder / "README.md").write_text(guide)
    return left_out


def _onnx(net: torch.nn.Module, example: torch.Tensor, path: Path) -> None:
    torch.onnx.export(
        net,
        (example,),
        path,
        input_names=["images"],
        output_names=["logits"],
        dynamic_shapes=({0: torch.export.Dim("count")},),
        dynamo=True,
        external_data=False,
        verbose=False,
    )

"""What is trained on, in a word: a folder, arrays, a data set of torchvision's, or a setting of TextBox."""

import torch
from torch import Tensor

from saliometer.images.labelled import Data, read_data
from saliometer.registry import Spec, Value
from saliometer.tasks.textbox import SETTINGS, draw, labels_of
from saliometer.types import Watch

__all__ = ["Data", "data_given"]
TEXTBOX = "textbox:"
IMAGES: dict[str, Value] = {"train": 4000, "test": 1000, "background": "black"}


def data_given(
    text: str, side: int = 0, *, test: str = "", resize: int = 0, seed: int = 0,
    watch: Watch = lambda share, text: None,
) -> Data:  # fmt: skip
    """The data set that `text` names: `folder/`, `train.npz`, `cifar10:ROOT`, `textbox:complex-fr(train=2000)`.

    `test` is a place of its own for the test part. Squares of one size up to `side` stay as they are; others are
    resized (shorter side to `resize` or `side`) and their middle is cut out. `seed` is for splits that nobody gives,
    and for TextBox.
    """
    if not text.startswith(TEXTBOX):
        return read_data(text, side, test=test, resize=resize, seed=seed, watch=watch)
    if test:
        raise ValueError("a TextBox setting has test images of its own: leave the other place out")
    return _textbox(Spec.parse(text), seed)


def _textbox(spec: Spec, seed: int) -> Data:
    setting = spec.name.removeprefix(TEXTBOX)
    if setting not in SETTINGS:
        raise LookupError(f"there is no TextBox setting '{setting}'. There are: {', '.join(SETTINGS)}.")
    asked = IMAGES | dict(spec.params)
    if strange := sorted(set(asked) - set(IMAGES)):
        raise LookupError(f"'{spec}': there is no parameter '{strange[0]}'. There are: {', '.join(IMAGES)}.")

    def part(name: str) -> tuple[Tensor, Tensor]:
        if not isinstance(asked[name], int) or int(asked[name]) < 2:
            raise ValueError(f"'{spec}': {name}={asked[name]}, wanted a whole number of 2 or more")
        scene = draw(setting, name, torch.arange(int(asked[name])), seed, background=str(asked["background"]))
        parts = (scene[slice(i, i + 512)].images() for i in range(0, len(scene.buckets), 512))
        levels = [(images * 255).round().to(torch.uint8) for images in parts]
        return torch.cat(levels), labels_of(setting, scene.buckets)

    return Data(setting, *part("train"), *part("test"), classes=("0", "1"))

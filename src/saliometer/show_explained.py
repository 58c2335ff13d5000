"""What `saliometer explain` draws: pictures beside every method's map of them, coloured as in the report."""

import os
import textwrap
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from saliometer.files import put

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saliometer.engine.pictured import Pictured

Array = npt.NDArray[Any]
PANEL, LINE = 2.5, 0.14  # inches: the side of one picture, a line of the words above it
FAINT = 0.35  # how much of a picture shines through where a map says nothing
FULL = 0.995  # the strongest of so many pixels and all beyond have full colour: a lone pixel must not hide the rest
TICKS = (-1.0, -0.25, 0.0, 0.25, 1.0)
LEGEND = "against the class   ←   share of the map's strongest values (top 0.5 %)   →   for the class"


def draw(found: "Pictured", out: Path) -> None:
    """A row for each image: the image, then each method's map over it; of a single method also the map alone."""
    data = BytesIO()
    _drawn(found).savefig(data, dpi=150, format=out.suffix.lstrip(".").lower())
    put(out, data.getvalue())


def check_places(out: Path, maps: Path | None) -> None:
    """Before anything is computed: can a picture, and maps, be written there?"""
    from matplotlib.figure import Figure

    if out.suffix.lstrip(".").lower() not in Figure().canvas.get_supported_filetypes():
        raise ValueError(f"--out {out}: wanted the name of a picture, such as explained.png, .pdf or .svg")
    if maps is not None and maps.suffix != ".npz":
        raise ValueError(f"--maps {maps}: wanted the name of a file that ends in .npz")
    for place in filter(None, (out, maps)):
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir() or not os.access(place.parent, os.W_OK):
            raise ValueError(f"'{place}' cannot be written: wanted a file in a folder that can be written to")


def _drawn(found: "Pictured") -> "Figure":
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    columns = 3 if len(found.maps) == 1 else 1 + len(found.maps)
    height, width = next(iter(found.pixels.values())).shape[1:]
    words = {place: [caption(found, place), *_titles(found, place)] for place in found.pixels}
    lines = max(text.count("\n") + 1 for texts in words.values() for text in texts)
    tall = (PANEL * height / width + LINE * (lines + 1)) * len(words) + 0.8
    figure = Figure(figsize=(PANEL * columns + 0.2, tall), layout="constrained")
    figure.suptitle(found.model, fontsize=8, x=0.01, ha="left")
    grid = figure.subplots(len(words), columns, squeeze=False)
    for axes, (place, pixels) in zip(grid, found.pixels.items(), strict=True):
        image = _colour(pixels)
        strengths = [signed_strength(maps[place]) for maps in found.maps.values()]
        panels = [image, *(_over(strength, _faint(image)) for strength in strengths)]
        panels += [_over(strengths[0], np.ones_like(image))] * (len(strengths) == 1)
        for axis, panel, text in zip(axes, panels, [*words[place], "the map alone"], strict=False):
            axis.imshow(panel)
            axis.set_title(text, fontsize=8, loc="left")
            axis.set_axis_off()
    bar = figure.colorbar(
        ScalarMappable(Normalize(-1, 1), "RdBu_r"), ax=grid, location="bottom", shrink=min(1.0, 2 / columns), aspect=40,
        pad=0.02, fraction=0.04,
    )  # fmt: skip
    bar.set_ticks([float(np.sign(tick) * abs(tick) ** 0.5) for tick in TICKS], labels=[f"{tick:g}" for tick in TICKS])
    bar.ax.tick_params(labelsize=7)
    bar.set_label(LEGEND, fontsize=7)
    return figure


def _titles(found: "Pictured", place: int) -> list[str]:
    """Of the maps: the methods' names, and which of them says nothing."""
    silent = "\nsays nothing: 0 everywhere"
    return [_wrapped(label) + ("" if maps[place].any() else silent) for label, maps in found.maps.items()]


def signed_strength(maps: Tensor) -> Array:
    """(H, W) in [-1, 1]: channels summed, the root of the share of the strongest, so that weak values are seen too.

    Where no value is negative the lowest counts as 0, as in the report: RISE's maps differ little from their mean.
    """
    joined = maps.double().sum(0).numpy()
    joined = joined - max(0.0, float(joined.min()))
    size = np.abs(joined)
    most = float(np.quantile(size, FULL)) or float(size.max()) or 1.0
    strength: Array = np.sign(joined) * np.sqrt(np.minimum(size / most, 1))
    return strength


def caption(found: "Pictured", place: int) -> str:
    return "\n".join(map(_wrapped, _words(found, place)))


def _words(found: "Pictured", place: int) -> list[str]:
    """The image's name, the class that is explained and its probability; the predicted one where it is another."""
    target, predicted = int(found.targets[place]), int(found.predicted[place])
    mine, best = found.probabilities[place].tolist()
    other = [f"predicted {found.called(predicted)}: {100 * best:.1f} %"] if predicted != target else []
    return [found.ids[place], f"{found.called(target)}: {100 * mine:.1f} %", *other]


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 34, break_on_hyphens=False)) or text


def _colour(pixels: Tensor) -> Array:
    """(H, W, 3); what has other channels than colour is shown as their mean."""
    image: Array = pixels.permute(1, 2, 0).double().numpy()
    return image if image.shape[2] == 3 else image.mean(2, keepdims=True).repeat(3, 2)


def _faint(image: Array) -> Array:
    """In pale grey, so that colours are the map's alone."""
    pale: Array = 1 - FAINT * (1 - image.mean(2, keepdims=True).repeat(3, 2))
    return pale


def _over(strength: Array, image: Array) -> Array:
    """Every pixel as opaque as it is strong."""
    from matplotlib import colormaps

    shade = colormaps["RdBu_r"]((strength + 1) / 2)[..., :3]
    opaque = np.abs(strength)[..., None]
    mixed: Array = opaque * shade + (1 - opaque) * image
    return mixed


def told(found: "Pictured") -> list[str]:
    """A line for each image that was drawn, for the terminal."""
    return [", ".join(_words(found, place)) for place in found.pixels]

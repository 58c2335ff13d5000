"""Photographs and maps as small files, the map to be laid over the photograph."""

import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

LEVELS = 16
SHADES = [(0, 0, 4), (87, 16, 110), (188, 55, 84), (249, 142, 9), (252, 255, 164)]  # dark to bright
COVER = 180  # of 255: how much of the photograph a map hides


def photo_uri(pixels: npt.NDArray[np.uint8]) -> str:
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    return _uri(picture, "jpeg", quality=82)


def map_uri(shades: npt.NDArray[np.float64]) -> str:
    """In steps from dark to bright, which let the photograph through."""
    picture = Image.fromarray(np.rint(shades * (LEVELS - 1)).astype(np.uint8)).convert("P")
    picture.putpalette(_palette())
    return _uri(picture, "png", bits=4, transparency=bytes([COVER] * LEVELS), optimize=True)


def _palette() -> list[int]:
    place = np.linspace(0, len(SHADES) - 1, LEVELS)
    channels = [np.interp(place, range(len(SHADES)), channel) for channel in zip(*SHADES, strict=True)]
    return [round(float(value)) for shade in zip(*channels, strict=True) for value in shade]


def _uri(picture: Image.Image, kind: str, **how: Any) -> str:
    file = io.BytesIO()
    picture.save(file, kind, **how)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"

"""From a picture to pixels of the size a model takes, as torchvision does it."""

from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
ROOM = 1 << 26  # pixels of a resized picture; of a longer strip only the part that is cut out is made


@dataclass(frozen=True)
class Preprocessing:
    """Resize, cut out the centre; `mean` and `std` then bring pixels to what the model takes."""

    resize: int = 256  # the shorter side afterwards; 0 leaves the size
    crop: int = 224  # the side of the square in the centre; 0 cuts nothing off
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    interpolation: str = "bilinear"
    squash: bool = False  # both sides become `resize`, whatever the shape was
    channels: int = 3  # or 1, for a model that takes grey pictures

    def __post_init__(self) -> None:
        if self.interpolation not in INTERPOLATIONS:
            raise LookupError(f"interpolation '{self.interpolation}': wanted one of {', '.join(INTERPOLATIONS)}")
        if self.channels not in (1, 3):
            raise ValueError(f"channels={self.channels}: wanted 3 for colour or 1 for grey")
        if min(self.resize, self.crop) < 0:
            raise ValueError(f"resize={self.resize}, crop={self.crop}: wanted 0 pixels or more")
        if not {len(self.mean), len(self.std)} <= {1, self.channels} or not all(value > 0 for value in self.std):
            raise ValueError(f"mean={self.mean}, std={self.std}: wanted 1 or {self.channels} numbers, std above 0")

    def tensor(self, picture: Image.Image) -> Tensor:
        """(channels, H, W) float32 in [0, 1], not yet scaled by mean and std."""
        return self.levels(picture).contiguous().to(torch.float32).div_(255)

    def levels(self, picture: Image.Image) -> Tensor:
        """(channels, H, W) uint8."""
        shown = self._placed(picture.convert("L" if self.channels == 1 else "RGB"), INTERPOLATIONS[self.interpolation])
        pixels = torch.from_numpy(np.array(shown))
        return pixels[None] if pixels.ndim == 2 else pixels.permute(2, 0, 1)

    def mask(self, mask: Image.Image) -> Tensor:
        """(H, W) uint8: a mask by the same cut, each pixel the nearest one, so that no new value comes up."""
        return torch.from_numpy(np.array(self._placed(mask, Image.Resampling.NEAREST)))

    def _placed(self, picture: Image.Image, interpolation: Image.Resampling) -> Image.Image:
        size = self._resized(*picture.size)
        if size[0] * size[1] > ROOM and 0 < self.crop <= min(size):
            return self._cut_first(picture, size, interpolation)
        picture = picture if size == picture.size else picture.resize(size, interpolation)
        if not self.crop or picture.size == (self.crop, self.crop):
            return picture
        left, top = (self._margin(side) for side in picture.size)
        return picture.crop((left, top, left + self.crop, top + self.crop))  # black where it reaches beyond

    def _cut_first(self, picture: Image.Image, size: tuple[int, int], interpolation: Image.Resampling) -> Image.Image:
        """The same but for rounding and two pixels at the cut's edges, and a strip of 1 x 50,000 pixels fits."""
        scales = [side / now for side, now in zip(picture.size, size, strict=True)]
        left, top = (self._margin(side) * scale for side, scale in zip(size, scales, strict=True))
        box = (left, top, left + self.crop * scales[0], top + self.crop * scales[1])
        return picture.resize((self.crop, self.crop), interpolation, box)

    def _resized(self, width: int, height: int) -> tuple[int, int]:
        if not self.resize:
            return width, height
        if self.squash:
            return self.resize, self.resize
        if width <= height:
            return self.resize, int(self.resize * height / width)
        return int(self.resize * width / height), self.resize

    def _margin(self, side: int) -> int:
        """Where the cut begins, to the pixel where torchvision has it."""
        over = side - self.crop
        return round(over / 2) if over >= 0 else -(-over // 2)

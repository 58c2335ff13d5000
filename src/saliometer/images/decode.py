"""From a file's bytes to a picture of 8 bits in red, green and blue, whatever is in the file."""

import io
import warnings

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError


class UnreadableError(ValueError):
    """A file that is no picture; its words are the reason."""


def decoded(data: bytes) -> Image.Image:
    """A picture from a file's bytes, all of it read, or an UnreadableError."""
    return rgb(opened(data))


def opened(data: bytes) -> Image.Image:
    """The first frame as the file has it, turned upright."""
    if not data:
        raise UnreadableError("the file is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(data))
            picture.load()
            return ImageOps.exif_transpose(picture)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise UnreadableError(f"too large: more than {Image.MAX_IMAGE_PIXELS} pixels") from None
    except UnidentifiedImageError:
        raise UnreadableError("not a picture in a known format") from None
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError) as error:
        raise UnreadableError(f"damaged: {error}") from None


def rgb(picture: Image.Image) -> Image.Image:
    """8 bits in red, green and blue; what is transparent shows black."""
    if picture.mode.startswith(("I", "F")):
        picture = Image.fromarray(_eight_bits(np.asarray(picture)))
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, (0, 0, 0, 255)), layer).convert("RGB")
    try:
        return picture.convert("RGB")
    except ValueError:
        raise UnreadableError(f"colours of mode {picture.mode} cannot be turned into red, green and blue") from None


def _eight_bits(values: np.ndarray) -> np.ndarray:
    """Grey levels of 16 bits scaled to 8, not cut off at 255 as PIL's own conversion does."""
    whole = values.dtype.kind in "iu"
    low, high = float(values.min(initial=0)), float(values.max(initial=0))
    most = 65535.0 if whole else 1.0
    if not (low >= 0 and high <= most):
        wanted = "0 to 65535" if whole else "0 to 1"
        raise UnreadableError(f"grey levels from {low:g} to {high:g}, wanted {wanted}")
    return np.rint(values.astype(np.float64) * (255 / most)).astype(np.uint8)

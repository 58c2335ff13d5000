"""Arrays and JSON as text inside a page: compressed, and unable to end the script they stand in."""

import base64
import io
import json
import math
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from PIL import Image

COLUMNS = 10  # pictures in a row of a sheet


def packed(array: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as the page unpacks it: shape, type, and its bytes deflated, in base64."""
    plain = np.ascontiguousarray(array)
    plain = plain.astype(plain.dtype.newbyteorder("<"))
    data = base64.b64encode(zlib.compress(plain.tobytes(), 9)).decode()
    return {"shape": list(plain.shape), "type": plain.dtype.name, "data": data}


def sheet(photos: npt.NDArray[np.uint8]) -> str:
    """Many small pictures (N, H, W, C) as one, in rows of COLUMNS, as a data URI."""
    count, height, width, channels = photos.shape
    rows = -(-count // COLUMNS)
    whole = np.zeros((rows * COLUMNS, height, width, channels), np.uint8)
    whole[:count] = photos
    whole = whole.reshape(rows, COLUMNS, height, width, channels).swapaxes(1, 2)
    pixels = whole.reshape(rows * height, COLUMNS * width, channels)
    picture, file = Image.fromarray(pixels[..., 0] if channels == 1 else pixels), io.BytesIO()
    drawn = channels == 1 or len(np.unique(photos)) <= 64  # flat colours and thin lines, which JPEG would smear
    picture.save(file, "PNG" if drawn else "JPEG", optimize=True, **({} if drawn else {"quality": 82}))
    kind = "png" if drawn else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def script(value: Any) -> Markup:
    """JSON that can stand in a script element: nothing in it ends the element or opens a comment."""
    text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _plain(value: Any) -> Any:
    """Undefined numbers are null; what numpy made is Python's."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value

"""The letters A and B as arrays, so that text looks the same on every machine and no font is needed.

Drawn once with Pillow 13.0.0 (FreeType 2.14.3) from Liberation Sans Regular 2.1.5 at 20 px, origin at the top left, one
byte of opacity per pixel in hexadecimal. Liberation Sans: Copyright (c) 2012 Red Hat, Inc., with Reserved Font Name
Liberation, SIL Open Font License 1.1. Digitised data copyright (c) 2010 Google Corporation.
"""

import torch
from torch import Tensor

HEIGHT, WIDTH = 19, 15
BOX_WIDTHS = (15, 13)  # of A and B: the text boxes of the authors' renderer, 5 empty rows on top included

_ROWS = {
    "A": """
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 00 00 00 00 8c ff f0 09 00 00 00 00 00 00
        00 00 00 00 06 eb e1 ff 5e 00 00 00 00 00 00
        00 00 00 00 59 ff 54 e9 c3 00 00 00 00 00 00
        00 00 00 00 bf e9 05 8d ff 29 00 00 00 00 00
        00 00 00 26 ff 88 00 27 ff 8d 00 00 00 00 00
        00 00 00 8c fe 23 00 00 c0 eb 06 00 00 00 00
        00 00 07 eb ba 00 00 00 58 ff 57 00 00 00 00
        00 00 5a ff 53 00 00 00 06 e9 bb 00 00 00 00
        00 00 c0 ff ff ff ff ff ff ff fe 22 00 00 00
        00 27 ff b5 74 74 74 74 74 7f ff 85 00 00 00
        00 8d ff 31 00 00 00 00 00 00 d0 e6 04 00 00
        07 ec d7 00 00 00 00 00 00 00 78 ff 4f 00 00
        5a ff 7e 00 00 00 00 00 00 00 20 ff b4 00 00
        c1 ff 25 00 00 00 00 00 00 00 00 c8 fc 1c 00
    """,
    "B": """
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 5c ff ff ff ff ff f4 d2 86 12 00 00 00 00
        00 5c ff c0 80 80 81 96 db ff d6 0a 00 00 00
        00 5c ff 80 00 00 00 00 03 be ff 59 00 00 00
        00 5c ff 80 00 00 00 00 00 71 ff 73 00 00 00
        00 5c ff 80 00 00 00 00 00 92 ff 48 00 00 00
        00 5c ff 80 00 00 01 18 68 f9 ba 01 00 00 00
        00 5c ff ff ff ff ff ff fe 96 07 00 00 00 00
        00 5c ff ba 74 74 74 82 a8 f7 cf 27 00 00 00
        00 5c ff 80 00 00 00 00 00 28 f2 d4 04 00 00
        00 5c ff 80 00 00 00 00 00 00 ae ff 2d 00 00
        00 5c ff 80 00 00 00 00 00 00 b2 ff 3d 00 00
        00 5c ff 80 00 00 00 00 00 2b f5 f5 0c 00 00
        00 5c ff c0 80 80 80 8a ad f9 fe 64 00 00 00
        00 5c ff ff ff ff ff fb e6 ac 3d 00 00 00 00
    """,
}


def glyphs() -> Tensor:
    """(2, 19, 15) float32 in [0, 1]: the opacity of A and of B."""
    bytes_ = [list(bytes.fromhex(_ROWS[letter])) for letter in "AB"]
    return torch.tensor(bytes_, dtype=torch.float32).view(2, HEIGHT, WIDTH) / 255

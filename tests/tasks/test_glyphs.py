"""The letters: where their ink lies, and that it never changes."""

import hashlib

from torch.nn import functional as F

from saliometer.tasks._glyphs import BOX_WIDTHS, HEIGHT, WIDTH, glyphs


def test_the_letters_are_those_of_version_textbox_1():
    """Golden: another glyph is another task."""
    levels = (glyphs() * 255).round().byte()
    digest = hashlib.sha256(levels.numpy().tobytes()).hexdigest()
    assert digest == "cf52ed9ac63a4285a1edc2486b8d4ea76fd7860cc180388a708c08c1ebd44311"


def test_ink_lies_below_five_empty_rows_and_within_the_text_box():
    letters = glyphs()
    assert letters.shape == (2, HEIGHT, WIDTH) == (2, 19, 15)
    for letter, width, columns in zip(letters, BOX_WIDTHS, ((0, 13), (1, 12)), strict=True):
        rows, places = letter.nonzero().unbind(1)
        assert (rows.min(), rows.max()) == (5, 18)
        assert (places.min(), places.max()) == columns
        assert places.max() < width


def test_the_text_boxes_have_the_sizes_of_the_authors():
    assert [HEIGHT * width for width in BOX_WIDTHS] == [285, 247]


def test_a_letter_has_fully_white_and_half_white_pixels():
    for letter in glyphs():
        assert letter.max() == 1
        assert ((letter > 0) & (letter < 1)).sum() > 20


def test_no_attack_of_eps_03_turns_a_letter_into_the_other_or_into_a_box():
    """What robust training asks for can be had: images move by 0.3 each, so 0.6 between two keeps them apart."""
    one, other = glyphs()
    padded = F.pad(one, (WIDTH, WIDTH, HEIGHT, HEIGHT))  # A; B is laid over it at every place
    under = padded.unfold(0, HEIGHT, 1).unfold(1, WIDTH, 1)
    apart = ((under - other).abs() > 0.6).sum((2, 3))
    assert apart.min() >= 40
    for letter in (one, other):
        solid = letter.unfold(0, 4, 1).unfold(1, 4, 1).amin((2, 3))
        assert solid.max() < 0.4  # of any 4x4 pixels one stays below the 0.7 that is left of a white box

"""Thumbnails: images in grey unless their channels differ, then in colour."""

import numpy as np
import pytest
import torch

from run_toys import toy_bench
from saliometer.engine.thumbs import keep_scene
from saliometer.report import pictures
from saliometer.tasks.textbox import textbox


@pytest.mark.parametrize(("background", "shape"), [("black", (1, 64, 64)), ("noise", (1, 64, 64, 3))])
def test_a_scene_keeps_colours_where_there_are_any(background, shape, tmp_path):
    run = toy_bench(tmp_path, {"gradient": [0.5]})
    samples = textbox("simple-fr", count=1, background=background)
    keep_scene(run, "simple-fr", samples)
    with np.load(tmp_path / "thumbs" / "simple-fr" / "scene.npz") as kept:
        assert kept["images"].shape == shape
        first = torch.from_numpy(kept["images"]).view(1, 64, 64, -1)
    wanted = (samples.batch.images * 255).round().byte().permute(0, 2, 3, 1)
    assert torch.equal(first.expand(1, 64, 64, 3), wanted)


def test_settings_in_grey_and_in_colour_share_a_page():
    grey, colour = np.full((2, 4, 4), 7, np.uint8), np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3)
    joined = pictures._photos([grey, colour])
    assert joined.shape == (3, 4, 4, 3)
    assert (joined[:2] == 7).all()
    assert (joined[2] == colour[0]).all()
    assert pictures._photos([grey]).shape == (2, 4, 4, 1)

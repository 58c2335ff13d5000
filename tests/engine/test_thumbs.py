"""Thumbnails: images in grey unless their channels differ, then in colour; maps in 8 bits."""

import numpy as np
import pytest
import torch

from run_toys import toy_bench
from saliometer.engine.run import Unit
from saliometer.engine.thumbs import keep_scene, keep_sprites
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


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([0.0, 0.5, 1.0, -0.25], [0, 64, 127, -32]),
        ([5.0, 5.5, 6.0, 5.25], [0, 64, 127, 32]),  # from its lowest value
        ([2.0] * 4, [127] * 4),  # marks everything
        ([-2.0] * 4, [-127] * 4),
        ([0.0] * 4, [0] * 4),
    ],
)
def test_a_map_is_scaled_by_its_largest_value(values, wanted, tmp_path):
    run, unit = toy_bench(tmp_path, {"gradient": [0.5]}), Unit("simple-fr", 0, 1)
    keep_sprites(run, unit, "gradient", torch.tensor(values).view(1, 1, 2, 2))
    with np.load(run.sprites(unit, "gradient")) as kept:
        assert kept["maps"].flatten().tolist() == wanted

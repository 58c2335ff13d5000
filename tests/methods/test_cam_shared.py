"""The CAM family's common part: grids in any layout and the way back, refusals, what every map says of itself."""

import pytest
import torch
from torch import nn

from cam_toys import ChannelsLast, Tokens, gap_cnn, made
from saliometer.methods._cam import Grid, enlarged, grid_of, ranged
from toys import explain, explained, model_of, noise_batch, small_cnn

FAMILY = (
    "cam", "grad_cam", "grad_cam_plus_plus", "layer_cam", "hires_cam", "xgrad_cam", "score_cam", "ablation_cam",
    "opti_cam(steps=2)",
)  # fmt: skip
WITH_RELU = [name for name in FAMILY if not name.startswith("opti")]
OTHER, NORM, LINEAR = nn.Identity(), nn.LayerNorm(96), nn.Linear(4, 4)


@pytest.mark.parametrize(
    ("shape", "image", "module", "wanted"),
    [
        ((2, 512, 7, 7), (224, 224), OTHER, Grid(7, 7)),
        ((2, 4, 6, 10), (8, 12), OTHER, Grid(6, 10)),  # though (4, 6) has exactly the image's aspect ratio
        ((2, 512, 1, 25), (32, 100), OTHER, Grid(1, 25)),
        ((2, 7, 7, 768), (224, 224), OTHER, Grid(7, 7, "last")),
        ((2, 56, 56, 96), (224, 224), OTHER, Grid(56, 56, "last")),
        ((2, 7, 31, 768), (224, 1000), OTHER, Grid(7, 31, "last")),
        ((2, 31, 7, 768), (1000, 224), OTHER, Grid(31, 7, "last")),
        ((2, 96, 96, 96), (384, 384), OTHER, Grid(96, 96)),
        ((2, 96, 96, 96), (384, 384), NORM, Grid(96, 96, "last")),
        ((2, 5, 5, 4), (10, 10), LINEAR, Grid(5, 5, "last")),
        ((2, 197, 768), (224, 224), OTHER, Grid(14, 14, "tokens", 1)),
        ((2, 196, 768), (224, 224), OTHER, Grid(14, 14, "tokens", 0)),
        ((2, 198, 192), (224, 224), OTHER, Grid(14, 14, "tokens", 2)),
        ((2, 201, 384), (224, 224), OTHER, Grid(14, 14, "tokens", 5)),
        ((2, 1374, 384), (518, 518), OTHER, Grid(37, 37, "tokens", 5)),
        ((2, 49, 768), (224, 224), OTHER, Grid(7, 7, "tokens", 0)),
        ((2, 295, 768), (224, 336), OTHER, Grid(14, 21, "tokens", 1)),
        ((2, 295, 768), (336, 224), OTHER, Grid(21, 14, "tokens", 1)),
        ((2, 295, 768), (230, 340), OTHER, Grid(14, 21, "tokens", 1)),  # patches of 16 that do not fill the image
        ((2, 200), (64, 64), OTHER, None),
        ((2, 512, 1, 1), (224, 224), OTHER, None),
        ((2, 1, 768), (224, 224), OTHER, None),
        ((2, 2, 768), (224, 224), OTHER, None),  # a class token and one patch
        ((2, 150, 768), (224, 224), OTHER, Grid(12, 12, "tokens", 6)),
        ((2, 187, 768), (224, 224), OTHER, None),  # 13 x 13 and 18 left over
        ((2, 3, 4, 5, 6), (224, 224), OTHER, None),
    ],
)
def test_the_grid_of_a_layer_has_the_aspect_ratio_of_the_image(shape, image, module, wanted):
    assert grid_of(torch.Size(shape), torch.Size((2, 3, *image)), module) == wanted


@pytest.mark.parametrize(
    ("grid", "shape"),
    [(Grid(4, 6), (2, 5, 4, 6)), (Grid(4, 6, "last"), (2, 4, 6, 5)), (Grid(4, 6, "tokens", 2), (2, 26, 5))],
)
def test_maps_go_back_into_the_layers_own_layout(grid, shape):
    output = torch.arange(2 * 120 + (20 if len(shape) == 3 else 0.0)).view(shape)
    maps = grid.maps(output)
    assert maps.shape == (2, 5, 4, 6)
    copies = torch.stack((maps, -maps, 0 * maps))
    back = grid.restored(copies, output)
    assert back.shape == (3, *shape)
    assert torch.equal(back[0], output)
    for sign, copy in zip((1, -1, 0), back, strict=True):
        assert torch.equal(grid.maps(copy), sign * maps)
        if grid.apart:
            assert torch.equal(copy[:, :2], output[:, :2])


def test_a_token_is_the_patch_it_came_from():
    """Each patch's mean colour as its only feature: the map is the image, made smaller."""
    images = torch.rand(2, 1, 8, 12)
    tokens = nn.functional.avg_pool2d(images, 2).flatten(2).transpose(1, 2)
    sequence = torch.cat((torch.full((2, 1, 1), 9.0), tokens), 1)
    grid = grid_of(sequence.shape, images.shape, OTHER)
    torch.testing.assert_close(grid.maps(sequence), nn.functional.avg_pool2d(images, 2))


def test_enlarging_takes_pixel_centres():
    """(0, 1) from two pixels to four: 0, 1/4, 3/4, 1."""
    found = enlarged(torch.tensor([[[[0.0, 1.0]]]]), torch.zeros(1, 3, 1, 4))
    assert found.flatten().tolist() == [0, 0.25, 0.75, 1]


def test_enlarging_is_opencvs_linear_resize():
    """methods.md 7: to 1e-6 on maps from 0 to 1."""
    cv2 = pytest.importorskip("cv2")
    maps = torch.rand(1, 1, 5, 7, generator=torch.Generator().manual_seed(0))
    wanted = torch.from_numpy(cv2.resize(maps[0, 0].numpy(), (31, 23)))
    torch.testing.assert_close(enlarged(maps, torch.zeros(1, 3, 23, 31))[0, 0], wanted, rtol=0, atol=1e-6)


def test_ranged_maps_go_from_0_to_1_and_flat_ones_are_0():
    maps = torch.tensor([[[[2.0, 4.0], [3.0, 2.0]], [[7.0, 7.0], [7.0, 7.0]]]])
    assert ranged(maps).tolist() == [[[[0, 1], [0.5, 0]], [[0, 0], [0, 0]]]]


@pytest.mark.parametrize("text", FAMILY)
def test_how_many_places_the_layer_has_is_said(text):
    found = explained(model_of(gap_cnn()), noise_batch(2), text)
    assert found.facts["layer_height"].tolist() == found.facts["layer_width"].tolist() == [4, 4]
    assert found.flags["dead_cam"].tolist() == (found.maps.flatten(1).abs().amax(1) == 0).tolist()


@pytest.mark.parametrize("text", FAMILY)
@pytest.mark.parametrize(("layer", "shape"), [("4", r"\(2, 5, 1, 1\)"), ("5", r"\(2, 5\)")])
def test_a_layer_without_places_is_refused(text, layer, shape):
    name = text.split("(")[0]
    words = (
        rf"UnfitError: {name}: layer '{layer}' gives shape {shape}, wanted .* name another with {name}\(layer=NAME\)"
    )
    with pytest.raises(AssertionError, match=words):
        explain(model_of(gap_cnn()), noise_batch(2), f'{name}(layer="{layer}")')


@pytest.mark.parametrize("text", FAMILY)
def test_a_model_without_such_a_layer_is_refused(text):
    name = text.split("(")[0]
    words = rf"UnfitError: {name}: model 'toy' has no layer of feature maps .*; name one with {name}\(layer=NAME\)"
    with pytest.raises(AssertionError, match=words):
        explain(model_of(gap_cnn(), ""), noise_batch(2), text)


@pytest.mark.parametrize("text", FAMILY)
def test_an_unknown_layer_is_refused_with_the_nearest_name(text):
    with pytest.raises(AssertionError, match="LookupError: model 'toy': there is no layer '33'"):
        explain(model_of(gap_cnn()), noise_batch(2), f'{text.split("(")[0]}(layer="33")')


@pytest.mark.parametrize("name", WITH_RELU)
def test_an_unknown_place_for_the_relu_is_refused(name):
    with pytest.raises(AssertionError, match=r"LookupError: there is no relu 'befor'\. Did you mean 'before'"):
        explain(model_of(gap_cnn()), noise_batch(2), f"{name}(relu=befor)")


# Properties of methods.md 11


@pytest.mark.parametrize("name", ["hires_cam", "xgrad_cam", "cam"])
def test_behind_a_mean_and_a_linear_layer_most_methods_are_one(name):
    """11.5: grad_cam = hires_cam = xgrad_cam = cam / (h w), in float64."""
    batch = noise_batch(4)
    batch = type(batch)(batch.images.double(), batch.targets, batch.seeds)
    model = model_of(gap_cnn().double())
    found = explain(model, batch, f"{name}(relu=none)") / (16 if name == "cam" else 1)
    wanted = explain(model, batch, "grad_cam(relu=none)")
    assert wanted.abs().max() > 0
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", WITH_RELU)
@pytest.mark.parametrize("relu", ["before", "after"])
def test_a_rectified_map_is_never_negative(name, relu):
    batch = noise_batch(4)
    assert explain(model_of(gap_cnn()), batch, f"{name}(relu={relu})").min() >= 0


def test_layer_cam_lies_above_hires_cam_where_activations_are_positive():
    model, batch = model_of(small_cnn()), noise_batch()
    layer, hires = (explain(model, batch, f"{name}(relu=none)") for name in ("layer_cam", "hires_cam"))
    assert (layer >= hires - 1e-7).all()
    assert (layer > hires + 1e-4).any()


@pytest.mark.parametrize("name", WITH_RELU)
def test_a_larger_last_layer_gives_larger_maps(name):
    """11.7: in proportion, but for Grad-CAM++, Score-CAM and Ablation-CAM."""
    one, three = gap_cnn(), gap_cnn()
    with torch.no_grad():
        three[6].weight.mul_(3)
        three[6].bias.mul_(3)
    small, large = (explain(model_of(net), noise_batch(), f"{name}(relu=none)") for net in (one, three))
    scales = torch.allclose(large, 3 * small, rtol=1e-4, atol=1e-6)
    assert scales == (name not in ("grad_cam_plus_plus", "score_cam", "ablation_cam"))


@pytest.mark.parametrize("text", FAMILY)
def test_a_mirrored_image_has_a_mirrored_map(text):
    """11.8, on a network that is the same mirrored."""
    net = gap_cnn(stride=1).double()
    with torch.no_grad():
        for place in (0, 2):
            net[place].weight.add_(net[place].weight.flip(3))
    batch = noise_batch(3)
    straight = type(batch)(batch.images.double(), batch.targets, batch.seeds)
    mirrored = type(batch)(batch.images.double().flip(3), batch.targets, batch.seeds)
    one, two = (explain(model_of(net), some, text) for some in (straight, mirrored))
    assert one.abs().max() > 0
    torch.testing.assert_close(two.flip(3), one, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("name", ["grad_cam", "grad_cam_plus_plus", "layer_cam", "hires_cam", "xgrad_cam", "score_cam"])
def test_a_constant_added_to_all_logits_changes_nothing(name):
    """11.9."""
    net, other = gap_cnn(), gap_cnn()
    with torch.no_grad():
        other[6].bias.add_(2)
    one, two = (explain(model_of(some), noise_batch(), f"{name}(relu=none)") for some in (net, other))
    torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("text", [name for name in FAMILY if name != "cam"])
@pytest.mark.parametrize("kind", [ChannelsLast, Tokens])
def test_other_layouts_give_a_map_per_pixel(text, kind):
    found = explained(made(kind), noise_batch(3), text.replace("steps=2", "steps=2,layer=norm"))
    assert found.maps.shape == (3, 1, 8, 8)
    assert found.maps.isfinite().all()
    assert found.facts["layer_width"].tolist() == [4, 4, 4]


@pytest.mark.parametrize("text", ["opti_cam(steps=2)", "score_cam", "ablation_cam", "grad_cam", "cam"])
def test_it_works_for_a_caller_in_inference_mode(text):
    model, batch = model_of(gap_cnn()), noise_batch(2)
    wanted = explain(model, batch, text)
    with torch.inference_mode():
        found = explain(model, noise_batch(2), text)
    torch.testing.assert_close(found, wanted)

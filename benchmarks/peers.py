"""The same methods as other libraries offer them, in the settings that are fastest for them and as they come."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saliometer.methods import _segments

BATCH = 64  # images in one pass, where a library asks


@dataclass(frozen=True)
class Asked:
    """What a peer is to explain."""

    net: nn.Module
    images: Tensor
    targets: Tensor
    references: Tensor
    layer: str
    params: dict[str, Any]

    def labels(self) -> Tensor:
        """(N, H, W): the segments, made before, for superpixels are timed apart."""
        cut = _segments.quickshift(self.images) if self.params["segments"] == "quickshift" else None
        return _segments.grid(self.images, 7) if cut is None else cut

    @property
    def module(self) -> nn.Module:
        return self.net.get_submodule(self.layer)

    def pixels(self, place: int) -> np.ndarray:
        """One image (H, W, C), as libraries that use NumPy take it."""
        return self.images[place].permute(1, 2, 0).cpu().numpy()

    def each(self, explained: Callable[[int], object]) -> Callable[[], object]:
        """For libraries that take one image at a time."""
        return lambda: [explained(place) for place in range(len(self.images))]

    def rows(self, pixels: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))).to(self.images)


Ready = Callable[[Asked], Callable[[], object]]


@dataclass(frozen=True)
class Peer:
    name: str
    ready: Ready
    images: int = 0  # that it is timed on; 0 takes as many as ours
    tuned: bool = False  # given batches that are better for it than those it takes by itself


def of(method: str) -> list[Peer]:
    return [peer for names, peer in PEERS if method in names.split()]


@contextmanager
def output_of(net: nn.Module, layer: str) -> Iterator[list[Tensor]]:
    """What a layer gives out while the network runs."""
    heard: list[Tensor] = []
    handle = net.get_submodule(layer).register_forward_hook(lambda _module, _inputs, output: heard.append(output))
    try:
        yield heard
    finally:
        handle.remove()


# Captum


def captum(name: str, *given: str, **options: Any) -> Ready:
    """A class of Captum's; `given` are the options that take our parameters of those names."""

    def ready(asked: Asked) -> Callable[[], object]:
        from captum import attr

        method = getattr(attr, name)(asked.net)
        chosen = options | {word.split("=")[0]: asked.params[word.split("=")[1]] for word in given}
        return lambda: method.attribute(asked.images, target=asked.targets, **chosen)

    return ready


def captum_noise(kind: str, of: str = "Saliency") -> Ready:
    def ready(asked: Asked) -> Callable[[], object]:
        from captum import attr

        noisy = attr.NoiseTunnel(getattr(attr, of)(asked.net))
        more: dict[str, Any] = {"abs": False}
        if of == "IntegratedGradients":
            more = {"n_steps": asked.params["steps"], "internal_batch_size": BATCH}
        return lambda: noisy.attribute(
            asked.images, nt_type=kind, nt_samples=asked.params.get("draws", 25), nt_samples_batch_size=1, stdevs=0.15,
            target=asked.targets, **more,
        )  # fmt: skip

    return ready


def captum_shap(asked: Asked) -> Callable[[], object]:
    from captum.attr import GradientShap

    method, draws = GradientShap(asked.net), asked.params["draws"]

    def work() -> None:
        for _ in range(0, draws, 10):  # all at once need more memory than there is
            method.attribute(asked.images, asked.references, n_samples=min(10, draws), target=asked.targets)

    return work


def captum_deep_shap(asked: Asked) -> Callable[[], object]:
    from captum.attr import DeepLiftShap

    method = DeepLiftShap(asked.net)
    return lambda: method.attribute(asked.images, asked.references[: asked.params["count"]], target=asked.targets)


def captum_cam(asked: Asked) -> Callable[[], object]:
    from captum.attr import LayerGradCam

    method = LayerGradCam(asked.net, asked.module)

    def work() -> Tensor:
        maps = method.attribute(asked.images, asked.targets).relu()
        return F.interpolate(maps, asked.images.shape[2:], mode="bilinear")

    return work


def captum_guided_cam(asked: Asked) -> Callable[[], object]:
    from captum.attr import GuidedGradCam

    method = GuidedGradCam(asked.net, asked.module)
    return lambda: method.attribute(asked.images, asked.targets, interpolate_mode="bilinear")


def captum_occlusion(rows: int) -> Ready:
    """With so many rows in a pass, or one window of every image where that is more."""

    def ready(asked: Asked) -> Callable[[], object]:
        from captum.attr import Occlusion

        method, side = Occlusion(asked.net), asked.images.shape[2]
        window, stride = (3, *[round(side / 7)] * 2), (3, *[round(side / 28)] * 2)
        together = max(1, rows // len(asked.images))
        return lambda: method.attribute(
            asked.images, window, stride, target=asked.targets, perturbations_per_eval=together
        )

    return ready


def captum_segments(name: str, together: int) -> Ready:
    """Lime or KernelShap, of one image at a time with its superpixels made before."""

    def ready(asked: Asked) -> Callable[[], object]:
        from captum import attr

        method, labels = getattr(attr, name)(asked.net), asked.labels()
        return asked.each(
            lambda place: method.attribute(
                asked.images[place : place + 1],
                target=asked.targets[place : place + 1],
                feature_mask=labels[place : place + 1, None],
                n_samples=asked.params["samples"],
                perturbations_per_eval=together,
            )
        )

    return ready


# pytorch-grad-cam


def grad_cam(name: str, batch: int = 0, single: bool = False) -> Ready:
    """`batch` is for those that mask the image many times; `single` gives them one image at a time."""

    def ready(asked: Asked) -> Callable[[], object]:
        import pytorch_grad_cam
        import tqdm
        from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

        tqdm.tqdm.__init__ = _silent(tqdm.tqdm.__init__)
        net = _thawed(asked)
        method = getattr(pytorch_grad_cam, name)(net, [net.get_submodule(asked.layer)])
        if batch:
            method.batch_size = batch
        targets = [ClassifierOutputTarget(target) for target in asked.targets.tolist()]
        if single:
            return asked.each(lambda place: method(asked.images[place : place + 1], targets[place : place + 1]))
        return lambda: method(asked.images, targets)

    return ready


def _thawed(asked: Asked) -> nn.Module:
    """A copy whose weights ask for gradients, without which the library hears none at the layer."""
    import copy

    return copy.deepcopy(asked.net).requires_grad_(True)


def _silent(init: Callable[..., None]) -> Callable[..., None]:
    return lambda bar, *args, **options: init(bar, *args, **{**options, "disable": True})


# zennit


def zennit(composite: str, **options: Any) -> Ready:
    def ready(asked: Asked) -> Callable[[], object]:
        from zennit import composites
        from zennit.attribution import Gradient
        from zennit.torchvision import ResNetCanonizer

        if composite == "EpsilonGammaBox":
            options.update(low=torch.zeros_like(asked.images), high=torch.ones_like(asked.images))
        rules = getattr(composites, composite)(canonizers=[ResNetCanonizer()], **options)
        return _zennit_work(asked, Gradient(asked.net, rules))

    return ready


def zennit_everywhere(epsilon: float) -> Ready:
    """One epsilon rule for all layers."""

    def ready(asked: Asked) -> Callable[[], object]:
        from zennit.attribution import Gradient
        from zennit.composites import LayerMapComposite
        from zennit.layer import Sum
        from zennit.rules import Epsilon, Norm, Pass
        from zennit.torchvision import ResNetCanonizer
        from zennit.types import Activation, AvgPool, BatchNorm, Convolution, Linear

        rules = LayerMapComposite(
            [(Activation, Pass()), (BatchNorm, Pass()), (Sum, Norm()), (AvgPool, Norm()),
             (Convolution, Epsilon(epsilon)), (Linear, Epsilon(epsilon))],
            canonizers=[ResNetCanonizer()],
        )  # fmt: skip
        return _zennit_work(asked, Gradient(asked.net, rules))

    return ready


def _zennit_work(asked: Asked, attributor: Any) -> Callable[[], object]:
    def start(logits: Tensor) -> Tensor:
        return torch.zeros_like(logits).scatter_(1, asked.targets[:, None], 1)

    def work() -> object:
        with attributor:
            return attributor(asked.images.clone(), start)

    return work


# PAIR's saliency, which takes one image at a time and lives in NumPy


def _called(asked: Asked, place: int) -> Callable[..., dict[str, np.ndarray]]:
    def call(pixels: np.ndarray, call_model_args: object = None, expected_keys: object = None) -> dict[str, np.ndarray]:
        rows = asked.rows(np.asarray(pixels)).requires_grad_()
        (slopes,) = torch.autograd.grad(asked.net(rows)[:, asked.targets[place]].sum(), rows)
        return {"INPUT_OUTPUT_GRADIENTS": slopes.permute(0, 2, 3, 1).cpu().numpy()}

    return call


def pair(name: str, batched: bool = True, **renamed: str) -> Ready:
    def ready(asked: Asked) -> Callable[[], object]:
        import saliency.core

        method = getattr(saliency.core, name)()
        options = {new: asked.params[old] for new, old in renamed.items()}
        options |= {"batch_size": 20} if batched else {}
        _mended()
        return asked.each(lambda place: method.GetMask(asked.pixels(place), _called(asked, place), **options))

    return ready


def _mended() -> None:
    """Let it run on a NumPy that has no longer the argument it uses."""
    from saliency.core import guided_ig

    class Numpy:
        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

        def quantile(self, values: np.ndarray, share: float, interpolation: str) -> np.ndarray:
            return np.quantile(values, share, method=interpolation)

    guided_ig.np = Numpy()


# lime, and RISE as its repository does it


def lime(batch: int) -> Ready:
    def ready(asked: Asked) -> Callable[[], object]:
        from lime import lime_image

        lime_image.tqdm = lambda rows, **_: rows  # no bar, in any version
        labels = asked.labels().cpu().numpy()

        def probabilities(pixels: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                return asked.net(asked.rows(np.asarray(pixels, dtype=np.float32))).softmax(1).cpu().numpy()

        def explained(place: int) -> object:
            return lime_image.LimeImageExplainer(random_state=0).explain_instance(
                asked.pixels(place).astype(np.double),
                probabilities,
                labels=(int(asked.targets[place]),),
                top_labels=None,
                num_samples=asked.params["samples"],
                batch_size=batch,
                segmentation_fn=lambda _: labels[place],
            )

        return asked.each(explained)

    return ready


def rise(asked: Asked) -> Callable[[], object]:
    """Masks made once by scikit-image and kept on the device, then one image at a time, 100 masks in a pass."""
    masks = _rise_masks(asked.params["masks"], asked.images)

    def explained(place: int) -> Tensor:
        scores = []
        with torch.no_grad():
            seen = masks * asked.images[place]  # (masks, 3, H, W)
            scores = [asked.net(part).softmax(1) for part in seen.split(100)]
            found = torch.cat(scores).T @ masks.flatten(1)  # for every class, as the authors do
        return found[asked.targets[place]] / (0.5 * len(masks))

    return asked.each(explained)


def _rise_masks(count: int, images: Tensor) -> Tensor:
    from skimage.transform import resize

    side, drawn = images.shape[2], np.random.default_rng(0)
    cell = -(-side // 7)
    masks = []
    for _ in range(count):
        coins = (drawn.random((7, 7)) < 0.5).astype("float32")
        large = resize(coins, (8 * cell, 8 * cell), order=1, mode="reflect", anti_aliasing=False)
        row, column = drawn.integers(cell, size=2)
        masks.append(large[row : row + side, column : column + side])
    return torch.from_numpy(np.stack(masks)).to(images)[:, None]


PEERS: list[tuple[str, Peer]] = [
    ("gradient", Peer("Captum", captum("Saliency", abs=False))),
    ("input_x_gradient", Peer("Captum", captum("InputXGradient"))),
    ("deconvnet", Peer("Captum", captum("Deconvolution"))),
    ("guided_backprop", Peer("Captum", captum("GuidedBackprop"))),
    ("deconvnet", Peer("zennit", zennit("DeconvNet"))),
    ("guided_backprop", Peer("zennit", zennit("GuidedBackprop"))),
    ("guided_grad_cam", Peer("Captum", captum_guided_cam)),
    ("grad_cam", Peer("Captum", captum_cam)),
    ("grad_cam", Peer("pytorch-grad-cam", grad_cam("GradCAM"))),
    ("grad_cam_plus_plus", Peer("pytorch-grad-cam", grad_cam("GradCAMPlusPlus"))),
    ("hires_cam", Peer("pytorch-grad-cam", grad_cam("HiResCAM"))),
    ("layer_cam", Peer("pytorch-grad-cam", grad_cam("LayerCAM"))),
    ("xgrad_cam", Peer("pytorch-grad-cam", grad_cam("XGradCAM"))),
    ("score_cam", Peer("pytorch-grad-cam", grad_cam("ScoreCAM", BATCH), images=2, tuned=True)),
    ("score_cam", Peer("pytorch-grad-cam, its defaults", grad_cam("ScoreCAM", single=True), images=2)),
    ("ablation_cam", Peer("pytorch-grad-cam", grad_cam("AblationCAM", BATCH), images=2, tuned=True)),
    ("ablation_cam", Peer("pytorch-grad-cam, its defaults", grad_cam("AblationCAM", single=True), images=2)),
    ("lrp_z", Peer("zennit", zennit_everywhere(1e-6))),
    ("lrp_epsilon", Peer("zennit", zennit_everywhere(1.0))),
    ("lrp_z lrp_epsilon", Peer("Captum", captum("LRP"))),
    ("lrp_epsilon_plus", Peer("zennit", zennit("EpsilonPlus"))),
    ("lrp_preset_a_flat", Peer("zennit", zennit("EpsilonPlusFlat"))),
    ("lrp_alpha_beta", Peer("zennit", zennit("EpsilonAlpha2Beta1"))),
    ("lrp_preset_b_flat", Peer("zennit", zennit("EpsilonAlpha2Beta1Flat"))),
    ("lrp_gamma", Peer("zennit", zennit("EpsilonGammaBox"))),
    ("deeplift_rescale", Peer("Captum", captum("DeepLift"))),
    ("deep_shap", Peer("Captum", captum_deep_shap)),
    ("smooth_grad", Peer("Captum", captum_noise("smoothgrad"))),
    ("var_grad", Peer("Captum", captum_noise("vargrad"))),
    ("integrated_gradients",
     Peer("Captum", captum("IntegratedGradients", n_steps=50, internal_batch_size=BATCH), tuned=True)),
    ("integrated_gradients", Peer("Captum, its defaults", captum("IntegratedGradients"), images=1)),
    ("ig_smooth_grad", Peer("Captum", captum_noise("smoothgrad", "IntegratedGradients"))),
    ("expected_gradients", Peer("Captum", captum_shap)),
    ("blur_ig", Peer("PAIR saliency", pair("BlurIG", steps="steps"), images=1, tuned=True)),
    ("blur_ig", Peer("PAIR saliency, its defaults", pair("BlurIG", False, steps="steps"), images=1)),
    ("guided_ig", Peer("PAIR saliency", pair("GuidedIG", False, x_steps="steps"), images=2)),
    ("xrai", Peer("PAIR saliency", pair("XRAI"), images=1, tuned=True)),
    ("xrai", Peer("PAIR saliency, its defaults", pair("XRAI", False), images=1)),
    ("occlusion", Peer("Captum", captum_occlusion(4 * BATCH), tuned=True)),
    ("occlusion", Peer("Captum, its defaults", captum_occlusion(1), images=1)),
    ("lime", Peer("lime", lime(BATCH), images=2, tuned=True)),
    ("lime", Peer("lime, its defaults", lime(10), images=2)),
    ("lime", Peer("Captum", captum_segments("Lime", BATCH), images=2, tuned=True)),
    ("lime", Peer("Captum, its defaults", captum_segments("Lime", 1), images=1)),
    ("kernel_shap", Peer("Captum", captum_segments("KernelShap", BATCH), images=2, tuned=True)),
    ("kernel_shap", Peer("Captum, its defaults", captum_segments("KernelShap", 1), images=1)),
    ("rise", Peer("RISE's loop", rise, images=4)),  # as its repository has it: 100 masks in a pass
]  # fmt: skip

"""How much of COSE's study is run: data sets, networks, trainings, images, and methods with their parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from saliometer.engine.presets import COSE
from saliometer.registry import Spec

PLAIN = ("GradCAM", "GradCAM++", "IG")  # methods of few passes, on more images
METRICS = (
    "cose", "cose(mode=published)", "cose(similarity=pearson)", "cose(similarity=spearman)", "cose(fixed_target=true)",
)  # fmt: skip  # what methods are measured by
OF_CONTROLS = OF_ABLATION = ("cose", "cose(mode=published)")


@dataclass(frozen=True)
class Training:
    """What differs from the recipe; 0 is as that has it."""

    recipe: str = ""
    epochs: int = 0
    limit: int = 0
    batch: int = 0
    tuned: int = 0  # epochs of a training that starts from trained weights


@dataclass(frozen=True)
class Scale:
    data: tuple[str, ...]  # data sets, where none are given; none wants some
    archs: tuple[str, ...]
    training: Training
    many: int  # images of the methods in `often`
    few: int  # of the others
    often: tuple[str, ...] = PLAIN
    methods: Mapping[str, str] = field(default_factory=dict)  # the paper's name -> parameters that differ
    init: str = "random"
    side: int = 0  # of pictures of several sizes
    ablated: tuple[str, ...] = ()  # networks that are trained frozen and in full
    ablation: tuple[str, ...] = ("GradCAM", "GradCAM++", "IG", "SmoothGrad")  # methods that explain those
    ablation_images: int = 51
    magnitudes: int = 6
    grains: tuple[float, ...] = (0.0, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)  # sigmas of noise, in pixels
    batch: int = 0  # images that go through a network at once on a GPU; 0 finds it

    def specs(self) -> dict[str, str]:
        """The paper's name -> method."""
        return {name: _joined(spec, self.methods.get(name, "")) for name, spec in COSE.items()}

    def metrics(self, texts: tuple[str, ...] = METRICS) -> list[str]:
        """With fewer magnitudes, where that is asked for."""
        if self.magnitudes == Scale.magnitudes:
            return list(texts)
        return [_joined(text, f"magnitudes={self.magnitudes}") for text in texts]


def _joined(spec: str, more: str) -> str:
    one, other = Spec.parse(spec), Spec.parse(f"x({more})")
    return str(Spec(one.name, tuple(sorted((dict(one.params) | dict(other.params)).items()))))


SCALES = {
    "smoke": Scale(
        ("textbox:simple-fr(test=200,train=480)",), ("resnet20", "vit_tiny"),
        Training(epochs=4, batch=32, tuned=2), 8, 4, ("GradCAM", "GradCAM++"),
        {
            "IG": "steps=3", "SmoothGrad": "draws=3", "BlurIG": "sigma=14,steps=3", "GuidedIG": "steps=3",
            "LIME": "cells=4,samples=16,segments=grid",
        },
        ablated=("resnet20",), ablation=("GradCAM",), ablation_images=4, magnitudes=1, grains=(0.0, 1.0, 2.8, 8.0),
    ),
    "quick": Scale(
        (), ("resnet20", "convnext_tiny", "vit_tiny", "swin_tiny"), Training(epochs=40), 200, 51,
        (*PLAIN, "SmoothGrad"),
        {  # at 32 pixels: less blur, and pieces at all; in a GPU's minutes: fewer steps
            "BlurIG": "sigma=7,steps=50", "GuidedIG": "steps=100", "SmoothGrad": "draws=25",
            "LIME": "cells=6,samples=300,segments=grid",
        },
        ablated=("convnext_tiny", "vit_tiny"), batch=2048,
    ),
    "paper": Scale(
        (), ("resnet50", "convnext_small", "vit_b_16", "swin_t"), Training(recipe="the data set's"), 501, 51,
        init="pretrained", side=224, ablated=("resnet50", "vit_b_16"),
        grains=(0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 28.0),
    ),
}  # fmt: skip

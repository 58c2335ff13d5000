"""What a classifier's classes are called, where its weights say so."""

from pathlib import Path

import torchvision

from saliometer.engine.image_cards import is_trained, read_card
from saliometer.engine.source import Source
from saliometer.engine.zoo import LITE, torchvision_names
from saliometer.registry import Spec


def names_in(source: Source) -> tuple[str, ...]:
    """Of the folders of pictures, where these are the classes."""
    return source.pictures.classes if source.pictures and source.labels is not None else ()


def class_names(asked: str, loaded: str) -> tuple[str, ...]:
    """By the model's name as it was asked for and as it was loaded, weights included; () where nobody says."""
    if is_trained(asked):
        return tuple(map(str, read_card(Path(asked))["classes"]))
    spec = Spec.parse(loaded)
    weights = str(dict(spec.params).get("weights", ""))
    if spec.name in torchvision_names():
        return _published(spec.name, weights)
    if weights:  # a file that nobody but the user knows
        return ()
    if spec.name == LITE:
        return _published("resnet50", "IMAGENET1K_V1")  # the same thousand in the same order
    return _timm(spec.name.removeprefix("timm:")) if spec.name.startswith("timm:") else ()


def _published(name: str, weights: str) -> tuple[str, ...]:
    """Torchvision's, by the name of the weights or of their file."""
    for recipe in torchvision.models.get_model_weights(name):
        if weights in (recipe.name, Path(recipe.url).name):
            return tuple(recipe.meta["categories"])
    return ()


def _timm(name: str) -> tuple[str, ...]:
    """Timm's, which says how many classes its weights have and, by that, of which part of ImageNet."""
    import timm
    from timm.data.imagenet_info import ImageNetInfo, infer_imagenet_subset

    config = timm.get_pretrained_cfg(name)
    subset = infer_imagenet_subset({"num_classes": config.num_classes}) if config else None
    known = ImageNetInfo(subset) if config and subset else None
    return tuple(known.index_to_description(place) for place in range(config.num_classes)) if known and config else ()

"""Maps for any classifier and any images, by a method's name, a spec string or a callable."""

import torch
from torch import Tensor, nn

from saliometer.engine.answer import Answers
from saliometer.engine.resolve import Asked, one_method
from saliometer.engine.score import Failure, attributions
from saliometer.registry import Spec
from saliometer.seeds import fork, forks
from saliometer.types import Batch, Model

NOT_A_CAM_LAYER = (nn.Dropout, nn.Identity, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)


def explain(
    model: Model | nn.Module,
    images: Tensor,
    method: Asked,
    targets: Tensor | None = None,
    *,
    channels: bool = False,
    seed: int = 0,
    batch_size: int = 0,
    **params: bool | int | float | str,
) -> Tensor:
    """Signed maps (N, H, W) of the images, or with `channels` (N, C, H, W); explains the predicted class by default."""
    if images.ndim != 4 or not images.is_floating_point() or not images.isfinite().all():
        came = f"shape {tuple(images.shape)}, {images.dtype}"
        raise ValueError(f"images have {came}: wanted finite floating point numbers of shape (N, C, H, W)")
    if isinstance(method, str):
        spec = Spec.parse(method)
        method = str(Spec(spec.name, tuple(sorted((dict(spec.params) | params).items()))))
    elif params:
        raise ValueError("parameters go with a method's name; bind those of a callable with functools.partial")
    wrapped = model if isinstance(model, Model) else _wrapped(model, images)
    answers = Answers(wrapped, images.device, batch_size)
    if targets is None:
        targets = answers.predicted(images)
    _check_targets(targets, answers, images)
    seeds = forks(fork("explain", seed), torch.arange(len(images), device=images.device))
    chosen = one_method(method)
    found = attributions([chosen], answers, Batch(images, targets, seeds))[chosen.label]
    if isinstance(found, Failure):
        if isinstance(found.error, ValueError | LookupError) and not chosen.own:
            raise found.error  # it says in words what was wrong
        raise RuntimeError(f"method '{chosen.label}' failed: {found.message}") from found.error
    return found.maps if channels else found.maps.sum(1)


def _check_targets(targets: Tensor, answers: Answers, images: Tensor) -> None:
    classes = answers.classes(images[:1])
    if targets.shape != (len(images),) or targets.dtype != torch.int64:
        came = f"shape {tuple(targets.shape)}, {targets.dtype}"
        raise ValueError(f"targets have {came}: wanted int64 of shape ({len(images)},), one class for each image")
    if len(targets) and not (int(targets.min()) >= 0 and int(targets.max()) < classes):
        came = f"{int(targets.min())}..{int(targets.max())}"
        raise ValueError(
            f"targets are {came}, but model '{answers.model.name}' has {classes} classes, 0..{classes - 1}"
        )


def _wrapped(net: nn.Module, images: Tensor) -> Model:
    if net.training:
        raise ValueError("the model is in train mode, where its output depends on the batch: call model.eval() first")
    return Model(type(net).__name__, net, _cam_layer(net, images[:1]), "")


def _cam_layer(net: nn.Module, images: Tensor) -> str:
    """The last layer that gives feature maps of more than one place and is not a pooling; '' if there is none."""
    last = ""
    names = {module: name for name, module in net.named_modules() if not list(module.children())}

    def hear(module: nn.Module, _inputs: object, output: object) -> None:
        nonlocal last
        spatial = isinstance(output, Tensor) and output.ndim == 4 and output.shape[2:].numel() > 1
        if spatial and not isinstance(module, NOT_A_CAM_LAYER):
            last = names[module]

    handles = [module.register_forward_hook(hear) for module in names]
    try:
        with torch.no_grad():
            net(images)
    finally:
        for handle in handles:
            handle.remove()
    return last

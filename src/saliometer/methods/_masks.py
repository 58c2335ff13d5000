"""What methods that switch parts of an image on and off share."""

import torch
from torch import Tensor

from saliometer.methods import _segments
from saliometer.registry import one_of
from saliometer.types import Model, Variants


def flat(scores: Tensor) -> Tensor:
    """(N,) bool: whether (count, N) scores are the same for every mask, up to the rounding of float32."""
    return scores.amax(0) - scores.amin(0) <= 1e-6 * scores.abs().amax(0)


def cut(model: Model, images: Tensor, segments: str, *, max_dist: float, cells: int, on: str = "pixels") -> Tensor:
    """(N, H, W) int64: each image's segments, counted from 0; `on` says which values are cut by their colour."""
    one_of("segments", segments, ("quickshift", "grid"))
    one_of("on", on, ("pixels", "input"))
    if segments == "grid":
        return _segments.grid(images, cells)
    return _segments.quickshift(model.pixels(images) if on == "pixels" else images, max_dist=max_dist)


def sizes(labels: Tensor) -> Tensor:
    """(N, S) int64: how many pixels each segment has; 0 beyond the last of an image with fewer than S."""
    places = labels.flatten(1)
    return places.new_zeros(len(labels), int(labels.max()) + 1).scatter_add_(1, places, torch.ones_like(places))


def switched(images: Tensor, blank: Tensor, labels: Tensor, switches: Tensor) -> Variants:
    """Copies of which each keeps the segments that its row of (count, N, S) switches says; the others are blank."""
    places = labels.flatten(1)

    def variants(ks: range) -> Tensor:
        kept = switches[ks.start : ks.stop].gather(2, places.expand(len(ks), -1, -1))
        return torch.where(kept.view(len(ks), len(images), 1, *images.shape[2:]), images, blank)

    return variants


def painted(values: Tensor, labels: Tensor) -> Tensor:
    """(N, 1, H, W): every pixel with its segment's of (N, S) values."""
    return values.gather(1, labels.flatten(1)).view_as(labels)[:, None]


def segment_means(images: Tensor, labels: Tensor) -> Tensor:
    """Every segment in its own mean colour; summed in float64, where the order of the sum is lost in rounding."""
    counts = sizes(labels)  # (N, S)
    places = labels.flatten(1)[:, None].expand(-1, images.shape[1], -1)  # (N, C, H W)
    sums = images.new_zeros(*images.shape[:2], counts.shape[1], dtype=torch.float64)
    sums.scatter_add_(2, places, images.flatten(2).double())
    return (sums / counts.clamp(min=1)[:, None]).gather(2, places).view_as(images).to(images.dtype)

"""The images of an audit, a chunk at a time: read from files, or tensors that are there already."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from saliometer.seeds import fork
from saliometer.transforms import parsed, partners, transformed
from saliometer.types import PRIMARY, Batch, Model, Samples

if TYPE_CHECKING:
    from saliometer.images import Pictures, Preprocessing


@dataclass(frozen=True, eq=False)
class Source:
    """What is explained: ids, labels where they are known, and images when they are asked for."""

    name: str
    ids: tuple[str, ...]
    labels: Tensor | None  # (N,) int64
    fingerprint: str
    tensors: Tensor | None = None  # (N, C, H, W) as the model takes them
    masks: Tensor | None = None  # (N, H, W) uint8: 255 the object, 0 not, between unknown
    pictures: "Pictures | None" = None
    preprocessing: "Preprocessing | None" = None
    skipped: tuple[tuple[str, str], ...] = ()  # files that could not be read, with the reason
    condition: str = ""  # how the images are transformed, in rows
    blended: Tensor | None = None  # (N,) int64: the class of the picture that is blended in

    def __len__(self) -> int:
        return len(self.ids)

    def images(self, start: int, stop: int, device: torch.device | str = "cpu") -> Tensor:
        """(N, C, H, W) float32, as the model takes them."""
        if self.tensors is not None:
            return self.tensors[start:stop].to(device)
        assert self.pictures is not None
        assert self.preprocessing is not None
        pixels = torch.stack([self.preprocessing.tensor(self.pictures.picture(i)) for i in range(start, stop)])
        mean, std = (pixels.new_tensor(v).view(1, -1, 1, 1) for v in (self.preprocessing.mean, self.preprocessing.std))
        return ((pixels - mean) / std).to(device)

    def truth(self, start: int, stop: int) -> tuple[Tensor, Tensor] | None:
        """(N, H, W) bool twice, the objects' pixels and those that nobody labelled; None where there are no masks."""
        if self.tensors is not None:
            return None if self.masks is None else _read_mask(self.masks[start:stop])
        assert self.pictures is not None
        assert self.preprocessing is not None
        if not self.pictures.has_masks:
            return None
        drawn = [self.preprocessing.mask(self.pictures.mask(i)) for i in range(start, stop)]
        return _read_mask(torch.stack([torch.from_numpy(np.asarray(one)) for one in drawn]))

    @property
    def truth_mark(self) -> dict[str, str]:
        """The SHA-256 of labels and masks, '' where there are none."""
        labels = "" if self.labels is None else _digest(str(self.labels.tolist()).encode())
        masks = "" if self.masks is None else _digest(self.masks.cpu().numpy().tobytes())
        if self.pictures is not None and self.pictures.has_masks:
            drawn = (item.mask() if item.mask else str(item.box).encode() for item in self.pictures.items)
            masks = _digest(b"".join(hashlib.sha256(one).digest() for one in drawn))
        return {"labels": labels, "masks": masks}

    def samples(self, start: int, stop: int, seed: int, device: torch.device) -> Samples:
        images = self.images(start, stop, device)
        known = self.truth(start, stop)
        count, (height, width) = len(images), images.shape[2:]
        objects, unlabelled = torch.zeros(count, 0, height, width, dtype=torch.bool, device=device), None
        if known is not None:
            objects, unlabelled = known[0][:, None].to(device), known[1].to(device)
        labels = torch.full((count,), -1) if self.labels is None else self.labels[start:stop]
        seeds = torch.tensor([fork("audit", seed, name) for name in self.ids[start:stop]], device=device)
        roles = torch.full(objects.shape[:2], PRIMARY, dtype=torch.int8, device=device)
        boxes = torch.zeros(*objects.shape[:2], 4, dtype=torch.int64, device=device)
        buckets = tuple("" if label < 0 else str(label) for label in labels.tolist())
        batch = Batch(images, labels.clamp(min=0).to(device), seeds)
        return Samples(batch, self.ids[start:stop], labels.to(device), objects, boxes, roles, buckets, unlabelled)

    def references(self, most: int, seed: int, device: torch.device) -> Tensor:
        """Images of the set, by seed, for methods that compare with them."""
        order = np.random.default_rng(fork("references", seed)).permutation(len(self))[:most]
        return torch.cat([self.images(place, place + 1, device) for place in sorted(order.tolist())])

    def under(self, transform: str, seed: int, model: Model) -> "Source":
        """All images transformed, as pixels before the model's normalisation; rows name the transform."""
        images = self.images(0, len(self))
        labels = torch.zeros(len(self), dtype=torch.int64) if self.labels is None else self.labels
        mean, std = (model.channels(images, values) for values in (model.mean, model.std))
        lots = fork("transform", seed)
        pixels = transformed(transform, model.pixels(images).clamp(0, 1), labels, lots)
        return replace(
            self, tensors=(pixels - mean) / std, masks=None, pictures=None, condition=transform,
            fingerprint=f"{self.fingerprint} {transform} {seed}",
            blended=labels[partners(labels, lots)] if parsed(transform)[0].name == "mixup" else None,
        )  # fmt: skip

    def second(self) -> "Source":
        """The same blends, of which the other class is explained; rows call them `mixup_second(...)`."""
        condition = self.condition.replace("mixup(", "mixup_second(", 1)
        return replace(self, labels=self.blended, blended=self.labels, condition=condition)

    def some(self, count: int, seed: int) -> "Source":
        """So many of the images by lot, or all if there are no more; fewer are among those that more would be."""
        if not 0 < count < len(self):
            return self
        lots = np.random.default_rng(fork("some images", seed)).permutation(len(self))[:count]
        places = sorted(lots.tolist())
        tensors, masks, labels, blended = (
            None if one is None else one[places] for one in (self.tensors, self.masks, self.labels, self.blended)
        )
        return replace(
            self, ids=tuple(self.ids[place] for place in places), labels=labels, tensors=tensors, masks=masks,
            blended=blended,
            pictures=None if self.pictures is None else self.pictures.some(places),
            fingerprint=f"{self.fingerprint} some {count} {seed}",
        )  # fmt: skip


def of_tensors(
    images: Tensor, labels: Tensor | None = None, masks: Tensor | None = None, name: str = "images"
) -> Source:
    """Images that are at hand, as the model takes them."""
    if not isinstance(images, Tensor) or images.ndim != 4 or not len(images) or not images.is_floating_point():
        came = f"shape {tuple(images.shape)}, {images.dtype}" if isinstance(images, Tensor) else type(images).__name__
        raise ValueError(f"images: {came} came, wanted a floating point tensor (N, C, H, W), N of 1 or more")
    if not bool(images.isfinite().all()):
        raise ValueError("images hold NaN or infinity: wanted finite numbers")
    labels = None if labels is None else _checked_labels(numbers(labels), len(images))
    drawn = None if masks is None else _checked_masks(masks, images)
    kept = images.detach().float()
    ids = tuple(f"image-{i}" for i in range(len(images)))
    return Source(name, ids, labels, mark_of(kept), kept, drawn)


def _checked_masks(masks: Any, images: Tensor) -> Tensor:
    """(N, H, W) uint8, from booleans, 0 and 1, or 0 to 255."""
    try:
        drawn = torch.as_tensor(masks)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"masks are of type {type(masks).__name__}, wanted a tensor or array") from error
    wanted = (len(images), *images.shape[2:])
    if drawn.shape != wanted:
        raise ValueError(f"masks have shape {tuple(drawn.shape)}, wanted {wanted}: one for each image")
    low, high = float(drawn.min()), float(drawn.max())
    if not 0 <= low <= high <= 255 or (drawn.is_floating_point() and not bool((drawn == drawn.round()).all())):
        raise ValueError(
            f"masks hold {drawn.dtype} from {low:.3g} to {high:.3g}: wanted True and False, or 255 on the object, 0 "
            "off it"
        )
    return (drawn.to(torch.uint8) * (255 if high <= 1 else 1)).to(torch.uint8)


def _read_mask(values: Tensor) -> tuple[Tensor, Tensor]:
    return values == 255, (values > 0) & (values < 255)


def mark_of(images: Tensor) -> str:
    """The SHA-256 of their shape and values."""
    return _digest(str(tuple(images.shape)).encode() + images.cpu().contiguous().numpy().tobytes())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def of_batches(loader: Iterable[Any], limit: int = 0) -> Source:
    """All images that a DataLoader gives, with labels where its batches hold them."""
    images: list[Tensor] = []
    labels: list[Tensor] = []
    count = 0
    for batch in loader:
        first, *rest = batch if isinstance(batch, tuple | list) else (batch,)
        if not isinstance(first, Tensor):
            kind = type(first).__name__
            raise ValueError(f"the DataLoader gave a batch of {kind}: wanted a tensor of images, alone or with labels")
        images.append(first)
        labels += [numbers(rest[0])] if rest else []
        count += len(first)
        if limit and count >= limit:
            break
    if not images:
        raise ValueError("the DataLoader gave no images: wanted one batch or more")
    if labels and len(labels) != len(images):
        raise ValueError("some batches of the DataLoader hold labels and some do not")
    whole = torch.cat(images)
    return of_tensors(whole[: limit or None], torch.cat(labels)[: limit or None] if labels else None)


def of_photographs(preprocessing: "Preprocessing", limit: int = 0) -> Source:
    """Photographs that installed packages carry."""
    from PIL import Image

    from saliometer.photos import photographs

    found = dict(list(photographs().items())[: limit or None])
    pixels = torch.stack([preprocessing.tensor(Image.fromarray(array)) for array in found.values()])
    mean, std = (pixels.new_tensor(values).view(1, -1, 1, 1) for values in (preprocessing.mean, preprocessing.std))
    return replace(of_tensors((pixels - mean) / std, name="photographs"), ids=tuple(found))


def of_pictures(pictures: "Pictures", preprocessing: "Preprocessing", name: str) -> Source:
    labels = None if pictures.labels is None else _checked_labels(torch.tensor(pictures.labels), len(pictures))
    return Source(
        name, tuple(pictures.names), labels, pictures.fingerprint, pictures=pictures, preprocessing=preprocessing,
        skipped=tuple(pictures.skipped.items()),
    )  # fmt: skip


def numbers(labels: Any) -> Tensor:
    """Labels as a tensor, whatever they came in."""
    try:
        return torch.as_tensor(labels)
    except (TypeError, ValueError, RuntimeError) as error:
        came = f"a {type(labels).__name__} came ({error})"
        raise ValueError(f"labels: {came}, wanted whole numbers of 0 or more, one for each image") from error


def _checked_labels(labels: Tensor, count: int) -> Tensor:
    if labels.shape != (count,) or labels.is_floating_point() or (count and int(labels.min()) < 0):
        came = f"shape {tuple(labels.shape)}, {labels.dtype}"
        raise ValueError(f"labels have {came}: wanted {count} whole numbers of 0 or more, one for each image")
    return labels.to(torch.int64)

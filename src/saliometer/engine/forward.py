"""How passes without gradients run: lean ones, where they give what the network gives; else the network."""

import weakref
from collections.abc import Callable

import torch
from torch import Tensor, nn

from saliometer.engine.device import out_of_memory
from saliometer.fused import kernels, onednn
from saliometer.graph import modules_of
from saliometer.graph.lean import LARGE, Lean, NotFiniteError
from saliometer.graph.made import Made
from saliometer.types import Model

WORTH = {"cuda": 2**32, "cpu": 2**26}  # pixels that go through until the seconds of preparing lean passes are won back
BRIGHTER = 10  # images that are so many times as large are compared again: sums may overflow, which a clamp hides
CLOSE = 1e-4  # what logits may differ by, relative to the largest

_known: weakref.WeakKeyDictionary[nn.Module, tuple[object, Made, Lean | None]] = weakref.WeakKeyDictionary()


def forward_of(model: Model, image: Tensor) -> Callable[[Tensor], Tensor]:
    """For images like this one, (1, C, H, W)."""
    return Forward(model, image) if kernels(image) or onednn.fits(image) else model.logits


def worth_preparing(images: Tensor, passes: float) -> bool:
    """Whether so many passes of every image are enough for lean ones."""
    return passes * images[:, 0].numel() >= WORTH.get(images.device.type, torch.inf)


class Forward:
    """Lean passes, each batch size of which is compared with the network's own when it is first seen.

    They were prepared for a network as it was then, perhaps in an earlier call: if they no longer agree they are
    prepared anew, once; if that does not help, the network itself runs from then on.
    """

    def __init__(self, model: Model, image: Tensor) -> None:
        self.model, self._like = model, _like(image)
        self._lean: Lean | None = None
        self._modules: list[nn.Module] = []
        self._begun = self._fresh = False
        self._agreed: set[int] = set()  # batch sizes
        self._largest = 0.0  # number in the images that were compared

    def __call__(self, images: Tensor) -> Tensor:
        if not self._begun and len(images):
            self._begin(images)
        if self._lean is None or self._hooked() or _like(images) != self._like or not len(images):
            return self.model.logits(images)
        largest = float(torch.linalg.vector_norm(images, torch.inf)) if self._lean.hides_nan else 0.0
        if not largest < LARGE:
            return self.model.logits(images)
        agreed = len(images) in self._agreed
        if agreed and largest <= BRIGHTER * self._largest:
            try:
                return self._lean(images)
            except NotFiniteError:
                return self.model.logits(images)
        own = self.model.logits(images)
        if not own.isfinite().all():
            return own  # with which nothing can be compared
        found = self._believed(images, own)
        if found is None and agreed:
            return own  # for such images only
        if found is None and not self._fresh:
            self._prepare(images)
            found = self._believed(images, own)
        if found is None:
            self._keep(None)
            return own
        self._agreed.add(len(images))
        self._largest = max(self._largest, largest)
        return found

    def _believed(self, images: Tensor, own: Tensor) -> Tensor | None:
        """Lean logits, if they are the network's own and it runs nothing else in batches of this size."""
        found = None if self._lean is None else _tried(self._lean, images, own)
        if found is None or self._lean is None:
            return None
        with torch.inference_mode(False):
            return found if self._lean.fits(self.model.net, self.model.logits, images) else None

    def _begin(self, images: Tensor) -> None:
        self._begun, self._modules = True, modules_of(self.model.net)
        if self._hooked():
            return
        like, made, lean = _known.get(self.model.net, (None, None, None))
        if made is None or like != self._like or not made.is_still(self._modules):
            self._prepare(images)
        elif lean is not None:
            self._use(lean)

    def _hooked(self) -> bool:
        """Whether somebody listens in, or changes what layers give: that is done in the network alone."""
        shared = torch.nn.modules.module
        if shared._global_forward_hooks or shared._global_forward_pre_hooks:
            return True
        return any(module._forward_hooks or module._forward_pre_hooks for module in self._modules)

    def _use(self, lean: Lean) -> None:
        """What it makes of weights is made anew, and goes when this does."""
        self._lean = lean
        lean.begin_anew()
        weakref.finalize(self, lean.begin_anew)

    def _prepare(self, images: Tensor) -> None:
        self._fresh = True
        try:
            with torch.inference_mode(False):  # what is made in there does not say when it is written to
                lean = Lean(self.model.net, self.model.logits, images[:1])
            self._keep(lean)
            self._use(lean)
        except Exception as error:  # a network that nobody thought of loses speed, not its answer
            if out_of_memory(error):
                raise
            self._keep(None)

    def _keep(self, lean: Lean | None) -> None:
        self._lean = lean
        self._agreed.clear()
        _known[self.model.net] = self._like, Made(self._modules), lean


def _like(images: Tensor) -> object:
    return images.shape[1:], images.dtype, images.device


def _tried(lean: Lean, images: Tensor, own: Tensor) -> Tensor | None:
    """Its logits, if they are the network's own; one that fails with channels last gets the plain layout."""
    try:
        found = lean(images)
    except NotFiniteError:
        return None
    except Exception as error:
        if out_of_memory(error):
            raise
        if lean.layout == torch.contiguous_format:
            return None
        lean.lay_out_plainly()
        return _tried(lean, images, own)
    if found.shape != own.shape:
        return None
    size = own.abs().where(found != own, 0).max()  # not that of a class switched off by a large constant
    return found if bool((found - own).abs().max() <= CLOSE * size) else None  # never for NaN

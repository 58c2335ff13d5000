"""The battery's metrics as other libraries offer them: the same maps, the same passes, settings that are fast for them.

Quantus takes NumPy arrays; it gets all images in one batch, a map of one channel, the device, and no warnings. On a
machine without it, its own folder and what else is missing of its pure Python can be carried along.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Asked:
    """What a peer is to judge."""

    net: nn.Module
    images: Tensor
    targets: Tensor
    maps: Tensor  # (N, C or 1, H, W)
    masks: Tensor  # (N, H, W) bool
    params: dict[str, Any]  # of our metric
    batch: int  # rows in one of our passes

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """What Quantus is called with."""
        one, masks = self.maps.sum(1, keepdim=True), self.masks[:, None]
        images, targets, maps, truth = (part.cpu().numpy() for part in (self.images, self.targets, one, masks))
        kept = {"x_batch": images, "y_batch": targets, "a_batch": maps, "s_batch": truth}
        return {**kept, "channel_first": True, "device": str(self.images.device), "batch_size": len(images)}

    @property
    def values(self) -> int:
        """Of one image, over its channels: what Quantus ranks."""
        return self.images[0].numel()

    @property
    def side(self) -> int:
        return self.images.shape[-1]


Ready = Callable[[Asked], Callable[[], object]]


@dataclass(frozen=True)
class Peer:
    name: str
    ready: Ready


def of(metric: str) -> list[Peer]:
    return PEERS.get(metric, [])


def quantus(name: str, given: Callable[[Asked], dict[str, Any]] = lambda asked: {}, explains: bool = False) -> Ready:
    """A class of Quantus's; `given` says its options, `explains` that it explains anew."""

    def ready(asked: Asked) -> Callable[[], object]:
        import quantus as library

        options = {"return_aggregate": False, "disable_warnings": True, "display_progressbar": False, **given(asked)}
        metric, arrays = getattr(library, name)(**options), asked.arrays
        more = {"explain_func": _gradient} if explains else {}

        def work() -> object:
            fresh = {**arrays, "a_batch": arrays["a_batch"].copy()}  # some write into the maps
            return metric(model=asked.net, **fresh, **more)

        return work

    return ready


def _gradient(model: nn.Module, inputs: np.ndarray, targets: np.ndarray, device: str = "cpu", **_: Any) -> np.ndarray:
    """(N, 1, H, W): the bare gradient, so that what is timed is the metric."""
    rows = torch.as_tensor(inputs, dtype=torch.float32, device=device).requires_grad_()
    chosen = torch.as_tensor(targets, dtype=torch.int64, device=device)
    (slopes,) = torch.autograd.grad(model(rows).gather(1, chosen[:, None]).sum(), rows)
    return slopes.sum(1, keepdim=True).cpu().numpy()


def _flipping(asked: Asked) -> dict[str, Any]:
    return {"features_in_step": asked.values // asked.params["steps"], "perturb_baseline": "black"}


def _sets(asked: Asked) -> dict[str, Any]:
    return {"features_in_step": asked.values // asked.params["sets"], "perturb_baseline": "black"}


def _filled_sets(asked: Asked) -> dict[str, Any]:
    return {**_sets(asked), "nr_samples": asked.params["fills"], "perturb_baseline": "uniform"}


def _drawn(asked: Asked) -> dict[str, Any]:
    return {"nr_samples": asked.params["draws"]}


def _runs(asked: Asked) -> dict[str, Any]:
    size = max(1, round(asked.side**2 / 224))
    return {"nr_runs": asked.params["runs"], "subset_size": size, "perturb_baseline": "black"}


def _patches(asked: Asked) -> dict[str, Any]:
    """Sixteen patches, as often as it takes for the same number of passes."""
    return {"perturb_patch_sizes": [asked.side // 4], "n_perturb_samples": asked.params["draws"] // 16}


def captum_infidelity(asked: Asked) -> Callable[[], object]:
    from captum.metrics import infidelity

    def changed(images: Tensor) -> tuple[Tensor, Tensor]:
        noise = 0.2 * torch.randn_like(images)
        return noise, images - noise

    maps, draws = asked.maps.expand_as(asked.images), asked.params["draws"]

    def work() -> Tensor:
        with torch.no_grad():
            return infidelity(
                asked.net, changed, asked.images, maps, target=asked.targets, n_perturb_samples=draws,
                max_examples_per_batch=max(asked.batch, len(asked.images)),
            )  # fmt: skip

    return work


def captum_sensitivity(asked: Asked) -> Callable[[], object]:
    from captum.attr import Saliency
    from captum.metrics import sensitivity_max

    method, draws = Saliency(asked.net), asked.params["draws"]
    together = max(asked.batch, len(asked.images))
    return lambda: sensitivity_max(
        method.attribute, asked.images, perturb_radius=0.2, n_perturb_samples=draws, max_examples_per_batch=together,
        target=asked.targets, abs=False,
    )  # fmt: skip


def grad_cam_road(asked: Asked) -> Callable[[], object]:
    """Its percentiles are the shares kept; over all nine the shares removed are the same."""
    from pytorch_grad_cam.metrics.road import ROADCombined
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputSoftmaxTarget

    metric = ROADCombined(percentiles=[10, 20, 30, 40, 50, 60, 70, 80, 90])
    targets = [ClassifierOutputSoftmaxTarget(target) for target in asked.targets.tolist()]
    maps = asked.maps.abs().amax(1).cpu().numpy()
    return lambda: metric(asked.images, maps, targets, asked.net)


PEERS: dict[str, list[Peer]] = {
    "deletion": [Peer("Quantus PixelFlipping", quantus("PixelFlipping", _flipping))],
    "monotonicity(nguyen)": [Peer("Quantus MonotonicityCorrelation", quantus("MonotonicityCorrelation", _filled_sets))],
    "monotonicity(arya)": [Peer("Quantus Monotonicity", quantus("Monotonicity", _sets))],
    "max_sensitivity": [
        Peer("Quantus MaxSensitivity", quantus("MaxSensitivity", _drawn, explains=True)),
        Peer("Captum sensitivity_max", captum_sensitivity),
    ],
    "avg_sensitivity": [Peer("Quantus AvgSensitivity", quantus("AvgSensitivity", _drawn, explains=True))],
    "faithfulness_correlation": [Peer("Quantus FaithfulnessCorrelation", quantus("FaithfulnessCorrelation", _runs))],
    "infidelity": [
        Peer("Quantus Infidelity", quantus("Infidelity", _patches)),
        Peer("Captum infidelity", captum_infidelity),
    ],
    "completeness": [Peer("Quantus Completeness", quantus("Completeness"))],
    "sparseness": [Peer("Quantus Sparseness", quantus("Sparseness"))],
    "complexity": [Peer("Quantus Complexity", quantus("Complexity"))],
    "effective_complexity(threshold)": [Peer("Quantus EffectiveComplexity", quantus("EffectiveComplexity"))],
    "pointing_game": [Peer("Quantus PointingGame", quantus("PointingGame"))],
    "road": [Peer("pytorch-grad-cam ROADCombined", grad_cam_road)],
}

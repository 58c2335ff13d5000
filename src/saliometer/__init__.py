"""Measures whether saliency maps tell the truth, on models whose reasoning is known."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saliometer.allocator import keep_memory
    from saliometer.engine.audit import audit
    from saliometer.engine.bench import bench
    from saliometer.engine.explain import explain
    from saliometer.engine.identify import identify
    from saliometer.registry import method, metric, model, task
    from saliometer.types import Batch, Features, Gradients, Logits, Model, Samples

__version__ = "0.1.0"
__all__ = [
    "Batch", "Features", "Gradients", "Logits", "Model", "Samples", "__version__", "audit", "bench", "explain",
    "identify", "keep_memory", "method", "metric", "model", "task",
]  # fmt: skip
_HOMES = {
    "allocator": ("keep_memory",),
    "engine.audit": ("audit",),
    "engine.bench": ("bench",),
    "engine.explain": ("explain",),
    "engine.identify": ("identify",),
    "registry": ("method", "metric", "model", "task"),
    "types": ("Batch", "Features", "Gradients", "Logits", "Model", "Samples"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `saliometer --help` need not wait for torch."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"saliometer.{home}"), name)
    raise AttributeError(f"module 'saliometer' has no attribute '{name}'")

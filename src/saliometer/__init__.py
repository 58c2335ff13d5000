"""Measures whether saliency maps tell the truth, on models whose reasoning is known."""

__version__ = "0.1.0"

from saliometer.engine.bench import bench
from saliometer.engine.explain import explain
from saliometer.registry import method, metric, model, task
from saliometer.types import Batch, Features, Gradients, Logits, Model, Samples

__all__ = [
    "Batch", "Features", "Gradients", "Logits", "Model", "Samples", "__version__", "bench", "explain", "method",
    "metric", "model", "task",
]  # fmt: skip

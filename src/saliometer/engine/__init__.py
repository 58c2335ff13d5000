"""Drives methods and metrics: the only place that moves tensors to a device, splits batches, caches and catches."""

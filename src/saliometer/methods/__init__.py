"""Saliency methods, one file each: (model, batch) -> signed attribution (N, C, H, W)."""

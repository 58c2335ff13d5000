"""Metrics, one file each: (maps, samples) -> one value per sample."""

"""Sanity checks: whether maps follow what a network has learned, by randomising it and by changing its task."""

"""Measures whether saliency maps tell the truth, on models whose reasoning is known."""

__version__ = "0.1.0"

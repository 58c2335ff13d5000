"""Sanity checks by randomisation: layers in the order in which they run, weights drawn anew, how alike maps are."""

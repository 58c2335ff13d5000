"""Classifiers, one file per architecture; fit.py trains one on a task, shipped.py loads the trained ones."""

"""`python -m saliometer`."""

from saliometer.cli import main

main()

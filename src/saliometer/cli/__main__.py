"""`python -m saliometer.cli`."""

from saliometer.cli import main

main()

"""One file per paper: what it runs, its reference numbers, and how ours compare."""

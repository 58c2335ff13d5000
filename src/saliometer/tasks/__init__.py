"""Images whose evidence is known, one file per task."""

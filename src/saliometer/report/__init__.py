"""One HTML page from rows and thumbnails alone: no model, no network, nothing beside the file."""

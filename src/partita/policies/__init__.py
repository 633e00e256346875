"""The algorithms, one per file, all with the same few methods."""

"""One file an algorithm, all behind the same few methods."""

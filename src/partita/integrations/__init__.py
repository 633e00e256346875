"""Partita inside other tools. Each module needs the tool it is named for, and nothing else does."""

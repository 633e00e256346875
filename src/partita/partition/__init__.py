"""Cells of the domain: their geometry, data and bounds, and the choice among them."""

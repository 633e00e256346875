"""Figures of plain data: series, bands, maps, slices."""

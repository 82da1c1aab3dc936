"""Grids of starts: cells as rows of a sweep, maps of them, the page's grid, what stays of it."""

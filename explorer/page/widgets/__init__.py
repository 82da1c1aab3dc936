"""Widgets that stand alone in a cell, made of the views, controls and panels of the page."""

"""Colours, sizes and names by meaning: the only place that decides how things look."""

from __future__ import annotations

from pathlib import Path

# Okabe and Ito's palette: blue and vermilion stay apart for the common colour blindnesses.
POSITIVE = "#0072B2"
NEGATIVE = "#D55E00"
CONTROL = "#999999"
INK = "#7a7a7a"  # readable on white and on dark
PROVEN = "#009E73"
LINES = (("ink", False), ("ink3", False), ("good", False), ("ink2", True))  # and if dashed
CURVES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
SHADES = {"truth": PROVEN, "heldout": CONTROL, "noise": CURVES[3]}  # corners of the starts
COLOURS = {1: POSITIVE, -1: NEGATIVE, 3: "#009E73", 4: "#CC79A7"}
MARKERS = {1: "circle", -1: "triangle-up", 3: "square", 4: "diamond"}
NAMES = {1: "+1 (blue circle)", -1: "−1 (orange triangle)", 3: "3 (green square)",
         4: "4 (purple diamond)"}  # fmt: skip
CLASS_INKS = {1: "pos", -1: "neg", 3: "third", 4: "fourth"}  # names of the page's colours
LABELS = tuple(COLOURS)  # the classes that can be drawn: 1 and 2 carry the labels 1 and -1

# The page's colours by name, as its light theme has them (`base.js`): those of a figure on paper.
PAPER_INKS = {
    "ink": "#16191d", "ink2": "#5b6570", "ink3": "#707a84", "accent": "#2f5bea", "good": "#0a7d55",
    "warn": "#9a6700", "pos": POSITIVE, "neg": NEGATIVE, "third": "#009E73", "fourth": "#CC79A7",
}  # fmt: skip

CSS = f"<style>{Path(__file__).with_name('page.css').read_text()}</style>"

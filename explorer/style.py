"""Colours, sizes and names by meaning: the only place that decides how things look."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

# Okabe and Ito's palette: blue and vermilion stay apart for the common colour blindnesses.
POSITIVE = "#0072B2"
NEGATIVE = "#D55E00"
CONTROL = "#999999"
INK = "#7a7a7a"  # readable on white and on dark
PROVEN = "#009E73"
LINES = (("ink", False), ("ink3", False), ("good", False), ("ink2", True))  # and if dashed
CURVES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
SHADES = {"truth": PROVEN, "heldout": CONTROL, "noise": CURVES[3]}  # corners of the starts


class ClassLook(NamedTuple):
    """How the points of a class look.

    Attributes:
        sign: stands for them in a line of text.
        shape: of a mark, as charts and pictures name it.
        ink: name of the colour on the page.
        colour: in the light theme.
        words: colour and shape.
        number: name of the class where there are two, or of a further one.
    """

    sign: str
    shape: str
    ink: str
    colour: str
    words: str
    number: str

    @property
    def name(self) -> str:
        """Return the class in words."""
        return f"{self.number} ({self.words})"


# The classes that can be drawn, by label: the first and the second carry 1 and -1. Green, which
# also says what is recovered or proven, comes last.
CLASSES = {
    1: ClassLook("●", "circle", "pos", POSITIVE, "blue circle", "+1"),
    -1: ClassLook("▲", "triangle", "neg", NEGATIVE, "orange triangle", "−1"),
    3: ClassLook("■", "square", "third", CURVES[3], "purple square", "3"),
    4: ClassLook("◆", "diamond", "fourth", CURVES[2], "green diamond", "4"),
}

# The page's colours by name, as its light theme has them (`base.js`): those of a figure on paper.
PAPER_INKS = {
    "bg": "#f7f8fa", "card": "#ffffff", "line": "#e3e6ea", "soft": "#eef1f5",
    "ink": "#16191d", "ink2": "#5b6570", "ink3": "#707a84", "accent": "#2f5bea",
    "good": "#0a7d55", "warn": "#9a6700", "bad": "#b3261e",
    "plum": "#8e44ad", "petrol": "#1f7a8c", "brown": "#7a4420", "olive": "#6b7318",
    **{look.ink: look.colour for look in CLASSES.values()},
}  # fmt: skip
MANY_INKS = ("ink", "plum", "petrol", "brown", "olive", "ink3")  # of curves: they mean nothing else

CSS = f"<style>{Path(__file__).with_name('page.css').read_text()}</style>"

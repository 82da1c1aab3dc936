"""Questions to the energy of a page's weights, and pictures that answer them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from explorer import triangle
from explorer.engine.data import Dataset
from explorer.engine.energy_maps import Line, tau_of
from explorer.engine.network import Network

Array = NDArray[np.float64]
MAPS = {
    "point": "One point moves",
    "split": "A point splits in two",
    "starts": "All starts of an attack",
    "ridge": "Bilevel loss, affine",
    "last": "Bilevel loss, last layer",
}
TRIANGLE = (11, 26, 51)  # starts along a side, refined like pixels: 66, 351 and 1326 in all
STANDARD = 61  # pixels a side that `pixels` counts in, so that refining changes nothing else


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked.

    Attributes:
        kind: a key of MAPS.
        net: the attacked network at margin 1, before neurons are merged.
        truth: what it was trained on.
        heldout: the other corner of the starts.
        x: the candidates (n, d).
        index: which of them moves or splits.
        extent: half width of the plane.
        frozen: keep the others' multipliers.
        pixels: half width of the band of a kink, in pixels of a map of STANDARD.
        angle: of merged neurons, in radians.
        kappa: price of leaving the margin.
        seed: of the noise corner.
    """

    kind: str
    net: Network
    truth: Dataset
    heldout: Dataset | None
    x: Tensor
    index: int
    extent: float
    frozen: bool = False
    pixels: float = 0.5
    angle: float = 0.02
    kappa: float = 0.0
    seed: int = 0

    def same(self, other: Question | None) -> bool:
        """Whether both have one answer: equal numbers on the very same tensors."""
        if other is None:
            return False
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return all(
            a is b if isinstance(a, Tensor | Network | Dataset) else a == b for a, b in pairs
        )

    def moved_to(self, other: Question) -> bool:
        """Whether `other` differs in places of the candidates alone."""
        return replace(self, x=other.x).same(other) and self.x.shape == other.x.shape

    @property
    def tau(self) -> float:
        """Relative distance of a kink."""
        return tau_of(self.extent, STANDARD, self.pixels)


@dataclass(frozen=True, eq=False)
class Picture:
    """An answer.

    Attributes:
        kind: as asked.
        values: (h, w), first row on top; of a curve (1, p); of the starts a lattice (side, side)
            over their triangle, row noise and column truth, nan where there is no start.
        box: (left, right, bottom, top) of the map.
        names: of the two axes.
        here: the value at the candidates as they are.
        reference: the energy without the point, or nan.
        words: what is seen, in a sentence.
        archetype: its name, or an empty string.
        lowest: where the least value is.
        free: (a+, a-) of a split, else None.
        curve: of a line, else None.
        size: pixels a side.
    """

    kind: str
    values: Array
    box: tuple[float, float, float, float]
    names: tuple[str, str]
    here: float
    reference: float
    words: str
    archetype: str = ""
    lowest: tuple[float, float] = (0.0, 0.0)
    free: tuple[float, float] | None = None
    curve: Line | None = None
    size: int = 0

    def value_at(self, x: float, y: float) -> float:
        """The value of the pixel, or of the nearest place of a curve or lattice; nan outside."""
        if self.curve is not None:
            return float(self.values[0, np.abs(self.curve.z - x).argmin()])
        if self.kind == "starts":
            return triangle.value_at(self.values, x, y)
        left, right, bottom, top = self.box
        h, w = self.values.shape
        i, j = int((top - y) / (top - bottom) * h), int((x - left) / (right - left) * w)
        return float(self.values[i, j]) if 0 <= i < h and 0 <= j < w else float("nan")

    def reading(self, x: float, y: float) -> str:
        """A place and its value in words."""
        if self.kind == "starts":
            where = triangle.reading(x, y)
            value = self.value_at(x, y)
            return f"{where}: {value:.3g}" if np.isfinite(value) else where
        value = self.value_at(x, y)
        first, second = self.names
        words = f"{first} = {x:.2f}, {second} = {y:.2f}: {value:.3g}"
        if np.isfinite(self.reference) and self.reference > 0:
            words += f", {100 * value / self.reference:.3g}% of the energy without the point"
        return words

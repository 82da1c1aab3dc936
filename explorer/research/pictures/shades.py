"""Colours of energies: bright is low, by logarithms or in proportion; or by rank where asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from explorer.engine.arrays import Array
from explorer.engine.explanations.certainty import RadiusMap
from explorer.research.grid.landscape import LEVEL

# Viridis at six even places, as in triangle.js: told apart by the colour-blind.
SHADING = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725")
ROWS = 40  # of each half of a line's map; arbitrary
FLOOR = 1e-12  # a share of the weights below this is rounding
DECADES = 4.0  # of the colours below the highest value; arbitrary
NOISE = LEVEL  # of the weights: a run that ends level is known no better
SCALES = ("log", "linear", "rank")  # of the colours of starts


def span_of(values: Array, reference: float = np.nan) -> tuple[float, float]:
    """Return lowest and highest value of the colours, a power of ten apart where there is room.

    `reference`: a value that is on the scale as well; nan for none.
    """
    finite = values[np.isfinite(values)]
    top = max(float(finite.max(initial=0.0)), FLOOR)
    if np.isfinite(reference):
        top = max(top, reference)
    lowest = max(float(finite.min(initial=top)), FLOOR)
    return max(top * 10**-DECADES, min(lowest, top / 10)), top


def log_shares(values: Array, low: float, top: float) -> Array:
    """Return where values stand between low (0) and top (1), by their logarithms; nan stays."""
    share: Array = np.log(np.maximum(values, low) / low) / np.log(top / low)
    return np.clip(share, 0.0, 1.0)


def start_shades(values: Array, how: str) -> NDArray[np.uint8]:
    """Return the energies of starts as bytes, as `shades` does; `how`: of `SCALES`.

    All triangles have one scale: from `NOISE`, below which all is the brightest, to 1 or the
    highest value. By rank, values of one `NOISE` are alike.
    """
    if how == "rank":
        return shades(np.floor(values / NOISE), True)
    top = start_top(values)
    return shades(values, False, (NOISE, top)) if how == "log" else _bytes(values / top)


def start_top(values: Array) -> float:
    """Return the upper end of the colours of starts: 1, or the highest value where that is more."""
    return float(max(1.0, np.nan_to_num(values, nan=0.0).max(initial=0.0)))


def ranks(values: Array) -> Array:
    """Return the share of the values below each one, equal ones alike, in [0, 1]; nan stays."""
    known = np.isfinite(values)
    out = np.full(values.shape, np.nan)
    if known.any():
        _, at, counts = np.unique(values[known], return_inverse=True, return_counts=True)
        middle = np.cumsum(counts) - (counts + 1) / 2
        out[known] = middle[at.ravel()] / max(int(counts.sum()) - 1, 1)
    return out


def shades(
    values: Array, ranked: bool, span: tuple[float, float] | None = None
) -> NDArray[np.uint8]:
    """Return values as bytes: 1 is the highest, 255 the lowest; 0 where none is.

    `span`: lowest and highest value of the colours; None for `span_of`.
    """
    return _bytes(ranks(values) if ranked else log_shares(values, *(span or span_of(values))))


def _bytes(shares: Array) -> NDArray[np.uint8]:
    """Return shares of the colours as bytes: 0 as 255, 1 as 1; nan as 0."""
    known = np.isfinite(shares)
    return np.where(known, np.rint(255 - 254 * np.where(known, shares, 0.0)), 0).astype(np.uint8)


def radius_span(drawn: RadiusMap) -> tuple[float, float]:
    """Return the least residual and the largest known radius: the ends of the colours."""
    known = drawn.values[np.isfinite(drawn.values)]
    return drawn.least, max(float(known.max(initial=0.0)), 1.01 * drawn.least, FLOOR)


def radius_shades(drawn: RadiusMap) -> NDArray[np.uint8]:
    """Return the larger radius of both labels as bytes (h, w); on a line each label's own half.

    255 is the largest; 0, which is not drawn, where no point is needed or nothing is known yet.
    """
    shown = drawn.values
    if shown.ndim == 3:
        known = np.isfinite(shown).any(axis=0)
        shown = np.where(known, np.nan_to_num(shown).max(axis=0), np.nan)
    else:
        shown = np.repeat(shown, ROWS, axis=0)  # or the two would melt into each other
    low, high = radius_span(drawn)
    share = np.clip((np.nan_to_num(shown) - low) / (high - low), 0.0, 1.0)
    needed = np.nan_to_num(shown) > low
    return np.where(needed, np.rint(1 + 254 * share), 0).astype(np.uint8)

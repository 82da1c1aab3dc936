"""Colours of energies: bright is low, by logarithms, or by rank where nearly all are alike.

Energies of starts that read alike have one colour.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from explorer.engine.arrays import Array
from explorer.engine.explanations.certainty import RadiusMap
from explorer.research.grid.landscape import EXPLAINED

# Viridis at six even places, as in triangle.js: told apart by the colour-blind.
SHADING = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725")
ROWS = 40  # of each half of a line's map; arbitrary
FLOOR = 1e-12  # a share of the weights below this is rounding
DECADES = 4.0  # of the colours below the highest value; arbitrary
CROWDED = 0.8  # of the places within `NEAR` of the colours: then these follow ranks; arbitrary
NEAR = 0.05  # of all colours; arbitrary
PLAIN, LEAST = 0.095, 1e-4  # an energy reads with two decimals from the first, as nothing below


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


def reading(values: Array) -> Array:
    """Return energies as the page prints them; nan stays."""
    known = np.nan_to_num(values)
    digit = 10 ** np.floor(np.log10(np.maximum(known, LEAST)))
    short = np.where(known >= PLAIN, np.round(known, 2), np.round(known / digit) * digit)
    return np.where(np.isfinite(values), np.where(known >= LEAST, short, 0.0), np.nan)


def colours_of(values: Array) -> str:
    """Return how starts of these energies are coloured: "one" colour, by "rank" or by "log"."""
    read = reading(values)
    read = read[np.isfinite(read)]
    if len(read) and np.ptp(read) <= FLOOR:
        return "one"
    return "rank" if by_rank(np.maximum(values, LEAST)) else "log"


def start_shades(values: Array) -> NDArray[np.uint8]:
    """Return the energies of starts as bytes, as `shades` does."""
    colours = colours_of(values)
    if colours == "one":
        low = np.nanmax(values) <= EXPLAINED
        return np.where(np.isfinite(values), 255 if low else 1, 0).astype(np.uint8)
    seen = reading(values) if colours == "rank" else np.maximum(values, LEAST)
    return shades(seen, colours == "rank")


def by_rank(values: Array) -> bool:
    """Return whether nearly all values have one colour, so that colours follow ranks."""
    shares = log_shares(values, *span_of(values))
    known = np.sort(shares[np.isfinite(shares)])
    if len(known) < 3:
        return False
    window = max(int(np.ceil(CROWDED * len(known))), 2)
    return bool((known[window - 1 :] - known[: len(known) - window + 1]).min() <= NEAR)


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
    shares = ranks(values) if ranked else log_shares(values, *(span or span_of(values)))
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

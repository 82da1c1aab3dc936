"""Energies of many places in slices, between which they can be stopped."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]
GoOn = Callable[[float], bool]
SLICE = 400  # places at first; arbitrary: some ms where neurons are few
LEAST = 100  # of a slice; arbitrary
SLOW_S = 0.1  # the next slice is half as large after one that took more; arbitrary
QUICK_S = 0.03  # the next slice is twice as large after one that took less; arbitrary


def sliced(
    places: Tensor, at: Callable[[Tensor], Array], go_on: GoOn, first: int = SLICE
) -> Array | None:
    """All places, in slices that grow while they are quick: larger ones share more work.

    They shrink again where they are slow, since nothing stops within one.
    """
    out, low, size = [], 0, first
    while low < len(places):
        if not go_on(low / len(places)):
            return None
        begun = perf_counter()
        out.append(at(places[low : low + size]))
        low, took = low + size, perf_counter() - begun
        size = 2 * size if took < QUICK_S else max(LEAST, size // 2) if took > SLOW_S else size
    return np.concatenate(out)

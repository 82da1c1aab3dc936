"""Maps of a moving point that are kept: where the others are refitted, they hold wherever it is."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from explorer.stages.energy_question import Question

Array = NDArray[np.float64]
Map = tuple[Array, int]  # energies of all places (size^2,), and how many of these are crowded


class Kept:
    """The last map of each size, with what it was of."""

    def __init__(self) -> None:
        """None yet."""
        self._maps: dict[int, tuple[Question, Map]] = {}

    def put(self, q: Question, size: int, values: Array, few: int) -> Map:
        """Keep a map, and give it back as `get` would."""
        if not q.frozen:  # frozen multipliers are those with the point where it is
            self._maps[size] = (q, (values.copy(), few))
        return values, few

    def get(self, q: Question, size: int) -> Map | None:
        """The map that `q` asks for, to be drawn on, where it is known."""
        if q.frozen or size not in self._maps:
            return None
        old, (values, few) = self._maps[size]
        if not old.moved_to(q):
            return None
        apart = (old.x != q.x).any(dim=1)
        apart[q.index] = False
        return None if bool(torch.any(apart)) else (values.copy(), few)

    def finest(self, q: Question) -> int:
        """The largest size that is known of `q`; 0 for none."""
        sizes = [s for s in list(self._maps) if self.get(q, s) is not None]
        return max(sizes, default=0)

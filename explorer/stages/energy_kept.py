"""Maps of a moving point that are kept: where the others are refitted, they hold wherever it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from explorer.stages.energy_question import Question

Array = NDArray[np.float64]


class Kept:
    """The last map of each size, with what it was of."""

    def __init__(self) -> None:
        """None yet."""
        self._maps: dict[int, tuple[Question, Array]] = {}

    def put(self, q: Question, size: int, values: Array) -> None:
        """Keep the energies (size^2,) of all places."""
        if not q.frozen:  # frozen multipliers are those with the point where it is
            self._maps[size] = (q, values.copy())

    def get(self, q: Question, size: int) -> Array | None:
        """The energies that `q` asks for, where they are known."""
        old, values = self._maps.get(size, (None, None))
        if old is None or values is None or q.frozen or not replace(old, x=q.x).same(q):
            return None
        apart = (old.x != q.x).any(dim=1)
        apart[q.index] = False
        return None if bool(torch.any(apart)) else values.copy()

    def finest(self, q: Question) -> int:
        """The largest size that is known of `q`; 0 for none."""
        sizes = [s for s in list(self._maps) if self.get(q, s) is not None]
        return max(sizes, default=0)

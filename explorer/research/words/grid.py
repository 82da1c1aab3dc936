"""The grid of starts in words: where its runs end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.engine.attacks.bilevel import AGREE
from explorer.engine.energy.starts import NAMES
from explorer.research.grid import Maps

SETS = {"truth": "truth", "heldout": "held-out data", "noise": "noise"}  # of NAMES


def sentence(found: Maps) -> str:
    """Return how many cells end nearest to which set."""
    total = len(found.values) ** 2
    if not found.done_count:
        return "No cell is done yet."
    counts = [int((found.nearest == k).sum()) for k in range(3)]
    parts = ", ".join(f"{c} nearest to {SETS[n]}" for c, n in zip(counts, NAMES, strict=True))
    row = " (those of λ₂ = 0 are one run)" if np.isfinite(found.mean[0, 0]).all() else ""
    text = f"Of {found.done_count} cells{row} {parts}."
    left = total - found.done_count
    return f"{text} {left} {'is' if left == 1 else 'are'} not done." if left else text


def without_agreement(runs: Sequence[str]) -> str:
    """Return which runs of the bilevel attack did not converge, and what to do."""
    return (
        f"Not converged: {', '.join(runs)}. At the last step training on these candidates gives "
        f"other weights, |θ*-θ|² above {2 * AGREE:.0e}. Take more steps, such as --set steps=2000."
    )

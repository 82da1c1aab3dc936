"""Shares pooled over runs, with their intervals, at 95% unless another level is asked for.

At each end the wider of Wilson's interval (Wilson 1927), which counts every draw as one of its own,
and, from three runs on, the percentile bootstrap over the runs (Efron 1979), which keeps together
the draws of one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

LEVEL = 0.95
RESAMPLES = 2000  # arbitrary: the ends move by less than 0.01 from one generator to another
FEWEST = 3  # runs; arbitrary: fewer have no spread to resample

Counts = Sequence[int] | np.ndarray[Any, Any]


@dataclass(frozen=True)
class Share:
    """A share with its interval; all nan where there was nothing to share."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return a text such as 0.45 (0.36 to 0.55); a dash for nothing."""
        if self.value != self.value:
            return "–"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def share(found: Counts, total: Counts, level: float = LEVEL) -> Share:
    """Return the sum of found over that of total, over runs, with its interval at `level`."""
    hits, draws = (tuple(np.asarray(v, dtype=int).tolist()) for v in (found, total))
    return _share(hits, draws, level)


@lru_cache(maxsize=4096)  # many resamples each; a table asks again at every redraw
def _share(found: tuple[int, ...], total: tuple[int, ...], level: float) -> Share:
    hits, draws = np.array(found, dtype=int), np.array(total, dtype=int)
    if draws.sum() == 0:
        return Share(float("nan"), float("nan"), float("nan"))
    # Imported here: it takes a third of a second, which every start of the command would wait for.
    from scipy.stats import binomtest, bootstrap

    wilson = binomtest(int(hits.sum()), int(draws.sum())).proportion_ci(level, method="wilson")
    low, high = float(wilson.low), float(wilson.high)
    if len(hits) >= FEWEST and len({*zip(hits.tolist(), draws.tolist(), strict=True)}) > 1:
        drawn = bootstrap(
            (hits, draws), _ratio, paired=True, vectorized=True, n_resamples=RESAMPLES,
            confidence_level=level, method="percentile", random_state=np.random.default_rng(0),
        ).confidence_interval  # fmt: skip
        low, high = min(low, float(drawn.low)), max(high, float(drawn.high))
    return Share(float(hits.sum() / draws.sum()), max(low, 0.0), min(high, 1.0))


def _ratio(hits: Any, draws: Any, axis: int = -1) -> Any:  # noqa: ANN401 - arrays of any shape
    # A resample without any claim has no share; it counts as none found.
    return hits.sum(axis=axis) / np.maximum(draws.sum(axis=axis), 1)

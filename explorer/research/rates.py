"""True and false positive rates of membership inference, by scikit-learn (the extra `rates`).

The score of a point is |Phi(x)|, larger for members. Intervals are over trials: each trial gives
one rate, and the interval is Student's at 95%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.extras import library
from explorer.engine.membership.experiment import MembershipTrial

LEVELS = (0.001, 0.01)  # the low false positive rates at which membership attacks are judged
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Roc:
    """The curve of all thresholds: fpr and tpr (k,), rising from 0 to 1, and the area below."""

    fpr: Array
    tpr: Array
    auc: float

    def tpr_at(self, level: float) -> float:
        """Return the largest true positive rate at a false positive rate of at most `level`."""
        return float(self.tpr[self.fpr <= level].max(initial=0.0))


def roc(members: Tensor, fresh: Tensor) -> Roc:
    """Return the curve of the score |Phi|. members (n,), fresh (m,), both of one point or more.

    Raises:
        ImportError: scikit-learn is not installed; the message names the extra.
    """
    metrics = _metrics()
    if not len(members) or not len(fresh):
        raise ValueError(f"rates need both kinds; got {len(members)} members, {len(fresh)} fresh")
    scores = np.concatenate([members.abs().cpu().double(), fresh.abs().cpu().double()])
    if not np.isfinite(scores).all():
        raise ValueError(
            "rates need finite |Phi|; got some that are not. Did the network separate?"
        )
    truth = np.concatenate([np.ones(len(members)), np.zeros(len(fresh))])
    fpr, tpr, _ = metrics.roc_curve(truth, scores)
    return Roc(fpr, tpr, float(metrics.auc(fpr, tpr)))


def ready() -> None:
    """Load scikit-learn now, rather than at the first curve; ImportError as in `roc`."""
    _metrics()


def _metrics() -> Any:  # noqa: ANN401 (scikit-learn is untyped)
    return library("sklearn.metrics", "rates are computed by scikit-learn", "rates")


@dataclass(frozen=True)
class Interval:
    """A mean over trials with its 95% interval, clipped to nothing."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Return half the width; nan for one trial."""
        return self.high - self.mean


def interval(values: Sequence[float]) -> Interval:
    """Return Student's interval of the mean, without ends for one value. nan is left out."""
    kept = np.array([v for v in values if not math.isnan(v)])
    if not len(kept):
        return Interval(math.nan, math.nan, math.nan)
    mean = float(kept.mean())
    if len(kept) == 1:
        return Interval(mean, math.nan, math.nan)
    from scipy import stats  # here, as in engine/confidence.py

    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(kept) - 1) * stats.sem(kept))
    return Interval(mean, mean - half, mean + half)


def rates(trial: MembershipTrial) -> dict[str, float | int]:
    """Return the trial's row with auc, tpr_0.1% and tpr_1%; nan where it has no margin."""
    names = ("auc", *(f"tpr_{level:.1%}".replace(".0%", "%") for level in LEVELS))
    row = trial.row()
    if math.isnan(trial.margin):
        return row | dict.fromkeys(names, math.nan)
    curve = roc(trial.members, trial.fresh)
    return row | dict(zip(names, (curve.auc, *map(curve.tpr_at, LEVELS)), strict=True))


def summary(rows: Sequence[dict[str, float | int]]) -> dict[int, dict[str, Interval]]:
    """Return every number of the rows by dimension: its mean and interval over trials."""
    found: dict[int, dict[str, Interval]] = {}
    for d in dict.fromkeys(int(row["d"]) for row in rows):
        mine = [row for row in rows if row["d"] == d]
        names = [k for k in mine[0] if k not in ("d", "trial")]
        found[d] = {k: interval([float(row[k]) for row in mine]) for k in names}
    return found

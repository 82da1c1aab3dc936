"""From finished cells to what is drawn: maps of mean distances, edges with bands, one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.engine.lambda_grid import NAMES, start_of, steps_of

Array = NDArray[np.float64]
WORDS = {"truth": "truth", "heldout": "held-out data", "noise": "noise"}


@dataclass(frozen=True, eq=False)
class Maps:
    """The grid as arrays; cells that are not done are nan. s = side, k = seeds.

    Attributes:
        values: lambda_1 and lambda_2 of the columns and rows (s,).
        end: distances after the run, (k, 3, s, s): seed, NAMES, row lambda_2, column lambda_1.
        start: the same before the run.
        seeds: which seeds (k,).
    """

    values: Array
    end: Array
    start: Array
    seeds: tuple[int, ...]

    @property
    def mean(self) -> Array:
        """Distances after the run, over the seeds that are done. (3, s, s)."""
        return _mean(self.end)

    @property
    def done(self) -> int:
        """Cells known for at least one seed."""
        return int(np.isfinite(self.end[:, 0]).any(0).sum())

    @property
    def nearest(self) -> NDArray[np.int64]:
        """Index in NAMES of the nearest set per cell, -1 where it is not known. (s, s)."""
        mean = self.mean
        known = np.isfinite(mean[0])
        return np.where(known, np.argmin(np.where(known, mean, np.inf), 0), -1)

    def edge(self, which: str) -> tuple[Array, Array]:
        """Distances along an edge after the run, and at the start: two arrays (k, 3, s).

        "data": lambda_2 = 1, over lambda_1; from held-out data to the truth.
        "noise": lambda_1 = 1, over lambda_2; from noise to the truth.
        """
        if which == "data":
            return self.end[:, :, -1, :], self.start[:, :, -1, :]
        if which == "noise":
            return self.end[:, :, :, -1], self.start[:, :, :, -1]
        raise ValueError(f"an edge is 'data' or 'noise'; got {which!r}")

    def sentence(self) -> str:
        """What is seen: how many cells end nearest to which set."""
        total = len(self.values) ** 2
        if not self.done:
            return "No cell is done yet."
        counts = [int((self.nearest == k).sum()) for k in range(3)]
        parts = ", ".join(f"{c} nearest to {WORDS[n]}" for c, n in zip(counts, NAMES, strict=True))
        row = " (those of λ₂ = 0 are one run)" if np.isfinite(self.mean[0, 0]).all() else ""
        text = f"Of {self.done} cells{row} {parts}."
        return text if self.done == total else f"{text} {total - self.done} are not done."


def maps(side: int, rows: Iterable[Mapping[str, Any]]) -> Maps:
    """Arrays of finished rows {"mix_truth", "mix_data", "seed", "result"} of one grid."""
    values = steps_of(side)
    found: dict[tuple[int, float, float], Mapping[str, Any]] = {}
    for row in rows:
        key = (int(row["seed"]), round(row["mix_truth"], 9), round(row["mix_data"], 9))
        found[key] = row["result"]
    seeds = tuple(sorted({key[0] for key in found})) or (0,)
    end = np.full((len(seeds), 3, side, side), np.nan)
    start = end.copy()
    for k, seed in enumerate(seeds):
        for i, b in enumerate(values):
            for j, a in enumerate(values):
                a0, b0 = start_of(a, b)
                result = found.get((seed, round(a0, 9), round(b0, 9)))
                if result is not None:
                    end[k, :, i, j] = [result[name] for name in NAMES]
                    start[k, :, i, j] = [result["start"][name] for name in NAMES]
    return Maps(np.asarray(values), end, start, seeds)


def of_sweep(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `sweep` that are done, as `maps` takes them."""
    return [
        {**{k: row["trial"][k] for k in ("mix_truth", "mix_data", "seed")}, "result": row["result"]}
        for row in rows
        if row["status"] == "done"
    ]


def band(curves: Array) -> tuple[Array, Array, Array]:
    """Mean, lowest and highest over seeds. (k, s) -> three (s,), nan where nothing is known."""
    known = np.isfinite(curves)
    none = ~known.any(0)
    low = np.where(known, curves, np.inf).min(0)
    high = np.where(known, curves, -np.inf).max(0)
    return _mean(curves), np.where(none, np.nan, low), np.where(none, np.nan, high)


def _mean(values: Array) -> Array:
    known = np.isfinite(values)
    count = known.sum(0)
    total = np.where(known, values, 0.0).sum(0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)

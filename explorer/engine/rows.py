r"""Linear programs with many rows of which few bind: a row is taken in where it is missed.

    min <cost, z>   subject to   z >= 0,   |C z - theta|_inf <= room,   a <= lam

has two rows for each component of theta, and a 2-100-100-1 network has 10,400 components. At an
optimum no more rows bind than z has positive entries, some hundred. So the program is solved on a
few rows, those that its solution misses join, and it is solved anew. Rows left out only make the
minimum smaller, and the last solution misses none: it solves the whole program, to the solver's
own tolerance. What one cost needed serves the next. An empty relaxation proves that the whole
program is empty.

One row is implied by all others and is taken first, as a relaxation without it may be unbounded:
their sum with the signs and sizes of theta,

    <theta, C z> <= |theta|^2 + room |theta|_1,

where <theta, y g> = order on the margin (Euler), so that it bounds the mass. This is the cutting
plane method (Kelley 1960) on a linear program.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, eye_array, hstack, vstack

Array = NDArray[np.float64]
Index = NDArray[np.int64]
WHOLE = 1000  # arbitrary: up to so many components all rows are taken at once, as in two layers
START = 200  # arbitrary: rows at first, those that 0 misses most
BATCH = 100  # arbitrary: rows that join at most per round
MISSED = 1e-7  # the feasibility tolerance of HiGHS: what its own solutions may miss of a row


@dataclass(frozen=True, eq=False)
class Rows:
    """The polytope, and the rows that were needed so far.

    Attributes:
        columns: C (P, m + r): m multipliers, then r kink variables.
        theta: (P,).
        room: by how much each component may be missed.
        owner: multiplier of each kink variable (r,).
        slack: where above 0, z has one more entry t, and the room is room + slack t.
        taken: rows that are in the program, i for C z <= theta + room and P + i for the other side.
    """

    columns: Array
    theta: Array
    room: float
    owner: Index
    slack: float = 0.0
    taken: list[int] = field(default_factory=list)
    _made: list[csr_matrix] = field(default_factory=list, repr=False)

    @property
    def whole(self) -> bool:
        """Whether all rows are taken at once."""
        return len(self.theta) <= WHOLE

    def least(self, cost: Array, without: NDArray[np.bool_] | None = None) -> tuple[Array, float]:
        """A point of least cost on the polytope. -> (z, its cost).

        Args:
            cost: (m + r,), or (m + r + 1,) with slack.
            without: points (m,) bool that may have no mass; None for none.

        Raises:
            ValueError: where there is no such point, with the solver's reason.
        """
        if not self.taken:
            first = np.argsort(np.concatenate([self.theta, -self.theta]), kind="stable")
            self.taken.extend((np.arange(len(first)) if self.whole else first[:START]).tolist())
        while True:
            done = self._solved(cost, without)
            if done is None or self.whole:
                break
            fresh = self._missed(done[0])
            if not fresh:
                break
            self.taken.extend(fresh)
        if done is None:
            raise ValueError("the linear program has no solution")
        return done

    def _solved(self, cost: Array, without: NDArray[np.bool_] | None) -> tuple[Array, float] | None:
        """The program on the rows taken; None where it is empty."""
        count, r = len(self.theta), len(self.owner)
        m = self.columns.shape[1] - r
        taken = np.array(self.taken)
        side = np.where(taken < count, 1.0, -1.0)
        b = side * self.theta[taken % count] + self.room
        if not self.whole:
            size = float(np.abs(self.theta).sum())
            b = np.append(b, float(self.theta @ self.theta) + self.room * size)
        if not self._made or self._made[0].shape[0] != len(b) + r:
            table = side[:, None] * self.columns[taken % count]
            if not self.whole:
                table = np.concatenate([table, (self.theta @ self.columns)[None]])
            pick = csr_matrix((-np.ones(r), (np.arange(r), self.owner)), shape=(r, m))
            bound = hstack([pick, eye_array(r)])
            whole = vstack([csr_matrix(table), bound]).tocsr()
            if self.slack:
                each = np.full(len(b), -self.slack)
                each[len(taken) :] *= float(np.abs(self.theta).sum())  # the implied row, if any
                each = np.concatenate([each, np.zeros(r)])
                whole = hstack([whole, csr_matrix(each[:, None])]).tocsr()
            self._made[:] = [whole]
        b = np.concatenate([b, np.zeros(r)])
        high = np.full(len(cost), np.inf)
        if without is not None:
            high[:m][without] = 0.0
        ends = np.stack([np.zeros(len(cost)), high], axis=1)
        done = linprog(cost, A_ub=self._made[0], b_ub=b, bounds=ends, method="highs")
        return (done.x, float(done.fun)) if done.status == 0 else None

    def _missed(self, z: Array) -> list[int]:
        """The rows that z misses most, at most `BATCH`, none that is taken."""
        off = self.columns @ z[: self.columns.shape[1]] - self.theta
        room = self.room + (self.slack * float(z[-1]) if self.slack else 0.0)
        over = np.concatenate([off, -off]) - room
        over[self.taken] = 0.0
        worst = np.argsort(-over, kind="stable")[:BATCH]
        found: list[int] = worst[over[worst] > MISSED].tolist()
        return found

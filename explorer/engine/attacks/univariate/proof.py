r"""Which candidates on the line must be training points: two linear programs for each.

Every support point lies on the margin, so at a KKT point of margin 1 it is one of the finitely many
crossings C = {x: |Phi(x)| = 1}, or lies inside an interval on which Phi is constant at +-1. Over

    theta = sum_{x in C} lam_x y_x g_x + (flat intervals),   lam_x >= 0,   g_x in dPhi(theta; x),

up to `eps` in each coordinate, lam_x has a least and a largest value, each a linear program: the
slope s of a neuron at a kink is free, and a = lam s with 0 <= a <= lam is linear; inside a flat
interval grad Phi is affine in x, so all that points there can do is a cone with two edges. A
candidate whose least multiplier is positive is a training point. Derived here; it needs no local
minimum and no neuron that is active everywhere, only an exact KKT point and its margin. Whether the
weights are exact is to be read from themselves: they are if the programs leave nothing of them
unexplained (`univariate.graph.defect`). Elsewhere a positive least multiplier is a hint, no proof:
the true explanation misses its equations by an amount that nobody knows who sees the weights alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from explorer.engine import linear_programs
from explorer.engine.arrays import Array, Index
from explorer.engine.multipliers import linear_system
from explorer.engine.network import Network
from explorer.engine.piecewise import neurons


@dataclass(frozen=True, eq=False)
class System:
    """The stationarity equations over candidates x (m,) with labels y (m,).

    Attributes:
        table: (3k, m + q + f); columns are lam (m,), a (q,) of the kinks, then two edges of the
            cone of each flat interval.
        theta: w, b and v of each neuron (3k,).
        owner: candidate of each kink (q,).
        m: candidates.
    """

    table: Array
    theta: Array
    owner: Index
    m: int


Flat = tuple[float, float, float]  # low, high and label of an interval constant at the margin


def system(net: Network, x: Array, y: Array, tau: float, flats: Sequence[Flat] = ()) -> System:
    """Return the equations at x (m,), y (m,), slopes free where |z| <= tau |(w, b)| |(x, 1)|."""
    w, b, v = neurons(net)
    z = x[:, None] * w + b
    kinks = np.abs(z) <= tau * np.hypot(x, 1)[:, None] * np.hypot(w, b)
    points = np.column_stack([x, np.ones_like(x)])
    table, owner, theta, _ = linear_system(np.column_stack([w, b]), points, v, y, z, kinks)
    first = 2 * np.arange(len(v))  # row of each w; that of b is the next, and those of v are last
    rows = np.column_stack([first, first + 1, 2 * len(v) + first // 2]).ravel()
    edges = [edge.ravel() for flat in flats for edge in _edges(w, b, v, flat)]
    more = np.array(edges).reshape(-1, len(rows)).T
    return System(np.column_stack([table[rows], more]), theta[rows], owner, len(x))


def _edges(w: Array, b: Array, v: Array, flat: Flat) -> list[Array]:
    """Return y grad Phi at both ends of a flat interval, with the slopes of its inside. [(k, 3)].

    An end at infinity gives the direction in which the gradient grows.
    """
    low, high, label = flat
    ends = [end for end in (low, high) if np.isfinite(end)] or [0.0]
    inside = sum(ends) / len(ends) + np.isfinite(low) - np.isfinite(high)
    on = w * inside + b > 0
    edges = [label * np.stack([on * v * x, on * v, on * (w * x + b)], 1) for x in ends]
    for end, side in ((low, -1.0), (high, 1.0)):
        if not np.isfinite(end):
            edges.append(label * side * np.stack([on * v, 0 * v, on * w], 1))
    return edges


@dataclass(frozen=True, eq=False)
class Programs:
    """The linear programs of one system: A z <= b over z = (lam (m,), a (q,), flats, miss).

    `miss` bounds every equation's error, as a share of |theta|; lam and a are shares of the mass
    |theta|^2 / 2, the sum of the multipliers at a KKT point of two layers.
    """

    table: csr_matrix
    right: Array
    m: int
    mass: float
    equations: int
    owner: Index

    @classmethod
    def of(cls, s: System) -> Programs:
        """Return |table z - theta| <= miss |theta| in every row, and a <= lam at every kink."""
        rows, columns = s.table.shape
        rho = float(np.linalg.norm(s.theta))
        table, theta = s.table * (rho / 2), s.theta / rho
        miss = np.full((rows, 1), -1.0)
        links = np.zeros((len(s.owner), columns + 1))
        at = np.arange(len(s.owner))
        links[at, s.m + at], links[at, s.owner] = 1.0, -1.0
        both = csr_matrix(np.concatenate([np.block([[table, miss], [-table, miss]]), links]))
        right = np.concatenate([theta, -theta, np.zeros(len(links))])
        return cls(both, right, s.m, rho**2 / 2, rows, s.owner)

    def _solve(self, cost: Array, eps: float | None) -> Array | None:
        bounds = [(0.0, None)] * (len(cost) - 1) + [(0.0, eps)]
        found = linear_programs.least(cost, self.table, self.right, bounds=bounds)
        return None if found.x is None else np.asarray(found.x, dtype=np.float64)

    def _unit(self, at: int) -> Array:
        cost = np.zeros(self.table.shape[1])
        cost[at] = 1.0
        return cost

    def fit(self) -> tuple[Array, float]:
        """Return multipliers (m,) of least miss, and that miss; 1 without any candidate."""
        found = self._least()
        if found is None:
            return np.zeros(self.m), 1.0
        return self.mass * np.maximum(found[: self.m], 0.0), float(max(found[-1], 0.0))

    def unexplained_share(self) -> float:
        """Return what the multipliers of least miss leave of theta, a share of |theta|; 1 at most.

        It is attained: the solver's tolerance is not trusted. Least squares over the unknowns that
        it leaves above 0 take its rounding away; what is brought inside the bounds is measured.
        """
        found = self._least()
        if found is None:
            return 1.0
        table, theta = self.table[: self.equations, :-1].toarray(), self.right[: self.equations]
        active = found[:-1] > 0
        finer = np.zeros(len(active))
        finer[active] = np.linalg.lstsq(table[:, active], theta, rcond=None)[0]
        return min(1.0, *(self._rest(table, theta, z) for z in (found[:-1], finer)))

    def _rest(self, table: Array, theta: Array, z: Array) -> float:
        z = np.maximum(z, 0.0)
        kinks = slice(self.m, self.m + len(self.owner))
        z[kinks] = np.minimum(z[kinks], z[self.owner])
        return float(np.linalg.norm(table @ z - theta))

    def _least(self) -> Array | None:
        return self._solve(self._unit(-1), None) if self.m else None

    def bounds(self, i: int, eps: float) -> tuple[float, float]:
        """Return the least and the largest lam_i with no equation missed by more than eps |theta|.

        (0, inf) where no multipliers meet them: then nothing is known.
        """
        cost = self._unit(i)
        low, high = self._solve(cost, eps), self._solve(-cost, eps)
        least = 0.0 if low is None else self.mass * max(float(low[i]), 0.0)
        return least, np.inf if high is None else max(self.mass * float(high[i]), least)

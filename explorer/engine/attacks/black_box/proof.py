r"""Which places a training point must be at, from the graph of a network of the line alone.

A neuron that breaks at beta, is active to one side of it and pulls with the sign s of its output
weight is stationary and balanced exactly if (`T` the side, multipliers lam, labels y)

    sum over x_i in T of lam_i y_i (x_i, 1)  =  +-(1, -beta) / (s sqrt(1 + beta^2)),

with + to the right and - to the left, whatever its size: |v| = |(w, b)| makes the equation of v
follow. A point on beta counts by a share of its own in [0, lam_i] on each side. The graph shows
beta and the change of slope, which has the sign s, and not the side: so each breakpoint has a
neuron to the right, to the left, or both with a part of the change each. The changes of those to
the left add up to the slope of the outermost piece, their constants to its intercept, and the
multipliers of all to |theta|^2 / 2 = sum |change| sqrt(1 + beta^2). A neuron with w = 0 adds a
constant, if there is one: then sum lam y x = 0 and sum lam y = +-1. A place whose multiplier is
above 0 in all of these cases is a training point. Assumed: an exact KKT point of two layers, its
margin known; points and breakpoints within the range; no two neurons of opposite signs break at one
place.

Source: own; stationarity and balance are those of Lyu and Li (2020) and Smorodinsky, Vardi and
Safran (2024).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from explorer.engine import linear_programs
from explorer.engine.arrays import Array, Index
from explorer.engine.attacks.univariate.intervals import Point
from explorer.engine.piecewise import Piecewise

MISS = 1e-7  # of an equation, allowed in any case; arbitrary between rounding and `NEAR`
NEAR = 1e-6  # arbitrary: places this close to a breakpoint may be on it
SIDES = ("right", "left", "both")
Rows = tuple[Array, Array]  # (e, z) and (e,): equations of the unknowns


def nearness(error: float) -> float:
    """Return how close counts as the same place where breakpoints may be off by `error`."""
    return max(NEAR, 4 * error)


@dataclass(frozen=True, eq=False)
class Cases:
    """All ways in which neurons can make a graph, and the multipliers that each allows.

    The unknowns z >= 0 are lam (m,), two edges of each flat stretch, the share of each point on a
    breakpoint to its right and to its left, the share of each change of slope that is made to the
    left, and a constant.

    Attributes:
        line: the graph.
        points: places with |Phi| = 1 and their labels.
        flats: low, high and label of stretches at the margin.
        error: how far a breakpoint may be off.
    """

    line: Piecewise
    points: list[Point]
    flats: list[tuple[float, float, float]]
    error: float
    on: list[tuple[int, int]] = field(init=False)  # a point and a breakpoint that it may be on

    def __post_init__(self) -> None:
        """Note which points are on a breakpoint."""
        near = nearness(self.error)
        pairs = [
            (i, j)
            for i, (x, _) in enumerate(self.points)
            for j, beta in enumerate(self.line.breaks)
            if abs(x - beta) <= near * max(1.0, abs(beta))
        ]
        object.__setattr__(self, "on", pairs)

    @property
    def change(self) -> Array:
        """Return the change of slope at each breakpoint (k,)."""
        return np.diff(self.line.slope)

    @property
    def mass(self) -> float:
        """Return the sum of the multipliers, of neurons that break."""
        return float((np.abs(self.change) * np.hypot(1.0, self.line.breaks)).sum())

    @property
    def weights(self) -> Array:
        """Return place and label of the first m + 2f unknowns, points and edges of flats (., 2)."""
        edges = [(x, label) for low, high, label in self.flats for x in (low, high)]
        return np.array([*self.points, *edges], dtype=float).reshape(-1, 2)

    @property
    def unknowns(self) -> int:
        """Return how many unknowns there are."""
        return len(self.weights) + 2 * len(self.on) + len(self.line.breaks) + 1

    @property
    def shares(self) -> Index:
        """Return which unknowns are the shares of the changes of slope to the left (k,)."""
        return self.unknowns - 1 - len(self.line.breaks) + np.arange(len(self.line.breaks))

    def moments(self, columns: list[tuple[int, int]]) -> Array:
        """Return the rows of sum lam y x and sum lam y over (unknown, place's row) pairs (2, z)."""
        rows = np.zeros((2, self.unknowns))
        for column, at in columns:
            x, label = self.weights[at]
            rows[:, column] += label * x, label
        return rows

    def neuron(self, j: int, left: bool) -> Rows:
        """Return the equations of a neuron that breaks at breakpoint j, active to one side."""
        beta, first = self.line.breaks[j], len(self.weights)
        own = {i: first + 2 * q + left for q, (i, at) in enumerate(self.on) if at == j}
        middles = self.weights[:, 0].copy()
        for f in range(len(self.flats)):  # a flat stretch is on one side, ends included
            edges = slice(len(self.points) + 2 * f, len(self.points) + 2 * f + 2)
            middles[edges] = middles[edges].mean()
        columns = [
            (own.get(i, i), i)
            for i, x in enumerate(middles)
            if i in own or (x < beta if left else x > beta)
        ]
        pull = (-1.0 if left else 1.0) * np.sign(self.change[j]) / np.hypot(1.0, beta)
        return self.moments(columns), pull * np.array([1.0, -beta])

    def outermost(self, constant: int) -> Rows:
        """Return the equations of the first piece, with a constant neuron of this sign or none."""
        shares, rows = self.shares, np.zeros((3, self.unknowns))
        rows[0, shares] = -self.change
        rows[1, shares], rows[1, -1] = self.change * self.line.breaks, constant
        rows[2, : len(self.weights)], rows[2, -1] = 1.0, -1.0
        right = np.array([self.line.slope[0], self.line.intercept[0], self.mass])
        last = np.zeros((1, self.unknowns))
        if not constant:
            last[0, -1] = 1.0
            return np.concatenate([rows, last]), np.append(right, 0.0)
        everything = self.moments([(i, i) for i in range(len(self.weights))])
        return np.concatenate([rows, everything]), np.concatenate([right, [0.0, constant]])

    def side(self, j: int, side: str) -> Rows:
        """Return the equations of a breakpoint whose neurons are on this side, or on both."""
        parts = [self.neuron(j, left) for left in (False, True) if side != SIDES[1 - left]]
        if side != "both":
            share = np.zeros((1, self.unknowns))
            share[0, self.shares[j]] = 1.0
            parts.append((share, np.array([float(side == "left")])))
        return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])

    def least(self, equations: Rows, unknown: int | None) -> float:
        """Return the least value of an unknown under these equations; inf where nothing meets them.

        Without an unknown 0 where they can be met. Where the solver does not say, 0.
        """
        rows, right = equations
        allowed = MISS + self.error * (1 + self.mass)
        links = np.zeros((2 * len(self.on), self.unknowns))
        for q, (i, _) in enumerate(self.on):
            for left in (0, 1):
                links[2 * q + left, len(self.weights) + 2 * q + left] = 1.0
                links[2 * q + left, i] = -1.0
        upper: list[tuple[float, float | None]] = [(0.0, None)] * self.unknowns
        for share in self.shares:
            upper[share] = (0.0, 1.0)
        cost = np.zeros(self.unknowns)
        if unknown is not None:
            cost[unknown] = 1.0
        found = linear_programs.least(
            cost, np.concatenate([rows, -rows, links]),
            np.concatenate([right + allowed, allowed - right, np.zeros(len(links))]), bounds=upper,
        )  # fmt: skip
        if found.status == 2:  # no solution
            return np.inf
        return max(float(found.fun), 0.0) if found.status == 0 else 0.0

    def possible(self) -> Iterator[Rows]:
        """Yield the equations of each case that some multipliers meet."""
        order = np.argsort(-np.abs(self.change))
        stack = [(0, self.outermost(constant)) for constant in (1, -1, 0)]
        while stack:
            depth, equations = stack.pop()
            if np.isinf(self.least(equations, None)):
                continue
            if depth == len(order):
                yield equations
                continue
            for side in reversed(SIDES):
                more = self.side(int(order[depth]), side)
                both = zip(equations, more, strict=True)
                a, b = (np.concatenate(pair) for pair in both)
                stack.append((depth + 1, (a, b)))

r"""The least largest component of theta that explanations on the margin must miss.

    min t   subject to   lam >= 0,   |C lam - theta|_inf <= t |theta|

has two rows for each component of theta, and a 2-100-100-1 network has 10,400 components. At an
optimum no more rows bind than lam has positive entries, some hundred. So the program is solved on a
few rows, those that its solution misses join, and it is solved anew (Kelley 1960). Rows left out
only make the minimum smaller, and the last solution misses none: it solves the whole program, to
the solver's own tolerance. What one question needed serves the next.

One row is implied by all others and is taken first, as a relaxation without it may be unbounded:
their sum with the signs and sizes of theta, <theta, C lam> <= |theta|^2 + t |theta| |theta|_1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from explorer.engine.arrays import Array, Flags
from explorer.engine.explanations.regions import Layers, RegionRays, regions
from explorer.engine.explanations.splitting import fitted_explanation
from explorer.engine.network import Network

START = 200  # arbitrary: rows at first, those that 0 misses most
BATCH = 100  # arbitrary: rows that join at most per round
MISSED = 1e-7  # the feasibility tolerance of HiGHS: what its own solutions may miss of a row


@dataclass(frozen=True, eq=False)
class LargestMiss:
    """The program, with the rows that were needed so far.

    Attributes:
        x: places of the points (m, d): the given ones, then the corners of the margin.
        y: their labels (m,).
        columns: C (P, m).
        theta: (P,).
        taken: rows that are in the program, i for C lam <= theta + t |theta| and P + i for the
            other side.
    """

    x: Tensor
    y: Tensor
    columns: Array
    theta: Array
    taken: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, net: Network, x: Tensor, y: Tensor, reach: float, tau: float) -> LargestMiss:
        """Return the program on the margin within `reach`, and on given places x (m, d), y (m,).

        The given places have the gradients of their fit, a mean over slopes free within `tau`.
        """
        net = net.to(dtype=torch.float64, device="cpu")
        given, rows = fitted_explanation(net, x, y, tau)
        layers = Layers.of(net, reach)
        corners = RegionRays.of(regions(layers, 1.0, 1.0), layers)
        fresh = corners.columns(np.arange(len(corners)), np.zeros(len(layers.theta)))
        columns = np.concatenate([layers.in_layer_order(rows.numpy()), fresh])
        return cls(
            torch.cat([given.x, torch.from_numpy(corners.x[:, :-1].copy())]),
            torch.cat([given.y, torch.from_numpy(corners.y)]),
            np.ascontiguousarray(columns.T),
            layers.theta,
        )

    @cached_property
    def of_all(self) -> float:
        """Return the least t of all points."""
        return self.least()

    def rise(self, x: Tensor, y: Tensor, radius: float) -> float:
        """Return by which share t is larger without the points of label y () near x (d,)."""
        near = ((self.x - x).norm(dim=1) <= radius) & (self.y == y)
        return self.least(near.numpy()) / max(self.of_all, 1e-300) - 1

    def least(self, without: Flags | None = None) -> float:
        """Return the least t where some points (m,) have no multiplier.

        Raises:
            ValueError: where the program has no solution.
        """
        count, m = self.columns.shape
        rho, size = float(np.linalg.norm(self.theta)), float(np.abs(self.theta).sum())
        if not self.taken:
            order = np.argsort(np.concatenate([self.theta, -self.theta]), kind="stable")
            self.taken.extend(order[:START].tolist())
        high = np.full(m + 1, np.inf)
        if without is not None:
            high[:m][without] = 0.0
        while True:
            taken = np.array(self.taken)
            side = np.where(taken < count, 1.0, -1.0)
            table = np.concatenate(
                [side[:, None] * self.columns[taken % count], (self.theta @ self.columns)[None]]
            )
            room = -rho * np.append(np.ones(len(taken)), size)
            b = np.append(side * self.theta[taken % count], rho**2)
            done = linprog(
                np.append(np.zeros(m), 1.0), A_ub=np.column_stack([table, room]), b_ub=b,
                bounds=np.stack([np.zeros(m + 1), high], axis=1), method="highs",
            )  # fmt: skip
            if done.status != 0:
                raise ValueError("the linear program has no solution")
            off = self.columns @ done.x[:m] - self.theta
            over = np.concatenate([off, -off]) - rho * done.x[m]
            over[taken] = 0.0
            worst = np.argsort(-over, kind="stable")[:BATCH]
            fresh = worst[over[worst] > MISSED].tolist()
            if not fresh:
                return float(done.fun)
            self.taken.extend(fresh)

"""The energy of a set of points, slowly: every kink a column, one non-negative problem in all.

The energy is E_tau / ||theta||^2 of `explorer.engine.energy.points`. `bench_energy.py` times it,
and `tests/engine/test_energy.py` holds the maps against it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import nnls
from torch import Tensor

from explorer.engine.network import Network


def oracle(
    net: Network, x: Tensor, y: Tensor, tau: float, price: float = 1e4, most: float = math.inf
) -> float:
    """Columns of theta written out; a kink's column is bounded by its point's by a high price.

    A point on more than `most` kinks is an error: maps free no more of them.
    """
    w, b, v = (t.numpy() for t in (net.weights[0], net.biases[0], net.weights[1][0]))
    rows = np.column_stack([w, b])
    points, kinks = [], []
    for i, (at, label) in enumerate(zip(x.numpy(), y.numpy(), strict=True)):
        one = np.append(at, 1.0)
        z = rows @ one
        free = np.abs(z) <= tau * np.linalg.norm(rows, axis=1) * np.linalg.norm(one)
        assert free.sum() <= most
        on = (z > 0) & ~free
        points.append(label * np.append(((on * v)[:, None] * one).ravel(), np.maximum(z, 0)))
        for j in np.flatnonzero(free):
            block = np.zeros_like(rows)
            block[j] = label * v[j] * one
            kinks.append((i, np.append(block.ravel(), np.zeros(len(v)))))
    table, q = np.array(points).T, len(kinks)
    theta = np.append(rows.ravel(), v)
    if q:
        owner = np.zeros((q, len(points)))
        owner[np.arange(q), [i for i, _ in kinks]] = price
        column = np.array([c for _, c in kinks]).T
        eye = price * np.eye(q)
        table = np.block([[table, column, np.zeros((len(theta), q))], [owner, -eye, -eye]])
        theta = np.append(theta, np.zeros(q))
    return float(nnls(table, theta, maxiter=5000)[1] ** 2) / float(net.rho) ** 2

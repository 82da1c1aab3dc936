"""What the univariate attack works with: the graph, its tolerances, and the margin if unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
from torch import Tensor

from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate.config import (
    EXACT,
    NEARLY,
    STRICT,
    Tolerances,
    UnivariateConfig,
)
from explorer.engine.attacks.univariate.intervals import Point, crossings
from explorer.engine.attacks.univariate.proof import Programs, system
from explorer.engine.certificate import balance
from explorer.engine.network import Network
from explorer.engine.piecewise import UPRIGHT, Piecewise, describe, neurons

SWEEP = tuple(float(f) for f in np.geomspace(0.25, 4.0, 41))  # arbitrary; the middle one is 1


def defect(target: Target) -> float:
    """Return how far the weights are from a KKT point of margin 1 of any data, a share of |theta|.

    An attacker may ask: it takes the weights alone. Exact weights are balanced, |v| = |(w, b)|, and
    multipliers on the places with |Phi| = 1, slopes free at kinks, explain them without a rest;
    then |theta|^2 = 2 sum lam follows. -> the larger of imbalance and rest, with the tolerances
    `STRICT` and no neuron merged. Training leaves 1e-3 and more, storage in float32 some 1e-8.
    """
    net, line = merged_graph(target, STRICT)
    rest = programs(net, line, crossings(line, STRICT), STRICT).unexplained_share()
    return max(balance(net), rest)


def tolerances(off: float, config: UnivariateConfig) -> Tolerances:
    """Return those of rounding, or those of the settings, for weights of this `defect`.

    "automatic" takes the first where the weights are exact, or nearly.
    """
    rounding = off <= NEARLY if config.weights == "automatic" else config.weights == "exact"
    return EXACT if rounding else config.trained_tolerances


def merged_graph(target: Target, tol: Tolerances) -> tuple[Network, Piecewise]:
    """Return the weights with parallel neurons merged, and their graph."""
    net = target.merged(tol.angle)
    return net, describe(net, tol.breaks)


def programs(
    net: Network, line: Piecewise, points: list[Point], tol: Tolerances, level: float = 1.0
) -> Programs:
    """Return the linear programs over these candidates and what points in flat intervals can do."""
    x, y = np.array(points, dtype=float).reshape(-1, 2).T
    flats = [
        (*line.ends(i), 1.0 if line.value(line.middle(i)) > 0 else -1.0)
        for i in range(len(line))
        if line.on_margin(i, level, tol.flat)
    ]
    return Programs.of(system(net, x, y, tol.tau, flats))


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """What the attack would see if the margin were `margin`.

    Attributes:
        margin: the margin tried, in units of the one known.
        size: how many places have |Phi| = margin.
        miss: least miss with which they explain the weights, a share of |theta|.
    """

    margin: float
    size: int
    miss: float


def sweep(
    target: Target,
    config: UnivariateConfig,
    margins: tuple[float, ...] = SWEEP,
) -> Iterator[SweepPoint]:
    """Yield for each margin the number of crossings, and how well they explain the weights.

    An attacker who does not know the margin takes the one at which the miss vanishes: multipliers
    do not change when theta is rescaled, but the places with |Phi| = m do. One linear program each.
    """
    tol = tolerances(defect(target), config)
    net, line = merged_graph(target, tol)
    for margin in margins:
        points = crossings(line, tol, margin)
        yield SweepPoint(margin, len(points), programs(net, line, points, tol, margin).fit()[1])


class Assumed(Enum):
    """What the weights tell of an assumption."""

    HOLDS = "holds"
    MAY_HOLD = "may hold"
    UNKNOWN = "unknown"


def active_everywhere(net: Network, x: Tensor) -> Assumed:
    """Return what the weights tell of (a): some neuron is active on all training points.

    x (m, 1) are all places with |Phi| = 1. Training points off the margin are unseen, so (a) can be
    confirmed only by a neuron that is active on the whole line.
    """
    w, b, _ = neurons(net)
    level = np.abs(w) <= UPRIGHT * np.hypot(w, b)
    if bool((level & (b > 0)).any()):
        return Assumed.HOLDS
    z = x.double().numpy() * w + b
    return Assumed.MAY_HOLD if len(z) and bool((z > 0).all(0).any()) else Assumed.UNKNOWN

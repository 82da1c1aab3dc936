"""Exactly known KKT networks, built by hand: the closed forms that every certificate must meet."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.network import Network


@dataclass(frozen=True, eq=False)
class Known:
    """A network with its points, labels and multipliers, at margin 1."""

    net: Network
    x: Tensor
    y: Tensor
    lam: Tensor


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def known(neurons, x, y, lam):
    """Rows (w..., b, v) for the neurons."""
    rows = tensor(neurons)
    net = Network((rows[:, :-2], rows[:, -1:].T), (rows[:, -2], None))
    return Known(net, tensor(x), tensor(y), tensor(lam))


def one_neuron_per_point(x, y):
    """n = 1, and obtuse sets (x_i . x_l <= -1): v_i = y_i sqrt(lam_i), lam_i = 1 / |(x_i, 1)|."""
    neurons, lam = [], []
    for point, label in zip(x, y, strict=True):
        augmented = [*point, 1.0]
        norm = math.hypot(*augmented)
        lam.append(1 / norm)
        v = math.sqrt(1 / norm)
        neurons.append([v * t / norm for t in augmented] + [label * v])
    return known(neurons, x, y, lam)


def chains(x, y, order):
    """Any depth, obtuse sets: one chain of neurons per point, each of norm a_i, lam_i = a_i^2.

    a_i = |(x_i, 1)|^(-1/order): then Phi(x_i) = y_i, and dPhi/da_l = 1 / a_i for every layer l.
    """
    x, y = tensor(x), tensor(y)
    augmented = torch.cat([x, torch.ones(len(x), 1, dtype=torch.float64)], dim=1)
    norm = augmented.norm(dim=1)
    a = norm ** (-1 / order)
    first = augmented * (a / norm)[:, None]
    weights = (first[:, :-1], *[torch.diag(a)] * (order - 2), (y * a)[None])
    net = Network(weights, (first[:, -1], *[None] * (order - 1)))
    return Known(net, x, y, a**2)


def opposite_pair(x0):
    """The line, +x0 labelled +1 and -x0 labelled -1: the neurons sit on the points if x0 <= 1."""
    x, y = [[x0], [-x0]], [1.0, -1.0]
    if x0 >= 1:
        return one_neuron_per_point(x, y)
    size = math.sqrt(1 + x0**2)
    c = size / (2 * x0)  # path weight of each neuron: c / size = 1 / (2 x0)
    v, lam = math.sqrt(c), size / (2 * x0)
    neurons = [[v / size, v * x0 / size, v], [-v / size, v * x0 / size, -v]]
    return known(neurons, x, y, [lam, lam])


def like_pair(x0):
    """The line, +-x0 both +1: a constant up to sqrt(3), then one neuron per point."""
    if x0 >= math.sqrt(3):
        return one_neuron_per_point([[x0], [-x0]], [1.0, 1.0])
    return known([[0.0, 1.0, 1.0]], [[x0], [-x0]], [1.0, 1.0], [0.5, 0.5])


def three_at_120(y):
    """Radius 2 in the plane: x_i . x_l = -2, so an obtuse set."""
    turns = [2 * math.pi * i / 3 for i in range(3)]
    return one_neuron_per_point([[2 * math.cos(t), 2 * math.sin(t)] for t in turns], y)


TABLE = {
    "one point on the line": one_neuron_per_point([[0.7]], [1.0]),
    "one point in the plane, label -1": one_neuron_per_point([[0.4, -1.1]], [-1.0]),
    "obtuse, three points": one_neuron_per_point(
        [[2.0, 0.0], [-1.0, 1.5], [-1.5, -2.0]], [1.0, 1.0, -1.0]
    ),
    "pair at 1.6": opposite_pair(1.6),
    "pair at 0.5": opposite_pair(0.5),
    "pair at 0.9": opposite_pair(0.9),
    "like pair at 1.2": like_pair(1.2),
    "like pair at 2.5": like_pair(2.5),
    "120 degrees, mixed": three_at_120([1.0, 1.0, -1.0]),
    "120 degrees, one label": three_at_120([1.0, 1.0, 1.0]),
}

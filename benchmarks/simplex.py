"""A network of several classes that is an exact KKT point, in closed form.

For points with x_i . x_j < 0, no neuron that is on at one is on at another, and each point has a
neuron of its own. With one neuron per point, without biases,

    w_i = a_i x_i / |x_i|,  v_i = a_i u_{y_i},  u_y = sqrt(C / (C - 1)) (e_y - (1/C) sum_c e_c),

every rival has the margin q_i = a_i^2 |x_i| sqrt(C / (C - 1)) = 1, and every rival has the same
multiplier. The runner-up's gradient alone leaves (C - 2) / (3 C - 2) of ||theta||^2 unexplained:
with s^2 = C / (C - 1) the least of (1 - t s)^2 + |u - t (e_y - e_c)|^2 over t, by the norm 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.classes import MAX_CLASSES, from_numbers
from explorer.engine.network import Network


@dataclass(frozen=True, eq=False)
class Simplex:
    """The network at margin 1, its points x (n, n - 1) and their labels y (n,)."""

    net: Network
    x: Tensor
    y: Tensor


def simplex(classes: int, generator: torch.Generator) -> Simplex:
    """Corners of a random simplex of C + 1 points, at distances of 0.7 to 1.7 from its centre.

    Raises:
        ValueError: for fewer than 3 or more than 10 classes.
    """
    if not 3 <= classes <= MAX_CLASSES:
        raise ValueError(f"classes must be from 3 to {MAX_CLASSES}; got {classes}")
    n = classes + 1
    corners = torch.eye(n, dtype=torch.float64) - 1 / n
    flat = torch.linalg.svd(corners)[0][:, : n - 1]
    turn = torch.linalg.qr(torch.randn(n - 1, n - 1, generator=generator, dtype=torch.float64)).Q
    unit = corners @ flat @ turn
    unit = unit / unit.norm(dim=1, keepdim=True)
    # 0.7 to 1.7: arbitrary, so that the multipliers differ
    size = 0.7 + torch.rand(n, 1, generator=generator, dtype=torch.float64)
    index = torch.arange(n) % classes
    out = torch.eye(classes, dtype=torch.float64)[index] - 1 / classes
    out = out / out.norm(dim=1, keepdim=True)
    a = (1 / (size * math.sqrt(classes / (classes - 1)))).sqrt()
    net = Network((a * unit, (a * out).T.contiguous()), (None, None))
    return Simplex(net, size * unit, from_numbers(index + 1))

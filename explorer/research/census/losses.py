r"""The losses whose basins are counted, each with its exact gradient, as shares of the weights.

- "kkt": E = min || theta - sum_i lam_i y_i grad Phi(x_i) ||^2, lam_i >= 0, of weights at margin 1,
  the energy that the triangle of starts shows, with slopes sigmoid(alpha z) and the values whose
  slopes they are. With two classes DecoReco's loss of margins is the same.
- Of weights that weight decay trained, theta* = argmin (1/n) sum_i l(z_i, y_i) + mu/2 ||theta||^2:
  "bilevel": || theta(x) - theta* ||^2; "surrogate": || dE/dtheta(x; theta*) ||^2 / mu^2, its bound
  where E is convex; "decoreco": min || theta* - sum_i c_i grad z(x_i) ||^2, c of any sign.

All are divided by the squared norm of the weights. Candidates outside of a box of half width `BOX`
pay the square of how far, or they would be driven away without end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.attacks.attack import Start
from explorer.engine.attacks.bilevel import BilevelConfig, BilevelTarget
from explorer.engine.attacks.bilevel import init as bilevel_state
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import TAU_TRAINED
from explorer.engine.energy.points import check_energy, energy
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.merging import MERGE_ANGLE
from explorer.engine.network import preactivations, with_one
from explorer.engine.nonnegative import signed_coefficients
from explorer.research.census.descent import Loss

BOX = 2.0  # half width, in units of the data: that of the plane
PRICE = 1e-6  # of multipliers, of columns at length one; arbitrary: two candidates of opposite
# labels that come together would take ever larger ones
WORKERS = 2  # threads; what is computed does not depend on them
OF_PAGE = "kkt"  # of the weights of the page; the others are of weights that decay trained


@dataclass(frozen=True, eq=False)
class Surface:
    """A loss of candidates (m, d) of fixed labels, and what is asked of a set of them.

    Attributes:
        loss: values and gradients of many sets, laid flat.
        pull: (x) -> the multiplier of each candidate times the sign that it pulls to (m,).
        cells: (x) -> on which side of each neuron it lies (m, k); None without kinks.
        hard: (x, used (m,)) -> the energy with hard slopes, free at kinks, and whether a candidate
            in use lies on one.
    """

    loss: Loss
    pull: Callable[[Tensor], Tensor]
    cells: Callable[[Tensor], Tensor] | None = None
    hard: Callable[[Tensor, Tensor], tuple[float, bool]] = lambda x, used: (math.nan, False)


def kkt_surface(target: Target, y: Tensor, alpha: float) -> Surface:
    """Return the energy of candidates with labels y (m,), in compiled loops.

    Args:
        target: weights at margin 1, of two layers; parallel neurons are merged.
        y: labels in {-1, +1}.
        alpha: steepness of the slopes.

    Raises:
        ValueError: for other weights.
        RuntimeError: where loops cannot be compiled.
    """
    net = target.merged(MERGE_ANGLE).to(dtype=torch.float64, device="cpu")
    whole, y = target.net.to(dtype=torch.float64, device="cpu"), y.double()
    check_energy(whole, y.new_zeros(len(y), net.d), y, TAU_TRAINED)
    if net.depth != 2:
        raise ValueError(f"a census needs two layers; got {net.depth}. Train one hidden layer.")
    loops: Any = compiled_module("compiled_energy")
    if loops is None:
        raise RuntimeError("a census needs compiled loops: install numba")
    w, v = net.blocks[0].T.contiguous().numpy(), net.weights[1][0].contiguous().numpy()
    w = w if len(w) > net.d else np.vstack([w, np.zeros(len(v))])
    pool = ThreadPoolExecutor(WORKERS)

    def part(places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = places.reshape(len(places), len(y), -1).contiguous().numpy()
        lam, value, gradient = np.ones(x.shape[:2]), np.empty(len(x)), np.empty_like(x)
        loops.energies(x, y.numpy(), w, v, alpha, PRICE, lam, value, gradient)
        flat = gradient.reshape(len(x), -1)
        return torch.from_numpy(value), torch.from_numpy(flat), torch.from_numpy(lam)

    def loss(places: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient, _ = zip(*pool.map(part, places.chunk(WORKERS)), strict=True)
        return torch.cat(value), torch.cat(gradient)

    def lines(x: Tensor) -> Tensor:
        return preactivations(net, x)[0]

    def hard(x: Tensor, used: Tensor) -> tuple[float, bool]:
        size = with_one(x).norm(dim=1)[:, None] * net.blocks[0].norm(dim=1)
        kinked = (lines(x)[used].abs() <= TAU_TRAINED * size[used]).any()
        return energy(whole, x, y, TAU_TRAINED), bool(kinked)

    return Surface(in_box(loss), lambda x: part(x[None])[2][0] * y, lambda x: lines(x) > 0, hard)


def victim_surface(name: str, target: BilevelTarget, config: BilevelConfig, y: Tensor) -> Surface:
    """Return a loss of weights that decay trained, by its name above, one place at a time."""
    one = {"decoreco": _decoreco, "bilevel": _bilevel, "surrogate": _surrogate}[name]
    size, y = float(target.theta.square().sum()), y.double()

    def loss(places: Tensor) -> tuple[Tensor, Tensor]:
        made = [one(target, config, x.reshape(len(y), -1), y) for x in places]
        values, gradients = zip(*made, strict=True)
        return torch.stack(values) / size, torch.stack(gradients).flatten(1) / size

    free = name == "decoreco"  # of labels; the others hold each candidate for a point of its own
    return Surface(in_box(loss), lambda x: _signed_fit(target, x)[1] if free else y)


def in_box(loss: Loss) -> Loss:
    """Return the loss with the price of leaving the box."""

    def priced_loss(places: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = loss(places)
        outside = places - places.clamp(-BOX, BOX)
        value, gradient = value + outside.square().sum(1), gradient + 2 * outside
        return value.nan_to_num(torch.inf), gradient.nan_to_num()

    return priced_loss


Pair = tuple[Tensor, Tensor]
One = Callable[[BilevelTarget, BilevelConfig, Tensor, Tensor], Pair]


def _bilevel(target: BilevelTarget, config: BilevelConfig, x: Tensor, y: Tensor) -> Pair:
    made = bilevel_state(target, config, torch.Generator(), Start(x, y))
    return 2 * made.l_upper, 2 * made.grad_x


def _surrogate(target: BilevelTarget, config: BilevelConfig, x: Tensor, y: Tensor) -> Pair:
    at = target.lower.point(target.theta, x, y)
    gradient, mu2 = at.gradient, target.lower.mu**2
    return gradient.square().sum() / mu2, 2 * at.mixed_derivative(gradient) / mu2


def _decoreco(target: BilevelTarget, config: BilevelConfig, x: Tensor, y: Tensor) -> Pair:
    rows, c = _signed_fit(target, x)
    left = target.theta - c @ rows
    at = target.lower.shape.at(target.theta, x)
    return left.square().sum(), -2 * at.mixed_derivative(c, torch.zeros_like(c), left)


def _signed_fit(target: BilevelTarget, x: Tensor) -> Pair:
    """Return the gradients of z at candidates (m, P), and the multipliers of any sign (m,)."""
    at = target.lower.shape.at(target.theta, x)
    rows = torch.stack([at.pull(row) for row in torch.eye(len(x), dtype=x.dtype)])
    return rows, signed_coefficients(rows @ rows.T, rows @ target.theta)

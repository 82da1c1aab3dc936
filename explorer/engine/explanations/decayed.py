r"""Explanations of weights trained with weight decay: points at all margins, each with a price.

    (1/n) sum_i l(q_i) + (mu/2) ||theta||^2,   q_i = y_i Phi(x_i),   is stationary where
    theta = sum_i lam_i y_i g_i,   lam_i = -l'(q_i) / (n mu),   g_i in dPhi(x_i).

Every point has a multiplier, whatever its margin, and the margin tells which. So a unit of
multiplier costs -1 / l'(q) at a place of margin q, 1 + e^q for the logistic loss, and all together

    sum_i lam_i / (-l'(q_i)) = 1 / mu,

for any number of points. Places of all margins from the least one up are allowed, and this *budget*
is what holds them: it is one more coordinate of theta and of all rays (`PricedRays`). What is left
of it goes to nobody: a place beyond the box without a label.

The price is convex along a piece, as Phi is affine there. Pieces are cut small, and on each the
price is taken as its tangent in the middle, or where it rises steeply as its least value: neither
is ever too dear. So the cone holds every explanation, and a distance from it is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from explorer.engine.arrays import Array, Index
from explorer.engine.explanations.places import Places
from explorer.engine.explanations.regions import Layers, RegionRays
from explorer.engine.margin import Loss

STEP = 1 / 1500  # of the width of the box: a piece; arbitrary, a third of it certifies no more
DEAREST = 30.0  # logit whose price is taken beyond it: a point there has a trace of e^-30


@dataclass(frozen=True, eq=False, kw_only=True)
class Budgeted(Layers):
    """The weights of a network of one input with the budget of their points as one more entry.

    Attributes:
        decay: mu, of the mean loss, at the scale of these weights.
        gain: from y Phi of these weights to the margin that the loss saw.
        loss: the loss of the training.
    """

    decay: float
    gain: float
    loss: Loss

    @cached_property
    def rho(self) -> float:
        """Return the norm of all weights; the budget is no part of it."""
        return float(np.linalg.norm(super().theta))

    @property
    def theta(self) -> Array:
        """Return all weights, and the budget in units of their norm."""
        return np.append(super().theta, self.rho)

    @property
    def pivots(self) -> tuple[Array, ...]:
        """Return a vector with <pivot, g> = price > 0 at all places: the budget alone."""
        return (np.append(np.zeros(len(self.theta) - 1), 1.0),)

    def prices(self, places: Places, x: Array, piece: Index) -> Array:
        """Return what a unit of multiplier costs at corners x (r, 2) of pieces (r,), at most that.

        It is in units of which the whole budget is |theta|.
        """
        y = places.y[piece]
        q = self.gain * y * self.values(x)[-1][:, 0]
        most, least = (np.full(len(places.y), end) for end in (-np.inf, np.inf))
        np.maximum.at(most, piece, q)
        np.minimum.at(least, piece, q)
        wide, middle = (most - least)[piece], np.minimum((most + least) / 2, DEAREST)[piece]
        tangent = np.exp(middle) * (1 + q - middle)  # above 0 while the piece is not as wide as 2
        price = np.where(wide < 1, tangent, np.exp(np.minimum(least, DEAREST))[piece])
        price += float(self.loss == "logistic")
        return np.asarray(np.where(y == 0, 1.0, price) * self.decay * self.rho)


def with_nobody(places: Places, box: float) -> Places:
    """Return places of the line in small pieces, and nobody: a place that leaves no trace."""
    ends = places.pieces[:, :, 0]
    count = np.maximum(np.ceil(np.ptp(ends, axis=1) / (2 * box * STEP)), 1).astype(int)
    of = np.repeat(np.arange(len(count)), count)
    turn = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    low, width = ends.min(axis=1)[of], np.ptp(ends, axis=1)[of] / count[of]
    pieces = np.stack([low + turn * width, low + (turn + 1) * width], axis=1)[:, :, None]
    fine, k = places.parts(pieces, of), places.on.shape[1]
    off = np.zeros((1, k), dtype=bool)
    nobody = Places(np.full((1, 2, 1), 2 * box), np.zeros(1), off, off, places.off[:1] * 0)
    return Places.union([fine, nobody])


@dataclass(frozen=True, eq=False, kw_only=True)
class PricedRays(RegionRays):
    """Rays with the price of a unit of multiplier as their last entry.

    Attributes:
        price: at most the price of each (r,).
    """

    price: Array

    @classmethod
    def at(cls, places: Places, neurons: Budgeted) -> PricedRays:
        """Return the rays of all corners of `places`; the label of nobody is 0."""
        rays = RegionRays.of(places, neurons)
        return cls(**vars(rays), price=neurons.prices(places, rays.x, rays.piece))

    def gains(self, u: Array) -> Array:
        """Return the largest <u, g> over the free signals, of each corner (r,)."""
        return np.asarray(super().gains(u[:-1]) + u[-1] * self.price)

    def columns(self, rows: Index, u: Array) -> Array:
        """Return the rays of some corners that reach their gains (len(rows), P + 1)."""
        return np.column_stack([super().columns(rows, u[:-1]), self.price[rows]])

    @cached_property
    def sizes(self) -> Array:
        """Return the approximate norm of each ray (r,)."""
        return np.asarray(np.hypot(super().sizes, self.price))

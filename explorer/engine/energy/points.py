"""The energy of candidate sets, and what the map of one moving point shows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.energy.least_squares import frozen_gains, refitted_gains, residual
from explorer.engine.energy.rays import PointRays, crowded_count, place_rays, set_rays
from explorer.engine.multipliers import Fit, fit_multipliers
from explorer.engine.network import Network, phi
from explorer.engine.rounding import EDGE

At = Callable[[Tensor], Array]
Through = Callable[[Tensor, At], Array]

LOW = 0.01  # share of the energy without the point below which a place explains as well; arbitrary
NEEDLE = 0.003  # share of places: below, an isolated zero (measured: 0.0003 against a fan's 0.07)
FEW = 3.5  # places: up to so many are isolated too; arbitrary
BOWL = 0.5  # share of the low places that stays of a set of zeros at a tenth of LOW; arbitrary: of
# those around a single smooth minimum a tenth stays in the plane and a third on the line
ACCURACY, ROUNDS = 1e-10, 400  # of an energy's residual; of pricing, where 180 did: arbitrary
IDLE = 100  # columns beyond one a weight: of points far from the origin; arbitrary
ENOUGH = 1e-12  # of the weights: an energy is known to twice this; arbitrary
REDUNDANT = 1e-6  # share of ||theta||^2: nothing is gained by the point; arbitrary


class Archetype(Enum):
    """What the map of a point looks like.

    NEEDLE: with the others where they are, one place, or a few isolated ones, explain the weights
    as well; FAN: a whole set of places does. REDUNDANT: the point explains nothing that the other
    points do not.
    """

    NEEDLE = "needle"
    FAN = "fan"
    REDUNDANT = "redundant"


@dataclass(frozen=True, eq=False)
class Energies:
    """Energies of one moving point, as shares of ||theta||^2.

    Attributes:
        values: at each place (p,).
        here: with the point where it is.
        without: with the point left out; refitted, no value lies above it.
        tau: relative distance of a kink.
        cut: points of the set with more kinks than can all be freed: values are upper bounds.
        crowded: places of which the same holds.
        sizes: share of the map that each place stands for (p,), or None for equal ones.
        band: share of the map up to which a set of zeros may come from the band of a kink alone.
        home: with the point at its place in the training set; None where it stands there.
    """

    values: Array
    here: float
    without: float
    tau: float
    cut: int = 0
    crowded: int = 0
    sizes: Array | None = None
    band: float = 0.0
    home: float | None = None

    @property
    def least(self) -> float:
        """Return the energy where the point explains most; less than at home on trained weights."""
        return min(float(self.values.min(initial=math.inf)), self.here, self.truly)

    @property
    def truly(self) -> float:
        """Return the energy with the point at home."""
        return self.here if self.home is None else self.home

    def below(self, share: float) -> float:
        """Return the share of the map where at most this share of the point's work is left undone.

        In numbers: energies up to truly + share (without - truly).
        """
        low = self.values <= self.truly + share * max(self.without - self.truly, 0.0) + 1e-12
        return float(low.mean() if self.sizes is None else self.sizes[low].sum())

    @property
    def low(self) -> float:
        """Return the share of the places that explain the weights about as well as the point."""
        return self.below(LOW)

    @property
    def archetype(self) -> Archetype:
        """Return needle, fan or redundant: what the point does, and the size of its low set."""
        return self._archetype(1.0)

    @property
    def at_edge(self) -> bool:
        """Return whether limits that are moved by `EDGE` of themselves would give another name."""
        return len({self._archetype(1 - EDGE), self._archetype(1.0), self._archetype(1 + EDGE)}) > 1

    def _archetype(self, scale: float) -> Archetype:
        """Return the archetype by limits times `scale`."""
        if self.without - self.truly <= scale * REDUNDANT:
            return Archetype.REDUNDANT
        one = 1 / max(len(self.values), 1) if self.sizes is None else float(np.median(self.sizes))
        low = self.below(scale * LOW)
        isolated = low < max(NEEDLE, FEW * one, self.band)
        bowl = self.below(scale * LOW / 10) < BOWL * low
        return Archetype.NEEDLE if isolated or bowl else Archetype.FAN


# --- Energy of candidate sets, and its maps: where else could this point be? --------------------
# E_tau(Z) = min over lam >= 0 and slopes s in [0, 1] at kinks of
#                || theta - sum_k lam_k y_k grad Phi(theta; z_k, s) ||^2,
#
# the Clarke relaxation: lower semicontinuous, and zero at the training set of an exact KKT point,
# which hard slopes miss by 25 to 30% of ||theta||^2. A map moves one point (or two, or the whole
# start of an attack) and keeps the others, their multipliers refitted at every place or frozen.
# `tau` is the relative distance of a kink; half a pixel makes needles visible. Optionally
#
#     + kappa sum_k lam_k (y_k Phi(z_k) - 1)^2
#
# charges points in use that are off the margin, and is minimised along. It is linear in lam, so
# that the problem stays convex with one value, and zero at an exact KKT point, however many
# multipliers attain it: those on the margin cost nothing.


def energy(net: Network, x: Tensor, y: Tensor, tau: float, kappa: float = 0.0) -> float:
    """Return E_tau of the points x (n, d), y (n,), as a share of ||theta||^2.

    However many kinks there are, of two layers it is the least value, to 1e-9; deeper, or where
    `ROUNDS` of pricing do not reach that, as of points far from the origin, an upper bound.

    Args:
        net: a homogeneous network, at margin 1 where kappa counts; with one output per class a
            point contributes what its margin does, the lead over the runner-up.
        x: the points.
        y: their labels: in {-1, +1}, or classes from 0.
        tau: relative distance of a kink.
        kappa: price of leaving the margin, of networks with one output.
    """
    check_energy(net, x, y, tau, several=not kappa)
    x, y = _distinct(x, y)
    price = kappa / 2 * (y * phi(net, x) - 1).square() if kappa else None
    fit = fit_multipliers(net, x, y, tau, ACCURACY, ROUNDS, price, ENOUGH, idle=IDLE)
    paid = 0.0 if price is None else 2 * float(price @ fit.lam) / float(net.rho) ** 2
    return fit.residual**2 + paid


def _distinct(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return each point (k, d), (k,) once: copies explain no more, and crowd out other columns."""
    once = torch.unique(torch.cat([x, y.to(x)[:, None]], 1), dim=0)
    return (x, y) if len(once) == len(x) else (once[:, :-1], once[:, -1].to(y))


class Following:
    """E_tau of sets one after the other, by the fit of `energy`, each begun from the one before."""

    def __init__(self, net: Network, y: Tensor, tau: float) -> None:
        """Nothing was fitted; see `energy`, without a price."""
        self.net, self.y, self.tau = net, y, tau
        self._last: Fit | None = None

    def __call__(self, x: Tensor) -> float:
        """Return the energy of the points x (n, d), as a share of ||theta||^2."""
        once, y = _distinct(x.double(), self.y)
        made = fit_multipliers(
            self.net, once, y, self.tau, ACCURACY, ROUNDS, None, ENOUGH, self._last, IDLE
        )
        if len(once) == len(x):  # row by row as the next set
            self._last = made
        return made.residual**2


def at_once(places: Tensor, at: At) -> Array:
    """Return the energies of all places in one go."""
    return at(places)


@dataclass(frozen=True, eq=False)
class MovingPoint:
    """One point that may be anywhere, and all that does not depend on where (`moving_point`).

    Attributes:
        net: the network.
        x: the other points (n - 1, d).
        y: their labels (n - 1,).
        label: of the moving point, ().
        tau: relative distance of a kink.
        frozen: whether the others keep their multipliers.
        kappa: price of leaving the margin.
        fixed: rays of the others, with their price.
        kept: coefficients of their rays: of the whole set where frozen, else without the point.
        here: energy with the point where it is.
        without: energy without it.
        cut: points with more kinks than can all be freed.
    """

    net: Network
    x: Tensor
    y: Tensor
    label: Tensor
    tau: float
    frozen: bool
    kappa: float
    fixed: PointRays
    kept: Array
    here: float
    without: float
    cut: int

    def at(self, places: Tensor) -> Array:
        """Return energies with the point at each of the places (p, d): (p,)."""
        label = self.label.expand(len(places))
        moved = place_rays(self.net, places, label, self.tau)
        moved = _priced_rays(moved, self.net, places, label, self.kappa)
        shared, inner = self.fixed.gram().numpy(), self.fixed.inner.numpy()
        if self.frozen:
            gains = frozen_gains(self.fixed, self.kept, moved)
            gains = gains + 2 * inner @ self.kept - self.kept @ shared @ self.kept
        else:
            gains = refitted_gains(self.fixed, shared, inner, [moved])
        out: Array = np.clip(1 - gains / float(self.net.rho) ** 2, 0, None)
        return out

    def crowded_count(self, places: Tensor) -> int:
        """Return places where `at` gives upper bounds, wherever the point is."""
        return crowded_count(self.net, places, self.tau)

    def energies_at(
        self, places: Tensor, through: Through = at_once, sizes: Array | None = None
    ) -> Energies:
        """Return the energies with the point at each of the places (p, d).

        Args:
            places: where to.
            through: goes through the places by a function of some.
            sizes: share of the map that each place stands for (p,), or None for equal ones.
        """
        return self.energies(through(places, self.at), self.crowded_count(places), sizes)

    def energies(self, values: Array, few: int, sizes: Array | None = None) -> Energies:
        """Return values with what they are compared to; `few`: how many of them are crowded."""
        return Energies(values, self.here, self.without, self.tau, self.cut, few, sizes)


def moving_point(
    net: Network, x: Tensor, y: Tensor, index: int, tau: float, frozen: bool = False,
    kappa: float = 0.0,
) -> MovingPoint:  # fmt: skip
    """Return point `index` as one that moves, the others where they are.

    Args:
        net: a homogeneous network; merged neurons make it cheap and change little.
        x: the points (n, d).
        y: their labels (n,).
        index: which point moves.
        tau: relative distance of a kink.
        frozen: keep the multipliers of the others instead of fitting them at every place.
        kappa: price of leaving the margin, see above, of networks with one output.

    Raises:
        ValueError: for a network without homogeneity, shapes that do not match, or an index that
            is not there.
    """
    check_energy(net, x, y, tau, several=not kappa)
    if not 0 <= index < len(x):
        raise ValueError(f"expected a point from 0 to {len(x) - 1}; got {index}")
    rest = torch.arange(len(x)) != index
    everyone = _priced_rays(set_rays(net, x, y, tau), net, x, y, kappa)
    fixed = everyone.of(rest)
    c, gain = residual(everyone.gram().numpy(), everyone.inner.numpy())
    shared, inner = fixed.gram().numpy(), fixed.inner.numpy()
    if frozen:
        kept = c[(everyone.owner != index).numpy()]
        base = float(2 * inner @ kept - kept @ shared @ kept)
    else:
        kept, base = residual(shared, inner)
    return MovingPoint(
        net, x[rest], y[rest], y[index], tau, frozen, kappa, fixed, kept, _share(net, gain),
        _share(net, base), everyone.cut_count,
    )  # fmt: skip


def pairs(
    net: Network, x: Tensor, y: Tensor, index: int, first: Tensor, second: Tensor, tau: float
) -> Array:
    """Return shares with point `index` split in two, at first (p, d) and second (p, d): (p,)."""
    check_energy(net, x, y, tau)
    fixed = set_rays(net, x, y, tau).of(torch.arange(len(x)) != index)
    label = y[index].expand(len(first))
    both = [place_rays(net, places, label, tau) for places in (first, second)]
    gains = refitted_gains(fixed, fixed.gram().numpy(), fixed.inner.numpy(), both)
    return np.clip(1 - gains / float(net.rho) ** 2, 0, None)


def check_energy(net: Network, x: Tensor, y: Tensor, tau: float, several: bool = False) -> None:
    """Refuse what has no energy; `several`: outputs may be. ValueError with what was expected."""
    if not net.homogeneous or (net.outputs != 1 and not several) or net.depth < 2:
        raise ValueError(
            "an energy needs a homogeneous network (biases in the first layer only) with a hidden "
            f"layer{'' if several else ' and one output'}; got {len(net.weights)} layers, "
            f"{net.outputs} outputs, homogeneous: {net.homogeneous}. Train such a network."
        )
    if x.ndim != 2 or x.shape[1] != net.d or y.shape != x.shape[:1]:
        raise ValueError(
            f"expected x (n, {net.d}) and y (n,); got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    if not math.isfinite(tau):
        raise ValueError(f"tau must be a finite number, negative for no kinks; got {tau}")


def _share(net: Network, gain: float) -> float:
    return max(0.0, 1 - gain / float(net.rho) ** 2)


def _priced_rays(made: PointRays, net: Network, x: Tensor, y: Tensor, kappa: float) -> PointRays:
    """Return rays of points x (p, d) that cost kappa (y Phi - 1)^2 a unit of multiplier."""
    if not kappa or not len(x):
        return made
    off = (y * phi(net, x) - 1).square()
    return replace(made, inner=made.inner - kappa / 2 * off[made.owner])

r"""The cone of all explanations of weights, and the radius of a place: its distance without it.

d = 1 or 2, margin 1. An *explanation* of theta is a sum over points x of label y with
1 <= y Phi(x) <= 1 + band in the box, with lam >= 0 and slopes s that are free within tau of a line:

    r = || theta - sum lam y g(x; s) || / || theta ||.

All such sums are a cone that finitely many rays span: of two layers those of `places`; of more
those of `regions`, whose cone holds all sums and more. Of several outputs Phi_y - Phi_c takes the
place of y Phi, a row for each pair of classes; of weights trained with weight decay points have all
margins, and a price (`decayed`). Leave out the points of label y in the
inside of a region H, and a smaller cone is left. Its distance from theta, as a share of |theta|, is
the *radius* r*(H, y):

    who explains theta up to r < r*(H, y) has a point of label y in H.

Every network of finite training is off a KKT point of its data; r is by how much. The rays are
taken up as they are needed (column generation), and what is returned never rests on the solver. For
any u, and any p with <p, g> > 0 for all rays (theta, or its last layer), d = u - t p with
t = max_g <u, g>+ / min_g <p, g> has <d, g> <= 0 for all rays, so that the distance is at least
<d, theta> / |d|. docs/certified-radius.md proves it and says where it stops. What to assume:
`assumptions`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from explorer.engine.arrays import Array, Flags, Index
from explorer.engine.explanations.decayed import Budgeted, PricedRays, with_nobody
from explorer.engine.explanations.places import (
    Hole,
    Neurons,
    Places,
    corners_of,
    frame,
    neuron_groups,
    places,
    whole,
)
from explorer.engine.explanations.regions import Layers, RegionRays, regions
from explorer.engine.margin import Loss
from explorer.engine.network import Network
from explorer.engine.nonnegative import nonnegative

ROUNDS = 200  # of column generation; arbitrary, 15 to 40 are usual, and the bound holds at any
BATCH = 150  # rays that join in a round; 60 leave a gap four times as wide (circle, 160 groups)
COARSE = 0.02  # of the box, between rays of one round; 5e-6 takes five times as many rounds
MOST_SORTED = 3000  # steepest rays among which those of one round are chosen; arbitrary
HALVED = 6  # rounds after which rays may stand twice as near; arbitrary
GAP = 0.02  # of the radius, between what is proven and what is reached; arbitrary
FINE = 1e-4  # of |theta|: a gap that nobody asks to close; arbitrary
SMOOTH = 0.6  # share of the best dual vector in that which prices rays (Wentges 1997); arbitrary
STILL = 10  # rounds without any gain after which rounding alone is left; arbitrary
BASIC = 1e-9  # of a ray's gain: with less many more rays share the same sum, in 20 times the time
SAFE = 1e-12  # share of a bound that its own rounding may be; arbitrary
ROUND = 1e-13  # of |theta|^2: rounding of an inner product; 100 times float64's


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of the points that explain the weights.

    Attributes:
        band: they have 1 <= y Phi(x) <= 1 + band.
        tau: their slopes are free within this distance of a neuron's line, in units of x.
        box: they lie in [-box, box]^d.
        changed: why these weights say nothing of how far they are from their points, or "".
        middle: half width of the middle of the box; beyond it neurons of a group may differ more.
            0: the whole box is one.
        angle: neurons within it are seen as one group; costs width of the zones, no proof.
        light: neurons below this share of the path weight stand in no group.
        margin_error: by how much the known margin may be off, as a share of it.
        reach: a training point may stand for points this far from it, in units of x; a place then
            speaks of training points within `reach` of it.
        doubt: each weight may be off by this: slopes are free where a line may lie.
        rounded: each weight may be off by this share of it, as storage in few bits does.
        stray: the residual that doubt and rounding leave to the truth, a share of |theta|.
        edge: y Phi may be off the band by this, by rounding of the weights.
        decay: mu of the weight decay that trained them, at their scale; 0 for none. With it points
            have all margins from `lowest` up.
        gain: from y Phi of these weights to the margin as trained.
        lowest: the least y Phi of a point: 1 where the points are separated.
        loss: the loss that the decay stood beside.
    """

    band: float = 0.01
    tau: float = 0.005
    box: float = 2.5
    angle: float = 0.0
    light: float = 0.0
    margin_error: float = 0.0
    reach: float = 0.0
    doubt: float = 0.0
    rounded: float = 0.0
    stray: float = 0.0
    edge: float = 1e-6
    middle: float = 0.0
    changed: str = ""
    decay: float = 0.0
    gain: float = 1.0
    lowest: float = 1.0
    loss: Loss = "logistic"

    @property
    def top(self) -> float:
        """Return the largest y Phi of a point; inf where all margins may be."""
        return (1 + self.band) * (1 + self.margin_error)

    @property
    def levels(self) -> tuple[float, float]:
        """Return the least and the largest y Phi of a point, rounding left aside."""
        error = self.margin_error * abs(self.lowest)
        return self.lowest - error - self.edge, self.top + self.edge

    def rings(self, d: int) -> list[tuple[float, Array]]:
        """Return the middle and the rings around it, each twice as wide: half widths and pieces.

        What neurons of a group may differ by grows with the distance, and each ring has its own.
        """
        half = self.middle if 0 < self.middle < self.box else self.box
        found = [(half, whole(half, d))]
        while half < self.box:
            outer = min(2 * half, self.box)
            found.append((outer, frame(half, outer, d)))
            half = outer
        return found


def scope(box: float, top: float) -> str:
    """Return which explanations a radius speaks of: the box and the margins of their points."""
    if top == np.inf:
        return f"points within ±{box:.2g} of 0, of all margins at the price of the weight decay"
    return f"points within ±{box:.2g} of 0 and margins up to {top:.3g} times the smallest"


def refusal(net: Network) -> str:
    """Return why no radius can be certified for a network, or an empty string."""
    bare = net.biases[0] is None
    if len(net.weights) < 2 or not net.homogeneous or net.d > 2 or bare:
        biases = "" if net.homogeneous else " with biases in later layers"
        biases = " without biases in the first layer" if bare else biases
        return (
            "the certified radius needs one or two inputs, a hidden layer, and biases in the first "
            f"layer alone; got {net.shape}{biases}. Draw points on the line or in the plane, and "
            "train with the default biases."
        )
    return ""


@dataclass(frozen=True, eq=False)
class Rays:
    """Gradients y g(x; s) at the corners of places, priced without being written out.

    Attributes:
        x: corners with a 1 at the end (r, d + 1).
        y: labels (r,).
        piece: the piece of each corner (r,), ascending.
        hard: whose slope is 1 there (p, k); of those that are not free.
        on: who is active there (p, k).
        at, group: each corner's groups of free slope, as pairs (f,), (f,).
        off: how far their values can be off (f,); None where none is.
        neurons: the groups.
    """

    x: Array
    y: Array
    piece: Index
    hard: Array
    on: Array
    at: Index
    group: Index
    off: Array | None
    neurons: Neurons

    @classmethod
    def of(cls, places: Places, neurons: Neurons) -> Rays:
        """Return the rays of all corners of `places`, each once."""
        x, piece = corners_of(places.pieces)
        at, group = np.nonzero(places.free[piece])
        hard = (places.on & ~places.free).astype(float)
        off = places.off[piece[at], group] if places.off.any() else None
        on = places.on.astype(float)
        return cls(x, places.y[piece], piece, hard, on, at, group, off, neurons)

    def __len__(self) -> int:
        """Return the number of corners."""
        return len(self.y)

    def gains(self, u: Array) -> Array:
        """Return the largest <u, y g(x; s)> over the slopes s, of each corner (r,)."""
        k, neurons = len(self.neurons.v), self.neurons
        block, last = u[:-k].reshape(k, -1), u[-k:]
        plane = self.hard @ (neurons.v[:, None] * block) + self.on @ (last[:, None] * neurons.w)
        total: Array = self.y * np.einsum("rd,rd->r", self.x, plane[self.piece])
        if len(self.at):
            pull, lift = self._free(u, slice(None))
            more = np.maximum(pull, 0, out=pull)
            if lift is not None:
                more += np.maximum(lift, 0, out=lift)
            total += np.bincount(self.at, more, len(total))
        return total

    @cached_property
    def _pulls(self) -> Array:
        """Return y v x at each free slope, a row for each side of x (d + 1, f)."""
        pull = self.y[self.at] * self.neurons.v[self.group]
        return np.ascontiguousarray(pull * self.x[self.at].T)

    @cached_property
    def _lifts(self) -> Array | None:
        """Return y times the slack of the value at each free slope (f,); None if there is none."""
        return None if self.off is None else self.y[self.at] * self.off

    def _free(self, u: Array, some: slice | Flags) -> tuple[Array, Array | None]:
        """Return what free slopes add to the gain at 1 (f,), and what their values' slack adds."""
        k, group = len(self.neurons.v), self.group[some]
        sides = np.ascontiguousarray(u[:-k].reshape(k, -1).T)
        pull = sum(p[some] * side[group] for p, side in zip(self._pulls, sides, strict=True))
        lifts = self._lifts
        return np.asarray(pull), None if lifts is None else lifts[some] * u[-k:][group]

    def columns(self, rows: Index, u: Array) -> Array:
        """Return the rays of some corners that reach their gains (len(rows), k (d + 2))."""
        neurons, y, x = self.neurons, self.y[rows, None], self.x[rows]
        slope = y * neurons.v * self.hard[self.piece[rows]]
        value = y * self.on[self.piece[rows]] * (x @ neurons.w.T)
        if len(self.at):
            place = np.full(len(self), -1)
            place[rows] = np.arange(len(rows))
            mine = place[self.at] >= 0
            pull, lift = self._free(u, mine)
            row, group = place[self.at[mine]], self.group[mine]
            slope[row, group] = (pull > 0) * (y[:, 0][row] * neurons.v[group])
            if lift is not None and self.off is not None:
                value[row, group] += (lift > 0) * (y[:, 0][row] * self.off[mine])
        blocks = slope[:, :, None] * x[:, None, :]
        return np.concatenate([blocks.reshape(len(rows), -1), value], axis=1)

    @cached_property
    def sizes(self) -> Array:
        """Return the approximate norm of each ray (r,): that with all free slopes at 1."""
        neurons = self.neurons
        square = (self.hard @ neurons.v**2)[self.piece]
        square += np.bincount(self.at, neurons.v[self.group] ** 2, len(self))
        # |value|^2 = x' (sum over active groups of w w') x
        moment = np.einsum("kd,ke->kde", neurons.w, neurons.w).reshape(len(neurons.w), -1)
        d = self.x.shape[1]
        form = (self.on @ moment).reshape(-1, d, d)[self.piece]
        total = square * (self.x**2).sum(axis=1)
        total += np.einsum("rd,rde,re->r", self.x, form, self.x)
        found: Array = np.sqrt(np.maximum(total, 1e-300))
        return found


AnyNeurons = Neurons | Layers
AnyRays = Rays | RegionRays


def rays_of(places: Places, neurons: AnyNeurons) -> AnyRays:
    """Return the rays at all corners of places: of groups of two layers, or of regions."""
    if isinstance(neurons, Budgeted):
        return PricedRays.at(places, neurons)
    if isinstance(neurons, Layers):
        return RegionRays.of(places, neurons)
    return Rays.of(places, neurons)


@dataclass(frozen=True, eq=False)
class RayPart:
    """Some rays, which of them are there (r,), and what each costs (r,) (`masses`)."""

    rays: AnyRays
    there: Flags
    price: Array

    @classmethod
    def of(cls, rays: AnyRays, there: Flags | None = None, price: float = 0.0) -> RayPart:
        """Return all rays, or those that are there, at one price."""
        every = np.ones(len(rays), dtype=bool)
        return cls(rays, every if there is None else there, np.full(len(rays), price))

    def gains(self, u: Array, weight: float = 0.0) -> Array:
        """Return what each ray gains beyond `weight` times its price (r,); -inf if not there."""
        gains = self.rays.gains(u)
        if weight:
            gains -= weight * self.price
        return np.asarray(np.where(self.there, gains, -np.inf))

    def depth(self, pivot: Array) -> float:
        """Return the least <pivot, g> of the rays that are there; inf for none."""
        return -float(self.gains(-pivot).max(initial=-np.inf))


@dataclass(frozen=True, eq=False, kw_only=True)
class RaySum:
    """Rays with multipliers: an explanation.

    Attributes:
        columns: its rays, one a row (a, P).
        gram: their products (a, a).
        lam: their multipliers (a,), above 0.
        price: what each costs (a,).
        x: their places (a, d).
        y: their labels (a,).
        piece: the piece of each place (a,), of its part.
    """

    columns: Array
    gram: Array
    lam: Array
    price: Array
    x: Array
    y: Array
    piece: Index

    @classmethod
    def none(cls, neurons: AnyNeurons) -> RaySum:
        """Return the explanation without points."""
        none, columns = np.zeros(0), np.zeros((0, len(neurons.theta)))
        return cls(
            columns=columns, gram=none.reshape(0, 0), lam=none, price=none,
            x=np.zeros((0, neurons.d)), y=none, piece=none.astype(np.int64),
        )  # fmt: skip

    def take(self, kept: Flags) -> RaySum:
        """Return some of the rays, with their multipliers."""
        rows = {k: v[kept] for k, v in self._rows.items()}
        return RaySum(gram=self.gram[np.ix_(kept, kept)], **rows)

    def and_without(self, other: RaySum) -> RaySum:
        """Return these rays, and those of `other` without a multiplier."""
        rows = {k: np.concatenate([v, other._rows[k]]) for k, v in self._rows.items()}
        rows["lam"][len(self.lam) :] = 0.0
        return RaySum(gram=rows["columns"] @ rows["columns"].T, **rows)

    @property
    def _rows(self) -> dict[str, Any]:
        """Return all that has a row for each ray."""
        names = ("columns", "lam", "price", "x", "y", "piece")
        return {name: getattr(self, name) for name in names}

    def remainder(self, theta: Array) -> Array:
        """Return what it leaves of theta (P,)."""
        return np.asarray(theta - self.lam @ self.columns)

    def avoids(self, hole: Hole, y: float | None = None) -> bool:
        """Return whether this explanation has no point of label y, or of any, in a hole."""
        return not bool(self.inside(hole, y).any())

    def inside(self, hole: Hole, y: float | None = None) -> Flags:
        """Return which points (a,) have label y, or any, and lie in a hole."""
        return np.asarray(hole.holds(self.x) & ((self.y == y) | (y is None)))

    def with_rays(
        self, parts: list[RayPart], fresh: list[Index], u: Array, theta: Array, weight: float = 0.0
    ) -> RaySum:
        """Return the best multipliers with fresh rays, those at 0 left out again.

        Args:
            parts: where the rays come from.
            fresh: of each part the rows of those that join.
            u: their free slopes are those of largest gain for it (P,).
            theta: what is explained (P,).
            weight: of the prices, beside half the square of what is left.
        """
        new = [(part, rows) for part, rows in zip(parts, fresh, strict=True) if len(rows)]
        columns = np.concatenate([self.columns, *(p.rays.columns(rows, u) for p, rows in new)])
        price = np.concatenate([self.price, *(p.price[rows] for p, rows in new)])
        gram, a = self.gram, len(self.lam)
        if new:
            across = self.columns @ columns[a:].T
            gram = np.block([[gram, across], [across.T, columns[a:] @ columns[a:].T]])
        aim = columns @ theta - weight * price
        guess = np.concatenate([self.lam, np.zeros(len(columns) - a)])
        lam = nonnegative(gram, aim, guess, steep=BASIC)
        every = RaySum(
            columns=columns, gram=gram, lam=lam, price=price,
            x=np.concatenate([self.x, *(p.rays.x[rows, :-1] for p, rows in new)]),
            y=np.concatenate([self.y, *(p.rays.y[rows] for p, rows in new)]),
            piece=np.concatenate([self.piece, *(p.rays.piece[rows] for p, rows in new)]),
        )  # fmt: skip
        return every.take(lam > 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Bound(RaySum):
    """The distance of theta from a cone as a share of |theta|: low <= it <= high.

    Attributes:
        low: proven by a dual vector, whatever the solver did.
        high: reached by the explanation.
    """

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Cone:
    """All explanations of a network under some assumptions.

    Attributes:
        assumptions: what they are.
        neurons: its neurons, of two layers as groups.
        places: where points can be.
        rays: the rays at their corners.
    """

    assumptions: Assumptions
    neurons: AnyNeurons
    places: Places
    rays: AnyRays

    @classmethod
    def of(cls, net: Network, assumed: Assumptions) -> Cone:
        """Return the cone of a network at margin 1; ValueError where there is a `refusal`."""
        why = refusal(net)
        if why:
            raise ValueError(why)
        grouped = net.has_signs and not assumed.decay
        return cls._of_groups(net, assumed) if grouped else cls.of_layers(net, assumed)

    @classmethod
    def _of_groups(cls, net: Network, assumed: Assumptions) -> Cone:
        """Return the cone of two layers, neurons seen as groups."""
        rings = []
        for half, cells in assumed.rings(net.d):
            neurons = neuron_groups(
                net, assumed.angle, assumed.tau, half, assumed.light, assumed.doubt, assumed.rounded
            )
            rings.append((neurons, places(neurons, *assumed.levels, cells)))
        found = Places.union([each for _, each in rings])
        return cls(assumed, rings[0][0], found, Rays.of(found, rings[0][0]))

    @classmethod
    def of_layers(cls, net: Network, assumed: Assumptions) -> Cone:
        """Return the cone of a network of any depth by its regions, each neuron for itself."""
        layers = Layers.of(net, assumed.box)
        found = regions(layers, *assumed.levels, assumed.tau, assumed.rounded)
        if not assumed.decay:
            return cls(assumed, layers, found, RegionRays.of(found, layers))
        priced = Budgeted(
            layers.weights, layers.box, decay=assumed.decay, gain=assumed.gain, loss=assumed.loss
        )
        found = with_nobody(found, assumed.box)
        return cls(assumed, priced, found, rays_of(found, priced))

    @property
    def outputs(self) -> int:
        """Return how many outputs the network has."""
        return 1 if self.places.cover is None else self.places.cover.shape[1]

    @property
    def tight(self) -> bool:
        """Return whether every sum in it is one of an explanation: of two layers, not of more.

        Nor with weight decay, where a sum may be of parts of points.
        """
        return self.neurons.order == 2 and not self.assumptions.decay

    @cached_property
    def pivot(self) -> Array:
        """Return a vector at an acute angle to all rays: of those known the deepest inside."""
        every = RayPart.of(self.rays)
        return max(self.neurons.pivots, key=lambda p: every.depth(p) / float(np.linalg.norm(p)))

    @cached_property
    def least_depth(self) -> float:
        """Return the least <pivot, g> of all rays; above 0, or nothing can be proven."""
        return RayPart.of(self.rays).depth(self.pivot)

    @cached_property
    def least(self) -> Bound:
        """Return the bound of the least residual: the radius of no place can be below it."""
        return self._distance([RayPart.of(self.rays)], RaySum.none(self.neurons))

    @cached_property
    def _others(self) -> list[Bound]:
        """Return explanations met on the way: a place that one of them avoids is not needed."""
        return []

    def radius(
        self, low: Array, high: Array, y: float, enough: float = 0.0, wider: Bound | None = None,
        sure: float = np.inf,
    ) -> Bound:  # fmt: skip
        """Return the radius of the box low <= x <= high, (d,) each, for label y; `low` is proven.

        Where `enough` or less is reached, or more than `sure` is proven, the search ends: nobody
        asks for how much less or more. `wider`: the radius of a box around this one, from whose
        explanation the search begins.
        """
        hole = Hole.box(low, high)
        if self.least.avoids(hole, y):
            return self.least
        for other in self._others:
            if other.high <= enough and other.avoids(hole, y):
                return replace(other, low=self.least.low)
        found = self.best_without(hole, y, enough, sure, wider)
        if found.high <= enough:
            self._others.append(found)
        return found

    def best_without(
        self, hole: Hole, y: float | None = None, enough: float = 0.0, sure: float = np.inf,
        before: Bound | None = None, rounds: int = ROUNDS,
    ) -> Bound:  # fmt: skip
        """Return the best explanation without points of label y, or of any, in a hole.

        Args:
            hole: where no point may be.
            y: the label of the points that may not; None: of any.
            enough: as of `radius`.
            sure: likewise.
            before: an explanation that avoids most of it, from which the search begins.
            rounds: of the search at most; what it reaches and proves holds after any.
        """
        meets = self.places.meet(hole, y)
        rest = rays_of(self.places.take(meets).without(hole), self.neurons)
        start = self.least.take(~self.least.inside(hole, y))
        if before is not None:
            start = before.take(~before.inside(hole, y)).and_without(start)
        parts = [RayPart.of(self.rays, ~meets[self.rays.piece]), RayPart.of(rest)]
        return self._distance(parts, start, self.least.low, enough, sure, rounds)

    def mass(self, low: Array, high: Array, y: float) -> float:
        """Return the multipliers that the least explanation has for label y in the box."""
        at = self.least
        inside = ((at.x >= low) & (at.x <= high)).all(axis=1) & (at.y == y)
        return float(at.lam[inside].sum())

    def bound_near(self, x: Array, y: Array, within: float) -> Bound:
        """Return the least residual with points within `within` of x (n, d), labels y (n,), alone.

        Who knows the data compares the radii with it: a radius above it is a proof.
        """
        wide, parts = max(within, 1e-9 * self.neurons.box), []
        for at, label in zip(x, y, strict=True):
            around = Hole.box(at - wide, at + wide)
            near = self.places.take(self.places.meet(around, label))
            parts.append(near.part_inside(around))
        rays = rays_of(Places.union(parts), self.neurons)
        return self._distance([RayPart.of(rays)], RaySum.none(self.neurons))

    def _distance(
        self, parts: list[RayPart], start: RaySum, low: float = 0.0, enough: float = 0.0,
        sure: float = np.inf, rounds: int = ROUNDS,
    ) -> Bound:  # fmt: skip
        """Return the distance from the cone of these parts, which is `low` or more."""
        theta, rho = self.neurons.theta, self.neurons.rho
        others = [part.depth(self.pivot) for part in parts if part.rays is not self.rays]
        pointed = min([self.least_depth, *others])
        if not pointed > 0:  # no dual vector is sure to serve: nothing is proven
            return Bound(**vars(start), low=low, high=1.0)
        found = start.with_rays(parts, [np.zeros(0, dtype=np.int64)] * len(parts), theta, theta)
        cell, best, still = COARSE * self.neurons.box, np.inf, 0
        centre, top = None, -np.inf
        for turn in range(rounds):
            left = found.remainder(theta)
            u = left if centre is None else SMOOTH * centre + (1 - SMOOTH) * left
            gains = [part.gains(u) for part in parts]
            most = max(float(gain.max(initial=0.0)) for gain in gains)
            proven, high = self._dual_bound(u, most, pointed), float(np.linalg.norm(left)) / rho
            if proven > top:
                centre, top = u, proven
            still = 0 if proven > low or high < best * (1 - 1e-9) else still + 1
            low, best = max(low, proven), min(high, best)
            known = high - low <= max(GAP * high, FINE) or high <= enough or low > sure
            if known or still == STILL:
                break
            if turn % HALVED == HALVED - 1:
                cell /= 2
            fresh = steepest(parts, gains, cell)
            joining = any(map(len, fresh))
            if centre is None and not joining:
                break
            if still or not joining:  # nothing was gained: what is left itself prices rays next
                centre = None
            found = found.with_rays(parts, fresh, u, theta)
        high = float(np.linalg.norm(found.remainder(theta))) / rho
        return Bound(**vars(found), low=low, high=high)

    def _dual_bound(self, u: Array, most: float, pointed: float) -> float:
        theta, rho = self.neurons.theta, self.neurons.rho
        down = u - (most + ROUND * rho**2) / pointed * self.pivot
        size = float(np.linalg.norm(down))
        return float(down @ theta) / (size * rho) * (1 - SAFE) if size > 0 else 0.0


def steepest(parts: list[RayPart], gains: list[Array], cell: float) -> list[Index]:
    """Return the rows of each part that join: the steepest of each label and cell of places.

    Args:
        parts: rays.
        gains: of each part what its rays gain (r,); -inf for those that are not there.
        cell: width of a cell, in units of the data.
    """
    pairs = zip(gains, parts, strict=True)
    score = np.concatenate([gain / part.rays.sizes for gain, part in pairs])
    rows = np.flatnonzero(score > 1e-3 * max(float(score.max(initial=0.0)), 1e-300))
    if len(rows) > MOST_SORTED:
        rows = np.sort(rows[np.argpartition(-score[rows], MOST_SORTED)[:MOST_SORTED]])
    rows = rows[np.argsort(-score[rows], kind="stable")]
    x = np.concatenate([part.rays.x[:, :-1] for part in parts])[rows]
    y = np.concatenate([part.rays.y for part in parts])[rows]
    key = np.concatenate([np.floor(x / cell), y[:, None]], axis=1)
    first = np.sort(np.unique(key, axis=0, return_index=True)[1])[:BATCH]
    ends = np.cumsum([0, *(len(part.rays) for part in parts)])
    rows = rows[first]
    return [rows[(rows >= a) & (rows < b)] - a for a, b in pairwise(ends)]

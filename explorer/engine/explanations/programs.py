r"""Linear programs with many rows of which few bind: a row is taken in where it is missed.

    min <cost, z>   subject to   z >= 0,   |C z - theta|_inf <= room,   a <= lam

has two rows for each component of theta, and a 2-100-100-1 network has 10,400 components. At an
optimum no more rows bind than z has positive entries, some hundred. So the program is solved on a
few rows, those that its solution misses join, and it is solved anew. Rows left out only make the
minimum smaller, and the last solution misses none: it solves the whole program, to the solver's
own tolerance. What one cost needed serves the next. An empty relaxation proves that the whole
program is empty.

One row is implied by all others and is taken first, as a relaxation without it may be unbounded:
their sum with the signs and sizes of theta,

    <theta, C z> <= |theta|^2 + room |theta|_1,

where <theta, y g> = order on the margin (Euler), so that it bounds the mass. This is the cutting
plane method (Kelley 1960) on a linear program.

Likewise few of many points have a positive multiplier. Where all rows are taken at once, and the
points are many, the program begins with those that are known to satisfy it, and points of negative
reduced cost join (column generation, Dantzig and Wolfe 1960). At its end no point has one, so the
solution is one of the whole program, to the solver's own tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import csr_matrix, eye_array, hstack, vstack
from torch import Tensor

from explorer.engine.explanations.cells import KINK
from explorer.engine.explanations.sampling import GRID, check_plane, kinks_of, margin_points
from explorer.engine.explanations.splitting import USED, Explanation, fitted_explanation, residual
from explorer.engine.gradients import gradient
from explorer.engine.network import Network, phi
from explorer.engine.progress import Progress, between, no_progress, share_after

Array = NDArray[np.float64]
Index = NDArray[np.int64]
WHOLE = 1000  # arbitrary: up to so many components all rows are taken at once, as in two layers
START = 200  # arbitrary: rows at first, those that 0 misses most
BATCH = 100  # arbitrary: rows that join at most per round
MANY = 2000  # arbitrary: from so many points on, columns join the program as they are missed
EACH = 0.2  # arbitrary: of what is left of the bar, for a round of an unknown number
COLUMNS = 400  # arbitrary: points that join at most per round
MISSED = 1e-7  # the feasibility tolerance of HiGHS: what its own solutions may miss of a row


@dataclass(frozen=True, eq=False)
class Rows:
    """The polytope, and the rows that were needed so far.

    Attributes:
        columns: C (P, m + r): m multipliers, then r kink variables.
        theta: (P,).
        room: by how much each component may be missed.
        owner: multiplier of each kink variable (r,).
        slack: where above 0, z has one more entry t, and the room is room + slack t.
        given: how many points, the first ones, are known to satisfy the program; 0 for none.
        taken: rows that are in the program, i for C z <= theta + room and P + i for the other side.
    """

    columns: Array
    theta: Array
    room: float
    owner: Index
    slack: float = 0.0
    given: int = 0
    taken: list[int] = field(default_factory=list)
    _made: list[csr_matrix] = field(default_factory=list, repr=False)

    @property
    def whole(self) -> bool:
        """Whether all rows are taken at once."""
        return len(self.theta) <= WHOLE

    def least(
        self,
        cost: Array,
        without: NDArray[np.bool_] | None = None,
        progress: Progress = no_progress,
    ) -> tuple[Array, float]:
        """A point of least cost on the polytope. -> (z, its cost).

        Args:
            cost: (m + r,), or (m + r + 1,) with slack.
            without: points (m,) bool that may have no mass; None for none.
            progress: called before each round. There is no telling how many come; see
                `share_after`.

        Raises:
            ValueError: where there is no such point, with the solver's reason.
        """
        if not self.taken:
            first = np.argsort(np.concatenate([self.theta, -self.theta]), kind="stable")
            self.taken.extend((np.arange(len(first)) if self.whole else first[:START]).tolist())
        m = self.columns.shape[1] - len(self.owner)
        if self.whole and self.given and not self.slack and without is None and m > MANY:
            found = self._by_columns(cost, m, progress)
            if found is not None:
                return found
        rounds = 0
        while True:
            progress(share_after(rounds, EACH))
            rounds += 1
            done = self._solved(cost, without)
            if done is None or self.whole:
                break
            fresh = self._missed(done[0])
            if not fresh:
                break
            self.taken.extend(fresh)
        if done is None:
            raise ValueError("the linear program has no solution")
        return done

    def _by_columns(self, cost: Array, m: int, progress: Progress) -> tuple[Array, float] | None:
        """The program on few points, which those of negative reduced cost join; None if empty."""
        part = np.zeros(m, dtype=bool)
        part[: self.given] = part[self.owner] = True
        part[np.argsort(cost[:m], kind="stable")[:COLUMNS]] = True
        end = MISSED * max(1.0, float(np.abs(cost).max()))
        kinks, rounds = np.ones(len(self.owner), dtype=bool), 0
        while True:
            progress(share_after(rounds, EACH))
            rounds += 1
            own = np.concatenate([part, kinks])
            numbers = np.cumsum(part) - 1
            fewer = Rows(self.columns[:, own], self.theta, self.room, numbers[self.owner])
            fewer.taken.extend(self.taken)
            done = fewer._solve(cost[own], None)
            if done is None:
                return None
            lower = done.ineqlin.marginals[: len(self.taken)]
            weight = np.zeros(2 * len(self.theta))
            weight[self.taken] = lower
            weight = weight[: len(self.theta)] - weight[len(self.theta) :]
            reduced = cost[:m] - weight @ self.columns[:, :m]
            reduced[part] = 0.0  # theirs the solver knows
            worst = -float(reduced.min(initial=0.0))
            if worst <= end:
                z = np.zeros(len(cost))
                z[own] = done.x
                return z, float(done.fun)
            part[np.argsort(reduced, kind="stable")[:COLUMNS]] = True

    def _solved(self, cost: Array, without: NDArray[np.bool_] | None) -> tuple[Array, float] | None:
        """Return a solution on the rows taken with its cost; None where there is none."""
        done = self._solve(cost, without)
        return None if done is None else (done.x, float(done.fun))

    def _solve(self, cost: Array, without: NDArray[np.bool_] | None) -> OptimizeResult | None:
        """Return what the solver says of the program on the rows taken; None where it is empty."""
        count, r = len(self.theta), len(self.owner)
        m = self.columns.shape[1] - r
        taken = np.array(self.taken)
        side = np.where(taken < count, 1.0, -1.0)
        b = side * self.theta[taken % count] + self.room
        if not self.whole:
            size = float(np.abs(self.theta).sum())
            b = np.append(b, float(self.theta @ self.theta) + self.room * size)
        if not self._made or self._made[0].shape[0] != len(b) + r:
            table = side[:, None] * self.columns[taken % count]
            if not self.whole:
                table = np.concatenate([table, (self.theta @ self.columns)[None]])
            pick = csr_matrix((-np.ones(r), (np.arange(r), self.owner)), shape=(r, m))
            bound = hstack([pick, eye_array(r)])
            whole = vstack([csr_matrix(table), bound]).tocsr()
            if self.slack:
                each = np.full(len(b), -self.slack)
                each[len(taken) :] *= float(np.abs(self.theta).sum())  # the implied row, if any
                each = np.concatenate([each, np.zeros(r)])
                whole = hstack([whole, csr_matrix(each[:, None])]).tocsr()
            self._made[:] = [whole]
        b = np.concatenate([b, np.zeros(r)])
        high = np.full(len(cost), np.inf)
        if without is not None:
            high[:m][without] = 0.0
        ends = np.stack([np.zeros(len(cost)), high], axis=1)
        done = linprog(cost, A_ub=self._made[0], b_ub=b, bounds=ends, method="highs")
        return done if done.status == 0 else None

    def _missed(self, z: Array) -> list[int]:
        """The rows that z misses most, at most `BATCH`, none that is taken."""
        off = self.columns @ z[: self.columns.shape[1]] - self.theta
        room = self.room + (self.slack * float(z[-1]) if self.slack else 0.0)
        over = np.concatenate([off, -off]) - room
        over[self.taken] = 0.0
        worst = np.argsort(-over, kind="stable")[:BATCH]
        found: list[int] = worst[over[worst] > MISSED].tolist()
        return found


# --- All explanations of the same weights at once: forced masses and the farthest training set --
# The explanations of theta that keep the margin are the non-negative measures on {|Phi| = 1} with
#
#     sum_q lam_q y_q g_q = theta,   g_q in dPhi(q),   y_q = sign Phi(q),
#
# a convex set; all of them have the mass sum lam = rho^2 / order (norm identity). On finitely many
# points (`margin_set`) with kink variables 0 <= a_qj <= lam_q it is a polytope, and two linear
# programs ask what the weights tell: the least mass that must lie within a radius of a given point,
# and the explanation whose points are farthest from the given ones on average. Own construction,
# after the splitting of "No Prior, No Leakage" (Refael et al.); see docs/explanations.md.

TOLERANCE = 1e-6  # of |theta|, per component: what the sum may miss in an exactly built network
RADIUS = 0.03  # the radius within which a point counts as found (`scoring.RADII`)
NEAR = 1e-3  # arbitrary: samples within this share of the radius of a given point are that point
AS_WELL = 1e-5  # arbitrary: ten times the tolerance of the linear programs
COARSE = 0.1  # arbitrary: a tolerance beyond which an explanation explains little
_NONE = 1e-9  # arbitrary: a mass below this share of the whole one is none
_ROOM = 1.05  # arbitrary: slack beyond what the given points themselves miss
_SLOPE_GAP = 1e-7  # |z| up to this share of its size is a kink at a sampled point: rounding


@dataclass(frozen=True, eq=False)
class Sample:
    """The polytope of explanations on finitely many points.

    Attributes:
        net: the network at margin 1.
        truth: the given explanation; its points are the first of `x`.
        x: points (m, d).
        y: labels (m,).
        on: one (m, k_l) of slopes per layer, 0 at kinks.
        owner: point of each kink variable (r,).
        where: (layer, neuron) of each kink variable (r, 2).
        columns: (P, m + r), the gradients times labels, then the kinks' shares of them.
        tolerance: by how much each component of theta may be missed, as a share of |theta|.
        extent: half width of the box that was sampled.
        radius: mass within it counts as mass at a given point.
        exact: whether the sample decides what is forced within the box (two layers).
        missed: what the given points leave of theta, as a share of |theta|.
        rows: the linear program with the rows needed so far; at most one, kept between questions.
    """

    net: Network
    truth: Explanation
    x: Tensor
    y: Tensor
    on: tuple[Tensor, ...]
    owner: NDArray[np.int64]
    where: NDArray[np.int64]
    columns: Array
    tolerance: float
    extent: float
    radius: float
    exact: bool
    missed: float
    rows: list[Rows] = field(default_factory=list, repr=False)

    @property
    def mass(self) -> float:
        """rho^2 / order: the mass of every explanation."""
        return float(self.net.rho) ** 2 / self.net.order

    def remainder(self, z: Array) -> Array:
        """What z (m + r,) leaves of theta (P,), as a share of |theta|."""
        left: Array = (self.net.theta.numpy() - self.columns @ z) / float(self.net.rho)
        return left


@dataclass(frozen=True)
class Scope:
    """Over which training sets a result holds.

    Attributes:
        extent: half width of the box, in units of the data.
        points: how many margin points were sampled in it.
        tolerance: by how much each component of theta may be missed, as a share of |theta|.
        radius: mass within it counts as mass at a given point.
        exact: whether the sample decides within the box; else the result holds up to sampling.
    """

    extent: float
    points: int
    tolerance: float
    radius: float
    exact: bool

    @staticmethod
    def of(sample: Sample) -> Scope:
        """That of a sample."""
        return Scope(
            sample.extent, len(sample.x), sample.tolerance, sample.radius, sample.exact
        )  # fmt: skip


def sample_of(
    net: Network,
    x: Tensor,
    y: Tensor,
    extent: float,
    tau: float = KINK,
    grid: int = GRID,
    radius: float = RADIUS,
    progress: Progress = no_progress,
) -> Sample:
    """The polytope on sampled points of the margin and on the given points.

    Args:
        net: at margin 1, one output, d = 1 or 2. Merge the parallel neurons of a trained one
            first (`Target.merged`): every neuron is a kink of its own here.
        x: the points that it was trained on (n, d).
        y: their labels.
        extent: half width of the box.
        tau: relative distance of a kink at the given points.
        grid: lines each way; 0 leaves the ends of the segments, which decide what is forced in
            two layers.
        radius: of the circles around the given points.
        progress: told the share of the margin that is sampled.
    """
    check_plane(net)
    if not radius > 0:
        raise ValueError(f"radius must be positive; got {radius}. Try 0.03.")
    net = net.to(dtype=torch.float64)
    truth, rows = fitted_explanation(net, x, y, tau)
    others = margin_points(net, extent, grid, truth.x, radius, between(progress, 0.0, 0.5))
    if len(others):
        gap = torch.cdist(others, truth.x).amin(dim=1)
        others = others[gap > NEAR * radius]
    places = torch.cat([truth.x, others])
    labels = torch.cat([truth.y, phi(net, others).sign()])
    on, kinks = [], []
    for part, limit in ((truth.x, tau), (others, _SLOPE_GAP)):
        slopes, near = kinks_of(net, part, limit)
        on.append(slopes)
        kinks.append(near)
    slopes = [torch.cat(pair) for pair in zip(*on, strict=True)]
    near = [torch.cat(pair) for pair in zip(*kinks, strict=True)]
    if net.depth > 2:  # gradients are products of slopes: given points keep those of their fit
        n = truth.n
        slopes = [torch.cat([s, t[n:]]) for s, t in zip(truth.slopes, slopes, strict=True)]
        near = [torch.zeros_like(k) for k in near]
    owner, where, columns = _columns(net, places, labels, slopes, near, between(progress, 0.5, 1.0))
    missed = residual(net, truth)
    if net.depth > 2:  # one tuple of slopes would miss more, by how much the last bits decide
        columns[:, : truth.n] = rows.T.numpy()
        missed = float((net.theta - truth.lam @ rows).norm() / net.rho)
    return Sample(
        net, truth, places, labels, tuple(slopes), owner, where, columns,
        max(TOLERANCE, _ROOM * missed), extent, radius, net.depth == 2, missed,
    )  # fmt: skip


def _columns(
    net: Network,
    x: Tensor,
    y: Tensor,
    slopes: list[Tensor],
    kinks: list[Tensor],
    progress: Progress,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Gradients with the slopes 0 at the kinks, and what each kink adds when its slope is 1."""
    base = y[:, None] * gradient(net, x, slopes)
    owners, places, extra = [], [], []
    for layer, near in enumerate(kinks):
        for i, j in near.nonzero().tolist():
            progress(i / len(x))
            one = [s[i : i + 1].clone() for s in slopes]
            one[layer][0, j] = 1.0
            row = y[i] * gradient(net, x[i : i + 1], one)[0]
            owners.append(i)
            places.append((layer, j))
            extra.append(row - base[i])
    table = torch.stack([*base, *extra]).T.numpy()
    return (
        np.array(owners, dtype=np.int64),
        np.array(places, dtype=np.int64).reshape(-1, 2),
        np.ascontiguousarray(table),
    )


def _solve(sample: Sample, cost: Array, progress: Progress = no_progress) -> tuple[Array, float]:
    """The point of the polytope of least cost on the multipliers. -> (z, cost)."""
    if not sample.rows:
        room = sample.tolerance * float(sample.net.rho)
        theta = sample.net.theta.numpy()
        sample.rows.append(Rows(sample.columns, theta, room, sample.owner, given=sample.truth.n))
    try:
        costs = np.concatenate([cost, np.zeros(len(sample.owner))])
        return sample.rows[0].least(costs, progress=progress)
    except ValueError as why:
        raise ValueError(
            f"{why}. The given points must explain the weights: train longer, or take the exact "
            "network."
        ) from why


def forced_mass(sample: Sample, progress: Progress = no_progress) -> Tensor:
    """Least mass within the radius of each given point over all explanations. -> (n,).

    Two layers: exact for explanations within the box, up to the tolerance, where no cell is flat
    on the margin. Elsewhere the sample may lack an explanation, and the mass is an upper bound.
    `progress` is told the share of the programs that are solved.
    """
    n, m = sample.truth.n, len(sample.x)
    gap = torch.cdist(sample.x, sample.truth.x).numpy()
    within = (gap < sample.radius * (1 - NEAR)).astype(float)
    out, open_ = np.zeros(n), np.ones(n, dtype=bool)
    solved = 0

    def solve(cost: Array) -> tuple[Array, float]:
        nonlocal solved
        share = min(solved, n - 1) / n
        solved += 1
        return _solve(sample, cost, lambda _: progress(share))

    while open_.any():  # one explanation that does without many points settles all of them
        z = solve(within[:, open_].sum(axis=1))[0]
        clear = open_ & (within.T @ z[:m] <= _NONE * sample.mass)
        open_ &= ~clear
        if not clear.any():
            break
    for i in np.nonzero(open_)[0]:
        out[i] = max(solve(within[:, i])[1], 0.0)
    return torch.from_numpy(out)


@dataclass(frozen=True, eq=False)
class Farthest:
    """The explanation whose points are farthest from the given ones.

    Attributes:
        explanation: its points of positive multiplier.
        distance: mean distance of its mass from the nearest given point.
        residual: what its sum misses, relative to |theta|.
        truth: what the given points' sum misses.
        scope: over which sets.
    """

    explanation: Explanation
    distance: float
    residual: float
    truth: float
    scope: Scope

    @property
    def other(self) -> bool:
        """Whether the set is another one: farther than the radius within which points are told."""
        return self.distance >= self.scope.radius

    @property
    def as_well(self) -> bool:
        """Whether it misses no more than the given points do, by 1%, or than `AS_WELL`."""
        return self.residual <= max(AS_WELL, 1.01 * self.truth)


def farthest(sample: Sample, progress: Progress = no_progress) -> Farthest:
    """Max sum_q lam_q dist(q, truth) over all explanations of the sample, by mass."""
    gap = torch.cdist(sample.x, sample.truth.x).amin(dim=1).numpy()
    z = _solve(sample, -gap, between(progress, 0.0, 0.9))[0]
    progress(0.9)  # arbitrary: the least squares are the quicker part
    z = _least_squares_on(sample, z)
    made = explanation_at(sample, z)
    distance = float(gap @ z[: len(gap)]) / sample.mass
    off = residual(sample.net, made)
    return Farthest(made, distance, off, sample.missed, Scope.of(sample))


def _least_squares_on(sample: Sample, z: Array, rounds: int = 5) -> Array:
    """The same columns by least squares instead of to the program's tolerance, where that fits."""
    theta, best = sample.net.theta.numpy(), z
    used, m = z > 0, len(sample.x)
    for _ in range(rounds):  # columns that only the tolerance held are dropped, and it fits anew
        fitted = np.zeros_like(z)
        columns = sample.columns[:, used]
        fitted[used] = z[used] + np.linalg.lstsq(columns, theta - columns @ z[used], rcond=1e-9)[0]
        room = fitted[sample.owner] - fitted[m:]
        if fitted.min(initial=0.0) >= 0 and room.min(initial=0.0) >= -1e-9:
            best = fitted
            break
        used &= fitted > 0
    missed = [float(np.linalg.norm(sample.columns @ v - theta)) for v in (best, z)]
    return best if missed[0] < missed[1] else z


def explanation_at(sample: Sample, z: Array) -> Explanation:
    """The points of z (m + r,) with a multiplier, with the slopes that its kink variables say."""
    m = len(sample.x)
    lam = torch.from_numpy(z[:m].copy()).clamp_min(0)
    slopes = [s.clone() for s in sample.on]
    for owner, (layer, j), a in zip(sample.owner, sample.where, z[m:], strict=True):
        if lam[owner] > 0:
            slopes[layer][owner, j] = min(max(float(a) / float(lam[owner]), 0.0), 1.0)
    origin = torch.full((m,), -1)
    origin[: sample.truth.n] = sample.truth.origin
    made = Explanation(sample.x, sample.y, lam, tuple(slopes), origin)
    return made.keep(lam > USED * lam.sum())

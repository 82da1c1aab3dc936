"""Which training points the weights determine, in one call."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls
from scipy.sparse import csr_matrix, eye_array, hstack, vstack
from torch import Tensor

from explorer.engine.explanations.cells import KINK
from explorer.engine.explanations.programs import (
    AS_WELL,
    TOLERANCE,
    Sample,
    Scope,
    explanation_at,
    forced_mass,
    sample_of,
)
from explorer.engine.explanations.splitting import USED, Explanation
from explorer.engine.network import Network
from explorer.engine.progress import Progress, between, no_progress

_ROOM = 1.05  # arbitrary: slack beyond what the given points themselves miss
FORCED = 1e-3  # arbitrary: a forced mass above this share of the whole one counts
BAND = 2.0  # arbitrary: up to this factor above or below it, it is at the edge and claims nothing


@dataclass(frozen=True, eq=False)
class Determined:
    """Which training points the weights determine.

    Attributes:
        forced: (n,) bool: every explanation has mass within the radius of this point.
        edge: (n,) bool: so little that it may as well be none; none of these is forced.
        mass: least mass (n,) there over all explanations.
        scope: over which sets.
    """

    forced: Tensor
    edge: Tensor
    mass: Tensor
    scope: Scope


def forced_points(mass: Tensor, whole: float) -> tuple[Tensor, Tensor]:
    """Which least masses (n,) are forced, and which are at the edge of it. -> (n,) bool, twice.

    Least masses are continuous in the weights and in the tolerance, so a claim with a factor `BAND`
    to spare is not that of the last bits, nor of a tolerance that moved a little.
    """
    share = mass / max(whole, 1e-300)
    forced = share > BAND * FORCED
    return forced, (share > FORCED / BAND) & ~forced


def sharper_sample(sample: Sample) -> Sample:
    """The same points with the least tolerance that admits the given ones (with 5% of room)."""
    share = _ROOM * float(np.abs(sample.remainder(_given_point(sample))).max())
    return replace(sample, tolerance=max(TOLERANCE, share), rows=[])


def _given_point(sample: Sample) -> NDArray[np.float64]:
    """The given points as one z (m + r,) of the polytope."""
    z = np.zeros(sample.columns.shape[1])
    z[: sample.truth.n] = sample.truth.lam.numpy()
    for k, (owner, (layer, j)) in enumerate(zip(sample.owner, sample.where, strict=True)):
        if owner < sample.truth.n:
            slope = float(sample.truth.slopes[layer][owner, j])
            z[len(sample.x) + k] = slope * z[owner]
    return z


def determination(
    net: Network, x: Tensor, y: Tensor, lam: Tensor | None = None, extent: float | None = None,
    tau: float = KINK, grid: int = 0, progress: Progress = no_progress, sharp: bool = False,
) -> Determined:  # fmt: skip
    """Which of these points every explanation of the weights must contain.

    Args:
        net: at margin 1, one output, d = 1 or 2; merge the parallel neurons of a trained one.
        x: the training points (n, d).
        y: labels (n,).
        lam: multipliers (n,) or None; points of multiplier 0 are left out as not determined.
        extent: half width of the box; None takes twice the largest coordinate.
        tau: relative distance of a kink: `certificate.TAU_TRAINED` for trained weights.
        grid: extra lines each way, of use in deeper networks.
        progress: told the share that is done: a half for the sample, a half for the programs.
        sharp: let each component miss no more than the largest component that the points miss,
            instead of as much as they miss of the whole: the least tolerance that admits them.
    """
    reach = float(x.abs().max()) if len(x) else 1.0
    used = torch.arange(len(x))
    if lam is not None and float(lam.max()) > 0:
        used = used[(lam > USED * lam.sum()).cpu()]
    box = 2 * max(reach, 1.0) if extent is None else extent
    sample = sample_of(net, x[used], y[used], box, tau, grid, progress=between(progress, 0.0, 0.5))
    sample = sharper_sample(sample) if sharp else sample
    least = forced_mass(sample, between(progress, 0.5, 1.0))
    mass = torch.zeros(len(x), dtype=torch.float64)
    mass[used[sample.truth.origin]] = least
    forced, edge = forced_points(mass, sample.mass)
    return Determined(forced, edge, mass, Scope.of(sample))


# --- The farthest other training set that explains the weights no worse than the given one ------
# `consistent.farthest` bounds what each component of theta may miss: its set can leave more of
# theta in all than the given points do. Here the residual itself is bounded. Over the points and
# kinks of a sample,
#
#     max sum_q lam_q dist(q, truth)  subject to  |C z - theta| <= |C z_0 - theta|,  0 <= a <= lam,
#
# with z_0 the given explanation: a convex program with a linear objective and one ball. Supporting
# hyperplanes (Veinott 1967): a linear program outside the ball, a segment from a point well inside
# it to the program's solution, and a cut where the segment leaves the ball. Each round gives a set
# that explains no worse (the end of the segment) and a bound that no such set exceeds (the
# program's value). The inside point is the least residual of the sample, by column generation over
# the slopes.

Array = NDArray[np.float64]
ROUNDS = 200  # arbitrary
WORK = 60_000  # arbitrary: rounds times columns at most, about five seconds
CLOSE = 0.02  # arbitrary: share of the bound by which the best set may stay below it
_GENERATIONS = 30  # arbitrary: rounds of the least residual
_RANK = 1e-13  # arbitrary: eigenvalues of the Gram matrix below this share of the largest are zeros
_GAIN = 1e-9  # arbitrary: gains below this share of |theta|^2 per unit of mass are none


@dataclass(frozen=True, eq=False)
class AsWell:
    """Another set that explains the weights as well.

    Attributes:
        explanation: its points of positive multiplier.
        distance: mean distance of its mass from the nearest given point.
        at_most: no set of the sample that explains as well is farther on average.
        residual: what its sum misses, relative to |theta|.
        truth: what the given points' sum misses.
        scope: over which sets.
    """

    explanation: Explanation
    distance: float
    at_most: float
    residual: float
    truth: float
    scope: Scope

    @property
    def other(self) -> bool:
        """Whether the set is another one: farther than the radius within which points are told."""
        return self.distance >= self.scope.radius


@dataclass(frozen=True, eq=False)
class _Ball:
    """|C z - theta|^2 = |f z - b|^2 + a constant, and the radius that is left for f z - b."""

    f: Array
    b: Array
    radius: float

    @staticmethod
    def of(sample: Sample, share: float) -> _Ball:
        theta, columns = sample.net.theta.numpy(), sample.columns
        values, vectors = np.linalg.eigh(columns.T @ columns)
        kept = values > _RANK * values[-1]
        scale = np.sqrt(values[kept])
        f = scale[:, None] * vectors[:, kept].T
        b = vectors[:, kept].T @ (columns.T @ theta) / scale
        rest = float(theta @ theta - b @ b)
        return _Ball(f, b, float(np.sqrt(max((share * float(sample.net.rho)) ** 2 - rest, 0.0))))

    def off(self, z: Array) -> Array:
        """What z leaves, in the basis of the columns."""
        left: Array = self.f @ z - self.b
        return left

    def leaves(self, inside: Array, outside: Array) -> float:
        """The largest t in [0, 1] at which inside + t (outside - inside) is in the ball."""
        start, step = self.off(inside), self.f @ (outside - inside)
        a, half = float(step @ step), float(start @ step)
        room = max(self.radius**2 - float(start @ start), 0.0)
        if a <= 0:
            return 1.0
        return min(1.0, float(np.sqrt(half * half + a * room) - half) / a)


def as_well(sample: Sample, rounds: int = ROUNDS, progress: Progress = no_progress) -> AsWell:
    """The farthest set found on the sample that leaves no more of theta than the given points.

    In networks that fit exactly, up to `AS_WELL` of |theta|. `progress` is told the share of the
    rounds that are done, of at most `rounds`.
    """
    truly = sample.missed
    ball = _Ball.of(sample, max(AS_WELL, truly))
    gap = torch.cdist(sample.x, sample.truth.x).amin(dim=1).numpy()
    rounds = min(rounds, max(WORK // sample.columns.shape[1], 1))
    best, at_most = _farthest(sample, ball, gap, rounds, progress)
    made = explanation_at(sample, best)
    distance, off = (
        float(gap @ best[: len(gap)]) / sample.mass,
        float(np.linalg.norm(sample.remainder(best))),
    )
    return AsWell(made, distance, at_most, off, truly, Scope.of(sample))


def _farthest(
    sample: Sample, ball: _Ball, gap: Array, rounds: int, progress: Progress
) -> tuple[Array, float]:
    """The best z of all rounds, and the bound by mass."""
    r, m = len(sample.owner), len(sample.x)
    inside = _least(sample, ball, progress)
    pick = csr_matrix((-np.ones(r), (np.arange(r), sample.owner)), shape=(r, m))
    bound = hstack([pick, eye_array(r)])
    cost = np.concatenate([-gap, np.zeros(r)])
    # <theta, C z> is order times the mass on the margin: this cut makes the first program bounded
    along = ball.b / np.linalg.norm(ball.b)
    cuts, sides = [along @ ball.f], [ball.radius + float(along @ ball.b)]
    best, value, at_most = inside, float(gap @ inside[:m]), np.inf
    for turn in range(rounds):
        progress(turn / rounds)
        done = linprog(
            cost, A_ub=vstack([csr_matrix(np.array(cuts)), bound]).tocsr(),
            b_ub=np.concatenate([sides, np.zeros(r)]), method="highs",
        )  # fmt: skip
        if done.status != 0:
            break
        at_most = min(at_most, max(-float(done.fun), 0.0))
        t = ball.leaves(inside, done.x)
        place = inside + t * (done.x - inside)
        if float(gap @ place[:m]) > value:
            best, value = place, float(gap @ place[:m])
        size = float(np.linalg.norm(ball.off(place)))
        close = at_most - value <= CLOSE * at_most or at_most < sample.radius * sample.mass
        if t >= 1 or size == 0 or close:
            break
        normal = ball.off(place) / size
        cuts.append(normal @ ball.f)
        sides.append(ball.radius + float(normal @ ball.b))
    return best, float(at_most) / sample.mass


def _least(sample: Sample, ball: _Ball, progress: Progress = no_progress) -> Array:
    """The z of least residual: multipliers of (point, 0/1 slopes), priced by what is left."""
    r, m = len(sample.owner), len(sample.x)
    made = np.eye(m + r)[:, :m]
    z = np.zeros(m + r)
    for _ in range(_GENERATIONS):
        progress(0.0)
        gains = -(ball.f.T @ ball.off(z))
        raised = gains[m:] > 0
        whole = gains[:m].copy()
        np.add.at(whole, sample.owner[raised], gains[m:][raised])
        fresh = np.eye(m + r)[:, :m]
        fresh[m + np.nonzero(raised)[0], sample.owner[raised]] = 1.0
        worth = whole > _GAIN * float(ball.b @ ball.b) / sample.mass
        if not worth.any():
            break
        made = np.unique(np.concatenate([made, fresh[:, worth]], axis=1), axis=1)
        weight, _ = nnls(ball.f @ made, ball.b, maxiter=100 * made.shape[1])
        z, made = made @ weight, made[:, weight > 0]
    return z

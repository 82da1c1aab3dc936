r"""The maximum-margin two-layer ReLU network of a small data set, exactly and without training.

Over networks of any width with a bias in the first layer only, the problem

    min 1/2 |theta|^2   subject to   y_i Phi(theta; x_i) >= 1

is convex in the measure that the neurons form on the sphere of directions u of (w, b): with the
path weight c_j = v_j |w~_j| of a balanced neuron (|v_j| = |w~_j|) it reads

    min sum_j |c_j|   subject to   y_i sum_j c_j relu(u_j . x~_i) >= 1,
    max sum_i lam_i   subject to   |h(u)| <= 1 for all |u| = 1,
    where  h(u) = sum_i lam_i y_i relu(u . x~_i).

Both sides are solved by column generation: a linear program over the directions known so far,
then the exact maximisers of |h| (`exact_faces`) as new directions. A linear program places a
direction only to the square root of its tolerance, so Newton's method finishes: once the face of
each neuron is known, |h| on it is a length |B_f lam|, and the optimum is the saddle point of
sum lam_i - sum_f a_f (|B_f lam| - 1), whose derivatives are in closed form.

A network and multipliers with equal objectives and max |h| <= 1 are a global optimum by weak
duality (Lyu and Li 2020, section 2, for the problem; the convex form is Bach 2017, section 2).

Far from the origin sum_i lam_i |x~_i| reaches 1e7 while |h| stays at 1, so that rounding alone may
hide 1e-8 of |h|. The proof counts that rounding (`exact_faces.height`), and where it cannot be told
whether max |h| <= 1 or whether the margin is 1, the network is not called polished.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from explorer.engine import linear_programs
from explorer.engine.arrays import Array, as_array, signed_points
from explorer.engine.exact.faces import (
    EPS,
    Faces,
    Index,
    Peaks,
    affine,
    arrange,
    distinct_points,
    evaluate,
    height,
    peaks,
    rounding,
)
from explorer.engine.exact.newton import Point, of_each, polish
from explorer.engine.network import Network
from explorer.engine.progress import Progress, no_progress, part_progress, share_after
from explorer.engine.threads import few_threads

MAX_POINTS_EXACT = 200  # the most a user can draw (Dataset); d = 2 lists about n^2 cones
_ROUNDS = 200  # linear programs; arbitrary, ten times what random sets of 15 points need
_EACH = 0.15  # arbitrary: of what is left of the bar, for a round; 200 points take ten or so
_NEWTON_FROM = 0.1  # arbitrary: with max |h| further above 1, faces are still guesses
_LINES = 4  # arbitrary: see _hinges
PROVED = 1e-8  # what is called polished is above the optimum by a smaller share, rounding counted
_SHARE = 0.4 * PROVED  # of it for max |h|, and as much for the margin


@dataclass(frozen=True, eq=False)
class Exact:
    """A maximum-margin network with the numbers that prove it.

    Attributes:
        net: two-layer network with bias in the first layer, margin 1, in float64.
        lam: multipliers (n,); points that coincide share theirs equally.
        objective: 1/2 |theta|^2 of `net`.
        dual: sum of lam; equal to `objective` at the optimum.
        violation: max over |u| = 1 of |h(u)|, minus 1, at least 0, never understated: what may
            be rounding is added. No network of any width that meets the constraints is below
            dual / (1 + violation).
        polished: whether `net` is proved to be the optimum: at margin 1, `objective` equal to
            `dual`, and both within 1e-8 of it in relative terms, rounding counted; its KKT
            residual is below 1e-10, or below what rounding leaves where sum lam |x~| is large.
            When False, `net` is the best network found, at margin 1 to rounding; whether it is
            the optimum is not known, only that none is below dual / (1 + violation).

    Source: Bach 2017, section 2, for the convex form; Lyu and Li 2020 for the problem.

    Example:
        >>> from explorer import maximum_margin, preset
        >>> data = preset("alternating-circle", n=8)
        >>> exact = maximum_margin(data.x, data.y)
        >>> exact.polished, exact.shortfall < 1e-8
        (True, True)
    """

    net: Network
    lam: Tensor
    objective: float
    dual: float
    violation: float
    polished: bool

    @property
    def shortfall(self) -> float:
        """Return the share of |theta|^2 by which a network at margin 1 may be smaller, at most."""
        return max(0.0, 1 - self.dual / (1 + self.violation) / self.objective)


@few_threads()
def maximum_margin(
    x: Tensor, y: Tensor, tol: float = 1e-9, progress: Progress = no_progress
) -> Exact:
    """Return the global optimum over two-layer networks of any width with hidden biases.

    Args:
        x: points (n, d), d in {1, 2}, finite.
        y: labels (n,) in {-1, +1}.
        tol: how far max |h| may exceed 1.
        progress: told before each round of an unknown number; see `share_after`.

    Returns:
        The network at margin 1, in float64, with its multipliers and the numbers that prove it.

    Raises:
        ValueError: for no points, too many, another d, labels that are not +-1, or two equal
            (or nearly equal) points of opposite labels, which no network separates.

    Source: Bach 2017, section 2, for the convex form; the exact pricing and the finish are our own.

    Example:
        >>> import torch
        >>> from explorer import maximum_margin
        >>> x, y = torch.tensor([[0.7]]).double(), torch.tensor([1.0]).double()
        >>> exact = maximum_margin(x, y)
        >>> round(exact.objective, 6)  # one point: 1 / sqrt(1 + |x|^2)
        0.819232
    """
    points, labels, group = _distinct_points(x, y)
    faces = arrange(points, lambda _: progress(0.0))
    point, violation, polished = _solve(faces, labels, tol, progress)
    lam = torch.from_numpy(of_each(point.lam, group))
    progress(1.0)
    net, size = point.network(faces.turn), float(np.abs(point.c).sum())
    polished = polished and _holds(net, points, labels)
    return Exact(net, lam, size, float(lam.sum()), violation, polished)


def _distinct_points(x: Tensor, y: Tensor) -> tuple[Array, Array, Index]:
    """Return distinct points, their labels, and the index of each given point's distinct one."""
    if (np.abs(as_array(y)) > 1).any():
        raise ValueError("the exact solution is known for two classes only; train instead")
    points, labels = signed_points(x, y)
    n, d = points.shape
    if d not in (1, 2) or not 1 <= n <= MAX_POINTS_EXACT:
        raise ValueError(
            f"the exact solution is built for 1 to {MAX_POINTS_EXACT} points in 1-D or 2-D; "
            f"got n={n}, d={d}. Train instead, or take fewer points."
        )
    return distinct_points(points, labels)


def _holds(net: Network, points: Array, labels: Array) -> bool:
    """Return whether the margin of the weights as they are rounded is 1 up to `_SHARE`.

    In floating point where its error is small enough to tell, else in rational numbers.
    """
    assert net.biases[0] is not None
    wt = torch.cat([net.weights[0], net.biases[0][:, None]], 1).numpy()
    v = net.weights[1].numpy()[0]
    xt = np.hstack([points, np.ones((len(points), 1))])
    q = labels * (np.maximum(xt @ wt.T, 0) @ v)
    steps = xt.shape[1] + len(v) + 1
    off = steps * EPS * (np.abs(xt) @ np.abs(wt.T) @ np.abs(v))
    if (q - off).min() >= 1 - _SHARE:
        return True
    return all(
        label * _exactly(wt.tolist(), v.tolist(), x) >= 1 - _SHARE
        for x, label in zip(xt.tolist(), labels.tolist(), strict=True)
    )


def _exactly(wt: list[list[float]], v: list[float], x: list[float]) -> float:
    """Return sum_j v_j relu(w~_j . x~), rounded once."""
    total = Fraction(0)
    for row, out in zip(wt, v, strict=True):
        z = sum(Fraction(a) * Fraction(b) for a, b in zip(row, x, strict=True))
        total += Fraction(out) * max(Fraction(0), z)
    return float(total)


def _solve(faces: Faces, y: Array, tol: float, progress: Progress) -> tuple[Point, float, bool]:
    u, sign = _hinges(faces)
    for done in range(_ROUNDS):
        share = share_after(done, _EACH)
        progress(share)
        point = _linear_program(faces, y, u, sign)
        progress(share)
        found = peaks(faces, point.lam * y, 1 + tol / 2)
        progress(share)
        gap = _gap(found)
        fresh = [found.take(np.arange(min(len(found.h), 20 + 2 * len(y))))]
        if gap < _NEWTON_FROM:
            for trial in polish(faces, y, point, part_progress(progress, share, share)):
                progress(share)
                missed = peaks(faces, trial.lam * y, 1 + tol / 2)
                if _gap(missed) <= tol and _matches(faces, y, trial):
                    progress(share)
                    violation = height(faces, trial.lam * y) - 1
                    if violation <= _SHARE:
                        return trial, violation, True
                fresh.append(missed.take(np.arange(min(len(missed.h), 2 * len(y)))))
        if gap <= tol:
            break
        keep = sign * evaluate(faces, point.lam * y, u) > 0.5
        u = np.concatenate([u[keep], *[p.u for p in fresh]])
        sign = np.concatenate([sign[keep], *[np.sign(p.h) for p in fresh]])
    q = y * point.phi(faces)
    point = replace(point, c=point.c / q.min())
    return point, height(faces, point.lam * y) - 1, False


def _gap(found: Peaks) -> float:
    return float(np.abs(found.h).max(initial=1.0)) - 1


def _matches(faces: Faces, y: Array, point: Point) -> bool:
    """Return whether both sides are feasible and equal, so that weak duality proves the optimum.

    Each neuron must also reach |h| = 1 by itself: a spurious one of weight 1e-9 would pass the
    sums and still leave a KKT residual of its square root.
    """
    q = y * point.phi(faces)
    primal, dual = np.abs(point.c).sum(), point.lam.sum()
    weight = point.lam * y
    reached = np.sign(point.c) * evaluate(faces, weight, point.u)
    return bool(
        q.min() >= 1 - 1e-10
        and point.lam.min() >= 0
        and abs(primal - dual) <= 1e-9 * primal
        and (reached + rounding(faces, weight, point.u)).min() >= 1 - 1e-9
    )


def _hinges(faces: Faces) -> tuple[Array, Array]:
    """Return directions with which any labels can be fitted, and the sign of each.

    Along a line on which no two points share their shadow, hinges at the shadows, open to either
    side, interpolate anything. Several lines, so that one is far from sharing.
    """
    apart, d = faces.apart, faces.apart.shape[1]
    angles = 0.1 + np.pi * np.arange(_LINES) / _LINES  # 0.1: off the axes, where grids align
    lines = np.stack([np.cos(angles), np.sin(angles)], 1) if d == 2 else np.ones((1, 1))
    slope = np.broadcast_to(lines, (len(apart), *lines.shape)).reshape(-1, d)
    u = affine(faces, slope, -(apart @ lines.T).reshape(-1))
    u = np.concatenate([u, -u, np.eye(d + 1)[:1]])  # the last is on at all points far from 0
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    return np.concatenate([u, u]), np.repeat([1.0, -1.0], len(u))


def _linear_program(faces: Faces, y: Array, u: Array, sign: Array) -> Point:
    """Return the optimum over the directions u (M, D), each used with its sign (M,) only."""
    table = -(y[:, None] * np.maximum(faces.xt @ u.T, 0)) * sign
    solution = linear_programs.least(np.ones(len(u)), table, -np.ones(len(y)))
    if solution.status != 0:
        raise ValueError(
            f"no network could be fitted to the points ({solution.message}); two of opposite "
            "labels nearly coincide. Move or erase one of them."
        )
    lam: Array = np.maximum(-solution.ineqlin.marginals, 0)
    used = solution.x > 0
    return Point(u[used], sign[used] * solution.x[used], lam)

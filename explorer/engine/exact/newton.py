r"""From nearly optimal multipliers and neurons to the optimum, to rounding.

Once the face f of each neuron is known, h on it peaks at the length |B_f lam|, where column i of
B_f is y_i s_i P_f x~_i (side s_i, projector P_f of the face). Then multipliers lam and path
weights a >= 0 are the saddle point of

    sum_i lam_i - sum_f a_f (|B_f lam| - 1),

whose stationarity reads: every support point has margin 1, every neuron has |h(u_f)| = 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from explorer.engine.arrays import Array, Flags, Index
from explorer.engine.exact.faces import EPS, Faces, Peaks, directions, peaks, summits
from explorer.engine.network import Network
from explorer.engine.progress import Progress, no_progress

_STEPS = 40  # arbitrary: a handful suffices where Newton's method converges at all
_SOFT = 1e-10  # arbitrary: far above rounding, far below curvatures that matter
DEAD_SHARE = 1e-9  # arbitrary: a share of the path weights that is rounding
_ALIGNED = 1e-10  # the KKT residual, relative, up to which a network is called exact
_SLACK = 1e-10  # a margin short by less is rounding: |theta|^2 reaches 1e4 on close points
_ROUNDS = 6  # arbitrary: changes of the set of support points or faces


@dataclass(frozen=True, eq=False)
class Point:
    """A primal-dual pair: directions u (k, D), their path weights c (k,), multipliers lam (n,)."""

    u: Array
    c: Array
    lam: Array

    def phi(self, faces: Faces) -> Array:
        """Return Phi at the points of the arrangement (n,)."""
        values: Array = np.maximum(faces.xt @ self.u.T, 0) @ self.c
        return values

    def network(self, turn: Array, bias: bool = True) -> Network:
        """Return the network of the directions u @ turn, each layer at half of the path weight."""
        size = np.sqrt(np.abs(self.c))
        wt = torch.from_numpy(size[:, None] * (self.u @ turn))
        v = torch.from_numpy(np.sign(self.c) * size)[None, :]
        first, b = (wt[:, :-1].contiguous(), wt[:, -1].contiguous()) if bias else (wt, None)
        return Network((first, v), (b, None))


def of_each(lam: Array, group: Index) -> Array:
    """Return the multipliers (n,) of points, each its part of that of its group. group (n,)."""
    share: Array = lam[group] / np.bincount(group, minlength=len(lam))[group]
    return share


def polish(
    faces: Faces, y: Array, start: Point, progress: Progress = no_progress
) -> Iterator[Point]:
    """Yield candidates for the optimum near `start`; the caller checks them.

    First with the faces of the neurons only, then with every face where |h| is about to reach 1:
    where the multipliers are not unique, those keep them within |h| <= 1.
    """
    for every in (False, True):
        point = start
        support = point.lam > 1e-7 * point.lam.max()  # the accuracy of a linear program
        for turn in range(_ROUNDS):
            progress(0.0)  # there is no telling how many come
            tops = _summits(faces, y, point, every and turn == 0)
            # Generically as many constraints are tight as there are multipliers; far more of
            # them say that lam is not near the optimum yet.
            if tops is None or len(tops.h) > 10 + 2 * support.sum():
                break
            sides = faces.cells[tops.cell]
            solved = saddle(faces.xt, sides, y, point, tops, support, progress)
            if solved is None or not len(solved.c):
                break
            yield solved
            wanted = (support & (solved.lam > 0)) | (y * solved.phi(faces) < 1 - _SLACK)
            if (wanted == support).all() and len(solved.c) == len(tops.h):
                break
            point, support = replace(solved, lam=np.maximum(solved.lam, 0)), wanted


def saddle(
    xt: Array, sides: Flags, y: Array, start: Point, tops: Peaks, support: Flags,
    progress: Progress = no_progress,
) -> Point | None:  # fmt: skip
    """Return the optimum with neurons on the faces `tops` and multipliers on `support` only.

    Points xt (n, D), and on which of them a neuron is active on each face: sides (F, n).
    """
    blocks = (sides * y)[:, None, :] * (tops.projector @ xt.T)
    solved = _newton(blocks[:, :, support], start.lam[support], _share(start, tops), progress)
    if solved is None:
        return None
    lam, sign = np.zeros(len(y)), np.sign(tops.h)
    lam[support], a = solved
    # A face may be tight without a neuron: it binds lam, but its weight is 0 up to rounding.
    alive = a > DEAD_SHARE * np.abs(a).sum()
    blocks, sign, a = blocks[alive], sign[alive], a[alive]
    path = directions(blocks @ lam) * a[:, None]
    # Points without a multiplier may lie on the margin too, between others that hold it.
    tight = support | (np.abs(np.einsum("fdn,fd->n", blocks, path) - 1) < 1e-6)
    path = _nearest_paths(blocks[:, :, tight], tops.projector[alive], path)
    off = directions(path) - directions(blocks @ lam)
    if np.sqrt((a * (off**2).sum(1)).sum() / (2 * a.sum())) > _ALIGNED + _noise(blocks, lam).max():
        return None
    return Point(sign[:, None] * directions(path), sign * np.linalg.norm(path, axis=1), lam)


def _summits(faces: Faces, y: Array, point: Point, every: bool) -> Peaks | None:
    """Return the local maxima of |h| near 1: all, or only those next to the neurons of `point`."""
    weight = point.lam * y
    found = summits(faces, weight, peaks(faces, weight, 1 - 1e-5))
    if not len(found.h):
        return None
    if every:
        return found
    return found.take(np.unique(_nearest(point, found)))


def _nearest(point: Point, tops: Peaks) -> Index:
    """Return the summit nearest to each neuron, of its sign."""
    same = np.sign(tops.h) == np.sign(point.c)[:, None]
    return np.asarray(np.where(same, point.u @ tops.u.T, -2).argmax(axis=1))


def _share(point: Point, tops: Peaks) -> Array:
    """Return path weights of the summits: each neuron's goes to the nearest of its sign."""
    near = _nearest(point, tops)
    return np.bincount(near, np.abs(point.c), minlength=len(tops.h)).astype(np.float64)


def _nearest_paths(blocks: Array, projector: Array, path: Array) -> Array:
    """Return the nearest path vectors a_f u_f (F, D) with margin 1 at all m points of the blocks.

    Directions come from lam with a cancellation that large path weights show as 1e-9 in a margin;
    at fixed faces the margins are linear in the path vectors, so one projection mends that.
    """
    table = blocks.reshape(-1, blocks.shape[2])
    for _ in range(2):
        short = 1 - table.T @ path.reshape(-1)
        move = np.linalg.lstsq(table.T, short, rcond=1e-12)[0].reshape(path.shape)
        # Rounding must not lift a heavy neuron off its kink by even 1e-13.
        path = np.einsum("fde,fe->fd", projector, path + move)
    return path


def _solution(system: Array, target: Array, m: int, careful: bool) -> Array:
    """Return the step: quickly, or as the shortest of all least-squares solutions.

    Where lam (the first m) or a is not unique the system is singular. With small diagonals it
    never is (quasi-definite), and later steps take out what these leave, unless they are too slow.
    """
    if not careful:
        soft = system.copy()
        soft[np.diag_indices(len(soft))] += np.where(np.arange(len(soft)) < m, _SOFT, -_SOFT)
        try:
            return np.linalg.solve(soft, target).astype(np.float64)
        except np.linalg.LinAlgError:
            pass
    return np.linalg.lstsq(system, target, rcond=1e-13)[0].astype(np.float64)


def _noise(blocks: Array, lam: Array) -> Array:
    """Return the rounding of each |B_f lam|, for blocks (F, D, m) and lam (m,) -> (F,)."""
    size: Array = 4 * EPS * np.linalg.norm(np.abs(blocks) @ np.abs(lam), axis=1)
    return size


def _newton(blocks: Array, lam: Array, a: Array, progress: Progress) -> tuple[Array, Array] | None:
    """Return the saddle point for blocks (F, D, m) from lam (m,), a (F,); None if it runs away."""
    careful, best, scale = False, np.inf, max(float(lam.sum()), float(a.sum()))
    for _ in range(_STEPS):
        progress(0.0)
        pull = blocks @ lam
        length = np.linalg.norm(pull, axis=1)
        sizes = np.abs([lam.sum(), a.sum()])
        if not (length > 1e-3).all() or not (sizes < 10 * scale).all():
            return None
        slope = np.einsum("fdm,fd->fm", blocks, pull / length[:, None])
        residual = np.concatenate([1 - a @ slope, 1 - length])
        # Rounding turns a direction, and a heavy neuron shows that in the margins of far points.
        noise = _noise(blocks, lam)
        turned = (np.abs(a) * noise / length) @ np.linalg.norm(blocks, axis=1)
        error = float((np.abs(residual) - np.concatenate([turned, noise])).max(initial=0.0))
        if error < 1e-14 or (error < 1e-7 and error >= best / 2 and careful):
            break
        careful = careful or error >= best / 2
        best = min(best, error)
        curve = np.einsum("f,fdm,fdk->mk", a / length, blocks, blocks)
        curve -= np.einsum("f,fm,fk->mk", a / length, slope, slope)
        # Close points of opposite labels carry huge multipliers: solve in units of the unknowns.
        unit = np.concatenate([np.maximum(np.abs(z), 1e-3 * np.abs(z).max()) for z in (lam, a)])
        system = np.block([[curve, slope.T], [slope, np.zeros((len(a), len(a)))]])
        system = unit[:, None] * system * unit
        move = unit * _solution(system, unit * residual, len(lam), careful)
        # Half of the scale at most: further out the model of a length says nothing.
        reach = float(np.abs(move[: len(lam)]).max()) / max(1.0, float(lam.max()))
        pace = 1.0 if reach <= 0.5 else 0.5 / reach
        lam, a = lam + pace * move[: len(lam)], a + pace * move[len(lam) :]
    return (lam, a) if error < 1e-7 else None

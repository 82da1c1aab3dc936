r"""The end of a training run: the best network over the cells that its neurons lie in.

A cell is a sign of the outgoing weight and a pattern: on which points the neuron is active, and on
which not. While a neuron stays in its cell C, a convex cone of directions, it is linear on the
points. So over a set of cells the maximum-margin problem is convex. With one path vector p_C of
each cell (direction times path weight |w~| |v|) it reads

    min sum_C |p_C|   subject to   y_i sum_C s_C D_C(i) (p_C . x~_i) >= 1,   p_C in C,
    max sum_i lam_i   subject to   |P_C g_C| <= 1,   g_C = s_C sum_i lam_i y_i D_C(i) x~_i,

where P_C is the projection onto the cone C, one non-negative least squares problem. The cells are
those of the neurons of a network that training has brought near its end, and their neighbours
across kinks that a neuron nearly touches.

Cutting planes: a linear program over the directions known so far, and then the directions P_C g_C
of the cells that exceed 1. Once the face of each cone is known on which its neuron lies, Newton's
method ends it (`newton`). sum_i lam_i / max_C |P_C g_C| is at all times a lower bound on
1/2 |theta|^2 of every network at margin 1 whose neurons lie in these cells, and of no other: a
network with neurons in other cells may have a larger margin. `maximum_margin` alone looks at all.

The convex form over fixed patterns is that of Pilanci and Ergen 2020, restated; see the paper for
the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from explorer.engine import linear_programs
from explorer.engine.arrays import Array, Flags, as_array
from explorer.engine.classes import outputs_for
from explorer.engine.exact import PROVED
from explorer.engine.exact.faces import (
    EPS,
    INSIDE,
    Index,
    Peaks,
    directions,
    distinct_points,
    turned_points,
)
from explorer.engine.exact.newton import DEAD_SHARE, Point, of_each, saddle
from explorer.engine.network import Network
from explorer.engine.progress import Progress, no_progress, with_progress

NEAR = 0.05  # measured: see benchmarks/bench_finish.py
AFTER = 600  # steps of training, after which the neurons lie in good cells: bench_finish.py
MOST = 20_000  # arbitrary: steps in which a run is to separate the points
FLIPS = 4  # kinks of one neuron that are crossed, in all combinations: 16 cells; arbitrary
ROUNDS = 200  # linear programs; arbitrary, ten times what 20 points on the circle need
_CUT = 1e-10  # how far a cell must exceed 1 to give a cut, and the accuracy of the linear programs
_NEWTON_FROM = 0.05  # arbitrary: with a larger gap the faces are still guesses
_STALLED = 10  # arbitrary: so many rounds must take a tenth off the gap
_TURNS = 4  # arbitrary: changes of the support points or faces in one polish
_REPAIRS = 20  # arbitrary: changes of the walls that hold a projection; a few suffice
_CROSSED = 1e-13  # of the length: as far as rounding may carry a direction out of its cell
_LOW = 1e-3  # arbitrary: a cell that gains less is far from holding a neuron


class NotSeparated(ValueError):
    """No network over the cells separates the points."""


@dataclass(frozen=True, eq=False)
class Finished:
    """The best network found over some cells, and how much better one over these could be.

    Attributes:
        net: two layers, margin 1, balanced, one neuron a cell, float64.
        lam: multipliers (n,); points that coincide share theirs equally.
        objective: 1/2 |theta|^2 of `net`.
        bound: no network at margin 1 with its neurons in these cells has a smaller 1/2 |theta|^2.
        cells: how many there are.
        rounds: linear programs solved.
    """

    net: Network
    lam: Tensor
    objective: float
    bound: float
    cells: int
    rounds: int

    @property
    def gap(self) -> float:
        """Return by what share of |theta|^2 a network over these cells may be smaller, at most."""
        return max(0.0, 1 - self.bound / self.objective)

    @property
    def proved(self) -> bool:
        """Return whether no network over these cells is smaller by more than `PROVED` of it."""
        return self.gap <= PROVED


def states(
    net: Network, x: Tensor, y: Tensor, near: float = NEAR, progress: Progress = no_progress
) -> Iterator[Finished]:
    """Yield the best network over the cells of the neurons of `net` and their neighbours, so far.

    One after each round, from the first network at margin 1 on; the objective never rises.

    Args:
        net: two layers, one output, no bias but in the first; trained until it separates the
            points, or nearly.
        x: points (n, d), any d.
        y: labels (n,) in {-1, +1}.
        near: a kink is crossed where |w~ . x~_i| is at most this share of the neuron's largest.
        progress: told the share of the rounds that may be needed.

    Raises:
        ValueError: for another kind of network, no points, or points of several classes.
        NotSeparated: where no network over these cells separates the points.
    """
    problem = _problem_of(net, x, y, near)
    u, cell = problem.u, problem.cell
    best: Finished | None = None
    bound, scale, gaps = 0.0, problem.value, list[float]()
    for done in with_progress(range(1, ROUNDS + 1), ROUNDS, progress):
        table = problem.table(u, cell)
        c, lam = _linear_program(table, scale if scale > 0 else float(np.abs(table).max()))
        value = float((table @ c).min())
        scale = max(scale, value)
        cuts = problem.price(lam, max(value, 0.0) * (1 + _CUT))
        over = not len(cuts.cell)
        if value > 0:  # else no network of these directions separates the points
            bound = max(bound, 1 / cuts.ceiling)
            found, used = problem.merged_neurons(u, c / value, cell, lam / value)
            if 1 - value * bound < _NEWTON_FROM:
                for trial, more in _candidates(problem, found, used):
                    bound = max(bound, float(trial.lam.sum()) / more.ceiling)
                    best = _better(best, problem.as_finished(trial, bound, done))
                    cuts = cuts.and_those_of(more)
            best = _better(best, problem.as_finished(found, bound, done))
        if best is not None:
            best = replace(best, bound=bound, rounds=done)
            yield best
            gaps.append(best.gap)
            over = over or best.proved or best.gap > 0.9 * min(gaps[:-_STALLED], default=np.inf)
        if over:
            break
        keep = (c > 0) | (table.T @ lam > 0.5 * value)
        u, cell = np.concatenate([u[keep], cuts.u]), np.concatenate([cell[keep], cuts.cell])
    if best is None:
        raise NotSeparated(
            "no network over the cells of these neurons separates the points. Train longer, with "
            "more neurons or from another seed, and finish then."
        )
    progress(1.0)


def _better(best: Finished | None, made: Finished | None) -> Finished | None:
    """Return the smaller one."""
    if made is None or (best is not None and best.objective <= made.objective):
        return best
    return made


@dataclass(frozen=True, eq=False)
class _Cuts:
    """What pricing tells of multipliers: directions that exceed the level, and the largest value.

    Attributes:
        u: unit directions (M, D), each in its cell.
        cell: the cells (M,).
        ceiling: no cell reaches more, rounding counted.
    """

    u: Array
    cell: Index
    ceiling: float

    def and_those_of(self, other: _Cuts) -> _Cuts:
        """Return the cuts of both; the ceiling is of these."""
        u, cell = np.concatenate([self.u, other.u]), np.concatenate([self.cell, other.cell])
        return _Cuts(u, cell, self.ceiling)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The points and the cells.

    Attributes:
        xt: distinct points (n, D), with the bias on axes of their own (`faces.turned_points`).
        turn: u here is the direction u @ turn of the weights (D, D).
        bias: whether the last of those weights is the bias.
        y: labels (n,).
        group: for each given point the index of its distinct one (N,).
        sign: signs of the outgoing weight in each cell (C,).
        sides: on which points a neuron of the cell is active (C, n).
        u: directions of the network to begin with, one a cell (M, D).
        cell: the cells of these (M,).
        value: their smallest margin, for path weights of sum 1.
    """

    xt: Array
    turn: Array
    bias: bool
    y: Array
    group: Index
    sign: Array
    sides: Flags
    u: Array
    cell: Index
    value: float

    def margins(self, point: Point) -> Array:
        """Return y Phi (n,) of a network."""
        q: Array = self.y * (np.maximum(self.xt @ point.u.T, 0) @ point.c)
        return q

    def table(self, u: Array, cell: Index) -> Array:
        """Return the margins (n, M) of single neurons of path weight 1, each linear in its cell."""
        rows: Array = self.y[:, None] * self.sides[cell].T * self.sign[cell] * (self.xt @ u.T)
        return rows

    def price(self, lam: Array, level: float) -> _Cuts:
        """Return directions in which a neuron of path weight 1 gains more than `level` at lam."""
        pull = self.pull(lam)
        length = np.linalg.norm(pull, axis=1)  # no less than what the cell reaches
        hot = np.flatnonzero(length > level)
        rows, cells, ceiling = [], [], float(np.delete(length, hot).max(initial=0.0))
        for i in hot.tolist():
            ahead, kinks = self.projection(i, pull[i])
            reached = float(np.linalg.norm(ahead))
            ceiling = max(ceiling, reached)
            if kinks is not None and reached > level:
                rows.append(ahead / reached)
                cells.append(i)
        noise = sum(self.xt.shape) * EPS * float(lam @ np.linalg.norm(self.xt, axis=1))
        u = np.array(rows).reshape(-1, self.xt.shape[1])
        return _Cuts(u, np.array(cells, dtype=np.intp), ceiling + noise)

    def pull(self, lam: Array) -> Array:
        """Return g_C of every cell (C, D)."""
        rows: Array = self.sign[:, None] * ((lam * self.y * self.sides) @ self.xt)
        return rows

    def projection(self, cell: int, pull: Array) -> tuple[Array, Flags | None]:
        """Return the projection of `pull` (D,) onto a cell, and the kinks (n,) that hold it there.

        It is no shorter than the gain of any direction in the cell, whatever multipliers of the
        walls the solver ends at: `pull` itself, and None, where it finds none.
        """
        walls = self.unit * np.where(self.sides[cell], 1.0, -1.0)[:, None]
        try:
            push, _ = nnls(walls.T, -pull)
        except RuntimeError:  # no end within its steps
            return pull, None
        held: Flags = np.array(push > 0, dtype=bool)
        ahead: Array = pull + walls.T @ push
        size = float(np.linalg.norm(pull))
        for _ in range(_REPAIRS):  # `nnls` squares the condition number: solve again, without
            push = np.linalg.lstsq(walls[held].T, -pull, rcond=None)[0]
            if (push < 0).any():
                held[np.flatnonzero(held)[push.argmin()]] = False
                continue
            ahead = pull + walls[held].T @ push
            depth = walls @ ahead
            depth[held] = 0.0
            if depth.min() >= -_CROSSED * size:
                return ahead, held
            held[int(depth.argmin())] = True
        return ahead, None

    @cached_property
    def unit(self) -> Array:
        """Return the points at length one (n, D)."""
        return directions(self.xt)

    def merged_neurons(self, u: Array, c: Array, cell: Index, lam: Array) -> tuple[Point, Index]:
        """Return the neurons (M,) of one cell as one, and the cells.

        The margins stay as they are, and the norm never rises.
        """
        used, where = np.unique(cell[c > 0], return_inverse=True)
        path = np.zeros((len(used), self.xt.shape[1]))
        np.add.at(path, where, (c[:, None] * u)[c > 0])
        size = np.linalg.norm(path, axis=1)
        alive = size > 0
        path, size, used = path[alive], size[alive], used[alive]
        return Point(path / size[:, None], self.sign[used] * size, lam), used

    def as_finished(self, point: Point, bound: float, rounds: int) -> Finished | None:
        """Return the network of a point, brought to margin 1; None where that is far from it."""
        q_min = float(self.margins(point).min())
        if not q_min > 0.5:  # rounding, of points that are hardly separated
            return None
        point = replace(point, c=point.c / q_min)
        lam = torch.from_numpy(of_each(point.lam, self.group))
        size = float(np.abs(point.c).sum())
        net = point.network(self.turn, self.bias)
        return Finished(net, lam, size, bound, len(self.sign), rounds)


def _problem_of(net: Network, x: Tensor, y: Tensor, near: float) -> _Problem:
    """Return the points on axes of their own, and the cells of neurons and across near kinks."""
    points, labels, group = check(net, x, y)
    bare, v = net.biases[0] is None, net.weights[1][0]
    xt, turn = (points, np.eye(net.d)) if bare else turned_points(points)[:2]
    path = as_array(net.blocks[0]) @ turn.T
    out = as_array(v)
    path, out = path * np.abs(out)[:, None], np.sign(out)
    size = np.linalg.norm(path, axis=1)
    z = path @ xt.T
    alive = (size > DEAD_SHARE * size.sum()) & (z > 0).any(axis=1)
    path, out, z = path[alive], out[alive], z[alive]
    if not len(path):
        raise ValueError("no neuron is active on any point. Train from another seed first.")
    own = z > 0
    across = _patterns(z, near)
    signs = np.repeat(out, len(across) // len(out))
    some = across.any(axis=1)  # a neuron that is on nowhere gains nothing
    table, signs = np.concatenate([across[some], own]), np.concatenate([signs[some], out])
    keys = np.column_stack([signs > 0, table])
    _, first, where = np.unique(
        np.packbits(keys, axis=1), axis=0, return_index=True, return_inverse=True
    )
    cell = where.reshape(-1)[-len(own) :]
    used, where = np.unique(cell, return_inverse=True)
    total = np.zeros((len(used), path.shape[1]))
    np.add.at(total, where, path)
    length = np.linalg.norm(total, axis=1)
    start, used = total[length > 0] / length[length > 0, None], used[length > 0]
    sign, sides = np.where(keys[first, 0], 1.0, -1.0), keys[first, 1:]
    value = float((labels * (out @ z.clip(0))).min() / length.sum())
    return _Problem(xt, turn, not bare, labels, group, sign, sides, start, used, value)


def _patterns(z: Array, near: float) -> Flags:
    """Return the patterns (k 2^f, n) across the f nearest kinks of each neuron; z (k, n).

    Those that are not near are not crossed: a pattern then comes several times.
    """
    far = np.abs(z) / np.abs(z).max(axis=1, keepdims=True)
    flips = min(FLIPS, z.shape[1])
    nearest = np.argsort(far, axis=1, kind="stable")[:, :flips]
    close = np.take_along_axis(far, nearest, 1) <= near
    on = np.take_along_axis(z > 0, nearest, 1)
    made = []
    for flip in product((False, True), repeat=flips):
        side = np.array(z > 0, dtype=bool)
        np.put_along_axis(side, nearest, on ^ (close & np.array(flip)), 1)
        made.append(side)
    return np.stack(made, axis=1).reshape(-1, z.shape[1])


def check(net: Network, x: Tensor, y: Tensor) -> tuple[Array, Array, Index]:
    """Return distinct points, their labels, and for each given point the index of its distinct one.

    ValueError for a network or points that cannot be finished.
    """
    if net.depth != 2 or not net.homogeneous or net.outputs != 1:
        raise ValueError(
            "training is finished for two classes and two layers, with no bias but in the first; "
            f"got {max(net.outputs, 2)} classes, {net.depth} layers and biases "
            f"{'in the first' if net.homogeneous else 'beyond the first'}. Train on with Play."
        )
    if x.shape[1] != net.d:
        raise ValueError(f"the points are {x.shape[1]}-D; the network takes {net.d} inputs")
    if not len(x) or outputs_for(y) != 1:
        raise ValueError("training is finished for one or more points of two classes")
    points, labels = as_array(x), y.cpu().double().numpy()
    return distinct_points(points, labels)


def _linear_program(table: Array, scale: float) -> tuple[Array, Array]:
    """Return path weights c >= 0 of sum 1 with the largest smallest margin, and lam >= 0 of sum 1.

    table (n, M) holds the margins of single neurons; the result is about `scale`.
    """
    n, count = table.shape
    rows = np.column_stack([-table / scale, np.ones(n)])
    solution = linear_programs.least(
        np.append(np.zeros(count), -1.0), rows, np.zeros(n), method="highs-ds", b_eq=[1.0],
        A_eq=np.append(np.ones(count), 0.0)[None, :], bounds=[*[(0, None)] * count, (None, None)],
    )  # fmt: skip
    if solution.status != 0:
        raise ValueError(f"the linear program has no end ({solution.message}); scale the points")
    lam = np.maximum(-solution.ineqlin.marginals, 0)
    return np.maximum(solution.x[:-1], 0), lam / lam.sum()


def _candidates(problem: _Problem, start: Point, cells: Index) -> Iterator[tuple[Point, _Cuts]]:
    """Yield candidates for the optimum near `start`, by Newton's method on the neurons' faces.

    Each with what exceeds 1 at its multipliers; those cells take part in the next candidate.
    """
    point, support = start, start.lam > 1e-7 * start.lam.max()
    for _ in range(_TURNS):
        tops = _faces(problem, point.lam, cells)
        if not len(tops.h):
            return
        solved = saddle(problem.xt, problem.sides[tops.cell], problem.y, point, tops, support)
        if solved is None or not len(solved.c):
            return
        q = problem.margins(solved)
        kept = replace(solved, lam=np.maximum(solved.lam, 0))
        if kept.lam.max() <= 0:
            return
        cuts = problem.price(kept.lam, 1 + _CUT)
        yield kept, cuts
        wanted = (support & (solved.lam > 0)) | (q < 1 - _CUT)
        more = np.union1d(cells, cuts.cell)
        if (wanted == support).all() and len(more) == len(cells):
            return
        point, support, cells = kept, wanted, more


def _faces(problem: _Problem, lam: Array, cells: Index) -> Peaks:
    """Return the faces of these cells on which their gain is largest at lam (n,), each once."""
    pull, tops = problem.pull(lam), dict[bytes, tuple[Array, float, int, Array]]()
    for i in cells.tolist():
        ahead, kinks = problem.projection(i, pull[i])
        reached = float(np.linalg.norm(ahead))
        if kinks is None or reached < _LOW:
            continue
        sign = float(problem.sign[i])
        key = np.concatenate([[sign > 0], kinks, problem.sides[i] & ~kinks]).tobytes()
        across = np.linalg.svd(problem.unit[kinks], full_matrices=False)[2]
        onto = np.eye(len(ahead)) - across.T @ across
        tops.setdefault(key, (sign * ahead / reached, sign * reached, i, onto))
    u, h, cell, onto = zip(*tops.values(), strict=True) if tops else ((), (), (), ())
    d = problem.xt.shape[1]
    return Peaks(
        np.array(u).reshape(-1, d), np.array(h), np.array(cell, dtype=np.intp),
        np.full(len(h), INSIDE), np.array(onto).reshape(-1, d, d),
    )  # fmt: skip

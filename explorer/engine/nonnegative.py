r"""Nonnegative least squares from Gram matrices: of one problem, and of many at once.

    min_u  u' (G + ridge) u / 2 - h' u,   u >= 0

One problem is solved by the active-set method of Lawson and Hanson (1974), in compiled loops from a
guess on, or where there are none by scipy (`nonnegative`). So are many that share most of their
columns, such as the places of an energy map (`nonnegative_all`).

Many are solved at once, with no number read back from the device, by block principal pivoting
(`pivoting`): where the solution on a set of variables is negative, or a variable outside of the set
would lower the value, all of these change sides (Portugal, Judice and Vicente 1994; Kim and Park
2011). A problem where that has not lessened their number goes on as Lawson and Hanson: from the
nonnegative part, one variable a round, with a value that falls, which ends. A round is one Cholesky
factor per problem, under a mask: the same program whatever the sets are. From the set of the step
before, few rounds are enough; `Pivoted.unsettled` says where they were not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.deferred_checks import Rare, now
from explorer.engine.kernels.loading import compiled_module

RIDGE = 1e-10  # arbitrary, of the trace: the Gram matrix of close candidates stays definite
RIDGE_ALONE = 1e-13  # of a unit column's square: repeated ones stay solvable; arbitrary
STEEP = 1e-13  # of the largest |h| of unit columns: gains below it are rounding; arbitrary
TIMES, TRIES = 10.0, 6  # arbitrary: the last ridge is 1e5 times the first
PATIENCE = 1  # exchanges of all without progress; of 0 to 3 it took fewest rounds on 600 Grams
TOLERANCE = 1e-11  # arbitrary, of the largest |h|: gains below it are rounding
ROUNDS = 8  # arbitrary: mostly enough from the set of the step before
MOST = 256  # arbitrary: rounds after which what is known is taken


# --- One problem --------------------------------------------------------------------------------


def nonnegative(
    gram: Array, inner: Array, start: Array | None = None, ridge: float = RIDGE_ALONE,
    steep: float = STEEP,
) -> Array:  # fmt: skip
    """Return the coefficients u >= 0 (r,) of least u' gram u / 2 - inner' u.

    Args:
        gram: Gram matrix (r, r) of columns of any length.
        inner: h (r,).
        start: a guess (r,) >= 0; its positive entries are tried first.
        ridge: of columns at length one.
        steep: gains below this share of the largest |h| of unit columns count as none.

    Returns:
        (r,); nan where no ridge makes the Gram matrix definite.
    """
    size = _lengths(gram)
    unit, right = gram / (size[:, None] * size), (inner / size)[None]
    unit[np.diag_indices(len(size))] += ridge
    found = np.zeros_like(right) if start is None else (start * size)[None]
    _settle(
        unit,
        np.zeros((1, 0, len(size))),
        np.zeros((1, 0, 0)),
        right,
        np.zeros((0, 0)),
        found,
        steep,
    )
    return np.asarray(found[0] / size)


def nonnegative_all(
    shared: Array, shared_inner: Array, cross: Array, own: Array, own_inner: Array,
    start: Array,
) -> Array:  # fmt: skip
    """Return the coefficients of p problems that share their first f columns.

    Args:
        shared: Gram matrix of the columns that all have (f, f).
        shared_inner: h of these (f,).
        cross: products of each problem's own columns with them (p, v, f).
        own: Gram matrices of the own columns (p, v, v).
        own_inner: h of these (p, v).
        start: a guess (f,) >= 0 at the coefficients of the shared columns.

    Returns:
        (p, f + v), each row as of `nonnegative`.
    """
    f, v = len(shared), own.shape[1]
    size = _lengths(shared)
    each = np.concatenate([np.tile(size, (len(own), 1)), _lengths(own)], axis=1)
    gram = np.empty((f + v, f + v))
    gram[:f, :f] = shared / (size[:, None] * size) + RIDGE_ALONE * np.eye(f)
    right = np.concatenate([np.tile(shared_inner, (len(own), 1)), own_inner], axis=1) / each
    found = np.zeros_like(right)
    found[:, :f] = start * size
    on = np.flatnonzero(start > 0)
    factor, failed = torch.linalg.cholesky_ex(torch.from_numpy(gram[np.ix_(on, on)]))
    known = np.zeros((0, 0)) if int(failed) else factor.contiguous().numpy()
    cross = cross / (each[:, f:, None] * size)
    own = own / (each[:, f:, None] * each[:, None, f:]) + RIDGE_ALONE * np.eye(v)
    _settle(gram, cross, own, right, known, found)
    return np.asarray(found / each)


def _lengths(gram: Array) -> Array:
    """Return the lengths of columns (..., r) from their Gram matrix (..., r, r)."""
    return np.sqrt(np.maximum(np.diagonal(gram, axis1=-2, axis2=-1), 1e-300))


def _settle(
    gram: Array, cross: Array, own: Array, right: Array, factor: Array, found: Array,
    steep: float = STEEP,
) -> None:  # fmt: skip
    """Put the coefficients in place of the guesses: as of `compiled_nonnegative.settle`."""
    loops: Any = compiled_module("compiled_nonnegative")
    if loops is None:
        found[:] = math.nan
    else:
        tol = steep * np.abs(right).max(axis=1, initial=1e-300)
        loops.settle(gram, cross, own, right, tol, factor, found)
    for i in np.flatnonzero(np.isnan(found).any(axis=1)):
        f = cross.shape[2]
        gram[f:, :f], gram[:f, f:], gram[f:, f:] = cross[i], cross[i].T, own[i]
        found[i] = _by_factor(gram, right[i])


def _by_factor(gram: Array, right: Array) -> Array:
    """Return the coefficients (r,) by scipy, from a factor of the Gram matrix; nan without one."""
    factor = cholesky_factor(torch.from_numpy(gram), torch.tensor(RIDGE_ALONE)).numpy()
    if not np.isfinite(factor).all():
        return np.full_like(right, math.nan)
    aim = np.linalg.solve(factor, right)
    return np.asarray(nnls(factor.T, aim, maxiter=100 * len(right))[0])


def cone_coefficients(gram: Tensor, inner: Tensor, floor: float) -> Tensor:
    """The coefficients of least || theta - sum_j c_j g_j ||, c >= floor, one problem at a time.

    Args:
        gram: <g_i, g_j> (..., r, r).
        inner: <theta, g_i> (..., r).
        floor: the least coefficient.

    Returns:
        (..., r); nan where the equations are not finite, or no ridge makes them definite. The
        smallest norm among near-equal ones, by the ridge of `_ridge`.
    """
    if inner.ndim > 1:
        each = zip(gram.flatten(0, -3), inner.flatten(0, -2), strict=True)
        return torch.stack([cone_coefficients(g, i, floor) for g, i in each]).view_as(inner)
    full = gram.to("cpu", torch.float64)
    right = inner.to("cpu", torch.float64) - floor * full.sum(1)
    full = full + torch.diag(_ridge(full.diagonal(), gram.dtype))
    if not bool(torch.isfinite(right).all() and torch.isfinite(full).all()):
        return torch.full_like(inner, math.nan)
    return torch.from_numpy(nonnegative(full.numpy(), right.numpy(), ridge=0.0) + floor).to(inner)


def signed_coefficients(gram: Tensor, inner: Tensor, rare: Rare = now) -> Tensor:
    """As `cone_coefficients` of one problem, of any sign; on the device where it has float64.

    `rare`: whether to look if the equations can be solved.
    """
    where = gram.device if gram.device.type != "mps" else "cpu"
    full = gram.to(where, torch.float64)
    factor = cholesky_factor(full, _ridge(full.diagonal(), gram.dtype), rare)
    right = inner.to(where, torch.float64)[:, None]
    if rare(~(torch.isfinite(right).all() & torch.isfinite(factor).all())):
        return torch.full_like(inner, math.nan)
    solved: Tensor = torch.cholesky_solve(right, factor)
    return solved[:, 0].to(inner)


def _ridge(diagonal: Tensor, made_in: torch.dtype) -> Tensor:
    """The ridge (..., r) of a Gram matrix: `RIDGE` of the trace and what its rounding takes."""
    return RIDGE * diagonal.sum(-1, keepdim=True) + rounding_ridge(diagonal, made_in)


# --- Many problems at once ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pivoted:
    """Solutions u >= 0 (..., r), nan where one is not finite; which (...,) need more rounds.

    Problems that are not finite themselves need none.
    """

    u: Tensor
    unsettled: Tensor


def pivoting(gram: Tensor, h: Tensor, known: Tensor, rounds: int = ROUNDS) -> Pivoted:
    """Return the solutions after so many rounds, 1 or more; solved in float64.

    Args:
        gram: G (..., r, r), positive semidefinite.
        h: (..., r).
        known: which variables are positive, as far as is known (..., r).
        rounds: how many.
    """
    made, right = gram.double(), h.double()
    diagonal = made.diagonal(dim1=-2, dim2=-1)
    ridge = _ridge(diagonal, gram.dtype)
    tolerance = TOLERANCE * right.abs().amax(-1, keepdim=True)
    least = torch.full_like(right[..., :1], right.shape[-1] + 1)
    patience = torch.full_like(least, PATIENCE)
    at, single = torch.zeros_like(right), torch.zeros_like(least, dtype=torch.bool)
    for turn in range(rounds):
        u, failed = _on_set(made, right, ridge, known)
        gain = right - (made @ u.unsqueeze(-1)).squeeze(-1) - ridge * u
        wrong = torch.where(known, u < 0, gain > tolerance) & ~failed
        count = wrong.sum(-1, keepdim=True).to(right)
        if turn == rounds - 1:
            break
        ridge = torch.where(failed, 10 * ridge, ridge)
        patience = torch.where(count < least, PATIENCE, patience - 1)
        least = torch.minimum(least, count)
        begins = ~single & (patience < 0)
        at, single = torch.where(begins & known, u.clamp_min(0), at), single | begins
        moved, one = _one_by_one(at, u, gain, known, wrong)
        known = known ^ torch.where(single, one, wrong)
        at = torch.where(single & known, torch.where(failed, at, moved), 0.0)
    sound = (gain.isfinite() & u.isfinite()).all(-1, keepdim=True) & ~failed
    u = torch.where(sound, u.clamp_min(0), torch.nan)
    # No round mends numbers that are not finite.
    hopeful = (ridge.isfinite() & tolerance.isfinite()).all(-1, keepdim=True)
    return Pivoted(u.to(h), (((count > 0) | ~sound) & hopeful).squeeze(-1))


def _one_by_one(
    at: Tensor, u: Tensor, gain: Tensor, known: Tensor, wrong: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the next point of Lawson and Hanson, and which variables change sides for it.

    From `at` >= 0 towards the solution `u` on the set: as far as all stay positive, where the first
    to reach zero leaves; else all the way, and the variable of the largest gain enters.
    """
    negative = wrong & known
    share = torch.where(negative, at / (at - u), 1.0)
    step = share.amin(-1, keepdim=True)
    best = torch.where(wrong, gain, -torch.inf).argmax(-1, keepdim=True)
    enters = torch.zeros_like(wrong).scatter_(-1, best, True) & wrong
    leaves = negative & (share <= step)
    some = negative.any(-1, keepdim=True)
    moved = torch.where(known, at + step * (u - at), 0.0).clamp_min(0)
    return moved, torch.where(some, leaves, enters)


def _on_set(gram: Tensor, h: Tensor, ridge: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Return the solution, 0 outside of the set, and where (..., 1) the matrix was not definite."""
    inside = known.unsqueeze(-1) & known.unsqueeze(-2)
    held = torch.where(inside, gram, 0.0)
    held.diagonal(dim1=-2, dim2=-1).add_(torch.where(known, ridge, 1.0))
    factor, info = torch.linalg.cholesky_ex(held)
    right = torch.where(known, h, 0.0).unsqueeze(-1)
    right = torch.linalg.solve_triangular(factor, right, upper=False)
    u: Tensor = torch.linalg.solve_triangular(factor.mT, right, upper=True)
    return u.squeeze(-1), (info > 0).unsqueeze(-1)


def coefficients(
    gram: Tensor, inner: Tensor, floor: float, known: Tensor, rare: Rare = now
) -> Tensor:
    """Return the coefficients c >= floor (..., r) of `cone_coefficients`.

    On the CPU they are made there, one problem after another, and for a device without float64;
    else on the device, begun from the set `known` (..., r). `rare` looks after each doubling of the
    rounds.
    """
    if gram.device.type in ("cpu", "mps"):
        return cone_coefficients(gram, inner, floor)
    return settled_coefficients(gram, inner, floor, known, rare)


def settled_coefficients(
    gram: Tensor, inner: Tensor, floor: float, known: Tensor, rare: Rare = now
) -> Tensor:
    """See `coefficients`: by pivoting, wherever the tensors are."""
    h, rounds = inner - floor * gram.sum(-1), ROUNDS
    found = pivoting(gram, h, known, rounds)
    while rounds < MOST and rare(found.unsettled.any()):
        rounds *= 2
        found = pivoting(gram, h, found.u > 0, rounds)
    return found.u + floor


# --- Factors of Gram matrices that rounding has left a little short of positive definite --------


def rounding_ridge(diagonal: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the ridge (..., r) that covers the rounding of a Gram matrix made in `dtype`.

    0 in float64.

    Each entry is rounded by about eps sqrt(G_ii G_jj), so all of them together take no more than
    r eps G_ii from the form.
    """
    if dtype == torch.float64:  # the solvers' own ridges are far above it
        return torch.zeros_like(diagonal)
    return diagonal.shape[-1] * torch.finfo(dtype).eps * diagonal


def cholesky_factor(gram: Tensor, ridge: Tensor, rare: Rare = now) -> Tensor:
    """Lower factor (r, r) of gram + diag(ridge); a larger ridge where that is not definite.

    Args:
        gram: a Gram matrix (r, r).
        ridge: the first ridge to try, () or (r,).
        rare: whether to look if it will do.

    Returns:
        The factor; nan throughout where no ridge up to 1e5 times the first one will do.
    """
    eye = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    for _ in range(TRIES):
        factor: Tensor
        factor, failed = torch.linalg.cholesky_ex(gram + ridge * eye)
        if not rare(failed > 0):
            return factor
        ridge = ridge * TIMES
    return torch.full_like(gram, math.nan)

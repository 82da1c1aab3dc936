r"""Many nonnegative least squares problems at once, with no number read back from the device.

    min_u  u' (G + ridge) u / 2 - h' u,   u >= 0,   for every problem of a batch

by block principal pivoting: where the solution on a set of variables is negative, or a variable
outside of the set would lower the value, all of these change sides; where that has not lessened
their number for some rounds, one of them alone does, which ends (Portugal, Judice and Vicente 1994;
Kim and Park 2011). A round is one Cholesky factor per problem, under a mask: the same program
whatever the sets are. From the set of the step before, few rounds are enough; `Cone.unsettled` says
where they were not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.attacks.descent import RIDGE, cone_coefficients
from explorer.engine.factor import rounding_ridge
from explorer.engine.rare import Rare, now

PATIENCE = 3  # rounds of full exchange without progress; Kim and Park 2011
TOLERANCE = 1e-11  # arbitrary, of the largest |h|: gains below it are rounding
ROUNDS = 8  # arbitrary: mostly enough from the set of the step before
MOST = 256  # arbitrary: rounds after which what is known is taken


@dataclass(frozen=True, eq=False)
class Cone:
    """Solutions u >= 0 (..., r), nan where one is not finite; which (...,) need more rounds.

    Problems that are not finite themselves need none.
    """

    u: Tensor
    unsettled: Tensor


def cones(gram: Tensor, h: Tensor, known: Tensor, rounds: int = ROUNDS) -> Cone:
    """The solutions after so many rounds, 1 or more; solved in float64.

    Args:
        gram: G (..., r, r), positive semidefinite.
        h: (..., r).
        known: which variables are positive, as far as is known (..., r).
        rounds: how many.
    """
    made, right = gram.double(), h.double()
    diagonal = made.diagonal(dim1=-2, dim2=-1)
    ridge = RIDGE * diagonal.sum(-1, keepdim=True) + rounding_ridge(diagonal, gram.dtype)
    tolerance = TOLERANCE * right.abs().amax(-1, keepdim=True)
    least = torch.full_like(right[..., :1], right.shape[-1] + 1)
    patience = torch.full_like(least, PATIENCE)
    place = torch.arange(1, right.shape[-1] + 1, device=right.device, dtype=right.dtype)
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
        last = torch.where(wrong, place, 0.0)
        known = known ^ (wrong & ((patience >= 0) | (last == last.amax(-1, keepdim=True))))
    sound = (gain.isfinite() & u.isfinite()).all(-1, keepdim=True) & ~failed
    u = torch.where(sound, u.clamp_min(0), torch.nan)
    # No round mends numbers that are not finite.
    hopeful = (ridge.isfinite() & tolerance.isfinite()).all(-1, keepdim=True)
    return Cone(u.to(h), (((count > 0) | ~sound) & hopeful).squeeze(-1))


def _on_set(gram: Tensor, h: Tensor, ridge: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """The solution, 0 outside of the set, and where (..., 1) the matrix was not definite."""
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
    """The coefficients c >= floor (..., r) of `descent.cone_coefficients`.

    On the CPU they are made there, one problem after another, and for a device without float64;
    else on the device, begun from the set `known` (..., r).
    """
    if gram.device.type in ("cpu", "mps"):
        return cone_coefficients(gram, inner, floor)
    return settled_cones(gram, inner, floor, known, rare)


def settled_cones(
    gram: Tensor, inner: Tensor, floor: float, known: Tensor, rare: Rare = now
) -> Tensor:
    """See `coefficients`; `rare` looks after each doubling of the rounds."""
    h, rounds = inner - floor * gram.sum(-1), ROUNDS
    found = cones(gram, h, known, rounds)
    while rounds < MOST and rare(found.unsettled.any()):
        rounds *= 2
        found = cones(gram, h, found.u > 0, rounds)
    return found.u + floor

r"""Few points of a large pool that explain theta: column generation over points and their slopes.

    min over measures lam >= 0 on the pool and slopes s of  || theta - sum_x lam_x y_x g(x; s) ||

Pools hold thousands of candidates and an explanation needs a few dozen, so the problem is solved
on a growing active set (the fully corrective Frank-Wolfe method): fit the active candidates
(`multipliers.fit_multipliers`, slopes free at kinks), price the whole pool by the residual R,

    score(x) = max over s of <R, y g(x; s)> / |g(x; s)|,

and take in the best, no two within one another's neighbourhood. At an optimum over the pool no
score is above 0. In more than two layers pricing is local, as in `multipliers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from explorer.engine.arrays import greedy_groups
from explorer.engine.gradients import backward_signals, forward_signals
from explorer.engine.multipliers import (
    best_slopes,
    blocks_left,
    fit_multipliers,
    kinks_of,
)
from explorer.engine.network import Network, phi
from explorer.engine.tables import Rowwise

LEAST_SCORE = 0.3  # of the best, for a candidate to join; arbitrary


@dataclass(frozen=True, eq=False)
class CandidatePool(Rowwise):
    """Candidates with what pricing needs of them, made once.

    Attributes:
        net: the network whose theta is to be explained.
        x: candidates (N, d).
        y: their labels (N,), the sign of Phi.
        tau: slopes are free where |z| <= tau |w~| |a|.
        inputs: A_{l-1} (N, .) per layer.
        hard: torch's slopes per hidden layer.
        kinks: which slopes are free, per hidden layer.
    """

    net: Network
    x: Tensor
    y: Tensor
    tau: float
    inputs: list[Tensor]
    hard: list[Tensor]
    kinks: list[Tensor]

    @staticmethod
    def of(net: Network, x: Tensor, tau: float) -> CandidatePool:
        """Return the pool of candidates x (N, d) of a network at margin 1."""
        y = phi(net, x).sign()
        y = torch.where(y == 0, torch.ones_like(y), y)
        inputs, values, hard = forward_signals(net, x)
        return CandidatePool(net, x, y, tau, inputs, hard, kinks_of(net, inputs, values, tau))


@dataclass(frozen=True, eq=False)
class SparseFit:
    """Active candidates, their multipliers and what they leave unexplained.

    Attributes:
        index: (A,) into the pool.
        lam: (A,), all positive.
        residual: |theta - sum| / |theta|.
        left: the residual, block by block (W_l, b_l).
    """

    index: Tensor
    lam: Tensor
    residual: float
    left: list[Tensor]


def nothing(pool: CandidatePool) -> SparseFit:
    """Return the empty explanation: all of theta is left."""
    return SparseFit(
        torch.zeros(0, dtype=torch.long), pool.x.new_zeros(0), 1.0, list(pool.net.blocks)
    )


def scores(pool: CandidatePool, left: list[Tensor]) -> Tensor:
    """Return the score of every candidate against the residual `left`, see the module. (N,)."""
    gain, norm = _prices(pool, left)
    return gain / norm.clamp_min(1e-300)


def at_least(pool: CandidatePool, now: SparseFit) -> float:
    """Return what every explanation on this pool leaves of |theta| at least.

    With R what `now` leaves, any multipliers of mass rho^2 / order (the norm identity) leave

        |theta - sum| >= <R, theta - sum> / |R| >= (<R, theta> - mass max_x <R, y g(x)>_+) / |R|.

    A proof in two layers; in deeper ones pricing is local, and this an estimate.
    """
    rho = float(pool.net.rho)
    size = now.residual * rho
    if not len(pool.x) or size <= 0:
        return now.residual
    along = sum(float((a * b).sum()) for a, b in zip(now.left, pool.net.blocks, strict=True))
    most = max(float(_prices(pool, now.left)[0].max()), 0.0)
    return (along - rho**2 / pool.net.order * most) / (size * rho)


def _prices(pool: CandidatePool, left: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return <R, y g> with the best slopes, and |g|, of every candidate. (N,), (N,)."""
    net = pool.net
    reach = [a @ r.T for a, r in zip(pool.inputs, left, strict=True)]
    slopes = best_slopes(net, reach, pool.y[:, None], pool.hard, pool.kinks, pool.hard)
    signals = [b * pool.y[:, None] for b in backward_signals(net, slopes, len(pool.x))]
    gain = torch.stack([(b * u).sum(1) for b, u in zip(signals, reach, strict=True)]).sum(0)
    norm = [
        b.square().sum(1) * a.square().sum(1) for b, a in zip(signals, pool.inputs, strict=True)
    ]
    return gain, torch.stack(norm).sum(0).sqrt()


def best_explanation(
    pool: CandidatePool, index: Tensor, accuracy: float = 1e-2, rounds: int = 20
) -> SparseFit:
    """Return the best multipliers of some candidates (A,); those of multiplier 0 are left out."""
    if not len(index):
        return nothing(pool)
    made = fit_multipliers(
        pool.net, pool.x[index], pool.y[index], pool.tau, accuracy=accuracy, rounds=rounds
    )
    used, at = made.lam > 0, index[made.point]
    signals = backward_signals(pool.net, made.slopes, len(at))
    left = blocks_left(list(pool.net.blocks), pool.inputs, at, signals, made.weight * pool.y[at])
    return SparseFit(index[used], made.lam[used], made.residual, left)


def newcomers(pool: CandidatePool, score: Tensor, batch: int, apart: float) -> Tensor:
    """Return the best `batch` candidates by score, `apart` from one another.

    Those below `LEAST_SCORE` of the best score are left out.
    """
    order = torch.argsort(score, descending=True, stable=True)
    order = order[score[order] > max(LEAST_SCORE * float(score.max()), 0.0)]
    groups = greedy_groups(
        order, lambda left: (pool.x[left] - pool.x[left[0]]).norm(dim=1) <= apart
    )
    return torch.tensor([int(group[0]) for group in islice(groups, batch)], dtype=torch.long)


def next_explanation(
    pool: CandidatePool, now: SparseFit, batch: int, apart: float, accuracy: float = 1e-2
) -> SparseFit:
    """Return one round: the best newcomers join, and all multipliers are fitted anew."""
    if not len(pool.x):
        return now
    fresh = newcomers(pool, scores(pool, now.left), batch, apart)
    index = torch.cat([now.index, fresh]).unique()
    following = best_explanation(pool, index, accuracy, 20 if accuracy >= 1e-2 else 100)
    return following if following.residual < now.residual else now

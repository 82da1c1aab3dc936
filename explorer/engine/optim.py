"""Pure updates: parameters, moments and gradients in, new parameters and moments out.

Everything is a tuple of tensors of matching shapes; nothing is changed in place. A gradient here
points uphill, the update goes down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Tensors = tuple[Tensor, ...]
BETA_SQUARE = 0.999  # Kingma and Ba 2015


def zeros_like(params: Sequence[Tensor]) -> Tensors:
    """Return the velocity to begin with."""
    return tuple(torch.zeros_like(p) for p in params)


def momentum_step(
    params: Sequence[Tensor],
    velocity: Sequence[Tensor],
    grads: Sequence[Tensor],
    lr: float | Sequence[float],
    beta: float,
) -> tuple[Tensors, Tensors]:
    """Heavy ball: v' = beta v - lr g, p' = p + v' (Polyak 1964). Returns (p', v').

    `lr` is one rate, or one per parameter.

    The velocity is a displacement: a rate that changes between steps acts on the new gradient
    alone, not on the steps already taken. With beta = 0 this is plain gradient descent.
    """
    new_velocity = tuple(
        torch.add(v * beta, g, alpha=-rate)
        for v, g, rate in zip(velocity, grads, _rates(lr, params), strict=True)
    )
    return tuple(p + v for p, v in zip(params, new_velocity, strict=True)), new_velocity


def _rates(lr: float | Sequence[float], params: Sequence[Tensor]) -> list[float]:
    return [lr] * len(params) if isinstance(lr, (int, float)) else list(lr)


def half_cosine(progress: float, last: float) -> float:
    """Return a rate that falls as half a cosine: 1 at progress 0, `last` from progress 1 on."""
    fall = (1 + math.cos(math.pi * min(progress, 1.0))) / 2
    return last + (1 - last) * fall


@dataclass(frozen=True, eq=False)
class Moments:
    """Adam's running means.

    Attributes:
        t: number of updates they have seen.
        mean: of the gradients.
        square: of the squared gradients.
    """

    t: int
    mean: Tensors
    square: Tensors

    @classmethod
    def zero(cls, params: Sequence[Tensor]) -> Moments:
        """Before any update."""
        return cls(0, zeros_like(params), zeros_like(params))


def adam_step(
    params: Sequence[Tensor],
    moments: Moments,
    grads: Sequence[Tensor],
    lr: float | Sequence[float],
    *,
    beta_mean: float = 0.9,
    eps: float = 1e-8,
) -> tuple[Tensors, Moments]:
    """Adam with bias correction (Kingma and Ba 2015, algorithm 1, and its constants).

    Args:
        params: tensors to move.
        moments: from the last call, or `Moments.zero(params)`.
        grads: one gradient per parameter.
        lr: one rate, or one per parameter.
        beta_mean: decay of the mean.
        eps: added to the root mean square.

    Returns:
        The new parameters and moments. A gradient that is zero throughout moves nothing.
    """
    t = moments.t + 1
    rates = _rates(lr, params)
    mean = tuple(torch.lerp(g, m, beta_mean) for m, g in zip(moments.mean, grads, strict=True))
    square = tuple(
        torch.lerp(g.square(), s, BETA_SQUARE) for s, g in zip(moments.square, grads, strict=True)
    )
    first, second = 1 - beta_mean**t, 1 - BETA_SQUARE**t
    moved = tuple(
        torch.addcdiv(p, m, (s / second).sqrt_().add_(eps), value=-rate / first)
        for p, m, s, rate in zip(params, mean, square, rates, strict=True)
    )
    return moved, Moments(t, mean, square)


def batch_masks(n: int, batch: int, t: int, steps: int, seed: int) -> Tensor:
    """Return masks (steps, n) of the steps from t on: n / batch on the points of one, else 0.

    An epoch is one permutation, cut up.
    """
    per_epoch, masks = -(-n // batch), torch.zeros(steps, n, dtype=torch.float64)
    for epoch in range(t // per_epoch, (t + steps - 1) // per_epoch + 1):
        # 2654435761 is Knuth's multiplicative hash: nearby epochs get unrelated generators.
        generator = torch.Generator().manual_seed((seed + 2654435761 * epoch) % 2**63)
        order, first = torch.randperm(n, generator=generator), epoch * per_epoch - t
        for part in range(max(0, -first), min(per_epoch, steps - first)):
            some = order[part * batch : (part + 1) * batch]
            masks[first + part, some] = n / len(some)
    return masks

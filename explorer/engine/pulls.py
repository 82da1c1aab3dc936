"""How much each point pulls on the gradient of training, and which points a mini-batch holds."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from explorer.engine.margin import Loss, log_slopes


def weights(q: Tensor, norms: Tensor, loss: Loss, gain: float) -> tuple[Tensor, float, float]:
    """The p (n,), log of the mean pull, and kappa; p and kappa over the points that can pull.

    A point on which no neuron is active has no gradient. Left in, its constant loss would
    freeze all others once theirs is far below it.
    """
    slopes = log_slopes(q, loss, gain)
    norms = norms.to("cpu", torch.float64)
    if float(norms.min()) == 0:
        if float(norms.max()) == 0:
            return torch.zeros_like(slopes), 0.0, 0.0
        slopes = slopes.masked_fill(norms == 0, -math.inf)
    total = torch.logsumexp(slopes, 0)
    p = (slopes - total).exp_()
    return p, float(total) - math.log(q.shape[0]), float(torch.dot(p, norms))


def batch_mask(n: int, batch: int, t: int, seed: int) -> Tensor:
    """Entries n / batch on the points of step t, else 0; an epoch is one permutation, cut up."""
    per_epoch = -(-n // batch)
    epoch, part = divmod(t, per_epoch)
    # 2654435761 is Knuth's multiplicative hash: nearby epochs get unrelated generators.
    generator = torch.Generator().manual_seed((seed + 2654435761 * epoch) % 2**63)
    order = torch.randperm(n, generator=generator)[part * batch : (part + 1) * batch]
    mask = torch.zeros(n, dtype=torch.float64)
    mask[order] = n / len(order)
    return mask

"""Which reconstructions to believe without the truth: those on which several starts agree.

An attack ends at many candidates, and most are of nothing. What the weights hold is met from many
starts, what a start made up by that one alone: the *agreement* of a candidate is its correlation
with the nearest candidate of each other start, averaged over these. Candidates that are alike form
a cluster, whose mean is shown, as in Oz et al. 2024; their clusters are ranked by size, ours by
agreement, which needs no threshold. No training image is used here. Within one start alone those
agree that have collapsed to one average, which is nothing (docs/measured/images-of-mnist.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.arrays import greedy_groups
from explorer.engine.images import NCC_LEAST, correlations


@dataclass(frozen=True, eq=False)
class Consensus:
    """Clusters of reconstructions, the one of largest agreement first.

    Attributes:
        images: the mean of each cluster (k, c, h, w).
        agreement: of its best candidate (k,), in [-1, 1].
        sizes: candidates in each (k,).
    """

    images: Tensor
    agreement: Tensor
    sizes: Tensor


def agreements(starts: Sequence[Tensor], alike: Tensor | None = None) -> Tensor:
    """Return the agreement of each candidate of each start, those of the first start first.

    Args:
        starts: the candidates of each start as images (m, c, h, w), m of its own; two or more.
        alike: the correlations (M, M) of all pairs, where they are known.

    Returns:
        The agreements (sum of all m,), in [-1, 1].

    Raises:
        ValueError: where there is one start alone, or images differ in shape.

    Example:
        >>> import torch
        >>> from explorer.engine.consensus import agreements
        >>> a, b = torch.rand(2, 1, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> (agreements([torch.cat([a, b]), a]) > 0.99).tolist()
        [True, False, True]
    """
    found = torch.cat(list(starts))
    alike = correlations(found, found) if alike is None else alike
    if len(starts) < 2:
        raise ValueError(f"agreement is of two starts or more; got {len(starts)}. Take more.")
    own = torch.repeat_interleave(
        torch.arange(len(starts)), torch.tensor([len(found) for found in starts])
    )
    nearest = torch.stack([alike[:, own == k].amax(1) for k in range(len(starts))], 1)
    others = own[:, None] != torch.arange(len(starts))
    return (nearest * others).sum(1) / (len(starts) - 1)


def consensus(starts: Sequence[Tensor], least: float = NCC_LEAST) -> Consensus:
    """Return clusters of the candidates of several starts, the largest agreement first.

    The candidate of largest agreement takes all that correlate with it by more than `least`; so
    does the next of what is left.

    Args:
        starts: the candidates of each start as images (m, c, h, w); two or more.
        least: the correlation above which two are of one cluster.

    Returns:
        The clusters.

    Raises:
        ValueError: where there is one start alone, or images differ in shape.

    Source: Oz et al. 2024 for clusters; the order by agreement is our own.

    Example:
        >>> import torch
        >>> from explorer.engine.consensus import consensus
        >>> a, b = torch.rand(2, 1, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> consensus([torch.cat([a, b]), a]).sizes.tolist()
        [2, 1]
    """
    found = torch.cat(list(starts))
    alike = correlations(found, found)
    score = agreements(starts, alike)
    order = score.argsort(descending=True, stable=True)
    groups = list(greedy_groups(order, lambda left: alike[left[0], left] > least))
    images = torch.stack([found[group.sort().values].mean(0) for group in groups])
    sizes = torch.tensor([len(group) for group in groups])
    return Consensus(images, torch.stack([score[group[0]] for group in groups]), sizes)

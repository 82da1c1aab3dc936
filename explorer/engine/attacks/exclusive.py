r"""Points of a fine-tuning that single neurons saw alone, from a change of the first layer.

A step of gradient descent changes the weights of neuron j, with its bias, by a sum over the points
at which j is active. So after any number of steps, with any loss and any layers above,

    (W, b)_j(T) - (W, b)_j(0) = sum_i c_ij (x_i, 1).

The change lies in the span of the points: its rank is at most their number, and `distance_to_span`
tells a point of the fine-tuning from others. A neuron that was active at one point alone changes
along (x_i, 1): two such neurons change in parallel, and the point is read to rounding
(`exclusive_points`). Neurons of several points change in parallel only where their coefficients are
in one ratio, as after a single step; with two layers and one output these are nonnegative sums of
others, and are left out.

In a low-rank update W + B A, A changes by a sum over all points, whichever neurons are active: of
its r rows none is that of one point. Where A(0) is known they span the points if and only if r is
at least the number of points, and their coefficients are in general position.

Weight decay adds the earlier weights to the sum, and nothing here holds. Source: own; that neurons
of one point give it away is known of gradients (Phong et al. 2018, Boenisch et al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from explorer.engine.network import Network
from explorer.engine.nonnegative import nonnegative
from explorer.engine.sizes import Size

ROUNDING = 45.0  # times the rounding of a row's weights: how far off its change may be; arbitrary
MOVED = 1e-9  # of the weights of a row, the least change; arbitrary
LEFT = 1e-6  # of a ray, that a sum of others leaves: below it is that sum; arbitrary


@dataclass(frozen=True, eq=False)
class ExclusivePoints:
    """Points that neurons saw alone, those of most neurons first.

    Attributes:
        x: the points (m, d).
        neurons: of how many neurons each is read (m,), two or more.
        rank: of the change: no fewer points took part, as far as rounding tells.
    """

    x: Annotated[Tensor, Size("m d")]
    neurons: Annotated[Tensor, Size("m")]
    rank: int


def exclusive_points(before: Network, after: Network) -> ExclusivePoints:
    """Return the points that neurons of the first layer saw alone between two snapshots.

    Args:
        before: the network with which the training began.
        after: the network as it is later, trained by gradient descent without weight decay.

    Raises:
        ValueError: for networks of other shapes, or without a bias in the first layer, where the
            length of a point is not known.

    Example:
        >>> import torch
        >>> from explorer import Network
        >>> from explorer.engine.attacks.exclusive import exclusive_points
        >>> w = torch.eye(2, dtype=torch.float64)[[0, 0, 1, 1]]
        >>> b = torch.zeros(4, dtype=torch.float64)
        >>> out = torch.ones(1, 4, dtype=torch.float64)
        >>> c = torch.tensor([0.5, 1.0, 0.0, 0.0], dtype=torch.float64)
        >>> x = torch.tensor([2.0, -1.0], dtype=torch.float64)
        >>> after = Network((w + c[:, None] * x, out), (b + c, None))
        >>> found = exclusive_points(Network((w, out), (b, None)), after)
        >>> torch.allclose(found.x, x[None]), found.neurons.tolist(), found.rank
        (True, [2], 1)
    """
    _check(before, after)
    rows, off = _change(before, after)
    rays, neurons = _parallel(rows, off)
    rank = int((torch.linalg.svdvals(rows) > 4 * off.norm()).sum())
    if before.has_signs:
        kept = torch.tensor([_is_extreme(rays, k) for k in range(len(rays))], dtype=torch.bool)
        rays, neurons = rays[kept], neurons[kept]
    return ExclusivePoints(rays[:, :-1] / rays[:, -1:], neurons, rank)


def distance_to_span(before: Tensor, after: Tensor, x: Tensor) -> Tensor:
    """Return how far points are from the span of a change, as shares of their lengths.

    Args:
        before: the first layer (h, d), or the matrix A (r, d) of a low-rank update; its biases
            beside it as one more column (h, d + 1), if they are trained too.
        after: the same, later.
        x: points (q, d).

    Returns:
        (q,) in [0, 1]; 0 for points of the training, up to rounding, and for no others but those
        that lie in the span by chance, which takes as many dimensions as points. A point whose
        gradients are as small as rounding counts as none of them.

    Raises:
        ValueError: for another number of columns.
    """
    if before.shape != after.shape or after.shape[1] not in (x.shape[1], x.shape[1] + 1):
        raise ValueError(
            f"expected two matrices of {x.shape[1]} columns, or one more for biases; got "
            f"{tuple(before.shape)} and {tuple(after.shape)}"
        )
    ones = x.new_ones(len(x), after.shape[1] - x.shape[1])
    unit = torch.nn.functional.normalize(torch.cat([x, ones], 1), dim=1)
    _, sizes, across = torch.linalg.svd(after - before, full_matrices=False)
    rounding = ROUNDING * torch.finfo(after.dtype).eps * after.norm()
    basis = across[sizes > rounding]
    away: Tensor = torch.linalg.vector_norm(unit - unit @ basis.T @ basis, dim=1)
    return away


def _check(before: Network, after: Network) -> None:
    shapes = [[tuple(w.shape) for w in net.weights] for net in (before, after)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"expected two snapshots of one network; got {before} and {after}")
    if before.biases[0] is None or after.biases[0] is None:
        raise ValueError(
            "expected a bias in the first layer: without one a neuron tells the direction of a "
            "point and not its length; got none. Ask distance_to_span of points that you suspect."
        )


def _change(before: Network, after: Network) -> tuple[Tensor, Tensor]:
    """Return how the rows that moved changed, as unit rays (k, d + 1), and how far each may be off.

    A ray of two layers and one output is turned by the sign of its output weight: it is then a
    nonnegative sum of the rays y_i (x_i, 1), the weight keeping its sign.
    """
    first, last = (
        torch.cat([net.weights[0], net.biases[0][:, None]], 1).double()  # type: ignore[index]
        for net in (before, after)
    )
    change, sizes = last - first, torch.maximum(first.norm(dim=1), last.norm(dim=1))
    length = change.norm(dim=1)
    moved = length > MOVED * sizes
    if before.has_signs:
        change = change * before.weights[1][0].double().sign()[:, None]
    rounding = ROUNDING * torch.finfo(before.dtype).eps
    return change[moved] / length[moved, None], rounding * (sizes / length)[moved]


def _parallel(rows: Tensor, off: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rays that two rows or more have (m, d + 1), and how many have each (m,)."""
    away = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    same = away <= off[:, None] + off
    rays, neurons, free = [], [], torch.ones(len(rows), dtype=torch.bool)
    for k in torch.argsort(off).tolist():
        if not free[k]:
            continue
        group = same[k] & free
        free &= ~group
        if int(group.sum()) > 1 and abs(float(rows[k, -1])) > float(off[k]):
            rays.append(rows[k])
            neurons.append(int(group.sum()))
    order = torch.argsort(torch.tensor(neurons), descending=True, stable=True)
    found = torch.stack(rays)[order] if rays else rows[:0]
    return found, torch.tensor(neurons, dtype=torch.long)[order]


def _is_extreme(rays: Tensor, k: int) -> bool:
    """Return whether a ray is no nonnegative sum of the others."""
    others = torch.cat([rays[:k], rays[k + 1 :]])
    if not len(others):
        return True
    shares = torch.from_numpy(nonnegative((others @ others.T).numpy(), (others @ rays[k]).numpy()))
    return bool((rays[k] - shares @ others).norm() > LEFT)

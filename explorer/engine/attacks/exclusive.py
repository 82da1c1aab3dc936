r"""Points of a fine-tuning that single neurons saw alone, from a change of the first layer.

A step of gradient descent changes the weights of neuron j, with its bias, by a sum over the points
at which j is active. So after any number of steps, with any loss and any layers above,

    (W, b)_j(T) - (W, b)_j(0) = sum_i c_ij (x_i, 1).

The change lies in the span of the points: its rank is at most their number, and `distance_to_span`
tells a point of the fine-tuning from others. A neuron that was active at one point alone changes
along (x_i, 1): two such neurons change in parallel, and the point is read to rounding
(`exclusive_points`).

Neurons of several points change in parallel too if they changed by one step alone, were alike
before, or moved so little that rounding hides the difference. With two layers and one output this
shows: how far a neuron of output weight v moved, over |v|, is then one number. Where it differs by
a share s, later steps have turned rows of several points apart by some s^2, as their pulls do not
stay in one ratio; that so many rows are parallel to rounding all the same has a small chance, and a
point is read where it is below `CHANCES` and no other row is nearly parallel. In other networks s
is how far the neurons moved and were apart: there a single step of several points is not told.

In a low-rank update W + B A, A changes by a sum over all points, whichever neurons are active: of
its r rows none is that of one point. Where A(0) is known they span the points if and only if r is
at least the number of points, and their coefficients are in general position.

Weight decay adds the earlier weights to the sum, and nothing here holds. Source: own; that neurons
of one point give it away is known of gradients (Phong et al. 2018, Boenisch et al. 2021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from explorer.engine.network import Network
from explorer.engine.sizes import Size

# How far off a change may be, times the rounding of its weights: of a row by some hundred steps, of
# a whole matrix. Arbitrary.
ROUNDING, OF_MATRIX = 8.0, 45.0
PRECISE = 0.4  # power of the rounding: a row that may be further off tells nothing; arbitrary
ALONE = 10.0  # times how far two rows may be off, and no third row is as near; arbitrary
CHANCES = 3.0  # powers of ten; with it no claim of `benchmarks/bench_fine_tuning.py` was wrong


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
        after: the network as it is later, trained by two steps or more of gradient descent without
            weight decay.

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
    rows, off, moved = _change(before, after)
    rank = int((torch.linalg.svdvals(rows) > 4 * off.norm()).sum())
    differ = _later_steps(before, after, moved)
    rays, neurons = _parallel(rows, off, differ)
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
    rounding = OF_MATRIX * torch.finfo(after.dtype).eps * after.norm()
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


def _change(before: Network, after: Network) -> tuple[Tensor, Tensor, Tensor]:
    """Return how the rows that moved changed, as unit rays (k, d + 1) with a last number >= 0.

    And how far each may be off (k,), and which rows they are (k,).
    """
    first, last = (_with_biases(net) for net in (before, after))
    change, sizes = last - first, torch.maximum(first.norm(dim=1), last.norm(dim=1))
    length = change.norm(dim=1)
    off = ROUNDING * torch.finfo(before.dtype).eps * sizes / length
    moved = (off < torch.finfo(before.dtype).eps ** PRECISE).nonzero()[
        :, 0
    ]  # false where nothing moved, too
    rows = change[moved] / length[moved, None]
    return torch.where(rows[:, -1:] < 0, -rows, rows), off[moved], moved


def _with_biases(net: Network) -> Tensor:
    """Return the first layer in float64 (h, d + 1), biases at the end."""
    w, b = net.weights[0], net.biases[0]
    assert b is not None  # else it was refused
    return torch.cat([w, b[:, None]], 1).double()


def _parallel(
    rows: Tensor, off: Tensor, differ: Callable[[int, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the rays that two rows or more have (m, d + 1), and how many have each (m,)."""
    away = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    rays, neurons, free = [], [], torch.ones(len(rows), dtype=torch.bool)
    for k in torch.argsort(off).tolist():
        if not free[k]:
            continue
        reach = off[k] + off
        group = (away[k] <= reach) & free
        free &= ~group
        alone = not bool((away[k] <= reach + ALONE * off[k])[~group].any())
        apart = differ(k, group).clamp_max(1) ** 2 / (ALONE * reach[group])
        sure = float(apart.clamp_min(1).log10().sum()) > CHANCES
        if alone and sure and float(rows[k, -1]) > float(off[k]):
            rays.append(rows[k])
            neurons.append(int(group.sum()))
    order = torch.argsort(torch.tensor(neurons), descending=True, stable=True)
    found = torch.stack(rays)[order] if rays else rows[:0]
    return found, torch.tensor(neurons, dtype=torch.long)[order]


def _later_steps(before: Network, after: Network, moved: Tensor) -> Callable[[int, Tensor], Tensor]:
    """Return a function (row, rows) -> what later steps made of two changes, as shares (g,).

    Rows are among those that moved. By as much neurons of several points would differ.
    """
    first, last = (_with_biases(net)[moved] for net in (before, after))
    length, out = (last - first).norm(dim=1), before.weights[1][:, moved].double()
    if before.has_signs:
        pull = length / out[0].abs()
        return lambda k, group: (pull[group] / pull[k] - 1).abs()
    share = length / torch.maximum(first.norm(dim=1), last.norm(dim=1))
    whole = torch.nn.functional.normalize(torch.cat([first, out.T], 1), dim=1)
    return lambda k, group: share[group] * (whole[group] - whole[k]).norm(dim=1)

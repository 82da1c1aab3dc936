"""Merging parallel neurons: the same function and the same certificate with far fewer of them.

A hidden neuron is a pair (incoming w~ = (w, b), outgoing column o). Only its path weight
c = |w~| |o| and the two directions matter to Phi. At a KKT point neurons with one activation
pattern and one outgoing direction are parallel (Lyu and Li 2020 give the conditions; the collapse
follows from the component form), so that a trained network of width 100 often is a network of
4 to 10 neurons. Merging exactly parallel balanced neurons leaves Phi, theta's norm, the
multipliers and every KKT residual as they were.

What remains of a network trained for a finite time are some tens of heavy neurons and as many light
ones that have not yet turned to one of them. Taking a neuron of path weight c to another at the
distance delta of the two directions changes Phi by at most c delta |(x, 1)|, and only in the wedge
between the two lines: `fold` bounds c delta, as a share of the layer's path weight, where `drop`
takes c away altogether.

The modified ReLU's slope sigmoid(alpha z) is not homogeneous: a merged neuron is longer than each
of those that it stands for, so its slope is steeper. `Merged.slopes` undoes that.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.arrays import greedy_groups
from explorer.engine.network import Network, phi_all

MERGE_ANGLE = 0.02  # radians; arbitrary
_TINY = torch.finfo(torch.float32).tiny
_OPPOSITE = 1.0  # of two unit vectors: farther apart they share no wedge worth the name; arbitrary
_FEW = 32  # coordinates that tell most pairs apart before the rest are looked at; arbitrary
_SLACK = 1e-3  # of such a distance, for its rounding; arbitrary
_MEAN = -0.5  # exponent of the mean of |w~|: -1 is too steep by 1e-3 of the loss, 1 too flat by
# 2e-3, both measured on 2-1000-1 at alpha 50 (three draws of 40 candidates)


@dataclass(frozen=True, eq=False)
class Merged:
    """A network with its parallel neurons merged.

    Attributes:
        net: the merged network, every hidden neuron balanced (|incoming| = |outgoing|).
        error: max |change of Phi| over the probe points; None where no probe was given.
        slopes: per hidden layer (k,): the factor on alpha with which sigmoid(alpha z) of the merged
            neurons is nearest to the mean of those that they stand for.
    """

    net: Network
    error: float | None
    slopes: tuple[Tensor, ...]


def _gap(u: Tensor, o: Tensor, i: int) -> Tensor:
    """Return the sum of the distances of the directions u (k, D) and o (k, D') from those of i."""
    far: Tensor = (u - u[i]).norm(dim=1) + (o - o[i]).norm(dim=1)
    return far


def _is_wide(*vectors: Tensor) -> bool:
    """Return whether a few coordinates of these (k, D) are worth looking at first."""
    return max(v.shape[1] for v in vectors) > _FEW


def _clusters(incoming: Tensor, outgoing: Tensor, weight: Tensor, angle: float) -> list[Tensor]:
    """Return groups of neurons whose two directions lie within `angle` of the heaviest one's."""
    wide = _is_wide(incoming, outgoing)
    limit = angle * (1 + _SLACK) if wide else angle

    def near(left: Tensor) -> Tensor:
        head = left[0]
        found: Tensor = (incoming[left, :_FEW] - incoming[head, :_FEW]).norm(dim=1) < limit
        found &= (outgoing[left, :_FEW] - outgoing[head, :_FEW]).norm(dim=1) < limit
        if wide:  # a distance in few coordinates is the smaller one
            at = found.nonzero()[:, 0]
            for v in (incoming, outgoing):
                found[at] &= (v[left[at]] - v[head]).norm(dim=1) < angle
        return found

    return list(greedy_groups(torch.argsort(weight, descending=True), near))


def _fold(rows: Tensor, columns: Tensor, path: Tensor, share: float) -> list[list[int]]:
    """Return groups of rows: each light one with the nearest heavier one if c delta <= share."""
    u, o = (v / v.norm(dim=1, keepdim=True).clamp_min(_TINY) for v in (rows, columns))
    groups, wide = [[i] for i in range(len(path))], _is_wide(u, o)
    path, rows = path.clone(), rows.clone()
    for i in torch.argsort(path, stable=True).tolist():
        far = _gap(u[:, :_FEW], o[:, :_FEW], i)
        far[(path < path[i]) | (path == 0)] = torch.inf
        far[i] = torch.inf
        if wide:
            least = far / (1 + _SLACK)
            near = (least < _OPPOSITE) & (path[i] * least <= share)
            near[i] = True
            at = near.nonzero()[:, 0]
            own = int((at == i).nonzero())
            whole = _gap(u[at], o[at], own)
            whole[own] = torch.inf
            far[at] = whole
        j = int(far.argmin())
        if float(far[j]) < _OPPOSITE and float(path[i] * far[j]) <= share:
            groups[j] += groups[i]
            groups[i] = []
            rows[j] += rows[i]
            path[j] += path[i]
            path[i] = 0
            u[j] = rows[j] / rows[j].norm().clamp_min(_TINY)
    return [group for group in groups if group]


def _sums(groups: list[Tensor], *values: Tensor) -> tuple[Tensor, ...]:
    """Return the sums of each value (k, ...) over the groups."""
    return tuple(torch.stack([v[g].sum(dim=0) for g in groups]) for v in values)


def _merge_layer(
    incoming: Tensor, outgoing: Tensor, angle: float, drop: float, fold: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return one hidden layer: incoming (k, D), outgoing (k, k_next), fewer rows; and slopes."""
    norms, out_norms = incoming.norm(dim=1), outgoing.norm(dim=1)
    weight = norms * out_norms
    total = weight.sum()
    kept = weight > drop * total
    if not kept.any():  # an empty layer has no Network; one neuron stays to carry Phi = 0
        kept[weight.argmax()] = True
    u = incoming[kept] / norms[kept, None].clamp_min(_TINY)
    o = outgoing[kept] / out_norms[kept, None].clamp_min(_TINY)
    c, size = weight[kept], norms[kept].clamp_min(_TINY)
    # sum c u, not its direction times sum c: exact on every point all of the group sees
    own = (c[:, None] * u, c[:, None] * o, c, c * size**_MEAN)
    values = _sums(_clusters(u, o, c, angle), *own)
    if fold:
        folded = _fold(values[0], values[1], values[2], fold * float(total))
        values = _sums([torch.tensor(g, device=c.device) for g in folded], *values)
    rows, columns, path, powers = values
    size = rows.norm(dim=1).sqrt().clamp_min(_TINY)
    columns = columns / columns.norm(dim=1, keepdim=True).clamp_min(_TINY)
    slopes = (powers / path.clamp_min(_TINY)).clamp_min(_TINY) ** (1 / _MEAN) / size
    return rows / size[:, None], size[:, None] * columns, slopes


def merge_neurons(
    net: Network,
    angle: float = MERGE_ANGLE,
    drop: float = 1e-6,
    probe: Tensor | None = None,
    fold: float = 0.0,
) -> Merged:
    """Merge the parallel neurons of one sign, layer by layer from the first, and balance the rest.

    In two layers with one output, neurons with one sign(v) and directions (w, b) within `angle`
    become one, whose w~ is along sum_j c_j u_j. Deeper, or with several outputs, the whole outgoing
    columns must be parallel within `angle` too: otherwise the neurons are different ones.

    Args:
        net: the network, any depth; it is not changed.
        angle: largest distance of two unit vectors, in radians.
        drop: neurons below this share of the layer's path weight go; 1e-6 is arbitrary.
        probe: points (m, d) on which the change of Phi is measured.
        fold: a lighter neuron goes to the nearest heavier one of its sign as long as its path
            weight times their distance is below this share of the layer's path weight; 0 for none.

    Returns:
        The merged network, the measured change of Phi and the factors on the slopes.

    Raises:
        ValueError: where `angle` is negative, or `drop` or `fold` is not in [0, 1).

    Source: own; that neurons become parallel follows from the conditions in Lyu and Li 2020.

    Example:
        >>> import torch
        >>> from explorer import Network, merge_neurons
        >>> net = Network((torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0, 3.0]])), (None, None))
        >>> merged = merge_neurons(net).net
        >>> net.widths, merged.widths
        ((2,), (1,))
        >>> x = torch.tensor([[1.0]])
        >>> round(float(net(x)), 4), round(float(merged(x)), 4)
        (7.0, 7.0)
    """
    if not (angle >= 0 and 0 <= drop < 1 and 0 <= fold < 1):
        raise ValueError(
            f"expected angle >= 0, 0 <= drop < 1 and 0 <= fold < 1; got angle={angle}, "
            f"drop={drop}, fold={fold}. Try angle=0.02, drop=1e-6, fold=1e-5."
        )
    weights, biases, slopes = list(net.weights), list(net.biases), list[Tensor]()
    for layer in range(len(weights) - 1):
        b = biases[layer]
        incoming = weights[layer] if b is None else torch.cat([weights[layer], b[:, None]], dim=1)
        rows, columns, slope = _merge_layer(incoming, weights[layer + 1].T, angle, drop, fold)
        slopes.append(slope)
        weights[layer] = rows if b is None else rows[:, :-1].contiguous()
        biases[layer] = None if b is None else rows[:, -1].contiguous()
        weights[layer + 1] = columns.T.contiguous()
    merged = Network(tuple(weights), tuple(biases))
    if probe is None:
        return Merged(merged, None, tuple(slopes))
    change = (phi_all(merged, probe) - phi_all(net, probe)).abs()
    return Merged(merged, float(change.max()) if len(probe) else 0.0, tuple(slopes))

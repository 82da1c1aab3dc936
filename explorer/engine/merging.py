"""Merging parallel neurons: the same function and the same certificate with far fewer of them.

A hidden neuron is a pair (incoming w~ = (w, b), outgoing column o). Only its path weight
c = |w~| |o| and the two directions matter to Phi. At a KKT point neurons with one activation
pattern and one outgoing direction are parallel (Lyu and Li 2020 give the conditions; the collapse
follows from the component form), so that a trained network of width 100 often is a network of
4 to 10 neurons. Merging exactly parallel balanced neurons leaves Phi, theta's norm, the
multipliers and every KKT residual as they were.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.network import Network, phi_all


@dataclass(frozen=True, eq=False)
class Merged:
    """A network with its parallel neurons merged.

    Attributes:
        net: the merged network, every hidden neuron balanced (|incoming| = |outgoing|).
        error: max |change of Phi| over the probe points; None where no probe was given.
    """

    net: Network
    error: float | None


def _clusters(incoming: Tensor, outgoing: Tensor, weight: Tensor, angle: float) -> list[Tensor]:
    """Groups of neurons whose two directions lie within `angle` of the group's heaviest one."""
    left = torch.argsort(weight, descending=True)
    groups: list[Tensor] = []
    while len(left):
        head = left[0]
        near = (incoming[left] - incoming[head]).norm(dim=1) < angle
        near &= (outgoing[left] - outgoing[head]).norm(dim=1) < angle
        near[0] = True  # the head itself, also for angle = 0
        groups.append(left[near])
        left = left[~near]
    return groups


def _merge_layer(
    incoming: Tensor, outgoing: Tensor, angle: float, drop: float
) -> tuple[Tensor, Tensor]:
    """One hidden layer. incoming (k, D), outgoing (k, k_next) -> the same with fewer rows."""
    norms, out_norms = incoming.norm(dim=1), outgoing.norm(dim=1)
    weight = norms * out_norms
    kept = weight > drop * weight.sum()
    if not kept.any():  # an empty layer has no Network; one neuron stays to carry Phi = 0
        kept[weight.argmax()] = True
    tiny = torch.finfo(incoming.dtype).tiny
    u = incoming[kept] / norms[kept, None].clamp_min(tiny)
    o = outgoing[kept] / out_norms[kept, None].clamp_min(tiny)
    weight = weight[kept]
    rows, columns = [], []
    for group in _clusters(u, o, weight, angle):
        c = weight[group, None]
        # sum c u, not its direction times sum c: exact on every point all of the group sees
        row, column = (c * u[group]).sum(dim=0), (c * o[group]).sum(dim=0)
        size = row.norm().sqrt()
        rows.append(row / size.clamp_min(tiny))
        columns.append(size * column / column.norm().clamp_min(tiny))
    return torch.stack(rows), torch.stack(columns)


def merge_neurons(
    net: Network, angle: float = 0.02, drop: float = 1e-6, probe: Tensor | None = None
) -> Merged:
    """Merge the parallel neurons of one sign, layer by layer from the first, and balance the rest.

    In two layers with one output, neurons with one sign(v) and directions (w, b) within `angle`
    become one, whose w~ is along sum_j c_j u_j. Deeper, or with several outputs, the whole outgoing
    columns must be parallel within `angle` too: otherwise the neurons are different ones.

    Args:
        net: the network, any depth; it is not changed.
        angle: largest distance of two unit vectors, in radians; 0.02 is arbitrary.
        drop: neurons below this share of the layer's path weight go; 1e-6 is arbitrary.
        probe: points (m, d) on which the change of Phi is measured.

    Returns:
        The merged network and the measured change of Phi.
    """
    if not (angle >= 0 and 0 <= drop < 1):
        raise ValueError(
            f"expected angle >= 0 and 0 <= drop < 1; got angle={angle}, drop={drop}. "
            "Try angle=0.02, drop=1e-6."
        )
    weights, biases = list(net.weights), list(net.biases)
    for layer in range(len(weights) - 1):
        b = biases[layer]
        incoming = weights[layer] if b is None else torch.cat([weights[layer], b[:, None]], dim=1)
        rows, columns = _merge_layer(incoming, weights[layer + 1].T, angle, drop)
        weights[layer] = rows if b is None else rows[:, :-1].contiguous()
        biases[layer] = None if b is None else rows[:, -1].contiguous()
        weights[layer + 1] = columns.T.contiguous()
    merged = Network(tuple(weights), tuple(biases))
    if probe is None:
        return Merged(merged, None)
    change = (phi_all(merged, probe) - phi_all(net, probe)).abs()
    return Merged(merged, float(change.max()) if len(probe) else 0.0)

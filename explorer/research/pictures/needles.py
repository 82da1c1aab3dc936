"""The first layer's weights as needles, and the terms of the points that add up to them.

Pure numpy and torch: arrays as `view/band.js` takes them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from explorer.engine.arrays import Array, as_array
from explorer.engine.classes import labels
from explorer.engine.merging import MERGE_ANGLE
from explorer.engine.network import Network
from explorer.engine.sums import Sum
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.fields import lines_of

MOST = 240  # needles that are drawn one by one; arbitrary: of more none is 2 px wide
BINS = 120  # directions of a density; arbitrary
TINY = 1e-9  # of the longest: a neuron without weights

Arrays = dict[str, NDArray[np.generic]]


def needles(net: Network, axes: Axes, x: Array | None = None, made: Sum | None = None) -> Arrays:
    """Return a needle a neuron, sorted by direction; of many neurons one a direction.

    Args:
        net: of points on a plane or a line.
        axes: of the plane on which the neurons' lines are.
        x: points (n, d); a neuron that is active at none of them is dead. None: nobody told them.
        made: the weights as a sum over points, or None.

    Returns:
        The arrays that `view/band.js` names.
    """
    one = net.in_unit() if made is None else made.net
    block, (ink, out) = as_array(one.blocks[0]), _outgoing(one)
    drawn = block[:, :2] if block.shape[1] > 1 else np.column_stack([block, 0 * block])
    a, c, _ = lines_of(net, axes)
    lines = np.column_stack([a, c]) if net.d > 1 else np.column_stack([a, 0 * c, c])
    length = np.linalg.norm(block, axis=1)
    dead = length <= TINY * length.max(initial=0.0)
    if x is not None and len(x):
        dead |= (x @ as_array(net.weights[0]).T + _bias(net) <= 0).all(0)
    order, group = _order(block, drawn, ink, dead)
    pulled = {} if made is None else _pulls(made, block, length)
    made_of = {
        "needles": drawn, "out": out, "ink": ink, "lines": lines, "dead": dead.astype(float),
        "bias": as_array(one.biases[0]) if one.biases[0] is not None else 0 * length, **pulled,
    }  # fmt: skip
    if len(order) <= MOST:
        sort = {name: v[..., order] if name == "pulls" else v[order] for name, v in made_of.items()}
        return {**sort, "neurons": order, "group": group}
    return _density(made_of, drawn, ink, length)


def _bias(net: Network) -> Array:
    return np.zeros(len(net.weights[0])) if net.biases[0] is None else as_array(net.biases[0])


def _outgoing(net: Network) -> tuple[Array, Array]:
    """Return the class (k,) whose output each neuron raises, 0 where layers follow; and how much.

    Of one output the sign of v_j tells, of several the largest.
    """
    above = as_array(net.weights[1])
    size = np.linalg.norm(above, axis=0)
    if len(net.weights) > 2:
        return np.zeros(len(size)), size
    if len(above) == 1:
        return np.where(above[0] >= 0, 1.0, -1.0), size
    return np.array(labels(len(above)), dtype=float)[above.argmax(0)], size


def _order(block: Array, drawn: Array, ink: Array, dead: NDArray[np.bool_]) -> tuple[
    NDArray[np.intp], NDArray[np.intp]
]:  # fmt: skip
    """Return neurons in the order of their direction, and a number (k,) of each one's direction.

    Equal numbers are neurons of one direction and class, within `MERGE_ANGLE`.
    """
    angle = np.arctan2(drawn[:, 1], drawn[:, 0])
    unit = block / np.maximum(np.linalg.norm(block, axis=1), 1e-300)[:, None]
    key = np.column_stack([
        np.rint(angle / MERGE_ANGLE), np.rint(unit[:, -1] / MERGE_ANGLE), ink,
        np.where(dead, np.arange(len(dead)) + 1, 0),
    ])  # fmt: skip
    order = np.lexsort((np.linalg.norm(block, axis=1), *key.T[::-1]))
    fresh = np.any(np.diff(key[order], axis=0) != 0, axis=1)
    return order, np.append(0, np.cumsum(fresh))


def _pulls(made: Sum, block: Array, length: Array) -> dict[str, Array]:
    """Return where the sum ends, what is left at each neuron, and each point's pull along it."""
    into, out = (as_array(left) for left in made.rests())
    ends = (block - into)[:, :2]
    if ends.shape[1] < 2:
        ends = np.column_stack([ends, 0 * ends])
    along = block / np.maximum(length, 1e-300)[:, None]
    return {
        "ends": ends, "glow": np.sqrt((into**2).sum(1) + (out**2).sum(0)),
        "pulls": as_array(made.pull) * (as_array(made.points) @ along.T),
    }  # fmt: skip


def _density(made: dict[str, Array], drawn: Array, ink: Array, length: Array) -> Arrays:
    """Return the needles of each direction and class as one: lengths and pulls add up."""
    turn = (np.arctan2(drawn[:, 1], drawn[:, 0]) / (2 * np.pi) + 0.5) * BINS
    key = 8 * np.minimum(turn.astype(int), BINS - 1) + ink
    kinds, group = np.unique(key, return_inverse=True)
    group = group.reshape(-1)
    first = np.lexsort((-length, group))[np.searchsorted(np.sort(group), np.arange(len(kinds)))]

    def total(values: Array) -> Array:
        out = np.zeros((len(kinds), *values.shape[1:]))
        np.add.at(out, group, values)
        return out

    kept = {name: made[name][first] for name in ("ink", "lines", "bias")}
    names = [name for name in ("needles", "out", "ends") if name in made]
    added: dict[str, Array] = {name: total(made[name]) for name in names}
    dead = (total(made["dead"]) >= total(np.ones(len(group)))).astype(float)
    more: Arrays = {"neurons": first, "count": total(np.ones(len(group))).astype(int), "dead": dead}
    if "glow" in made:
        more |= {"glow": np.sqrt(total(made["glow"] ** 2)), "pulls": total(made["pulls"].T).T}
    return {**kept, **added, **more}

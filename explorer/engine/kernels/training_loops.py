"""Training in compiled loops: which runs they serve, and their arrays; see `compiled_training`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.classes import class_numbers
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.kernels.steps import TrainRule
from explorer.engine.kernels.training_step import Iterate, Masks
from explorer.engine.network import Network

MOST_INPUTS = 16  # arbitrary: beyond it the first layer is a product worth a call of BLAS
PIECE = 2**24  # points x neurons x steps in one call; Ctrl-C is heard between; arbitrary
MOST_MASKS = 2**12  # mini-batches drawn in one go; arbitrary
_FUSED = 64  # weights that products take in the time of a neuron in loops; arbitrary
_AT_ONCE = 4  # points that loops over neurons take together
# Points x (inputs and neurons) that loops of products take: they lie near the processor, and beyond
# it `step` is as quick. Measured: 2-1000-1000-1 from 100 points on.
MOST_NUMBERS = 2**18
NEAR = 2**17  # arbitrary: weights whose gradient is kept from one step to the next, 1 MB


def serves(net: Network, x: Tensor) -> bool:
    """Return whether there are loops for such weights and points x (n, d), n > 0.

    Float64, on the CPU; few points, or two layers of few inputs and one output.
    """
    return (
        net.depth > 1 and x.shape[0] > 0
        and (_narrow(net) or len(x) * (net.d + sum(net.widths)) <= MOST_NUMBERS)
        and x.device.type == "cpu" and x.dtype == net.dtype == torch.float64
        and compiled_module("compiled_training") is not None
    )  # fmt: skip


def advance(
    net: Network, x: Tensor, y: Tensor, rule: TrainRule, at: Iterate, t: int, steps: int,
    masks: Masks,
) -> tuple[Iterate, int]:  # fmt: skip
    """So many steps after iterate t; fewer where no gradient is left or the next is not finite."""
    work = len(x) * (net.widths[0] if _narrow(net) else len(at.theta) // _FUSED + 1)
    piece = PIECE // work if masks is None else min(PIECE // work, MOST_MASKS)
    piece, end, sound = max(1, piece), t + steps, True
    points = _padded_points(net, x, y)
    while sound and t < end:
        asked = min(piece, end - t)
        new, taken, sound = _train(net, points, rule, at, t, asked, masks)
        if not sound:  # its arrays are spoilt: once more, up to there
            new, taken, _ = _train(net, points, rule, at, t, taken, masks)
        sound = sound and taken == asked
        at, t = new, t + taken
    return at, t


def _train(
    net: Network, points: tuple[Array, Array], rule: TrainRule, at: Iterate, t: int, steps: int,
    masks: Masks,
) -> tuple[Iterate, int, bool]:  # fmt: skip
    """The iterate where the loops stopped, after how many steps, and whether it is finite."""
    if not steps:
        return at, 0, True
    loops: Any = compiled_module("compiled_training")
    held, now = (at.theta.clone(), at.velocity.clone(), at.grads.clone()), at.now.clone()
    arrays, biased = tuple(v.numpy() for v in held), [b is not None for b in net.biases]
    n, q = len(at.q), np.zeros(len(points[1]))
    q[:n] = at.q
    drawn = np.zeros((0, len(q)))
    if masks is not None:
        drawn = np.zeros((steps + 1, len(q)))
        drawn[:, :n] = masks(t, steps + 1)
    if _narrow(net):
        shape = (n, net.widths[0], biased[0], t)
        taken, sound = loops.train(arrays, q, now.numpy(), *points, *shape, steps, rule, drawn)
    else:
        widths, kept = np.array([net.d, *net.widths, net.outputs]), len(at.theta) <= NEAR
        taken, sound = loops.train_deep(
            arrays, q, now.numpy(), *points, n, widths, np.array(biased), t, steps, rule, kept,
            drawn,
        )  # fmt: skip
    return Iterate(*held, torch.from_numpy(q[:n]), now), taken, sound


def _narrow(net: Network) -> bool:
    """Return whether loops over neurons take less than products of matrices."""
    return net.has_signs and net.d <= MOST_INPUTS and net.homogeneous


def _padded_points(net: Network, x: Tensor, y: Tensor) -> tuple[Array, Array]:
    """Return points and labels as `compiled_training` wants them, filled up with zeros."""
    n, d = x.shape
    filled, rows = -(-n // _AT_ONCE) * _AT_ONCE, -(-(d + 1) // 3) * 3
    labels = np.zeros(filled)
    labels[:n] = (y if net.outputs == 1 else class_numbers(y) - 1).numpy()
    if not _narrow(net):
        rows_of = np.zeros((filled, d))
        rows_of[:n] = x.numpy()
        return rows_of, labels
    a = np.zeros((rows, filled))
    a[:d, :n] = x.numpy().T
    if net.biases[0] is not None:
        a[-1, :n] = 1.0
    return a, labels

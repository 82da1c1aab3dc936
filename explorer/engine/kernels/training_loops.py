"""Training in compiled loops: which runs they serve, and their arrays; see `compiled_training`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from explorer.engine.classes import class_numbers
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.kernels.steps import TrainRule
from explorer.engine.network import Network
from explorer.engine.optim import batch_masks

MOST_INPUTS = 16  # arbitrary: beyond it the first layer is a product worth a call of BLAS
PIECE = 2**24  # points x neurons x steps in one call; Ctrl-C is heard between; arbitrary
MOST_MASKS = 2**12  # mini-batches drawn in one go; arbitrary
_FUSED = 64  # weights that products take in the time of a neuron in loops; arbitrary
_AT_ONCE = 4  # points that loops over neurons take together
# Points x (inputs and neurons) that loops of products take: they lie near the processor, and beyond
# it `step` is as quick. Measured: 2-1000-1000-1 from 100 points on.
MOST_NUMBERS = 2**18
NEAR = 2**17  # arbitrary: weights whose gradient is kept from one step to the next, 1 MB

Array = npt.NDArray[np.float64]


def serves(net: Network, x: Tensor) -> bool:
    """Whether there are loops for such weights and points x (n, d), n > 0.

    Float64, on the CPU; few points, or two layers of few inputs and one output.
    """
    return (
        net.depth > 1 and x.shape[0] > 0
        and (_narrow(net) or len(x) * (net.d + sum(net.widths)) <= MOST_NUMBERS)
        and x.device.type == "cpu" and x.dtype == net.dtype == torch.float64
        and compiled_module("compiled_training") is not None
    )  # fmt: skip


@dataclass(eq=False)
class CompiledRun:
    """What a run of training carries; `advance` moves it on.

    Attributes:
        theta: carried weights (P,).
        velocity: (P,).
        grads: (P,).
        q: margins (n,).
        now: log_scale, log_loss, log_pull, kappa and rho (5,).
        t: steps taken.
        batch: points in each step; None: all.
        seed: fixes every mini-batch with t.
    """

    theta: Tensor
    velocity: Tensor
    grads: Tensor
    q: Tensor
    now: Array
    t: int
    batch: int | None
    seed: int

    def advance(
        self, net: Network, x: Tensor, y: Tensor, rule: TrainRule, steps: int
    ) -> CompiledRun:
        """So many steps on; fewer where no gradient is left or the next step is not finite.

        Args:
            net: a network of this architecture, for its shape.
            x: points (n, d).
            y: labels (n,).
            rule: how it moves.
            steps: how many.
        """
        work = len(x) * (net.widths[0] if _narrow(net) else len(self.theta) // _FUSED + 1)
        piece = PIECE // work if self.batch is None else min(PIECE // work, MOST_MASKS)
        piece, end, run, sound = max(1, piece), self.t + steps, self, True
        points = _padded(net, x, y)
        while sound and run.t < end:
            before, asked = run, min(piece, end - run.t)
            run, sound = before._train(net, points, rule, asked)
            if not sound:  # its arrays are spoilt: once more, up to there
                run, _ = before._train(net, points, rule, run.t - before.t)
            sound = sound and run.t == before.t + asked
        return run

    def _train(
        self, net: Network, points: tuple[Array, Array], rule: TrainRule, steps: int
    ) -> tuple[CompiledRun, bool]:
        """The run where the loops stopped, and whether its numbers are finite."""
        loops: Any = compiled_module("compiled_training")
        held = (self.theta.clone(), self.velocity.clone(), self.grads.clone())
        arrays, biased = tuple(v.numpy() for v in held), [b is not None for b in net.biases]
        n, q, now = len(self.q), np.zeros(len(points[1])), self.now.copy()
        q[:n] = self.q
        if not steps:
            return self, True
        masks = np.zeros((0, len(q)))
        if self.batch is not None:
            masks = np.zeros((steps + 1, len(q)))
            masks[:, :n] = batch_masks(n, self.batch, self.t, steps + 1, self.seed)
        if _narrow(net):
            shape = (n, net.widths[0], biased[0], self.t)
            taken, sound = loops.train(arrays, q, now, *points, *shape, steps, rule, masks)
        else:
            widths, kept = np.array([net.d, *net.widths, net.outputs]), len(self.theta) <= NEAR
            taken, sound = loops.train_deep(
                arrays, q, now, *points, n, widths, np.array(biased), self.t, steps, rule, kept,
                masks,
            )  # fmt: skip
        left = torch.from_numpy(q[:n])
        return CompiledRun(*held, left, now, self.t + taken, self.batch, self.seed), sound


def _narrow(net: Network) -> bool:
    """Whether loops over neurons take less than products of matrices."""
    return net.depth == 2 and net.d <= MOST_INPUTS and net.outputs == 1 and net.homogeneous


def _padded(net: Network, x: Tensor, y: Tensor) -> tuple[Array, Array]:
    """Points and labels as `compiled_training` wants them, filled up with zeros."""
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

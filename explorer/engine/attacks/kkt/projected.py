"""The projected KKT attack on two layers and at most two inputs, in compiled loops.

The steps are those of `kkt.step` with `multipliers="projected"`, to rounding: see
`kernels.compiled`. Rows are as in `blocks`; a single input has a second coordinate that is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.attacks.descent import EPS, RIDGE
from explorer.engine.attacks.kkt.blocks import PIECE, step_table
from explorer.engine.attacks.kkt.config import KKTConfig
from explorer.engine.attacks.kkt.loss import KKTState
from explorer.engine.attacks.target import Target
from explorer.engine.kernels.batched import few
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.kernels.prepared import Prepared
from explorer.engine.kernels.small import square
from explorer.engine.optim import BETA_SQUARE, Moments

INPUTS = 2  # of the compiled loops


def serves(net: Prepared, state: KKTState) -> bool:
    """Whether there are loops for these weights: two layers, few inputs, float64, on the CPU."""
    first = net.weights[0]
    return (
        few(net) and first.shape[1] <= INPUTS and state.x.dtype == first.dtype == torch.float64
        and compiled_module("compiled") is not None
    )  # fmt: skip


class Projected:
    """A run, x (m, d) or (b, m, d), moved on by `advance`."""

    def __init__(self, target: Target, net: Prepared, state: KKTState, config: KKTConfig) -> None:
        """Start from `state`; `net` is the prepared network of `target`."""
        self.config, self.level, self.y = config, target.level, state.y
        self.t, self.moved, self.sound = state.t, state.moments.t, True
        self.shape, self.mean_lam = state.x.shape, target.mass / state.x.shape[-2]
        share, zero = state.lam / self.mean_lam, torch.zeros_like(state.lam)
        mean, square = state.moments.mean, state.moments.square
        pairs = (state.x, share), mean, square, (state.grad_x, zero)
        self.rows = tuple(_rows(x, v, float(i == 0)) for i, (x, v) in enumerate(pairs))
        b, _, m = self.rows[0].shape
        signed = state.y.expand(state.lam.shape) * self.mean_lam
        self.signed = np.ascontiguousarray(signed.reshape(b, m).numpy())
        w, block, v = net.weights[0], net.blocks[0], net.weights[1][0].numpy()
        d, biased = w.shape[1], block is not w
        first, times = np.zeros((3, len(v))), np.zeros((3, len(v)))
        first[:d], times[:d] = w.numpy().T, v
        if biased:
            first[2], times[2] = block[:, -1].numpy(), v
        slopes = np.ones(len(v)) if net.slopes is None else net.slopes[0].numpy()
        self.net, self.bias = (first, times, np.ascontiguousarray(v), slopes), float(biased)
        prior = np.inf if config.prior is None else config.prior
        self.how = (
            target.level, -2 / net.square, config.lam_min, config.weight_dual, prior,
            config.weight_prior,
        )  # fmt: skip
        self.rule = (config.optimizer == "adam", float(config.momentum), BETA_SQUARE, EPS)
        self.piece = max(1, PIECE // (b * m * len(v)))
        self.outs = np.empty(b), np.empty((b, m)), np.empty((b, m))

    def advance(self, steps: int) -> None:
        """So many steps further; where they cannot be taken, the loss in `state` is not finite."""
        project = compiled_module("compiled").project  # type: ignore[union-attr]
        table = np.array(step_table(self.config, self.t, self.moved, steps)).reshape(-1, 6)
        self.t, self.moved = self.t + steps, self.moved + steps
        for i in range(0, len(table) if self.sound else 0, self.piece):
            some = table[i : i + self.piece]
            self.sound = self.sound and project(
                self.rows, self.signed, some, self.net, self.how, self.rule, self.bias, RIDGE,
                self.outs,
            )  # fmt: skip

    def state(self) -> KKTState:
        """The state after one step or more, with its losses; of tensors of its own."""
        config, lead = self.config, self.shape[:-1]
        (x, share), mean, square_of, (grad_x, _) = (self._apart(rows) for rows in self.rows)
        left, phi, on_share = (torch.from_numpy(v.copy()) for v in self.outs)
        l_stationary = left.reshape(lead[:-1]) * (-self.how[1] / 2)
        off = phi.reshape(lead) - self.y * self.level
        l_margin = square(off, (-1,)) / self.level**2
        l_dual = square((config.lam_min - share).clamp_min(0), (-1,))
        loss = l_stationary + config.weight_dual * l_dual
        loss = loss + config.weight_margin * min(self.t / config.steps, 1.0) * l_margin
        l_prior = torch.zeros_like(loss)
        if config.prior is not None:
            l_prior = square(x - x.clamp(-config.prior, config.prior), (-1, -2))
            loss = loss + config.weight_prior * l_prior
        return KKTState(
            self.t, x, self.y, share * self.mean_lam, l_stationary, l_dual, l_prior, l_margin, loss,
            grad_x, Moments(self.moved, mean, square_of), on_share.reshape(lead) / self.mean_lam,
        )  # fmt: skip

    def _apart(self, rows: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401 - an array (b, 4, m)
        held, d = torch.from_numpy(rows), self.shape[-1]
        x = held[:, :d].mT.reshape(self.shape).clone()
        return x, held[:, 3].reshape(self.shape[:-1]).clone()


def _rows(x: Tensor, share: Tensor, one: float) -> Any:  # noqa: ANN401 - an array
    """Rows of x, of `one` and of the share (b, 4, m)."""
    m, d = x.shape[-2:]
    rows = np.zeros((x[..., 0].numel() // m, 4, m))
    rows[:, :d], rows[:, 2] = x.reshape(-1, m, d).mT.numpy(), one
    rows[:, 3] = share.reshape(-1, m).numpy()
    return rows

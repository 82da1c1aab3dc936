"""The projected KKT attack in compiled loops.

The steps are those of `kkt.step` with `multipliers="projected"`, to rounding. Two layers and at
most two inputs go through `kernels.compiled`, others through `kernels.compiled_deep`. Rows are as
in `blocks`; a single input of two layers has a second coordinate that is 0.

In float32 the weights and what the layers hold are float32 from three layers on; candidates, their
moments and the multipliers' equations are float64 within a block. Two layers go in float64, which
takes no longer there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from explorer.engine.attacks.descent import EPS, RIDGE, steepness
from explorer.engine.attacks.kkt.active import TOLERANCE
from explorer.engine.attacks.kkt.blocks import PIECE, step_table
from explorer.engine.attacks.kkt.config import KKTConfig
from explorer.engine.attacks.kkt.loss import KKTState
from explorer.engine.attacks.target import Target
from explorer.engine.kernels.batched import few
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.kernels.prepared import Prepared
from explorer.engine.optim import BETA_SQUARE, Moments

INPUTS = 2  # of the loops of two layers
Array = npt.NDArray[np.float64]
_PRODUCT = 16  # weights that a product takes in the time of a slope; arbitrary


def serves(net: Prepared, state: KKTState, config: KKTConfig) -> bool:
    """Whether there are loops for these weights and settings: float64 or float32, on the CPU.

    With a floor of the multipliers, two layers of few inputs alone.
    """
    first = net.weights[0]
    return (
        (_narrow(net) or not config.lam_min)
        and first.device.type == "cpu" and state.x.dtype == first.dtype
        and first.dtype in (torch.float64, torch.float32)
        and compiled_module("compiled" if _narrow(net) else "compiled_deep") is not None
    )  # fmt: skip


def _narrow(net: Prepared) -> bool:
    return few(net) and net.weights[0].shape[1] <= INPUTS


class Projected:
    """A run, x (m, d) or (b, m, d), moved on by `advance`."""

    def __init__(self, target: Target, net: Prepared, state: KKTState, config: KKTConfig) -> None:
        """Start from `state`; `net` is the prepared network of `target`."""
        self.config, self.level, self.y, self.dtype = config, target.level, state.y, state.x.dtype
        self.steep = steepness(target, config)
        self.t, self.moved, self.sound = state.t, state.moments.t, True
        self.shape, self.mean_lam = state.x.shape, target.mass / state.x.shape[-2]
        share, zero = state.lam / self.mean_lam, torch.zeros_like(state.lam)
        mean, square = state.moments.mean, state.moments.square
        pairs = (state.x, share), mean, square, (state.grad_x, zero)
        inputs = INPUTS if _narrow(net) else self.shape[-1]
        self.rows = tuple(_rows(x, v, inputs, float(i == 0)) for i, (x, v) in enumerate(pairs))
        b, _, m = self.rows[0].shape
        signed = state.y.expand(state.lam.shape).double() * self.mean_lam
        self.signed = np.ascontiguousarray(signed.reshape(b, m).numpy())
        prior = np.inf if config.prior is None else config.prior
        self.how = (
            target.level, -2 / net.square, config.lam_min, config.weight_dual, prior,
            config.weight_prior,
        )  # fmt: skip
        self.rule = (config.optimizer == "adam", float(config.momentum), BETA_SQUARE, EPS)
        self.outs = np.empty(b), np.empty((b, m)), np.empty((b, m))
        self.narrow = _narrow(net)
        self.net, bias = _laid_two(net) if self.narrow else (_laid_deep(net), 0.0)
        rounding = 0.0 if self.dtype == torch.float64 else m * torch.finfo(self.dtype).eps
        near = RIDGE, rounding, TOLERANCE[self.dtype]
        self.last = (bias, RIDGE) if self.narrow else (near,)
        numbers = sum(len(w) + w.numel() // _PRODUCT for w in net.weights)
        self.piece = max(1, PIECE // (b * m * numbers))

    def advance(self, steps: int) -> None:
        """So many steps further. Where one start cannot take them, `sound` is False, for all."""
        name = "compiled" if self.narrow else "compiled_deep"
        project = compiled_module(name).project  # type: ignore[union-attr]
        rows = step_table(self.config, self.t, self.moved, steps, self.steep)
        table = np.array(rows).reshape(-1, 6)
        self.t, self.moved = self.t + steps, self.moved + steps
        for i in range(0, len(table) if self.sound else 0, self.piece):
            some = table[i : i + self.piece]
            self.sound = self.sound and project(
                self.rows, self.signed, some, self.net, self.how, self.rule, *self.last, self.outs
            )

    def state(self) -> KKTState:
        """The state after one step or more, with its losses; of tensors of its own."""
        config, lead = self.config, self.shape[:-1]
        (x, share), mean, square_of, (grad_x, _) = (self._apart(rows) for rows in self.rows)
        left, phi, on_share = self.outs
        l_stationary = left.reshape(lead[:-1]) * (-self.how[1] / 2)
        off = phi.reshape(lead) - self.y.numpy() * self.level
        l_margin = np.square(off).sum(-1) / self.level**2
        l_dual = np.square(np.maximum(config.lam_min - share, 0)).sum(-1)
        loss = l_stationary + config.weight_dual * l_dual
        loss = loss + config.weight_margin * min(self.t / config.steps, 1.0) * l_margin
        l_prior = np.zeros(lead[:-1])
        if config.prior is not None:
            outside = np.maximum(np.abs(x) - config.prior, 0)
            l_prior = np.square(outside).sum((-1, -2))
            loss = loss + config.weight_prior * l_prior
        moments = Moments(self.moved, self._pair(mean), self._pair(square_of))
        lam, on_lam = share * self.mean_lam, on_share.reshape(lead) / self.mean_lam
        made = self._tensor
        return KKTState(
            self.t, made(x), self.y, made(lam), made(l_stationary), made(l_dual), made(l_prior),
            made(l_margin), made(loss), made(grad_x), moments, made(on_lam),
        )  # fmt: skip

    def _apart(self, rows: Array) -> tuple[Array, Array]:
        x = rows[:, : self.shape[-1]].swapaxes(1, 2).reshape(self.shape)
        return x.copy(), rows[:, -1].reshape(self.shape[:-1]).copy()

    def _tensor(self, v: Array) -> Tensor:
        """The same numbers, which the caller owns, as a tensor of the run's type."""
        made = torch.from_numpy(np.asarray(v))
        return made if made.dtype == self.dtype else made.to(self.dtype)

    def _pair(self, both: tuple[Array, Array]) -> tuple[Tensor, Tensor]:
        return self._tensor(both[0]), self._tensor(both[1])


def _laid_two(net: Prepared) -> tuple[tuple[Any, ...], float]:
    """The weights of two layers as `compiled.project` wants them, and whether there is a bias."""
    w, block, v = net.weights[0], net.blocks[0], net.weights[1][0].double().numpy()
    d, biased = w.shape[1], block is not w
    first, times = np.zeros((3, len(v))), np.zeros((3, len(v)))
    first[:d], times[:d] = w.numpy().T, v
    if biased:
        first[2], times[2] = block[:, -1].numpy(), v
    slopes = np.ones(len(v)) if net.slopes is None else net.slopes[0].double().numpy()
    return (first, times, np.ascontiguousarray(v), slopes), float(biased)


def _laid_deep(net: Prepared) -> tuple[Any, ...]:
    """The weights as `compiled_deep` wants them."""
    sizes = [block.shape for block in net.blocks]
    flat = torch.cat([block.reshape(-1) for block in net.blocks])
    slopes = flat.new_ones(sum(len(w) for w in net.weights[:-1]))
    if net.slopes is not None:
        slopes = torch.cat(net.slopes)
    outs, ins = (np.array(each) for each in zip(*sizes, strict=True))
    return flat.numpy(), outs, ins, slopes.numpy(), float(sum(net.squares[:-1]))


def _rows(x: Tensor, share: Tensor, inputs: int, one: float) -> Array:
    """Rows of x, of `one` and of the share (b, inputs + 2, m)."""
    m, d = x.shape[-2:]
    rows = np.zeros((x[..., 0].numel() // m, inputs + 2, m))
    rows[:, :d], rows[:, inputs] = x.reshape(-1, m, d).mT.numpy(), one
    rows[:, -1] = share.reshape(-1, m).numpy()
    return rows

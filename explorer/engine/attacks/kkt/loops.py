"""The KKT attack in compiled loops.

The steps are those of `kkt.step`, to rounding. Two layers and at most two inputs go through
`kernels.compiled`; projected multipliers of others through `kernels.compiled_deep`. A start is rows
of its candidates: the coordinates of x, a one, and lam / mean; a single input of two layers has a
second coordinate that is 0.

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

from explorer.engine.attacks.descent import (
    PIECE,
    rule_of,
    steepness,
    step_table,
    terms_of,
)
from explorer.engine.attacks.kkt.config import KKTConfig
from explorer.engine.attacks.kkt.loss import KKTState
from explorer.engine.attacks.target import Target
from explorer.engine.kernels.batched import Prepared
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.kernels.steps import SolverTolerances
from explorer.engine.nonnegative import RIDGE
from explorer.engine.optim import Moments

INPUTS = 2  # of the loops of two layers
TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-6}  # arbitrary: a gain that is rounding
Array = npt.NDArray[np.float64]
_PRODUCT = 16  # weights that a product takes in the time of a slope; arbitrary


def serves(net: Prepared, state: KKTState, config: KKTConfig) -> bool:
    """Whether there are loops for these weights and settings: float64 or float32, on the CPU.

    With joint multipliers or a floor of theirs, two layers of few inputs alone.
    """
    first, narrow = net.weights[0], _narrow(net)
    return (
        config.prior != "pixels"
        and (narrow or (config.multipliers == "projected" and not config.lam_min))
        and first.device.type == "cpu"
        and state.x.dtype == first.dtype
        and first.dtype in (torch.float64, torch.float32)
        and compiled_module("compiled" if narrow else "compiled_deep") is not None
    )


def _narrow(net: Prepared) -> bool:
    return net.two_layers and net.weights[0].shape[1] <= INPUTS


class LoopRun:
    """A run, x (m, d) or (b, m, d), moved on by `advance`."""

    def __init__(self, target: Target, net: Prepared, state: KKTState, config: KKTConfig) -> None:
        """Start from `state`; `net` is the prepared network of `target`."""
        self.config, self.level, self.y, self.dtype = config, target.level, state.y, state.x.dtype
        self.steep, self.projected = steepness(target, config), config.multipliers == "projected"
        self.t, self.moved, self.sound = state.t, state.moments.t, True
        self.shape, self.mean_lam = state.x.shape, target.mass / state.x.shape[-2]
        share, mean, square = state.lam / self.mean_lam, state.moments.mean, state.moments.square
        on_share = state.grad_lam * (0.0 if self.projected else self.mean_lam)
        pairs = (state.x, share), mean, square, (state.grad_x, on_share)
        narrow = _narrow(net)
        inputs = INPUTS if narrow else self.shape[-1]
        self.rows = tuple(_rows(x, v, inputs, float(i == 0)) for i, (x, v) in enumerate(pairs))
        b, _, m = self.rows[0].shape
        self.signed = np.empty((b, m))
        self.signed[:] = state.y.numpy()
        self.signed *= self.mean_lam
        self.terms, self.rule = terms_of(config, net.square, target.level), rule_of(config)
        outs = np.empty(b), np.empty((b, m)), np.empty((b, m))
        self.left, self.phi, self.on_share = outs
        loops: Any = compiled_module("compiled" if narrow else "compiled_deep")
        self.loop = loops.project if self.projected else loops.descend
        self.last: tuple[Any, ...] = (outs,)
        if narrow:
            key = ("narrow loops", config.merge_angle, config.same_slopes, self.projected)
            self.net, bias = target.kept(key, lambda: _laid_two(net, self.projected))
            if self.projected:
                self.last = (bias, RIDGE, outs)
        else:
            self.net = _laid_deep(net)
            rounding = 0.0 if self.dtype == torch.float64 else m * torch.finfo(self.dtype).eps
            self.last = (SolverTolerances(RIDGE, rounding, TOLERANCE[self.dtype]), outs)
        numbers = sum(len(w) + w.numel() // _PRODUCT for w in net.weights)
        self.piece = max(1, PIECE // (b * m * numbers))

    def advance(self, steps: int) -> None:
        """So many steps further. Where one start cannot take them, `sound` is False, for all."""
        table = np.array(step_table(self.config, self.t, self.moved, steps, self.steep))
        self.t, self.moved = self.t + steps, self.moved + steps
        for i in range(0, steps if self.sound else 0, self.piece):
            some = table[i : i + self.piece]
            self.sound = self.sound and self.loop(
                self.rows, self.signed, some, self.net, self.terms, self.rule, *self.last
            )
        self.sound = self.sound and bool(np.isfinite(self.rows[2]).all())  # squares overflow first

    def state(self) -> KKTState:
        """Return the state after one step or more, with its losses; of tensors of its own."""
        config, lead = self.config, self.shape[:-1]
        (x, share), mean, square_of, (grad_x, _) = (self._apart(rows) for rows in self.rows)
        l_stationary = self.left.reshape(lead[:-1]) / self.terms.square
        off = self.phi.reshape(lead) - self.y.numpy() * self.level
        l_margin = np.square(off).sum(-1) / self.level**2
        l_dual = np.square(np.maximum(config.lam_min - share, 0)).sum(-1)
        loss = l_stationary + config.weight_dual * l_dual
        loss = loss + config.weight_margin * min(self.t / config.steps, 1.0) * l_margin
        outside = np.maximum(np.abs(x) - config.half_width, 0)
        l_prior = np.square(outside).sum((-1, -2))
        loss = loss + config.weight_prior * l_prior
        moments = Moments(self.moved, self._pair(mean), self._pair(square_of))
        lam, on_lam = share * self.mean_lam, self.on_share.reshape(lead) / self.mean_lam
        made = self._tensor
        return KKTState(
            self.t, made(x), self.y, made(lam), made(l_stationary), made(l_dual), made(l_prior),
            made(l_margin), made(loss), made(grad_x), moments, made(on_lam),
        )  # fmt: skip

    def _apart(self, rows: Array) -> tuple[Array, Array]:
        x = rows[:, : self.shape[-1]].swapaxes(1, 2).reshape(self.shape)
        return x.copy(), rows[:, -1].reshape(self.shape[:-1]).copy()

    def _tensor(self, v: Array) -> Tensor:
        """Return the same numbers, which the caller owns, as a tensor of the run's type."""
        made = torch.from_numpy(np.asarray(v))
        return made if made.dtype == self.dtype else made.to(self.dtype)

    def _pair(self, both: tuple[Array, Array]) -> tuple[Tensor, Tensor]:
        return self._tensor(both[0]), self._tensor(both[1])


def _laid_two(net: Prepared, projected: bool) -> tuple[tuple[Any, ...], float]:
    """Return the weights of two layers as `compiled` wants them, and whether there is a bias."""
    w, block, v = net.weights[0], net.blocks[0], net.weights[1][0].double().numpy()
    d, biased = w.shape[1], block is not w
    first, times = np.zeros((3, len(v))), np.zeros((3, len(v)))
    first[:d], times[:d] = w.numpy().T, v
    if biased:
        first[2], times[2] = block[:, -1].numpy(), v
    slopes = np.ones(len(v)) if net.slopes is None else net.slopes[0].double().numpy()
    if not projected:
        first, times = (np.ascontiguousarray(rows.T) for rows in (first, times))
    return (first, times, np.ascontiguousarray(v), slopes), float(biased)


def _laid_deep(net: Prepared) -> tuple[Any, ...]:
    """Return the weights as `compiled_deep` wants them."""
    sizes = [block.shape for block in net.blocks]
    flat = torch.cat([block.reshape(-1) for block in net.blocks])
    slopes = flat.new_ones(sum(len(w) for w in net.weights[:-1]))
    if net.slopes is not None:
        slopes = torch.cat(net.slopes)
    outs, ins = (np.array(each) for each in zip(*sizes, strict=True))
    return flat.numpy(), outs, ins, slopes.numpy(), float(sum(net.squares[:-1]))


def _rows(x: Tensor, share: Tensor, inputs: int, one: float) -> Array:
    """Return rows of x, of `one` and of the share (b, inputs + 2, m)."""
    m, d = x.shape[-2:]
    points = x.numpy().reshape(-1, m, d)
    rows = np.zeros((len(points), inputs + 2, m))
    rows[:, :d], rows[:, inputs] = points.swapaxes(1, 2), one
    rows[:, -1] = share.numpy().reshape(-1, m)
    return rows

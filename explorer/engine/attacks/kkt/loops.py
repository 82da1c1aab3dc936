"""The KKT attack in compiled loops: the steps of `kkt.step`, to rounding; see `descent_loops`."""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.engine.attacks.descent_loops import (
    INPUTS,
    LAYERS,
    TOLERANCE,
    TWO_INPUTS,
    Begin,
    LayersRun,
    LoopRun,
    TwoInputsRun,
    lay,
    sum_rounding,
    tensor,
)
from explorer.engine.attacks.kkt.config import KKTConfig
from explorer.engine.attacks.kkt.loss import KKTState
from explorer.engine.attacks.target import Target
from explorer.engine.kernels.batched import Prepared
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.kernels.steps import Multipliers
from explorer.engine.nonnegative import RIDGE


def serves(net: Prepared, state: KKTState) -> bool:
    """Whether there are loops for these weights: float64 or float32, on the CPU."""
    first = net.weights[0]
    return (
        first.device.type == "cpu"
        and state.x.dtype == first.dtype
        and first.dtype in (torch.float64, torch.float32)
        and compiled_module(TWO_INPUTS if _narrow(net) else LAYERS) is not None
    )


def _narrow(net: Prepared) -> bool:
    return net.two_layers and net.weights[0].shape[1] <= INPUTS


class KKTRun:
    """A run, x (m, d) or (b, m, d), moved on by `advance`."""

    def __init__(self, target: Target, net: Prepared, state: KKTState, config: KKTConfig) -> None:
        """Start from `state`; `net` is the prepared network of `target`."""
        self.first, self.mean = state, target.mass / state.x.shape[-2]
        begin = _begin(state, self.mean, config.multipliers == "projected")
        self.run: LoopRun = (
            TwoInputsRun(target, config, begin, net, self.mean, config.same_slopes)
            if _narrow(net)
            else _layers_run(target, config, begin, net, self.mean, state)
        )

    @property
    def sound(self) -> bool:
        """Return whether all starts could take their steps."""
        return self.run.sound

    def advance(self, steps: int) -> None:
        """So many steps further. Where one start cannot take them, `sound` is False, for all."""
        self.run.advance(steps)

    def look(self) -> None:
        """Make the losses and gradients anew, at the candidates that the run starts from."""
        self.run.look()

    def state(self) -> KKTState:
        """Return the state after one step or more, with its losses; of tensors of its own."""
        run, first = self.run, self.first
        made, (x, lam) = run.numbers(), (first.x, first.lam)
        losses = torch.from_numpy(made.losses.reshape(5, *first.loss.shape)).to(first.loss.dtype)
        l_stationary, l_dual, l_prior, l_margin, loss = losses.unbind()
        return KKTState(
            run.t, tensor(made.params[0], x), first.y, tensor(made.params[1] * self.mean, lam),
            l_stationary, l_dual, l_prior, l_margin, loss, tensor(made.grad_x, x),
            made.moments(run.moved, (x, lam)), tensor(made.grad_coef, lam),
        )  # fmt: skip


def _begin(state: KKTState, mean: float, projected: bool) -> Begin:
    """Return what the loops begin with, with an axis of starts and one of multipliers."""
    on_share = state.grad_lam * (0.0 if projected else mean)
    pairs = (
        (state.x, state.lam / mean), state.moments.mean, state.moments.square,
        (state.grad_x, on_share),
    )  # fmt: skip
    m, d = state.x.shape[-2:]
    begun = [(x.reshape(-1, m, d), share.reshape(-1, m, 1)) for x, share in pairs]
    y: Tensor = state.y.expand(state.lam.shape).reshape(-1, m)
    return Begin(begun[0], begun[1], begun[2], begun[3], y, state.t, state.moments.t)


def _layers_run(
    target: Target, config: KKTConfig, begin: Begin, net: Prepared, mean: float, state: KKTState
) -> LayersRun:
    dtype, m = state.x.dtype, state.x.shape[-2]
    kind = Multipliers(
        False, config.multipliers == "projected", False, mean, RIDGE, sum_rounding(m, dtype),
        TOLERANCE[dtype], 0.0, -1.0,
    )  # fmt: skip
    key = ("layers", config.merge_angle, config.same_slopes)
    layers = target.kept(key, lambda: lay(net.blocks, net.slopes))
    own, loss = torch.zeros_like(begin.y).long(), state.loss.reshape(-1)
    basis = begin.y[:, :, None, None]
    return LayersRun(target, config, begin, layers, net.square, kind, basis, own, loss)

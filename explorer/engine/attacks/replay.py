"""Many steps of the joint attack in one go: static buffers, no number read back in between.

The steps are those of `kkt.step` with `multipliers="joint"`; between them only the gradients are
computed, and the losses once at the end. What changes from step to step (rates, alpha, the weight
of the margin) is a table on the device, written before each block. On CUDA a block of k steps is
captured as one graph and replayed, so that a step costs no launches; elsewhere the same function
runs eagerly. The capture has not run on a GPU yet. On the CPU, two layers of few inputs walk as
`packed` says, group by group: the starts of a group take all steps of a block while they lie near
the processor; two inputs in compiled loops, where numba is installed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from explorer.engine.attacks.batched import Alpha, few
from explorer.engine.attacks.descent import EPS
from explorer.engine.attacks.kkt_config import KKTConfig
from explorer.engine.attacks.kkt_loss import KKTState, Scale, evaluate, pulls
from explorer.engine.attacks.packed import Pair, held, packed
from explorer.engine.attacks.stationarity import denormals_flushed
from explorer.engine.attacks.target import Target
from explorer.engine.optim import BETA_SQUARE, Moments

BLOCK = 50  # steps of one graph; arbitrary, large against the one launch it costs
_WARM = 3  # runs before a capture, as torch's notes on CUDA graphs ask for


class Replay:
    """The buffers of one run, x (m, d) or (b, m, d), moved on by `advance`."""

    def __init__(
        self, target: Target, state: KKTState, config: KKTConfig, block: int = BLOCK
    ) -> None:
        """Start from `state`. ValueError for projected multipliers: they are solved on the CPU."""
        if config.multipliers != "joint":
            raise ValueError(
                f"replay takes multipliers='joint'; got {config.multipliers!r}. Use kkt.step."
            )
        self.target, self.config, self.block = target, config, block
        self.net = target.prepared(config.merge_angle, config.same_slopes)
        self.scale = Scale(target.mass / state.x.shape[-2], target.level)
        self.y, self.t, self.moved = state.y, state.t, state.moments.t
        self.params = (state.x.clone(), state.lam / self.scale.mean)
        self.mean = tuple(v.clone() for v in state.moments.mean)
        self.square = tuple(v.clone() for v in state.moments.square)
        self.grads = (state.grad_x.clone(), state.grad_lam * self.scale.mean)
        self.packed = []
        if few(self.net):
            signed = state.y.expand(state.lam.shape) * self.scale.mean
            kept = cast("list[Pair]", [self.params, self.mean, self.square, self.grads])
            self.packed = packed(self.net, config, self.scale.level, signed, kept)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.on_cuda = state.x.is_cuda
        if self.on_cuda:
            self.table = state.x.new_zeros(block, 6)

    def advance(self, steps: int) -> None:
        """So many steps further. Whether all was finite shows in `state`."""
        with torch.no_grad(), denormals_flushed():
            while steps >= self.block and self.on_cuda:
                self._replay()
                steps -= self.block
            rows = self._rows(steps)
            for some in self.packed:
                some.advance(rows)
            if not self.packed:
                for row in rows:
                    self._step(row)

    def state(self) -> KKTState:
        """The state here, with its losses; of tensors of its own."""
        if self.packed:
            self.params, self.mean, self.square = held(self.packed)
        moments = Moments(
            self.moved, tuple(v.clone() for v in self.mean), tuple(v.clone() for v in self.square)
        )
        x, share = (p.clone() for p in self.params)
        return evaluate(
            self.target, self.config, self.t, x, self.y, share * self.scale.mean, moments
        )

    def _rows(self, steps: int) -> list[list[float]]:
        """The table: a row of six numbers for each step.

        The rates of x and of lam, Adam's second correction, the share of the rates, alpha and the
        margin's weight.
        """
        config, rows = self.config, []
        for _ in range(steps):
            rate, self.moved = config.rate(self.t), self.moved + 1
            self.t += 1
            first, second = 1.0, 1.0
            if config.optimizer == "adam":
                first -= config.momentum**self.moved
                second -= BETA_SQUARE**self.moved
            margin = config.weight_margin * min(self.t / config.steps, 1.0)
            share = rate / first
            rows.append([
                config.lr_x * share, config.lr_lam * share, second**-0.5, share,
                config.alpha(self.t), margin,
            ])  # fmt: skip
        return rows

    def _step(self, row: list[float] | Tensor) -> None:
        """One step in place; a row of the table, as numbers or as a tensor on the device."""
        now = cast("list[Alpha]", row)
        beta = self.config.momentum
        buffers = zip(self.params, self.mean, self.square, self.grads, now[:2], strict=True)
        for p, mean, square, grad, rate in buffers:
            if self.config.optimizer == "sgd":
                p.add_(mean.mul_(beta).sub_(grad.mul_(rate)))
            else:
                mean.lerp_(grad, 1 - beta)
                square.lerp_(grad.square(), 1 - BETA_SQUARE)
                p.sub_((mean * rate).div_((square.sqrt() * now[2]).add_(EPS)))
        at = (self.params[0], self.y, self.params[1])
        fresh = pulls(self.net, self.config, self.scale, at, now[4], now[5])
        if self.on_cuda:  # a graph writes where it was captured
            for grad, new in zip(self.grads, fresh, strict=True):
                grad.copy_(new)
        else:
            self.grads = fresh

    def _replay(self) -> None:
        """A block of steps as one graph, captured at the first call."""
        if self.graph is None:
            self.graph = self._captured()
        self.table.copy_(torch.tensor(self._rows(self.block), dtype=self.table.dtype))
        self.graph.replay()

    def _captured(self) -> torch.cuda.CUDAGraph:
        buffers = (*self.params, *self.mean, *self.square, *self.grads)
        kept = [v.clone() for v in buffers]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM):
                self._step(self.table[0])
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for row in self.table:
                self._step(row)
        for buffer, old in zip(buffers, kept, strict=True):
            buffer.copy_(old)
        return graph


def advance(target: Target, state: KKTState, config: KKTConfig, steps: int) -> KKTState:
    """The state so many steps on, as `kkt.step` would give; if not finite, unmoved, `diverged`."""
    run = Replay(target, state, config)
    run.advance(steps)
    after = run.state()
    return after if bool(torch.isfinite(after.loss).all()) else replace(state, diverged=True)

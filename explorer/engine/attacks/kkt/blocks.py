"""The KKT attack in blocks: static buffers, and no number read back in between.

The steps are those of `kkt.step`; between them only the gradients are computed, and the losses once
at the end. What changes from step to step (rates, alpha, the weight of the margin) is a table, on
CUDA one on the device, written before each block. There a block is captured as one graph and
replayed, so that a step costs no launches; elsewhere, and where the capture fails, the same
function runs call by call.

Projected multipliers are solved for by `cones` from the set of the step before, with few rounds: a
fixed program too. After a block one number is read: whether that was enough. The starts for which
it was not go through the block again, call by call, with twice the rounds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, cast

import torch
from torch import Tensor

from explorer.engine.attacks.descent import EPS, steepness, step_table
from explorer.engine.attacks.kkt.config import KKTConfig
from explorer.engine.attacks.kkt.loss import KKTState, Scale, evaluate, pulls
from explorer.engine.attacks.target import Target
from explorer.engine.kernels.batched import Alpha, LossPass
from explorer.engine.kernels.reference import denormals_flushed
from explorer.engine.kernels.steps import ALPHA, MARGIN, SECOND
from explorer.engine.network import Network
from explorer.engine.nonnegative import MOST, ROUNDS, pivoting
from explorer.engine.optim import BETA_SQUARE, Moments

Pair = tuple[Tensor, Tensor]  # of x (..., m, d) and of lam / mean (..., m)
BLOCK = 50  # steps of one graph; arbitrary, large against the one launch it costs
_WARM = 3  # runs before a capture, as torch's notes on CUDA graphs ask for


@dataclass(frozen=True, eq=False)
class Buffers:
    """What a block moves in place: each pair is of x (..., m, d) and of lam / mean (..., m).

    Attributes:
        params: the iterate.
        mean: of the optimiser.
        square: of the optimiser.
        grads: at the iterate; of projected multipliers 0.
        y: labels (..., m).
        unsettled: for which starts (...,) a projection needed more rounds.
    """

    params: Pair
    mean: Pair
    square: Pair
    grads: Pair
    y: Tensor
    unsettled: Tensor

    @property
    def all(self) -> tuple[Tensor, ...]:
        """Every buffer."""
        pairs = (self.params, self.mean, self.square, self.grads)
        return (*(v for pair in pairs for v in pair), self.y, self.unsettled)

    def copies(self, at: Tensor | None = None) -> Buffers:
        """Copies, of the starts `at` alone where some are named."""
        held = [v.clone() if at is None else v[at] for v in self.all]
        params, mean, square, grads = ((held[i], held[i + 1]) for i in (0, 2, 4, 6))
        return Buffers(params, mean, square, grads, *held[8:])

    def put(self, other: Buffers, at: Tensor | None = None) -> None:
        """Take over the numbers of `other`, into the starts `at` where some are named."""
        for mine, theirs in zip(self.all, other.all, strict=True):
            mine[... if at is None else at] = theirs


class Replay:
    """The buffers of one run, x (m, d) or (b, m, d), moved on by `advance`."""

    sound = True  # each start goes on, whatever the others do; see `KKTRun`

    def __init__(
        self, target: Target, state: KKTState, config: KKTConfig, block: int = BLOCK,
        portable: bool = False,
    ) -> None:  # fmt: skip
        """Start from `state`. `portable`: run on the CPU what other devices run."""
        self.target, self.config, self.block = target, config, block
        self.steep = steepness(target, config)
        self.net = target.prepared_network(config.merge_angle, config.same_slopes)
        self.projected = config.multipliers == "projected"
        if portable or self.projected:
            self.net = replace(self.net, portable=True)
        self.scale = Scale(target.mass / state.x.shape[-2], target.level)
        self.y, self.t, self.moved = state.y, state.t, state.moments.t
        pulled = torch.zeros_like(state.lam) if self.projected else state.grad_lam * self.scale.mean
        pairs = (state.x, state.lam / self.scale.mean), state.moments.mean, state.moments.square
        labels = state.y.expand(state.lam.shape)
        off = torch.zeros_like(state.lam[..., 0], dtype=torch.bool)
        kept = cast("list[Pair]", [*pairs, (state.grad_x, pulled)])
        self.held = Buffers(kept[0], kept[1], kept[2], kept[3], labels, off).copies()
        self.graph: Graph | None = None
        self.capture: Callable[[Callable[[], None], Callable[[], None]], Graph] = cuda_graph
        self.captures = state.x.is_cuda
        self.table = state.x.new_zeros(block, 6)

    def advance(self, steps: int) -> None:
        """So many steps further. Whether all was finite shows in `state`."""
        with torch.no_grad(), denormals_flushed():
            while steps >= self.block and (self.captures or self.projected):
                self._block(self._rows(self.block))
                steps -= self.block
            if steps and self.projected:
                self._block(self._rows(steps))
                steps = 0
            self.descend(self.held, self._rows(steps))

    def state(self) -> KKTState:
        """Return the state here, with its losses; of tensors of its own."""
        params, mean, square = self.held.params, self.held.mean, self.held.square
        (x, share), *both = (tuple(v.clone() for v in pair) for pair in (params, mean, square))
        lam = share * self.scale.mean
        moments = Moments(self.moved, *both)
        return evaluate(self.target, self.config, self.t, x, self.y, lam, moments)

    def _rows(self, steps: int) -> list[list[float]]:
        """Return the rows of `step_table` for the next steps, which count as taken."""
        rows = step_table(self.config, self.t, self.moved, steps, self.steep)
        self.t, self.moved = self.t + steps, self.moved + steps
        return rows

    def descend(
        self, held: Buffers, rows: Sequence[Sequence[float]] | Tensor, rounds: int = ROUNDS
    ) -> None:
        """A step in place for each row, numbers or a tensor on the device; no number is read."""
        for row in rows:
            self._step(held, cast("Sequence[Alpha]", row), rounds)

    def _step(self, held: Buffers, row: Sequence[Alpha], rounds: int) -> None:
        beta = self.config.momentum
        buffers = zip(held.params, held.mean, held.square, held.grads, row[:2], strict=True)
        for p, mean, square, grad, rate in buffers:
            if self.config.optimizer == "sgd":
                p.add_(mean.mul_(beta).sub_(grad.mul_(rate)))
            else:
                mean.lerp_(grad, 1 - beta)
                square.lerp_(grad.square(), 1 - BETA_SQUARE)
                p.sub_((mean * rate).div_((square.sqrt() * row[SECOND]).add_(EPS)))
        at = (held.params[0], held.y, held.params[1])
        project = partial(self._solve, held, rounds) if self.projected else None
        fresh = pulls(self.net, self.config, self.scale, at, row[ALPHA], row[MARGIN], project)
        for grad, new in zip(held.grads, fresh[: 1 if self.projected else 2], strict=False):
            grad.copy_(new)  # a graph writes where it was captured

    def _solve(self, held: Buffers, rounds: int, run: LossPass) -> None:
        """The multipliers of least residual, in place."""
        share, y, floor = held.params[1], held.y, self.config.lam_min * self.scale.mean
        gram, inner = run.normal()
        gram, inner = gram * (y.unsqueeze(-1) * y.unsqueeze(-2)), inner * y
        known = share > self.config.lam_min
        found = pivoting(gram, inner - floor * gram.sum(-1), known, rounds)
        share.copy_((found.u + floor) / self.scale.mean)
        held.unsettled.logical_or_(found.unsettled)

    def _block(self, rows: Sequence[Sequence[float]]) -> None:
        """A block of steps; of projected ones again where the rounds were too few."""
        self.held.unsettled.fill_(False)
        before = self.held.copies() if self.projected else None
        if len(rows) < self.block or not self._replay(rows):
            self.descend(self.held, rows, ROUNDS)
        rounds = ROUNDS
        while before is not None and rounds < MOST and bool(self.held.unsettled.any()):
            rounds *= 2
            single = not self.held.unsettled.ndim
            at = None if single else self.held.unsettled.nonzero().squeeze(-1)
            again = before.copies(at)
            self.descend(again, rows, rounds)
            self.held.put(again, at)

    def _replay(self, rows: Sequence[Sequence[float]]) -> bool:
        """Return whether the block was taken as one graph, captured at the first one.

        Where the capture fails, a warning says so once, and no other is tried.
        """
        if self.captures and self.graph is None:
            kept = self.held.copies()
            try:
                self.graph = self.capture(
                    lambda: self.descend(self.held, self.table[:1].expand(_WARM, -1), ROUNDS),
                    lambda: self.descend(self.held, self.table, ROUNDS),
                )
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:  # such as an operation that no graph can hold
                self.captures = False
                why = str(error).partition("\n")[0]
                warnings.warn(
                    f"a block was not captured as a graph ({why}); its steps go call by call, "
                    "the same and more slowly",
                    stacklevel=2,
                )
            self.held.put(kept)
        if self.graph is None:
            return False
        self.table.copy_(torch.tensor(rows, dtype=self.table.dtype))
        self.graph.replay()
        return True


class Graph(Protocol):
    """A captured program."""

    def replay(self) -> None:
        """Run it again, on the memory that it was captured on."""


def cuda_graph(warm: Callable[[], None], program: Callable[[], None]) -> Graph:
    """Return the program as a graph of CUDA, after `warm` has run beside the usual work.

    Raises:
        RuntimeError: where the program cannot be captured.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        warm()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        program()
    return graph


def start_bytes(net: Network, m: int, dtype: torch.dtype, projected: bool) -> int:
    """Return the memory that one start of m candidates takes in a block on a device, about.

    Counted on the program: arrays (m, k), what is left of the weights, the buffers, and for
    projected multipliers Gram matrices in float64.
    """
    first, *rest = (len(w) * (w.shape[1] + 1) for w in net.weights[:-1])
    arrays, weights = (11 if rest else 7) * m * sum(net.widths), 4 * first + 2 * sum(rest)
    numbers = arrays + weights + 9 * m * (net.d + 1)
    return dtype.itemsize * numbers + (4 * 8 * m * m if projected else 0)

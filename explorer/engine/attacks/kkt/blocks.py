"""The KKT attack in place: blocks of steps, and two layers and few inputs in one array.

Columns are candidates; rows are the coordinates of x, a one, and lam / mean. So an optimiser's step
is one call on everything, and the rows down to the one are what the first layer takes. The steps
are those of `kkt.step` with `multipliers="joint"`, to rounding. Two inputs in float64
go through compiled loops: see `kernels.compiled`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from explorer.engine.attacks.cones import MOST, ROUNDS, cones
from explorer.engine.attacks.descent import EPS, DescentConfig, steepness
from explorer.engine.attacks.kkt.config import KKTConfig
from explorer.engine.attacks.kkt.loss import KKTState, Scale, apart, evaluate, pulls
from explorer.engine.attacks.target import Target
from explorer.engine.kernels.batched import Alpha, few
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.kernels.prepared import Pass, Prepared
from explorer.engine.kernels.reference import denormals_flushed
from explorer.engine.kernels.small import Workspace
from explorer.engine.network import Network
from explorer.engine.optim import BETA_SQUARE, Moments

Pair = tuple[Tensor, Tensor]  # of x (..., m, d) and of lam / mean (..., m)
PIECE = 2**24  # candidates x neurons x steps in one call; Ctrl-C is heard between; arbitrary


def pack_starts(
    net: Prepared, config: KKTConfig, level: float, signed: Tensor, held: Sequence[Pair]
) -> list[Packed]:
    """A run, in the groups of starts that fit near the processor; see `Packed`.

    Groups of one size share a workspace: they descend one after another.
    """
    loops = compiled_module("compiled") if net.weights[0].shape[1] == 2 else None
    if loops is not None and signed.dtype == torch.float64:
        return [Compiled(loops.descend, net, config, level, signed, held)]
    groups: Sequence[Any] = apart(net, held[0][0]) or [...]
    workspaces: dict[Any, Workspace] = {}
    made = []
    for i in groups:
        own = [(x[i], share[i]) for x, share in held]
        lead, m = tuple(own[0][0].shape[:-2]), own[0][0].shape[-2]
        if lead not in workspaces:
            workspaces[lead] = Workspace(net, lead, m)
        made.append(Packed(workspaces[lead], net.square, config, level, signed[i], own))
    return made


def parameters_of(runs: list[Packed]) -> list[Pair]:
    """Parameters, mean and square of all starts, each of x and of lam / mean; copies."""
    pairs = [run.held() for run in runs]
    if len(runs) == 1:
        return pairs[0]
    ndim = runs[0].x.ndim
    join = torch.stack if ndim == 2 else torch.cat
    return [
        (join([x for x, _ in each]), join([v for _, v in each]))
        for each in zip(*pairs, strict=True)
    ]


class Packed:
    """Some starts of a run, x (..., m, d), moved on by `advance`."""

    def __init__(
        self, workspace: Workspace, square: float, config: KKTConfig, level: float, signed: Tensor,
        held: Sequence[Pair],
    ) -> None:  # fmt: skip
        """Begin from `held`: parameters, mean, square and gradient, each of x and of lam / mean.

        Args:
            workspace: the work arrays, for their shape.
            square: ||theta||^2.
            config: the settings.
            level: margin of the target, see `Target`.
            signed: y times the mean multiplier (..., m).
            held: see above.
        """
        x = held[0][0]
        self.config, self.level, self.d = config, level, x.shape[-1]
        self.all, self.mean, self.square, self.grad = (
            _together(*pair, one=float(i == 0)) for i, pair in enumerate(held)
        )
        self.workspace = workspace
        self.x, self.share = self.all[..., : self.d, :], self.all[..., -1, :]
        self.grad_a, self.grad_x = self.grad[..., :-1, :], self.grad[..., : self.d, :]
        self.grad_share = self.grad[..., -1, :]
        self.signed, self.factor = signed, signed * (-2 / square)
        self.margin = signed.sign() * level
        self.c, self.c_factor = torch.empty_like(self.share), torch.empty_like(self.share)
        self.rates = x.new_zeros(self.d + 2, 1)
        self.rates[: self.d], self.rates[-1] = config.lr_x, config.lr_lam

    def _apart(self, rows: Tensor) -> Pair:
        return rows[..., : self.d, :].mT.contiguous(), rows[..., -1, :].clone()

    def held(self) -> list[Pair]:
        """Parameters, mean and square, each of x and of lam / mean; copies."""
        return [self._apart(rows) for rows in (self.all, self.mean, self.square)]

    def advance(self, rows: Sequence[Sequence[float]]) -> None:
        """A step for each row of the table of `Replay`."""
        self.workspace.take(self.all[..., :-1, :])
        for row in rows:
            self._step(row)

    def _step(self, row: Sequence[float]) -> None:
        second, rate, alpha, margin = row[2:]
        if self.config.optimizer == "sgd":
            self.mean.mul_(self.config.momentum).addcmul_(self.grad, self.rates, value=-rate)
            self.all.add_(self.mean)
        else:
            self.mean.lerp_(self.grad, 1 - self.config.momentum)
            self.square.mul_(BETA_SQUARE).addcmul_(self.grad, self.grad, value=1 - BETA_SQUARE)
            root = self.square.sqrt().mul_(second).add_(EPS)
            self.all.addcdiv_(self.mean * self.rates, root, value=-rate)
        self._pull(alpha, margin)

    def _pull(self, alpha: float, margin: float) -> None:
        """The gradients of `kkt_loss.pulls`, in place."""
        workspace, config = self.workspace, self.config
        workspace.lay(None, alpha)
        if margin:
            off = (workspace.phi - self.margin).unsqueeze(-2)
        torch.mul(self.share, self.signed, out=self.c)
        workspace.explain(self.c)
        workspace.sweep(sloped=margin > 0)
        torch.mul(self.share, self.factor, out=self.c_factor)
        torch.mul(workspace.onto_a, self.c_factor.unsqueeze(-2), out=self.grad_a)
        torch.mul(workspace.onto_c, self.factor, out=self.grad_share)
        if config.weight_dual:
            low = self.share.clamp_max(config.lam_min)
            if config.lam_min:
                low.sub_(config.lam_min)
            self.grad_share.add_(low, alpha=2 * config.weight_dual)
        if margin:
            self.grad_x.add_(workspace.slopes_x.mul_(off), alpha=2 * margin / self.level**2)
        if config.prior is not None:
            outside = self.x - self.x.clamp(-config.prior, config.prior)
            self.grad_x.add_(outside, alpha=2 * config.weight_prior)


class Compiled(Packed):
    """All starts of a run, moved on by compiled loops."""

    def __init__(
        self, descend: Callable[..., None], net: Prepared, config: KKTConfig, level: float,
        signed: Tensor, held: Sequence[Pair],
    ) -> None:  # fmt: skip
        """See `Packed`; `descend` is that of `kernels.compiled`."""
        m = held[0][0].shape[-2]
        work = Workspace(net, (), 1)  # for the factors alone
        super().__init__(work, net.square, config, level, signed, held)
        one = work.v.new_ones(len(work.v[0])) if work.slopes is None else work.slopes
        parts = (work.first.T, work.times.T, work.v[0], one)
        self.descend, self.net = descend, tuple(np.ascontiguousarray(v.numpy()) for v in parts)
        rows = (self.all, self.mean, self.square, self.grad)
        self.rows = tuple(v.view(-1, self.d + 2, m).numpy() for v in rows)
        self.labels = np.ascontiguousarray(signed.expand(self.share.shape).reshape(-1, m).numpy())
        prior = np.inf if config.prior is None else config.prior
        self.how = (
            level, -2 / net.square, config.lam_min, config.weight_dual, prior, config.weight_prior,
        )  # fmt: skip
        self.rule = (config.optimizer == "adam", float(config.momentum), BETA_SQUARE, EPS)
        self.piece = max(1, PIECE // (self.share.numel() * len(one)))

    def advance(self, rows: Sequence[Sequence[float]]) -> None:
        """See `Packed`."""
        table = np.array(rows).reshape(-1, 6)
        for i in range(0, len(table), self.piece):
            some = table[i : i + self.piece]
            self.descend(self.rows, self.labels, some, self.net, self.how, self.rule)


def _together(x: Tensor, share: Tensor, one: float) -> Tensor:
    """Rows of x, a row of `one`, a row of lam / mean."""
    share = share.unsqueeze(-2)
    return torch.cat([x.mT, torch.full_like(share, one), share], dim=-2)


# --- Many steps in one go: static buffers, no number read back in between -----------------------
# The steps are those of `kkt.step`; between them only the gradients are computed, and the losses
# once at the end. What changes from step to step (rates, alpha, the weight of the margin) is a
# table, on CUDA one on the device, written before each block. There a block is captured as one
# graph and replayed, so that a step costs no launches; elsewhere, and where the capture fails, the
# same function runs call by call. The capture has not run on a GPU yet.
#
# Projected multipliers are solved for by `cones` from the set of the step before, with few rounds:
# a fixed program too. After a block one number is read: whether that was enough. The starts for
# which it was not go through the block again, call by call, with twice the rounds.
#
# On the CPU, two layers of few inputs descend as `pack_starts` says, group by group: the starts of
# a group take all steps of a block while they lie near the processor; two inputs in compiled loops.

BLOCK = 50  # steps of one graph; arbitrary, large against the one launch it costs
_WARM = 3  # runs before a capture, as torch's notes on CUDA graphs ask for


def step_table(
    config: DescentConfig, t: int, moved: int, steps: int, steep: float
) -> list[list[float]]:
    """A row of six numbers for each step after t, the optimiser having moved so many times.

    The rates of x and of lam, Adam's second correction, the share of the rates, alpha and the
    margin's weight.
    """
    rows = []
    for now in range(t, t + steps):
        moved += 1
        first, second = 1.0, 1.0
        if config.optimizer == "adam":
            first -= config.momentum**moved
            second -= BETA_SQUARE**moved
        margin = config.weight_margin * min((now + 1) / config.steps, 1.0)
        share = config.rate(now) / first
        rows.append([
            config.lr_x * share, config.lr_lam * share, second**-0.5, share,
            config.alpha(now + 1, steep), margin,
        ])  # fmt: skip
    return rows


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

    sound = True  # each start goes on, whatever the others do; see `Projected`

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
        self.packed = []
        if few(self.net):
            self.packed = pack_starts(
                self.net, config, self.scale.level, labels * self.scale.mean, kept
            )
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
            rows = self._rows(steps)
            for some in self.packed:
                some.advance(rows)
            if not self.packed:
                self.descend(self.held, rows)

    def state(self) -> KKTState:
        """The state here, with its losses; of tensors of its own."""
        params, mean, square = self.held.params, self.held.mean, self.held.square
        if self.packed:
            params, mean, square = parameters_of(self.packed)
        (x, share), *both = (tuple(v.clone() for v in pair) for pair in (params, mean, square))
        lam = share * self.scale.mean
        moments = Moments(self.moved, *both)
        return evaluate(self.target, self.config, self.t, x, self.y, lam, moments)

    def _rows(self, steps: int) -> list[list[float]]:
        """The rows of `step_table` for the next steps, which count as taken."""
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
                p.sub_((mean * rate).div_((square.sqrt() * row[2]).add_(EPS)))
        at = (held.params[0], held.y, held.params[1])
        project = partial(self._solve, held, rounds) if self.projected else None
        fresh = pulls(self.net, self.config, self.scale, at, row[4], row[5], project)
        for grad, new in zip(held.grads, fresh[: 1 if self.projected else 2], strict=False):
            grad.copy_(new)  # a graph writes where it was captured

    def _solve(self, held: Buffers, rounds: int, run: Pass) -> None:
        """The multipliers of least residual, in place."""
        share, y, floor = held.params[1], held.y, self.config.lam_min * self.scale.mean
        gram, inner = run.normal()
        gram, inner = gram * (y.unsqueeze(-1) * y.unsqueeze(-2)), inner * y
        known = share > self.config.lam_min
        found = cones(gram, inner - floor * gram.sum(-1), known, rounds)
        share.copy_((found.u + floor) / self.scale.mean)
        held.unsettled.logical_or_(found.unsettled)

    def _block(self, rows: Sequence[Sequence[float]]) -> None:
        """A block of steps; of projected ones again where the rounds were too few."""
        self.held.unsettled.fill_(False)
        before = self.held.copies() if self.projected else None
        if len(rows) < self.block or not self._replayed(rows):
            self.descend(self.held, rows, ROUNDS)
        rounds = ROUNDS
        while before is not None and rounds < MOST and bool(self.held.unsettled.any()):
            rounds *= 2
            single = not self.held.unsettled.ndim
            at = None if single else self.held.unsettled.nonzero().squeeze(-1)
            again = before.copies(at)
            self.descend(again, rows, rounds)
            self.held.put(again, at)

    def _replayed(self, rows: Sequence[Sequence[float]]) -> bool:
        """Whether the block was taken as one graph, captured at the first one.

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
                    "the same and more slowly", stacklevel=2,
                )  # fmt: skip
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
    """The memory that one start of m candidates takes in a block on a device, about.

    Counted on the program: arrays (m, k), what is left of the weights, the buffers, and for
    projected multipliers Gram matrices in float64.
    """
    first, *rest = (len(w) * (w.shape[1] + 1) for w in net.weights[:-1])
    arrays, weights = (11 if rest else 7) * m * sum(net.widths), 4 * first + 2 * sum(rest)
    numbers = arrays + weights + 9 * m * (net.d + 1)
    return dtype.itemsize * numbers + (4 * 8 * m * m if projected else 0)


def advance(target: Target, state: KKTState, config: KKTConfig, steps: int) -> KKTState:
    """The state so many steps on, as `kkt.step` would give; if not finite, unmoved, `diverged`."""
    run = Replay(target, state, config)
    run.advance(steps)
    after = run.state()
    return after if bool(torch.isfinite(after.loss).all()) else replace(state, diverged=True)

"""Blocks of steps of KKT and DecoReco in compiled loops: their arrays, and what they end at.

Two layers of at most two inputs and one output go through `kernels.compiled_two_inputs`, several
starts in one call; other networks through `kernels.compiled_layers`, start by start. Arrays are
float64 within a run; from three layers on the weights, and what the layers hold, are of their own
type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.attacks.descent import (
    PIECE,
    DescentConfig,
    rule_of,
    steepness,
    step_table,
    terms_of,
)
from explorer.engine.attacks.target import Target
from explorer.engine.kernels.batched import Prepared
from explorer.engine.kernels.loading import compiled_module
from explorer.engine.kernels.steps import RATE, Multipliers
from explorer.engine.nonnegative import RIDGE
from explorer.engine.optim import Moments

INPUTS = 2  # of the loops of two layers
TWO_INPUTS, LAYERS = "compiled_two_inputs", "compiled_layers"
TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-6}  # arbitrary: a gain that is rounding
Pair = tuple[Tensor, Tensor]  # of x (b, m, d) and of the multipliers over their mean (b, m, q)
_PRODUCT = 16  # weights that a product takes in the time of a slope; arbitrary


def sum_rounding(m: int, dtype: torch.dtype) -> float:
    """Return how much rounding a sum over m multipliers may have, as a share; in float64 none."""
    return 0.0 if dtype == torch.float64 else m * torch.finfo(dtype).eps


class Begin(NamedTuple):
    """What a run begins with; the labels y are (b, m)."""

    params: Pair
    mean: Pair
    square: Pair
    grads: Pair
    y: Tensor
    t: int
    moved: int


class Numbers(NamedTuple):
    """What a run has come to, of arrays of its own.

    Attributes:
        params: x (b, m, d) and the multipliers over their mean (b, m, q).
        mean: of the optimiser.
        square: of the optimiser.
        grad_x: gradient of the loss (b, m, d).
        grad_coef: gradient of the loss on the multipliers (b, m, q).
        losses: stationarity, floor, box, margin and their weighted sum (5, b).
    """

    params: tuple[Array, Array]
    mean: tuple[Array, Array]
    square: tuple[Array, Array]
    grad_x: Array
    grad_coef: Array
    losses: Array

    def moments(self, moved: int, like: Sequence[Tensor]) -> Moments:
        """Return the optimiser's moments, in the shapes and the types of `like`."""
        mean, square = (
            tuple(tensor(v, one) for v, one in zip(pair, like, strict=True))
            for pair in (self.mean, self.square)
        )
        return Moments(moved, mean, square)


def tensor(v: Array, like: Tensor) -> Tensor:
    """Return the same numbers, which the caller owns, in the shape and the type of a tensor."""
    made = torch.from_numpy(v.reshape(like.shape))
    return made if made.dtype == like.dtype else made.to(like.dtype)


class LoopRun:
    """A run that is moved on by `advance`; what takes the steps stands in the classes below."""

    def __init__(
        self, target: Target, config: DescentConfig, begin: Begin, square: float, mean: float,
        numbers: int,
    ) -> None:  # fmt: skip
        """`square`: ||theta||^2; `mean`: mean multiplier; `numbers`: that a step goes through."""
        self.target, self.config, self.mean = target, config, mean
        self.t, self.moved, self.sound = begin.t, begin.moved, True
        self.steep, self.piece = steepness(target, config), max(1, PIECE // numbers)
        self.terms, self.rule = terms_of(config, square, target.level), tuple(rule_of(config))

    def advance(self, steps: int) -> None:
        """So many steps further. Where one start cannot take them, `sound` is False, for all."""
        table = np.array(step_table(self.config, self.t, self.moved, steps, self.steep))
        self.t, self.moved = self.t + steps, self.moved + steps
        for i in range(0, steps if self.sound else 0, self.piece):
            self.sound = self.sound and self._descend(table[i : i + self.piece])

    def look(self) -> None:
        """Make the losses and gradients of the last step anew, at the candidates as they are."""
        table = np.array(step_table(self.config, self.t - 1, self.moved, 1, self.steep))
        table[0, RATE] = 0.0
        self.sound = self._descend(table)

    def _descend(self, table: Array) -> bool:
        """Take a step for each row; whether all numbers are finite."""
        raise NotImplementedError

    def numbers(self) -> Numbers:
        """Return what the run has come to, after one step or more."""
        raise NotImplementedError


class TwoInputsRun(LoopRun):
    """Two layers, at most two inputs and one output, of several starts at once."""

    def __init__(
        self, target: Target, config: DescentConfig, begin: Begin, net: Prepared, mean: float,
        same_slopes: bool,
    ) -> None:  # fmt: skip
        """`net`: the prepared network of the target."""
        b, m, self.d = begin.params[0].shape
        numbers = b * m * sum(len(w) + w.numel() // _PRODUCT for w in net.weights)
        super().__init__(target, config, begin, net.square, mean, numbers)
        self.y, self.projected = begin.y.numpy(), config.multipliers == "projected"
        loops: Any = compiled_module(TWO_INPUTS)
        self.loop = loops.project if self.projected else loops.descend
        self.outs = np.empty(b), np.empty((b, m)), np.empty((b, m))
        key = ("two inputs", config.merge_angle, same_slopes, self.projected)
        self.net = target.kept(key, lambda: _two_layers(net, self.projected))
        pairs = begin.params, begin.mean, begin.square, begin.grads
        self.held = tuple(_rows(*pair) for pair in pairs)
        self.signed = np.ascontiguousarray(self.y * mean, dtype=np.float64)

    def _descend(self, table: Array) -> bool:
        ridge = (RIDGE,) if self.projected else ()
        last = (tuple(self.terms), self.rule, *ridge, self.outs)
        sound = bool(self.loop(self.held, self.signed, table, self.net, *last))
        return sound and bool(np.isfinite(self.held[2]).all())  # squares overflow first

    def numbers(self) -> Numbers:
        """See `LoopRun`."""
        held, config, (left, phi, on_share) = self.held, self.config, self.outs
        params, mean, square, (grad_x, _) = (
            (rows[:, : self.d].swapaxes(1, 2).copy(), rows[:, INPUTS:].swapaxes(1, 2).copy())
            for rows in held[:4]
        )
        l_prior: Any = np.zeros(len(left))
        if config.half_width < np.inf:
            outside = np.maximum(np.abs(params[0]) - config.half_width, 0)
            l_prior = np.square(outside).sum((1, 2))
        low = np.maximum(config.lam_min - params[1], 0)
        off = (phi - self.y * self.terms.level) / self.terms.level
        terms = [
            left / self.terms.square, np.square(low).sum((1, 2)), l_prior, np.square(off).sum(1),
        ]  # fmt: skip
        margin = config.weight_margin * min(self.t / config.steps, 1.0)
        weights = 1.0, config.weight_dual, config.weight_prior, margin
        loss = sum(weight * term for weight, term in zip(weights, terms, strict=True))
        grad_coef = on_share[:, :, None] / self.mean
        return Numbers(params, mean, square, grad_x, grad_coef, np.array([*terms, loss]))


class LayersRun(LoopRun):
    """Any layers and any number of outputs, start by start."""

    def __init__(
        self, target: Target, config: DescentConfig, begin: Begin, layers: Sequence[Array],
        square: float, kind: Multipliers, basis: Tensor, own: Tensor, loss: Tensor,
    ) -> None:  # fmt: skip
        """`layers`: of `lay`; basis (b, m, q, C), own (b, m) and loss (b,): as the loops say."""
        m, self.d = begin.params[0].shape[1:]
        numbers = begin.params[1].numel() * (int(layers[1].sum()) + len(layers[0]) // _PRODUCT)
        super().__init__(target, config, begin, square, kind.mean, numbers)
        self.kind, self.loops = tuple(kind), compiled_module(LAYERS)
        self.net, columns = tuple(layers), int(layers[2][0])
        each = begin.params[1][0].numel() if kind.projected else m
        self.room = np.empty(room_length(layers[1], layers[2], m, each), layers[0].dtype)
        self.starts = []
        pairs = begin.params, begin.mean, begin.square, begin.grads
        for i in range(len(begin.y)):
            points = np.zeros((4, m, columns))
            points[0] = 1.0
            for rows, (x, _) in zip(points, pairs, strict=True):
                rows[:, : self.d] = x[i].numpy()
            shares = torch.stack([share[i] for _, share in pairs]).double().numpy()
            seen = self.d, own[i].numpy(), begin.y[i].double().numpy()
            covers, losses = basis[i].double().contiguous().numpy(), np.zeros(5)
            losses[4] = loss[i]
            self.starts.append((points, shares, covers, seen, np.zeros(shares.shape[1:]), losses))

    def _descend(self, table: Array) -> bool:
        loops: Any = self.loops
        for points, shares, covers, seen, grad_coef, losses in self.starts:
            sound = loops.descend(
                points, shares, covers, seen, table, self.net, tuple(self.terms), self.kind,
                self.rule, grad_coef, losses, self.room,
            )  # fmt: skip
            if not (sound and np.isfinite(points[2]).all() and np.isfinite(shares[2]).all()):
                return False
        return True

    def numbers(self) -> Numbers:
        """See `LoopRun`."""
        parts = list(zip(*self.starts, strict=True))
        points, shares, grad_coef, losses = (np.stack(parts[i]) for i in (0, 1, 4, 5))
        x, mean, square, grad_x = points[:, :, :, : self.d].swapaxes(0, 1).copy()
        share, mean_of, square_of, _ = shares.swapaxes(0, 1).copy()
        moments = (mean, mean_of), (square, square_of)
        return Numbers((x, share), *moments, grad_x, grad_coef, losses.T.copy())

    @property
    def basis(self) -> Array:
        """Return the covectors of the multipliers at the last step (b, m, q, C)."""
        return np.stack([covers for _, _, covers, *_ in self.starts])


def room_length(outs: Array, ins: Array, m: int, covers: int) -> int:
    """Return how many numbers `compiled_layers` works in, of m candidates and their covectors."""
    k, e = int(outs[:-1].sum()), int(ins.sum())
    of_candidates = 3 * e - int(ins[-1]) + 3 * k + 2 * m
    of_covers = e - int(ins[0]) + k + int(outs[-1])
    return m * of_candidates + covers * of_covers + int((outs * ins).sum())


def lay(blocks: Sequence[Tensor], slopes: Sequence[Tensor] | None = None) -> tuple[Array, ...]:
    """Return the fields of `compiled_layers.Layers`.

    Args:
        blocks: the weights of each layer, with the bias, where there is one, as last column.
        slopes: factors on alpha of each hidden layer; None: 1.
    """
    flat = torch.cat([block.reshape(-1) for block in blocks])
    factors = flat.new_ones(sum(len(block) for block in blocks[:-1]))
    if slopes is not None:
        factors = torch.cat(list(slopes))
    outs, ins = (np.array(each) for each in zip(*(block.shape for block in blocks), strict=True))
    squares = np.array([float(block.double().square().sum()) for block in blocks])
    return flat.numpy(), outs, ins, squares, factors.numpy()


def _two_layers(net: Prepared, projected: bool) -> tuple[Any, ...]:
    """Return the fields of `compiled_two_inputs.TwoLayers`."""
    w, block, v = net.weights[0], net.blocks[0], net.weights[1][0].double().numpy()
    d, biased = w.shape[1], block is not w
    k, width = len(v), len(v) + (0 if projected else len(v) % 2)
    first, times, second = np.zeros((3, width)), np.zeros((3, width)), np.zeros(width)
    first[:d, :k], times[:d, :k], second[:k] = w.numpy().T, v, v
    if biased:
        first[2, :k], times[2, :k] = block[:, -1].numpy(), v
    slopes = np.ones(width)
    if net.slopes is not None:
        slopes[:k] = net.slopes[0].double().numpy()
    if not projected:
        first, times = (np.ascontiguousarray(rows.T) for rows in (first, times))
    return first, times, second, slopes, float(biased)


def _rows(x: Tensor, share: Tensor) -> Array:
    """Return rows of x, of zeros up to two inputs, and of the share (b, 3, m)."""
    b, m, d = x.shape
    rows = np.zeros((b, INPUTS + 1, m))
    rows[:, :d], rows[:, INPUTS] = x.numpy().swapaxes(1, 2), share.numpy()[:, :, 0]
    return rows

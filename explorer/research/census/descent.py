"""Descents of many places side by side, each to the level end of its own valley."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.progress import Progress, no_progress

Loss = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Places (b, p) -> values (b,) and gradients (b, p), of each place by itself."""

PAIRS = 20  # that the quasi-Newton estimate is made of; measured: with 10 a third more steps
PutBack = Callable[[Tensor], Tensor]
"""Places (b, p) -> the nearest ones that agree with what is known of the points."""

Watch = Callable[[Tensor, Tensor, Tensor], None]
"""Hears of descents under way: places (b, p), values (b,), and which of them are level (b,)."""

REACH = 0.1  # longest step of a coordinate, in units of the data; arbitrary: no ridge is leapt over
FALL = 1e-4  # of what the slope promises, that a step must bring; usual (Armijo)
SHORTER, TRIES = 0.4, 30  # of a step that does not bring it; arbitrary
WATCHED = 10  # steps between two looks of who watches; arbitrary: it divides `CALM`
RETURN = 5  # steps between two returns to what is known; arbitrary: it divides `CALM`
LEVEL, CALM = 1e-5, 50  # a value that falls by less in so many steps is level; arbitrary


@dataclass(frozen=True, eq=False)
class Ends:
    """Where descents ended.

    Attributes:
        x: places (b, p).
        value: of the loss (b,).
        gradient: (b, p).
        level: whether it fell no more (b,), bool; else the steps were used up.
        steps: taken (b,).
    """

    x: Tensor
    value: Tensor
    gradient: Tensor
    level: Tensor
    steps: Tensor


def watch_nothing(x: Tensor, value: Tensor, level: Tensor) -> None:
    """Look at no descent."""


def descend(
    loss: Loss, x: Tensor, most: int, progress: Progress = no_progress,
    watch: Watch = watch_nothing,
) -> Ends:  # fmt: skip
    """Return the ends of descents from places x (b, p), of which none sees another.

    Quasi-Newton steps (L-BFGS) that never rise, none longer than `REACH`. A descent is level where
    not even the gradient itself leads lower, or where the value falls by less than `LEVEL` in
    `CALM` steps.

    Args:
        loss: the values and gradients.
        x: where to begin.
        most: steps of each.
        progress: hears which share is level.
        watch: hears where they are, every `WATCHED` steps; what it gets changes after its return.

    Source: Nocedal 1980, restated; the bounds of the steps are our own.
    """
    x = x.clone()
    value, gradient = loss(x)
    level, steps = value.new_zeros(len(x), dtype=torch.bool), torch.zeros(len(x)).long()
    pairs, checked, going = _Pairs(x), value.clone(), torch.arange(len(x))
    for t in range(1, most + 1):
        if not len(going):
            break
        progress(1 - len(going) / max(len(x), 1))
        step = pairs.direction(going, gradient[going])
        slope = (step * gradient[going]).sum(1)
        share = (REACH / step.abs().amax(1).clamp_min(1e-300)).clamp_max(1.0)
        tried = _search(loss, x[going], value[going], step, slope, share)
        moved, hit = tried.moved, going[tried.moved]
        pairs.add(hit, (tried.x - x[going])[moved], (tried.gradient - gradient[going])[moved])
        x[hit], value[hit] = tried.x[moved], tried.value[moved]
        gradient[hit], steps[hit] = tried.gradient[moved], t
        stuck = going[~moved]
        level[stuck] = ~pairs.has_pairs(stuck)
        pairs.forget(stuck)
        if t % CALM == 0:
            level[going] |= checked[going] - value[going] <= LEVEL
            checked[going] = value[going]
        going = going[~level[going]]
        if t % WATCHED == 0:
            watch(x, value, level)
    return Ends(x, value, gradient, level, steps)


def descend_with_returns(
    put_back: PutBack, loss: Loss, x: Tensor, most: int, progress: Progress = no_progress,
    watch: Watch = watch_nothing,
) -> Ends:  # fmt: skip
    """Return the ends of descents whose places return to what is known of the points.

    As in attacks each is put back after some steps. It is level where that brings `LEVEL` or less
    over `CALM` steps, and ends at the lowest place that it was put back to.
    """
    x = put_back(x)
    value, gradient = loss(x)
    level, steps = torch.zeros(len(x), dtype=torch.bool), torch.zeros(len(x)).long()
    going = torch.arange(len(x))
    for t in range(0, most, CALM):
        if not len(going):
            break
        progress(1 - len(going) / len(x))
        before, now = value[going].clone(), x[going]
        for _ in range(CALM // RETURN):
            now = put_back(descend(loss, now, RETURN).x)
            v, g = loss(now)
            better = v < value[going]
            hit = going[better]
            x[hit], value[hit], gradient[hit] = now[better], v[better], g[better]
        steps[going] = t + CALM
        level[going] = before - value[going] <= LEVEL
        going = going[~level[going]]
        watch(x, value, level)
    return Ends(x, value, gradient, level, steps)


@dataclass(frozen=True, eq=False)
class _Tried:
    """The first share of each step that falls enough, and where there is one."""

    x: Tensor
    value: Tensor
    gradient: Tensor
    moved: Tensor


def _search(
    loss: Loss, x: Tensor, value: Tensor, step: Tensor, slope: Tensor, share: Tensor
) -> _Tried:
    made = _Tried(x.clone(), value.clone(), torch.zeros_like(x), value != value)
    left = (slope < 0).nonzero()[:, 0]
    for _ in range(TRIES):
        if not len(left):
            break
        at = x[left] + share[left, None] * step[left]
        v, g = loss(at)
        good = (v <= value[left] + FALL * share[left] * slope[left]) & (v < value[left])
        hit = left[good]
        made.x[hit], made.value[hit], made.gradient[hit], made.moved[hit] = (
            at[good], v[good], g[good], True,
        )  # fmt: skip
        left = left[~good]
        share[left] *= SHORTER
    return made


class _Pairs:
    """Steps s and changes of the gradient y of each descent, the newest last; weight 0 for none."""

    def __init__(self, x: Tensor) -> None:
        self._s, self._y = x.new_zeros(2, PAIRS, *x.shape)
        self._weight = x.new_zeros(PAIRS, len(x))

    def add(self, at: Tensor, s: Tensor, y: Tensor) -> None:
        inner = (s * y).sum(1)
        good = inner > 1e-10 * s.norm(dim=1) * y.norm(dim=1)  # arbitrary: curved upwards
        at = at[good]
        for held, new in ((self._s, s), (self._y, y), (self._weight, 1 / inner)):
            held[:-1, at] = held[1:, at]
            held[-1, at] = new[good]

    def forget(self, at: Tensor) -> None:
        self._weight[:, at] = 0

    def has_pairs(self, at: Tensor) -> Tensor:
        """Return which descents have a pair, so that their direction is not the gradient's."""
        return self._weight[-1, at] > 0

    def direction(self, at: Tensor, gradient: Tensor) -> Tensor:
        """Return where to go, by the two loops; a step of `REACH` along -gradient without pairs."""
        s, y, weight = self._s[:, at], self._y[:, at], self._weight[:, at]
        q, kept = gradient.clone(), gradient.new_zeros(PAIRS, len(at))
        for k in reversed(range(PAIRS)):
            kept[k] = weight[k] * (s[k] * q).sum(1)
            q -= kept[k, :, None] * y[k]
        bare = REACH / gradient.norm(dim=1).clamp_min(1e-300)
        scale = 1 / (weight[-1] * y[-1].square().sum(1)).clamp_min(1e-300)
        q *= torch.where(weight[-1] > 0, scale, bare)[:, None]
        for k in range(PAIRS):
            q += (kept[k] - weight[k] * (y[k] * q).sum(1))[:, None] * s[k]
        return -q

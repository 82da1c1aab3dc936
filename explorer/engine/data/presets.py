"""The drawing recipes behind the presets: pure functions from (n, noise, generator) to points.

Every recipe keeps its points inside [-BOX, BOX] per coordinate and gives label counts that depend
on n alone (ceil(n / 2) points of +1; with more classes the points go round them), so that a fresh
draw always has the counts of the first.
With `fresh=True` the recipes that are regular without noise take another phase, at least a
quarter of a spacing away from the regular one: the control for a regular set must not be that set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from explorer.engine.classes import from_numbers

BOX = 1.6  # half width of the region the presets fill; the drawing plane is [-2, 2] (arbitrary)
MAX_POINTS = 200  # issue: "up to 200 points"

Draw = Callable[[int, float, Generator, bool], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Preset:
    """One drawing recipe with its defaults.

    Attributes:
        name: key in `PRESETS`.
        title: what a menu shows.
        sentence: what the set is good for.
        d: dimension of the input.
        n: default number of points.
        noise: default standard deviation of the Gaussian jitter, in plane units.
        draw: (n, noise, generator, fresh) -> x (n, d) float64, y (n,) labels.
        n_min: fewest points the recipe makes sense for.
        n_max: most points.
        classes: how many classes it draws.
    """

    name: str
    title: str
    sentence: str
    d: int
    n: int
    noise: float
    draw: Draw
    n_min: int = 2
    n_max: int = MAX_POINTS
    classes: int = 2


def fold(x: Tensor, half: float) -> Tensor:
    """Reflect x at the walls of [-half, half]. Unlike a clamp, no two points are made equal."""
    return half - (torch.remainder(x + half, 4 * half) - 2 * half).abs()


def _jitter(x: Tensor, noise: float, generator: Generator) -> Tensor:
    noisy = x + noise * torch.randn(x.shape, generator=generator, dtype=torch.float64)
    # The fold costs a few ulps, so points already inside are left as they are.
    return torch.where(noisy.abs() <= BOX, noisy, fold(noisy, BOX))


def _alternating(n: int) -> Tensor:
    return 1.0 - 2.0 * (torch.arange(n, dtype=torch.float64) % 2)


def _uniform(n: int, generator: Generator, low: float = 0.0, high: float = 1.0) -> Tensor:
    return low + (high - low) * torch.rand(n, generator=generator, dtype=torch.float64)


def _phase(generator: Generator, fresh: bool) -> float:
    """Return a shift in spacings: 0, or +-U(1/4, 1/2), which stays off every regular point."""
    if not fresh:
        return 0.0
    u = float(torch.rand((), generator=generator, dtype=torch.float64))
    return 0.5 * u - 0.5 if u < 0.5 else 0.5 * u


def _polar(radius: Tensor | float, angle: Tensor) -> Tensor:
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)


def _moons(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
    y = _alternating(n)
    t = math.pi * _uniform(n, generator)
    # Two half circles of radius 1, shifted by (1, -1/2), the pair centred: |x| <= 1.5.
    x = torch.stack([y * (t.cos() - 0.5), y * (t.sin() - 0.25)], dim=1)
    return _jitter(x, noise, generator), y


def _circles(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
    y = _alternating(n)
    radius = torch.where(y > 0, 0.5, 1.2).to(torch.float64)  # arbitrary, the ring 0.7 away
    return _jitter(_polar(radius, 2 * math.pi * _uniform(n, generator)), noise, generator), y


def _xor(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
    y = _alternating(n)
    side = torch.where(_uniform(n, generator) < 0.5, -1.0, 1.0).to(torch.float64)
    first = _uniform(n, generator, 0.25, 1.35)  # arbitrary: a gap of 0.5 between quadrants
    second = _uniform(n, generator, 0.25, 1.35)
    return _jitter(torch.stack([side * first, y * side * second], dim=1), noise, generator), y


def _blobs(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
    y = _alternating(n)
    x = torch.stack([0.75 * y, 0.45 * y], dim=1)  # arbitrary centres, 1.75 apart
    return _jitter(x, noise, generator), y


def _spiral(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
    y = _alternating(n)
    t = _uniform(n, generator, 0.12, 1.0)
    # Two arms of one turn, each the other's reflection in the origin.
    x = y[:, None] * _polar(1.4 * t, 2 * math.pi * t)
    return _jitter(x, noise, generator), y


def _ring(n: int, noise: float, generator: Generator, fresh: bool) -> Tensor:
    turn = (torch.arange(n, dtype=torch.float64) + _phase(generator, fresh)) / n
    return _jitter(_polar(1.0, 2 * math.pi * turn), noise, generator)


def _random_circle(
    n: int, noise: float, generator: Generator, fresh: bool
) -> tuple[Tensor, Tensor]:
    x = _ring(n, noise, generator, fresh)
    return x, _alternating(n)[torch.randperm(n, generator=generator)]


def _alternating_circle(
    n: int, noise: float, generator: Generator, fresh: bool
) -> tuple[Tensor, Tensor]:
    return _ring(n, noise, generator, fresh), _alternating(n)


def _line(n: int, noise: float, generator: Generator, fresh: bool) -> Tensor:
    place = (torch.arange(n, dtype=torch.float64) + 0.5 + _phase(generator, fresh)) / n
    return _jitter(3.0 * place[:, None] - 1.5, noise, generator)


def _alternating_line(
    n: int, noise: float, generator: Generator, fresh: bool
) -> tuple[Tensor, Tensor]:
    return _line(n, noise, generator, fresh), _alternating(n)


def _pairs_line(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
    x = _line(n, noise, generator, fresh)
    index = torch.arange(n)
    y = 1.0 - 2.0 * ((index // 2) % 2).to(torch.float64)
    # A fresh draw may start with either class at the left, where both have the same count.
    flip = fresh and n % 4 == 0 and float(torch.rand((), generator=generator)) < 0.5
    return x, -y if flip else y


def _two_points(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
    # +-1/2: closed form of theory 8.1, multipliers sqrt(5)/2 and breakpoints on both points.
    x0 = 0.5 * (1.0 + _phase(generator, fresh))
    x = torch.tensor([[x0], [-x0]], dtype=torch.float64)
    return _jitter(x, noise, generator), _alternating(2)


def _in_turn(n: int, classes: int) -> Tensor:
    """Return class numbers 1, 2, ..., C, 1, 2, ... (n,)."""
    return torch.arange(n) % classes + 1


def _several_blobs(classes: int) -> Draw:
    def draw(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
        number = _in_turn(n, classes)
        # arbitrary radius 0.95: neighbouring centres 1.6 (three) and 1.3 (four) apart
        centre = _polar(0.95, 2 * math.pi * (number - 1).double() / classes + math.pi / 2)
        return _jitter(centre, noise, generator), from_numbers(number)

    return draw


def _three_circle(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
    return _ring(n, noise, generator, fresh), from_numbers(_in_turn(n, 3))


def _arms(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
    number = _in_turn(n, 3)
    t = _uniform(n, generator, 0.2, 1.0)
    # Three arms of half a turn, a third of a turn apart.
    angle = math.pi * t + 2 * math.pi * (number - 1).double() / 3
    return _jitter(_polar(1.4 * t, angle), noise, generator), from_numbers(number)


def _pie(n: int, noise: float, generator: Generator, fresh: bool) -> tuple[Tensor, Tensor]:
    number = _in_turn(n, 4)
    # Four quarters of a ring, a gap of a fifth of a quarter between them.
    angle = math.pi / 2 * ((number - 1).double() + _uniform(n, generator, 0.1, 0.9))
    radius = _uniform(n, generator, 0.3, 1.3)  # arbitrary
    return _jitter(_polar(radius, angle), noise, generator), from_numbers(number)


_ROWS = (
    Preset("moons", "Moons", "Two half circles that reach into each other.", 2, 24, 0.06, _moons),
    Preset("circles", "Circles", "One class around the other.", 2, 24, 0.05, _circles),
    Preset("xor", "XOR", "Opposite quadrants share a label.", 2, 20, 0.05, _xor),
    Preset("blobs", "Blobs", "Two clouds; few points define the margin.", 2, 20, 0.35, _blobs),
    Preset("spiral", "Spiral", "Two arms around each other.", 2, 30, 0.03, _spiral),
    Preset("random-circle", "Random circle", "Equal steps on a circle, half of the labels +1 at "
           "random (as the toy of Haim et al.).", 2, 20, 0.0, _random_circle),
    Preset("alternating-circle", "Alternating circle", "Equal steps on a circle, every neighbour "
           "of the other class: every point is needed.", 2, 20, 0.0, _alternating_circle),
    Preset("alternating-line", "Alternating line", "On an axis, every neighbour of the other "
           "class.", 1, 8, 0.0, _alternating_line),
    Preset("two-points", "Two points", "One point per class on an axis: the solution is known in "
           "closed form.", 1, 2, 0.0, _two_points, 2, 2),
    Preset("pairs-line", "Pairs on a line", "On an axis, the label changes after every second "
           "point: the outer ones leave no trace.", 1, 8, 0.0, _pairs_line, 3),
    Preset("three-circle", "Circle of three", "Equal steps on a circle, three classes in turn.",
           2, 9, 0.0, _three_circle, 3, classes=3),
    Preset("three-blobs", "Three blobs", "Three classes, one cloud each: few points hold the "
           "margin.", 2, 18, 0.25, _several_blobs(3), 3, classes=3),
    Preset("spiral-arms", "Spiral arms", "Three classes, one arm each: most points are needed.",
           2, 18, 0.02, _arms, 3, classes=3),
    Preset("four-blobs", "Four blobs", "Four classes, one cloud each.",
           2, 20, 0.2, _several_blobs(4), 4, classes=4),
    Preset("pie", "Pie", "Four classes, the quarters of a ring: every class has two rivals.",
           2, 24, 0.0, _pie, 4, classes=4),
)  # fmt: skip

PRESETS: dict[str, Preset] = {row.name: row for row in _ROWS}

r"""How certain a training point is near a place: radii of claims, and a map of them.

The *radius* of a place and a label is the least residual of any explanation of the weights without
a point of that label there (`cone`). Here the places are squares (intervals of the line) of one
half width: around given claims, or around all pixels of a picture, which needs no truth.

A map is searched from coarse to fine. A wider place has the larger radius, so that one number for a
block of pixels decides them all where it is small: only blocks that hold a needed point are divided.
"""  # noqa: E501

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array, as_array
from explorer.engine.classes import labels
from explorer.engine.data import Dataset
from explorer.engine.explanations.assumptions import threshold, threshold_obstacle
from explorer.engine.explanations.cone import Bound, Cone
from explorer.engine.progress import Progress, no_progress, with_progress
from explorer.engine.threads import few_threads

PLAIN = 1.05  # times the least residual: a smaller radius says nothing of a place; arbitrary
TRIFLE = 0.005  # of |theta|: a radius up to it says nothing either; arbitrary
SLICE = 24  # places between two pictures of a map; arbitrary
CERTIFIED, LIKELY = "certified", "likely"  # a theorem; a judgement by a threshold

Spans = tuple[tuple[int, int], ...]  # a range of pixels of each axis


@dataclass(frozen=True, eq=False)
class Certainty:
    """How certain claims are: the proven radius around each, and what it is compared with.

    Attributes:
        radius: proven radii (c,), shares of |theta|.
        half: half width of the places around the claims, in units of the data.
        reach: a training point of a place may lie this far outside of it, in units of the data.
        least: least residual of any explanation, a share of |theta|.
        truth: what the known points leave, where they stand and, under the assumptions, within
            `reach` of there: the larger of both; None where nobody knows them.
        threshold: what a radius must exceed where nobody knows them; see `assumptions.threshold`.
        box: explanations are those by points in [-box, box]^d, in units of the data,
        top: and of margins up to this.
        tight: whether some explanation does without a point where none is certified. Of three
            layers and more a radius is a lower bound alone, and this is not known.
    """

    radius: Tensor
    half: float
    reach: float
    least: float
    truth: float | None
    threshold: float
    box: float
    top: float
    tight: bool = True

    @property
    def limit(self) -> float:
        """Return the residual that a radius must exceed: that of the truth, where it is known."""
        return self.threshold if self.truth is None else self.truth

    @property
    def proven(self) -> bool:
        """Return whether `certain` is a theorem: the residual of the true points is known.

        By a threshold it is a judgement, and some claims are false (docs/certified-radius.md).
        """
        return self.truth is not None

    @property
    def word(self) -> str:
        """Return what `certain` claims are called: certified, or likely by a threshold."""
        return CERTIFIED if self.proven else LIKELY

    @property
    def certain(self) -> Tensor:
        """Return which claims (c,) are above `limit`: certified or likely, as `word` says."""
        return self.radius > self.limit


@few_threads()
def truth_residual(cone: Cone, data: Dataset) -> float:
    """Return the least residual of explanations by points within `reach` of the known ones.

    It is 1 where no point lies in the band and the box of the assumptions.

    Args:
        cone: of the weights.
        data: the points that they were trained on, in its coordinates.
    """
    x, y = as_array(data.x), as_array(data.y)
    found = cone.bound_near(x, y, cone.assumptions.reach) if len(x) else None
    return 1.0 if found is None else found.high


def known_limit(cone: Cone, truth: Dataset | None, left: float) -> float:
    """Return what a radius must exceed: what the known points leave, or a threshold for none.

    Args:
        cone: of the weights.
        truth: the points that they were trained on; None or none where nobody knows them.
        left: what they leave where they stand (`certificate.certify`), a share of |theta|.
    """
    if truth is None or not truth.n:
        return threshold(cone)
    at_place = 0.0 if cone.assumptions.decay else left  # with decay they explain at any margin
    return max(truth_residual(cone, truth), at_place)


@few_threads()
def certainty(
    cone: Cone, x: Tensor, y: Tensor, half: float, truth: Dataset | None = None,
    progress: Progress = no_progress, left: float = 0.0,
) -> Certainty:  # fmt: skip
    """Return the proven radii of squares of half width `half` around claims.

    Args:
        cone: of the weights (`assumptions.assumed_cone`).
        x: claimed places (c, d), in units of the data.
        y: their labels (c,).
        half: half width of the places, in units of the data.
        truth: the points that the weights were trained on, where they are known.
        progress: hears of each claim, and may end the work.
        left: what these points leave where they stand (`certificate.certify`), a share of |theta|.

    Returns:
        The radii, and what they are compared with.

    Raises:
        ValueError: where x and y do not fit the weights, or `half` is not positive.

    Source: own; docs/certified-radius.md has the theorem and its proof.

    Example:
        >>> from explorer import maximum_margin, preset
        >>> from explorer.engine.explanations.assumptions import assumed
        >>> from explorer.engine.margin import normalise
        >>> data = preset("alternating-line", n=4)
        >>> cone = assumed(normalise(maximum_margin(data.x, data.y).net, data.x, data.y)[0])
        >>> bool(certainty(cone, data.x, data.y, 0.03, data).certain.all())
        True
    """
    d = cone.neurons.d
    if x.ndim != 2 or x.shape[1] != d or len(x) != len(y):
        raise ValueError(
            f"expected places (c, {d}) and labels (c,); got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    if not (half > 0 and math.isfinite(half)):
        raise ValueError(f"half is a positive number, in units of the data; got {half}")
    limit = known_limit(cone, truth, left)
    known = limit if truth is not None and truth.n else None
    made, rows = [], list(zip(as_array(x), y.tolist(), strict=True))
    for at, label in with_progress(rows, len(rows), progress):
        found = cone.radius(at - half, at + half, label, min(limit, _plain(cone)))
        made.append(found.low)
    radius = torch.tensor(made, dtype=torch.float64)
    return Certainty(
        radius, half, cone.assumptions.reach, cone.least.high, known, threshold(cone),
        cone.assumptions.box, cone.assumptions.top, cone.tight,
    )  # fmt: skip


def _plain(cone: Cone) -> float:
    """Return the residual up to which an explanation is as good as the least."""
    return max(PLAIN * cone.least.high, TRIFLE)


@dataclass(frozen=True, eq=False)
class RadiusMap:
    """The proven radius around each pixel of a picture, for each label, so far.

    Attributes:
        values: (C, w) on the line, (C, h, w) in the plane: radii for +1, -1, 3, ..., shares of
            |theta|; the first row is on top. nan where it is not known yet.
        low: lower corner of the picture (d,), in units of the data.
        high: upper corner (d,).
        half: half width of the place around each pixel.
        reach: a training point of a place may lie this far outside of it.
        least: least residual of any explanation: what no radius is below.
        threshold: a radius above it makes a training point likely: nobody told the points.
        box: explanations are those by points in [-box, box]^d,
        top: and of margins up to this.
        why: why nothing is likely of these weights, as a sentence; "" where something can be.
        truth: what the known points leave (`known_limit`); None where nobody knows them.
    """

    values: Array
    low: Array
    high: Array
    half: float
    reach: float
    least: float
    threshold: float
    box: float
    top: float
    why: str = ""
    truth: float | None = None

    @property
    def limit(self) -> float:
        """Return what a radius must exceed: as of `Certainty`."""
        return self.threshold if self.truth is None else self.truth


def radius_map(
    cone: Cone, low: Any, high: Any, side: int, half: float,  # noqa: ANN401 - numbers or arrays
    progress: Progress = no_progress, truth: float | None = None,
) -> Iterator[RadiusMap]:  # fmt: skip
    """Yield the map of the radii within a box, again and again until it is whole.

    Args:
        cone: of the weights (`assumptions.assumed_cone`).
        low: lower corner of the picture (d,), in units of the data.
        high: upper corner (d,).
        side: pixels along each axis.
        half: half width of the place around the middle of each pixel, in units of the data.
        progress: told the share of decided pixels; may end the work.
        truth: what the known points leave (`known_limit`); None where nobody knows them.

    Yields:
        The map so far; no pixel of the last is nan. The values are proven lower bounds. Where the
        radius is within `PLAIN` of the least residual, they are the least residual itself.

    Raises:
        ValueError: for a picture without pixels, or an empty box.
    """
    ends = [np.atleast_1d(np.asarray(v, dtype=float)) for v in (low, high)]
    d = cone.neurons.d
    if side < 1 or not half > 0 or any(v.shape != (d,) for v in ends) or (ends[0] >= ends[1]).any():
        raise ValueError(
            f"a map needs a box of {d} sides above 0, at least one pixel and half > 0; got "
            f"low={low}, high={high}, side={side}, half={half}"
        )
    at = ends[0] + (ends[1] - ends[0]) * ((np.arange(side) + 0.5) / side)[:, None]  # (side, d)
    every = labels(cone.outputs)
    values = np.full((len(every), *(side,) * d), np.nan)
    made = cone.assumptions

    def so_far() -> RadiusMap:
        shown = values.copy() if d == 1 else values.transpose(0, 2, 1)[:, ::-1].copy()
        return RadiusMap(
            shown, ends[0], ends[1], half, made.reach, cone.least.high, threshold(cone),
            made.box, made.top, threshold_obstacle(cone), truth,
        )  # fmt: skip

    waiting: list[tuple[float, Spans, Bound | None]]
    waiting = [(float(y), ((0, side),) * d, None) for y in every]
    done = 0
    while waiting:
        progress(float(np.isfinite(values).mean()))
        label, block, wider = waiting.pop()  # the newest: needed places are seen early
        found, decided = _look(cone, at, half, label, block, wider)
        if decided is None:
            waiting.extend((label, part, found) for part in product(*map(_halves, block)))
        else:
            spans = tuple(slice(a, b) for a, b in block)
            values[every.index(int(label))][spans] = decided
        done += 1
        if waiting and done % SLICE == 0:
            yield so_far()
    yield so_far()


@few_threads()
def _look(
    cone: Cone, at: Array, half: float, label: float, block: Spans, wider: Bound | None
) -> tuple[Bound, float | None]:
    """Return the radius of a block of pixels, and that of each; None where it is to be divided."""
    low = np.array([at[a, axis] for axis, (a, _) in enumerate(block)]) - half
    high = np.array([at[b - 1, axis] for axis, (_, b) in enumerate(block)]) + half
    plain = _plain(cone)
    found = cone.radius(low, high, label, plain, wider)
    if found.high <= plain:
        return found, cone.least.low
    return found, found.low if all(b - a == 1 for a, b in block) else None


def _halves(ends: tuple[int, int]) -> list[tuple[int, int]]:
    a, b = ends
    return [ends] if b - a == 1 else [(a, (a + b) // 2), ((a + b) // 2, b)]

r"""Where a training point must be, said of the weights alone: wide places first, then closed in on.

The best explanation has mass at every place that needs a point, or it would itself do without one
there. So its clusters are the only places to ask of, and no truth, seed or grid is. Around each the
widest square (interval of the line) is tried first. As long as the radius (`cone`) exceeds what an
explanation may leave, the place is *needed*, and a narrower one around the mass inside is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from explorer.engine.arrays import Array, Flags, as_array
from explorer.engine.data import Dataset
from explorer.engine.explanations.cone import Bound, Cone, RaySum
from explorer.engine.progress import Progress, no_progress
from explorer.engine.threads import few_threads

WIDEST = 0.2  # of the middle of the box: half width of the first places; arbitrary
CLOSER = 2**-0.5  # half width of a place to that of the one before it; arbitrary
NEAR = 0.1  # of the middle of the box: mass so near belongs to one cluster; arbitrary
MOST, LIGHT = 60, 0.005  # clusters; share of the mass that is left aside; arbitrary
SHIFTS = 10  # of the middle of a cluster at most; arbitrary


@dataclass(frozen=True, eq=False)
class Needed:
    """Places that every explanation up to a residual has a point in, as far as they are known.

    Attributes:
        log: proofs in their order (e, d + 4): number of the place, centre (d), half width, label,
            and what no explanation without a point there leaves less than, a share of |theta|; of
            one place each is narrower than the one before.
        limit: what an explanation may leave, a share of |theta|.
        reach: a training point of a place may lie this far outside of it, in units of the data.
        least: least residual of any explanation.
        asked: how many places were asked of: clusters of the best explanation.
        spared: around how many of them some explanation up to the limit does without a point.
        box: explanations are those by points in [-box, box]^d, in units of the data,
        top: and of margins up to this.
    """

    log: Array
    limit: float
    reach: float
    least: float
    asked: int
    spared: int
    box: float
    top: float

    @cached_property
    def rows(self) -> Array:
        """Return the last place of each number (p, d + 3): centre, half, label, share; by width.

        Of those of one label that meet only the narrower stays: both may need the same point.
        """
        last = {int(row[0]): row[1:] for row in self.log}
        rows = np.array(list(last.values())).reshape(-1, self.log.shape[1] - 1)
        kept: list[Array] = []
        for row in rows[np.argsort(rows[:, -3], kind="stable")]:
            if not any(self._meet(row, other) for other in kept):
                kept.append(row)
        return np.array(kept).reshape(len(kept), rows.shape[1])

    def _meet(self, one: Array, other: Array) -> bool:
        apart = float(np.abs(one[:-3] - other[:-3]).max())
        return bool(one[-2] == other[-2]) and apart < one[-3] + other[-3] + 2 * self.reach

    def until(self, count: int) -> Needed:
        """Return what was known after so many proofs."""
        return replace(self, log=self.log[:count])

    def count_of(self, points: Dataset) -> int:
        """Return how many of the places hold one of the points: so many points are where one is."""
        return int(self.holds(as_array(points.x), as_array(points.y)).sum())

    def points_of(self, x: Array, y: Array) -> NDArray[np.int64]:
        """Return of each place (p,) which of the points (n, d) with labels (n,) stands for it.

        That is the one of its label, within `reach`, that is nearest to its middle; -1 where none
        is. Places of one label are apart, so no point stands for two.
        """
        rows = self.rows
        apart = np.abs(rows[:, None, :-3] - x[None]).max(axis=2)
        near = (apart <= rows[:, -3:-2] + self.reach + 1e-9) & (rows[:, -2:-1] == y)
        if not near.size:
            return np.full(len(rows), -1)
        return np.where(near.any(axis=1), np.where(near, apart, np.inf).argmin(axis=1), -1)

    def holds(self, x: Array, y: Array) -> Flags:
        """Return which places hold one of the points (n, d) with labels (n,), within `reach`."""
        return np.asarray(self.points_of(x, y) >= 0)

    def meets(self, centre: Sequence[float], radius: float) -> Flags:
        """Return which places, with `reach`, a ball about `centre` (d,) meets."""
        rows = self.rows
        apart = np.abs(rows[:, :-3] - np.array(centre)) - rows[:, -3:-2] - self.reach
        return np.asarray(np.linalg.norm(np.maximum(apart, 0), axis=1) < radius)


def needed_places(
    cone: Cone, limit: float, finest: float, progress: Progress = no_progress
) -> Iterator[Needed]:
    """Yield the needed places after each proof, wide ones first, until none is to be closed more.

    Args:
        cone: of the weights (`assumptions.assumed_cone`).
        limit: what an explanation may leave, a share of |theta|: the residual of the true points,
            where it is known, or a threshold.
        finest: half width below which no place is closed in, in units of the data.
        progress: told the share of places that were asked of; may end the work.

    Yields:
        The places so far; the last is whole, and holds none where none is needed. A place needs a
        point by the theorem of `cone`, however it was found.

    Raises:
        ValueError: where `finest` is not above 0.

    Example:
        >>> from explorer import maximum_margin, preset
        >>> from explorer.engine.explanations.assumptions import assumed_cone
        >>> from explorer.engine.margin import normalise
        >>> data = preset("alternating-line", n=4)
        >>> net = normalise(maximum_margin(data.x, data.y).net, data.x, data.y)[0]
        >>> *_, last = needed_places(assumed_cone(net), 0.01, 0.03)
        >>> bool(last.holds(data.x.numpy(), data.y.numpy()).all())
        True
    """
    if not finest > 0:
        raise ValueError(f"finest is a positive half width, in units of the data; got {finest}")
    made, d, least = cone.assumptions, cone.neurons.d, cone.least.take(cone.least.y != 0)
    middle = made.middle or made.box
    centres = merged_points(least, NEAR * middle)
    log: list[list[float]] = []
    spared = 0
    waiting: list[tuple[int, Array, float, Bound | None]]
    waiting = [(k, row[:d], float(row[d]), None) for k, row in enumerate(centres)]
    half = max(WIDEST * middle, finest)
    halves = [half]
    while halves[-1] > finest:
        halves.append(max(halves[-1] * CLOSER, finest))

    def so_far() -> Needed:
        rows = np.array(log).reshape(-1, d + 4)
        left = cone.least.high
        return Needed(rows, limit, made.reach, left, len(centres), spared, made.box, made.top)

    yield so_far()
    for level, half in enumerate(halves):
        closed: list[tuple[int, Array, float, Bound | None]] = []
        for i, (k, last, y, wider) in enumerate(waiting):
            progress((level + i / len(waiting)) / len(halves))
            at = _middle(least, last, y, half)
            with few_threads():
                found = cone.radius(at - half, at + half, y, limit, wider, limit)
            spared += found.high <= limit and not level
            if found.low > limit:
                log.append([k, *at, half, y, found.low])
                closed.append((k, at, y, found))
                yield so_far()
        waiting = closed
    yield so_far()


def _middle(of: RaySum, at: Array, y: float, half: float) -> Array:
    """Return where the middle of the mass of label y settles that is within `half` of `at`."""
    for _ in range(SHIFTS):
        near = (np.abs(of.x - at).max(axis=1) <= half) & (of.y == y)
        if not near.any():
            return at
        shifted = np.average(of.x[near], axis=0, weights=of.lam[near])
        if np.abs(shifted - at).max() <= 1e-3 * half:
            return shifted
        at = shifted
    return at


def merged_points(of: RaySum, width: float) -> Array:
    """Return the mass of an explanation as points (c, d + 2): middle, label, multiplier.

    Mass of one label within `width` of a middle is one point; the heaviest come first, until
    `LIGHT` of the mass is left. There are at most `MOST`.
    """
    left, found = of.lam.copy(), list[list[float]]()
    near = (np.abs(of.x[:, None] - of.x[None]).max(axis=2) <= width) & (of.y[:, None] == of.y)
    while len(found) < MOST and left.sum() > LIGHT * of.lam.sum():
        best = int(np.argmax(near @ left))
        mine = near[best] & (left > 0)
        middle = np.average(of.x[mine], axis=0, weights=left[mine])
        found.append([*middle, of.y[best], left[mine].sum()])
        left[mine] = 0.0
    return np.array(found).reshape(-1, of.x.shape[1] + 2)

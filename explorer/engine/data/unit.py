"""The unit of length of a set: one rule, in one place.

Every length of a setting (noise of a start, step of a candidate, radius, box) and the scale of the
first weights are made for points about as large as the plane. So points of another size are divided
by a unit, a power of two, which rounds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

from explorer.engine.data.dataset import Dataset

Run = TypeVar("Run", bound=Callable[..., Any])

# Measured on a circle of 12: 6 of them are met as given at radius 4, 7 at 1/4, 12 at 1/2 and 1.
LARGE, SMALL = 4.0, 0.25
FEW = 3  # coordinates: in more the settings are made for pixels or for laws, and stay


def unit_of(data: Dataset) -> float:
    """Return the unit of a set: 1 unless its points are far larger or smaller than the plane.

    Points of up to three coordinates have another one where they spread by more than 4 about their
    centre, or lie within 1/4 of zero, both as root mean squares: the power of two that is nearest
    to the root mean square of their distances to zero.

    Args:
        data: the points.

    Returns:
        The unit, a power of two, in units of the data.

    Source: own.

    Example:
        >>> from explorer import Dataset, preset, unit_of
        >>> data = preset("alternating-circle", n=12)
        >>> unit_of(data), unit_of(Dataset(100 * data.x, data.y))
        (1.0, 128.0)
    """
    if not data.n or data.d > FEW:
        return 1.0
    x = data.x.detach().cpu().double()
    reach = float(x.square().sum(1).mean().sqrt())
    spread = float((x - x.mean(0)).square().sum(1).mean().sqrt())
    if (SMALL <= reach and spread <= LARGE) or not 0 < reach < math.inf:
        return 1.0
    return 2.0 ** round(math.log2(reach))


def in_unit(data: Dataset) -> Dataset:
    """Return the set divided by its unit; the set itself where that is 1.

    Args:
        data: the points.

    Returns:
        A set without a source, or `data`.

    Example:
        >>> from explorer import Dataset, preset
        >>> from explorer.engine.data import in_unit
        >>> data = preset("alternating-circle", n=12)
        >>> bool((in_unit(Dataset(128 * data.x, data.y)).x == data.x).all())
        True
    """
    unit = unit_of(data)
    return data if unit == 1 else data.over(unit)


def in_its_unit(run: Run) -> Run:
    """Let `run` of (points, state of a training, ...) see both in the unit of the network."""

    @wraps(run)
    def inside(target: Dataset, state: Any, *more: Any, **named: Any) -> Any:  # noqa: ANN401
        unit = state.net.unit
        if unit == 1:
            return run(target, state, *more, **named)
        within = replace(state, net=state.net.in_unit())
        after = run(target.over(unit), within, *more, **named)
        return replace(after, net=after.net.per(unit))

    return cast(Run, inside)

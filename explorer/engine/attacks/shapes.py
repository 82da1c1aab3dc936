"""What an attack draws on the plane: plain arrays, which the page and a figure both draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.attacks.target import Target
from explorer.engine.network import phi

NONE: Array = np.zeros((0, 2))
SQUARE: Array = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]])
PLACES = ("lines", "strong", "curve", "dots", "rings", "likely", "diamonds", "hands", "area")


@dataclass(frozen=True, eq=False)
class Level:
    """A function over the plane, of which the line at 0 is drawn.

    Attributes:
        axis: coordinates (s,), ascending, the same of both axes.
        values: of the function (s, s): row i, column j is at (axis[j], axis[i]).
        strong: whether the line is thick.
    """

    axis: Array
    values: Array
    strong: bool = False


@dataclass(frozen=True, eq=False)
class Shapes:
    """Shapes on the plane; in 1-D the second coordinate is Phi over the margin.

    Attributes:
        lines: thin paths (k, 2), apart from each other by a row of nan.
        strong: thick paths, likewise.
        curve: corners (k, 2) of the curve that an attacker knows to hold the points.
        dots: small grey places (p, 2), such as candidates that were tried.
        rings: places with a square around (r, 2), such as what is proven.
        likely: places with a dashed ring around (l, 2): what is likely, not proven.
        diamonds: places in a triangle that points down (d, 2), such as a lowest one.
        area: a pale polygon (k, 2).
        hands: places between four corners (h, 2): what is in hand.
        spans: shaded upright bands (low, high).
        texts: words at places (x, y, text).
        levels: functions over the plane, drawn as their lines at 0.
        names: of arrays of places and paths, and of a `candidate`, what they are here, as (array,
            words).

    Raises:
        ValueError: where an array of places is not (k, 2).

    Example:
        >>> import numpy as np
        >>> from explorer.engine.attacks.shapes import Shapes
        >>> Shapes(dots=np.zeros((4, 3)))
        Traceback (most recent call last):
            ...
        ValueError: dots must be (k, 2), two coordinates each; got (4, 3)
    """

    lines: Array = field(default_factory=lambda: NONE)
    strong: Array = field(default_factory=lambda: NONE)
    curve: Array = field(default_factory=lambda: NONE)
    dots: Array = field(default_factory=lambda: NONE)
    rings: Array = field(default_factory=lambda: NONE)
    likely: Array = field(default_factory=lambda: NONE)
    diamonds: Array = field(default_factory=lambda: NONE)
    hands: Array = field(default_factory=lambda: NONE)
    area: Array = field(default_factory=lambda: NONE)
    spans: tuple[tuple[float, float], ...] = ()
    texts: tuple[tuple[float, float, str], ...] = ()
    levels: tuple[Level, ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is no row of places."""
        for name in PLACES:
            size = np.shape(getattr(self, name))
            if len(size) != 2 or size[1] != 2:
                raise ValueError(f"{name} must be (k, 2), two coordinates each; got {size}")


EMPTY = Shapes()


def joined_paths(paths: Sequence[Array]) -> Array:
    """Return paths (k, 2) as one, a row of nan between them; (0, 2) for none."""
    gap = np.full((1, 2), np.nan)
    pieces = [piece for path in paths for piece in (path, gap)]
    return np.concatenate(pieces[:-1]) if pieces else NONE


def places(target: Target, x: Tensor) -> Array:
    """Return places as the plane shows them: those on a line at their height on the graph.

    Args:
        target: the attacked weights.
        x: places (m, d), in units of the data.

    Returns:
        Rows (m, 2): the places of a plane as they are; x and Phi(x) where d = 1.

    Example:
        >>> import torch
        >>> from explorer import Network, Target
        >>> from explorer.engine.attacks.shapes import places
        >>> net = Network((torch.tensor([[1.0]]), torch.tensor([[2.0]])), (None, None))
        >>> places(Target(net), torch.tensor([[3.0]])).tolist()
        [[3.0, 6.0]]
    """
    if not len(x):
        return NONE
    if target.net.d > 1:
        return np.asarray(x.detach().cpu().numpy(), dtype=float)
    height = phi(target.net, x.to(target.net.dtype)).detach().cpu().numpy()
    return np.column_stack([x[:, 0].detach().cpu().numpy(), height])

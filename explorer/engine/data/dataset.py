"""A training set as a frozen value: x (n, d) with labels y (n,) in {-1, +1}, or more classes.

Further classes have the labels 3, 4, ... (see `classes`). Every edit returns a new set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.classes import class_labels, outputs_for, valid
from explorer.engine.data.presets import MAX_POINTS


@dataclass(frozen=True)
class Source:
    """The preset a dataset was drawn from: enough to draw it, or a fresh one, again.

    Attributes:
        preset: key in `PRESETS`.
        n: number of points.
        noise: standard deviation of the jitter, in units of the plane.
        seed: seed of the draw.

    Example:
        >>> from explorer import preset
        >>> preset("moons", n=10, noise=0.1, seed=3).source
        Source(preset='moons', n=10, noise=0.1, seed=3)
    """

    preset: str
    n: int
    noise: float
    seed: int


@dataclass(frozen=True, eq=False)
class Dataset:
    """A labelled set of points.

    Attributes:
        x: (n, d) floating, finite; n may be 0.
        y: (n,) in {-1, +1} and, with more classes, 3, 4, ...; of the type and on the device of x.
        source: the preset it was drawn from, or None once a hand has touched it.

    Raises:
        ValueError: where shapes or types of x and y differ, a label is unknown, or x is not finite.

    Example:
        >>> import torch
        >>> from explorer import Dataset
        >>> data = Dataset(torch.tensor([[0.0, 1.0]]), torch.tensor([1.0]))
        >>> more = data.with_point([2.0, 0.0], -1)
        >>> more.n, more.d, more.y
        (2, 2, tensor([ 1., -1.]))
    """

    x: Tensor
    y: Tensor
    source: Source | None = None

    def __post_init__(self) -> None:
        """Refuse shapes that do not match, labels other than -1 and +1, and nan or inf."""
        if self.x.ndim != 2 or self.x.shape[1] < 1 or self.y.shape != self.x.shape[:1]:
            raise ValueError(
                f"expected x (n, d) and y (n,) with d >= 1; "
                f"got {tuple(self.x.shape)} and {tuple(self.y.shape)}"
            )
        if not self.x.is_floating_point() or self.y.dtype != self.x.dtype:
            raise ValueError(
                "x and y must have one floating type; "
                f"got {self.x.dtype} and {self.y.dtype}. Convert with .to(torch.float64)."
            )
        # A sum that is finite has finite terms, and most labels are two: what costs more is rare.
        if not math.isfinite(self.x.detach().sum()) and not bool(torch.isfinite(self.x).all()):
            at = (~torch.isfinite(self.x).all(1)).nonzero().flatten().tolist()
            raise ValueError(
                f"x holds nan or inf in {len(at)} of {self.n} points, the first at {at[0]}; remove "
                "those points"
            )
        if not bool((self.y.abs() == 1).all()) and not bool(valid(self.y).all()):
            raise ValueError(
                "labels must be -1 or 1, and 3, 4, ... for further classes; "
                f"got {sorted(set(self.y.tolist()))}"
            )

    @classmethod
    def of(cls, x: Any, y: Any, outputs: int | None = None) -> Dataset:  # noqa: ANN401 - arrays
        """Return the set of points and classes in arrays of any kind.

        Args:
            x: points (n, d) of real numbers, or (n,) on a line: NumPy, torch, pandas or lists.
                More axes, as of images, become one.
            y: their classes (n,): numbers, bool or words; see `class_labels`.
            outputs: how many outputs the network has that was trained on them.

        Returns:
            A set in float64 without a source.

        Raises:
            ValueError: where x holds no finite numbers, or x and y differ in length.

        Example:
            >>> import numpy as np
            >>> from explorer import Dataset
            >>> Dataset.of(np.array([[0.0, 1.0], [2.0, 3.0]]), ["no", "yes"]).y.tolist()
            [-1.0, 1.0]
        """
        points = points_of(x)
        return cls(points, class_labels(y, outputs)[0])

    @property
    def n(self) -> int:
        """Return the number of points."""
        return self.x.shape[0]

    @property
    def outputs(self) -> int:
        """Return the number of outputs that a network for these labels needs: 1 for -1 and +1."""
        return outputs_for(self.y)

    @property
    def d(self) -> int:
        """Return the dimension of a point."""
        return self.x.shape[1]

    def to(
        self, *, dtype: torch.dtype | None = None, device: str | torch.device | None = None
    ) -> Dataset:
        """Return the same points in another floating type or on another device.

        Args:
            dtype: the floating type; None keeps it.
            device: the device; None keeps it.

        Returns:
            A set with the same source.
        """
        x = self.x.to(device=device, dtype=dtype)
        return Dataset(x, self.y.to(x), self.source)

    def over(self, unit: float) -> Dataset:
        """Return the points divided by a unit of length.

        Args:
            unit: a positive number, in units of the data.

        Returns:
            A set without a source.
        """
        return Dataset(self.x / unit, self.y)

    def with_point(self, x: Sequence[float] | Tensor, y: float) -> Dataset:
        """Return the set with one more point, which comes last.

        Args:
            x: the place (d,), in units of the data.
            y: its label.

        Returns:
            A set without a source.

        Raises:
            ValueError: where MAX_POINTS are there already, or x has another dimension.
        """
        if self.n >= MAX_POINTS:
            raise ValueError(f"a set holds at most {MAX_POINTS} points; erase some first")
        point = self._point(x)
        label = torch.as_tensor([y], dtype=self.y.dtype).to(self.y.device)
        return Dataset(torch.cat([self.x, point[None]]), torch.cat([self.y, label]))

    def without(self, indices: Iterable[int]) -> Dataset:
        """Return the set without some of its points.

        The others keep their order.

        Args:
            indices: which points go, from 0.

        Returns:
            A set without a source.

        Raises:
            ValueError: where there is no point of an index.
        """
        keep = torch.ones(self.n, dtype=torch.bool, device=self.x.device)
        for index in indices:
            keep[self._index(index)] = False
        return Dataset(self.x[keep], self.y[keep])

    def with_point_at(self, index: int, x: Sequence[float] | Tensor) -> Dataset:
        """Return the set with one point at another place, with its label.

        Args:
            index: which point, from 0.
            x: its new place (d,), in units of the data.

        Returns:
            A set without a source.

        Raises:
            ValueError: where there is no such point, or x has another dimension.
        """
        places = self.x.clone()
        places[self._index(index)] = self._point(x)
        return Dataset(places, self.y)

    def conflict(self) -> tuple[int, int] | None:
        """Return the first pair of equal points with different labels, or None.

        No network can separate such a pair.
        """
        seen: dict[tuple[float, ...], tuple[int, float]] = {}
        for i, (point, label) in enumerate(zip(self.x.tolist(), self.y.tolist(), strict=True)):
            first, other = seen.setdefault(tuple(point), (i, label))
            if other != label:
                return first, i
        return None

    def _point(self, x: Sequence[float] | Tensor) -> Tensor:
        point = torch.as_tensor(x, dtype=self.x.dtype).to(self.x.device)
        if point.shape != (self.d,):
            raise ValueError(f"a point here has {self.d} coordinates; got {tuple(point.shape)}")
        return point

    def _index(self, index: int) -> int:
        if not 0 <= index < self.n:
            raise ValueError(f"no point {index}; the set holds points 0 to {self.n - 1}")
        return index


def points_of(x: Any) -> Tensor:  # noqa: ANN401 - whatever numpy reads
    """Return points (n, d) in float64 on the CPU, of arrays of any kind; see `Dataset.of`."""
    try:
        given = np.asarray(x.detach().cpu().double() if isinstance(x, Tensor) else x, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"points must be numbers in an array (n, d): {error}") from error
    if given.ndim == 0:
        raise ValueError(f"points must be numbers in an array (n, d); got {x!r:.40}")
    columns = math.prod(given.shape[1:])
    return torch.from_numpy(np.ascontiguousarray(given).reshape(len(given), columns).copy())


def empty(d: int) -> Dataset:
    """Return a set without points.

    Args:
        d: dimension of the points that may come.

    Returns:
        The set: x (0, d) and y (0,) in float64.

    Example:
        >>> from explorer import empty
        >>> empty(2).with_point([0.5, 0.0], 1).x.tolist()
        [[0.5, 0.0]]
    """
    return Dataset(torch.zeros(0, d, dtype=torch.float64), torch.zeros(0, dtype=torch.float64))

"""Tables: data classes whose arrays have one row for each thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Self, TypeVar

import numpy as np
from torch import Tensor, cat

from explorer.engine.arrays import Flags, Index

T = TypeVar("T")
ARRAYS = (np.ndarray, Tensor)


@dataclass(frozen=True, eq=False)
class Rowwise:
    """Fields that are arrays or tensors, alone or in lists, have a row for each thing.

    What else a field holds belongs to the table whole.
    """

    def take(self, rows: Tensor | Index | Flags) -> Self:
        """Return some of the rows.

        Args:
            rows: their index (m,), in the order that is wanted, or a mask (n,).

        Returns:
            The table of these rows.
        """
        return map_arrays(lambda field: field[rows], self)

    def union(self, *others: Self) -> Self:
        """Return the rows of all, these first.

        Args:
            others: tables of the same kind.

        Returns:
            The table of all these rows.
        """
        return map_arrays(_join, self, *others)


def _join(*fields: Any) -> Any:  # noqa: ANN401 - of any field
    return (cat if isinstance(fields[0], Tensor) else np.concatenate)(fields)


def map_arrays(change: Callable[..., Any], first: T, *others: T, into: type = Rowwise) -> T:
    """Return the first value with each array in it made anew from those of all values.

    Args:
        change: (array of the first, array of the second, ...) -> the new one.
        first: a data class, a list or a tuple of what holds arrays, or an array.
        others: values of the same form.
        into: data classes within which arrays are sought; others stay as the first has them.

    Returns:
        The value; what is no array is that of the first.
    """
    if isinstance(first, ARRAYS):
        return change(first, *others)  # type: ignore[no-any-return]
    if isinstance(first, list | tuple):
        each = zip(first, *others, strict=True)
        return type(first)([map_arrays(change, *some, into=into) for some in each])
    if isinstance(first, into) and is_dataclass(first):
        made: Any = {
            f.name: map_arrays(
                change, getattr(first, f.name), *[getattr(v, f.name) for v in others], into=into
            )
            for f in fields(first)
        }
        return type(first)(**made)  # type: ignore[misc]
    return first

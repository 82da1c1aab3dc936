"""Tables: data classes whose arrays have one row for each thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from torch import Tensor, cat

from explorer.engine.arrays import Flags, Index


@dataclass(frozen=True, eq=False)
class Table:
    """Fields that are arrays or tensors, alone or in lists, have a row for each thing.

    What else a field holds belongs to the table whole.
    """

    def take(self, rows: Tensor | Index | Flags) -> Self:
        """Return some of the rows.

        Args:
            rows: their index, in the order that is wanted, or a mask.

        Returns:
            The table of these rows.
        """
        return self._of(lambda field: field[rows])

    def union(self, *others: Self) -> Self:
        """Return the rows of all, these first.

        Args:
            others: tables of the same kind.

        Returns:
            The table of all these rows.
        """
        return self._of(_joined, *others)

    def _of(self, change: Callable[..., Any], *others: Self) -> Self:
        tables, names = (self, *others), [field.name for field in fields(self)]
        return replace(self, **{n: _each(change, [getattr(t, n) for t in tables]) for n in names})


def _joined(*fields: Any) -> Any:  # noqa: ANN401 - of any field
    return (cat if isinstance(fields[0], Tensor) else np.concatenate)(fields)


def _each(change: Callable[..., Any], values: list[Any]) -> Any:  # noqa: ANN401 - of any field
    """Return what `change` makes of one field of all tables, list by list."""
    first = values[0]
    if isinstance(first, list | tuple):
        return type(first)(_each(change, list(some)) for some in zip(*values, strict=True))
    return change(*values) if isinstance(first, Tensor | np.ndarray) else first

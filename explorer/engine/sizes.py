"""What the tensors of a state must be like: declared at its fields, and asked of every file.

`off: Annotated[Tensor, Size("m")]` is a number for each candidate, and
`moments: Annotated[Moments, Like("x", "lam")]` the running means of their gradients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

import torch


@dataclass(frozen=True)
class Size:
    """What a tensor must be like.

    Attributes:
        axes: a word for each axis, with a space between two; "" for a single number. One word is
            one number throughout a state. "d" is the dimension of the points, "m" the number of
            candidates.
        dtype: torch.int64 or torch.bool; None: the floating type of the state.
        below: the axis that whole numbers count along: they are from 0 to its length less 1.
        empty: whether it may hold nothing, whatever its axes are.
        finite: whether nan and infinity are refused.

    Example:
        >>> from explorer.engine.attacks.kkt import KKTState
        >>> from explorer.engine.sizes import declarations
        >>> declarations(KKTState)["grad_x"].axes
        'm d'
    """

    axes: str = ""
    dtype: torch.dtype | None = None
    below: str = ""
    empty: bool = False
    finite: bool = False


@dataclass(frozen=True, init=False)
class Like:
    """Running means of an optimiser have the shapes of these fields, in this order."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


_KNOWN: dict[type[Any], Mapping[str, Size | Like]] = {}


def declarations(kind: type[Any]) -> Mapping[str, Size | Like]:
    """Return what is declared at the fields of a dataclass, by name; nothing for other fields."""
    if kind not in _KNOWN:
        hints = get_type_hints(kind, include_extras=True)
        parts = ((f.name, part) for f in fields(kind) for part in get_args(hints[f.name]))
        _KNOWN[kind] = {name: part for name, part in parts if isinstance(part, Size | Like)}
    return _KNOWN[kind]

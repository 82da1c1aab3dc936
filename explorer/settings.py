"""Settings by name, as people write them: unknown names and values of a wrong type are refused."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from explorer.engine.files import named

MOST_INT = 2**63 - 1  # what a seed and a tensor hold
WORDS: dict[Any, str] = {
    bool: "True or False", int: "a whole number", float: "a finite number", str: "a word",
    NoneType: "None", tuple: "whole numbers such as [100, 100]", Mapping: "settings by name",
}  # fmt: skip


def checked(kind: type[Any], given: Mapping[str, Any], who: str) -> dict[str, Any]:
    """The settings `given` for the dataclass `kind`, known to it and of its types.

    Args:
        kind: a dataclass of numbers, words, and tuples of whole numbers.
        given: its fields by name; those left out are not looked at.
        who: whose they are, for the message.

    Raises:
        ValueError: with the setting, what it must be, and what it is.
    """
    known = [f.name for f in fields(kind)]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(
            f"{who} has no setting {named(repr(unknown[0]))}; it has: {', '.join(known)}"
        )
    hints = get_type_hints(kind)
    for name, value in given.items():
        if not _fits(hints[name], value):
            raise ValueError(f"{name} must be {_expected(hints[name])}; got {_short(value)}")
    return dict(given)


def _fits(hint: Any, value: Any) -> bool:  # noqa: ANN401 - a type, and anything
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(part, value) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_fits(parts[0], v) for v in value)
    if hint in (int, float) and isinstance(value, bool):
        return False
    if isinstance(value, int) and abs(value) > MOST_INT:
        return False
    if hint is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, origin or hint)


def _short(value: Any) -> str:  # noqa: ANN401 - anything
    """A value as it can stand in a sentence; not even Python writes out the largest numbers."""
    if isinstance(value, int) and abs(value) > MOST_INT:
        return f"one of {value.bit_length()} bits"
    return named(reprlib.repr(value) if isinstance(value, dict | list | tuple) else repr(value))


def _expected(hint: Any) -> str:  # noqa: ANN401 - a type
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_expected(part) for part in parts)
    if origin is Literal:
        return f"one of {', '.join(parts)}"
    return WORDS[origin or hint]

"""Frozen dataclasses to and from plain JSON and named tensors, by their declared fields.

A field added to a state travels without a word here, and one that was taken out is left aside where
the class names it in `retired`; its `absent` says what a later field was in files that lack it,
where that is not its default. Nothing is looked up by a name that a file gives: only the classes
that can be reached from the type hints of the wanted one are built.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from explorer.engine.files import FileError, safe_name
from explorer.engine.settings import MOST_INT


class StoreError(FileError):
    """A file that cannot be used, or a run that cannot be saved; the message says why.

    Example:
        >>> from explorer import import_weights
        >>> import_weights(b"no weights")
        Traceback (most recent call last):
            ...
        explorer.engine.store.codec.StoreError: ...
    """


def encode(value: object, tensors: dict[str, Tensor]) -> Any:  # noqa: ANN401 (JSON has no type)
    """Return `value` as JSON; its tensors are added to `tensors` under names of their own."""
    if isinstance(value, Tensor):
        # A clone: pieces of one theta share memory, which the format refuses.
        name = f"t{len(tensors)}"
        tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": name}
    if is_dataclass(value) and not isinstance(value, type):
        return {
            "kind": type(value).__name__,
            "fields": {
                f.name: encode(getattr(value, f.name), tensors) for f in fields(value) if f.init
            },
        }
    if isinstance(value, tuple | list):
        return [encode(item, tensors) for item in value]
    if isinstance(value, Mapping):
        return {"map": {str(key): encode(item, tensors) for key, item in value.items()}}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}  # JSON has no word for it
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise StoreError(
        f"cannot save a {type(value).__name__}; expected numbers, text, tensors, tuples and "
        "frozen dataclasses of these"
    )


def decode(
    node: Any, tensors: Mapping[str, Tensor], hint: Any,  # noqa: ANN401
    kinds: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip # noqa: ANN401
    """Return the value of type `hint` that `encode` wrote.

    StoreError where the file does not fit it.

    `kinds`: types of the fields of `hint` that its own hints leave open, by name.
    """
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _first_that_fits(node, tensors, options)
    if origin is Literal:
        if isinstance(node, str) and node in options:
            return node
    elif is_dataclass(hint) and isinstance(hint, type):
        if isinstance(node, dict) and node.get("kind") == hint.__name__:
            return _build(hint, node.get("fields"), tensors, kinds or {})
    elif hint is Tensor:
        if isinstance(node, dict) and isinstance(node.get("tensor"), str):
            if node["tensor"] in tensors:
                return tensors[node["tensor"]]
            raise StoreError(
                f"the file names a tensor {safe_name(node['tensor'])} that it does not hold"
            )
    elif origin is tuple:
        if isinstance(node, list):
            if options[-1] is not Ellipsis and len(options) != len(node):
                raise StoreError(f"expected {len(options)} items; got {len(node)}")
            each = [options[0]] * len(node) if options[-1] is Ellipsis else options
            return tuple(decode(n, tensors, h) for n, h in zip(node, each, strict=True))
    elif origin in (dict, Mapping):
        if isinstance(node, dict) and isinstance(node.get("map"), dict):
            return {k: decode(v, tensors, options[1]) for k, v in node["map"].items()}
    elif hint is float:
        if isinstance(node, dict) and node.get("float") in ("inf", "-inf", "nan"):
            return float(node["float"])
        if isinstance(node, float) or (type(node) is int and abs(node) <= MOST_INT):
            return float(node)
    elif hint is NoneType:
        if node is None:
            return None
    elif isinstance(hint, type) and type(node) is hint:
        if not isinstance(node, int) or abs(node) <= MOST_INT:
            return node
    raise StoreError(f"expected {_name(hint)}; got {_short(node)}")


def _first_that_fits(node: Any, tensors: Mapping[str, Tensor], options: tuple[Any, ...]) -> Any:  # noqa: ANN401
    problem = StoreError("a union without options")
    for option in options:
        try:
            return decode(node, tensors, option)
        except StoreError as error:
            # Of several complaints the one about the matching kind says most.
            matches = isinstance(node, dict) and node.get("kind") == _name(option)
            problem = error if matches or option is options[0] else problem
    raise problem


def _build(
    cls: type, given: object, tensors: Mapping[str, Tensor], kinds: Mapping[str, Any]
) -> Any:  # noqa: ANN401
    if not isinstance(given, dict):
        raise StoreError(f"{cls.__name__} has no fields in this file")
    hints, known = {**get_type_hints(cls), **kinds}, {f.name: f for f in fields(cls) if f.init}
    missing = [
        name
        for name, f in known.items()
        if name not in given and f.default is MISSING and f.default_factory is MISSING
    ]
    retired = getattr(cls, "retired", ())
    unknown = sorted(set(given) - set(known) - set(retired))
    if missing or unknown:
        raise StoreError(
            f"{cls.__name__} of this file has other fields than this version knows "
            f"(missing: {safe_name(missing)}, unknown: {safe_name(unknown)})"
        )
    values = before(cls)
    for name, node in given.items():
        if name not in known:
            continue
        try:
            values[name] = decode(node, tensors, hints[name])
        except StoreError as error:
            raise StoreError(f"{cls.__name__}.{name}: {error}") from error
    try:
        return cls(**values)
    except (ValueError, TypeError, IndexError) as error:
        raise StoreError(f"{cls.__name__}: {error}") from error


def before(cls: type) -> dict[str, Any]:
    """Return the values of fields that files lack which were saved before there were such."""
    return dict(getattr(cls, "absent", {}))


def _short(node: Any) -> str:  # noqa: ANN401
    """Return the beginning of a node, without the rest being written out."""
    if isinstance(node, int) and abs(node) > MOST_INT:
        return f"a whole number of {node.bit_length()} bits"
    return reprlib.repr(node)[:60] if isinstance(node, dict | list) else str(node)[:60]


def _name(hint: Any) -> str:  # noqa: ANN401
    return hint.__name__ if isinstance(hint, type) else str(hint)

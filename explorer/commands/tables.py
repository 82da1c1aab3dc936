"""The table of a sweep: from a TOML file, and from words over it."""

from __future__ import annotations

import tomllib
from ast import literal_eval
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from explorer.engine.files import FileError, named, read_file, reading
from explorer.sweep import seeds_of


def table_of(file: Path | None, settings: Iterable[str]) -> dict[str, Any]:
    """The table of a sweep: that of a TOML file, then FIELD=VALUE over it.

    A field with a point, such as attack_config.m=[50, 100], is a setting within.

    Raises:
        ValueError: for a file or words that make no table.
    """
    found = {} if file is None else _read(file)
    for pair in settings:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--set takes FIELD=VALUE, such as n=[10, 20]; got {pair!r}")
        outer, _, inner = name.partition(".")
        if not inner:
            found[name] = _value(name, text)
            continue
        within = found.setdefault(outer, {})
        if not isinstance(within, dict):
            raise ValueError(f"{outer} must be settings by name, such as {name}; got {within!r}")
        within[inner] = _value(name, text)
    if isinstance(found.get("seed"), str):
        found["seed"] = seeds_of(found["seed"])
    return found


def _read(file: Path) -> dict[str, Any]:
    text = read_file(file)
    with reading(f"{named(file.name)} is not TOML: it", "Write lines such as n = [10, 20]."):
        content = tomllib.loads(text.decode("utf-8"))
    found = content.get("table", content)
    if not isinstance(found, dict):
        raise FileError(
            f"{named(file.name)}: table must hold fields of rows, below a line [table]; "
            f"got table = {named(repr(found))}"
        )
    return found


def _value(name: str, text: str) -> Any:  # noqa: ANN401 - what people write
    """A value or an axis, a list of them. What is no Python value is a word."""
    try:
        value = literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if "," not in text:
            return text
        value = [_value(name, part.strip()) for part in text.split(",")]
    if not isinstance(value, tuple):
        return value
    # widths=100,100 is one network of two layers, as in the other verbs
    one = name == "widths" and all(isinstance(v, int) for v in value)
    return value if one else list(value)

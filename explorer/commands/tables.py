"""The table of a sweep: from a TOML file, and from FIELD=VALUE over it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from explorer.engine.files import FileError, read_file, reading, safe_name
from explorer.engine.roster import ROSTER, by_key
from explorer.engine.settings import Setting, schema, setting_of, value_of
from explorer.engine.training import TrainConfig
from explorer.research.sweep import Experiment, seeds_of

WITHIN = ("train", "attack_config")  # the fields of a row that are settings by name


def table_of(file: Path | None, settings: Iterable[str]) -> dict[str, Any]:
    """Return the table of a sweep: that of a TOML file, then FIELD=VALUE over it.

    A name with a dot, such as attack_config.m=[50, 100], is a setting inside a field. Each value is
    read as the field, or the setting of the attack, is declared.

    Raises:
        ValueError: for a file or a text that is no table.
    """
    found = {} if file is None else _table_in(file)
    later: list[tuple[str, str, str]] = []  # settings within, read when the attacks are known
    for pair in settings:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--set takes FIELD=VALUE, such as n=[10, 20]; got {pair!r}")
        outer, _, inner = name.partition(".")
        if inner:
            later.append((outer, inner, text))
            continue
        row = setting_of(Experiment, name, "a row")
        if row.kind == "table":
            raise ValueError(
                f"{name} must be settings by name, such as {name}.steps=100; got {pair!r}"
            )
        found[name] = text if name == "seed" and "-" in text else values_of(row, text)
    for outer, inner, text in later:
        within = found.setdefault(outer, {})
        if outer not in WITHIN or not isinstance(within, dict):
            raise ValueError(
                f"{outer} must be settings by name, such as {outer}.{inner}; got {within!r}"
            )
        within[inner] = values_of(_inner_setting(found, outer, inner), text)
    if isinstance(found.get("seed"), str):
        found["seed"] = seeds_of(found["seed"])
    return found


def values_of(row: Setting, text: str) -> Any:  # noqa: ANN401 - what people write
    """Return a value of a setting, or an axis: a list of values, in brackets or with commas."""
    text = text.strip()
    read: Callable[[str], Any] = partial(value_of, row)
    if row.kind == "reals" and "[" not in text[1:]:  # one value, with or without brackets
        return read(text)
    bracketed = text.startswith("[") and text.endswith("]") and len(parts_of(text)) == 1
    parts = parts_of(text[1:-1] if bracketed else text)
    if bracketed:
        return [read(part) for part in parts]
    # widths=100,100 is one network of two layers, as in the other verbs
    one = len(parts) == 1 or (row.kind == "wholes" and all(part.isdigit() for part in parts))
    return read(text) if one else [read(part) for part in parts]


def parts_of(text: str) -> list[str]:
    """Return the parts between the commas that are outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _inner_setting(table: dict[str, Any], outer: str, inner: str) -> Setting:
    """Return the setting within: of the training, or of an attack, those of the table first.

    A row whose own attack has no such setting is refused when it runs, as one row of many.
    """
    if outer == "train":
        return setting_of(TrainConfig, inner, outer)
    named = table.get("attack", Experiment.attack)
    keys = [key for key in (named if isinstance(named, list) else [named]) if key]
    kinds = [by_key(key).config for key in (*keys, *ROSTER)]
    declared = (row for kind in kinds for row in schema(kind) if row.name == inner)
    return next(declared, None) or setting_of(kinds[0], inner, (*keys, *ROSTER)[0])


def _table_in(file: Path) -> dict[str, Any]:
    text = read_file(file)
    with reading(f"{safe_name(file.name)} is not TOML: it", "Write lines such as n = [10, 20]."):
        content = tomllib.loads(text.decode("utf-8"))
    found = content.get("table", content)
    if not isinstance(found, dict):
        raise FileError(
            f"{safe_name(file.name)}: table must hold fields of rows, below a line [table]; "
            f"got table = {safe_name(repr(found))}"
        )
    return found

"""The verb `settings`: every setting there is, with its default, its bounds and what it is."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING
from typing import Annotated, Any

import typer

from explorer.commands.base import print_table
from explorer.commands.options import option
from explorer.engine.data.images import Choice
from explorer.engine.energy.questions import MapConfig
from explorer.engine.explanations.safe_split import SafeSplitConfig
from explorer.engine.membership.experiment import MembershipConfig
from explorer.engine.roster import ROSTER
from explorer.engine.settings import Setting, json_schema, schema
from explorer.engine.training import TrainConfig
from explorer.engine.weight_decay import DecayConfig
from explorer.research.census import CensusConfig
from explorer.research.convolutions import ConvolutionRun
from explorer.research.image_runs import ImageRun
from explorer.research.sweep.experiment import Experiment
from explorer.research.tuning import TuneConfig

OTHERS: dict[str, tuple[str, type[Any], str]] = {
    "train": ("Training", TrainConfig, "margin-explorer train --train-set NAME=VALUE"),
    "tune": ("Tuning", TuneConfig, "margin-explorer tune"),
    "sweep": ("A row of a sweep", Experiment, "margin-explorer sweep --set NAME=VALUE"),
    "weight-decay": ("Weight decay", DecayConfig, "margin-explorer weight-decay"),
    "safe-split": ("Safe splits", SafeSplitConfig, "margin-explorer explain --experiment longer"),
    "energy": ("A map of the energy", MapConfig, "margin-explorer energy"),
    "census": ("A census of a landscape", CensusConfig, "margin-explorer census"),
    "images": ("Images", Choice, "margin-explorer digits"),
    "digits": ("An attack on images", ImageRun, "margin-explorer digits"),
    "convolution": ("A small convolution", ConvolutionRun, "margin-explorer convolution"),
    "membership": ("Membership inference", MembershipConfig, "margin-explorer membership"),
}
HEAD = """# Settings

<!-- Made by `margin-explorer settings --markdown`: change the declarations, not this page. -->

Every setting of the training, of each attack and of the experiments: its name on the page, its
field and default, what it is, what it must be, and its unit. A dash stands where the page shows no
control. `margin-explorer settings kkt` prints one table, `margin-explorer settings kkt --json` its
JSON schema. On the page 0 stands for None. Lengths are in units of the data; the plane of the page
is 4 wide.
"""


def kinds() -> dict[str, tuple[str, type[Any], str]]:
    """Return title, class of settings and command by name; attacks go by their key."""
    attacks = {
        key: (entry.title, entry.config, f"margin-explorer attack --attack {key} --set NAME=VALUE")
        for key, entry in ROSTER.items()
    }
    return {"train": OTHERS["train"], **attacks, **OTHERS}


def markdown(names: list[str]) -> str:
    """Return the page of the docs: a table for each of these classes of settings."""
    return "\n".join([HEAD, *(_section(*kinds()[name]) for name in names)])


def settings(
    name: Annotated[
        str | None, typer.Argument(help="An attack, train, tune, sweep; all where left out.")
    ] = None,
    as_json: Annotated[bool, option("--json", "Print the JSON schema.")] = False,
    as_markdown: Annotated[bool, option("--markdown", "Print the page of the docs.")] = False,
) -> None:
    """List the settings of an attack or of the training: default, bounds, unit, meaning."""
    known = kinds()
    if name is not None and name not in known:
        raise ValueError(f"no settings {name!r}; there are: {', '.join(known)}")
    names = list(known) if name is None else [name]
    if as_markdown:
        print(markdown(names), end="")
    elif as_json:
        found = {key: json_schema(known[key][1]) for key in names}
        print(json.dumps(found if name is None else found[name], indent=1, ensure_ascii=False))
    else:
        for key in names:
            _print(*known[key])


def _section(title: str, kind: type[Any], command: str) -> str:
    words = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    lines = [
        f"## {title}: `{kind.__name__}`", "", f"{words} `{command}`", "",
        "| on the page | field and default | meaning | must be | unit |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for row in schema(kind):
        cells = (
            _on_page(row),
            f"`{_default(kind, row)}`",
            _meaning(row),
            _range_words(row),
            row.unit,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _on_page(row: Setting) -> str:
    return "–" if row.form == "none" else f"**{row.title}**"


def _default(kind: type[Any], row: Setting) -> str:
    known = row.default is not MISSING
    return f"{kind.__name__}.{row.name}" + (f" = {row.default!r}" if known else "")


def _meaning(row: Setting) -> str:
    return f"{row.description}. {row.note}".strip()


def _range_words(row: Setting) -> str:
    """Return what a value must be, as a cell of the table."""
    if row.kind == "choice":
        return ", ".join(
            str(value) if words == value else f"{value} ({words})" for words, value in row.choices
        )
    if row.choices:
        return ", ".join(f"{value} ({words})" for words, value in row.choices)
    bounds = row.bounds.removeprefix("be ").replace("not be negative", "at least 0")
    page = "" if row.page is None else f"on the page {row.page[0]:g} to {row.page[1]:g}"
    return ", ".join(part for part in (row.words, bounds, page) if part)


def _print(title: str, kind: type[Any], command: str) -> None:
    heads = ("setting", "default", "must be", "meaning", "unit")
    rows = (
        (row.name, "" if row.default is MISSING else repr(row.default), _range_words(row),
         _meaning(row), row.unit)
        for row in schema(kind)
    )  # fmt: skip
    print_table(f"{title}: {command}", heads, rows, overflow="fold")


VERBS = {"settings": settings}

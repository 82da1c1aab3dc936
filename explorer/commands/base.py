"""What the verbs of the command line share: the guard, progress, printing, NAME=VALUE."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import typer
from rich.box import HEAVY_HEAD, Box
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from explorer.commands import READER_LEFT
from explorer.engine.files import one_line, safe_name
from explorer.engine.progress import Progress
from explorer.engine.roster import AttackConfig, by_key
from explorer.engine.settings import config_of, setting_of, value_of
from explorer.research.report import Summary
from explorer.research.runs import RunFailed

PIPE_WIDTH = 10_000  # arbitrary: no row is as wide, and a table takes what it needs
MOST_WORDS = 1000  # arbitrary: a list of all settings fits; what a file says is shorter
P = ParamSpec("P")
T = TypeVar("T")


def guard(command: Callable[P, None]) -> Callable[P, None]:
    """Print an error as one line on stderr, never as a traceback."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:  # an OSError, but no mistake of the user
            raise typer.Exit(READER_LEFT) from None
        except KeyboardInterrupt:
            fail("stopped", 130)
        except RunFailed as error:
            fail(error, 1)
        except (ValueError, OSError, ImportError) as error:
            fail(error, 2)

    return run


def fail(error: Exception | str, code: int) -> None:
    """Print an error as one line on stderr, and end with this exit code."""
    print(f"margin-explorer: {one_line(error, MOST_WORDS)}", file=sys.stderr)
    raise typer.Exit(code)


class Printer(Console):
    """Prints tables: as wide as the terminal, and in full if stdout is no terminal."""

    def __init__(self) -> None:
        super().__init__(width=None if sys.stdout.isatty() else PIPE_WIDTH)

    def on_broken_pipe(self) -> None:
        """Let `guard` handle it; rich's own exit code means something else here."""
        raise BrokenPipeError


def watch(states: Iterable[T], total: int, label: str) -> Iterable[T]:
    """Show a progress bar on stderr, if that is a terminal."""
    return tqdm(states, total=total, desc=label, file=sys.stderr, disable=None, leave=False)


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Yield what hears of the share done and shows it on stderr, if that is a terminal."""
    with tqdm(
        total=100, desc=label, unit="%", file=sys.stderr, disable=None, leave=False,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]",
    ) as bar:  # fmt: skip
        yield lambda share: bar.update(100 * share - bar.n)


def show(as_json: bool, title: str, found: Summary) -> None:
    """Print a result as JSON alone, or as a table."""
    if as_json:
        print(found.json)
    else:
        rows = ((name.replace("_", " "), words) for name, words in found.rows)
        print_table(title, (), rows)


def print_table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]],
    box: Box | None = HEAVY_HEAD, **columns: Any,  # noqa: ANN401 - of rich
) -> None:  # fmt: skip
    """Print rows below the names of their columns; `columns` says how all of these look."""
    table = Table(title=title, show_header=bool(heads), box=box)
    for head in heads:
        table.add_column(head, **columns)
    for row in rows:
        table.add_row(*row)
    Printer().print(table)


def attack_config(name: str, settings: list[str] | None, **given: Any) -> AttackConfig:  # noqa: ANN401
    """Return settings of the attack `name`: defaults, the options given, then --set NAME=VALUE.

    Raises:
        ValueError: for an unknown attack or setting, or a value that it refuses.
    """
    kind = by_key(name).config
    chosen = {key: value for key, value in given.items() if value is not None}
    return config_of(kind, chosen | assignments(kind, settings, name), name)


def assignments(kind: type[Any], settings: list[str] | None, who: str) -> dict[str, Any]:
    """Return values by name from NAME=VALUE, each read as this class of settings declares it.

    Raises:
        ValueError: for an unknown setting of `who`, or a text that is not a value of it.
    """
    chosen: dict[str, Any] = {}
    for pair in settings or []:
        key, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(
                f"--set takes NAME=VALUE, such as lr_x=0.01; got {safe_name(repr(pair))}"
            )
        chosen[key] = value_of(setting_of(kind, key, who), text)
    return chosen

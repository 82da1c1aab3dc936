"""The command line: the same pipeline without a page. Results on stdout, progress on stderr.

Exit codes: 0 done, 1 the run failed (diverged, died, or did not separate the points), 2 a wrong
option or an unusable file, 130 stopped by Ctrl-C, 141 the reader of a pipe has closed it.
A verb's file is imported when the verb is called: it loads torch, and help needs none of it.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from importlib import import_module
from typing import Annotated, Any, NoReturn

from explorer import __version__
from explorer.commands import READER_LEFT, RENAMED, VERBS

YOUNG = 50_000  # arbitrary: objects made between two searches for cycles; an import makes 200,000
LIBRARIES = ("typer", "rich", "tqdm")  # of the extra `cli`


def advise_install(missing: ModuleNotFoundError) -> NoReturn:
    """End with a line on what to install, if the command's own libraries are missing."""
    if missing.name not in LIBRARIES:
        raise missing
    sys.exit(  # the engine is installed without its command
        f"margin-explorer needs its command line ({missing}): pip install margin-explorer[cli]"
    )


try:
    import typer
    from typer.core import TyperGroup
    from typer.main import get_command
except ModuleNotFoundError as missing:
    advise_install(missing)


def page_of(place: str, landscape: bool, bar: Any) -> str:  # noqa: ANN401 (a layer's own type)
    """Return a page that plays, for the verb that writes one; see `page.recording.places`."""
    from explorer.page.recording import places

    return places.page_of(place, landscape, bar)


def load_verb(verb: str) -> Any:  # noqa: ANN401 (typer's own class of commands has no public name)
    """Return the verb with its options: import its file, and set the number of threads."""
    try:
        topic = import_module(f"explorer.commands.{VERBS[verb][0]}")
        from explorer.commands.base import guard
        from explorer.engine.threads import limit_threads
    except ModuleNotFoundError as missing:
        advise_install(missing)
    limit_threads()
    alone = typer.Typer(add_completion=False)
    alone.command(verb)(guard(topic.VERBS[verb]))
    return get_command(alone)


def present_name(word: str) -> str:
    """Return the word of a command line, under the name that its option has now."""
    name, equals, value = word.partition("=")
    return f"{RENAMED.get(name, name)}{equals}{value}"


class Verbs(TyperGroup):
    """Verbs of which only name and help are loaded until one is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401
        """Return the verb that is called, loaded, and its words."""
        ctx.obj = page_of  # the verbs know no page
        verb, command, rest = super().resolve_command(ctx, args)
        if verb is None:
            return verb, command, rest
        return verb, load_verb(verb), [present_name(word) for word in rest]


app = typer.Typer(
    cls=Verbs, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Train a ReLU network to its maximum margin, then attack its weights.",
)  # fmt: skip


@app.callback(invoke_without_command=True)
def version(
    shown: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Train a ReLU network to its maximum margin, then attack its weights."""
    if shown:
        print(__version__)
        raise typer.Exit


def placeholder() -> None:
    """Stands for a verb until it is called; see `Verbs`."""


for name, (_, words) in VERBS.items():
    app.command(name, help=words)(placeholder)


def main() -> None:
    """Run the command `margin-explorer`.

    What it imports stays: neither while it is loaded nor at the end is it searched for cycles.
    """
    gc.set_threshold(YOUNG)
    atexit.register(gc.freeze)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone: nothing is left to print
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_LEFT)


if __name__ == "__main__":
    main()

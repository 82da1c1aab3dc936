"""The command line: the same road without a page. Results on stdout, progress on stderr.

Exit codes: 0 done, 1 the run failed (diverged, died, or did not separate the points), 2 a wrong
option or an unusable file.
"""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer

    from explorer.commands import (
        decay,
        digits,
        energy,
        explain,
        grid,
        membership,
        road,
        settings,
        sweep,
        tune,
        univariate,
    )
    from explorer.commands.base import guarded, option
except ModuleNotFoundError as missing:
    if missing.name not in ("typer", "rich", "tqdm"):
        raise
    sys.exit(  # the engine is installed without its command
        f"margin-explorer needs its command line ({missing}): pip install margin-explorer[cli]"
    )

from explorer import __version__
from explorer.engine.threads import limit_threads

# each has VERBS, the functions by the name they are called with
TOPICS = (road, decay, digits, energy, explain, membership, tune, grid, sweep, univariate, settings)

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Train a ReLU network to its maximum margin, then attack its weights.",
)  # fmt: skip
for topic in TOPICS:
    for verb, function in topic.VERBS.items():
        app.command(verb)(guarded(function))


@app.callback(invoke_without_command=True)
def version(
    shown: Annotated[bool, option("--version", "Print the version and stop.")] = False,
) -> None:
    """Train a ReLU network to its maximum margin, then attack its weights."""
    limit_threads()  # before any verb
    if shown:
        print(__version__)
        raise typer.Exit


def main() -> None:
    """The command `margin-explorer`."""
    app()


if __name__ == "__main__":
    main()

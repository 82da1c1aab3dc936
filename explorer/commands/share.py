"""What is given away of a run: do again what a link holds; make a film of it, a page that plays."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from explorer.commands import base, options
from explorer.commands.outputs import check_files
from explorer.engine import store
from explorer.engine.files import safe_name, write_file
from explorer.engine.store import Run, thinned_run
from explorer.research import report, runs
from explorer.research.pictures import planes
from explorer.research.repeat import Repeated, repeat, share_of_steps
from explorer.research.report import Summary
from explorer.research.run_report import page_of
from explorer.research.state import read_link


def repeat_link(
    link: Annotated[str, typer.Argument(help="A link of the page, or its part behind “#”.")],
    out: Annotated[Path | None, options.option("--out", "Save the run.")] = None,
    page: Annotated[
        Path | None, options.option("--report", "Write all that is needed to cite it, as HTML.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Do again what a link holds: train, attack, judge; print the numbers of the page."""
    run = read_link(link)
    check_files(out, page)
    with base.progress_bar("repeat") as progress:
        made = repeat(run, share_of_steps(run, progress))
    if out is not None:
        store.save_run(thinned_run(_with_states(made)), out)
    if page is not None:
        write_file(page, page_of(made))
    found = report.of_repeated(made)
    for name, path in (("run", out), ("report", page)):
        found += Summary() if path is None else report.line(name, path)
    base.show(as_json, "Repeated", found)


def _with_states(made: Repeated) -> Run:
    """Return the run with its last states, as a page opens it."""
    train = () if made.state is None else (made.state,)
    attack = () if made.attacked is None else made.attacked.states[-1:]
    return replace(made.run, train_states=train, attack_states=attack)


Part = StrEnum("Part", ["training", "attack"])  # what a film shows


def film(
    file: Annotated[Path, typer.Argument(help="A saved run.")],
    of: Annotated[Part, options.option("--of", "What it shows.")] = Part.training,
    out: Annotated[Path | None, options.option("--out", "A GIF; else named after --of.")] = None,
    as_json: options.Json = False,
) -> None:
    """Make a film of the training or of the attack of a saved run."""
    path = out or Path(f"{of}.gif")
    if path.suffix.lower() != ".gif":
        raise ValueError(
            f"a film is a GIF; got --out {path.name}. Name it {path.with_suffix('.gif').name}; the "
            f"program ffmpeg makes a video of it: ffmpeg -i {path.with_suffix('.gif').name} "
            f"{path.name}"
        )
    run, net, points = runs.open_run(file)
    states = () if run is None else run.train_states if of is Part.training else run.attack_states
    if points is None or len(states) < 2:
        raise ValueError(
            f"{safe_name(file.name)} holds {len(states)} states of the {of}; a film needs 2. Save "
            "a run with its history: `train --out`, `attack --out`, or the run file of the page."
        )
    if points.d > 2:
        raise ValueError(f"a film shows points of 1 or 2 coordinates; got {points.d}.")
    check_files(path)
    frames = planes.film(points, states, None if of is Part.training else net)
    drawn = list(base.watch(frames, min(len(states), planes.MOST_FRAMES), "film"))
    write_file(path, planes.gif(drawn))
    found = report.lines({"film": path, "frames": len(drawn), "shows": of.value})
    base.show(as_json, "Film", found)


def export(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            help="A saved run with its history, a link, which is run again, a lesson's file; or "
            "story, the nine scenes."
        ),
    ],
    out: Annotated[Path, options.option("--out", "The page, a file of HTML.")] = Path("run.html"),
    landscape: Annotated[
        bool,
        options.option(
            "--landscape/--no-landscape",
            "Add 91 energies of starts, and the attack from 21 places.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Make a page of a run, a lesson or the story that plays without Python, in one file."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(
            f"a page that plays is a file of HTML; got --out {out.name}. Name it "
            f"{out.with_suffix('.html').name}."
        )
    check_files(out)
    page: str = ctx.obj(file, landscape, base.progress_bar)  # of `explorer.cli`
    write_file(out, page.encode())
    found = report.lines({"page": out, "bytes": len(page.encode())})
    base.show(as_json, "Page that plays", found)


VERBS = {"repeat": repeat_link, "film": film, "export": export}

"""What is given away of a run: do again what a link holds; make a film of a run."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from explorer.commands import base, options
from explorer.commands.outputs import check_files
from explorer.engine import store
from explorer.engine.files import safe_name, write_file
from explorer.engine.store import Run, thinned_run
from explorer.research import report, runs
from explorer.research.pictures import planes
from explorer.research.repeat import Repeated, repeat
from explorer.research.run_report import page_of, training_of
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
    made = _repeated(run)
    if out is not None:
        store.save_run(thinned_run(_with_states(made)), out)
    if page is not None:
        write_file(page, page_of(made))
    content, rows = {"dataset": report.of_dataset(run.dataset)}, list[tuple[str, str]]()
    trained = training_of(made)
    if trained is not None:
        content |= report.of_training(run.dataset, trained)
        rows += report.training_rows(run.dataset, trained)
    if made.attacked is not None:
        content |= {"attack": report.of_attack(made.attacked)}
        rows += report.attack_rows(made.attacked)
    rows = rows or [("points", f"{run.dataset.n} in {run.dataset.d}-D"), ("network", "none yet")]
    written = {name: path for name, path in (("run", out), ("report", page)) if path is not None}
    rows += [(name, str(path)) for name, path in written.items()]
    base.show_result(as_json, content | written, "Repeated", rows)


def _repeated(run: Run) -> Repeated:
    """Repeat it; a bar on stderr shows how far it is, if that is a terminal."""
    whole = max(sum(run.steps), 1)
    with tqdm(total=whole, desc="repeat", file=sys.stderr, disable=None, leave=False) as bar:

        def watch(part: str, done: int, of: int) -> None:
            bar.update(done + (run.steps[0] if part == "attack" else 0) - bar.n)

        return repeat(run, watch)


def _with_states(made: Repeated) -> Run:
    """Return the run with its last states, as a page opens it."""
    from dataclasses import replace

    train = () if made.state is None else (made.state,)
    attack = () if made.attacked is None else made.attacked.states[-1:]
    return replace(made.run, train_states=train, attack_states=attack)


class Part(StrEnum):
    """What a film shows."""

    training = "training"
    attack = "attack"


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
    content = {"film": path, "frames": len(drawn), "shows": of.value}
    base.show_result(as_json, content, "Film", [(name, str(v)) for name, v in content.items()])


VERBS = {"repeat": repeat_link, "film": film}

"""The verb that does again what a link holds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from explorer.commands import base
from explorer.commands.outputs import check_files
from explorer.engine import store
from explorer.engine.store import Run, thinned_run
from explorer.research import report
from explorer.research.repeat import Repeated, repeat
from explorer.research.run_report import page_of, training_of
from explorer.research.state import read_link


def repeat_link(
    link: Annotated[str, typer.Argument(help="A link of the page, or its part behind “#”.")],
    out: Annotated[Path | None, base.option("--out", "Save the run.")] = None,
    page: Annotated[
        Path | None, base.option("--report", "Write all that is needed to cite it, as HTML.")
    ] = None,
    as_json: base.Json = False,
) -> None:
    """Do again what a link holds: train, attack, judge; print the numbers of the page."""
    run = read_link(link)
    check_files(out, page)
    made = _repeated(run)
    if out is not None:
        store.save_run(thinned_run(_with_states(made)), out)
    if page is not None:
        page.write_text(page_of(made), encoding="utf-8")
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
    """The run with its last states, as a page opens it."""
    from dataclasses import replace

    train = () if made.state is None else (made.state,)
    attack = () if made.attacked is None else made.attacked.states[-1:]
    return replace(made.run, train_states=train, attack_states=attack)


VERBS = {"repeat": repeat_link}

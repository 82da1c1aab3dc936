"""The verb `audit`: what a trained model gives away of its training points, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from explorer.commands import base, options
from explorer.commands.options import option
from explorer.commands.outputs import check_files
from explorer.engine.data.files import Table, class_of, read_table
from explorer.engine.files import naming
from explorer.engine.store import read_file
from explorer.research import runs
from explorer.research.audit import audit as auditing
from explorer.research.audit import report as audit_report
from explorer.research.audit.result import Audit
from explorer.research.words.audit import assumptions

LABEL = "Column of the classes; y, class, label or target, or the last one."


def audit(
    model: Annotated[Path, typer.Argument(help="Weights: a state_dict, or a saved run.")],
    data: Annotated[Path, typer.Argument(help="Training points: a CSV with a header, or NPZ.")],
    heldout: Annotated[
        Path | None,
        option("--heldout", "Points of the same source that were not trained on."),
    ] = None,
    label: Annotated[str | None, option("--label", LABEL)] = None,
    classes: Annotated[
        str | None,
        option("--classes", "In the order of the model, such as no,yes; else in their own."),
    ] = None,
    attacks: Annotated[
        list[str] | None, option("--attack", "An attack of the roster; those that fit.")
    ] = None,
    steps: options.Length = None,
    radius: Annotated[
        float | None, option("--radius", "Of a find, as a share of the points' spread.")
    ] = None,
    seed: options.Seed = 0,
    device: options.Where = options.Device.cpu,
    out: Annotated[
        Path | None,
        option("--out", "The audit as .html, .json, .csv, .svg, .pdf or .png."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Audit a trained model: what its weights give away of its training points."""
    check_files(out)
    _, net, _ = runs.open_run(model)
    points, others = (_table(path, label) for path in (data, heldout))
    assert points is not None
    order = None if classes is None else [class_of(name.strip()) for name in classes.split(",")]
    found = auditing(
        net, points, heldout=others, classes=order,
        attacks=attacks or None, radius=radius, seed=seed, steps=steps, watch=base.watch,
        device=device.value,
    )  # fmt: skip
    if out is not None:
        found.save(out)
    base.show_result(as_json, audit_report.as_json(found), "Audit", _rows(found, out))


def _table(path: Path | None, label: str | None) -> Table | None:
    if path is None:
        return None
    with naming(path):
        return read_table(read_file(path), label)


def _rows(found: Audit, out: Path | None) -> list[tuple[str, str]]:
    met = {True: "met", False: "not met", None: "not known"}
    rows = [("verdict", found.sentence), ("network", repr(found.net))]
    rows += [(one.name, f"{met[one.met]}: {one.words}") for one in assumptions(found)]
    rows += [(title, words) for title, _, _, words in audit_report.attack_rows(found)]
    return rows if out is None else [*rows, ("written", str(out))]


VERBS: dict[str, Any] = {"audit": audit}

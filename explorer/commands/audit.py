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
from explorer.research.report import Summary

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
    pixels: Annotated[
        str | None,
        option("--pixels", "Channels, height, width where the columns are pixels: 1,28,28."),
    ] = None,
    weight_decay: Annotated[
        float | None,
        option("--weight-decay", "mu of mean loss + mu/2 |theta|^2 (SGD), where it is known."),
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
        attacks=attacks or None, radius=radius, seed=seed, steps=steps, pixels=_shape(pixels),
        weight_decay=weight_decay,
        watch=base.watch, device=device.value,
    )  # fmt: skip
    written = Summary()
    if out is not None:
        written = Summary([("written", str(found.save(out)))])
    base.show(as_json, "Audit", audit_report.summary(found) + written)


def _shape(text: str | None) -> tuple[int, int, int] | None:
    """Return the shape of images, such as 1,28,28."""
    if text is None:
        return None
    shape = options.numbers_of(text, "--pixels")
    if len(shape) != 3:
        raise ValueError(f"--pixels takes channels, height and width, such as 1,28,28; got {text}")
    return shape


def _table(path: Path | None, label: str | None) -> Table | None:
    if path is None:
        return None
    with naming(path):
        return read_table(read_file(path), label)


VERBS: dict[str, Any] = {"audit": audit}

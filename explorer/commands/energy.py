"""The verb `energy`: a map of the energy of one point, or the names of all points' maps."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from explorer.commands import base, options
from explorer.commands.options import option
from explorer.commands.outputs import check_files, check_pictures
from explorer.engine.data import heldout
from explorer.engine.energy.maps import Split
from explorer.engine.energy.questions import (
    MAPS,
    STANDARD,
    Answers,
    MapConfig,
    MapQuestion,
    Picture,
)
from explorer.engine.files import write_file
from explorer.research import report, runs, words
from explorer.research.pictures.figures import energy_picture
from explorer.research.report import Summary

Kind = StrEnum("Kind", ["point", "split", "starts", "ridge", "last"])  # the keys of MAPS
_POINT = Kind("point")
TRAINED, CONFIG = options.Weights(), MapConfig()

What = Annotated[Kind, option("--map", "What moves: " + ", ".join(MAPS) + ".")]
Point = Annotated[int, option("--point", "Which point, from 1.", min=1)]
Size = Annotated[int, option("--size", "Pixels a side of the map.", min=2, max=400)]
How = Annotated[
    MapConfig,
    options.fields(
        pixels="--kink-pixels", angle="--angle",
        frozen=option("--frozen", "Keep the other points' multipliers."), kappa="--kappa",
        extent=option("--extent", "Half width of the map.", min=0.1),
    ),
]  # fmt: skip
Out = Annotated[Path | None, option("--out", "The map: .csv or .npz.")]
Drawn = Annotated[Path | None, option("--picture", "The map as a picture.")]
All = Annotated[bool, option("--all", "The archetype of every point as a table.")]


@options.expand_groups
def energy(
    weights: options.Weights = TRAINED,
    kind: What = _POINT, point: Point = 1, size: Size = STANDARD, config: How = CONFIG,
    every: All = False, out: Out = None, picture: Drawn = None, as_json: options.Json = False,
) -> None:  # fmt: skip
    """Map how much of the weights stays unexplained when a training point is elsewhere."""
    if out is not None and out.suffix not in (".csv", ".npz"):
        raise ValueError(f"--out takes a name in .csv or .npz; got {out.name}")
    check_files(out)
    check_pictures(picture)
    points, net = weights.open()
    if point > points.n:
        raise ValueError(f"--point goes from 1 to {points.n}; got {point}")
    target = runs.aim(net, points, None)[0]
    q = MapQuestion(
        kind.value, target.net, points, heldout(points, 1), points.x.double(), point - 1, config,
        weights.points.seed,
    )  # fmt: skip
    answers = Answers()
    made = answers.answer(q, size)
    assert made is not None
    merged = answers.merged_network(q)
    content: dict[str, Any] = {
        "map": q.kind, "points": points.n, "point": point, "size": made.size,
        "here": made.here, "lowest": float(np.nanmin(made.values)), "at": list(made.lowest),
        "without": made.reference if np.isfinite(made.reference) else None,
        "archetype": made.archetype, "tau": q.tau, "neurons": sum(merged.net.widths),
        "merging_error": merged.error, "words": words.energy.picture(made),
        **({"note": words.weights.note(net)} if net.assumed_relu else {}),
    }  # fmt: skip
    if isinstance(made.about, Split):
        content["free"] = made.about.free if np.isfinite(made.about.free) else None
    if out is not None:
        _write(out, made)
        content["out"] = out
    if picture is not None:
        energy_picture(picture, made, q.x.numpy(), points.y.numpy(), q.index)
        content["picture"] = picture
    found = report.lines(content)
    if every:
        found += Summary([], {"archetypes": _every(answers, q, size)})
    base.show(as_json, "Energy", found)
    if every and not as_json:
        _table(found.content["archetypes"])


def _every(answers: Answers, q: MapQuestion, size: int) -> list[dict[str, Any]]:
    """Return a row for each point, with the name of its map: redundant, needle or fan."""
    rows = []
    for i in base.watch(range(q.truth.n), q.truth.n, "maps"):
        one = answers.answer(replace(q, kind="point", index=i), size)
        assert one is not None
        rows.append({
            "point": i + 1, "x": q.x[i].tolist(), "y": float(q.truth.y[i]),
            "archetype": one.archetype, "without": one.reference, "here": one.here,
        })  # fmt: skip
    return rows


def _table(rows: list[dict[str, Any]]) -> None:
    base.print_table("", ("point", "at", "class", "archetype", "without it", "with it"), (
        (
            str(row["point"]), ", ".join(f"{v:.2f}" for v in row["x"]), f"{row['y']:+.0f}",
            row["archetype"], f"{row['without']:.2g}", f"{row['here']:.2g}",
        )
        for row in rows
    ))  # fmt: skip


def _write(path: Path, made: Picture) -> None:
    """Write the map: one line a place in a table, or arrays."""
    left, right, bottom, top = made.box
    h, w = made.values.shape
    if made.kind == "starts":  # shares of truth and of noise; the rest is held-out data
        noise, truth = np.indices(made.values.shape) / (h - 1)
        first, second = truth.ravel(), noise.ravel()
    elif made.curve is not None:
        first, second = made.curve.z, np.zeros(len(made.curve.z))
    else:
        across = left + (np.arange(w) + 0.5) / w * (right - left)
        up = top - (np.arange(h) + 0.5) / h * (top - bottom)
        first, second = (g.ravel() for g in np.meshgrid(across, up))
    if path.suffix == ".npz":
        packed, values = io.BytesIO(), made.values.ravel()
        np.savez_compressed(packed, a=first, b=second, energy=values, shape=(h, w))
        write_file(path, packed.getvalue())
        return
    writer = csv.writer(out := io.StringIO())
    writer.writerow(("a", "b", "energy"))
    rows = zip(first, second, made.values.ravel(), strict=True)
    writer.writerows(row for row in rows if np.isfinite(row[2]))
    write_file(path, out.getvalue())


VERBS = {"energy": energy}

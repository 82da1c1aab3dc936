"""The verbs `grid` and `bilevel`: attacks from starts between truth, held-out data and noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from explorer.commands.base import assignments, print_table, show
from explorer.commands.options import (
    Device,
    File,
    Json,
    OptionGroup,
    PointSource,
    Preset,
    Seeds,
    Set,
    Where,
    expand_groups,
    option,
)
from explorer.commands.outputs import check_files, check_pictures
from explorer.commands.rows import check_any_done, collect_rows, tell
from explorer.engine.attacks.bilevel import AGREE, ATTACK
from explorer.engine.data.images import PARITY
from explorer.engine.energy.starts import NAMES, SIDE
from explorer.engine.files import write_file
from explorer.engine.roster import DEFAULT, by_key
from explorer.engine.settings import config_of
from explorer.research.devices import check_device
from explorer.research.grid import (
    STEPS,
    GridCell,
    grid_attacks,
    grid_rows,
    maps,
    of_sweep,
    run_cell,
    sets_of,
)
from explorer.research.pictures.figures import grid_picture
from explorer.research.records import table_of
from explorer.research.report import Summary, line, lines
from explorer.research.runs import fingerprint
from explorer.research.sweep import key_of, processes, seeds_of, sweep, threads
from explorer.research.words import grid as grid_words

# || theta* - theta ||^2 of Runkel et al., table 1, on CIFAR-10: (affine, one hidden layer).
PAPER = {
    "random": (1.1214e-3, 6.1157e-5),
    "truth": (1.3888e-3, 1.7055e-3),
    "partition": (2.9749e-3, 6.3629e-3),
}
THREE = {"random": (0.0, 0.0), "truth": (1.0, 1.0), "partition": (0.0, 1.0)}
MODELS: dict[str, dict[str, Any]] = {
    "affine": {"lr_x": 0.02, "steps": 400},
    "hidden": {"model": "hidden", "solver": "cg", "beta": 10.0},
}

PRESET = "moons"
Images = StrEnum("Images", list(PARITY))  # type: ignore[misc]
Digits = Annotated[
    Images | None, option("--images", "Digits, odd against even, instead: 8 x 8, or MNIST.")
]
Workers = Annotated[int, option("--workers", "Processes to run on; 0 runs in this one.", min=0)]
Rows = Annotated[Path | None, option("--rows", "JSON lines to go on from and to append to.")]


@dataclass(frozen=True)
class GridPoints(PointSource):
    """Points by their name: of a preset, of the digits, or of a file."""

    preset: Preset = PRESET
    images: Digits = None

    def name(self, file: Path | None = None) -> str:
        """Return their name. ValueError for options that a file or images do not use."""
        others = (self.preset != PRESET, self.images, self.n is not None, self.noise is not None)
        away = "Leave --preset, --images, --n and --noise away."
        if file is not None and self.data is not None:
            raise ValueError("a saved run has points of its own. Leave --data away.")
        if file is not None or self.data is not None:
            if any(others):
                whose = "--data" if file is None else "a saved run"
                raise ValueError(f"{whose} has points of its own. {away}")
            return str(file or self.data)
        if self.images and (self.preset != PRESET or self.noise is not None):
            raise ValueError(
                "--images takes the place of --preset and has no --noise. Leave them away."
            )
        return self.images.value if self.images else self.preset


@dataclass(frozen=True)
class RowOptions(OptionGroup):
    """Which seeds, other settings of the attack, and how the rows are run and kept."""

    seeds: Seeds = "0"
    set_: Set = None
    workers: Workers = 0
    rows: Rows = None

    def run(self, cells: Sequence[GridCell]) -> list[dict[str, Any]]:
        """Return all finished cells."""
        return _run(cells, self.workers, self.rows)


MOONS, ONE = GridPoints(), RowOptions()


@expand_groups
def grid(
    file: File = None, points: GridPoints = MOONS, device: Where = Device.cpu,
    attack: Annotated[str, option("--attack", f"One of: {', '.join(grid_attacks())}.")] = DEFAULT,
    side: Annotated[int, option("--side", "Cells along an axis: 5, 11 or 26.", min=2)] = SIDE,
    many: RowOptions = ONE,
    out: Annotated[Path, option("--out", "The picture.")] = Path("grid.png"),
    table: Annotated[Path | None, option("--csv", "A table of all cells.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Run an attack from a grid of starts; write a picture, a table, and one sentence.

    Points of a preset are attacked through their exact network, those of a saved run through its.
    """
    check_device(device.value)
    data = points.name(file)
    chosen = {"steps": STEPS, **assignments(by_key(attack).config, many.set_, attack)}
    cells = grid_rows(
        data, attack, side=side, seeds=seeds_of(many.seeds), n=points.n, noise=points.noise,
        settings=chosen, file=fingerprint(data) if file or points.data else "",
        csv=points.data is not None,
        device=device.value,
    )  # fmt: skip
    check_files(table)
    check_pictures(out)
    done = many.run(cells)
    found = maps(side, done)
    sentence = grid_words.sentence(found)
    grid_picture(out, found, done, f"{attack} on {data}, seed {many.seeds}")
    if table is not None:
        write_file(table, table_of([_flat(row) for row in done]))
    content = {
        "side": side, "sentence": sentence,
        "cells": [{**_flat(row), "trail": row["result"]["trail"]} for row in done],
    }  # fmt: skip
    rows = [("starts", f"{len(cells)}")]
    rows += [(f"from {name}", _ends(done, a, b)) for name, (a, b) in THREE.items()]
    rows.append(("seen", sentence))
    told = lines({"data": data, "attack": attack}) + Summary(rows, content) + line("picture", out)
    show(as_json, "Grid of starts", told)


@expand_groups
def bilevel(points: GridPoints = MOONS, many: RowOptions = ONE, as_json: Json = False) -> None:
    """Attack by the bilevel problem from noise, truth and a held-out partition; compare."""
    data = points.name()
    source: dict[str, Any] = {"n": points.n, "noise": points.noise}
    if points.data is not None:
        source |= {"file": fingerprint(data), "csv": True}
    given = assignments(ATTACK.config, many.set_, ATTACK.key)
    cells = [
        GridCell(data, ATTACK.key, a, b, seed=seed, settings={**chosen, **given}, **source)
        for chosen in MODELS.values()
        for a, b in THREE.values()
        for seed in seeds_of(many.seeds)
    ]
    done = many.run(cells)
    entries = [_entry(done, model, start, k) for k, model in enumerate(MODELS) for start in THREE]
    if as_json:
        show(True, "", Summary([], {"data": data, "seeds": many.seeds, "rows": entries}))
        return
    heads = ("model", "start", "|θ*-θ|² before", "after", "converged", "paper (CIFAR-10)",
             "to truth", "to partition", "nearer to")  # fmt: skip
    rows = (
        (
            e["model"], e["start"], f"{e['before']:.2e}", f"{e['after']:.2e}",
            f"{e['converged']} of {e['seeds']}",
            f"{e['paper']:.2e}", f"{e['truth_before']:.3f} → {e['truth']:.3f}",
            f"{e['heldout_before']:.3f} → {e['heldout']:.3f}",
            "truth" if e["truth"] < e["heldout"] else "partition",
        )
        for e in entries
    )  # fmt: skip
    title = f"Bilevel attack on {data}, seed {many.seeds}: means over the seeds"
    print_table(title, heads, rows)
    short = [f"{e['model']} from {e['start']}" for e in entries if e["converged"] < e["seeds"]]
    if short:
        print(grid_words.without_agreement(short))


def _entry(done: Sequence[dict[str, Any]], model: str, start: str, k: int) -> dict[str, Any]:
    """Return means over the seeds of one model and one start."""
    kind = MODELS[model].get("model", "affine")
    a, b = THREE[start]
    mine = [
        r["result"] for r in done if (r["mix_truth"], r["mix_data"], r["model"]) == (a, b, kind)
    ]

    def mean(pick: Any) -> float:  # noqa: ANN401
        return sum(map(pick, mine)) / len(mine) if mine else float("nan")

    return {
        "model": model, "start": start, "seeds": len(mine),
        "converged": sum(r["numbers"]["l_upper"] <= AGREE for r in mine), "paper": PAPER[start][k],
        "before": mean(lambda r: 2 * r["first_numbers"]["l_upper"]),
        "after": mean(lambda r: 2 * r["numbers"]["l_upper"]),
        **{name: mean(lambda r, name=name: r[name]) for name in NAMES},
        **{f"{name}_before": mean(lambda r, name=name: r["start"][name]) for name in NAMES},
    }  # fmt: skip


def _run(given: Sequence[GridCell], workers: int, path: Path | None) -> list[dict[str, Any]]:
    """Return all finished cells; failures go to stderr. RunFailed if none finished."""
    cells = {key_of(cell): cell for cell in given}
    settings = {json.dumps(cell.settings, sort_keys=True): cell for cell in given}
    for cell in settings.values():  # an error that holds for all is printed once, before the work
        config_of(by_key(cell.attack).config, cell.settings, cell.attack)
        sets_of(cell)
    check_files(path, make=True)
    pool = processes(workers) if workers else threads(1)
    running = sweep(cells.values(), pool, path=path, run=run_cell, again=True)
    kept = collect_rows(running, len(cells), "cells", path)
    tell(kept, "cells")
    check_any_done(kept, "cells")
    order = {key: i for i, key in enumerate(cells)}
    kept.sort(key=lambda row: order[row["key"]])  # as asked for, not as they ended
    models = [r["trial"]["settings"].get("model", "affine") for r in kept if r["status"] == "done"]
    return [{**row, "model": model} for row, model in zip(of_sweep(kept), models, strict=True)]


def _ends(done: Sequence[dict[str, Any]], a: float, b: float) -> str:
    mine = [r["result"] for r in done if (r["mix_truth"], r["mix_data"]) == (a, b)]
    if not mine:
        return "not done"
    parts = (f"{sum(r[n] for r in mine) / len(mine):.3f} to {grid_words.SETS[n]}" for n in NAMES)
    return ", ".join(parts)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    result = row["result"]
    return {
        "mix_truth": row["mix_truth"], "mix_data": row["mix_data"], "seed": row["seed"],
        **{f"{n}_before": result["start"][n] for n in NAMES}, **{n: result[n] for n in NAMES},
        "steps": result["steps"], **result["numbers"],
    }  # fmt: skip


VERBS = {"grid": grid, "bilevel": bilevel}

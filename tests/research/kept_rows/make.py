"""Make the row files of this folder, and read the numbers that they hold.

    python tests/research/kept_rows/make.py FOLDER

The files here were made by commit ca7d2b3, where the imports below had other names: its modules
were `explorer.arena`, `explorer.grids`, `explorer.tuning`, `explorer.sweep` and `explorer.trial`.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, is_dataclass
from pathlib import Path
from threading import Event
from typing import Any

from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.data import Dataset
from explorer.engine.store import load
from explorer.research.grid import Grid, grid_rows, maps, of_sweep, run_cell
from explorer.research.grid.landscape import Runs
from explorer.research.grid.store import CELLS, CellStore, identity, take
from explorer.research.records import RowFile, rows_in, write_csv
from explorer.research.sweep import ROWS, sweep
from explorer.research.sweep.arena import arena_rows, lines_of
from explorer.research.sweep.experiment import Experiment, experiments, key_of, run_experiment
from explorer.research.tuning import (
    TuneConfig,
    best,
    front,
    full_length,
    row_of,
    search_rows,
    trial_of,
    tune,
)

RUN = Path(__file__).parents[2] / "engine" / "kept" / "circle-kkt-projected.safetensors"
SMALL = {"preset": "moons", "n": 6, "noise": 0.05, "widths": [[10]], "steps": 800}
SHORT = {"m": 6, "steps": 20}
LINE = ("key", "title", "runs", "message", "n", "found", "claims", "recall", "reach", "precision",
        "control", "distance", "residual", "seconds", "p_value", "chance", "determined", "sure",
        "p_adjusted")  # fmt: skip

SWEEPS: dict[str, dict[str, Any]] = {
    "sweep-moons": {**SMALL, "seed": [0, 1], "attack": "kkt", "attack_config": SHORT},
    "sweep-line-exact": {"preset": "alternating-line", "n": 6, "seed": [0, 1], "method": "exact",
                         "attack": ["univariate", ""], "determine": True},
    "sweep-defences": {**SMALL, "early_stop": 5, "weight_decay": [0.0, 0.01], "label_noise": 0.2,
                       "train": {"loss": "logistic"}, "attack": "inversion",
                       "attack_config": {"m": 4, "steps": 20}},
    "sweep-refused": {**SMALL, "n": 4, "attack": ["univariate", "bilevel"], "steps": [3, 800],
                      "attack_config": {}},
}  # fmt: skip
TUNES = {
    "tune-auto": TuneConfig("auto", 2, 2, 6, 12, 0),
    "tune-random": TuneConfig("random", 3, 2, 4, 10, 1),
}


def swept(path: Path, rows: Any, run: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """The rows in the file at `path`, and those that `run` adds."""
    with ThreadPoolExecutor(1) as pool:
        return list(sweep(rows, pool, path=path, run=run))


def unheard(row: Any) -> dict[str, Any]:
    """Stand where a row would be run: those of a kept file are not run again."""
    raise AssertionError(f"{row} is in the file and ran again")


def rows_of(name: str) -> Any:
    """What the file of this name was made of."""
    if name in SWEEPS:
        return list(experiments(SWEEPS[name]))
    base = Experiment(preset="alternating-circle", n=6, widths=(10,), steps=800)
    if name == "arena-trained":
        return arena_rows(base, ["inversion", "hinge"], [0, 1])
    if name == "arena-exact":
        exact = Experiment(preset="alternating-line", n=4, method="exact")
        return arena_rows(exact, ["univariate", "inversion"], [0])
    if name == "grid-moons":
        return grid_rows("moons", "kkt", side=2, n=6, width=8, settings={"steps": 15}, seeds=(0, 1))
    return grid_rows("digits", "bilevel", side=2, n=4, settings={"steps": 6})


NAMES = (*SWEEPS, "arena-trained", "arena-exact", "grid-moons", "grid-digits")


def target() -> Target:
    """The weights of a kept run, bit by bit."""
    return Target(load(RUN.read_bytes()).train_states[-1].net)


def page() -> Runs:
    """The problem of a grid on a page, of points that no rounding changes."""
    truth = load(RUN.read_bytes()).dataset
    other, config = Dataset(-truth.x, truth.y), KKTConfig(m=6, steps=12, deep_alpha=0.0)
    return Runs(Grid(target(), truth, other, "kkt", config, 0, 2))


def numbers(folder: Path) -> dict[str, Any]:
    """What the files of a folder say."""
    said: dict[str, Any] = {}
    for name in NAMES:
        path = folder / f"{name}.jsonl"
        rows = swept(path, rows_of(name), unheard)
        said[name] = {"rows": [_digest(row) for row in RowFile(path, ROWS).rows.values()],
                      "keys": [key_of(row) for row in rows_of(name)]}  # fmt: skip
        if name.startswith("grid"):
            kept = maps(2, of_sweep(rows))
            said[name] |= {"start": kept.start, "end": kept.end}
        elif all("found" in row["result"] for row in rows if row["status"] == "done"):
            lines = lines_of(rows)
            said[name]["lines"] = [{k: getattr(line, k) for k in LINE} for line in lines]
        write_csv(folder / "table.csv", rows)
        said[name]["table"] = _digest((folder / "table.csv").read_text(encoding="utf-8"))
        (folder / "table.csv").unlink()
    found, cells = page(), rows_in((folder / "page.jsonl").read_bytes(), CELLS)
    version = cells[0]["of"]["version"]  # cells of another one are refused, and this is older
    taken = take(found, cells, {**identity(found.of), "version": version})
    kept = maps(
        2,
        [
            {"seed": k, "mix_truth": a, "mix_data": b, "result": row}
            for (k, a, b), row in found.rows.items()
        ],
    )
    rows = [_digest(row) for row in cells]
    said["page"] = {"taken": taken, "rows": rows, "start": kept.start, "end": kept.end}
    for name, config in TUNES.items():
        kept_search = RowFile(folder / f"{name}.jsonl", search_rows(target(), config))
        tried = [trial_of(row) for row in kept_search.rows.values()]
        chosen = best(tried, config.search)
        said[name] = {
            "trials": tried,
            "front": [trial.number for trial in front(tried)],
            "best": chosen and full_length(chosen),
        }
    return _plain(said)


def _digest(row: Any) -> str:
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:16]


def _plain(held: Any) -> Any:
    if hasattr(held, "tolist"):
        return _plain(held.tolist())
    if is_dataclass(held) and not isinstance(held, type):
        return _plain(asdict(held))
    if isinstance(held, dict):  # as they are in what was saved before there were such settings
        since = (("deep_alpha", 0.0), ("near", False))
        return {k: _plain(v) for k, v in held.items() if (k, v) not in since}
    if isinstance(held, list | tuple):
        return [_plain(v) for v in held]
    if isinstance(held, float) and not math.isfinite(held):
        return str(held)
    return held


def main() -> None:
    """Write every file, and the numbers of all in `numbers.json`."""
    folder = Path(sys.argv[1])
    for name in NAMES:
        swept(
            folder / f"{name}.jsonl", rows_of(name), run_cell if "grid" in name else run_experiment
        )
    found = page()
    found.prepare(1)
    for key in found.todo(1):
        found.run(key, Event())
    (folder / "page.jsonl").write_text(CellStore(found).texts()[0], encoding="utf-8")
    for name, config in TUNES.items():
        search = RowFile(folder / f"{name}.jsonl", search_rows(target(), config))
        for trial in tune(target(), config):
            search.append(row_of(trial))
    said = json.dumps(numbers(folder), indent=1)
    (folder / "numbers.json").write_text(said + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

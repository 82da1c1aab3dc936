"""The file of a search: one JSON line about it, then one per trial; it can be taken up again."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from explorer.engine.attacks.target import Target
from explorer.engine.files import FileError, named, read_file, reading
from explorer.engine.store_codec import decode
from explorer.tuning.search import Trial, TuneConfig

FORMAT = 1
MOST_BYTES = 64 * 2**20  # arbitrary: a trial takes about 1 kB


def fingerprint(target: Target) -> str:
    """Of the attacked weights: a search is resumed on the same ones only."""
    return hashlib.sha256(target.net.theta.double().cpu().numpy().tobytes()).hexdigest()[:16]


def start_file(path: Path, target: Target, config: TuneConfig) -> list[Trial]:
    """The trials that a file of this search holds already; a new file gets its first line.

    Raises:
        FileError: where the file is of another search or of other weights.
    """
    head = {"format": FORMAT, "weights": fingerprint(target), **asdict(config)}
    first = json.dumps(head) + "\n"
    text = read_file(path, MOST_BYTES) if path.exists() else b""
    if first.encode().startswith(text):  # nothing, or a first line that a kill cut off
        path.write_text(first, encoding="utf-8")
        return []
    end = text.rfind(b"\n") + 1  # what follows was cut off by a kill
    name = named(path.name)
    with reading(f"{name} is no file of a search: it", "It was left as it is. Name another."):
        there, *rows = map(json.loads, text[:end].splitlines())
        if not isinstance(there, dict) or "weights" not in there:
            raise ValueError("its first line does not say which search it is of")
        differs = [k for k in head if k != "trials" and there.get(k) != head[k]]
        done = [] if differs else [_decoded(row) for row in rows]
    if differs:
        raise FileError(
            f"{name} holds another search: it differs in {', '.join(differs)}. "
            "Name another file, or take the same settings and weights."
        )
    if end < len(text):
        with path.open("r+b") as file:
            file.truncate(end)
    return done


def append(path: Path, trial: Trial) -> None:
    """Add one row to the file of a search."""
    row = asdict(trial)
    row["residual"] = trial.residual if math.isfinite(trial.residual) else None
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, allow_nan=False) + "\n")


def _decoded(row: dict[str, Any]) -> Trial:
    """The trial of a line. ValueError, KeyError or TypeError for another."""
    if row["residual"] is None:
        row = {**row, "residual": {"float": "inf"}}
    config = {"kind": "KKTConfig", "fields": row["config"]}
    given = {**row, "params": {"map": row["params"]}, "config": config}
    try:
        trial: Trial = decode({"kind": "Trial", "fields": given}, {}, Trial)
    except FileError as error:  # it does not say of which file
        raise ValueError(error) from error
    if not all(map(math.isfinite, (*trial.params.values(), trial.agreement, trial.claims))):
        raise ValueError(f"numbers of trial {trial.number} are not finite")
    return trial

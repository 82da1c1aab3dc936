"""The file of a search: one JSON line about it, then one per trial; it can be taken up again."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.tuning.search import Trial, TuneConfig

FORMAT = 1


def fingerprint(target: Target) -> str:
    """Of the attacked weights: a search is resumed on the same ones only."""
    return hashlib.sha256(target.net.theta.double().cpu().numpy().tobytes()).hexdigest()[:16]


def start_file(path: Path, target: Target, config: TuneConfig) -> list[Trial]:
    """The trials that a file of this search holds already; a new file gets its first line.

    Raises:
        ValueError: where the file is of another search or of other weights.
    """
    head = {"format": FORMAT, "weights": fingerprint(target), **asdict(config)}
    first = json.dumps(head) + "\n"
    text = path.read_bytes() if path.exists() else b""
    if first.encode().startswith(text):  # nothing, or a first line that a kill cut off
        path.write_text(first, encoding="utf-8")
        return []
    end = text.rfind(b"\n") + 1  # what follows was cut off by a kill
    try:
        there, *rows = map(json.loads, text[:end].splitlines())
        if not isinstance(there, dict) or "weights" not in there:
            raise ValueError("its first line does not say which search it is of")
        differs = [k for k in head if k != "trials" and there.get(k) != head[k]]
        done = [] if differs else [_decoded(row) for row in rows]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} is no file of a search ({type(error).__name__}: {error}). It was left as it "
            "is. Name another."
        ) from error
    if differs:
        raise ValueError(
            f"{path} holds another search: it differs in {', '.join(differs)}. "
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
    residual = math.inf if row["residual"] is None else row["residual"]
    return Trial(**{**row, "config": KKTConfig(**row["config"]), "residual": residual})

"""The verb `tune`: settings of the KKT attack from the weights alone, judged by the truth."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from tqdm import tqdm

from explorer.commands import base, options
from explorer.commands.outputs import check_files
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Certificate
from explorer.engine.data import Dataset
from explorer.research import report, runs, tuning
from explorer.research.pictures.figures import front_picture
from explorer.research.records import RowFile, writing
from explorer.research.report import Summary
from explorer.research.runs import RunFailed
from explorer.research.tuning import Trial, TuneConfig
from explorer.research.words import tuning as tuning_words

SHOWN = ("lr_x", "relu_alpha", "relu_alpha_start", "lam_min", "weight_margin", "sigma_x")
ON_CIRCLE, BY_GRADIENT, SEARCH = options.Points(), options.TrainingOptions(), TuneConfig()
Searched = Annotated[
    TuneConfig, options.fields("search", "trials", "restarts", "m", steps="--trial-steps")
]
Log = Annotated[Path | None, options.option("--log", "JSONL file to resume from and add to.")]


@options.expand_groups
def tune(
    file: Annotated[Path | None, typer.Argument(help="A saved run or a state_dict.")] = None,
    points: options.Points = ON_CIRCLE, training: options.TrainingOptions = BY_GRADIENT,
    device: options.Where = options.Device.cpu, train_set: options.TrainSet = None,
    truth: options.Truth = None, margin: options.Margin = None, config: Searched = SEARCH,
    log: Log = None,
    out: Annotated[Path | None, options.option("--out", "Figure of the front, a PNG.")] = None,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Tune the KKT attack without the truth; Ctrl-C keeps what is done."""
    config = replace(config, seed=points.seed)
    check_files(log, out)
    if file is None and not (margin is None and truth is None):
        raise ValueError("--margin and --truth go with a file; without one a network is trained.")
    known: Dataset | None
    if file is None:
        trained = options.train(training.run_on(points.draw(), points.seed, train_set), device)
        known, target, made, note = trained.data, trained.target, trained.certificate, ""
    else:
        _, net, known = runs.open_run(file, truth)
        target, made, note = runs.aim(net.to(dtype=torch.float64), known, margin)
    kind = tuning.search_rows(target, config)
    with nullcontext() if log is None else writing(log, kind) as kept:
        rows, stopped = _search(target, config, kept, device.value)
    chosen = tuning.best(rows, config.search)
    if out is not None:
        front_picture(out, rows, chosen)
    done = {} if stopped else _judge(target, config, chosen, known, made, device.value)
    _show(as_json, config, rows, chosen, done, note)
    if stopped:
        raise SystemExit(130)
    if chosen is None:
        raise RunFailed("every trial failed. Take more steps in training, or other weights.")


def _search(
    target: Target, config: TuneConfig, kept: RowFile | None, device: str
) -> tuple[list[Trial], bool]:
    """Return all trials, and whether Ctrl-C ended the search. Before the first trial it exits."""
    rows = [] if kept is None else [tuning.trial_of(row) for row in kept.rows.values()]
    todo = tqdm(
        tuning.tune(target, config, rows[: config.trials], device=device), initial=len(rows),
        total=config.trials, desc="trials", file=sys.stderr, disable=None, leave=False,
    )  # fmt: skip
    try:
        for trial in todo:
            rows.append(trial)
            if kept is not None:
                kept.append(tuning.row_of(trial))
    except KeyboardInterrupt:
        todo.close()
        if not rows:
            print("stopped before the first trial had ended; there is nothing to keep",
                  file=sys.stderr)  # fmt: skip
            raise SystemExit(130) from None
        where = "not kept; --log FILE keeps them"
        if kept is not None:
            where = f"kept in {kept.path}; the same command goes on"
        print(f"stopped after {len(rows)} trials, {where}", file=sys.stderr)
        return rows, True
    return rows, False


def _judge(
    target: Target, config: TuneConfig, chosen: Trial | None, known: Dataset | None,
    made: Certificate | None, device: str,
) -> dict[str, runs.Attacked]:  # fmt: skip
    """Judge the best settings and the defaults at full length, from a noise that no trial used."""
    if chosen is None:
        return {}
    pair = {"tuned": tuning.full_length(chosen), "defaults": KKTConfig()}
    fresh = tuning.fresh_seed(config)
    return {
        name: runs.attack(
            target, each, fresh, truth=known, certificate=made, watch=base.watch, device=device
        )
        for name, each in pair.items()
    }


def _show(
    as_json: bool, config: TuneConfig, rows: Sequence[Trial], chosen: Trial | None,
    done: dict[str, runs.Attacked], note: str,
) -> None:  # fmt: skip
    ahead = tuning.front(rows)
    comparison = tuning_words.comparison(done["tuned"], done["defaults"]) if done else ""
    found = {name: report.of_attack(each) for name, each in done.items()}
    if as_json:
        content = {
            "tune": asdict(config), "note": note, "trials": [asdict(t) for t in rows],
            "front": [t.number for t in ahead], "best": None if chosen is None else chosen.number,
            "attacks": {name: each.content["attack"] for name, each in found.items()},
            "comparison": comparison,
        }  # fmt: skip
        base.show(True, "", Summary([], content))
        return
    base.print_table(
        f"Front of {len(rows)} trials, none of which saw the truth",
        ("trial", "residual", "agreement", "claims"),
        (
            (
                f"{trial.number}{' *' if trial is chosen else ''}", f"{trial.residual:.3g}",
                f"{trial.agreement:.3g}", f"{trial.claims:.3g}",
            )
            for trial in ahead
        ),
        justify="right",
    )  # fmt: skip
    lines = [("note", note)] if note else []
    if chosen is not None:
        values = {name: getattr(chosen.config, name) for name in SHOWN}
        words = [f"{k}={v:.3g}" for k, v in values.items() if v is not None]
        lines.append(("settings taken", " ".join(words)))
    for name, each in found.items():
        lines += [(f"{name}: {key}", value) for key, value in each.rows]
    if comparison:
        lines.append(("comparison", comparison))
    if lines:
        title = "From a fresh noise (* the settings taken)" if done else "* the settings taken"
        base.show(False, title, Summary(lines))


VERBS = {"tune": tune}

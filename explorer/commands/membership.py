"""The verb `membership`: the trained experiment in any dimensions, its table and its figures."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from explorer.commands.base import print_table, show, watch
from explorer.commands.options import Json, expand_groups, fields, option
from explorer.commands.outputs import check_folder
from explorer.engine.membership.experiment import DIMS, MembershipConfig, membership_experiment
from explorer.research import rates, words
from explorer.research.pictures import figures as membership_pictures
from explorer.research.report import Summary

Config = Annotated[MembershipConfig, fields(
    trials="--trials", law="--distribution", labels="--labels", width="--width", n="--n",
    test="--test", seed="--seed",
)]  # fmt: skip
CONFIG = MembershipConfig()
COLUMNS = (
    ("on_margin", "on the\nmargin"),
    ("beyond_signed", "y Φ ≥ m"),
    ("beyond", "|Φ| ≥ m"),
    ("beyond_half", "|Φ| ≥ m/2"),
    ("tpr_0.1%", "TPR\nat 0.1%"),
    ("tpr_1%", "TPR\nat 1%"),
)


def dims_of(text: str) -> tuple[int, ...]:
    """Return dimensions from text such as 10,20,100 or 1:99 or 100:1150:50, ends included."""
    found: list[int] = []
    for word in text.split(","):
        try:
            start, *rest = (int(part) for part in word.split(":"))
            end, step = (*rest, *(start, 1)[len(rest) :])
        except ValueError as error:
            raise ValueError(
                f"--d takes numbers and ranges such as 10,20 or 100:1150:50; got {text!r}"
            ) from error
        if start < 1 or end < start or step < 1:
            raise ValueError(f"--d: {word!r} holds no dimension; ranges rise, from 1 on")
        found += range(start, end + 1, step)
    return tuple(dict.fromkeys(found))


@expand_groups
def membership(
    d: Annotated[str, option("--d", "Dimensions: 10,20 or ranges such as 100:1150:50.")] = ",".join(
        map(str, DIMS)
    ),
    config: Config = CONFIG,
    out: Annotated[Path | None, option("--out", "Folder for CSV and three figures.")] = None,
    as_json: Json = False,
) -> None:
    """Train in high dimension and infer membership: margins, false positives, ROC."""
    config = replace(config, dims=dims_of(d))
    rates.ready()  # a missing library is reported before the work
    check_folder(out)
    made, rows = [], []
    total = len(config.dims) * config.trials
    for trial in watch(membership_experiment(config), total, "trials"):
        made.append(trial)
        rows.append(rates.rates(trial))
    found = rates.summary(rows)
    files = membership_pictures.write(out, made, rows) if out else []
    if as_json:
        content = {
            "config": asdict(config), "trials": rows, "files": files,
            "summary": {d: {k: asdict(v) for k, v in row.items()} for d, row in found.items()},
        }  # fmt: skip
        show(True, "", Summary([], content))
        return
    _print(found, config)
    if told := words.membership.without_margin(
        sum(row["train_accuracy"] < 1 for row in rows), total
    ):
        print(told)
    for path in files:
        print(path)


def _print(found: dict[int, dict[str, rates.Interval]], config: MembershipConfig) -> None:
    title = (
        f"Membership, {config.law}, n = {config.n}, width {config.width}, {config.trials} trials:\n"
        "mean ± half of its 95% interval"
    )
    heads = ("d", *(head for _, head in COLUMNS))
    rows = ((str(d), *(_cell(row[name]) for name, _ in COLUMNS)) for d, row in found.items())
    print_table(title, heads, rows, box=None, justify="right", no_wrap=True)


def _cell(value: rates.Interval) -> str:
    if value.mean != value.mean:
        return "no margin"
    return f"{value.mean:.3f}" + ("" if value.half != value.half else f"±{value.half:.3f}")


VERBS: dict[str, Any] = {"membership": membership}

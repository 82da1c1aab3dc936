"""The results of a run as plain data and as rows of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from enum import Enum
from html import escape
from pathlib import Path
from typing import Any

from torch import Tensor

from explorer.engine.attacks.target import NO_THEOREM
from explorer.engine.classes import labels
from explorer.engine.data import Dataset
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.explanations.cone import scope
from explorer.engine.network import Network
from explorer.engine.numbers import digits
from explorer.engine.store import Run
from explorer.research.pictures import painting
from explorer.research.runs import RADIUS, Attacked, Trained
from explorer.research.starts import Starts
from explorer.research.words import verdicts, weights


def jsonable(value: Any) -> Any:  # noqa: ANN401 (JSON has no type)
    """Return plain JSON: tensors as lists, enums by name, numbers that are not finite as null."""
    if isinstance(value, Tensor):
        return jsonable(value.detach().cpu().tolist())
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def of_dataset(data: Dataset) -> dict[str, Any]:
    """Size and source of the points."""
    return {
        "n": data.n,
        "d": data.d,
        "positive": int((data.y > 0).sum()),
        "classes": [int((data.y == label).sum()) for label in labels(data.outputs)],
        "source": asdict(data.source) if data.source else None,
    }


def of_network(net: Network) -> dict[str, Any]:
    """Shape and norm of the weights."""
    return {
        "d": net.d,
        "widths": list(net.widths),
        "homogeneous": net.homogeneous,
        "rho": float(net.rho),
        "dtype": str(net.dtype).removeprefix("torch."),
        "note": weights.note(net),
    }


def of_training(data: Dataset, done: Trained) -> dict[str, Any]:
    """Return the points, the weights, how far training came, and how near to a KKT point."""
    state, made = done.states[-1], done.certificate
    training = {
        "t": state.t,
        "log_loss": state.log_loss,
        "gamma_bar": state.gamma_bar,
        "gamma_tilde": state.gamma_tilde,
        "q": state.q,
        "q_min": done.q_min,
    }
    if made is not None:
        training |= {
            "on_margin": int(made.on_margin.sum()),
            "lam": made.lam,
            "residual": made.residual,
            "residual_strict": made.residual_strict,
            "slackness": made.slackness,
            "light": made.light,
            "sentence": weights.certificate(made),
        }
    if done.exact is not None:
        training["optimum"] = {
            "polished": done.exact.polished,
            "objective": done.exact.objective,
            "lower_bound": done.exact.dual / (1 + done.exact.violation),
            "sentence": weights.optimum(done.exact),
        }
    if done.finished is not None:
        training["finished"] = {
            "proved": done.finished.proved,
            "objective": done.finished.objective,
            "lower_bound": done.finished.bound,
            "gap": done.finished.gap,
            "cells": done.finished.cells,
            "rounds": done.finished.rounds,
            "sentence": weights.finished(done.finished),
        }
    return {"dataset": of_dataset(data), "network": of_network(done.net), "training": training}


def of_attack(done: Attacked) -> dict[str, Any]:
    """Return what is claimed, and where the truth is known, how much of it is true."""
    state, claims, scores, verdict = done.states[-1], done.claims, done.scores, done.verdict
    out: dict[str, Any] = {
        "t": state.t,
        "candidates": len(state.x),
        **state.numbers(),
        "claims": [
            {"x": x, "y": int(y), "lam": lam}
            for x, y, lam in zip(
                claims.x.tolist(), claims.y.tolist(), claims.lam.tolist(), strict=True
            )
        ],
        "scores": None,
        "verdict": None,
        "certainty": None,
    }
    made = done.certainty
    if made is not None:
        out["certainty"] = {
            "radius": made.radius, made.word: made.certain, "half": made.half,
            "reach": made.reach, "least": made.least, "truth": made.truth,
            "threshold": made.threshold, "box": made.box, "top": made.top,
        }  # fmt: skip
    if scores is not None and verdict is not None:
        truth, control = scores
        out["scores"] = [
            {
                "radius": radius,
                "found": int(truth.found[i]),
                "found_control": int(control.found[i]),
                "recall": float(truth.recall[i]),
                "precision": float(truth.precision[i]),
            }
            for i, radius in enumerate(truth.radii)
        ]
        out["verdict"] = {
            "kind": verdict.kind,
            "sentence": verdicts.verdict(verdict),
            "p_value": verdict.p_value,
            "controls": verdicts.controls(verdict),
            "least_p": verdict.least_p,
        }
    return out


def of_file(opened: Run | Network) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return what a file holds, as JSON and as a table."""
    if isinstance(opened, Network):
        return {"kind": "weights", "network": of_network(opened)}, _network_rows(opened)
    run = opened
    attack = None if run.attack_config is None else asdict(run.attack_config)
    content: dict[str, Any] = {
        "kind": "run",
        "dataset": of_dataset(run.dataset),
        "network": of_network(run.net) if run.net else None,
        "seed": run.seed,
        "mix": run.mix,
        "train_config": asdict(run.train_config),
        "train_steps": [state.t for state in run.train_states],
        "attack_config": attack,
        "attack_steps": [state.t for state in run.attack_states],
        "versions": run.versions,
    }
    rows = [("points", f"{run.dataset.n} in {run.dataset.d}-D, {source_of(run.dataset)}")]
    rows += _network_rows(run.net) if run.net else [("network", "none yet")]
    for name, states in (("training", run.train_states), ("attack", run.attack_states)):
        some = f"{len(states)} state{'s' * (len(states) > 1)}, the last of step "
        rows.append((name, f"{some}{states[-1].t}" if states else "not begun"))
    rows.append(("seed", str(run.seed)))
    rows.append(("written by", ", ".join(f"{k} {v}" for k, v in run.versions.items())))
    return content, rows


def source_of(data: Dataset) -> str:
    """Return in words where points come from."""
    source = data.source
    if source is None:
        return "drawn by hand"
    return f"preset {source.preset}, noise {source.noise:g}, seed {source.seed}"


def _network_rows(net: Network) -> list[tuple[str, str]]:
    biases = (
        "first layer"
        if net.homogeneous
        else "several layers: not homogeneous, no margin to scale to"
    )
    if all(b is None for b in net.biases):
        biases = "none"
    return [
        ("network", "-".join(map(str, (net.d, *net.widths, net.outputs)))),
        ("biases", biases),
        ("norm", f"{float(net.rho):.6g}"),
        ("type", str(net.dtype).removeprefix("torch.")),
        *([("note", weights.note(net))] if net.assumed_relu else []),
    ]


def training_rows(points: Dataset, done: Trained) -> list[tuple[str, str]]:
    """Return names and values of a finished training, for a table."""
    made, last = done.certificate, done.states[-1]
    rows = [
        ("points", f"{points.n} in {points.d}-D"),
        ("network", "-".join(map(str, (done.net.d, *done.net.widths, done.net.outputs)))),
        ("steps", f"{last.t}"),
    ]
    if done.exact is not None:
        rows.append(("optimum", weights.optimum(done.exact)))
    if done.finished is not None:
        rows.append(("finished", weights.finished(done.finished)))
    if made is None:
        return [*rows, ("smallest margin", f"{done.q_min:.6g}"), ("certificate", NO_THEOREM)]
    return [
        *rows,
        ("normalised margin", f"{last.gamma_bar:.6g}"),
        ("on the margin (1%)", f"{int(made.on_margin.sum())} of {points.n}"),
        ("KKT residual", f"{digits(made.residual)} (strict {made.residual_strict:.2g})"),
        ("certificate", weights.certificate(made)),
    ]


def attack_rows(done: Attacked) -> list[tuple[str, str]]:
    """Return names and values of a finished attack, for a table."""
    return [
        ("attack steps", f"{done.states[-1].t}"),
        *_unexplained_rows(done, "theta unexplained"),
        ("claims", f"{len(done.claims.x)} of {len(done.states[-1].x)} candidates"),
        *_judged_rows(done),
    ]


def starts_rows(made: Starts) -> list[tuple[str, str]]:
    """Return names and values of many starts, for a table."""
    count, least = len(made.seeds), made.each[made.least]
    seed = made.seeds[made.least]
    rows = [
        ("starts", verdicts.starts(count, made.together, len(made.diverged))),
        ("attack steps", f"{least.states[-1].t}"),
        *_unexplained_rows(least, f"theta unexplained, at least (seed {seed})"),
        ("claims of all starts", verdicts.union(made.made_by.tolist(), count)),
        *_judged_rows(made.union),
    ]
    best, verdict = made.most, made.union.verdict
    if best is not None and verdict is not None and not math.isnan(best.p_value):
        n = verdict.n
        told = verdicts.best_start(best.seed, best.found, n, count, best.p_value)
        rows.insert(-1, (f"most found within {RADIUS:g} by one start", told))
    return rows


def of_starts(made: Starts) -> dict[str, Any]:
    """Return what many starts claim together, and the starts by themselves."""
    each = [
        {
            "seed": seed,
            "claims": len(one.claims.x),
            "l_stationary": one.states[-1].numbers().get("l_stationary"),
        }
        for seed, one in zip(made.seeds, made.each, strict=True)
    ]
    attack = of_attack(made.union)
    attack["candidates"] = sum(len(one.states[-1].x) for one in made.each)
    for claim, count in zip(attack["claims"], made.made_by.tolist(), strict=True):
        claim["starts"] = count
    starts = {
        "count": len(made.seeds), "at_once": made.together, "diverged": made.diverged,
        "least": made.seeds[made.least], "each": each,
        "most": None if made.most is None else asdict(made.most),
    }  # fmt: skip
    return {"attack": attack, "starts": starts}


def _judged_rows(done: Attacked) -> list[tuple[str, str]]:
    """Return what may be said of claims; the verdict is the last row."""
    rows = []
    if done.certainty is not None:
        noun = "points" if done.certainty.proven else "claims"
        rows.append((f"{done.certainty.word} {noun}", _certified(done.certainty)))
    if done.scores is None or done.verdict is None:
        return [*rows, ("verdict", "Cannot know: nothing to compare the claims with.")]
    truth, control = done.scores
    for i, radius in enumerate(truth.radii):
        met = f"the first of {verdicts.controls(done.verdict)}: {int(control.found[i])}"
        found = f"{int(truth.found[i])} ({met})"
        rows.append((f"found within {radius:g}", found))
    return [*rows, ("verdict", f"{done.verdict.kind.value}: {verdicts.verdict(done.verdict)}")]


def _certified(made: Certainty) -> str:
    """How many claims are certified or likely, to how much, and what that is compared with."""
    known = "the residual of the true points" if made.proven else "a judgement by a threshold"
    certain = made.radius[made.certain]
    reached = f", to {float(certain.min()):.2%} or more" if len(certain) else ""
    return (
        f"{len(certain)} of {len(made.radius)} within {made.half + made.reach:.2g}{reached}, among "
        f"explanations with {scope(made.box, made.top)} ({known}: {made.limit:.2%})"
    )


def _unexplained_rows(done: Attacked, name: str) -> list[tuple[str, str]]:
    """Return the share of ||theta||^2 left over, of attacks that explain theta."""
    share = done.states[-1].numbers().get("l_stationary")
    return [] if share is None else [(name, f"{share:.2%}")]


# --- HTML ---

CSS = """
.mx{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:1rem auto;padding:0 1rem}
.mx h1{font-size:24px}.mx h2{font-size:17px;margin-top:2rem;break-after:avoid}
.mx table{border-collapse:collapse;font-size:14px}
.mx td,.mx th{padding:2px 14px 2px 0;text-align:left;vertical-align:top;
 border-bottom:1px solid #8884}.mx tr{break-inside:avoid}.mx tbody th{min-width:9.5rem}
.mx .wide{overflow-x:auto}.mx .wide td{white-space:nowrap}
.mx pre{background:#8881;padding:12px;font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere}
.mx svg{max-width:100%;height:auto}
.mx .settings{columns:24rem;column-gap:2rem}.mx .settings td{overflow-wrap:anywhere}
@media print{.mx{font-size:11px;margin:0;max-width:none}.mx h1{font-size:18px}
 .mx table,.mx pre{font-size:10px}.mx .settings{columns:2}.mx a{color:inherit;
 text-decoration:none}}
"""


def table_html(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return rows as a table; without a head the first cell of each row is its name."""
    first = "td" if head else "th"
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = [
        f"<tr><{first}>{escape(name)}</{first}>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    ]
    return (
        f"<table>{f'<thead><tr>{top}</tr></thead>' if head else ''}"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def picture_html(figure: Any) -> str:  # noqa: ANN401 - matplotlib is untyped
    """Return a figure as SVG within a page."""
    drawn = painting.as_bytes(figure, "svg").decode()
    return drawn[drawn.index("<svg") :]


def part_html(parts: Iterable[str]) -> str:
    """Return parts as HTML to be put into a page."""
    return f'<style>{CSS}</style><div class="mx">{"".join(parts)}</div>'


def page_html(title: str, parts: Iterable[str]) -> str:
    """Return a whole page that needs no other file and no script."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"{part_html(parts)}</html>"
    )

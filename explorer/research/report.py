"""Results as they are written: rows of a table, plain data for programs, a page of HTML."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from explorer import __version__
from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import NO_THEOREM
from explorer.engine.classes import labels
from explorer.engine.data import Dataset
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.explanations.cone import scope
from explorer.engine.network import Network
from explorer.engine.number_words import digits, digits_above
from explorer.engine.store import Run
from explorer.research.pictures import painting
from explorer.research.records import plain
from explorer.research.repeat import Repeated
from explorer.research.runs import RADIUS, Attacked, Trained
from explorer.research.starts import Starts
from explorer.research.words import verdicts, weights

Rows = list[tuple[str, str]]


@dataclass(frozen=True)
class Summary:
    """A result to be written: as a table for people, as JSON for programs.

    Two are joined by +: the rows of the second stand below those of the first.

    Attributes:
        rows: the name and the words of each line of the table.
        content: plain data, tensors and enums by name; more than the rows say.
    """

    rows: Rows = field(default_factory=list)
    content: dict[str, Any] = field(default_factory=dict)

    def __add__(self, more: Summary) -> Summary:
        return Summary(self.rows + more.rows, self.content | more.content)

    @property
    def json(self) -> str:
        """Return the content with our version, as lines of JSON."""
        content = {"version": __version__, **self.content}
        return json.dumps(plain(content), indent=1, allow_nan=False)


def line(name: str, value: Any) -> Summary:  # noqa: ANN401 - a word, a number or a path
    """Return one value; it has no row where the value is None or an empty word."""
    return Summary([] if value in (None, "") else [(name, cell(value))], {name: value})


def lines(content: dict[str, Any]) -> Summary:
    """Return values by name, a row for each."""
    return Summary([(name, cell(value)) for name, value in content.items()], content)


def cell(value: Any) -> str:  # noqa: ANN401
    """Return a value as it stands in a table: numbers with three digits, "-" for infinity."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "-" if math.isinf(value) else f"{value:.3g}"
    if isinstance(value, list):
        whole = all(isinstance(part, int) for part in value)  # widths, else coordinates
        return ("-" if whole else ", ").join(map(cell, value))
    return str(value)


def values(made: object, *names: str) -> dict[str, Any]:
    """Return attributes by their names."""
    return {name: getattr(made, name) for name in names}


def of_dataset(data: Dataset) -> dict[str, Any]:
    """Return size and source of the points."""
    return {
        **values(data, "n", "d"), "positive": int((data.y > 0).sum()),
        "classes": [int((data.y == label).sum()) for label in labels(data.outputs)],
        "source": asdict(data.source) if data.source else None,
    }  # fmt: skip


def of_network(net: Network) -> dict[str, Any]:
    """Return shape and norm of the weights."""
    return {
        "d": net.d, "widths": list(net.widths), "homogeneous": net.homogeneous,
        "rho": float(net.rho), "dtype": str(net.dtype).removeprefix("torch."),
        "note": weights.note(net),
    }  # fmt: skip


def of_training(done: Trained) -> Summary:
    """Return the points, the weights, how far training came, and how near to a KKT point."""
    data, state, made = done.data, done.states[-1], done.certificate
    training = values(state, "t", "log_loss", "gamma_bar", "gamma_tilde", "q")
    training["q_min"] = done.q_min
    rows = [("points", f"{data.n} in {data.d}-D"), ("network", done.net.shape),
            ("steps", f"{state.t}")]  # fmt: skip
    if done.exact is not None:
        training["optimum"] = {
            **values(done.exact, "polished", "objective"),
            "lower_bound": done.exact.dual / (1 + done.exact.violation),
            "sentence": weights.optimum(done.exact),
        }
        rows.append(("optimum", weights.optimum(done.exact)))
    if done.finished is not None:
        training["finished"] = {
            **values(done.finished, "proved", "objective", "gap", "cells", "rounds"),
            "lower_bound": done.finished.bound, "sentence": weights.end_of_training(done.finished),
        }  # fmt: skip
        rows.append(("finished", weights.end_of_training(done.finished)))
    if made is None:
        rows += [("smallest margin", f"{done.q_min:.6g}"), ("certificate", NO_THEOREM)]
    else:
        on_margin, sentence = int(made.on_margin.sum()), weights.certificate(made)
        training |= {
            "on_margin": on_margin, "sentence": sentence,
            **values(made, "lam", "residual", "residual_strict", "slackness", "light"),
        }  # fmt: skip
        rows += [
            ("normalised margin", f"{state.gamma_bar:.6g}"),
            ("on the margin (1%)", f"{on_margin} of {data.n}"),
            ("KKT residual", f"{digits(made.residual)} (strict {made.residual_strict:.2g})"),
            ("certificate", sentence),
        ]
    parts = {"dataset": of_dataset(data), "network": of_network(done.net), "training": training}
    return Summary(rows, parts)


def of_attack(done: Attacked) -> Summary:
    """Return what is claimed, and where the truth is known, how much of it is true."""
    state, claims, scores, verdict = done.states[-1], done.claims, done.scores, done.verdict
    attack: dict[str, Any] = {
        "t": state.t, "candidates": len(state.x), **state.numbers(), "claims": claim_rows(claims),
        "scores": None, "verdict": None, "certainty": None,
    }  # fmt: skip
    made = done.certainty
    if made is not None:
        attack["certainty"] = {
            made.word: made.certain,
            **values(made, "radius", "half", "reach", "least", "truth", "threshold", "box", "top"),
        }
    if scores is not None and verdict is not None:
        truth, control = scores
        attack["scores"] = [
            {
                "radius": radius, "found": int(truth.found[i]),
                "found_control": int(control.found[i]),
                "recall": float(truth.recall[i]), "precision": float(truth.precision[i]),
            }
            for i, radius in enumerate(truth.radii)
        ]  # fmt: skip
        attack["verdict"] = {
            **values(verdict, "kind", "p_value", "least_p"),
            "sentence": verdicts.verdict(verdict), "controls": verdicts.controls(verdict),
        }  # fmt: skip
    rows = [
        ("attack steps", f"{state.t}"),
        *_unexplained_rows(done, "theta unexplained"),
        *_read_rows(done),
        ("claims", f"{len(claims.x)} of {len(state.x)} candidates"),
        *_judged_rows(done),
    ]
    return Summary(rows, {"attack": attack})


def claim_rows(claims: Report) -> list[dict[str, Any]]:
    """Return place, label and multiplier of each claim."""
    columns = claims.x.tolist(), claims.y.tolist(), claims.lam.tolist()
    return [{"x": x, "y": int(y), "lam": lam} for x, y, lam in zip(*columns, strict=True)]


def of_repeated(made: Repeated) -> Summary:
    """Return what was made again: the training and the attack, as far as each had begun."""
    data = made.run.dataset
    if made.trained is None:
        rows = [("points", f"{data.n} in {data.d}-D"), ("network", "none yet")]
        return Summary(rows, {"dataset": of_dataset(data)})
    found = of_training(made.trained)
    return found if made.attacked is None else found + of_attack(made.attacked)


def of_file(opened: Run | Network) -> Summary:
    """Return what a file holds."""
    if isinstance(opened, Network):
        return Summary(_network_rows(opened), {"kind": "weights", "network": of_network(opened)})
    run = opened
    content: dict[str, Any] = {
        "kind": "run", "dataset": of_dataset(run.dataset),
        "network": of_network(run.net) if run.net else None, **values(run, "seed", "mix"),
        "train_config": asdict(run.train_config),
        "train_steps": [state.t for state in run.train_states],
        "attack_config": None if run.attack_config is None else asdict(run.attack_config),
        "attack_steps": [state.t for state in run.attack_states], "versions": run.versions,
    }  # fmt: skip
    rows = [("points", f"{run.dataset.n} in {run.dataset.d}-D, {source_of(run.dataset)}")]
    rows += _network_rows(run.net) if run.net else [("network", "none yet")]
    for name, states in (("training", run.train_states), ("attack", run.attack_states)):
        some = f"{len(states)} state{'s' * (len(states) > 1)}, the last of step "
        rows.append((name, f"{some}{states[-1].t}" if states else "not begun"))
    rows.append(("seed", str(run.seed)))
    rows.append(("written by", ", ".join(f"{k} {v}" for k, v in run.versions.items())))
    return Summary(rows, content)


def source_of(data: Dataset) -> str:
    """Return in words where points come from."""
    source = data.source
    if source is None:
        return "drawn by hand"
    return f"preset {source.preset}, noise {source.noise:g}, seed {source.seed}"


def _network_rows(net: Network) -> Rows:
    biases = "several layers: not homogeneous, no margin to scale to"
    if net.homogeneous:
        biases = "none" if all(b is None for b in net.biases) else "first layer"
    return [
        ("network", net.shape),
        ("biases", biases),
        ("norm", f"{float(net.rho):.6g}"),
        ("type", str(net.dtype).removeprefix("torch.")),
        *([("note", weights.note(net))] if net.assumed_relu else []),
    ]


def of_starts(made: Starts) -> Summary:
    """Return what many starts claim together, and the starts by themselves."""
    count, least, seed = len(made.seeds), made.each[made.least], made.seeds[made.least]
    attack = of_attack(made.union).content["attack"]
    attack["candidates"] = sum(len(one.states[-1].x) for one in made.each)
    for claim, often in zip(attack["claims"], made.made_by.tolist(), strict=True):
        claim["starts"] = often
    each = [
        {
            "seed": number, "claims": len(one.claims.x),
            "l_stationary": one.states[-1].numbers().get("l_stationary"),
        }
        for number, one in zip(made.seeds, made.each, strict=True)
    ]  # fmt: skip
    starts = {
        "count": count, "at_once": made.together, "diverged": made.diverged, "least": seed,
        "each": each, "most": None if made.most is None else asdict(made.most),
    }  # fmt: skip
    rows = [
        ("starts", verdicts.starts(count, made.together, len(made.diverged))),
        ("attack steps", f"{least.states[-1].t}"),
        *_unexplained_rows(least, f"theta unexplained, at least (seed {seed})"),
        ("claims of all starts", verdicts.union(made.made_by.tolist(), count)),
        *_judged_rows(made.union),
    ]
    best, verdict = made.most, made.union.verdict
    if best is not None and verdict is not None and not math.isnan(best.p_value):
        told = verdicts.best_start(best.seed, best.found, verdict.n, count, best.p_value)
        rows.insert(-1, (f"most recovered within {RADIUS:g} by one start", told))
    return Summary(rows, {"attack": attack, "starts": starts})


def _judged_rows(done: Attacked) -> Rows:
    """Return what may be said of claims; the verdict is the last row."""
    rows = []
    if done.certainty is not None:
        noun = "points" if done.certainty.proven else "claims"
        rows.append((f"{done.certainty.word} {noun}", _certainty_words(done.certainty)))
    if done.scores is None or done.verdict is None:
        return [*rows, ("verdict", "Cannot know: nothing to compare the claims with.")]
    truth, control = done.scores
    for i, radius in enumerate(truth.radii):
        met = f"the first of {verdicts.controls(done.verdict)}: {int(control.found[i])}"
        found = f"{int(truth.found[i])} ({met})"
        rows.append((f"recovered within {radius:g}", found))
    return [*rows, ("verdict", f"{done.verdict.kind.value}: {verdicts.verdict(done.verdict)}")]


def _certainty_words(made: Certainty) -> str:
    """Return how many claims are certified or likely, to how much, and compared with what."""
    known = "the residual of the true points" if made.proven else "a judgement by a threshold"
    certain = made.radius[made.certain]
    reached = f", to {float(certain.min()):.2%} or more" if len(certain) else ""
    near = digits_above(made.half + made.reach)
    return (
        f"{len(certain)} of {len(made.radius)} within {near}{reached}, among "
        f"explanations with {scope(made.box, made.top)} ({known}: {made.limit:.2%})"
    )


def _unexplained_rows(done: Attacked, name: str) -> Rows:
    """Return the share of ||theta||^2 left over, of attacks that explain theta."""
    share = done.states[-1].numbers().get("l_stationary")
    return [] if share is None else [(name, f"{share:.2%}")]


def _read_rows(done: Attacked) -> Rows:
    """Return how many points are read to rounding out of a change, of attacks that read any."""
    numbers = done.states[-1].numbers()
    read, rank = (int(numbers.get(name, 0)) for name in ("read", "rank"))
    if not read:
        return []
    return [("read exactly", f"{read} of {rank} or more" if rank > read else f"{read}")]


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


def picture_html(figure: painting.Sheet) -> str:
    """Return a figure as SVG within a page."""
    drawn = painting.as_bytes(figure, "svg").decode()
    return drawn[drawn.index("<svg") :]


def page_html(
    title: str, lead: Iterable[str], sections: Mapping[str, str], whole: bool = True
) -> str:
    """Return HTML that needs no other file and no script.

    Args:
        title: on top.
        lead: the paragraphs below it, as text.
        sections: the HTML below each heading; "" has none.
        whole: a page of its own, else a part to be put into one.
    """
    parts = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(text)}</p>" for text in lead)]
    for name, held in sections.items():
        parts.append(f"<h2>{escape(name)}</h2>{held}" if name else held)
    part = f'<style>{CSS}</style><div class="mx">{"".join(parts)}</div>'
    if not whole:
        return part
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">{part}</html>'
    )


def pre_html(text: str) -> str:
    """Return text as it is written, with its lines."""
    return f"<pre>{escape(text)}</pre>"


def list_html(items: Iterable[str]) -> str:
    """Return a list of texts."""
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"

"""An audit on paper: its rows, its picture, its page."""

from __future__ import annotations

import io
import json
import math
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

import torch

from explorer.engine.classes import class_numbers
from explorer.engine.files import write_file
from explorer.engine.ranks import RankVerdict
from explorer.engine.scoring import score
from explorer.research.painting import new_figure, plain, save_figure
from explorer.research.records import table_of
from explorer.research.report import jsonable, of_network
from explorer.research.words import verdicts
from explorer.research.words.audit import assumptions, found_where, standings, tried
from explorer.style import COLOURS, INK, PROVEN

if TYPE_CHECKING:
    from pathlib import Path

    from explorer.research.audit import Audit, Tried

SHOWN = 3  # coordinates that a row shows; arbitrary
ROWS = 200  # arbitrary: of a page
PICTURES = ("svg", "pdf", "png")
CSS = """
.mx{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:1rem auto;padding:0 1rem}
.mx h1{font-size:22px}.mx h2{font-size:16px}
.mx table{border-collapse:collapse;font-size:13px}
.mx table td,.mx table th{padding:2px 10px;text-align:left;border-bottom:1px solid #8884}
.mx svg{max-width:100%}
.mx table td{white-space:nowrap;vertical-align:top}.mx table td:last-child{white-space:normal}
.mx .wide{overflow-x:auto}.mx .wide table td:last-child{white-space:nowrap}
"""


def rows(made: Audit) -> list[dict[str, Any]]:
    """One row per training point: its class, its place, its margin, and how near the claims are."""
    number = (class_numbers(made.data.y) - 1).tolist()
    if made.net.outputs == 1:  # the first class is -1
        number = [1 - k for k in number]
    met = {one.title: _met(made, one) for one in made.tried if one.verdict is not None}
    q, least = made.q.tolist(), float(made.q.min())
    ways = standings(made)
    out = []
    for i in range(made.data.n):
        row: dict[str, Any] = {"point": made.kept[i] if made.kept else i}
        row |= {"class": made.classes[number[i]], "margin": q[i] / least}
        if made.data.d <= SHOWN:
            row |= dict(zip(columns(made), made.data.x[i].tolist(), strict=True))
        if made.certificate is not None:
            row["on margin"] = bool(made.certificate.on_margin[i])
            row["multiplier"] = float(made.certificate.lam[i])
        for title, (found, apart, shares) in met.items():
            row[f"{title}: found"] = found[i]
            row[f"{title}: nearest claim"] = apart[i]
            if shares:
                row[f"{title}: held-out as near"] = shares[i]
        if made.determined is not None:
            row["certified radius"] = float(made.determined.certainty.radius[i])
            row["standing"] = ways[i]
        out.append(row)
    return out


def columns(made: Audit) -> tuple[str, ...]:
    """The names of the coordinates: those of the points, or x1, x2, ...

    A name that a table has already is left to it.
    """
    plain = tuple(f"x{k}" for k in range(1, made.data.d + 1))
    taken = {"point", "class", "margin", "on margin", "multiplier", "standing"}
    fit = len(set(made.names)) == made.data.d and not taken.intersection(made.names)
    return made.names if fit else plain


def found_points(made: Audit) -> list[bool]:
    """Which points the best attack found; none where no attack has run."""
    best = made.best
    return [False] * made.data.n if best is None else _met(made, best)[0]


def _met(made: Audit, one: Tried) -> tuple[list[bool], list[float], list[float]]:
    """Which points an attack found, and how far its nearest claims are, as shares of the spread.

    Last the shares of held-out points that are as near; none where claims were matched.
    """
    z = type(made.data)(made.coordinates.inside(made.data.x), made.data.y)
    claims = made.coordinates.inside(one.claims.x)
    found = score(z, claims, one.claims.y, (made.radius * made.spread,))
    apart = (found.distances / made.spread).tolist()
    if isinstance(one.verdict, RankVerdict):
        return one.verdict.which.tolist(), apart, one.verdict.shares.tolist()
    return (found.matches[0] >= 0).tolist(), apart, []


def draw(made: Audit, ax: Any = None) -> Any:  # noqa: ANN401 - matplotlib is untyped
    """Draw points and claims; see `Audit.plot`."""
    if ax is None:
        ax = new_figure(6, 4.6).subplots()
    best = made.best
    if made.data.d > 2:
        return _distances(ax, made, best)
    for label in made.data.y.unique().tolist():
        colour = COLOURS.get(int(label), INK)
        of = made.data.x[made.data.y == label]
        ax.scatter(of[:, 0], _second(of), s=60, facecolors="none", edgecolors=colour)
        if best is not None:
            of = best.claims.x[best.claims.y == label]
            ax.scatter(of[:, 0], _second(of), s=14, color=colour)
    ax.scatter([], [], s=60, facecolors="none", edgecolors=INK, label="training point")
    if best is not None:
        ax.scatter([], [], s=14, color=INK, label=f"claim of {best.title}")
    ax.legend(fontsize=8)
    ax.set_xlabel(plain(columns(made)[0]))
    ax.set_ylabel(plain(columns(made)[1]) if made.data.d == 2 else "")
    if made.data.d == 2:
        ax.set_aspect("equal", adjustable="datalim")
    return ax


def _second(x: torch.Tensor) -> torch.Tensor:
    return x[:, 1] if x.shape[1] > 1 else torch.zeros(len(x))


def _distances(ax: Any, made: Audit, best: Tried | None) -> Any:  # noqa: ANN401
    """Each point's distance to the nearest claim of its class, sorted."""
    if best is not None and best.verdict is not None and len(best.claims.x):
        found, apart, shares = _met(made, best)
        order = sorted(range(len(apart)), key=lambda i: apart[i])
        colours = [PROVEN if found[i] else INK for i in order]
        ax.bar(range(len(order)), [apart[i] for i in order], color=colours)
        if not shares:
            ax.axhline(made.radius, color=INK, linewidth=0.8)
    ax.set_xlabel("training point, by distance")
    ax.set_ylabel("distance to the nearest claim, in spreads")
    return ax


def attack_rows(made: Audit) -> list[tuple[str, str, str, str]]:
    """Of each attack: its name, what it found, how sure that is, and what is to be said of it."""
    out = []
    for one in made.tried:
        if one.verdict is None:
            out.append((one.title, "-", "-", tried(made, one)))
            continue
        found = f"{one.verdict.found} of {made.data.n}"
        p = f"{one.verdict.p_value:.2g}" if one.verdict.why_not is None else "-"
        out.append((one.title, found, p, tried(made, one)))
    return out


def html(made: Audit, whole: bool = True) -> str:
    """The audit as HTML that needs no other file; see `Audit.to_html`."""
    met = {True: "met", False: "not met", None: "not known"}
    size = f"{made.data.n} training points of {made.data.d} coordinates"
    found = f"A point counts as found {found_where(made)}."
    parts = [
        f"<h1>Audit</h1><p>{escape(made.sentence)}</p>",
        f"<p>{escape(repr(made.net))}; {size}. {escape(found)}</p>",
        "<h2>Assumptions</h2>",
        _table(("", "", ""), [(a.name, met[a.met], a.words) for a in assumptions(made)]),
        "<h2>Attacks</h2>",
        _table(("attack", "found", "p", ""), attack_rows(made)),
        "<h2>Picture</h2>", _svg(made), "<h2>Points</h2>", _points(made),
    ]  # fmt: skip
    body = f'<style>{CSS}</style><div class="mx">{"".join(parts)}</div>'
    if not whole:
        return body
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Audit</title>{body}</html>'


def _points(made: Audit) -> str:
    found = made.rows
    more = f"<p>{len(found) - ROWS} more rows.</p>" if len(found) > ROWS else ""
    cells = [
        [str(v) if name == "class" else _cell(v) for name, v in row.items()] for row in found[:ROWS]
    ]
    return f'<div class="wide">{_table(tuple(found[0]), cells)}</div>{more}'


def _cell(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "-" if math.isinf(value) else f"{value:.3g}"
    return str(value)


def _table(head: tuple[str, ...], body: Any) -> str:  # noqa: ANN401
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    lines = ["".join(f"<td>{escape(str(c))}</td>" for c in row) for row in body]
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _svg(made: Audit) -> str:
    """The picture inside a page; nothing without matplotlib."""
    try:
        ax = draw(made)
    except ImportError:
        return ""
    out = io.StringIO()
    ax.figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def as_json(made: Audit) -> dict[str, Any]:
    """The audit as plain data."""
    plain: dict[str, Any] = jsonable({
        "sentence": made.sentence, "p_value": made.p_value, "network": of_network(made.net),
        "points": made.data.n, "classes": [str(c) for c in made.classes],
        "coordinates": made.coordinates.name, "spread": made.spread, "radius": made.radius,
        "assumptions": [a._asdict() for a in assumptions(made)],
        "attacks": [
            {
                "key": one.key, "title": one.title, "message": one.message,
                "ended": one.ended, "seconds": one.seconds,
                "verdict": None if one.verdict is None else {
                    "kind": one.verdict.kind, "found": one.verdict.found,
                    "claims": one.verdict.claims, "chance": one.verdict.chance,
                    "p_value": one.verdict.p_value, "controls": verdicts.controls(one.verdict),
                },
                "x": one.claims.x, "y": one.claims.y, "lam": one.claims.lam,
            }
            for one in made.tried
        ],
        "determined": None if made.determined is None else {
            **asdict(made.determined), "certified": made.determined.certainty.certain,
            "standing": standings(made), "unit": made.spread,
        },
        "table": made.rows,
    })  # fmt: skip
    return plain


def save(made: Audit, path: Path) -> Path:
    """Write the audit; see `Audit.save`."""
    ending = path.suffix.lower().removeprefix(".")
    if ending == "html":
        write_file(path, made.to_html())
    elif ending == "json":
        write_file(path, json.dumps(as_json(made), indent=1, allow_nan=False))
    elif ending == "csv":
        write_file(path, table_of(made.rows))
    elif ending in PICTURES:
        save_figure(path, draw(made).figure)
    else:
        raise ValueError(
            f"an audit is written as .html, .json, .csv, .svg, .pdf or .png; got {path.name}"
        )
    return path

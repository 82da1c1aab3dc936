"""An audit on paper: its rows, its picture, its page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from explorer.engine.charts import Axis, Chart, Guide, Series
from explorer.engine.classes import class_numbers
from explorer.engine.files import write_file
from explorer.engine.images import ImageVerdict
from explorer.engine.margin import usable_margin
from explorer.engine.ranks import RankVerdict
from explorer.engine.scoring import score
from explorer.research.audit.result import Audit, AuditAttack
from explorer.research.pictures.painting import (
    SMALL,
    Plot,
    new_figure,
    paint_chart,
    paint_plane,
    plain,
    save_figure,
)
from explorer.research.pictures.planes import plane_frame
from explorer.research.records import table_of
from explorer.research.report import (
    Summary,
    cell,
    of_network,
    page_html,
    picture_html,
    table_html,
    values,
)
from explorer.research.words import verdicts
from explorer.research.words.audit import assumptions, attack_sentence, found_where, standings

SHOWN = 3  # coordinates that a row shows; arbitrary
ROWS = 200  # arbitrary: of a page
PICTURES = ("svg", "pdf", "png")


def point_rows(made: Audit) -> list[dict[str, Any]]:
    """Return a row per training point: class, place, margin, and how near the claims are."""
    number = (class_numbers(made.data.y) - 1).tolist()
    if made.net.outputs == 1:  # the first class is -1
        number = [1 - k for k in number]
    met = {one.title: _matches(made, one) for one in made.tried if one.verdict is not None}
    q, right = made.q.tolist(), bool((made.q > 0).any())
    least = usable_margin(made.q) if right else float(made.q.min())
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
    """Return the names of the coordinates: those of the points, or x1, x2, ...

    A name that a table has already is left to it.
    """
    plain = tuple(f"x{k}" for k in range(1, made.data.d + 1))
    taken = {"point", "class", "margin", "on margin", "multiplier", "standing"}
    fit = len(set(made.names)) == made.data.d and not taken.intersection(made.names)
    return made.names if fit else plain


def found_points(made: Audit) -> list[bool]:
    """Return which points the best attack found; none where no attack has run."""
    best = made.best
    return [False] * made.data.n if best is None else _matches(made, best)[0]


def _matches(made: Audit, one: AuditAttack) -> tuple[list[bool], list[float], list[float]]:
    """Return which points an attack found, and how far the nearest claims are, in spreads.

    Last the shares of held-out points that are as near; none where claims were matched.
    """
    z = type(made.data)(made.coordinates.inside(made.data.x), made.data.y)
    claims = made.coordinates.inside(one.claims.x)
    found = score(z, claims, one.claims.y, (made.radius * made.spread,))
    apart = (found.distances / made.spread).tolist()
    if isinstance(one.verdict, ImageVerdict):
        return one.verdict.which.tolist(), apart, []
    if isinstance(one.verdict, RankVerdict):
        return one.verdict.which.tolist(), apart, one.verdict.shares.tolist()
    return (found.matches[0] >= 0).tolist(), apart, []


def draw(made: Audit, ax: Plot = None) -> Plot:
    """Draw points and claims; see `Audit.plot`."""
    if ax is None:
        ax = new_figure(5.2, 3.9).subplots()
    if made.data.d > 2:
        paint_chart(ax, distances_chart(made))
        return ax
    best, (across, *upright) = made.best, map(plain, columns(made))
    frame = plane_frame(made.data, None, None if best is None else best.claims)
    frame["axes"] = across, *(upright or [""])
    if best is not None:
        frame["names"]["candidates"] = f"claims of {best.title}"
    paint_plane(ax, frame)
    ax.legend(fontsize=SMALL)
    return ax


def distances_chart(made: Audit) -> Chart:
    """Return each point's distance to the nearest claim of its class, sorted; green: found."""
    best, series, rules, top = made.best, [], [], 1.0
    if best is not None and best.verdict is not None and len(best.claims.x):
        found, apart, _ = _matches(made, best)
        order = np.argsort(apart)
        height, met = np.array(apart)[order], np.array(found)[order]
        rank, width = np.arange(1, len(order) + 1), float(np.clip(240 / len(order), 1, 10))
        series = [
            Series(rank[mine], height[mine], name, "stems", colour=colour, look={"width": width})
            for mine, name, colour in ((met, "recovered", "good"), (~met, "not recovered", "ink3"))
        ]
        top = float(height[np.isfinite(height)].max(initial=made.radius))
        by_length = not isinstance(best.verdict, RankVerdict | ImageVerdict)
        rules = [] if not by_length else [Guide(made.radius, "recovered within")]
    return Chart(
        series, Axis(0.2, made.data.n + 0.8, "training point, by distance", whole=True),
        Axis(0.0, 1.05 * top, "distance to the nearest claim, in spreads"), rules=rules,
    )  # fmt: skip


def attack_rows(made: Audit) -> list[tuple[str, str, str, str]]:
    """Return of each attack its name, what it found, how sure that is, and a sentence."""
    out = []
    for one in made.tried:
        if one.verdict is None:
            out.append((one.title, "-", "-", attack_sentence(made, one)))
            continue
        found = f"{one.verdict.found} of {made.data.n}"
        p = f"{one.verdict.p_value:.2g}" if one.verdict.why_not is None else "-"
        out.append((one.title, found, p, attack_sentence(made, one)))
    return out


def html(made: Audit, whole: bool = True) -> str:
    """Return the audit as HTML that needs no other file; see `Audit.to_html`."""
    size = f"{made.data.n} training points of {made.data.d} coordinates"
    found = f"A point counts as found {found_where(made)}."
    return page_html("Audit", [made.sentence, f"{made.net!r}; {size}. {found}"], {
        "Assumptions": table_html([(a.name, a.standing, a.words) for a in assumptions(made)]),
        "Attacks": table_html(attack_rows(made), ("attack", "found", "p", "")),
        "Picture": _picture(made), "Points": _points(made),
    }, whole)  # fmt: skip


def _picture(made: Audit) -> str:
    """Return the picture inside a page; nothing without matplotlib."""
    try:
        return picture_html(draw(made).figure)
    except ImportError:
        return ""


def _points(made: Audit) -> str:
    found = made.rows
    more = f"<p>{len(found) - ROWS} more rows.</p>" if len(found) > ROWS else ""
    cells = [
        [str(v) if name == "class" else cell(v) for name, v in row.items()] for row in found[:ROWS]
    ]
    return f'<div class="wide">{table_html(cells, tuple(found[0]))}</div>{more}'


def summary(made: Audit) -> Summary:
    """Return the audit as rows of a table and as plain data."""
    rows = [("verdict", made.sentence), ("network", repr(made.net))]
    rows += [(one.name, f"{one.standing}: {one.words}") for one in assumptions(made)]
    rows += [(title, words) for title, _, _, words in attack_rows(made)]
    return Summary(rows, {
        "sentence": made.sentence, "p_value": made.p_value, "network": of_network(made.net),
        "points": made.data.n, "classes": [str(c) for c in made.classes],
        "coordinates": made.coordinates.name, "spread": made.spread, "radius": made.radius,
        "assumptions": [a._asdict() for a in assumptions(made)],
        "attacks": [
            {
                **values(one, "key", "title", "message", "ended", "seconds"),
                "verdict": None if one.verdict is None else {
                    **values(one.verdict, "kind", "found", "claims", "chance", "p_value"),
                    "controls": verdicts.controls(one.verdict),
                },
                **values(one.claims, "x", "y", "lam"),
            }
            for one in made.tried
        ],
        "determined": None if made.determined is None else {
            **asdict(made.determined), "certified": made.determined.certainty.certain,
            "standing": standings(made), "unit": made.spread,
        },
        "table": made.rows,
    })  # fmt: skip


def save(made: Audit, path: Path) -> Path:
    """Write the audit; see `Audit.save`."""
    ending = path.suffix.lower().removeprefix(".")
    if ending == "html":
        write_file(path, made.to_html())
    elif ending == "json":
        write_file(path, summary(made).json)
    elif ending == "csv":
        write_file(path, table_of(made.rows))
    elif ending in PICTURES:
        save_figure(path, draw(made).figure)
    else:
        raise ValueError(
            f"an audit is written as .html, .json, .csv, .svg, .pdf or .png; got {path.name}"
        )
    return path

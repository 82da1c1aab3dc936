"""One file of HTML in which a run plays: no server, no kernel, no request to any host.

The file holds the recording as data, which no browser runs: escaped JSON. With it stand the page's
styles and scripts, zipped. A content security policy forbids every host, and every other script.
Its first words are a sentence for whoever gets it cut short; the script, which comes last, takes it
away.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from explorer.engine.charts import Chart
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.progress import Progress, no_progress, part_progress, with_progress
from explorer.engine.roster import by_key
from explorer.engine.store import Run
from explorer.page.aim import made_at
from explorer.page.frame import Frame
from explorer.page.recording.frames import DRAWN, MOST, frames_of, pictures, recorded_axes
from explorer.page.recording.landscape import KnownStarts, starts_data, starts_of
from explorer.page.recording.packing import recording_text
from explorer.page.sharing.words import ANEW, size_of
from explorer.page.words import glossary
from explorer.research import report
from explorer.research.code import command_of, python_of
from explorer.research.pictures.charts import attack_chart, training_chart
from explorer.research.run_report import PAPERS, bibtex_of, papers_of, title_of, what_of
from explorer.research.state import link_of, without_states

FORMAT, VERSION = "margin-explorer page", 2  # raise it when an older player cannot read the data
CUT = (
    "This page does not play: it was cut short on its way, or scripts are off here. Copy it again, "
    "or allow scripts."
)
HERE = Path(__file__).parent
PAGE = HERE.parent
DIGITS = 6  # of the numbers of a chart
TRIANGLE = ("TRIANGLE", "{ render }", "view/lattice.js", "view/triangle.js")
CHART = ("CHART", "{ render }", "view/chart.js")
BAND = ("BAND", "{ paintBand }", "view/band.js")
# What builds a page of each kind: views with what they give, and scripts before its own.
KINDS: dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "document": (
        (
            CHART,
            ("TIME_BAR", "build", "controls/time_bar.js"),
            TRIANGLE,
        ),
        ("landscape", "chart"),
    ),
    "lesson": ((CHART, BAND, TRIANGLE), ("landscape", "chart", "figure")),
    "story": ((BAND, TRIANGLE), ("landscape", "figure")),
}


def page_that_plays(
    run: Run, certainty: Certainty | None = None, progress: Progress = no_progress,
    starts: KnownStarts | bool = False,
) -> str:  # fmt: skip
    """Return a run as one file of HTML that plays without Python.

    Args:
        run: with its states, points and weights in one unit (`runs.in_own_unit`).
        certainty: of the training points, where it is known.
        progress: hears of the work, and may end it.
        starts: the landscape of starts on these weights; True computes it.

    Raises:
        StoreError: where the run holds no states, or points that no plane shows.
    """
    found, axes = frames_of(run, certainty=certainty), recorded_axes(run)
    frames = list(with_progress(found, DRAWN + 2 * MOST, part_progress(progress, 0.0, 0.3)))
    drawn = pictures(iter(frames), axes)
    every = list(with_progress(drawn, len(frames), part_progress(progress, 0.3, 0.4)))
    end = frames[-1][1]
    if starts is True:
        starts = starts_of(run, end, part_progress(progress, 0.4, 0.9))
    made = made_at(end, without_states(run))
    data = {
        "format": FORMAT, "version": VERSION, "title": title_of(made), "what": what_of(made),
        "recording": recording_text(every),
        "charts": {name: chart_data(chart) for name, chart in _charts(run).items()},
        "about": _about(run, end),
        "landscape": starts_data(starts, end, axes) if isinstance(starts, KnownStarts) else None,
    }  # fmt: skip
    return document_of(data)


def document_of(data: dict[str, Any], kind: str = "document") -> str:
    """Return the file that holds this data, its words escaped; `kind` names what builds it."""
    css, script, start = _styles(), _script(kind), _start()
    policy = (
        f"default-src 'none'; script-src '{_digest(start)}' '{_digest(script)}'; "
        f"style-src '{_digest(css)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(data['title'])}</title></head><body>"
        f'<p id="mx-fault">{CUT}</p>'
        f'<script type="application/json" id="mx-data">{_inert(data)}</script>'
        f'<script type="application/gzip" id="mx-code">{_zip_of(css, script)}</script>'
        f"<script>{start}</script></body></html>\n"
    )


def _zip_of(*texts: str) -> str:
    """Return texts as the file holds them, in a third of their length; `start.js` reads them."""
    return base64.b64encode(gzip.compress(json.dumps(texts).encode(), 9, mtime=0)).decode()


def _inert(data: dict[str, Any]) -> str:
    """Return JSON in which no tag can begin or end, whatever its words are."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _digest(text: str) -> str:
    """Return what a policy calls this text by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _styles() -> str:
    files = (PAGE.parent / "page.css", PAGE / "view" / "chart.css", HERE / "document.css")
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@cache
def _start() -> str:
    return (HERE / "start.js").read_text(encoding="utf-8")


@cache
def _script(kind: str) -> str:
    """Return the page's own code: what shares names stands in functions of its own."""

    def text(*names: str) -> Iterable[str]:
        return ((PAGE / name).read_text(encoding="utf-8") for name in names)

    shared = text("view/dom.js", "view/popup.js", "view/base.js", "view/save.js",
                  "controls/dom.js", "controls/copy.js")  # fmt: skip
    views, more = KINDS[kind]
    own = [
        f"const {name} = (() => {{\n{_plain(*code)}\nreturn {given};\n}})();"
        for name, given, *code in views
    ]
    names = ("player", "file", *more, kind)
    last = text("view/plane.js", *(f"recording/{name}.js" for name in names))
    parts = ['"use strict";', glossary.script(), *shared, *own, *last]
    return f"(() => {{\n{chr(10).join(parts)}\n}})();"


def _plain(*names: str) -> str:
    """Return a view's code as no module."""
    code = "\n".join((PAGE / name).read_text(encoding="utf-8") for name in names)
    return code.replace("export default { render };", "")


# --- what stands beside the plane ---------------------------------------------------------------


def _charts(run: Run) -> dict[str, Chart]:
    """Return the curves of training, which an exact network has not, and of the attack."""
    found = {} if len(run.train_states) == 1 else {"train": training_chart(run.train_states)}
    columns = by_key(run.attack_name).curves
    if run.attack_states and columns:
        found["attack"] = attack_chart(run.attack_states, columns)
    return found


def chart_data(chart: Chart) -> dict[str, Any]:
    """Return a chart as JSON holds it; a gap is null."""
    data, ends = chart.numbers
    told = [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in data.ravel().tolist()]
    return {"values": chart.values, "data": told, "ends": ends.tolist()}


def _about(run: Run, end: Frame) -> dict[str, Any]:
    """Return the numbers of the run, its link and code, versions and citation."""
    whole = replace(without_states(run), stage=end.stage)
    made = made_at(end, whole)
    again = whole if run.repeatable else replace(whole, steps=(0, 0), stage="draw")
    link = link_of(again)
    return {
        "rows": [list(row) for row in report.of_repeated(made).rows],
        "link": link, "note": size_of(link, again) if run.repeatable else ANEW,
        "command": command_of(again), "python": python_of(again),
        "versions": [f"{name} {version}" for name, version in run.versions.items()],
        "cite": bibtex_of(run), "papers": [*PAPERS, *papers_of(made)],
    }  # fmt: skip

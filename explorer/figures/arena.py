"""The arena as a picture: recall and precision per attack with intervals, control in grey."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from explorer.arena import Line
from explorer.engine.intervals import Share
from explorer.engine.scoring import RADII
from explorer.style import CONTROL, CURVES

SERIES = (("recall", CURVES[0]), ("precision", CURVES[2]))
WIDTH = 0.27  # of a bar, in the distance of two attacks


def arena_figure(path: Path, lines: Sequence[Line], title: str) -> None:
    """Write a PNG with one part per radius. ImportError without matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ran = [line for line in lines if line.runs]
    figure = Figure(figsize=(11, 0.6 + 1.2 + 0.62 * max(len(ran), 2)), layout="constrained")
    FigureCanvasAgg(figure)
    parts: Any = figure.subplots(1, len(RADII), sharey=True)
    for i, (axes, radius) in enumerate(zip(parts, RADII, strict=True)):
        for k, (name, colour) in enumerate(SERIES):
            _bars(axes, [getattr(line, name)[i] for line in ran], (k - 1) * WIDTH, name, colour)
        places = [place + WIDTH for place in range(len(ran))]
        control = [line.control[i] for line in ran]
        axes.barh(places, control, WIDTH, color=CONTROL, label="recall of control sets")
        axes.set(xlim=(0, 1), xlabel="share", title=f"within {radius:g}")
        axes.set_yticks(range(len(ran)), [line.title for line in ran])
        axes.invert_yaxis() if i == 0 else None
    if ran:
        figure.legend(*parts[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("\n".join(textwrap.wrap(title, 110)), fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _bars(axes: Any, shares: list[Share], at: float, name: str, colour: str) -> None:  # noqa: ANN401
    values = [s.value if s.value == s.value else 0.0 for s in shares]
    reach = [[v - s.low, s.high - v] if s.value == s.value else [0.0, 0.0]
             for v, s in zip(values, shares, strict=True)]  # fmt: skip
    axes.barh(
        [place + at for place in range(len(shares))], values, WIDTH, color=colour, label=name,
        xerr=[[max(r[k], 0.0) for r in reach] for k in (0, 1)],
        error_kw={"lw": 1.2, "capsize": 2.5, "ecolor": "#333333"},
    )  # fmt: skip

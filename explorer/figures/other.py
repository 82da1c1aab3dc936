"""Another training set that explains the same weights, beside the true one, as a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from explorer.style import NEGATIVE, POSITIVE


def other_figure(path: Path, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Write a PNG for the first row that knows another set in the plane; False for none.

    ImportError without matplotlib.
    """
    told: list[Any] = [(row.get("result") or {}).get("other") for row in rows]
    told = [other for other in told if other and other["x"] and len(other["x"][0]) == 2]
    if not told:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    other = told[0]
    figure = Figure(figsize=(6, 6.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots()
    for label, marker, colour in ((1, "o", POSITIVE), (-1, "^", NEGATIVE)):
        for name, face, size in (("truth_", "none", 110), ("", colour, 30)):
            pairs = zip(other[f"{name}x"], other[f"{name}y"], strict=True)
            spots = [x for x, y in pairs if y == label]
            axes.scatter([x[0] for x in spots], [x[1] for x in spots], marker=marker,
                         s=size, facecolors=face, edgecolors=colour)  # fmt: skip
    axes.set(aspect="equal", xlabel="hollow: training points; filled: another set")
    figure.suptitle("\n".join(textwrap.wrap(other["sentence"], 76)), fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    return True

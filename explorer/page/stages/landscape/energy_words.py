"""What the energy panel says beside its map: why there is none, and what its marks mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.engine.energy.questions import Answers, MapQuestion, Picture
from explorer.engine.number_words import coarse_share
from explorer.page.frame import Frame

SKETCH = (
    "A sketch, with the multipliers of the other points as they are: the map comes when the hand "
    "rests, and lies below it."
)
FLAT = "Every place leaves nothing of ‖θ‖² unexplained but rounding: one colour."
COMPUTING = "Computing this map …"
STOPPED = "Stopped before this map was there."
ENDS = ("truth", "other set", "stuck")  # what an end is, of a run or of a census
WAY = ("━●", "#ffffff")  # of a run, and where it is
MARKS = (("★", "#5ee08a"), ("⬢", "#c9d1da"), ("▬", "#7de3f4"))  # theirs, as in triangle.js
UNIT_BILEVEL = "‖θ(x) − θ*‖ / ‖θ*‖"
POINT = "□ where the point is &nbsp; ○ truth"
LOWEST = "▽ lowest"
BREAKS = (
    "<b style='color:#009E73'>◆</b> on the margin, yΦ = 1 &nbsp; dotted: breakpoints of Φ"
    " &nbsp; dashed: energy without this point"
)


def unexplained_share(energy: float) -> str:
    """Return the share of the weights whose square an energy is, as the certificate says it."""
    return coarse_share(energy**0.5) if np.isfinite(energy) else "–"


def end_rows(
    counts: Sequence[int], names: Sequence[str] = ENDS, coloured: bool = True, head: str = "ends"
) -> str:
    """Return how many ends are of each kind, as the legend of their marks, in HTML."""
    rows = ""
    for name, (mark, colour), count in zip(names, MARKS, counts, strict=True):
        rows += mark_row(mark, colour if coloured else "", f"{name} {count}")
    return f"<div>{head}</div>{rows}"


def mark_row(mark: str, colour: str, words: str) -> str:
    """Return a row of the legend of the triangle, in HTML; `colour` "" for that of the words."""
    style = f" style='color:{colour}'" if colour else ""
    return f"<div><span class='mx-end'{style}>{mark}</span> {words}</div>"


def nothing(frame: Frame) -> str:
    """Return why the weights on screen have no energy, and what to do about it."""
    target = frame.target
    if target is None:
        return (
            "No energy here: there are no attacked weights yet. Draw two classes, train, and come "
            "back."
        )
    net = target.net
    if net.outputs != 1 and net.d == 1:
        return (
            f"These weights tell {net.outputs} classes of points on a line apart, and the map of a "
            "single point is known of two there. All points has the triangle, with DecoReco."
        )
    if not net.homogeneous:
        return (
            "No energy here: this network has biases beyond the first layer, so it is not "
            "homogeneous, and no theorem says that its weights are a sum over points. In 2 Train, "
            "under More settings, choose biases of the first layer only, and train anew."
        )
    return "No energy here: it needs weights with a hidden layer."


def legend(picture: Picture, lowest: bool) -> str:
    """Return the legend of this picture; the `lowest` place may be in it."""
    words = [] if picture.kind == "split" else [POINT]
    if lowest:
        words.append(LOWEST)
    if picture.curve is not None and picture.kind == "point":
        words.append(BREAKS)
    return " &nbsp; ".join(words)


def merging(q: MapQuestion, answers: Answers) -> str:
    """Return how many neurons were merged, and what that changed."""
    if q.config.angle == 0:
        return ""
    made = answers.merged_network(q)
    if sum(made.net.widths) == sum(q.net.widths):
        return ""
    return (
        f" {sum(q.net.widths)} neurons merged to {sum(made.net.widths)}; Φ changes by "
        f"{made.error:.1g} on the points."
    )

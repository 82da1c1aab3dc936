"""What the landscape says of its starts: shares, the scale, and why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.engine.energy.landscape import Weights
from explorer.engine.energy.starts import NAMES, mix_weights
from explorer.engine.roster import ROSTER, by_key
from explorer.page.frame import Frame
from explorer.page.words.energy import nothing
from explorer.research.grid import grid_attacks
from explorer.research.landscape import Key

SETS = ("truth", "unseen", "noise")
TITLE, UNIT = "Energy of all starts", "share of ‖θ‖² unexplained, bright is low"
UNIT_BILEVEL = "‖θ(x) − θ*‖² / ‖θ*‖², bright is low"
ATTACK_HERE = "Attack from here"
CHANGED = "The points or the weights changed: the attacks were cancelled."
LABEL = (
    "Triangle of starts with truth, unseen points and noise at its corners. Arrows move the handle "
    "(Shift: further); T, U and N put it to a corner."
)
START = "Start"
START_LABEL = f"{LABEL} Moving it starts the attack anew."
RUNS_LABEL = "Triangle of starts with truth, unseen points and noise at its corners, and runs on it"
WHERE_ENDS = "Where attacks end, over all starts"
POINT = (
    "Where else could this point be?",
    "Bright places explain the weights nearly as well, with the other points where they are.",
)
SPLIT = (
    "Could this point be two?",
    "One half at each place, the other opposite; bright places explain the weights nearly as well.",
)
PROFILES = {
    "noise": "Noise to handle to truth",
    "unseen": "Unseen to handle to truth",
    "edges": "Along the edges",
}
MARKS = (("●", "#5ee08a"), ("■", "#c9d1da"), ("◆", "#ff9bd2"))  # of ends, as in triangle.js
EXPLAINED = 0.05  # of the weights: what leaves less explains them; arbitrary
BESIDE = 0.5  # share of the truth above which a start is beside it; arbitrary


def percents(weights: Sequence[float]) -> list[int]:
    """Return whole per cent that sum to 100, by the largest remainders."""
    exact = [100 * w for w in weights]
    whole = [int(np.floor(v)) for v in exact]
    order = sorted(range(len(exact)), key=lambda i: whole[i] - exact[i])
    for i in order[: 100 - sum(whole)]:
        whole[i] += 1
    return whole


def mixture(weights: Weights, short: bool = False) -> str:
    """Return a place of the triangle in words; `short` without the sets that have no share."""
    shares = zip(percents(weights), SETS, strict=True)
    return ", ".join(f"{p}% {n}" for p, n in shares if p or not short)


def number(value: float) -> str:
    """Return an energy as the page prints it."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.2f}" if value >= 0.095 else f"{value:.1g}" if value >= 1e-4 else "below 0.0001"


def why_none(frame: Frame) -> str:
    """Return why the landscape has no starts, and what to choose; "" where it has them."""
    if frame.starts is not None:
        return ""
    if frame.target is None:
        return nothing(frame)
    entry = by_key(frame.attack.name)
    if not entry.takes_start:
        return f"{entry.title} does not begin at given candidates: choose {choices()}."
    if entry.energy is None:
        return nothing(frame)
    return "No unseen points to start from: train a network, and come back."


def choices() -> str:
    """Return the names of the attacks that have starts."""
    names = [ROSTER[key].title for key in grid_attacks()]
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]


def headline(frame: Frame) -> tuple[str, str] | None:
    """Return title and sentence of the landscape on screen; None before its energies are known."""
    if frame.map_kind != "starts":
        return POINT if frame.map_kind != "split" else SPLIT
    held = frame.starts
    if held is None or held.energies is None:
        return None
    return title(held.energies, held.ranked)


def title(values: NDArray[np.float64], ranked: bool) -> tuple[str, str]:
    """Return what the energies of all starts show, in a title and a sentence.

    `values` (side, side): row noise and column truth; `ranked`: whether colours follow ranks.
    """
    known = np.isfinite(values)
    last = len(values) - 1
    truth = np.broadcast_to(np.arange(last + 1) / max(last, 1), values.shape)[known]
    low = values[known] <= EXPLAINED
    count, total = int(low.sum()), int(known.sum())
    scale = " Nearly all starts have one energy, so colours go by rank." if ranked else ""
    if not count:
        least = float(values[known].min())
        return (
            "No start explains the weights",
            f"The best of {total} leaves {least:.0%} of ‖θ‖² unexplained.{scale}",
        )
    if (truth[low] > BESIDE).all():
        return (
            "Only starts beside the truth explain the weights",
            f"{count} of {total} starts leave {EXPLAINED:.0%} or less of ‖θ‖².{scale}",
        )
    if count > 0.9 * total:
        share = f"{count} of {total} leave {EXPLAINED:.0%} or less of ‖θ‖²"
        return (
            "Nearly every start explains the weights",
            f"{share}: the energy tells little of the training points here.{scale}",
        )
    return (
        f"{count} of {total} starts explain the weights",
        f"They leave {EXPLAINED:.0%} or less of ‖θ‖², some of them far from the truth.{scale}",
    )


def readout(weights: Weights, energy: float, running: bool = False) -> str:
    """Return the energy and the three shares beside the triangle, as HTML."""
    where = "now" if running else "here"
    rows = [f"<b>{number(energy)}</b> {where}"]
    rows += [f"{p}% {n}" for p, n in zip(percents(weights), SETS, strict=True)]
    return "".join(f"<div>{row}</div>" for row in rows)


def scale(low: float, top: float, ranked: bool, stops: Sequence[str]) -> str:
    """Return the legend of the colours, as HTML: bright is low."""
    colours = ", ".join(reversed(stops))
    words = "colours by rank" if ranked else "log colours"
    fill = f"background:linear-gradient(to right, {colours})"
    return (
        f"<div style='height:8px;border-radius:4px;{fill}'></div>"
        f"<div style='display:flex;justify-content:space-between'><span>{number(low)}</span>"
        f"<span>{number(top)}</span></div><div>{words}</div>"
    )


def attack_all(count: int) -> str:
    """Return the label of the button that attacks from all places."""
    return f"Attack from all {count} starts"


def first(why: str) -> str:
    """Return what to do before there are runs; `why` not, where that is known."""
    return escape(
        f"{why or 'Press the button below.'} The attack then runs from mixtures of the training "
        "images, unseen ones and noise, side by side."
    )


def run(key: Key, row: Mapping[str, Any]) -> str:
    """Return a finished run in the list: where it began and where it ended."""
    seed, *mix = key
    result = row["result"]
    nearest = SETS[int(np.argmin([result[name] for name in NAMES]))]
    again = f" (seed {seed + 1})" if seed else ""
    energy = result.get("energy")
    left = "" if energy is None else f", energy {number(energy)}"
    return f"from {mixture(mix_weights(*mix))}{again}: ends nearest to {nearest}{left}"


def loaded(mix: tuple[float, float], t: int) -> str:
    """Return which run is on the plane."""
    return (
        f"The run from {mixture(mix_weights(*mix))}: the candidates on the plane are those of step "
        f"{t}. The Attack stage has its timeline."
    )


def profile(kind: str, after: bool, passed: bool = True) -> str:
    """Return the title of the profile, as HTML; `passed`: whether it passes the handle."""
    lines = "dashed: start" + (", solid: end" if after else "")
    lines += "" if passed else "; the handle lies within"
    return f"<b>{escape(PROFILES[kind])}</b> <span class='mx-aside'>{lines}</span>"


def profile_label(kind: str, start: float, now: float, passed: bool = True) -> str:
    """Return what a screen reader says of the profile; `passed`: whether it passes the handle."""
    if not passed:
        return f"{PROFILES[kind]}: the handle is on none of them."
    after = f", after the run {number(now)}" if now != start else ""
    return f"{PROFILES[kind]}: energy {number(start)} at the handle{after}."


def ends(counts: Sequence[int], rolling: int) -> str:
    """Return how many runs ended nearest to each set, as the legend of their ends, in HTML."""
    rows = [
        f"<div><span class='mx-end' style='color:{colour}'>{mark}</span> {name} {count}</div>"
        for name, (mark, colour), count in zip(SETS, MARKS, counts, strict=True)
    ]
    head = f"rolling {rolling}, ended at" if rolling else "ends nearest to"
    return f"<div>{head}</div>{''.join(rows)}"


def said(weights: Weights, energy: float) -> str:
    """Return what a screen reader says of the handle."""
    return f"{mixture(weights)}: energy {number(energy)}"


def unit(attack: str) -> str:
    """Return what the energies of this attack are shares of."""
    return UNIT if by_key(attack).energy is None else UNIT_BILEVEL


def heading(left: str, right: str) -> str:
    """Return the title of a card with its unit, as HTML."""
    return (
        "<div style='display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 8px'>"
        f"<b>{escape(left)}</b><span class='mx-aside'>{escape(right)}</span></div>"
    )


def html(words: str) -> str:
    """Return words for an HTML widget."""
    return escape(words)

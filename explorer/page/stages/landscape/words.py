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
from explorer.page.frame import Frame, Handle
from explorer.page.stages.landscape.energy_words import nothing
from explorer.research.grid import grid_attacks
from explorer.research.grid.landscape import EXPLAINED, Arrivals, Key
from explorer.research.runs import RADIUS

SETS = ("truth", "unseen", "noise")
TITLE, AFTER = "Energy of all starts", "Energy where the runs end"
UNIT = "share of ‖θ‖² that the candidates miss"
UNIT_BILEVEL = "‖θ(x) − θ*‖² / ‖θ*‖²"
BRIGHT = {"log": "bright is low", "rank": "the brighter, the lower", "one": "all alike"}
NONE = "No starts for this attack here"
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
WHERE, HALVES = "Where else could this point be?", "Could this point be two?"
ANSWERS = {  # by the archetype of the map
    "needle": "This point could hardly be elsewhere",
    "fan": "This point could be at many places",
    "redundant": "This point could be anywhere",
}
PROFILES = {
    "noise": "Noise to handle to truth",
    "unseen": "Unseen to handle to truth",
    "edges": "Along the edges",
}
MARKS = (("●", "#5ee08a"), ("■", "#c9d1da"), ("◆", "#ff9bd2"))  # of ends, as in triangle.js
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
    if value < 1e-4:
        return "less than 0.0001"
    return f"{value:.2f}" if value >= 0.095 else f"{value:.1g}"


def why_none(frame: Frame) -> str:
    """Return why the landscape has no starts, and what to choose; "" where it has them."""
    if frame.starts is not None:
        return ""
    if frame.target is None:
        return nothing(frame)
    entry = by_key(frame.attack.name)
    if not entry.takes_start:
        return f"{entry.title} does not begin at given candidates: choose {choices()}."
    if entry.own is None and frame.landscape is None:
        return nothing(frame)
    sentence = frame.no_starts[:1].upper() + frame.no_starts[1:]
    return f"{entry.title}: {sentence} Its settings are under More settings."


def choices() -> str:
    """Return the names of the attacks that have starts."""
    names = [ROSTER[key].title for key in grid_attacks()]
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]


def headline(frame: Frame) -> tuple[str, str] | None:
    """Return title and sentence of the landscape on screen; None before its energies are known."""
    if frame.map_kind != "starts":
        return map_words(frame)
    held = frame.starts
    if held is None:
        return None
    own = by_key(held.problem.of.attack).own is not None
    if len(held.trail) > 1:
        return run_words(held.weights, held.trail[0][1], held.energy, beside(held))
    if held.arrivals is not None:
        return arrival_words(held.arrivals, beside(held))
    return None if held.energies is None else title(held.energies, held.colours, own)


def beside(held: Handle) -> str:
    """Return how many candidates a run from here has, and how many the attack stage takes."""
    m = len(held.candidates.x)
    each = f"{m} candidates, one for each point" if m > 1 else "one candidate"
    return each if held.usual in (0, m) else f"{each} (3 Attack takes {held.usual})"


def map_words(frame: Frame) -> tuple[str, str]:
    """Return what the map of one point on screen shows, or of its halves."""
    halves, made = frame.map_kind == "split", frame.point_map
    if made is None:
        return HALVES if halves else WHERE, "Its map is on its way."
    look = "Low places of the curve" if made.values is None else "Bright places"
    if frame.map_kind in ("ridge", "last"):
        return WHERE, f"{look} train to nearly the same weights, with the others where they are."
    if halves:
        return HALVES, f"One half there, the other opposite. {look} explain the weights best."
    return ANSWERS.get(made.archetype, WHERE), (
        f"{look} explain the weights best, with the other points where they are."
    )


def _leave(own: bool) -> str:
    """Return what those do that explain the weights, by an energy of an attack's own or by KKT."""
    most = f"{EXPLAINED:.0%}"
    return f"miss the weights by {most} or less" if own else f"leave {most} or less of ‖θ‖²"


def run_words(start: Weights, first: float, now: float, those: str) -> tuple[str, str]:
    """Return what a run from a place has come to, its energy at first and now; `beside` it."""
    return (
        f"From energy {number(first)} to {number(now)}",
        (
            f"The attack began at {mixture(start, short=True)}, with {those}. On the plane they "
            f"miss {number(now)} of ‖θ‖²."
        ),
    )


def arrival_words(made: Arrivals, those: str) -> tuple[str, str]:
    """Return how many runs ended at the truth, at the unseen points and elsewhere."""
    if not made.ended:
        of = f"{made.total} runs are on their way" if made.going else "The runs were stopped"
        words = "None has ended yet: Cancel keeps what is done."
        words = words if made.going else "None has ended. Press again to go on."
        return of, words
    ends = [(made.truth, "at the truth"), (made.unseen, "at the unseen points")]
    ends.append((made.ended - made.truth - made.unseen, "elsewhere"))
    if made.ended < made.total:
        more = "The others are on their way." if made.going else "Press again to run the others."
        sofar = ", ".join(f"{n} {where}" for n, where in ends)
        return f"{made.ended} of {made.total} runs have ended", f"So far {sofar}. {more}"
    which = {0: "No run finds the truth", made.total: f"All {made.total} runs find the truth"}
    some = f"{made.truth} of {made.total} runs find{_s(made.truth)} the truth"
    words = ""
    if made.began:
        one = "It" if made.began == made.truth == 1 else f"{made.began} of them"
        words = f"{one} began there. "
    (n, where), (other, away) = ends[1:]
    if n + other:
        words += f"{n} end{_s(n)} {where}, {other} {away}."
    if made.explain:
        of = "the rest" if made.truth else "them"
        words += f" {made.explain} of {of} explain{_s(made.explain)} the weights too."
    words = words.strip() or "From every place they come to it."
    found = f"Found means {RADIUS:g} apart or less, on average."
    took = f" in {made.steps:,} steps" if made.steps else ""
    return f"{which.get(made.truth, some)}{took}", f"{words} Each run has {those}. {found}"


def _s(n: int) -> str:
    """Return the ending of a verb of so many."""
    return "s" if n == 1 else ""


def title(values: NDArray[np.float64], colours: str, own: bool = False) -> tuple[str, str]:
    """Return what the energies of all starts show, in a title and a sentence.

    `values` (side, side): row noise and column truth; `colours`: of `shades.colours_of`;
    `own`: whether the attack has an energy of its own, by training on the start.
    """
    known = np.isfinite(values)
    last = len(values) - 1
    truth = np.broadcast_to(np.arange(last + 1) / max(last, 1), values.shape)[known]
    low = values[known] <= EXPLAINED
    count, total = int(low.sum()), int(known.sum())
    scale = {
        "rank": " Nearly all starts have one energy, so colours go by rank.",
        "one": " All starts read alike, so they have one colour.",
    }.get(colours, "")
    if not count:
        least = float(values[known].min())
        left = f"misses the weights by {least:.0%}" if own else f"leaves {least:.0%} of ‖θ‖²"
        return ("No start explains the weights", f"The best of {total} {left}.{scale}")
    if (truth[low] > BESIDE).all():
        return (
            "Only starts beside the truth explain the weights",
            f"{count} of {total} starts {_leave(own)}.{scale}",
        )
    if count > 0.9 * total:
        share = f"{count} of {total} {_leave(own)}"
        return (
            "Nearly every start explains the weights",
            f"{share}: the energy tells little of the training points here.{scale}",
        )
    return (
        f"{count} of {total} starts explain the weights",
        f"They {_leave(own)}, some of them far from the truth.{scale}",
    )


def readout(weights: Weights, energy: float, running: bool = False) -> str:
    """Return the energy and the three shares beside the triangle, as HTML."""
    where = "now" if running else "here"
    rows = [f"<b>{number(energy)}</b> {where}"]
    rows += [f"{p}% {n}" for p, n in zip(percents(weights), SETS, strict=True)]
    return "".join(f"<div>{row}</div>" for row in rows)


def scale(low: float, top: float, how: str, stops: Sequence[str]) -> str:
    """Return the legend of the colours, as HTML: bright is low; `how`: of `shades.colours_of`."""
    if how == "one":
        return f"<div>one colour: {number(top)} everywhere</div>"
    colours = ", ".join(reversed(stops))
    words = "colours by rank" if how == "rank" else "log colours"
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


def run(key: Key, result: Mapping[str, Any]) -> str:
    """Return a finished run in the list: where it began and where it ended."""
    seed, *mix = key
    nearest = SETS[int(np.argmin([result[name] for name in NAMES]))]
    again = f" (seed {seed + 1})" if seed else ""
    energy = result.get("energy")
    left = "" if energy is None else f", energy {number(energy)}"
    return f"from {mixture(mix_weights(*mix))}{again}: ends nearest to {nearest}{left}"


def loaded_run(mix: tuple[float, float], t: int) -> str:
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


def ends(counts: Sequence[int], begun: int, going: bool = True) -> str:
    """Return how many runs ended nearest to each set, as the legend of their ends, in HTML.

    `begun`: those that began and have not ended, for they are `going` on or were stopped.
    """
    rows = [
        f"<div><span class='mx-end' style='color:{colour}'>{mark}</span> {name} {count}</div>"
        for name, (mark, colour), count in zip(SETS, MARKS, counts, strict=True)
    ]
    head = "ends nearest to"
    if begun:
        head = f"{'rolling' if going else 'stopped'} {begun}, ended at"
    return f"<div>{head}</div>{''.join(rows)}"


def handle_words(weights: Weights, energy: float) -> str:
    """Return what a screen reader says of the handle."""
    return f"{mixture(weights)}: energy {number(energy)}"


def unit(attack: str, colours: str) -> str:
    """Return what the energies of this attack are shares of, and what its colours say."""
    of = UNIT if by_key(attack).own is None else UNIT_BILEVEL
    return f"{of}, {BRIGHT[colours]}"


def heading(left: str, right: str) -> str:
    """Return the title of a card with its unit, as HTML."""
    return (
        "<div style='display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 8px'>"
        f"<b>{escape(left)}</b><span class='mx-aside'>{escape(right)}</span></div>"
    )

"""What the landscape says of its starts: shares, the scale, and why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.engine.energy.landscape import Weights
from explorer.engine.energy.questions import refusal
from explorer.engine.energy.starts import NAMES, mix_weights
from explorer.engine.roster import ROSTER, by_key
from explorer.page.frame import Frame, Handle
from explorer.page.stages.landscape.census_words import census_numbers, census_words
from explorer.page.stages.landscape.energy_words import (
    ENDS,
    UNIT_BILEVEL,
    WAY,
    end_rows,
    mark_row,
    nothing,
    unexplained_share,
)
from explorer.page.words.statement import scale_html
from explorer.research.census import Census
from explorer.research.grid import grid_attacks
from explorer.research.grid.landscape import LEVEL, Arrivals, Key, good_up_to, least_at_truth
from explorer.research.runs import RADIUS

SETS = ("truth", "unseen", "noise")
AGES_COMING = "other steps of training are computed"
UNEXPLAINED, AT_START, AT_END = "Unexplained", "at the start", "at the end"
OF_START = "colours: at the start"
YELLOW = {"log": "yellow: little is left", "linear": "yellow: little is left",
          "rank": "colours by rank"}  # fmt: skip
COLOURS = (("log", "log"), ("linear", "linear"), ("by rank", "rank"))
COLOURS_TIP = "Log and linear: one scale for all triangles. By rank: the order of the places alone"
CANDIDATES_TIP = "Candidates of each run: those of 3 Attack, which this changes too"
FIRST_TIP = (
    "Fitted: to a start that holds data, which is kept: short steps, no annealing. Drawn: as from "
    "noise, as published; the first steps then leave the start"
)
NONE = "No starts for this attack here"
MAP = "Which starts lead to the truth?"  # short: one line where one presents
MOVES_ON = "An attack moves on from there."
ATTACK_HERE = "Attack from here"
BEST = "The plane shows the best: {} of {}."
LESS = " On the way less was left with fewer recovered: less is not nearer."
CHANGED = "The points or the weights changed: the attacks were cancelled."
LABEL = (
    "Triangle of starts with truth, unseen points and noise at its corners. Arrows move the handle "
    "(Shift: further); T, U and N put it to a corner."
)
START = "Where the candidates begin"
START_LABEL = f"{LABEL} Moving it starts the attack anew."
RUNS_LABEL = "Triangle of starts with truth, unseen points and noise at its corners, and runs on it"
WHERE_ENDS = "Where attacks end, over all starts"
WHERE, HALVES = "Where else could this point be?", "Could this point become two?"
ANSWERS = {  # by the archetype of the map
    "needle": "This point can hardly move alone",
    "forced": "This point can hardly move alone",
    "fan": "This point can move alone",
    "redundant": "This point can be anywhere",
    "one": "This point cannot become two",
    "two": "This point could become two",
    "nothing": "This point carries none of the weights",
}
FURTHER = {
    "needle": " If all move, only certified points are proven to stay.",
    "forced": " Elsewhere it breaks the margin.",
    "one": " No line keeps both on the margin.",
    "two": " Along the line both stay on the margin.",
}
PROFILES = {
    "noise": "Unexplained from noise to truth",
    "unseen": "Unexplained from unseen points to truth",
    "edges": "Unexplained along the edges",
}
DRAWN = "with drawn multipliers and annealed slopes the first steps leave the start"
OWN_LOSS = "the attack lowers a loss of its own, not this share"
OVERSHOT = "its steps have a length of their own, and can overshoot"
# Where to go after the runs: to the last act, or beyond it where the points were revealed.
ON = {"explain": "On to Explain", "arena": "On to Compare"}
ON_TIP = {"explain": "Whether the points could be elsewhere", "arena": "Which attack does best"}
ON_MAP = "{left} on the map"
WAY_OF_A_RUN = "a run"
# Share of the truth from which a start is beside it, and below which it is far; arbitrary.
BESIDE, FAR = 0.5, 0.2


def percents(weights: Sequence[float]) -> list[int]:
    """Return whole per cent that sum to 100, by the largest remainders."""
    exact = [100 * w for w in weights]
    whole = [int(np.floor(v)) for v in exact]
    order = sorted(range(len(exact)), key=lambda i: whole[i] - exact[i])
    for i in order[: 100 - sum(whole)]:
        whole[i] += 1
    return whole


def mixture(weights: Weights, short: bool = False) -> str:
    """Return a place of the triangle in words; `short` without what has no share, and no 100%."""
    shares = zip(percents(weights), SETS, strict=True)
    return ", ".join(n if short and p == 100 else f"{p}% {n}" for p, n in shares if p or not short)


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
    if _tells_run(held):
        return run_words(held)
    if held.counting is not None:
        return counting_words(*held.counting)
    told = _told_census(held)
    if told is not None:
        return census_words(told, held.end, held.arrivals, len(held.problem.parts.y))
    if held.arrivals is not None:
        title_, said = arrival_words(held.arrivals)
        if held.best and held.t:
            n = 0 if held.problem.of.truth is None else held.problem.of.truth.n
            said = f"{said} {BEST.format(held.trail[-1].found, n)}"
        return title_, said
    if held.energies is None:
        return None
    return all_words(held) if tells_nothing(frame) else map_title(held)


def counting_words(starts: int, ended: int) -> tuple[str, str]:
    """Return how far a census is, in a title and a sentence."""
    words = "Each moves only where less is unexplained; it turns white where it stops."
    if ended == starts:
        words = "Which of them ended at one place is compared now."
    return f"{ended} of {starts} starts {'has' if ended == 1 else 'have'} come to rest", words


def numbers(frame: Frame) -> tuple[tuple[str, str], ...]:
    """Return the names and values of the numbers under the headline of a run, or of a census."""
    held = frame.starts
    if held is None or frame.map_kind != "starts":
        return ()
    if _tells_run(held):
        return run_numbers(held, by_key(held.problem.of.attack).own is not None)
    told = _told_census(held) if held.end < 0 else None
    return () if told is None else census_numbers(told, len(held.problem.parts.y))


def _told_census(held: Handle) -> Census | None:
    """Return the census that the headline tells; None where it tells of a run."""
    return None if _tells_run(held) else held.census


def _tells_run(held: Handle) -> bool:
    """Return whether the headline tells of the run from the handle, and not of all runs."""
    return len(held.trail) > 1 and not (held.best and held.rests)


def map_title(held: Handle) -> tuple[str, str]:
    """Return the question of the map, and which starts explain the weights as it shows."""
    assert held.energies is not None
    own = by_key(held.problem.of.attack).own is not None
    said, words = title(held.energies, own, held.finest)
    return said, f"{words}{_unlike_attack(held)}"


def tells_nothing(frame: Frame) -> bool:
    """Return whether every start is as good as the truth, and nothing ran since."""
    held = frame.starts if frame.map_kind == "starts" else None
    if held is None or held.energies is None or len(held.trail) > 1:
        return False
    if held.arrivals or held.census or held.counting or not held.finest:
        return False
    side, known = len(held.energies), held.energies[np.isfinite(held.energies)]
    whole = 2 * len(known) == side * (side + 1) and by_key(held.problem.of.attack).own is None
    return whole and float(known.max()) <= good_up_to(float(held.energies[0, -1]), own=False)


def all_words(held: Handle) -> tuple[str, str]:
    """Return that every start is as good as the truth, so that none stands out."""
    words = f"{beside(held)} anywhere, even noise, add up to them"
    return "Every start explains these weights", f"Energy cannot tell here: {words}."


def _unlike_attack(held: Handle) -> str:
    """Return how many candidates a start has, where the attack stage takes another number."""
    same = held.usual in (0, len(held.candidates.x))
    return "" if same else f" Each start has {beside(held)}."


def beside(held: Handle) -> str:
    """Return how many candidates a run from here has, and how many the attack stage takes."""
    m = len(held.candidates.x)
    each = f"{m} candidates" if m > 1 else "one candidate"
    return each if held.usual in (0, m) else f"{each} (3 Attack takes {held.usual})"


def map_words(frame: Frame) -> tuple[str, str]:
    """Return what the map of one point on screen shows, or of its halves."""
    halves, made = frame.map_kind == "split", frame.point_map
    if made is None:
        why = "" if frame.target is None else refusal(frame.map_kind, frame.target.net)
        there = "one half there, the other across the point" if halves else "the point there"
        return HALVES if halves else WHERE, why or f"Each place of its map: {there}, others fixed."
    look = "Low" if made.values is None else "Yellow"
    if frame.map_kind in ("ridge", "last"):
        return WHERE, f"{look}: it trains to nearly the same weights there, the others fixed."
    said = (
        f"The halves lie across the point from each other. {look}: both explain the weights."
        if halves
        else f"{look}: the weights stay explained with the point there and the others fixed."
    )
    title_ = ANSWERS.get(made.archetype, HALVES if halves else WHERE)
    return title_, said + FURTHER.get(made.archetype, "")


def run_words(held: Handle) -> tuple[str, str]:
    """Return how many points the run from the handle has recovered, and where it began."""
    recovered, truth = held.trail_so_far[-1:], held.problem.of.truth
    assert truth is not None  # a page's landscape has one
    n = recovered[0].found if recovered else 0
    words = f"Begun at {mixture(held.weights, short=True)}"
    words += ", as in 3 Attack." if held.weights[2] == 1 else "."
    low = min(held.trail_so_far, key=attrgetter("energy"), default=None)
    own = by_key(held.problem.of.attack).own is not None
    rose = low is not None and not own and low.energy + LEVEL < held.energy and low.found < n
    words += LESS if rose else f" Each recovered point has a claim within {RADIUS:g}."
    return f"{n} of {truth.n} points recovered", words


def run_numbers(held: Handle, own: bool) -> tuple[tuple[str, str], ...]:
    """Return what was unexplained along a run from the handle; where it rose on the way, why."""
    trail, first = held.trail_so_far, held.trail[0]
    top = max(trail, key=attrgetter("energy"), default=first)
    low = min(trail, key=attrgetter("energy"), default=first)
    left = unexplained_share
    rows = [("unexplained at the start", left(first.energy)), ("now", left(held.energy))]
    if top.energy > first.energy + LEVEL:
        drawn = held.problem.of.is_drawn(1 - held.weights[2])
        why = OVERSHOT if own else DRAWN if drawn else OWN_LOSS
        rows.append(("most on the way", f"{left(top.energy)} at step {top.t:,}: {why}"))
    elif held.energy > low.energy + LEVEL:
        why = OVERSHOT if own else OWN_LOSS
        rows.append(("least on the way", f"{left(low.energy)} at step {low.t:,}: {why}"))
    return (*rows, ("candidates", beside(held)))


def arrival_words(made: Arrivals) -> tuple[str, str]:
    """Return how many runs ended at the truth, at another explanation, and stuck at neither."""
    if not made.ended:
        of = f"{made.total} runs are on their way" if made.going else "The runs were stopped"
        return (
            of,
            "No run has ended yet." if made.going else "No run has ended. Press again to go on.",
        )
    ends = [(made.truth, "at the truth"), (made.other, "at other explanations")]
    ends.append((made.stuck, "stuck"))
    if made.ended < made.total:
        more = "The others are on their way." if made.going else "Press again to run the others."
        sofar = ", ".join(f"{n} {where}" for n, where in ends)
        return f"{made.ended} of {made.total} runs have ended", f"So far {sofar}. {more}"
    which = {0: "No run ends at the truth", made.total: f"All {made.total} runs end at the truth"}
    some = f"{made.truth} of {made.total} runs end{_s(made.truth)} at the truth"
    rest, others = [_at_truth(made)], []
    sets = "another set" if made.other == 1 else "other sets"
    explain = f"that explain{_s(made.other)} the weights"
    if made.other:
        others.append(f"{made.other} end{_s(made.other)} at {sets} {explain}")
    if made.stuck:
        others.append(f"{made.stuck} {'is' if made.stuck == 1 else 'are'} stuck")
    falling = made.ended - made.level
    if falling:
        others.append(f"{falling} still fall{_s(falling)}")
    rest += [", ".join(others)] * bool(others)
    return which.get(made.truth, some), f"{'. '.join(rest)}."


def _at_truth(made: Arrivals) -> str:
    """Return how many points runs recover that end at the truth."""
    least = least_at_truth(made.points)
    points = "nine tenths of the points or more" if least < made.points else f"all {least} points"
    if not made.truth:
        return f"None recovers {points}"
    who = "Each run" if made.truth == made.total else f"Each of these {made.truth}"
    return f"{'It' if made.truth == 1 else who} recovers {points}"


def _s(n: int) -> str:
    """Return the ending of a verb of so many."""
    return "s" if n == 1 else ""


def title(values: NDArray[np.float64], own: bool = False, finest: bool = True) -> tuple[str, str]:
    """Return the question of the map, and which starts explain the weights as the truth does.

    What an attack makes of them is not said: only its runs can tell. While the map is refined
    nothing is said that a finer one could refute.

    Args:
        values: energies (side, side), row noise and column truth.
        own: whether the attack has an energy of its own, by training on the start.
        finest: whether no more starts are computed.
    """
    truth = float(values[0, -1])
    up_to = good_up_to(truth, own)
    low = np.isfinite(values) & (values <= up_to)
    share = min(np.nonzero(low)[1], default=np.inf) / max(len(values) - 1, 1)
    if not finest or not low.any():
        return MAP, "Each place is a start: a mix of truth, unseen points and noise."
    do = "explain the weights as well"
    if own:
        do = "lead training as near to the weights as the truth"
        if up_to > truth:
            do = f"lead training to within {up_to:.0%} of the weights"
    elif up_to > truth:
        do = f"leave at most {unexplained_share(up_to)} of the weights unexplained"
    who = f"some sets {'far off' if share < FAR else 'half way to the truth'}"
    if share >= BESIDE:
        who = "only sets beside the truth"
    noise = ", even noise," * bool(low[-1, 0])
    return MAP, f"At the start {who}{noise} {do}. {MOVES_ON}"


def left_text(energy: float, rough: bool) -> str:
    """Return the share that an energy leaves; of one read between the map's places, that it is."""
    return (ON_MAP if rough else "{left}").format(left=unexplained_share(energy))


def readout(weights: Weights, energy: float, when: str = "", rough: bool = False) -> str:
    """Return what is unexplained and the three shares beside the triangle, as HTML.

    `when`: of a run, what is told of it, such as "at the end"; "" at its start.
    """
    shares = dict(zip(SETS, percents(weights), strict=True))
    if when:  # no hand changes where it begun
        begun = mixture(weights, short=True)
        return f"<div><b>{unexplained_share(energy)}</b> {when}</div><div>begun at {begun}</div>"
    return readout_form(rough).format(left=unexplained_share(energy), **shares)


def readout_form(rough: bool) -> str:
    """Return the same with {left} and the names of the sets for what is read there."""
    where = "on the map" if rough else "unexplained"
    rows = [f"<b>{{left}}</b> {where}", *(f"{{{name}}}% {name}" for name in SETS)]
    return "".join(f"<div>{row}</div>" for row in rows)


def scale(top: float, how: str, stops: Sequence[str]) -> str:
    """Return the legend of the colours up to `top`, as HTML; `how`: of `shades.SCALES`."""
    decades = ("≤ 3%", "10%", "32%", f"{top**0.5:.0%}")
    marks = {"log": decades, "linear": ("0", decades[-1]), "rank": ("lowest", "highest")}[how]
    return scale_html(stops[::-1], marks)


def attack_all(count: int) -> str:
    """Return the label of the button that attacks from all places."""
    return f"Attack from {count} starts"


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
    left = "" if energy is None else f", {unexplained_share(energy)} unexplained"
    return f"from {mixture(mix_weights(*mix), short=True)}{again}: ends nearest to {nearest}{left}"


def loaded_run(mix: tuple[float, float], t: int) -> str:
    """Return which run is on the plane."""
    place = mixture(mix_weights(*mix), short=True)
    return f"The run from {place} at step {t:,}. Branch takes it to 3 Attack."


def profile(kind: str, after: bool, passed: bool = True) -> str:
    """Return the title of the profile, as HTML; `passed`: whether it passes the handle."""
    lines = "dashed: start, solid: end" if after else ""
    within = "" if passed else "the handle lies within"
    said = "; ".join(filter(None, (lines, within)))
    return f"<b>{escape(PROFILES[kind])}</b> <span class='mx-aside'>{said}</span>"


def profile_label(
    kind: str, start: float, now: float, passed: bool = True, rough: bool = False
) -> str:
    """Return what a screen reader says of the profile; `passed`: whether it passes the handle."""
    if not passed:
        return f"{PROFILES[kind]}: the handle is on none of them."
    after = f", after the run {unexplained_share(now)}" if now != start else ""
    return f"{PROFILES[kind]}: {left_text(start, rough)} at the handle{after}."


def ends(counts: Sequence[int], begun: int, going: bool = True, names: Sequence[str] = ENDS) -> str:
    """Return how many runs ended as each of `names`, as the legend of their marks, in HTML.

    `begun`: those that began and have not ended, for they are `going` on or were stopped. The names
    may be SETS, for runs of which it is known alone what they end nearest to.
    """
    head = f"{begun} {'under way' if going else 'stopped'}" if begun else WAY_OF_A_RUN
    near = "end" if names is ENDS else "end nearest to"
    return end_rows(counts, names, head=mark_row(*WAY, f"{head} · {near}:"))


def handle_words(weights: Weights, energy: float, rough: bool = False) -> str:
    """Return what a screen reader says of the handle."""
    return f"{mixture(weights)}: unexplained {left_text(energy, rough)}"


def unit(attack: str, colours: str, scaled: bool = False) -> str:
    """Return what the colours say, and of an attack with an energy of its own what that is.

    `scaled`: a scale with numbers stands beside, and says it.
    """
    own = by_key(attack).own is not None
    said = scaled and colours != "rank"
    return ", ".join([*[UNIT_BILEVEL] * own, *[YELLOW[colours]] * (not said)])


def age(steps: int | None) -> str:
    """Return how long the weights of a landscape were trained."""
    return "exact" if steps is None else f"{steps:,} steps"


def heading(left: str, right: str, narrow: bool = False) -> str:
    """Return the title of a card with its unit, as HTML; a narrow one keeps clear of a corner."""
    most = ";max-width:140px" * narrow
    return (
        f"<div style='display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 8px{most}'>"
        f"<b>{escape(left)}</b><span class='mx-aside'>{escape(right)}</span></div>"
    )

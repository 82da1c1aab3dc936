"""Black box on the line: training points from the outputs of a network, without its weights.

Queries of Phi find the graph (`scan`), and all networks at an exact KKT point that have this graph
are looked at (`proof`): a place that none does without is a training point. In the plane queries
find the lines of the neurons (`plane`), and nothing is claimed. Source: own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.attacks.attack import Attack, Needs
from explorer.engine.attacks.black_box.plane import with_probe
from explorer.engine.attacks.black_box.proof import Cases, nearness
from explorer.engine.attacks.black_box.scan import (
    RESOLUTION,
    Stretch,
    cut,
    first_stretch,
    graph,
    of_pieces,
    share_at,
)
from explorer.engine.attacks.claims import Report, in_units_of_data
from explorer.engine.attacks.shapes import NONE, Shapes, joined_paths, places
from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate.intervals import distinct
from explorer.engine.network import phi
from explorer.engine.number_words import count
from explorer.engine.piecewise import Piecewise, refusal
from explorer.engine.settings import setting, settings
from explorer.engine.sizes import Size
from explorer.engine.statement import Judged, Statement
from explorer.engine.status import Status
from explorer.engine.threads import few_threads

FIRM = 1e-5  # of the multipliers' sum; arbitrary, 100 times what an equation may be missed by
COARSE = 1e-4  # of breakpoints: with a larger error nothing is asked; arbitrary
MOST_BREAKS = 12  # with more, the cases are too many; arbitrary
PROBES, MOST_NEURONS = 3, 40  # in the plane, as measured in `benchmarks/bench_black_box.py`
FAR = 100.0  # times the range: how far lines are drawn; arbitrary

Phase = Literal["ask", "prove", "probe", "done"]


@settings
class BlackBoxConfig:
    """Settings of the attack; `benchmarks/bench_black_box.py` measures the defaults."""

    # fmt: off
    claims: Annotated[Literal["all places", "needed places"], setting(
        "What is claimed: all places where |Φ| is 1, or those that no network at a KKT point with "
        "these outputs does without", form="sight", place=1,
    )] = "needed places"
    queries: Annotated[int, setting(
        "The most outputs that are asked for", form="sight", place=2, page=(10, 5000), ge=10,
    )] = 1000
    digits: Annotated[int, setting(
        "Decimals of an output that are told", form="sight", place=3, ge=1, le=15,
        note="15 are all that float64 has of numbers near 1. In the plane all are told.",
    )] = 15
    reach: Annotated[float, setting(
        "Half the range that is asked, about 0: all points and breakpoints are taken to lie in it",
        title="range", unit="of the data", form="more", place=1, page=(1, 100), gt=0,
        note="Arbitrary.",
    )] = 16.0
    # fmt: on

    @property
    def noise(self) -> float:
        """Return how far an output may be off where fewer digits are told than float64 has."""
        return 0.0 if self.digits >= 15 else 0.5 * 10.0**-self.digits


@dataclass(frozen=True, eq=False)
class BlackBoxState:
    """What was asked, and what it shows.

    Attributes:
        t: steps taken.
        x: places where |Phi| is 1 (m, 1), once the graph is known.
        y: their labels (m,).
        lam: the least multiplier of each in any case (m,); 0 before.
        asked: places of the queries (q,).
        heard: their outputs (q,).
        breaks: breakpoints (k,): found so far, then those of the graph.
        open: stretches to look at (r, 8): place, value, slope and error of the slope at both ends.
        slope: of the pieces of the graph (p,), once it is known.
        intercept: likewise.
        phase: what the next step does.
        error: how far a breakpoint of the graph may be off.
        cases: ways in which neurons can make the graph; 0 before, or where there is none.
        over: whether the queries did not suffice.
        rounded: whether outputs were told to fewer digits than float64 has.
        lines: of neurons in the plane (l, 4): normal, offset and bend, see `plane`.
        probed: places of the queries in the plane (p, 2).
    """

    t: int
    x: Tensor
    y: Tensor
    lam: Tensor
    asked: Annotated[Tensor, Size("q")]
    heard: Annotated[Tensor, Size("q")]
    breaks: Annotated[Tensor, Size("k")]
    open: Annotated[Tensor, Size("r eight")]
    slope: Annotated[Tensor, Size("p")]
    intercept: Annotated[Tensor, Size("p")]
    phase: Phase
    error: float = 0.0
    cases: int = 0
    over: bool = False
    rounded: bool = False
    lines: Annotated[Tensor, Size("found four")] = field(
        default_factory=lambda: torch.zeros(0, 4, dtype=torch.float64)
    )
    probed: Annotated[Tensor, Size("sent two")] = field(
        default_factory=lambda: torch.zeros(0, 2, dtype=torch.float64)
    )

    def numbers(self) -> dict[str, float]:
        """Return counts, for curves."""
        return {
            "queries": float(len(self.asked) + len(self.probed)),
            "breaks": float(len(self.breaks) + len(self.lines)),
            "needed": float((self.lam > 0).sum()),
        }  # fmt: skip


class _Oracle:
    """Outputs of a network to so many digits, and a note of what was asked."""

    def __init__(self, target: Target, digits: int) -> None:
        self._target, self._digits = target, digits
        self.asked: list[Any] = []
        self.heard: list[float] = []

    def __call__(self, x: Array) -> Array:
        """Return the outputs at places (q,), or (q, 2) in the plane."""
        net = self._target.net
        there = torch.from_numpy(x.reshape(len(x), -1)).to(dtype=net.dtype, device=net.device)
        out = phi(net, there).detach().cpu().double().numpy()
        told = np.round(out, self._digits) if self._digits < 15 else out
        self.asked += x.tolist()
        self.heard += told.tolist()
        return told


def fits(target: Target) -> str:
    """Return why the attack cannot be used on this network, or an empty string."""
    net = target.net
    if net.d == 2 and net.has_signs and net.homogeneous and net.biases[0] is not None:
        return (
            ""
            if net.widths[0] <= MOST_NEURONS
            else (
                f"Queries find the lines of at most {MOST_NEURONS} neurons in the plane; this "
                f"network has {net.widths[0]}. Finish it by Train to the end, which leaves few."
            )
        )
    why = refusal(net)
    return why and f"The black box attack does not apply: {why}"


def init(
    target: Target, config: BlackBoxConfig, generator: torch.Generator, start: object = None
) -> BlackBoxState:
    """Return the state that knows both ends of the range. It draws nothing."""
    none = torch.zeros(0, dtype=torch.float64)
    state = BlackBoxState(
        t=0, x=none.reshape(0, target.net.d), y=none, lam=none, asked=none, heard=none, breaks=none,
        open=none.reshape(0, 8), slope=none, intercept=none, phase="ask",
        rounded=config.noise > 0,
    )  # fmt: skip
    if target.net.d == 2:
        return replace(state, phase="probe")
    return _heard(state, target, config, lambda ask: ([
        first_stretch(ask, -config.reach, config.reach, config.noise)], []))  # fmt: skip


def _heard(
    state: BlackBoxState, target: Target, config: BlackBoxConfig,
    look: Callable[[_Oracle], tuple[list[Stretch], list[float]]],
) -> BlackBoxState:  # fmt: skip
    """Return the state with what this look found in place of the last open stretch."""
    ask = _Oracle(target, config.digits)
    stretches, breaks = look(ask)
    rows = torch.tensor([[*a, *b] for a, b in stretches], dtype=torch.float64).reshape(-1, 8)
    return replace(
        state, open=torch.cat([state.open[:-1], rows]),
        breaks=torch.cat([state.breaks, torch.tensor(breaks, dtype=torch.float64)]),
        asked=torch.cat([state.asked, torch.tensor(ask.asked, dtype=torch.float64)]),
        heard=torch.cat([state.heard, torch.tensor(ask.heard, dtype=torch.float64)]),
    )  # fmt: skip


@few_threads()
def step(target: Target, state: BlackBoxState, config: BlackBoxConfig) -> BlackBoxState:
    """Return a look at one stretch; then the places with |Phi| = 1; then what all cases need."""
    take = {"ask": _ask, "prove": _prove, "probe": _probe}.get(state.phase)
    return state if take is None else replace(take(target, state, config), t=state.t + 1)


def _ask(target: Target, state: BlackBoxState, config: BlackBoxConfig) -> BlackBoxState:
    if not len(state.open):
        return _gather(state, config)
    if len(state.asked) >= config.queries:
        return replace(state, phase="done", over=True)
    row = state.open[-1].tolist()
    stretch: Stretch = (tuple(row[:4]), tuple(row[4:]))
    share, least = share_at(state.t + 1), RESOLUTION * 2 * config.reach
    return _heard(state, target, config, lambda ask: cut(ask, stretch, share, config.noise, least))


def _gather(state: BlackBoxState, config: BlackBoxConfig) -> BlackBoxState:
    asked, heard, about = (v.numpy() for v in (state.asked, state.heard, state.breaks))
    line, error = graph(asked, heard, about, config.noise)
    breaks, slope, intercept = map(torch.from_numpy, (line.breaks, line.slope, line.intercept))
    state = replace(state, breaks=breaks, slope=slope, intercept=intercept, error=error)
    points = cases(state, config).points
    x, y = torch.tensor(points, dtype=torch.float64).reshape(-1, 2).T
    over = config.claims == "all places" or not points or len(line.breaks) > MOST_BREAKS
    return replace(
        state, x=x[:, None].contiguous(), y=y.contiguous(), lam=torch.zeros_like(x),
        phase="done" if over or error > COARSE else "prove",
    )  # fmt: skip


def shown_graph(state: BlackBoxState) -> Piecewise:
    """Return the graph that the queries show, once it is known."""
    return of_pieces(*(v.numpy() for v in (state.breaks, state.slope, state.intercept)))


def cases(state: BlackBoxState, config: BlackBoxConfig) -> Cases:
    """Return the ways to make the graph, with its places where |Phi| is 1 within the range."""
    line, reach, near = shown_graph(state), config.reach, nearness(state.error)
    found = [p for i in range(len(line)) for p in line.crossings(i, 1.0, near, near)]
    flats = [
        (max(line.ends(i)[0], -reach), min(line.ends(i)[1], reach),
         1.0 if line.value(line.middle(i)) > 0 else -1.0)
        for i in range(len(line)) if line.on_margin(i, 1.0, near)
    ]  # fmt: skip
    inside = [(x, y) for x, y in found if abs(x) <= reach]
    return Cases(line, distinct(inside, near), flats, state.error)


def _prove(target: Target, state: BlackBoxState, config: BlackBoxConfig) -> BlackBoxState:
    made, lam, ways = cases(state, config), torch.full_like(state.lam, torch.inf), 0
    for equations in made.possible():
        ways += 1
        for i in range(len(lam)):
            if lam[i] > 0:
                lam[i] = min(float(lam[i]), made.least(equations, i))
    lam[lam <= FIRM * made.mass] = 0.0
    return replace(state, lam=lam if ways else 0 * state.y, cases=ways, phase="done")


def _probe(target: Target, state: BlackBoxState, config: BlackBoxConfig) -> BlackBoxState:
    """Return the state with the lines that one probe more crosses."""
    ask = _Oracle(target, 15)
    lines = with_probe(ask, state.lines.numpy(), state.t, config.reach / 4)
    probed = torch.cat([state.probed, torch.tensor(ask.asked, dtype=torch.float64)])
    over = state.t + 1 == PROBES or len(probed) >= config.queries
    return replace(
        state, lines=torch.from_numpy(lines), probed=probed, phase="done" if over else "probe"
    )


def terminate(state: BlackBoxState, config: BlackBoxConfig) -> Status:
    """Return how the run stands."""
    return Status.COMPLETE if state.phase == "done" else Status.RUNNING


@in_units_of_data
def report(target: Target, state: BlackBoxState, config: BlackBoxConfig) -> Report:
    """Return the needed places, or all places, largest least multiplier first."""
    kept = state.lam > 0 if config.claims == "needed places" else state.y != 0
    rows = (v[kept].to(target.net.dtype) for v in (state.x, state.y, state.lam))
    return Report(*rows).heaviest_first()


def shapes(target: Target, state: BlackBoxState) -> Shapes:
    """Return dots where the network was asked, the open stretch, needed places, lines."""
    if target.net.d == 2:
        normal, offset = state.lines[:, :2].numpy(), state.lines[:, 2:3].numpy()
        along = FAR * np.stack([-normal[:, 1], normal[:, 0]], 1)
        ends = [
            np.stack(p) for p in zip(*(normal * offset + s * along for s in (-1, 1)), strict=True)
        ]
        return Shapes(strong=joined_paths(ends), names=(("strong", "line found by queries"),))
    spans = tuple((float(row[0]), float(row[4])) for row in state.open[-1:])
    needed = places(target, state.x[state.lam > 0])
    rings, likely = (NONE, needed) if state.rounded else (needed, NONE)
    dots = places(target, state.asked[:, None])
    names = (("spans", "stretch to ask next"), ("rings", "needed place"))
    return Shapes(dots=dots, rings=rings, likely=likely, spans=spans, names=names)


def words(state: BlackBoxState, config: BlackBoxConfig) -> str:
    """Return what the last step did, in a sentence."""
    if state.phase == "probe" or len(state.probed):
        lines = f"{count(len(state.lines), 'line')} of neurons found"
        return (
            f"{len(state.probed)} outputs asked along {state.t} of {PROBES} probes: {lines}. "
            "Lines alone name no training point."
        )
    asked = f"{len(state.asked)} outputs asked"
    if state.phase == "ask":
        if not len(state.open):
            return f"{asked}: every stretch of the line is known."
        low, high = float(state.open[-1, 0]), float(state.open[-1, 4])
        return (
            f"{asked}, {count(len(state.breaks), 'breakpoint')} found. Next is the stretch from "
            f"{low:.3g} to {high:.3g}."
        )
    if state.over:
        return (
            f"{asked}, and the graph is not known yet: nothing is claimed. Allow more queries, or "
            "tell more digits."
        )
    graph_words = f"{asked} show {count(len(state.breaks), 'breakpoint')} and "
    graph_words += f"{count(len(state.x), 'place')} where |Φ| is 1."
    if state.phase == "prove" or config.claims == "all places" or not len(state.x):
        return graph_words
    if not state.cases:
        why = "No weights at an exact KKT point make these outputs"
        if len(state.breaks) > MOST_BREAKS:
            why = f"With more than {MOST_BREAKS} breakpoints the ways to make them are too many"
        elif state.error > COARSE:
            why = f"A breakpoint may be off by {state.error:.0e}, too much to tell a place"
        return f"{graph_words} {why}: nothing is claimed. Claims “all places” take the places."
    held = "training points, if the weights are an exact KKT point of this margin."
    if state.rounded:
        held = "likely training points, as a bend below the last digit is not seen."
    return (
        f"{graph_words} Neurons can make these outputs at a KKT point in "
        f"{count(state.cases, 'way')}, and {int((state.lam > 0).sum())} of the places are needed "
        f"in each: {held}"
    )


def headline(state: BlackBoxState, known: Judged) -> Statement | None:
    """Return how many lines of neurons were found; None on the line."""
    if not len(state.probed):
        return None
    return Statement(
        f"{len(state.probed):,} queries find {count(len(state.lines), 'line')} of neurons",
        "At each the gradient of Φ jumps, at right angles to the line. To which side a neuron is "
        "active stays open, so no training point is claimed. The true ones are the kinks.",
    )


ATTACK = Attack(
    place=8, heavy=True, key="black_box", title="Black box", paper="own",
    sentence="Asks for outputs and never sees a weight. It finds the graph of Φ by queries, and "
    "the places that every network with these outputs at a KKT point needs; in the plane the lines "
    "of its neurons.",
    config=BlackBoxConfig, state=BlackBoxState, first=init, step=step, terminate=terminate,
    report=report, needs=Needs(fits), shapes=shapes, words=words, headline=headline,
    curves=(("queries", "queries"), ("breaks", "breakpoints"), ("needed", "needed places")),
)  # fmt: skip

"""The provable attack step by step: its rules, its claims, and the sweep of the margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from explorer.engine.attack_panel import AttackPanel, PanelAnswer, PanelContent, PanelQuestion
from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate.config import NEARLY, UnivariateConfig
from explorer.engine.attacks.univariate.doubt import doubt_words
from explorer.engine.attacks.univariate.graph import (
    SWEEP,
    Assumed,
    SweepPoint,
    active_everywhere,
    sweep,
)
from explorer.engine.attacks.univariate.intervals import distinct
from explorer.engine.charts import Axis, Chart, Guide, Series, next_step
from explorer.engine.number_words import plain
from explorer.engine.progress import Progress, with_progress

if TYPE_CHECKING:
    from explorer.engine.attacks.univariate import UnivariateState

LOWEST = 1e-12  # a miss that is rounding
ACTIVE = {
    Assumed.HOLDS: "holds: a neuron with w = 0 is active on the whole line.",
    Assumed.MAY_HOLD: "may hold: a neuron is active on all candidates, but training points off the "
    "margin are unseen.",
    Assumed.UNKNOWN: "cannot be confirmed: no neuron is active on all candidates.",
}


def claims(state: UnivariateState) -> str:
    """Return how many candidates are proven or likely, why, and how they are drawn."""
    kind = "likely, not proven ◌" if state.doubt else "proven, if the margin is exact □"
    why = f" ({doubt_words(state)})" if state.doubt else ""
    return (
        f"{int(state.needed.sum())} of {len(state.x)} candidates {kind}{why}. Stem: the λ that no "
        f"explanation does without; bar{', thin where likely' if state.doubt else ''}: from least "
        "to largest; dot: one explanation."
    )


def rules(target: Target, state: UnivariateState) -> tuple[tuple[str, str], ...]:
    """Return the guarantee with its assumptions."""
    claimed, groups = sum(len(g.x) for g in state.groups), state.groups
    names = distinct([p for g in groups for p in zip(g.x, g.y, strict=True)], state.tol.same)
    counted = sum(g.counted for g in groups)
    if any(not g.x for g in groups):
        held = (
            "A group without a candidate: the weights are not at a KKT point of this margin, and "
            "nothing is guaranteed."
        )
    elif not claimed:
        held = "No group yet."
    else:
        must = "would be training points at an exact KKT point" if state.doubt else (
            "must be training points"
        )  # fmt: skip
        held = (
            f"{len(groups)} with {len(names)} candidates. Strictly {counted} of these {must} "
            f"({counted / len(names):.0%}): groups that share a candidate count once. Theorem 3.4 "
            "says a quarter or more."
        )
    off = (
        f"not met, {doubt_words(state)}; so nothing is proven, and the needed points are likely "
        "ones."
    )
    met = f"the weights are one of some data, to {plain(f'{state.defect:.0e}')} of |θ|."
    active = ACTIVE[active_everywhere(target.merged(state.tol.angle), state.x)]
    assumed = (
        "an exact KKT point of the training points, with the margin known (this page takes it from "
        f"the points): {off if state.doubt else met}"
    )
    quarter = (
        f"(a) some neuron is active on all training points: {active} (b) θ is a local minimum: the "
        "weights alone do not show it. Rule 3.2 and single points need neither."
    )
    return (
        ("Groups", held),
        ("Assumed throughout", assumed),
        ("For rule 3.3 and the quarter also", quarter),
    )


def show(
    target: Target, state: UnivariateState, config: UnivariateConfig, across: tuple[float, float]
) -> PanelContent:
    """Return the multipliers, the guarantee, and what is claimed."""
    fitted = not np.isnan(state.miss)
    not_yet = "Comes after the scan, with claims set to “needed places”: press Play."
    return PanelContent(
        bars_chart(state, fitted, across),
        rules(target, state),
        claims(state) if fitted else not_yet,
    )


def sweep_answer(target: Target, config: UnivariateConfig, progress: Progress) -> PanelAnswer:
    """Return which margins explain the weights best, tried one after the other."""
    points = list(with_progress(sweep(target, config), len(SWEEP), progress))
    margins = [p.margin for p in explaining(points)]
    words = (
        f"{len(margins)} of {len(points)} margins explain the weights best, from "
        f"{min(margins):.2f} to {max(margins):.2f}: the attacker cannot tell these apart. "
        "Points on kinks narrow them down."
    )
    return PanelAnswer(words, (miss_chart(points), sizes_chart(points)))


def explaining(points: list[SweepPoint]) -> list[SweepPoint]:
    """Return the margins that explain the weights as well as the best does."""
    least = min(p.miss for p in points)
    return [p for p in points if p.miss <= max(NEARLY, 1.5 * least)]


def bars_chart(state: UnivariateState, fitted: bool, across: tuple[float, float]) -> Chart:
    """Return the least and the largest multiplier of each candidate, over its place.

    Args:
        state: of the attack.
        fitted: whether there is an explanation, with a multiplier for each candidate.
        across: centre and half width of the plane.
    """
    x, lam = state.x[:, 0].numpy(), state.lam.numpy()
    least, most, needed = (v.numpy() for v in (state.least, state.most, state.needed))
    solved = ~np.isnan(least)
    finite = most[solved & np.isfinite(most)]
    top = next_step(max([1e-9, *finite.tolist(), *(lam.tolist() if fitted else [])]))
    series = [Series(x[solved & needed], least[solved & needed], "needed at least", "stems",
                     colour="good", look={"width": 1})]  # fmt: skip
    kinds = (("proven", "good", 6, state.proven.numpy()), ("likely", "good", 2,
             state.likely.numpy()), ("not needed", "ink3", 6, ~needed))  # fmt: skip
    pad = 0.004 * top  # a bar of one value is still to be seen
    for name, colour, wide, kind in kinds:
        rows = solved & kind
        series.append(Series(
            x[rows], np.minimum(most[rows], top) + pad, name, "stems",
            z=np.maximum(least[rows] - pad, 0), colour=colour, look={"width": wide},
        ))  # fmt: skip
    shown = slice(None) if fitted else slice(0)
    series.append(Series(x[shown], lam[shown], "one explanation", "dots", look={"size": 3}))
    centre, half = across
    there = bool(fitted or solved.any())
    title = "Least to largest multiplier of each candidate"
    return Chart(
        series if there else (), Axis(centre - half, centre + half, short="x"),
        Axis(0.0, top, short="multiplier λ"), title if there else "", label=title,
    )  # fmt: skip


def _margins(points: list[SweepPoint]) -> Axis:
    tried = [p.margin for p in points]
    ticks = ((0.25, "¼"), (0.5, "½"), (1.0, "1"), (2.0, "2"), (4.0, "4"))
    name = "margin tried over the margin known"
    return Axis(min(tried), max(tried), name, "margin", log=True, ticks=ticks)


def miss_chart(points: list[SweepPoint]) -> Chart:
    """Return how much the places of each margin leave unexplained."""
    line = Series([p.margin for p in points], [max(p.miss, LOWEST) for p in points], "least miss")
    y = Axis(LOWEST, 1.0, short="share of the weights", log=True)
    title = "Unexplained at each margin"
    return Chart([line], _margins(points), y, title, rules=[Guide(1.0, "known", "x")], label=title)


def sizes_chart(points: list[SweepPoint]) -> Chart:
    """Return how many candidates each margin has."""
    sizes = [p.size for p in points]
    line = Series([p.margin for p in points], sizes, "candidates", look={"steps": True})
    y = Axis(0.0, next_step(max(sizes) + 1), short="candidates", whole=True)
    title = "Candidates of each margin"
    return Chart([line], _margins(points), y, title, rules=[Guide(1.0, "", "x")], label=title)


PANEL = AttackPanel(
    show, "The provable attack", "Rules and assumptions",
    PanelQuestion(
        "Sweep the margin", "What an attacker sees who does not know the margin: how well the "
        "places with |Φ| = m explain the weights, for 41 margins m",
        "Press the button: the margin is tried from a quarter to four times.",
        "The sweep was cancelled.", sweep_answer,
    ),
)  # fmt: skip

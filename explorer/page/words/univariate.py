"""What the panel of the univariate attack says: what is needed, and what is guaranteed."""

from __future__ import annotations

from html import escape

from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import UnivariateState, doubt_words
from explorer.engine.attacks.univariate.intervals import distinct
from explorer.engine.attacks.univariate.view import Known, active_everywhere
from explorer.engine.numbers import plain
from explorer.style import PROVEN

ACTIVE = {
    Known.HOLDS: "holds: a neuron with w = 0 is active on the whole line.",
    Known.MAY_HOLD: "may hold: a neuron is active on all candidates, but training points off the "
    "margin are unseen.",
    Known.UNKNOWN: "cannot be confirmed: no neuron is active on all candidates.",
}


def claims(state: UnivariateState) -> str:
    """Return how many candidates are proven or likely, why, and how they are drawn."""
    kind, mark = ("likely, not proven", "◌") if state.doubt else (
        "proven, if the margin is exact", "◯"
    )  # fmt: skip
    why = f" ({escape(doubt_words(state))})" if state.doubt else ""
    return (
        f"{int(state.needed.sum())} of {len(state.x)} candidates {kind} "
        f"<span style='color:{PROVEN}'>{mark}</span>{why}. Stem: the λ that no explanation does "
        f"without; bar{', thin where likely' if state.doubt else ''}: from least to largest; dot: "
        "one explanation."
    )


def rules(target: Target, state: UnivariateState) -> str:
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
    defect = plain(f"{state.defect:.0e}")
    met = f"the weights are one of some data, to {defect} of |θ|."
    net = target.merged(state.tol.angle)
    return (
        f"<b>Groups:</b> {held}<br><b>Assumed throughout:</b> an exact KKT point of the training "
        "points, with the margin known (this page takes it from the points): "
        f"{escape(off if state.doubt else met)} <b>For rule 3.3 and the quarter also:</b> "
        "(a) some neuron is active on all training points: "
        f"{ACTIVE[active_everywhere(net, state.x)]} (b) θ is a local minimum: the weights "
        "alone do not show it. Rule 3.2 and single points need neither."
    )

"""The question that Explain answers: one at a time, asked in one place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from explorer.engine.explanations.splitting import Explanation, remainder
from explorer.page import sight
from explorer.page.frame import Certain, Proof
from explorer.page.session import Session
from explorer.research.explained import Explained, refresh, share_left

LET_GO: dict[str, Any] = {"slide": None, "selected": None, "mate": None, "words": ""}
OWN: dict[str, Any] = {"far": None, "forced": None}  # answers to other questions than a drag asks


def turn(
    session: Session, e: Explanation | None = None, radii: Certain | None = None,
    asked: Proof | None = None, **found: Any,  # noqa: ANN401 - fields of Explained
) -> None:  # fmt: skip
    """Put one question with its answer on screen: all that another one had put there leaves.

    Args:
        session: shows it.
        e: the points that answer it; None: those the weights were trained on.
        radii: the map that does.
        asked: the last act, which does.
        found: what else is known of the points. Undo brings those before back.
    """
    session.message = ""  # what was refused before is no answer to this
    held, shown = session.frame.explain, {"radii": radii, "asked": asked}
    sight.come_home(session)
    if held is None:
        session.show(**shown)
        return
    state = held.present
    e, found = e or state.truth, {**LET_GO, **OWN, **found}
    if e is state.now:
        session.show(**shown, explain=held.amend(replace(state, **found)))
    else:
        made = refresh(state, e, **{**found, **_origin(state, e)})
        session.show(**shown, explain=held.push(made))
    sight.keep_in_sight(session)


def _origin(state: Explained, e: Explanation) -> dict[str, Any]:
    """Return what a set leaves, and its sum, with which the sets that are split from it compare."""
    left = state.base if e is state.truth else share_left(state.target, e.x, e.y)
    return {"left": left, "reference": remainder(state.net, e)}

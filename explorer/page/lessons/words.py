"""What the page says around a lesson: its number, what comes next, and its form."""

from __future__ import annotations

from typing import Any

from explorer.engine.roster import by_key
from explorer.page.frame import STAGES
from explorer.page.lessons.file import State
from explorer.page.lessons.goals import KINDS

PAGES = {
    "membership": "Open the page of membership inference",
    "digits": "Open the page that attacks images",
}


FINISHED_TITLE = "That was the last lesson"
FINISHED = (
    "Now draw points of your own, train a network on them, and see what its weights give away.\n\n"
    "A PyTorch model of yours is read by the command\n\n"
    "    margin-explorer audit model.pt data.csv\n\n"
    "Under Share, “Let the hall attack” lets a whole class look for points."
)
OWN = "Draw your own"


def number(place: int | None, preview: bool) -> str:
    """Return what stands over the title of a lesson."""
    if preview:
        return "Preview"
    return "Lesson" if place is None else f"Lesson {place}"


def following(last: bool, place: int | None, count: int) -> str:
    """Return what the button leads to that goes on."""
    if not last:
        return "Next"
    if place is None or place + 1 >= count:
        return "Finish"
    return f"Next: lesson {place + 1}"


def leaving(preview: bool) -> str:
    """Return what the button leads to that leaves."""
    return "Back to writing" if preview else "Leave"


def goals() -> list[dict[str, Any]]:
    """Return the goals to choose from: name, words, and whether they take a number."""
    return [
        {"name": name, "words": row.words.replace("{}", "…"), "number": row.low is not None}
        for name, row in KINDS.items()
    ]


def short(caption: str, i: int) -> str:
    """Return a step of a lesson that is written, in a few words."""
    line = caption.strip().split("\n")[0]
    return line[:40] + ("…" if len(line) > 40 else "") if line else f"Step {i + 1}, no words yet"


def state(made: State) -> str:
    """Return where a recorded step begins, in a line."""
    stage = STAGES[made.stage][0]
    n = made.dataset().n
    kind = {"none": "no network", "exact": "the exact network"}.get(
        made.network, f"a network after {made.steps:,} steps"
    )
    run = f", {by_key(made.attack).title} after {made.attack_steps:,} steps"
    return f"{stage}: {n} points, {kind}{run if made.attack_steps else ''}"

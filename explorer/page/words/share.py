"""What the page says when it is shared: links, files, and the game of two."""

from __future__ import annotations

ANEW = (
    "Points or settings changed while these weights were trained, so no link can make them again: "
    "it begins before the first step. Save the run to keep them."
)
WEIGHTS = "These weights came in a file: the link holds the points and settings. Save the run too."
ATTACK_ANEW = "This attack was run elsewhere: the link begins it anew."
OPENED = "Opened from a link, trained and attacked as it was there: the same numbers."
OPENED_POINTS = "Opened from a link: the points and settings."
EXPORTED = "{} is made."


def opening_link(share: float) -> str:
    """Say how far a link is opened."""
    return f"Opening a link: {share:.0%} of its steps are done."

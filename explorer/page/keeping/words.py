"""What is said of a page that the browser keeps, and of a kernel that is silent or gone."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.engine.number_words import count
from explorer.page.frame import Frame

REFUSED = "What this browser kept cannot be taken up: {}"
NOT_KEPT = (
    "The points and settings are back. The network of step {:,} needs more room than a browser "
    "keeps: press Play to train it again from the same seed."
)
# Said by the browser, which may be alone by then: {time} is when the page was kept, {words} what
# `kept_words` says of it.
BAR = {
    "offer": "Go on where you were at {time} ({words})?",
    "busy": "Busy: the kernel has not answered for 5 seconds. What you press meanwhile happens "
    "afterwards.",
    "away": "The server does not answer. The page goes on by itself when it does.",
    "gone": "The kernel behind this page has ended.",
    "kept": "Your drawing of {time} is kept in this browser.",
    "not kept": "Download your drawing before you leave.",
    "reload": "Reload to go on.",
    "run again": "Run the cell again to go on.",
    "full": "This browser keeps nothing, as in a private window or with a full storage. Save "
    "before you leave.",
}
BUTTONS = {"take up": "Take up", "new": "No", "download": "Download",
           "reload now": "Reload", "close": "Close", "forget": "Forget"}  # fmt: skip
LIST = {"some": "Kept in this browser", "none": "This browser keeps no drawing yet."}


def kept_words(frame: Frame, steps: Sequence[object] = ()) -> str:
    """Return what a kept page holds: points, how far it had come, `steps` of a recorded lesson."""
    n, train, attack = frame.dataset.n, frame.training.state, frame.attack.state
    parts = [count(n, "point")]
    if train is not None and train.t:
        parts.append(f"trained for {train.t:,} step{'s' * (train.t > 1)}")
    if attack is not None and attack.t and frame.newest and frame.truth is frame.dataset:
        parts.append("attacked")
    if steps:
        parts.append(f"with a lesson of {count(len(steps), 'step')} that is not saved")
    return ", ".join(parts)

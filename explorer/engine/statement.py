"""What is said of a moment of the page, and what an attack of its own may say of its end.

The row of an attack may have `headline`: (state, `Judged`) -> `Statement`, or None where the page's
own words do. It is asked at the end of a run.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    """The next sensible thing: its key in `page.play.ACTIONS`, and the words of its button."""

    key: str
    label: str


@dataclass(frozen=True)
class Statement:
    """What is said.

    Attributes:
        title: the result in plain words; from an attack empty where the page's own title stands,
            and `words` say why few points are found.
        words: a sentence or two under it.
        tone: "", "good", "warn" or "bad".
        fold: names and values of the numbers for experts.
        action: the next sensible thing, or None.
        order: what to do with the mouse, after the words; a lesson gives its own.
        question: what the title answers, above it, where that was asked by a button.
    """

    title: str
    words: str
    tone: str = ""
    fold: tuple[tuple[str, str], ...] = ()
    action: Action | None = None
    order: str = ""
    question: str = ""

    @property
    def under_title(self) -> str:
        """Return all that stands under the title."""
        return f"{self.words} {self.order}".strip()


@dataclass(frozen=True)
class Judged:
    """What is known of a run whose claims were compared with the points.

    Attributes:
        n: how many points there are.
        found: how many of them the claims meet.
        claims: how many claims there are.
        radius: a claim within it meets a point.
        residual: what the points leave of the weights unexplained, a share of |theta|.
        certified: how many of the claimed places are certified, for attacks that claim places.
        box: half width of the box in which that was asked; None where it was not.
    """

    n: int
    found: int
    claims: int
    radius: float
    residual: float
    certified: int = 0
    box: float | None = None

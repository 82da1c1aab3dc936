"""What the landscape says of a census: its counts, its ends, the ways between them."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.engine.confidence import Share
from explorer.engine.number_words import count
from explorer.page.job import JobState
from explorer.page.stages.landscape.energy_words import end_rows, mark_row, unexplained_share
from explorer.research.census import Census
from explorer.research.census.basins import Basin, Kind
from explorer.research.grid.landscape import Arrivals
from explorer.research.runs import RADIUS

CENSUS = "Census"
DOWN = "They only move to less unexplained."
TIP = "Let 200 starts all over the triangle only roll downhill, and see where each ends"
PICK_TIP = (
    "The distinct ends, the largest valley first: choosing one shows it, as a press on it does"
)
ENDED: Mapping[JobState, str] = {
    JobState.CANCELLED: "The census was cancelled.",
    JobState.STALE: "The points or the weights changed: the census was cancelled.",
}
KINDS: dict[Kind, str] = {
    "truth": "the truth", "explanation": "another explanation", "minimum": "a local minimum",
    "saddle": "a saddle", "slope": "a slope", "open": "a place that is not level",
}  # fmt: skip
FILLED = "Valleys"
UNIT = "one colour: one end"
ALONE = ("■", "#8b93a1", "no other start there")  # its colour as in triangle.js
ENDS = ("truth", "other set", "elsewhere")  # stuck is a run: it could have gone on


def per_cent(one: Share) -> str:
    """Return a share with its interval, such as 45% (36% to 55%)."""
    return f"{one.value:.0%} ({one.low:.0%} to {one.high:.0%})"


def census_words(
    made: Census, end: int = -1, runs: Arrivals | None = None, candidates: int = 0
) -> tuple[str, str]:
    """Return what a census counted, in a title and a sentence, or what its end number `end` is.

    Args:
        made: the census.
        end: the number of an end; -1 for none.
        runs: where attacks ended that stand on the same screen.
        candidates: of such an attack.
    """
    n, off = len(made.basin), made.truth[1]
    if end >= 0:
        return end_words(made.basins[end], end, n)
    home = round(made.home.value * n)
    where = "down to the truth" if off <= RADIUS else f"to where the truth rolls, {off:.2f} off it"
    title = f"{home} of {n} starts roll{'s' * (home == 1)} {where}"
    if runs is None:
        new = f"{made.unseen.volume.value:.0%}"
        return title, f"{DOWN} About {new} of further ones would come to new ends."
    more = ", and have more candidates" * (candidates > len(made.basins[0].x))
    ended = f"{runs.truth} of {runs.ended} runs end{'s' * (runs.truth == 1)}"
    return title, f"{DOWN} Attacks can climb{more}: {ended} at the truth."


def census_numbers(made: Census, candidates: int) -> tuple[tuple[str, str], ...]:
    """Return the shares of a census with their intervals; `candidates`: of an attack beside it."""
    return (
        ("distinct ends", str(len(made.basins))),
        ("starts that end at that of the truth", per_cent(made.home)),
        ("further starts with new ends, by Good–Turing", per_cent(made.unseen.volume)),
        ("candidates of each", f"{len(made.basins[0].x)}, of an attack {candidates}"),
        ("starts that ended level", f"{made.level} of {len(made.basin)}"),
    )


def end_words(one: Basin, k: int, total: int) -> tuple[str, str]:
    """Return what an end leaves, what it is, and how many starts come to it."""
    come = "ends" if len(one.starts) == 1 else "end"
    words = (
        f"{len(one.starts)} of {total} starts {come} here, {one.away:.2f} from the truth on "
        f"average. {unexplained_share(one.hard)} of the weights is unexplained."
    )
    return f"Valley {k + 1} ends at {KINDS[one.kind]}", words


def end(made: Census, k: int) -> str:
    """Return an end in the list."""
    one = made.basins[k]
    came = count(len(one.starts), "start")
    return f"{k + 1}: {KINDS[one.kind]}, {came}, leaves {unexplained_share(one.hard)}"


def legend(made: Census) -> str:
    """Return how many distinct ends are of each kind, as the legend of their marks, in HTML."""
    kinds = [one.kind for one in made.basins]
    counts = [kinds.count("truth"), kinds.count("explanation")]
    counts.append(len(kinds) - sum(counts))
    return end_rows(counts, ENDS, coloured=False, head="distinct ends") + mark_row(*ALONE)


def rows(made: Census) -> list[list[str]]:
    """Return the ends as a table for screen readers."""
    head = ["end", "kind", "starts", "left", "from the truth"]
    return [head] + [
        [
            str(k + 1),
            KINDS[one.kind],
            str(len(one.starts)),
            unexplained_share(one.hard),
            f"{one.away:.3f}",
        ]
        for k, one in enumerate(made.basins)
    ]

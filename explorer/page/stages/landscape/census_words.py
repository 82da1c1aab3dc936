"""What the landscape says of a census: its counts, its ends, the ways between them."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.engine.attacks.claims import MERGE_RADIUS
from explorer.engine.confidence import Share
from explorer.engine.number_words import count
from explorer.page.job import JobState
from explorer.page.stages.landscape.energy_words import end_rows, unexplained_share
from explorer.research.census import Census
from explorer.research.census.basins import Basin, Kind
from explorer.research.census.passes import LowestPass
from explorer.research.grid.landscape import Arrivals
from explorer.research.runs import RADIUS

CENSUS = "Census"
TIP = "Let 200 starts all over the triangle roll down the energy, and count the distinct ends"
WAY_TIP = "To which end the way from the truth's end leads, along which energies are drawn"
PICK_TIP = (
    "The distinct ends, the largest basin first: choosing one shows it, as a press on it does"
)
ENDED: Mapping[JobState, str] = {
    JobState.CANCELLED: "The census was cancelled.",
    JobState.STALE: "The points or the weights changed: the census was cancelled.",
}
KINDS: dict[Kind, str] = {
    "truth": "the truth", "explanation": "another explanation", "minimum": "a local minimum",
    "saddle": "a saddle", "slope": "a slope", "open": "a place that is not level",
}  # fmt: skip
FILLED = "Basins of the starts"
UNIT = "same colour: same end; grey: alone"
GOALS = {"unseen": "the unseen points' end", "other": "the farthest end as good"}
TABS = {"unseen": "to unseen", "other": "to farthest"}


def per_cent(one: Share) -> str:
    """Return a share with its interval, such as 45% (36% to 55%)."""
    return f"{one.value:.0%} ({one.low:.0%} to {one.high:.0%})"


def census_words(made: Census, end: int = -1, runs: Arrivals | None = None) -> tuple[str, str]:
    """Return what a census counted, in a title and a sentence, or what its end number `end` is.

    Args:
        made: the census.
        end: the number of an end; -1 for none.
        runs: where attacks ended that stand on the same screen.
    """
    n, off = len(made.basin), made.truth[1]
    if end >= 0:
        return end_words(made.basins[end], end, n)
    home = round(made.home.value * n)
    where = "the truth" if off <= RADIUS else f"where the truth itself rolls, {off:.2f} off it"
    words = f"{home} of {n} starts roll{'s' * (home == 1)} down to {where}."
    if runs is None:
        words += f" About {made.unseen.volume.value:.0%} of further ones would come to new ends."
    else:
        ended = f"{runs.truth} of {runs.ended} end{'s' * (runs.truth == 1)}"
        words += f" Attacks do more than roll: {ended} at the truth."
    return f"{count(len(made.basins), 'distinct end')} from {n} starts", words


def census_numbers(made: Census, candidates: int) -> tuple[tuple[str, str], ...]:
    """Return the shares of a census with their intervals; `candidates`: of an attack beside it."""
    return (
        ("end there", per_cent(made.home)),
        ("starts of ends not seen, by Good–Turing", per_cent(made.unseen.volume)),
        ("candidates of each", f"{len(made.basins[0].x)}, of an attack {candidates}"),
        ("starts that ended level", f"{made.level} of {len(made.basin)}"),
    )


def end_words(one: Basin, k: int, total: int) -> tuple[str, str]:
    """Return what an end leaves, what it is, and how many starts come to it."""
    hard = f", by hard ones {unexplained_share(one.hard)}" if one.hard == one.hard else ""
    come = "comes" if len(one.starts) == 1 else "come"
    left = unexplained_share(one.value)
    words = (
        f"{len(one.starts)} of {total} starts {come} here. It leaves {left} of the weights "
        f"by smooth slopes{hard}, and is {one.away:.2f} from the truth on average."
    )
    return f"Basin {k + 1} ends at {KINDS[one.kind]}", words


def end(made: Census, k: int) -> str:
    """Return an end in the list."""
    one = made.basins[k]
    came = count(len(one.starts), "start")
    return f"{k + 1}: {KINDS[one.kind]}, {came}, leaves {unexplained_share(one.value)}"


def legend(made: Census) -> str:
    """Return how many distinct ends are of each kind, as the legend of their marks, in HTML."""
    kinds = [one.kind for one in made.basins]
    counts = [kinds.count("truth"), kinds.count("explanation")]
    counts.append(len(kinds) - sum(counts))
    return end_rows(counts, coloured=False, head="distinct ends")


def rows(made: Census) -> list[list[str]]:
    """Return the ends as a table for screen readers."""
    head = ["end", "kind", "starts", "left", "from the truth"]
    return [head] + [
        [
            str(k + 1),
            KINDS[one.kind],
            str(len(one.starts)),
            unexplained_share(one.value),
            f"{one.away:.3f}",
        ]
        for k, one in enumerate(made.basins)
    ]


def way_words(made: Census, key: str, way: LowestPass | None, going: bool) -> str:
    """Return what ways from the truth's end leave at most; `going`: whether they are looked for."""
    if key == "other" and not made.distinct("explanation"):
        return "none: no other end is as good"
    if way is None:
        return "is looked for" if going else "was not looked for"
    if float((way.way[0] - way.way[-1]).norm(dim=1).mean()) <= MERGE_RADIUS:
        return f"none: {GOALS[key]} is the truth's"
    low, high = (unexplained_share(float(line.max())) for line in (way.lowest, way.straight))
    return f"most unexplained: lowest found {low}, straight (dashed) {high}"

"""The comparison of attacks in words: which does best, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.engine.controls import least_p
from explorer.engine.number_words import count
from explorer.engine.scoring import LEVEL as CHANCE
from explorer.research.sweep.arena import ArenaLine, best
from explorer.research.words import explanations, verdicts

NO_DIGITS = 10  # a mean from which it is said whole; arbitrary


def title(lines: Sequence[ArenaLine], so_far: bool = False) -> str:
    """Return the result in a few words, as the title of `below`; "" where no attack has run.

    `so_far`: whether more runs are to come.
    """
    told = _title(lines)
    return f"{told}, so far" if told and so_far else told


def _title(lines: Sequence[ArenaLine]) -> str:
    ran = [line for line in lines if line.runs]
    if not ran:
        return ""
    first = best(ran)
    if first is None:
        who = ran[0].title if len(ran) == 1 else "No attack"
        return f"{who} recovered {'no' if len(ran) == 1 else 'a'} point{_in_reach(ran)}"
    points = f"{first.once[0]} of {first.n / first.runs:g}"
    if first.p_adjusted > CHANCE:
        return f"{first.title} recovers {points}, perhaps by chance"
    best_of_all = len(ran) > 1 and not _guesses(first) and not _rivals(first, ran)
    return f"{first.title} {'does best:' if best_of_all else 'recovers'} {points} points"


def _in_reach(ran: Sequence[ArenaLine]) -> str:
    return " in reach" if any(line.hits for line in ran) else ""


def _guesses(line: ArenaLine) -> bool:
    """Return whether most of its claims are wrong."""
    return 2 * line.hits < line.claims


def _rivals(first: ArenaLine, ran: Sequence[ArenaLine]) -> list[str]:
    """Return the attacks that may do as well: their intervals of points recovered meet."""
    if not first.reach:
        return []
    low = first.reach[first.at].low
    return [
        line.title
        for line in ran
        if line is not first and line.hits and not _guesses(line) and line.reach
        and line.reach[line.at].high >= low
    ]  # fmt: skip


def _as_well(first: ArenaLine, ran: Sequence[ArenaLine]) -> str:
    """Return which attacks may be as good; "" for none."""
    *most, last = _rivals(first, ran) or [""]
    who = f"{', '.join(most)} and {last}" if most else last
    return f" {who} may be as good: the runs cannot tell." if who else ""


def a_run(line: ArenaLine, total: float) -> str:
    """Return what a sum over the runs of an attack is on average, in two digits or whole."""
    mean = total / line.runs
    return f"{mean:.0f}" if mean >= NO_DIGITS else f"{mean:.2g}"


def below(lines: Sequence[ArenaLine]) -> str:
    """Return what stands below `title` on the page: the rest is in `numbers`."""
    ran = [line for line in lines if line.runs]
    first = best(ran)
    if first is None:
        if not ran:
            return sentence(lines)
        of = f", and {count(len(ran), 'attack')} ran" if len(ran) > 1 else ""
        found = f"A point counts as recovered within {ran[0].radius:g}{of}."
        return found + _open_questions(ran[0])
    by = f"by {count(first.once[1], 'claim')}{_which_run(first)}"
    chance = first.control[first.at] * first.n
    text = (
        f"{'Each' if first.once[0] else 'None'} within {first.radius:g}, {by}; chance recovers "
        f"{a_run(first, chance)}.{_more_but_false(first, max(ran, key=lambda line: line.hits))}"
        f"{_as_well(first, ran)}"
    )
    if least_p(len(first.chance)) > CHANCE:
        text += f" {len(first.chance)} sets are too few to rule chance out."
    return text + _open_questions(first)


def _which_run(line: ArenaLine) -> str:
    """Return which run of an attack the page shows, beside the mean of its row; "" of one."""
    if line.runs == 1:
        return ""
    the = "the" if line.runs % 2 else "a"
    return f", in {the} middle run of {line.runs}" if line.runs > 2 else ", in one run of 2"


def numbers(lines: Sequence[ArenaLine]) -> tuple[tuple[str, str], ...]:
    """Return the numbers of the attack that `title` names, each with its name."""
    ran = [line for line in lines if line.runs]
    first = best(ran)
    if first is None:
        return ()
    chance = first.control[first.at] * first.n
    of_all = f", as the best of {count(len(ran), 'attack')}" if len(ran) > 1 else ""
    rows = [
        ("points recovered", f"{first.hits} of {first.n}, in {count(first.runs, 'run')}"),
        ("by chance", f"{chance:.2g} of {first.n}"),
        ("chance", first.control_words),
    ]
    if first.p_value == first.p_value:
        rows.append((f"p{of_all}", f"{first.p_adjusted:.2g}"))
    return tuple(rows)


def sentence(lines: Sequence[ArenaLine]) -> str:
    """Return the result as a sentence, with its numbers."""
    ran = [line for line in lines if line.runs]
    if not ran:
        return "No attack has run yet." if not lines else "No attack could run: see its row."
    first = best(ran)
    if first is None:
        of = count(len(ran), "attack")
        text = f"None of {of} recovered a point{_in_reach(ran)} within {ran[0].radius:g}."
        return text + _open_questions(ran[0])
    chance = first.control[first.at] * first.n
    of_all = f" as the best of {count(len(ran), 'attack')}" if len(ran) > 1 else ""
    beaten = first.p_adjusted > CHANCE
    alone = not (beaten or _rivals(first, ran))
    lead = f"{first.title} does best: " if alone else f"{first.title}: "
    if beaten:
        lead = f"No attack is shown to do better than chance. {lead}"
    text = (
        f"{lead}{first.hits} of {first.n} points within {first.radius:g} over "
        f"{count(first.runs, 'run')}, {first.hits} of {first.claims} claims right; chance "
        f"recovers {chance:.2g}"
    )
    known = first.p_value == first.p_value
    if known:
        text += f" ({first.control_words}, p = {first.p_adjusted:.2g}{of_all})"
    text += "."
    others = [f"{line.title} {line.hits}" for line in ran if line is not first]
    if others:
        text += f" Others recovered: {', '.join(others)}."
    text += _more_but_false(first, max(ran, key=lambda line: line.hits)) + _as_well(first, ran)
    if known and least_p(len(first.chance)) > CHANCE:
        text += verdicts.doubt(first.p_adjusted, len(first.chance))
    return text + _open_questions(first)


def _more_but_false(first: ArenaLine, most: ArenaLine) -> str:
    """Return why the attack that recovers most is not the best; "" where it is."""
    if most.hits <= first.hits:
        return ""
    if most.hits == most.claims:
        return " Best is whose points recovered and whose right claims are many alike."
    many = "most" if _guesses(most) else "more"
    return f" {most.title} recovers more, but {many} of its claims are wrong."


def _open_questions(line: ArenaLine) -> str:
    """Return how many points are certified, and how many of those recovered; "" where not asked."""
    if line.determined < 0:
        return ""
    sure = explanations.certified_count(line.determined, line.n)
    return f" {sure}; {line.title} recovered {line.sure} of these."

"""What an attack found, against chance, and after a failure why and what next.

The reasons, in the order in which they are asked for, each from numbers of the frame: the run is
not at its end; the weights are not near a KKT point; few points hold the margin; other points
explain the weights as well; the candidates do not explain them yet.
"""

from __future__ import annotations

import math
from dataclasses import replace

from explorer.engine.attacks.target import NO_THEOREM
from explorer.engine.certificate import Certificate, Light
from explorer.engine.controls import SHAPED, Origin
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.number_words import count, share
from explorer.engine.roster import DEFAULT, AttackState, by_key
from explorer.engine.scoring import MIN_POINTS, Doubt, Kind, Unknowable, Verdict
from explorer.engine.statement import Action, Judged, Statement
from explorer.page.frame import Frame
from explorer.page.plane.marks import second_claims
from explorer.page.words.screen import ASK, COMPARE, exact_action
from explorer.page.words.statement import NOT_AT_END, is_on_its_way, what_is_left
from explorer.research.runs import AS_WELL, judged_places
from explorer.research.scenarios import failing_example
from explorer.research.words import verdicts

ON_ITS_WAY = "The attack is on its way"
WATCH = "Watch where it looks for the training points."  # its card says how
MOST = 800  # arbitrary: candidates of one attack
NEAR = (Light.NEAR, Light.EXACT)
ANEW = Action("restart", "Attack again")
ELSEWHERE = "Could they be elsewhere?"
OTHERS = "Ask what else explains the weights"
REST_ELSEWHERE = " The rest could be elsewhere: other points explain the weights, too."
ALTERNATE = Action("points", "Try points that alternate")
MEANT = "This example is meant to fail"
# What an attack is granted of the points, by its kind.
GRANTED = {
    "range": "the box that holds the points", "curve": "a curve that is to hold the points",
    "public": "other points of the same kind", "others": "all points but one",
}  # fmt: skip


def outcome(frame: Frame, running: bool) -> Statement:
    """Return what the attack on screen came to, so far or at its end."""
    part = frame.attack
    assert part.state is not None  # the stage has one
    if frame.truth is not None and not frame.truth.n and part.state.t:
        return _claims_statement(frame)
    if part.verdict is None or part.judged is None or not part.judged.t:
        return _start(frame, part.state, running)
    fold = _numbers(frame, part.verdict, part.judged)
    if part.judged is not part.state:
        title = f"{_met_words(part.verdict)} so far"  # its step, in the fold, is not that on screen
        return Statement(title, "", "", fold, order=WATCH)
    said = _verdict_statement(frame, part.verdict, running)
    words, tone, action = said.words, said.tone, said.action
    mixed = _truth_share(frame)
    if mixed:
        words, tone = f"It began with {mixed}, which no attacker has. {words}", "warn"
    if not _homogeneous(frame):
        words = f"{words} No theorem covers these biases, so nothing can be proven."
        action = action or (None if running or _at_work(frame) else COMPARE)
    if tone != "good" and not _at_work(frame):
        words = f"{words}{_as_meant(frame, words)}"
    return Statement(said.title, words, tone, fold, action)


def _as_meant(frame: Frame, said: str) -> str:
    """Return that the example on screen is meant to fail, and why if that is not `said`."""
    row = failing_example(
        None if frame.truth is None else frame.truth.source, frame.training.t, frame.attack.name
    )
    if row is None:
        return ""
    why = row.sentence.rstrip(".")
    return f" {MEANT}." if why in said else f" {MEANT}: {why[0].lower()}{why[1:]}."


def _start(frame: Frame, state: AttackState, running: bool) -> Statement:
    m, mixed = len(state.x), _truth_share(frame)
    entry, made = by_key(frame.attack.name), frame.attack.verdict
    if running or state.t:
        return Statement(ON_ITS_WAY, "", order=WATCH)
    press = Action("play", "Attack")
    begun = f"{count(m, 'candidate')} at {'its' if m == 1 else 'their'} start"
    if made is not None and made.found and not mixed:
        begun = f"{made.found} of {made.n} points before the first step"
    if not m or (not mixed and (entry.own or not entry.takes_start)):
        title = begun if m else "The attack knows only the weights"
        return Statement(title, WATCH, action=press)
    if mixed:
        words = f"They have {mixed}, which no attacker has"
        if made is not None:
            words += f", and recovered {made.found} of {made.n} points before the first step"
        words += "."
        return Statement(begun, words, "warn", action=press)
    known = frame.attack.known
    told = "only the weights" if known is None else f"the weights and {GRANTED[known.kind]}"
    words = f"They know {told}. Watch them look for the points that the weights remember."
    return Statement(begun, words, action=press)


def _claims_statement(frame: Frame) -> Statement:
    """Return how many places are claimed, where nobody told the points."""
    part = frame.attack
    if part.claims is None or part.judged is None:
        return Statement(ON_ITS_WAY, WATCH)
    title = count(len(part.claims.x), "claim")
    if part.judged is not part.state:
        title += " so far"
    fold = (("claimed at step", f"{part.judged.t:,}"),)
    words = "Nobody told the points of these weights, so nothing tells which claims are right."
    return Statement(title, words, "", fold)


def _verdict_statement(frame: Frame, made: Verdict, running: bool) -> Statement:
    own = None if _at_work(frame) else _own_statement(frame, made)
    if own is not None and own.title:
        return own
    if made.why_not is Unknowable.NO_CLAIMS and _at_work(frame):
        words = "So far no candidate lies on the margin and has a multiplier."
        return Statement("No claim yet", words, action=None if running else Action("play", "Go on"))
    if made.why_not is not None:
        return _unknowable(frame, made, made.why_not)
    if made.kind is Kind.CANNOT_KNOW:
        few = f"With {verdicts.sets(made.origin, made.controls)} chance cannot be ruled out."
        action = None if running else _explain(frame, OTHERS) or ANEW
        return Statement(_met_words(made), few, action=action)
    reason, action = (own.words, own.action or COMPARE) if own else _reason(frame, made)
    if made.kind is Kind.FOUND and made.chance < made.found:
        return Statement(
            _met_words(made), f"{_against(frame, made)}{_traceless(made)}",
            "good",
            action=None if _at_work(frame) else _elsewhere_asked(frame),
        )  # fmt: skip
    if running or _at_work(frame):
        return Statement(_met_words(made), reason, action=None if running else action)
    luck = _by_chance(made)
    if made.kind is Kind.NOT_RECOVERABLE and made.in_reach is not None:
        title, words = (
            (_met_words(made), reason) if luck is None else (luck[0], f"{reason} {luck[1]}")
        )
        return Statement(title, words, "warn", action=action)
    if luck is not None:
        return Statement(luck[0], f"{luck[1]} {reason}", "warn", action=action)
    return Statement(_met_words(made), reason, "bad" if not made.found else "warn", action=action)


def _own_statement(frame: Frame, made: Verdict) -> Statement | None:
    """Return what the attack itself says of its end; the page leaves out what cannot be done."""
    part, known, truth = frame.attack, frame.certainty, frame.truth
    assert part.state is not None and truth is not None  # it was judged
    places = judged_places(part.state, truth, known)
    said = by_key(part.name).headline(part.state, Judged(
        made.n, made.found, made.claims, made.radius, _residual(frame),
        0 if places is None else int(places[1].sum()),
        known.box if known is not None and known.truth is not None else None,
    ))  # fmt: skip
    if said is None or said.action is None or said.action.key != "explain":
        return said
    return replace(said, action=_explain(frame, said.action.label))


def _met_words(made: Verdict, luck: str = "") -> str:
    """Return how many points the claims recovered, and what chance has to do with it."""
    return f"{made.found} of {made.n} points recovered{luck}"


def _by_chance(made: Verdict) -> tuple[str, str] | None:
    """Return title and sentence of claims that chance may explain; None where it does not."""
    if not made.found or made.why_not is not None:
        return None
    if made.chance < made.found and made.doubt is not Doubt.LIKELY_CHANCE:
        return None
    as_many = made.chance >= made.found
    title = "no more than by chance" if as_many else "perhaps by chance"
    many = "as many" if as_many else f"{made.chance:.2g} on average"
    return _met_words(made, f", {title}"), f"In {_sets(made)} the same claims recover {many}."


def _against(frame: Frame, made: Verdict) -> str:
    """Return how the claims do on the points, and on sets that the network never saw."""
    alone = "" if _own(frame) else ", from the weights alone"
    alone = "" if _truth_share(frame) else alone
    chance = "none" if not made.chance else f"{made.chance:.2g} on average"
    further = _further(made.claims - made.found, second_claims(frame))
    return (
        f"Each within {made.radius:g}{alone}.{further} In {_sets(made)} the same claims recover "
        f"{chance}."
    )


def _further(off: int, second: int) -> str:
    """Return what the claims beyond those points are, as the plane marks them; "" for none."""
    if off <= 0:
        return ""
    if not second:
        return f" {count(off, 'further claim')} {'is' if off == 1 else 'are'} wrong."
    if second >= off:
        return ""  # no claim is wrong
    wrong = "1 is" if off - second == 1 else f"{off - second} are"
    again = "recovers a point" if second == 1 else "recover points"
    return f" Of {off} further claims {wrong} wrong, {second} {again} once more."


def _traceless(made: Verdict) -> str:
    if made.in_reach is None or made.in_reach == made.n:
        return ""
    rest = made.n - made.in_reach
    which = "is off the margin and leaves" if rest == 1 else "are off the margin and leave"
    return f" {rest} of {made.n} {which} no trace."


def _sets(made: Verdict) -> str:
    if made.origin is Origin.HELD_OUT:
        return f"{made.controls} unseen sets"
    if made.origin in SHAPED:
        return f"{made.controls} unseen sets of this shape"  # how they were made: see the numbers
    return verdicts.sets(made.origin, made.controls)


def _unknowable(frame: Frame, made: Verdict, why: Unknowable) -> Statement:
    if why is Unknowable.NO_CLAIMS:
        words = "No candidate lies on the margin and has a multiplier."
        return Statement("The attack claims nothing", words, "bad", action=ANEW)
    if why is Unknowable.FEW_POINTS:
        words = f"A comparison with chance takes {MIN_POINTS} points or more. A proof needs none."
        more = Action("draw", "Draw more points")
        return Statement(_met_words(made), words, action=_places(frame, ASK) or more)
    if why is Unknowable.NO_CONTROLS:
        words = "There are no unseen sets, so chance is not measured."
        return Statement(_met_words(made), words, action=ANEW)
    words = (
        f"Unseen points alone lie within {made.radius:g} of {made.chance:.2g} of them: the points "
        "are too close together to tell a recovery from luck."
    )
    return Statement(
        _met_words(made), words, "warn", action=Action("draw", "Draw points farther apart")
    )


# --- why so few, and what next ----------------------------------------------------------------
def _reason(frame: Frame, made: Verdict) -> tuple[str, Action | None]:
    known = None if frame.aim is None else frame.aim.certificate
    if _at_work(frame):
        return "So far: the attack is not at its end.", Action("play", "Go on")
    if _own(frame):
        return f"{made.found} of {made.claims} claims are right.", ANEW
    if known is not None and known.light not in NEAR and not is_on_its_way(known):
        decay = bool(frame.newest and frame.training.weight_decay)
        why = what_is_left(known, decay)
        if decay:
            return f"{why}: with weight decay training stops short of a KKT point.", None
        on_the_way = known.light is Light.APPROACHING
        how = NOT_AT_END if on_the_way else "training has not come near a KKT point"
        end = exact_action(frame) if on_the_way else None
        return f"{why}: {how}.", end or Action("train", "Train on")
    apart = _elsewhere(frame, known)
    if made.kind is Kind.NOT_RECOVERABLE and made.in_reach is not None:
        gone = made.n - made.in_reach
        leave = "leaves" if gone == 1 else "leave"
        words = f"{gone} of {made.n} {leave} no trace."
        met = f" Of the other {made.in_reach} the claims recover {made.reached}."
        return f"{words}{REST_ELSEWHERE if apart else met}", _places(frame, ASK) or ALTERNATE
    share_left = _left_by_candidates(frame)
    if share_left is None and frame.attack.name != DEFAULT:
        return f"{_counted_claims(frame, made)}.{_traceless(made)}", COMPARE
    if 2 * made.found < made.claims and made.found:
        why = f" {apart}" if apart else _traceless(made)
        return f"{_counted_claims(frame, made)}.{why}", _explain(frame, OTHERS) or ANEW
    if apart:
        return apart, _explain(frame, OTHERS)
    if share_left is not None:
        return "The candidates do not add up to the weights.", _more_candidates(frame)
    return f"{_counted_claims(frame, made)}.", ANEW


def _counted_claims(frame: Frame, made: Verdict) -> str:
    """Return how many claims are wrong, as crosses are on the plane."""
    wrong = made.claims - made.found - second_claims(frame)
    if not wrong:
        return f"{made.found} of {made.claims} claims are right"
    return f"{wrong} of {count(made.claims, 'claim')} {'is' if wrong == 1 else 'are'} wrong"


def _residual(frame: Frame) -> float:
    """Return what the known points leave: the one number that is called unexplained."""
    made = None if frame.aim is None else frame.aim.certificate
    return 1.0 if made is None else made.residual


def _at_work(frame: Frame) -> bool:
    return frame.stage == "attack" and not frame.status.over


def _elsewhere(frame: Frame, known: Certificate | None) -> str:
    """Return that candidates elsewhere explain the weights as well; "" where they do not."""
    share_left = _left_by_candidates(frame)
    if share_left is None or known is None:
        return ""
    if share_left > max(AS_WELL, known.residual):
        return ""
    if share_left > known.residual:
        return "Other points leave little of the weights unexplained."
    return "Other points explain the weights as well."


def _left_by_candidates(frame: Frame) -> float | None:
    """Return the share of the norm that the candidates do not add up to, where it is known.

    It is of the attack's own multipliers: no number for the page, where the best ones count.
    """
    state = frame.attack.state
    numbers = {} if state is None else state.numbers()
    if "l_stationary" in numbers:
        return math.sqrt(max(numbers["l_stationary"], 0.0))  # a share of the squared norm
    return numbers.get("residual")


def _explain(frame: Frame, label: str) -> Action | None:
    """Return the way to the other explanations, where these weights have any."""
    net = None if frame.target is None else frame.target.net
    return Action("explain", label) if net and net.homogeneous else None


def _elsewhere_asked(frame: Frame) -> Action | None:
    """Return the way to the last act, or to other explanations where nothing can be proven."""
    return _places(frame, ELSEWHERE) or _explain(frame, ELSEWHERE)


def _places(frame: Frame, label: str) -> Action | None:
    """Return the way to the last act, where something can be proven of these weights."""
    can = frame.target is not None and not obstacle(frame.target)
    return Action("places", label) if can else None


def _more_candidates(frame: Frame) -> Action:
    state = frame.attack.state
    if state is None or not by_key(frame.attack.name).takes_start:
        return ANEW
    if not 0 < 2 * len(state.x) <= MOST:
        return ANEW
    return Action("candidates", f"Try {2 * len(state.x)} candidates")


# --- the frame --------------------------------------------------------------------------------
def _own(frame: Frame) -> bool:
    """Return whether the attacked weights are those of the attack's own training."""
    return by_key(frame.attack.name).own is not None


def _truth_share(frame: Frame) -> str:
    """Return the share of the truth in the start; "" for none."""
    mix = frame.attack.mix[0] * frame.attack.mix[1]
    return f"{mix:.0%} of the truth" if mix else ""


def _homogeneous(frame: Frame) -> bool:
    return frame.target is None or frame.target.net.homogeneous


def _numbers(frame: Frame, made: Verdict, at: AttackState) -> tuple[tuple[str, str], ...]:
    rows = [("judged at step", f"{at.t:,}"), ("points recovered", f"{made.found} of {made.n}"),
            ("claims that are right", f"{made.found} of {made.claims}")]  # fmt: skip
    if made.why_not is None:
        rows += [
            ("radius", f"{made.radius:g}"), ("by chance", f"{made.chance:.2g}"),
            ("chance", verdicts.controls(made)), ("p", f"{made.p_value:.2g}"),
        ]  # fmt: skip
    again = second_claims(frame)
    if again:
        rows.append(("second claims of a point", f"{again}"))
    if made.undecided:
        rows.append(("decided by rounding", f"{made.undecided}"))
    if made.in_reach is not None:
        rows.append(("on the margin or with a multiplier", f"{made.in_reach} of {made.n}"))
    if frame.aim is not None and frame.aim.certificate is not None:
        rows.append(("unexplained by the points", share(frame.aim.certificate.residual)))
    if not _homogeneous(frame):
        rows.append(("theorem", NO_THEOREM))
    return tuple(rows)

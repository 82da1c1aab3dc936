"""The headline of a page, as a function of the frame it stands beside: a result in plain words.

A number of a headline is of the state on screen. Certificates and verdicts cost more than a step
and may be of an earlier state of the run: then the numbers under the headline name its step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from explorer.engine import private
from explorer.engine.certificate import (
    NEAR,
    Certificate,
    Light,
    carries,
    holds_margin,
    in_reach,
)
from explorer.engine.classes import labels
from explorer.engine.data import Dataset
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.explanations.cone import scope
from explorer.engine.number_words import (
    coarse_share,
    count,
    digits,
    percent,
    share,
)
from explorer.engine.roster import by_key
from explorer.engine.statement import Action, Statement
from explorer.engine.status import Status
from explorer.engine.training import TrainState
from explorer.page.frame import Certain, Frame, Training
from explorer.page.stages.attack.words import ALTERNATE, outcome
from explorer.page.stages.explain import words as explain_words
from explorer.page.stages.explain.words import LIKELY
from explorer.page.stages.landscape import energy_words as energy
from explorer.page.stages.landscape import words as starts
from explorer.page.stages.proof import words as proof
from explorer.page.words.screen import ASK, COMPARE, exact_action
from explorer.page.words.statement import (
    NOT_AT_END,
    is_off_margin,
    is_on_its_way,
    what_is_left,
)
from explorer.research.explained import Explained, misfit
from explorer.research.words import explanations, weights
from explorer.style import CLASSES

__all__ = ["Action", "Statement", "headline"]

NO_LIMIT = "With biases beyond the first layer no theorem says what training converges to."
DECAY = "With weight decay training stops short of a KKT point, and every point leaves a trace."
UNSPLIT = "Two halves apart no longer add up. Whether a set with other points does is asked next."
NONE_FAR = "No other set was found"
FURTHER = "Play would train these weights further, and change them."
WITHOUT_DATA = Statement(
    "These weights came without their data",
    "Draw or import the points they were trained on, or attack without: then nothing tells which "
    "claims are right.",
    action=Action("attack", "Attack without the data"),
)
HIDDEN = Statement(
    "Where are the training points?",
    "They are hidden, and what was found of them. Guess by where the candidates go.",
)
WHICH = "Which attack does best?"
ATTACK = "Attack these weights"
OWN = Action("own", "Draw your own")
STILL = 0.01  # growth of the margin over nine tenths of the steps that is little; arbitrary


def headline(frame: Frame, running: bool = False, hidden: bool = False) -> Statement:
    """Return the headline of a frame.

    `running`: it is played, or opened from a link; `hidden`: the points that are looked for are,
    and so is what would tell them.
    """
    if frame.stage == "attack" and hidden and frame.is_told:
        if running:
            return HIDDEN
        begun = frame.attack.state is not None and frame.attack.state.t > 0
        press = Action("reveal", "Reveal the truth") if begun else Action("play", "Attack")
        return replace(HIDDEN, action=press)
    if frame.stage == "attack" and frame.attack.state is not None:
        return outcome(frame, running)
    if frame.stage == "landscape":
        return _landscape(frame)
    if frame.question and (frame.question != "split" or frame.explain is not None):
        return _answer(frame)
    if frame.stage == "arena":
        return _compare(frame)
    if frame.training.given and frame.training.state is not None and not frame.dataset.n:
        return WITHOUT_DATA
    if frame.stage == "draw" or frame.training.state is None or not frame.dataset.n:
        return _draw(frame.dataset, frame.training)
    return _train(frame, frame.training.state, running)


# --- draw -----------------------------------------------------------------------------------
def _draw(data: Dataset, part: Training) -> Statement:
    if not data.n:
        return Statement(
            "Can weights give away their training data?",
            "Draw points of two classes on the plane, train a network on them, and steal them back "
            "from its weights.",
            action=Action("points", "Take 20 points on a circle"),
        )
    clash = data.conflict()
    if clash is not None:
        return Statement(
            "No network can separate these points",
            f"Points {clash[0] + 1} and {clash[1] + 1} lie on each other and are of different "
            "classes. Move or erase one of them.",
            "bad",
        )
    every = labels(data.outputs)
    counts = {int(label): int((data.y == label).sum()) for label in every}
    held = [k for k, n in counts.items() if n]
    *most, last = (f"{n} {CLASSES[k].sign}" for k, n in counts.items() if n)
    parts = f"{', '.join(most)} and {last}" if most else last
    if len(held) < 2:
        other = -1 if 1 in held else 1
        return Statement(
            "Now points of another class",
            f"There {'is' if data.n == 1 else 'are'} {count(data.n, 'point')} of one class so far. "
            "A margin lies between two.",
            action=Action("other-class", f"Draw {CLASSES[other].sign}") if data.d == 2 else None,
        )
    title, run = f"{count(data.n, 'point')} of {len(held)} classes", part.state
    if run is None or not (run.t or part.is_exact):
        words = f"{parts}. Train a network on them, and see which of them its weights give away."
        return Statement(title, words, action=Action("train", f"Train on these {data.n} points"))
    if run is part.before or not float(run.q.min()) > 0:  # drawn since, or not learnt yet
        words = f"{parts}. Training goes on from step {run.t:,}, with the points as they are."
        return Statement(title, words, action=Action("train", "Train on"))
    words = f"{parts}. Which of them do the weights give away?"
    return Statement(title, words, action=Action("attack", ATTACK))


# --- train ----------------------------------------------------------------------------------
def _train(frame: Frame, state: TrainState, running: bool) -> Statement:
    stopped = _stop_statement(frame, state)
    if stopped is not None:
        return stopped
    n = len(state.q)
    fold = _train_numbers(frame.training, state)
    right = int((state.q > 0).sum())
    on = None if running else Action("train", "Train" if state.t == 0 else "Train on")
    if right < n:
        title = f"{right} of {n} points on the side of their class"
        if state.t == 0 and not running and frame.training.given:
            words = f"These weights do not separate the points. {FURTHER}"
        elif state.t == 0 and not running:
            words = "Training has not begun. Press Play, and watch the network turn around them."
        else:
            words = "Training moves the network until all of them are: only then is there a margin."
        return Statement(title, words, "", fold, on)
    attack = Action("attack", ATTACK)
    if not state.net.homogeneous:
        return Statement(f"All {n} points on their side", NO_LIMIT, "warn", fold, attack)
    if frame.training.weight_decay:
        return Statement(f"All {n} points on their side", DECAY, "warn", fold, attack)
    held = int(holds_margin(state.q).sum())
    every = "Both points" if n == 2 else f"All {n} points"
    title = f"{every if held == n else f'{held} of {n} points'} hold{'s' * (held == 1)} the margin"
    if running and 2 * held < n:  # or the count would seem to fall as it begins anew
        title = f"All {n} points on their side"
    words, tone, near = _nearness(frame.training, state, running)
    if tone != "good" and _is_still(frame.training) and not running:
        attack = exact_action(frame) or attack
    if frame.training.given and not state.t and not running:
        words = f"{words} {FURTHER}"
    return Statement(title, words, tone, fold, attack if near else on)


def _stop_statement(frame: Frame, state: TrainState) -> Statement | None:
    titles = {
        Status.DEAD: "Training stopped: no neuron sees a point",
        Status.DIVERGED: "Training stopped: the next step would be infinite",
    }
    if frame.status not in titles:
        return None
    fold = _train_numbers(frame.training, state)
    again = Action("reseed", "Begin with other weights")
    return Statement(titles[frame.status], weights.status(frame.status), "bad", fold, again)


def _nearness(part: Training, state: TrainState, running: bool) -> tuple[str, str, bool]:
    """Return how near to a KKT point the run is, its tone, and whether to attack it.

    While it runs the sentence has no number: the chart has it, with its step.
    """
    made = part.certificate
    if made is None or part.certified is None or made.light is Light.NOT_SEPARATED:
        return "All are on their side. Training now widens the smallest margin.", "", False
    near, still = made.light is Light.NEAR, _is_still(part)
    gone = _off_margin(made, state)
    if made.light is Light.EXACT:
        return f"They explain the weights up to rounding: a KKT point.{gone}", "good", True
    where = {
        Light.NEAR: "close to a KKT point",
        Light.APPROACHING: NOT_AT_END,
        Light.SEPARATED: "far from where training comes to rest",
    }[made.light]
    tone = "good" if near else ""
    ready = near or still or part.given or is_on_its_way(made)
    ready = ready and made.light is not Light.SEPARATED
    if running or part.certified is not state:  # its figures would be those of an earlier step
        return f"{where[0].upper()}{where[1:]}.", tone, ready
    off = is_off_margin(made)
    if off and made.light is Light.APPROACHING:
        where = "at the end of training they hold it"
    words = f"{what_is_left(made)}: {where}.{gone}"
    if still and not gone and not off:  # the sentence is long enough; Numbers tell it
        words += " The margin hardly grows any more."
    return words, tone, ready


def _off_margin(made: Certificate, state: TrainState) -> str:
    """Return what the points that do not hold the margin leave in the weights; "" for none.

    Either how many leave no trace; or that all of them carry weight, so an attack may find them.
    """
    n, off = len(state.q), ~holds_margin(state.q)
    rest, reach = int(off.sum()), in_reach(made, n)
    gone = 0 if reach is None else int((~reach).sum())
    if not gone:
        return _carrying(made, off)
    who = f"{gone} of {count(n, 'point')}"
    if gone == rest:
        who = "The one off the margin" if rest == 1 else f"The {rest} off the margin"
    elif gone < rest:
        who = f"{gone} of the {rest} off the margin"
    return f" {who} {'leaves' if gone == 1 else 'leave'} no trace."


def _carrying(made: Certificate, off: Tensor) -> str:
    """Return that all points off the margin, (n,) bool, carry weight; "" where some do not."""
    rest, settled = int(off.sum()), made.light is not Light.SEPARATED and not is_off_margin(made)
    if not rest or not settled or len(made.lam) != len(off) or not carries(made.lam)[off].all():
        return ""
    who = "one off the margin carries" if rest == 1 else f"{rest} off the margin carry"
    return f" The {who} weight, too."


def _is_still(part: Training) -> bool:
    """Return whether the last steps hardly changed the margin: training no longer goes anywhere."""
    return part.growth is not None and abs(part.growth) < STILL


def _train_numbers(part: Training, state: TrainState) -> tuple[tuple[str, str], ...]:
    rows = [("step", f"{state.t:,}"), ("normalised margin", f"{state.gamma_bar:.4g}")]
    if part.growth is not None and _is_still(part):
        rows.append(("its change in the last nine tenths of the steps", share(abs(part.growth))))
    if part.ended is not None and part.ended[0] is state:
        rows += weights.end_numbers(part.ended[1])
    noise = 0.0 if part.plan is None else part.plan.train_config.private_noise
    if noise:
        epsilon = private.epsilon_of(private.separation(noise, state.t))
        rows.append(("ε, at δ = 10⁻⁵", f"{epsilon:.3g}"))
    made = part.certificate
    if made is not None and part.certified is not None and made.light is not Light.NOT_SEPARATED:
        if part.certified is not state:
            rows.append(("counted at step", f"{part.certified.t:,}"))
        rows += _certificate_numbers(made)
    return tuple(rows)


def _certificate_numbers(made: Certificate) -> list[tuple[str, str]]:
    rows = [
        ("points with a multiplier", f"{made.n_support} of {len(made.q)}"),
        ("unexplained", share(made.residual)),
        ("slackness", share(made.slackness)),
        ("tau", f"{made.tau:g}, slopes free at {made.n_kinks} kinks"),
    ]
    if made.residual_exact is not None:
        rows.append(("without free slopes", share(made.residual_exact)))
    return rows


# --- the other stages -----------------------------------------------------------------------
def _landscape(frame: Frame) -> Statement:
    found, mixed = starts.headline(frame), frame.map_kind == "starts"
    if mixed and frame.starts is None and starts.why_none(frame) != energy.nothing(frame):
        return Statement(starts.NONE, starts.why_none(frame), "warn")
    if frame.starts is None if mixed else frame.landscape is None:
        return Statement("These weights have no energy", energy.nothing(frame), "warn")
    if found is not None:
        way = ALTERNATE if starts.tells_nothing(frame) else None
        return Statement(*found, fold=starts.numbers(frame), action=way)
    return Statement(
        starts.MAP,
        "Each place is a start: a mix of training points, unseen points and noise.",
        order="Drag the handle, and attack from there.",
    )


def _compare(frame: Frame) -> Statement:
    shown = frame.arena
    if shown is not None and shown.target is frame.target:
        end = OWN if shown.title and shown.runs else None
        return Statement(shown.title or WHICH, shown.sentence, fold=shown.fold, action=end)
    own = by_key(frame.attack.name)
    others = f" Those that {own.title} attacked are its own." if own.own is not None else ""
    return Statement(WHICH, f"Each attack meets these weights several times.{others}")


def _answer(frame: Frame) -> Statement:
    """Return the answer to the one question of Explain that is on screen, and the way on."""
    if frame.proof is not None:
        return proof.statement(frame, frame.proof)
    if frame.certain is not None:
        return _certain(frame.certain)
    assert frame.explain is not None  # without it nothing else can be asked
    said = ANSWERS[frame.question](frame.explain.present, frame.certainty)
    if said.tone == "bad" or frame.target is None:
        return said
    if obstacle(frame.target):  # no place is proven
        return replace(said, action=said.action or proof.way_on(frame))
    return replace(said, action=Action("places", ASK))


def _certain(shown: Certain) -> Statement:
    """Return what the map of radii says: what every set leaves without a point at a place.

    Which places must hold a point is the last act's to say.
    """
    made, top = shown.map, shown.most
    fold = (
        ("bound below any explanation", share(made.least)),
        ("largest radius so far", percent(top)),
        ("must hold a point from" if made.truth is not None else "likely to hold one from",
         share(made.limit)),
        ("half width of a place", f"{made.half:.2g}"),
        ("among sets with", scope(made.box, made.top)),
    )  # fmt: skip
    if not shown.done:
        return Statement(LIKELY, "From the weights alone, place by place.", "", fold)
    on = Action("places", ASK)
    if shown.is_void:
        words = "It is too coarse. The proof looks closer, and may still find places."
        return Statement("A map of certainty shows nothing here", words, "", fold, on, "", LIKELY)
    why = made.why if made.truth is None else ""
    left = f"{percent(top)} or more of the weights unexplained"
    words = why or f"Every set without a point there leaves {left}."
    title = LIKELY if why else "A point is most certain where the map is yellow"
    return Statement(title, words, "", fold, on, question="" if why else LIKELY)


def _farthest(state: Explained, _: Certainty | None) -> Statement:
    """Return the farthest other set, or that none was found."""
    found = state.far
    assert found is not None
    fold = (
        ("unexplained by the points", share(state.base)),
        ("no set as good is farther than", digits(found.at_most, ".2g")),
        ("looked for up to a coordinate of", f"±{found.extent:.3g}"),
    )
    asked: dict[str, Any] = {"fold": fold, "question": explain_words.FARTHEST}
    if not found.other:
        said = explanations.farthest_set(found).partition(" (")[0]
        return Statement(NONE_FAR, f"{said}.", **asked)
    left = f"{coarse_share(state.left)} unexplained"
    far = f"{found.distance:.2g} away on average"
    if misfit(state) == "residual":
        words = f"It is {far}, and leaves {left}: the training points {coarse_share(state.base)}."
        return Statement("This set explains the weights less well", words, "warn", **asked)
    words = f"{count(state.now.n, 'point')}, {far}, leave {left}."
    if state.base > NEAR:  # neither set explains the weights
        return Statement("Other points leave as much unexplained", words, "warn", **asked)
    return Statement("Other points, the same weights", words, **asked)


def _masses(state: Explained, sure: Certainty | None) -> Statement:
    """Return which points every set has, and over which sets."""
    asked = explain_words.CERTIFIED
    if sure is None:
        title, _, words = state.words.partition(". ")
        return Statement(title, words, question=asked)
    held = int(sure.certain.sum())
    said = explain_words.certified_words(held, len(sure.certain), sure, state.base)
    return Statement(*said, "good" if held else "", question=asked)


def _split(state: Explained, _: Certainty | None) -> Statement:
    """Return which points can become two, or what the two explain."""
    n, still = state.now.n, int(state.pinned.sum())
    fold = (
        ("unexplained by the points", share(state.base)),
        ("change of the sum", share(state.change)),
        ("slackness", digits(state.slackness, "+.1e")),
        ("margin error", digits(state.margin_error, ".2g")),
        ("cannot be split", f"{still} of {n}"),
    )
    if broken := _misfit(state, fold):
        return broken
    if state.slide is not None and state.mate is not None:
        words = "The weights stay the same."
        if state.base > NEAR:
            words = "Together the two add up to what it did."
        order = "Drag one of the two: the other follows." if state.is_example else ""
        return Statement("This point can as well be two", words, "", fold, order=order)
    if state.now is not state.truth:
        words = f"{count(n, 'point')} leave {coarse_share(state.left)} unexplained. {state.words}"
        if state.base > NEAR:  # neither set explains the weights
            return Statement("Other points leave as much unexplained", words.rstrip(), "warn", fold)
        return Statement("Other points, the same weights", words.rstrip(), "", fold)
    if state.base > NEAR:
        words = "Two in place of such a point, apart on its line, add up to the same weights."
        if still == n:
            words = "Two in place of one, pulled apart, no longer add up to the same weights."
        title = f"{n - still or 'None'} of {count(n, 'point')} can become two"
        return Statement(title, words, "", fold)
    if still == n:
        words, order = UNSPLIT, "Drag one freely (Shift) to see what breaks."
        title = "No point can become two"
        return Statement(title, words, "", fold, COMPARE, order)
    return Statement(
        f"{count(n - still, 'point')} can become two",
        "",
        "",
        fold,
        order="Click a point with ◉, and drag it a little along the line that appears: it becomes "
        "two that explain the same weights.",
    )


def _misfit(state: Explained, fold: tuple[tuple[str, str], ...]) -> Statement | None:
    """Return what keeps a set from being an explanation, or None where it is one."""
    off = misfit(state)
    if off == "residual":
        return Statement(
            "These points explain the weights no longer",
            "A point went past where a neuron switches. Drag it back, or undo.",
            "bad",
            fold,
        )
    if off == "margin":
        return Statement(
            "A point is off the margin",
            "The sum of the gradients is still the weights, but training would not stop here.",
            "warn",
            fold,
        )
    return None


ANSWERS: dict[str, Callable[[Explained, Certainty | None], Statement]] = {
    "split": _split,
    "farthest": _farthest,
    "certified": _masses,
}

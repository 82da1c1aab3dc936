"""Commands of lessons: open one, turn its steps, leave it; and record one on the page.

A step with a state puts the page there, in slices, so that a visitor sees it train. What the
student had before is kept, and comes back when the lesson is left.

    >>> from explorer.page.lessons import course
    >>> from explorer.page.lessons.file import packaged_lessons
    >>> from explorer.page.session import Session
    >>> session = Session()
    >>> course.begin(session, packaged_lessons()[0])
    >>> for share in course.putting(session):  # to the end at once
    ...     pass
    >>> session.lesson.at, session.lesson.waiting
    (0, False)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch

from explorer.engine import training
from explorer.engine.certificate import Light
from explorer.engine.data import Dataset
from explorer.engine.settings import changed_settings
from explorer.engine.statement import Statement
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig, TrainState
from explorer.page import play
from explorer.page.cards import CARDS, class_name
from explorer.page.frame import LAYERS, Branch, Frame, Moment
from explorer.page.history import History, Timeline
from explorer.page.lessons.file import (
    MOST_STEPS,
    Goal,
    Lesson,
    State,
    Step,
    packaged_lessons,
    read,
    write,
)
from explorer.page.lessons.goals import ELSEWHERE, KINDS
from explorer.page.opening import attacking_as, training_as
from explorer.page.session import LIVE_STEPS, Session
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.train import commands as train
from explorer.research.pictures.axes import Axes, axes_for
from explorer.research.repeat import is_attacked
from explorer.research.state import to_text

KEPT = (
    "train_config", "attack_config", "seed", "mix", "tool", "label", "truth_shown", "layers",
    "band", "axes", "steps_per_second", "branches", "branch_index", "game", "configs",
)  # fmt: skip
MAPPED = ("point", "split")
COUNTED = ("draw", "train", "attack")  # where a title counts; elsewhere it judges
PLAY = "Play"  # as the words of a step name the button
GUESS = "Guess"  # as they ask for a number before it is seen
UNTITLED = "A lesson without a title yet"  # stands for none while a browser keeps it
BEGUN_ELSEWHERE = (
    "This network did not begin on these points with this seed, so the step will train one that "
    "did: the same number of steps, other weights."
)


@dataclass(frozen=True, eq=False)
class Draft:
    """A lesson that is being recorded: as `Lesson`, with the step that is being written."""

    title: str = ""
    line: str = ""
    steps: tuple[Step, ...] = ()
    at: int = 0

    def lesson(self) -> Lesson:
        """Return it as a lesson. ValueError where a title or a step is missing."""
        if not self.title.strip():
            raise ValueError("A lesson has a title: write one.")
        if not self.steps:
            raise ValueError("A lesson has a step: press “Record this moment”.")
        return Lesson(title=self.title, line=self.line, steps=self.steps)


@dataclass(frozen=True, eq=False)
class Walk:
    """A lesson that is being walked.

    Attributes:
        lesson: the lesson.
        kept: what the page held before.
        at: index of the present step.
        done: indices of the steps whose goal was met, or that were read.
        waiting: whether the page is still to be put where the step begins.
        draft: where this is a preview, what is being recorded.
        over: whether all steps of the course are behind: its last words are shown.
        trained: training of the steps so far, by what makes it: no network is trained twice.
    """

    lesson: Lesson
    kept: Moment
    at: int = 0
    done: frozenset[int] = frozenset()
    waiting: bool = True
    draft: Draft | None = None
    over: bool = False
    trained: dict[str, Timeline[TrainState]] = field(default_factory=dict)

    @property
    def step(self) -> Step:
        """Return the present step."""
        return self.lesson.steps[self.at]


def walk_of(session: Session) -> Walk:
    """Return the lesson that is being walked. ValueError where there is none."""
    if not isinstance(session.lesson, Walk):
        raise ValueError("No lesson is open: choose one from the menu Lessons.")
    return session.lesson


def offers_action(session: Session, key: str, label: str) -> bool:
    """Return whether the headline offers an action: in a lesson, if it leads to an unmet goal.

    Where the words of the step name a button, no other one is offered; where they name Play, none
    that does the same. What a lesson has to say for itself, without a goal, offers none either.
    """
    walk = session.lesson
    if not isinstance(walk, Walk):
        return True
    step = walk.step
    if step.goal is None:
        return not step.cards
    if walk.at in walk.done or (key in play.BEGIN and PLAY in step.caption):
        return False
    if "“" in step.caption:
        return f"“{label}”" in step.caption
    return key in KINDS[step.goal.name].by


def has_task(session: Session) -> bool:
    """Return whether the task of a step is open: what is to be done stands in the words of it."""
    walk = session.lesson
    return isinstance(walk, Walk) and walk.step.goal is not None and walk.at not in walk.done


def asked_value(session: Session, goal: str) -> float | None:
    """Return the number that the present step asks for, if its goal is this one."""
    walk = session.lesson
    asked = walk.step.goal if isinstance(walk, Walk) else None
    return asked.value if asked is not None and asked.name == goal else None


def statement_of(session: Session, made: Statement) -> Statement:
    """Return what the headline tells of this moment: while a task is open, no answer to it.

    It then counts, and warns of what went wrong. It judges, and says its sentence, when the task
    is done or the run is over. Of training, of the map of starts, and of what to do, the words of
    the step alone speak.
    """
    frame = session.frame
    if not isinstance(session.lesson, Walk) or made.tone == "bad":
        return made
    if not has_task(session) or frame.status.over:
        shown = frame.stage == "train" or _shows_map(frame)
        quiet = shown and session.lesson.step.cards
        return replace(made, words="" if quiet else made.words, order="")
    counts = (frame.stage in COUNTED and frame.dataset.n > 0) or frame.proof is not None
    return replace(made, title=made.title * counts, words="", tone="", fold=(), order="")


def _shows_map(frame: Frame) -> bool:
    """Return whether the map of starts is all that the landscape shows: nothing ran on it."""
    held = frame.starts
    if held is None or frame.stage != "landscape" or frame.map_kind != "starts":
        return False
    return not (held.trail or held.arrivals or held.census or held.counting)


def names_play(walk: Walk) -> bool:
    """Return whether the words of the present step ask for Play; True where nobody chose cards."""
    step = walk.step
    if step.goal is not None and step.goal.name == ELSEWHERE:
        return False  # they speak of the button of that page
    return PLAY in step.caption or not step.cards


def naming_words(session: Session) -> tuple[str, str] | None:
    """Return the words that name each button in sight, and those that name what to press now.

    None where all buttons are in sight, as without a lesson.
    """
    walk = session.lesson
    if not isinstance(walk, Walk) or not walk.step.cards:
        return None
    waits = walk.step.goal is not None and walk.at not in walk.done
    return walk.step.caption + walk.step.answer, walk.step.caption * waits


def cards_of(session: Session) -> frozenset[str] | None:
    """Return which panels a lesson leaves in sight, by name; None for all, as without a lesson."""
    walk = session.lesson
    if not isinstance(walk, Walk) or not walk.step.cards:
        return None
    return frozenset(class_name(CARDS.get(card, card)) for card in walk.step.cards)


def offers(session: Session, panel: str) -> bool:
    """Return whether a panel is in sight as far as a lesson decides."""
    cards = cards_of(session)
    return cards is None or panel in cards


def place_of(walk: Walk) -> int | None:
    """Return the number of a lesson of the course; None for one out of a file."""
    known = packaged_lessons()
    return known.index(walk.lesson) if walk.draft is None and walk.lesson in known else None


def step_of(held: object) -> object:
    """Return what tells one step from another, of what a session holds as its lesson."""
    return (held.lesson, held.at) if isinstance(held, Walk) else type(held)


# --- walking ------------------------------------------------------------------------------------
def begin(session: Session, lesson: Lesson, draft: Draft | None = None) -> None:
    """Open a lesson at its first step; `putting` then puts the page there."""
    held = session.lesson
    kept = held.kept if isinstance(held, Walk) else keep(session)
    session.running, session.due, session.message = False, False, ""
    session.lesson = Walk(lesson, kept, draft=draft)


def turn(session: Session, at: int) -> None:
    """Turn to a step; one that only had to be read is done when it is left for the next."""
    walk = walk_of(session)
    if not 0 <= at < len(walk.lesson.steps):
        raise ValueError(f"the lesson has steps 1 to {len(walk.lesson.steps)}; got {at + 1}")
    read = walk.step.goal is None and at > walk.at
    done = walk.done | {walk.at} if read else walk.done
    session.running, session.due, session.message = False, False, ""
    session.lesson = replace(walk, at=at, done=done, waiting=True, over=False)


def end_course(session: Session) -> None:
    """Show the last words of the course in place of its last step."""
    session.lesson = replace(walk_of(session), over=True)


def check(session: Session) -> None:
    """Tick the present step off if its goal is met; training, which has no end, then pauses."""
    walk = session.lesson
    if not isinstance(walk, Walk) or walk.waiting or walk.at in walk.done:
        return
    if walk.step.goal is not None and walk.step.goal.is_met(session.frame):
        session.lesson = replace(walk, done=walk.done | {walk.at})
        if session.frame.stage == "train":
            session.running = False


def note_done(session: Session) -> None:
    """Note that the task was done on the page which the step leads to."""
    walk = walk_of(session)
    if walk.step.goal is not None and walk.step.goal.name == ELSEWHERE:
        session.lesson = replace(walk, done=walk.done | {walk.at})


def leave(session: Session) -> None:
    """Leave the lesson, or its recording; the page is again what it was before the lesson."""
    held = session.lesson
    session.lesson = held.draft if isinstance(held, Walk) else None
    if isinstance(held, Walk):
        bring_back(session, held.kept)


def end_walk(session: Session) -> None:
    """Leave the lesson that is walked, if any, before something else is opened."""
    if isinstance(session.lesson, Walk):
        leave(session)


def keep(session: Session) -> Moment:
    """Return what the page holds, with its branches."""
    session.branch.last = Moment(session.frame, session.settings(("attack_config", "mix")))
    kept = Moment(session.frame, session.settings(KEPT))
    session.configs = dict(session.configs)  # the lesson has its own
    return kept


def bring_back(session: Session, kept: Moment) -> None:
    """Show what the page held."""
    session.running, session.due, session.message = False, False, ""
    session.frame = kept.frame
    session.restore({**kept.settings, "configs": dict(kept.settings["configs"])})
    session.show()


def give_up(session: Session) -> None:
    """Stay where the page is: the present step cannot be put up."""
    session.lesson, session.due = replace(walk_of(session), waiting=False), False


# --- putting the page where a step begins -------------------------------------------------------
def putting(session: Session, seconds: float = float("inf")) -> Iterator[float]:
    """Put the page where the present step begins, in slices; yield the share that is done.

    Another step, or a lesson that is left, ends it. Where Play was pressed meanwhile, it then runs.
    """
    walk = walk_of(session)
    if not walk.waiting:
        return
    state = walk.step.state
    if state is not None:
        for share in _putting(session, walk, state, seconds):
            yield share
            now = session.lesson
            if not isinstance(now, Walk) or (now.at, now.lesson) != (walk.at, walk.lesson):
                return
    session.lesson = replace(walk_of(session), waiting=False)
    session.show()
    if session.due:
        session.due = False
        play.play(session)


def _putting(session: Session, walk: Walk, state: State, seconds: float) -> Iterator[float]:
    run = state.run()
    _clear(session, state, run)
    yield 0.0
    if state.network != "none" or (state.stage == "train" and run.dataset.n):
        yield from _training(session, walk, run, seconds)
    if state.stage in ("draw", "train"):
        session.message = ""
        session.show(stage=state.stage)
        play.assess(session)
        return
    for share in attacking_as(session, run, seconds, is_attacked(run)):
        if session.frame.attack.name != state.attack:
            raise ValueError(session.message)
        yield share
    play.go(session, state.stage)
    if state.stage == "explain" and state.map == "split":
        explain.choose(session, state.point - 1)
    if state.stage == "landscape":
        landscape.show_map(session, state.map)
        if session.frame.landscape is not None:
            landscape.map_point(session, state.point - 1)
    session.message = ""
    play.assess(session)


def _clear(session: Session, state: State, run: Run) -> None:
    """Show the points of a state alone, with its settings and nothing trained."""
    data = run.dataset
    session.running, session.editing, session.game = False, False, None
    session.branches, session.branch_index = [Branch("main")], 0
    session.seed, session.mix, session.configs = run.seed, (0.0, 0.0), {}
    session.train_config = replace(run.train_config, steps=LIVE_STEPS)
    session.frame = Frame("draw", History(data))
    session.axes = _axes(data, state.reach)
    session.tool, session.label = "place", 0 if data.d == 1 else 1
    session.truth_shown, session.layers = state.truth, tuple(LAYERS)
    session.band = state.weights
    session.attack_config = session.entry.config()
    session.show()


def _axes(data: Dataset, reach: float | None) -> Axes:
    """Return the axes of a plane that goes so far from 0; None: as the points need."""
    if reach is None:
        return axes_for(Axes(), data, loaded=True)
    return Axes(x=(0.0, reach)) if data.d == 1 else Axes((0.0, reach), (0.0, reach))


def _reach(session: Session) -> float | None:
    """Return how far the plane goes from 0; None where that is as the points need."""
    axes, data = session.axes, session.frame.dataset
    fits = axes == axes_for(Axes(), data, loaded=True)
    return None if fits or axes != _axes(data, axes.x[1]) else axes.x[1]


def _training(session: Session, walk: Walk, run: Run, seconds: float) -> Iterator[float]:
    """Train as far as the run says, or take what was trained for an earlier step."""
    known = to_text(Run(run.dataset, run.train_config, seed=run.seed, steps=(run.steps[0], 0)))
    line = None if run.exact else walk.trained.get(known)
    if line is None:
        yield from training_as(session, run, seconds)
        walk.trained[known] = session.branch.train.up_to(len(session.branch.train.states))
        last = session.frame.training.state
        if last is not None and walk.trained[known].last_t < last.t:
            walk.trained[known].append(last, lambda _: {}, always=True)
        return
    train.begin(session)
    session.branch.train = line.up_to(len(line.states))
    session.show(training=replace(session.frame.training, state=line.states[-1]))


# --- recording ----------------------------------------------------------------------------------
def record(session: Session, lesson: Lesson | None = None) -> None:
    """Begin to record a lesson, or go on with one."""
    end_walk(session)
    given = lesson and Draft(lesson.title, lesson.line, lesson.steps)
    session.lesson = given or Draft()


def draft_text(session: Session) -> str:
    """Return what is being recorded as text that a browser can keep; "" for no step yet."""
    draft = session.lesson
    if not isinstance(draft, Draft) or not draft.steps:
        return ""
    lesson = Lesson(title=draft.title.strip() or UNTITLED, line=draft.line, steps=draft.steps)
    return write(lesson).decode()


def record_on(session: Session, text: str) -> None:
    """Go on with the recording of `unsaved`. ValueError where the text is no lesson."""
    given = read(text.encode())
    record(session, given)
    if given.title == UNTITLED:
        put_words(session, "", given.line)


def draft_of(session: Session) -> Draft:
    """Return what is being recorded. ValueError where nothing is."""
    if not isinstance(session.lesson, Draft):
        raise ValueError("Nothing is being recorded: choose “Record a lesson” from Lessons.")
    return session.lesson


def add_step(session: Session) -> None:
    """Record this moment as a step, after the one that is being written."""
    draft = draft_of(session)
    if len(draft.steps) >= MOST_STEPS:
        raise ValueError(f"A lesson has at most {MOST_STEPS} steps.")
    made = Step(state=state_of(session))
    at = min(draft.at + 1, len(draft.steps))
    session.lesson = replace(draft, steps=(*draft.steps[:at], made, *draft.steps[at:]), at=at)


def record_again(session: Session) -> None:
    """Take this moment as where the present step begins, and keep its words."""
    put_step(session, state=state_of(session))


def put_step(session: Session, **changes: Any) -> None:  # noqa: ANN401 - fields of Step
    """Change the step that is being written. ValueError for what a step does not take."""
    draft = draft_of(session)
    if not draft.steps:
        raise ValueError("No step yet: press “Record this moment”.")
    made = replace(draft.steps[draft.at], **changes)
    steps = (*draft.steps[: draft.at], made, *draft.steps[draft.at + 1 :])
    session.lesson = replace(draft, steps=steps)


def put_goal(session: Session, name: str, value: float | None = None) -> None:
    """Choose the goal of the step that is being written; an empty name for none."""
    if not name:
        put_step(session, goal=None)
        return
    if name not in KINDS:
        raise ValueError(f"a goal is one of {', '.join(KINDS)}; got {name!r}")
    row = KINDS[name]
    number = None if row.low is None else row.usual if value is None else value
    put_step(session, goal=Goal(name=name, value=number))


def put_words(session: Session, title: str, line: str) -> None:
    """Write the title and the line of the lesson."""
    session.lesson = replace(draft_of(session), title=title[:80], line=line[:160])


def choose_step(session: Session, at: int) -> None:
    """Turn to another step that was recorded, to write it."""
    draft = draft_of(session)
    if 0 <= at < len(draft.steps):
        session.lesson = replace(draft, at=at)


def move_step(session: Session, by: int) -> None:
    """Move the present step forward or back by one."""
    draft = draft_of(session)
    to = draft.at + by
    if 0 <= to < len(draft.steps):
        steps = list(draft.steps)
        steps.insert(to, steps.pop(draft.at))
        session.lesson = replace(draft, steps=tuple(steps), at=to)


def delete_step(session: Session) -> None:
    """Take the present step out."""
    draft = draft_of(session)
    steps = (*draft.steps[: draft.at], *draft.steps[draft.at + 1 :])
    session.lesson = replace(draft, steps=steps, at=max(0, min(draft.at, len(steps) - 1)))


def preview(session: Session) -> None:
    """Walk what was recorded; leaving it leads back to the recording."""
    draft = draft_of(session)
    begin(session, draft.lesson(), draft)


def state_of(session: Session) -> State:
    """Return the present moment as a state; a message says where it cannot be repeated as it is.

    Raises:
        ValueError: for a moment that no state can say, such as weights out of a file.
    """
    now = session.frame
    data, run = now.dataset, now.training.state
    if now.training.given:
        raise ValueError(
            "These weights came from a file, and a lesson holds none: train a network here."
        )
    network, steps = _network(session)
    attacked = now.is_aimed and now.attack.state is not None
    source = data.source
    points: dict[str, Any] = {
        "points": tuple((*x, y) for x, y in zip(data.x.tolist(), data.y.tolist(), strict=True))
    }
    if source is not None and source.seed == session.seed:
        points = {"preset": source.preset, "n": source.n, "noise": source.noise}
    return State(
        **points, seed=session.seed, train=_changes(session.train_config),
        network=network if run is not None else "none", steps=steps,
        stage=cast(Any, now.stage), attack=now.attack.name,
        settings=_changes(session.attack_config),
        attack_steps=now.attack.t if attacked else 0,
        mix=session.mix, map=cast(Any, now.map_kind if now.map_kind in MAPPED else "starts"),
        point=1 if now.landscape is None else now.landscape.present.mapped + 1,
        truth=session.truth_shown,
        weights=session.band,
        reach=_reach(session),
    )  # fmt: skip


def _network(session: Session) -> tuple[Any, int]:
    """Return how the present network was made, and in how many steps."""
    part, data = session.frame.training, session.frame.dataset
    run, line = part.state, session.branch.train.states
    if run is None:
        return "none", 0
    if not run.t and part.certificate is not None and part.certificate.light is Light.EXACT:
        return "exact", 0
    generator = torch.Generator().manual_seed(session.seed)
    first = training.init(data, session.train_config, generator)
    same = bool(line) and line[0].q.shape == first.q.shape
    if not same or not torch.allclose(line[0].q, first.q):
        session.message = BEGUN_ELSEWHERE
    return "trained", run.t


def _changes(config: Any) -> dict[str, Any] | None:  # noqa: ANN401 - either config
    """Return the settings that differ from the defaults, but the length of a live run, if any."""
    live = {"steps"} if isinstance(config, TrainConfig) else set[str]()
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in changed_settings(config).items()
        if name not in live
    } or None

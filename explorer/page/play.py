"""Commands of every stage: turn to one, take its steps, undo, begin again, act on a headline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

from explorer.engine import training
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.roster import DEFAULT, by_key
from explorer.engine.training import TrainConfig
from explorer.page import sight
from explorer.page.frame import BEFORE, Stage, numbers
from explorer.page.history import History
from explorer.page.job import Job, page_waits
from explorer.page.session import LIVE_STEPS, Session, standing
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.proof import commands as proof
from explorer.page.stages.train import commands as train
from explorer.research.runs import granted_target

AT_ONCE_S = 1.0  # arbitrary: longer, and a page without a sign of life would seem broken
OLD_POINTS = (
    "These weights are those of the {} points that they were trained on: the points drawn now are "
    "others. Train again to attack weights of these."
)
BESIDE_TRUTH = ("explain", "landscape", "arena")  # stages that compare with the points
NO_DATA = (
    "These weights came without their data, and this stage compares with it: draw or import the "
    "points they were trained on."
)


def go(session: Session, stage: Stage) -> None:
    """Turn to a stage; the attack begins anew when the weights are not those attacked.

    An attack that was left while it ran goes on when its stage is back.

    Raises:
        ValueError: if what the stage needs is not there yet.
    """
    now = session.frame
    if stage == now.stage:
        return
    if stage in BESIDE_TRUTH and now.training.given and (session.guessing or not now.dataset.n):
        raise ValueError(NO_DATA)
    if now.stage == "attack":
        session.left = now.attack.state if session.running else None
    session.running, session.editing = False, False
    sight.come_home(session)
    if stage == "train" and now.training.state is None:
        train.begin(session)
    elif stage not in BEFORE and not now.newest:
        attack.take_target(session)
    held = session.frame.explain
    if stage == "explain" and (held is None or held.present.target is not session.frame.target):
        explain.begin(session)
    if stage == "landscape":
        landscape.begin(session)
    session.show(stage=stage, status=standing(session, stage))
    part = session.frame.attack
    if stage == "attack" and part.state is None:
        attack.restart(session)
    elif stage == "attack":
        session.running = part.state is session.left and not session.frame.status.over
        if part.judged is not part.state:
            attack.judge(session)
    there = session.frame
    if (
        there.is_aimed
        and there.truth is not now.dataset
        and there.truth is not None
        and there.truth.n
    ):
        session.message = OLD_POINTS.format(there.truth.n)


def assess(session: Session) -> None:
    """Compute the certificate or the verdict of the present moment, and show it."""
    if session.frame.stage == "landscape":  # its handle claims nothing
        session.show()
    elif session.frame.is_aimed:
        attack.judge(session)
    else:
        train.certify(session)


def undo(session: Session) -> None:
    """Undo the last change of the points of this stage, else of the drawn points.

    Raises:
        ValueError: if there is nothing to undo.
    """
    stage, history = _undoable(session)
    if not history.past:
        raise ValueError(f"Nothing to undo: {stage.NO_PAST}")
    stage.restore(session, history.undo())


def redo(session: Session) -> None:
    """Take the last undo back.

    Raises:
        ValueError: if nothing was undone.
    """
    stage, history = _undoable(session)
    if not history.future:
        raise ValueError(f"Nothing to redo: {stage.NO_FUTURE}")
    stage.restore(session, history.redo())


class Undoable(Protocol):
    """The module of a stage whose points the visitor can change."""

    NO_PAST: str
    NO_FUTURE: str

    def history(self, session: Session) -> History[Any]:
        """Return the changes of the points."""

    def restore(self, session: Session, history: History[Any]) -> None:
        """Show the present of `history`."""


def _undoable(session: Session) -> tuple[Undoable, History[Any]]:
    own: dict[Stage, Undoable] = {"explain": explain, "landscape": landscape}
    stage = own.get(session.frame.stage, draw)
    return stage, stage.history(session)


def play(session: Session) -> None:
    """Let the present stage run; training begins where there is none, the handle travels.

    While a step of a lesson is put up, it runs as soon as that is done.

    Raises:
        ValueError: in the landscape of an attack without starts.
    """
    if session.preparing:
        session.due = True
        return
    if not session.frame.is_aimed and session.frame.training.state is None:
        train.begin(session)
    elif session.frame.stage == "draw":
        go(session, "train")
    elif session.frame.stage == "landscape":
        landscape.starts(session)
    session.running = True


def pause(session: Session) -> None:
    """Pause whatever runs, or is about to."""
    session.running = session.due = False


def note_work(session: Session, job: Job | None) -> None:
    """Take up the job that the landscape works at beside the page; None where it rests."""
    if session.work is not job:
        session.choose(work=job)


def at_work(session: Session) -> bool:
    """Return whether the stage on screen goes on by itself: Pause ends that."""
    return session.running or session.due or _rolls(session)


def _rolls(session: Session) -> bool:
    return session.work is not None and session.frame.handle is not None


def halt(session: Session) -> None:
    """Pause what runs; of the landscape, cancel what it works at: what is done stays."""
    if _rolls(session):
        session.work.cancel()
    pause(session)


def tell(session: Session, words: str) -> None:
    """Show a message at the top of the page; an empty string removes it."""
    session.message = words


def set_truth_shown(session: Session, shown: bool) -> None:
    """Reveal the points that the attack looks for, or hide them."""
    session.truth_shown = shown
    session.show()


def reset(session: Session) -> None:
    """Go back to t = 0 of the present stage, with the same seed."""
    session.running = False
    if session.frame.rolled:
        landscape.show_state(session, session.timeline.states[0])
    elif session.frame.stage == "attack":
        attack.restart(session)
    elif not session.frame.is_aimed:
        train.begin(session)


def reseed(session: Session) -> None:
    """Go back to t = 0 of the present stage, with the next seed."""
    session.seed += 1
    reset(session)


def configure(session: Session, **changes: Any) -> None:  # noqa: ANN401 - fields of the configs
    """Change settings of the present stage: the attack starts anew, training goes on.

    In the landscape they are those of the attacks that start there. Settings of the architecture
    or the initialisation start training anew.

    Raises:
        ValueError: for a value that the setting does not take.
    """
    if session.frame.stage == "landscape":
        landscape.configure(session, **changes)
    elif session.frame.stage == "attack":
        attack.configure(session, **changes)
    else:
        train.configure(session, **changes)


def advance(session: Session, seconds: float = float("inf"), steps: int = 10**9) -> int:
    """Take steps of the present stage until time, number or run is over. -> steps taken.

    One step is taken however little time there was, so that 0 means that the run is over. The
    frame holds the new state at once; the next `show` draws it.
    """
    now, begun, taken = session.frame, perf_counter(), 0
    attacking = now.stage == "attack"
    engine: Any = session.entry if attacking else training
    state: Any = now.state
    config: Any = session.attack_config if attacking else session.train_config
    target: Any = now.dataset
    if attacking:
        target = granted_target(now.target, now.truth, config, now.attack.seed or 0)
    if state is None or (now.is_aimed and not attacking):
        return 0
    line = session.timeline
    status, at_once = engine.terminate(state, config), 1
    while not status.over and taken < steps:
        spent = perf_counter() - begun
        if taken and spent >= seconds:
            break
        before, due = state.t, line.next_kept(state.t) - state.t  # states that it keeps are made
        state = engine.advance(target, state, config, min(at_once, due, steps - taken))
        status = engine.terminate(state, config)
        line.append(state, numbers)
        taken += state.t - before
        if perf_counter() - begun - spent < (seconds - spent) / 8:
            at_once *= 2
    if attacking:
        attack.reach(session, state, status)
    else:
        train.reach(session, state, status)
    return taken


def choose_attack(session: Session, name: str) -> None:
    """Turn to another attack, and to its starts. ValueError where it cannot be used here."""
    attack.choose(session, name)
    landscape.begin_starts(session)


def take_certainty(session: Session, made: Certainty) -> None:
    """Show how certain the training points are, or the claims where nobody told those."""
    aim, now = session.frame.aim, session.frame.attack
    if not made.proven or aim is None:
        session.show(attack=replace(now, certainty=made))
        return
    session.show(aim=replace(aim, certainty=made))


def step(session: Session, n: int = 1) -> None:
    """Pause, and take n steps; heavy ones beside the page, as a run that pauses by itself.

    Of a run in the landscape, to the next state that is kept.
    """
    if session.frame.rolled:
        session.running = False
        landscape.replay(session, 0.0)
        return
    _pause_in_run(session)
    if attack.heavy(session) and page_waits():
        _run_to(session, n)
        return
    advance(session, steps=n)
    assess(session)


def _pause_in_run(session: Session) -> None:
    """Pause; begin a run if there is none."""
    session.running = False
    if not session.frame.is_aimed and session.frame.training.state is None:
        train.begin(session)
    if session.frame.stage == "draw":
        session.show(stage="train")


def go_on(session: Session, n: int) -> None:
    """Take n steps: at once if that is quick, else as a run that pauses by itself."""
    if attack.heavy(session) and page_waits():
        step(session, n)
        return
    _pause_in_run(session)
    taken = advance(session, seconds=AT_ONCE_S, steps=n)
    assess(session)
    now = session.frame
    if taken < n and not now.status.over:
        _run_to(session, n - taken)


def _run_to(session: Session, n: int) -> None:
    """Let the run go on for n steps."""
    state = session.frame.state
    if state is not None:
        session.stop_at, session.running = state.t + n, True


# --- What a headline offers: one press carries it out --------------------------------------------
def train_on(session: Session) -> None:
    """Turn to training, and let it run."""
    if session.frame.stage != "train" and session.frame.training.state is not None:
        go(session, "train")
    elif session.frame.stage != "train":
        go(session, "draw")
    play(session)


def take_exact(session: Session) -> None:
    """Turn to training, and take the exact network of its points."""
    if session.frame.stage != "train":
        go(session, "train")
    train.jump_to_exact(session)


def begin_attack(session: Session) -> None:
    """Turn to the attack, and let it run."""
    go(session, "attack")
    play(session)


def attack_again(session: Session) -> None:
    """Attack from other starts: the next seed."""
    reseed(session)
    play(session)


def add_candidates(session: Session) -> None:
    """Attack again with twice as many candidates."""
    configure(session, m=2 * session.attack_config.m)
    play(session)


def begin_own(session: Session) -> None:
    """Begin with nothing drawn, and with the training and the attack of a new page.

    What an example had set, such as weight decay, may leave nothing to attack. One undo brings the
    points back.
    """
    draw.begin_own(session)
    session.train_config, session.configs = TrainConfig(steps=LIVE_STEPS), {}
    attack.choose(session, DEFAULT)
    session.attack_config = by_key(DEFAULT).config()


def turn(session: Session, stage: Stage) -> None:
    """Turn to a stage by hand: Explain asks where a point must be.

    Where no place can be proven it asks which points can become two. What a hand or another
    question put there stays; in a lesson the words of its step say what to do there.
    """
    go(session, stage)
    held, target = session.frame.explain, session.frame.target
    if session.lesson is not None or session.frame.question != "split" or target is None:
        return
    if held is not None and (held.past or held.future or held.present.selected is not None):
        return
    if obstacle(target):
        explain.show_split(session)
    else:
        proof.begin(session)


def open_at(session: Session, stage: Stage) -> None:
    """Turn to the stage of a run that was opened: Explain shows a point as two, if one can be."""
    go(session, stage)
    if stage == "explain" and session.lesson is None and session.frame.explain is not None:
        explain.show_split(session)


def ask_places(session: Session) -> None:
    """Turn to Explain, and ask where a point must be."""
    go(session, "explain")
    proof.begin(session)


ACTIONS: dict[str, Callable[[Session], None]] = {
    "points": draw.take_points,
    "other-class": draw.turn_class,
    "draw": lambda session: go(session, "draw"),
    "own": begin_own,
    "train": train_on,
    "reseed": attack_again,
    "attack": begin_attack,
    "exact": take_exact,
    "play": play,
    "reveal": lambda session: set_truth_shown(session, True),
    "restart": attack_again,
    "candidates": add_candidates,
    "compare": lambda session: go(session, "arena"),
    "explain": lambda session: turn(session, "explain"),
    "landscape": lambda session: go(session, "landscape"),
    "places": ask_places,
    "reveal-points": proof.reveal,
    "allow-points": proof.allow,
}


BEGIN = ("train", "attack", "play")  # while a step of a lesson is put up, these are Play


def act(session: Session, key: str) -> None:
    """Carry out the action of a key. ValueError for an unknown key, or from the command itself."""
    if key not in ACTIONS:
        raise ValueError(f"no action {key!r}; there are: {', '.join(ACTIONS)}")
    call = play if session.preparing and key in BEGIN else ACTIONS[key]
    call(session)

"""Commands of every stage: turn to one, take its steps, undo, begin again, change settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

from explorer.engine import training
from explorer.engine.data import preset
from explorer.engine.status import Status
from explorer.engine.training import TrainConfig
from explorer.page.frame import BEFORE, Recipe, Stage, Training, numbers
from explorer.page.history import History
from explorer.page.job import page_waits
from explorer.page.session import Session, standing
from explorer.page.stages import attack, draw, explain, landscape, train

# Settings that only a new run can have.
BIRTH = {"widths", "bias", "all_biases", "init_scale", "init", "method"}
AT_ONCE_S = 1.0  # arbitrary: longer, and a page without a sign of life would seem broken
OLD_POINTS = (
    "These weights are those of the {} points that they were trained on: the points drawn now are "
    "others. Train again to attack weights of these."
)


BESIDE_TRUTH = ("landscape", "explain", "arena")  # stages that compare with the points
NO_DATA = (
    "These weights came without their data, and this stage compares with it: draw or import the "
    "points they were trained on."
)


def go(session: Session, stage: Stage) -> None:
    """Turn to a stage; the attack begins anew when the weights are not those attacked.

    Raises:
        ValueError: if what the stage needs is not there yet.
    """
    now = session.frame
    if stage == now.stage:
        return
    if stage in BESIDE_TRUTH and now.training.given and (session.guessing or not now.dataset.n):
        raise ValueError(NO_DATA)
    session.running = False
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
    elif stage == "attack" and part.judged is not part.state:
        attack.judge(session)
    there = session.frame
    if there.aimed and there.truth is not now.dataset and there.truth is not None and there.truth.n:
        session.message = OLD_POINTS.format(there.truth.n)


def assess(session: Session) -> None:
    """Compute the certificate or the verdict of the present moment, and show it."""
    if session.frame.stage == "landscape":  # its handle claims nothing
        session.show()
    elif session.frame.aimed:
        attack.judge(session)
    else:
        train.certify(session)


def undo(session: Session) -> None:
    """Undo the last change of the points of this stage, else of the drawn points.

    Raises:
        ValueError: if there is nothing to undo.
    """
    stage = _undoable(session)
    history = stage.history(session)
    if not history.past:
        raise ValueError(f"Nothing to undo: {stage.NO_PAST}")
    stage.restore(session, history.undo())


def redo(session: Session) -> None:
    """Take the last undo back.

    Raises:
        ValueError: if nothing was undone.
    """
    stage = _undoable(session)
    history = stage.history(session)
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


def _undoable(session: Session) -> Undoable:
    own: dict[Stage, Undoable] = {"explain": explain, "landscape": landscape}
    return own.get(session.frame.stage, draw)


def play(session: Session) -> None:
    """Let the present stage run; training begins where there is none, the handle travels.

    Raises:
        ValueError: in the landscape of an attack without starts.
    """
    if not session.frame.aimed and session.frame.training.state is None:
        train.begin(session)
    elif session.frame.stage == "draw":
        go(session, "train")
    elif session.frame.stage == "landscape":
        landscape.starts(session)
    session.running = True


def pause(session: Session) -> None:
    """Pause whatever runs."""
    session.running = False


def set_speed(session: Session, steps_per_second: float) -> None:
    """Set the largest speed of play."""
    session.steps_per_second = steps_per_second


def set_seed(session: Session, seed: int) -> None:
    """Set the seed of the next start; a present run goes on."""
    session.seed = seed


def acknowledge(session: Session, number: int) -> None:
    """Note the newest frame that a browser has drawn."""
    session.drawn = number


def tell(session: Session, words: str) -> None:
    """Show a message at the top of the page; an empty string removes it."""
    session.message = words


def set_layers(session: Session, layers: tuple[str, ...]) -> None:
    """Choose what is drawn behind the points, of `LAYERS`."""
    session.layers = layers


def point_at(session: Session, i: int) -> None:
    """Mark point i of the truth on the plane, as a pointer on a chart is over it; -1 for none."""
    session.pointed = i


def set_truth_shown(session: Session, shown: bool) -> None:
    """Reveal the points that the attack looks for, or hide them."""
    session.truth_shown = shown
    session.show()


def reset(session: Session) -> None:
    """Go back to t = 0 of the present stage, with the same seed."""
    session.running = False
    if session.frame.stage == "attack":
        attack.restart(session)
    elif not session.frame.aimed:
        train.begin(session)


def reseed(session: Session) -> None:
    """Go back to t = 0 of the present stage, with the next seed."""
    session.seed += 1
    reset(session)


def configure(session: Session, **changes: Any) -> None:  # noqa: ANN401 - fields of the configs
    """Change settings of the present stage: the attack starts anew, training goes on.

    In the landscape they are those of the attacks that start there.

    Settings of the architecture or the initialisation start training anew.

    Raises:
        ValueError: for a value that the setting does not take.
    """
    if session.frame.stage == "landscape":
        landscape.configure(session, **changes)
        return
    if session.frame.stage == "attack":
        session.attack_config = replace(session.attack_config, **changes)
        session.running = False
        attack.restart(session)
        return
    config, data = replace(session.train_config, **changes), session.frame.dataset
    train.check_room(config.widths, data.d, data.outputs)
    session.train_config = config
    state = session.frame.training.state
    if state is None:
        return
    if changes.keys() & BIRTH:
        session.running = False
        train.begin(session)
        return
    now = session.frame.training
    part = replace(now, recipe=_recipe_after(now, changes, session.train_config))
    if "loss" in changes:
        same = replace(session.train_config, revive=False)
        part = replace(part, state=training.refresh(session.frame.dataset, state, same))
    session.show(training=part, status=Status.RUNNING)


def _recipe_after(now: Training, changes: dict[str, Any], config: TrainConfig) -> Recipe | None:
    """Return the recipe of a run whose settings changed: none, unless no step was taken by others.

    How many steps are planned, no step depends on.
    """
    free = now.state is None or not now.state.t or set(changes) <= {"steps"}
    return replace(now.recipe, config=config) if now.recipe is not None and free else None


def advance(session: Session, seconds: float = float("inf"), steps: int = 10**9) -> int:
    """Take steps of the present stage until time, number or run is over. -> steps taken.

    One step is taken however little time there was, so that 0 means that the run is over. The
    frame holds the new state at once; the next `show` draws it.
    """
    now, begun, taken = session.frame, perf_counter(), 0
    attacking = now.stage == "attack"
    engine: Any = session.entry if attacking else training
    target: Any = now.target if attacking else now.dataset
    state: Any = now.state
    config: Any = session.attack_config if attacking else session.train_config
    if state is None or (now.aimed and not attacking):
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
        session.put(attack=replace(now.attack, state=state), status=status)
    else:
        decay = config.weight_decay if taken else now.training.weight_decay
        known = now.training.recipe
        if (
            taken and known is not None and known.finish is not None
        ):  # a finished one goes elsewhere
            known = replace(known, finish=None) if state.t - taken <= known.finish else None
        part = replace(now.training, state=state, weight_decay=decay, recipe=known)
        session.put(training=part, status=status)
    return taken


def heavy(session: Session) -> bool:
    """Return whether a single step of this stage may take a second."""
    return session.frame.stage == "attack" and session.entry.heavy


def steps_beside(
    session: Session, steps: int, seconds: float
) -> tuple[Callable[[], list[Any]], Callable[[list[Any]], int]]:
    """Return work that takes steps of the attack, for a thread, and the command that shows them.

    Args:
        session: stays as it is while the work goes on.
        steps: how many at most, 1 or more.
        seconds: after these the work takes no further step.

    Returns:
        The work, which returns states; and a command that takes them and returns how many steps
        they are: none where the run was paused meanwhile, or is another one.
    """
    now, entry, config = session.frame, session.entry, session.attack_config
    first: Any = now.attack.state

    def work() -> list[Any]:
        made, begun = [first], perf_counter()
        while len(made) <= steps and not entry.terminate(made[-1], config).over:
            made.append(entry.step(now.target, made[-1], config))
            if perf_counter() - begun > seconds:
                break
        return made[1:]

    def take(made: list[Any]) -> int:
        same = session.frame.attack.state is first and session.attack_config is config
        if not same or not session.running or session.frame.stage != "attack":
            return 0
        for state in made:
            session.timeline.append(state, numbers)
        last = made[-1] if made else first
        part = replace(session.frame.attack, state=last)
        session.put(attack=part, status=entry.terminate(last, config))
        return len(made)

    return work, take


def step(session: Session, n: int = 1) -> None:
    """Pause, and take n steps; heavy ones beside the page, as a run that pauses by itself."""
    _pause_in_run(session)
    if heavy(session) and page_waits():
        _run_to(session, n)
        return
    advance(session, steps=n)
    assess(session)


def _pause_in_run(session: Session) -> None:
    """Pause; begin a run if there is none."""
    session.running = False
    if not session.frame.aimed and session.frame.training.state is None:
        train.begin(session)
    if session.frame.stage == "draw":
        session.show(stage="train")


def go_on(session: Session, n: int) -> None:
    """Take n steps: at once if that is quick, else as a run that pauses by itself."""
    if heavy(session) and page_waits():
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
POINTS = "alternating-circle"  # every point holds the margin, so every point leaves a trace


def take_points(session: Session) -> None:
    """Draw points that alternate around a circle; one undo brings back what was drawn."""
    draw.load(session, preset(POINTS, seed=session.seed))


def turn_class(session: Session) -> None:
    """Take up the class that has no point yet."""
    drawn = set(session.frame.dataset.y.tolist())
    draw.set_tool(session, "place")
    draw.set_label(session, -1 if 1.0 in drawn else 1)


def train_on(session: Session) -> None:
    """Turn to training, and let it run."""
    if session.frame.stage != "train" and session.frame.training.state is not None:
        go(session, "train")
    elif session.frame.stage != "train":
        go(session, "draw")
    play(session)


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


ACTIONS: dict[str, Callable[[Session], None]] = {
    "points": take_points,
    "other-class": turn_class,
    "draw": lambda session: go(session, "draw"),
    "train": train_on,
    "reseed": attack_again,
    "attack": begin_attack,
    "play": play,
    "reveal": lambda session: set_truth_shown(session, True),
    "restart": attack_again,
    "candidates": add_candidates,
    "compare": lambda session: go(session, "arena"),
    "explain": lambda session: go(session, "explain"),
}


def act(session: Session, key: str) -> None:
    """Carry out the action of a key. ValueError for an unknown key, or from the command itself."""
    if key not in ACTIONS:
        raise ValueError(f"no action {key!r}; there are: {', '.join(ACTIONS)}")
    ACTIONS[key](session)

"""Commands on the drawn points: add, edit, clear, load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch

from explorer.engine import data, training
from explorer.engine.data import Dataset, preset
from explorer.engine.roster import DEFAULT
from explorer.engine.status import Status
from explorer.engine.store import Run
from explorer.engine.training import TrainState
from explorer.page import sight
from explorer.page.frame import Attacking, Frame, Moment, Stage, Training, numbers
from explorer.page.history import MOST_BYTES, History, Timeline
from explorer.page.session import Session, standing
from explorer.style import CLASSES

POINTS = "alternating-circle"  # every point holds the margin, so every point leaves a trace
NO_PAST, NO_FUTURE = "no edit was made before.", "no edit was taken back."
REVIVED = (
    "Neurons that were off on every point were drawn anew: without them the network could not "
    "learn the new points from where it is."
)
CLASSES_CHANGED = (
    "The number of classes changed, and with it the number of the network's outputs: train anew."
)


def edit(session: Session, dataset: Dataset, gesture: int | None = None) -> None:
    """Take `dataset` as the drawn set; edits of one gesture are undone together."""
    drawing = session.frame.drawing.push(dataset, gesture)
    _keep_run(session, drawing)
    _go_on(session, drawing)


def add(
    session: Session,
    points: Iterable[tuple[Sequence[float], float]],
    gesture: int | None = None,
) -> None:
    """Add ((x, ...), label) points; points that do not fit are refused, the others are added."""
    before = dataset = session.frame.dataset
    try:
        for x, label in points:
            dataset = dataset.with_point(x, label)
    finally:
        if dataset is not before:
            edit(session, dataset, gesture)


def clear(session: Session) -> None:
    """Erase all points and what was trained on them; undo brings all of it back."""
    now = session.frame
    awaited = now.training.given and now.training.state is not None and not now.training.state.t
    if now.dataset.n:
        nothing = now.drawing.push(data.empty(now.dataset.d))
        _keep_run(session, nothing)
        (_go_on if awaited else _begin_anew)(session, nothing)


def load(session: Session, dataset: Dataset) -> None:
    """Begin anew with another set, 1-D or 2-D; one undo brings back the old one and its run.

    What was trained belongs to the old points: the next run has fresh weights and time 0.

    Raises:
        ValueError: for points that the plane cannot show.
    """
    check_shown(dataset)
    drawing = session.frame.drawing.push(dataset)
    _keep_run(session, drawing)
    sight.fit(session, dataset, loaded=True)
    awaited = session.frame.training.given and not session.frame.dataset.n
    (_go_on if awaited else _begin_anew)(session, drawing)


def put(session: Session, dataset: Dataset) -> None:
    """Draw another set in place of this one: an edit, or a beginning where none was drawn."""
    now = session.frame.dataset
    (edit if now.n and now.d == dataset.d else load)(session, dataset)


def take_points(session: Session) -> None:
    """Draw points that alternate around a circle; one undo brings back what was drawn."""
    load(session, preset(POINTS, seed=session.seed))


def turn_class(session: Session) -> None:
    """Take up the class that has no point yet."""
    drawn = set(session.frame.dataset.y.tolist())
    session.choose(tool="place", label=-1 if 1.0 in drawn else 1)


def check_shown(dataset: Dataset) -> None:
    """ValueError for points that the plane cannot show."""
    if dataset.d not in (1, 2):
        raise ValueError(
            f"the plane shows points of 1 or 2 coordinates; got {dataset.d}. "
            "The command line takes them."
        )
    if dataset.outputs > (4 if dataset.d == 2 else 1):
        raise ValueError(
            f"the plane shows up to 4 classes and a line 2; got {dataset.outputs} classes on "
            f"{dataset.d} coordinate(s). Leave some classes out."
        )


def begin_own(session: Session, d: int = 2) -> None:
    """Begin with nothing drawn, on the plane or a line; one undo brings the points back."""
    load(session, data.empty(d))


def classes(session: Session) -> list[int]:
    """Return the labels that can be drawn, the first of them first; a line has two."""
    most = 2 if session.frame.dataset.d == 1 else session.classes
    return [*CLASSES][:most]


def history(session: Session) -> History[Dataset]:
    """Return the drawn points with the sets drawn before."""
    return session.frame.drawing


def restore(session: Session, history: History[Dataset]) -> None:
    """Show the points of `history`, with the run that was left there.

    Without one training goes on with these points, unless none of them was there.
    """
    there = [m for m in session.branch.left if m.frame.dataset is history.present]
    _keep_run(session, history)
    if there:
        _come_back(session, history, there[0])
        return
    old, new = set(_rows(session.frame.dataset)), set(_rows(history.present))
    if old and new and not old & new:
        sight.fit(session, history.present, loaded=True)
        _begin_anew(session, history)
    else:
        _go_on(session, history)


def _keep_run(session: Session, history: History[Dataset]) -> None:
    """Keep the run on screen for an undo or redo that returns to its points.

    `history` is what follows. Weights that took no step since an edit are not kept: the edit
    makes the same of them again. Runs out of reach go, and the oldest beyond `MOST_BYTES`.
    """
    now, branch = session.frame, session.branch
    reached = {id(points) for points in (*history.past, *history.future)}
    left = [moment for moment in branch.left if id(moment.frame.dataset) in reached]
    states = now.training.state, now.attack.state
    taken = any(a is not b for a, b in zip(states, branch.carried, strict=True))
    if states[0] is not None and taken and id(now.dataset) in reached:
        left = [moment for moment in left if moment.frame.dataset is not now.dataset]
        settings = session.settings(("train_config", "attack_config", "mix", "axes"))
        left.append(Moment(now, settings, branch.train.copy(), branch.attack.copy()))
    while len(left) > 1 and sum(moment.bytes for moment in left) > MOST_BYTES:
        del left[0]
    branch.left = left


def _come_back(session: Session, history: History[Dataset], moment: Moment) -> None:
    """Show the points of `history` with their run as it was; who watches training goes on there."""
    branch, held, now = session.branch, moment.frame, session.frame.stage
    stage = now if (now, held.stage) == ("train", "draw") else held.stage
    session.running = session.running and now == stage == "train"
    sight.fit(session, history.present)
    branch.train, branch.attack, branch.carried = moment.train, moment.attack, (None, None)
    session.frame = replace(held, drawing=history, stage=stage)
    session.restore(moment.settings)
    session.show(status=standing(session, stage))


def _rows(dataset: Dataset) -> list[tuple[float, ...]]:
    """Return the points with their labels."""
    return [(*x, y) for x, y in zip(dataset.x.tolist(), dataset.y.tolist(), strict=True)]


def _begin_anew(session: Session, history: History[Dataset]) -> None:
    """Show the points of `history`, with nothing trained on them."""
    session.running = False
    session.branch.train, session.branch.attack = Timeline(), Timeline()
    if session.frame.dataset.outputs > history.present.outputs == 1:
        session.gave_way = session.gave_way or DEFAULT  # one of many classes is no longer asked for
    if any(session.mix):  # of the points before
        session.mix = (0.0, 0.0)
        session.attack_config = session.entry.suit(session.attack_config, 0.0)
    session.frame = Frame("draw", history, attack=Attacking(session.frame.attack.name))
    session.show()


def is_open(session: Session) -> bool:
    """Return whether a press on the plane edits the points: beyond 1 Draw it takes the pencil."""
    return session.frame.stage == "draw" or session.editing or not session.frame.dataset.n


def _go_on(session: Session, history: History[Dataset]) -> None:
    """Show the points of `history`; training goes on with them, from the present weights."""
    dataset = history.present
    old, state = session.frame, session.frame.training.state
    if state is not None and (state.net.d, state.net.outputs) != (dataset.d, dataset.outputs):
        if state.net.outputs != dataset.outputs:
            session.message = CLASSES_CHANGED
        sight.fit(session, dataset)
        _begin_anew(session, history)
        return
    kept = _still_there(old, dataset)
    if state is not None and state.t and dataset.n and not kept:
        session.branch.carried = (None, None)  # no edit makes this run again
        _keep_run(session, history)
        sight.fit(session, dataset)
        _begin_anew(session, history)
        return
    stage: Stage = "train" if old.is_aimed else old.stage
    if old.is_aimed:
        session.running = False
        session.message = "The points changed; the attacked weights belong to the old ones."
    known, again = None, _begun_again(old.training, dataset)
    if again is not None:
        state, known = again
        session.branch.train = Timeline()
        session.branch.train.append(state, numbers)
    elif state is not None:
        # Weights of a file stay as they are: their points are asked for, not new ones.
        given = old.training.given and not state.t
        config = replace(session.train_config, revive=session.train_config.revive and not given)
        before, state = state.net, training.refresh(dataset, state, config)
        if not torch.equal(before.theta, state.net.theta):
            session.message = REVIVED
    sight.fit(session, dataset)
    part = Training(
        state, weight_decay=old.training.weight_decay, loss=old.training.loss,
        given=old.training.given, plan=known, before=state, kept=kept,
    )  # fmt: skip
    aim = old.aim if old.aim is not None and old.aim.truth.n else None
    session.branch.carried = part.state, old.attack.state
    session.show(drawing=history, training=part, stage=stage, aim=aim, status=Status.RUNNING)


def _still_there(old: Frame, dataset: Dataset) -> frozenset[int]:
    """Return which points of `dataset` the run was trained on; a point that moved is the same.

    An edit moves where count and labels stay, and not all of several places change.
    """
    before, part = old.dataset, old.training
    known = part.kept if part.state is part.before else None
    trained = frozenset(range(before.n)) if known is None else known
    if torch.equal(before.y, dataset.y):
        same = (before.x == dataset.x).all(1)
        if before.n == 1 or same.any():
            return trained
    rows = _rows(before)
    there = {rows[i] for i in trained}
    return frozenset(i for i, row in enumerate(_rows(dataset)) if row in there)


def _begun_again(old: Training, dataset: Dataset) -> tuple[TrainState, Run] | None:
    """Return the first state of a run that has taken no step, on other points; None else.

    Its weights are drawn from the seed again, so that they can be once more.
    """
    if old.state is None or old.state.t or old.plan is None or old.plan.exact:
        return None
    made = replace(old.plan, dataset=dataset)
    generator = torch.Generator().manual_seed(made.seed)
    return training.init(dataset, made.train_config, generator), made

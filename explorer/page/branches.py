"""Time: scrub back through a run, branch from a moment, go to another branch."""

from __future__ import annotations

from dataclasses import replace

import torch

from explorer.engine import training
from explorer.engine.energy.starts import mix_from_weights
from explorer.engine.network import phi
from explorer.engine.status import Status
from explorer.engine.training import TrainState
from explorer.page import play, sight
from explorer.page.frame import Branch, Frame, Moment
from explorer.page.session import Session, standing
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.landscape.words import mixture

TAKEN = "This is the run from {name}. The mark “{old}” on the time line brings back the run before."
KEPT = (
    "This run is kept: the mark “{old}” on the time line brings it back. What you do now goes on "
    "beside it."
)
MOST_BRANCHES = 8  # arbitrary: each keeps a bounded timeline


def seek(session: Session, index: int) -> None:
    """Show the kept state at `index` of the present stage; later states stay until the next step.

    A training state is shown on the present points: they may have been edited since.
    """
    line, stage, rolled = session.timeline, session.frame.stage, session.frame.rolled
    if not line.states or (session.frame.is_aimed and stage != "attack" and not rolled):
        raise ValueError("Nothing to go back to: this stage has taken no step.")
    session.running = False
    state = line.states[min(max(index, 0), len(line.states) - 1)]
    if rolled:
        landscape.show_state(session, state)
    elif stage == "attack":
        session.put(attack=replace(session.frame.attack, state=state))
        session.show(status=standing(session, session.frame.stage))
    else:
        state, held = _on_present_points(session, state), session.frame.training
        part = replace(held, state=state, certificate=None, certified=None, given=False)
        session.show(stage="train", training=part, status=Status.RUNNING)
    play.assess(session)


def _on_present_points(session: Session, state: TrainState) -> TrainState:
    data = session.frame.dataset
    if state.q.shape == data.y.shape and torch.allclose(state.q, data.y * phi(state.net, data.x)):
        return state
    return training.refresh(data, state, replace(session.train_config, revive=False))


def in_sight(session: Session) -> list[int]:
    """Return the numbers of the branches that the line of time shows.

    Those of points from before the plane was emptied are left behind, until an undo brings them
    back.
    """
    drawing = session.frame.drawing
    reached = [*drawing.past, drawing.present]
    empty = max((i for i, points in enumerate(reached) if not points.n), default=-1)
    behind = {id(points) for points in reached[: empty + 1]}
    return [
        i for i, one in enumerate(session.branches)
        if i == session.branch_index or one.last is None
        or id(one.last.frame.dataset) not in behind
    ]  # fmt: skip


def branch(session: Session) -> None:
    """Begin a new branch at this moment; the old branch stays as it is.

    That of a run in the landscape goes on in the attack stage.
    """
    now, old = session.frame, session.branch
    state = now.state
    if state is None:
        raise ValueError("Nothing to branch from: train first.")
    if len(in_sight(session)) >= MOST_BRANCHES:
        raise ValueError(f"At most {MOST_BRANCHES} branches are kept; go on in one of them.")
    session.running = False
    if now.rolled:
        _take_run(session)
        return
    session.branch.last = _present(session)
    name = f"branch {len(session.branches)}, from {now.stage} step {state.t}"
    train, attack = old.train, old.attack
    if now.stage == "attack":
        attack = attack.up_to(attack.nearest(state.t))
    else:
        train, attack = train.up_to(train.nearest(state.t)), type(attack)()
    fresh = Branch(name, train.up_to(len(train.states) - 1), attack.up_to(len(attack.states) - 1))
    _begin(session, fresh)
    session.message = KEPT.format(old=old.name)
    session.show()


def _take_run(session: Session) -> None:
    """Take the run from the landscape's handle to the attack stage, on a branch of its own."""
    held, old = landscape.starts(session), session.branch
    mix, of = mix_from_weights(*held.weights), held.problem.of
    old.last = replace(_present(session), frame=replace(session.frame, stage="attack"))
    train = old.train.up_to(len(old.train.states) - 1)
    name, line = mixture(held.weights, short=True), held.line.up_to(held.line.nearest(held.t))
    _begin(session, Branch(f"from {name}", train, line))
    session.message = TAKEN.format(name=name, old=old.name)
    session.mix, session.attack_config = mix, of.settings_at(mix[1])
    part = session.frame.attack
    session.put(attack=replace(part.without_run(part.name), state=held.shown, mix=mix))
    play.go(session, "attack")


def _begin(session: Session, fresh: Branch) -> None:
    """Go on in a new branch; those out of sight are forgotten."""
    session.branches = [*(session.branches[i] for i in in_sight(session)), fresh]
    session.branch_index = len(session.branches) - 1


def select(session: Session, index: int) -> None:
    """Go to another branch, to the moment at which it was left, with its points."""
    if not 0 <= index < len(session.branches):
        raise ValueError(f"there are branches 0 to {len(session.branches) - 1}; got {index}")
    session.running = False
    session.branch.last = _present(session)
    session.branch_index = index
    last = session.branch.last
    if last is not None:
        adopt(session, last.frame)
        session.restore(last.settings)


def adopt(session: Session, frame: Frame) -> None:
    """Show a frame of another branch or of a file. Undo brings the points back."""
    attack.turn_to(session, frame.attack.name)
    drawing = session.frame.drawing
    other = frame.dataset is not drawing.present
    if other:
        drawing = drawing.push(frame.dataset)
    sight.fit(session, frame.dataset, loaded=other)
    session.frame = replace(frame, drawing=drawing)
    session.show()


def make_room(session: Session, name: str) -> str:
    """Keep the present attack run, if any, on its branch, before other settings are loaded.

    What follows is then on a new branch of this name.

    Returns:
        Where the run that was there is kept, as a sentence, or an empty string.
    """
    old, now = session.branch, session.frame
    if max(old.attack.last_t, now.attack.t) <= 0:
        return ""
    if len(in_sight(session)) >= MOST_BRANCHES:
        raise ValueError(
            f"At most {MOST_BRANCHES} branches are kept, and loading would take the attack run "
            "that is here. Reset it or go to another branch first."
        )
    session.running = False
    old.last = _present(session)
    _begin(session, Branch(name, old.train.up_to(len(old.train.states) - 1)))
    return f" The run that was there is kept: branch “{old.name}”."


def _present(session: Session) -> Moment:
    """Return where the present branch is left, and with which settings."""
    return Moment(session.frame, session.settings(("attack_config", "mix")))

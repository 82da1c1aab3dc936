"""Time: scrub back through a run, branch from a moment, go to another branch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from explorer.engine import training
from explorer.engine.network import phi
from explorer.engine.roster import AttackConfig
from explorer.engine.status import Status
from explorer.engine.training import TrainState
from explorer.page import play
from explorer.page.frame import Branch, Frame, Moment, numbers
from explorer.page.session import Session, standing
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.landscape import commands as landscape

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
    session.branch.last = _present(session)
    name = f"branch {len(session.branches)}, from {now.stage} step {state.t}"
    train, attack = old.train, old.attack
    if now.stage == "attack" or now.rolled:
        attack = attack.up_to(attack.nearest(state.t))
    else:
        train, attack = train.up_to(train.nearest(state.t)), type(attack)()
    fresh = Branch(name, train.up_to(len(train.states) - 1), attack.up_to(len(attack.states) - 1))
    _begin(session, fresh)
    play.go(session, "attack") if now.rolled else session.show()


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
    draw.fit(session, frame.dataset, loaded=other)
    session.frame = replace(frame, drawing=drawing)
    session.show()


def make_room(session: Session) -> str:
    """Keep the present attack run, if any, on its branch, before another one is loaded.

    What follows is then on a new branch. A run that was itself loaded, and took no step since, is
    not kept: it can be loaded again.

    Returns:
        Where the run that was there is kept, as a sentence, or an empty string.
    """
    old, now = session.branch, session.frame
    reached = max(old.attack.last_t, now.attack.t)
    again = old.loaded is not None and old.attack.states[-1:] == [old.loaded]
    if reached <= 0 or (again and reached == old.attack.last_t):
        return ""
    if len(in_sight(session)) >= MOST_BRANCHES:
        raise ValueError(
            f"At most {MOST_BRANCHES} branches are kept, and loading would take the attack run "
            "that is here. In 3 Attack, reset it or go to another branch first."
        )
    session.running = False
    old.last = replace(_present(session), frame=replace(now, stage="attack"))
    name = f"branch {len(session.branches)}, a loaded run"
    _begin(session, Branch(name, old.train.up_to(len(old.train.states) - 1)))
    return f" The run that was there is kept: branch “{old.name}” in 3 Attack."


def load_run(
    session: Session, name: str, config: AttackConfig, mix: tuple[float, float], states: list[Any]
) -> str:
    """Show a run of the attack `name` made by another part: its states, first to last.

    Returns:
        Where the run that was there is kept, as a sentence, or an empty string.
    """
    kept = make_room(session)
    attack.choose(session, name)
    session.attack_config = config
    attack.remix(session, *mix)
    session.attack_config = config  # a fitted start of noise is kept as well
    for state in states:  # the first one takes the place of that of the page's own start
        extend_run(session, state)
    status = session.entry.terminate(states[-1], config)
    session.show(attack=replace(session.frame.attack, state=states[-1], seed=None), status=status)
    play.assess(session)
    return kept


def extend_run(session: Session, state: Any) -> None:  # noqa: ANN401 - of any attack
    """Add a state to a run that was loaded."""
    session.branch.attack.append(state, numbers, always=True)
    session.branch.loaded = state


def _present(session: Session) -> Moment:
    """Return where the present branch is left, and with which settings."""
    return Moment(session.frame, session.settings(("attack_config", "mix")))

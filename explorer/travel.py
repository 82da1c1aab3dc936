"""Time: scrub back through a run, branch from a moment, go to another branch."""

from __future__ import annotations

from dataclasses import replace

import torch

from explorer.engine import training
from explorer.engine.network import phi
from explorer.engine.status import Status
from explorer.engine.training import TrainState
from explorer.frame import Branch
from explorer.session import Session

MOST_BRANCHES = 8  # arbitrary: each keeps a bounded timeline


def seek(session: Session, index: int) -> None:
    """Show the kept state at `index` of the present stage; what follows stays until one plays.

    A training state is shown on the present points: they may have been edited since.
    """
    line = session.timeline
    if not line.states:
        raise ValueError("Nothing to go back to: no step was taken yet.")
    session.running = False
    state = line.states[min(max(index, 0), len(line.states) - 1)]
    if session.frame.aimed:
        session.show(attack=state, status=Status.RUNNING)
    else:
        state = _on_present_points(session, state)
        session.show(stage="train", train=state, certificate=None, status=Status.RUNNING)
    session.assess()


def _on_present_points(session: Session, state: TrainState) -> TrainState:
    data = session.frame.dataset
    if state.q.shape == data.y.shape and torch.allclose(state.q, data.y * phi(state.net, data.x)):
        return state
    return training.refresh(data, state, replace(session.train_config, revive=False))


def branch(session: Session) -> None:
    """Go on from this moment on a line of its own; the old line stays as it is."""
    now, old = session.now, session.branch
    state = now.state
    if state is None:
        raise ValueError("Nothing to branch from: train first.")
    if len(session.branches) >= MOST_BRANCHES:
        raise ValueError(f"At most {MOST_BRANCHES} branches are kept; go on in one of them.")
    session.running = False
    old.last = now
    name = f"branch {len(session.branches)}, from {now.stage} step {state.t}"
    train, attack = old.train, old.attack
    if now.stage == "attack":
        attack = attack.cut(attack.nearest(state.t))
    else:
        train, attack = train.cut(train.nearest(state.t)), type(attack)()
    fresh = Branch(name, train.cut(len(train.states) - 1), attack.cut(len(attack.states) - 1))
    session.branches = [*session.branches, fresh]
    session.branch_index = len(session.branches) - 1
    session.show()


def select(session: Session, index: int) -> None:
    """Go to another branch, where it was left, with the points it had then."""
    if not 0 <= index < len(session.branches):
        raise ValueError(f"there are branches 0 to {len(session.branches) - 1}; got {index}")
    session.running = False
    session.branch.last = session.now
    session.branch_index = index
    last = session.branch.last
    if last is not None:
        session.adopt(last)

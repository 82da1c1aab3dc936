"""What a later stage does to the points, as frames: Explain asks its question, Compare its attacks.

The same commands do it as on the page, so each frame is one that a page shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.others import farthest_set, forced_mass
from explorer.page import play
from explorer.page.aim import victim_of
from explorer.page.frame import Frame, Shown
from explorer.page.recording.landscape import with_aim
from explorer.page.session import Session
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.proof import commands as proof
from explorer.research.explained import certified_masses, rivals_of
from explorer.research.pictures.axes import Axes
from explorer.research.sweep import arena
from explorer.research.words import arena as arena_words

MOVES = 32  # frames of a point on its way; arbitrary
MOST = 60  # frames of a question; arbitrary: four seconds
STANDS = 16  # frames that an answer stands before the next; arbitrary: a second
TORN = 0.1  # of the plane's half size: how far a point is dragged out of its cell; arbitrary
Act = Callable[[Session], Iterator[None]]


def explained_frames(end: Frame, axes: Axes, goal: str = "") -> Iterator[Frame]:
    """Yield what the explain stage shows while the goal of a step is met.

    Args:
        end: the last frame of the run on these weights.
        axes: of the plane.
        goal: what is asked, a name of `goals.KINDS`; of any other every point that can splits.
    """
    session = Session(axes=axes)
    session.frame = replace(with_aim(end), stage="explain")
    explain.begin(session)
    yield from [session.frame] * (STANDS // 2)
    act = ACTS.get(goal, _splits)
    if session.frame.explain is None and act not in (_places, _forbids):
        return  # no point splits here
    shown = [session.frame for _ in act(session)]
    for i in sorted({round(at) for at in np.linspace(0, len(shown) - 1, min(len(shown), MOST))}):
        yield shown[i]


def _splits(session: Session) -> Iterator[None]:
    """Split each point that can become two, up to the walls of its cell."""
    for i in range(explain.explanation(session).truth.n):
        if explain.explanation(session).pinned[i]:
            continue
        explain.choose(session, i)
        begun = explain.explanation(session).now.x[i]
        explain.split_widest(session)
        way = explain.explanation(session).now.x[i] - begun
        play.undo(session)
        explain.choose(session, i)
        for share in np.linspace(0, 1, MOVES)[1:]:
            explain.pull(session, begun + share * way, free=False)
            yield
        explain.drop(session)


def _breaks(session: Session) -> Iterator[None]:
    """Drag a point out of its cell: the first that cannot be split, if there is one."""
    state = explain.explanation(session)
    i = int(state.pinned.int().argmax())
    explain.choose(session, i)
    for share in np.linspace(0, TORN, MOVES)[1:]:
        explain.pull(session, state.now.x[i] + share * session.extent, free=True)
        yield


def _certifies(session: Session) -> Iterator[None]:
    """Ask which points are certified."""
    state, points = explain.explanation(session), session.frame.truth
    assert points is not None
    if obstacle(state.target):
        explain.take_forced(session, forced_mass(rivals_of(state, session.extent)))
        yield
        return
    made, mass = certified_masses(state, points)
    play.take_certainty(session, made)
    explain.take_forced(session, mass)
    yield


def _farthest(session: Session) -> Iterator[None]:
    """Ask for the farthest other set."""
    rivals = rivals_of(explain.explanation(session), session.extent)
    explain.take_farthest(session, farthest_set(rivals))
    yield


def _places(session: Session) -> Iterator[None]:
    """Ask where a point must be, then bring the points back."""
    aim = session.frame.aim
    assert aim is not None
    proof.begin(session)
    for part in proof.proofs(aim.target, aim):
        proof.take(session, part)
        yield
    for _ in range(STANDS):
        proof.reveal(session)
        yield


def _forbids(session: Session) -> Iterator[None]:
    """Ask where a point must be, then forbid the place of one."""
    yield from _places(session)
    held, truth = proof.proof(session), session.frame.truth
    assert held.cone is not None and truth is not None
    proof.forbid(session, truth.x[0])
    disc = proof.proof(session).disc
    proof.take_refit(session, disc, held.cone.best_without(proof.hole_of(disc)))
    yield from [None] * STANDS


ACTS: dict[str, Act] = {
    "explains no longer": _breaks, "certain points known": _certifies,
    "places needed at least": _places, "region needed": _forbids, "farthest set": _farthest,
}  # fmt: skip


def compared_frames(end: Frame, seed: int) -> Iterator[Frame]:
    """Yield the claims of each attack that Compare ticks at first, from one seed, then of the best.

    Args:
        end: the last frame of the run on these weights.
        seed: of the attacks.
    """
    aimed = replace(with_aim(end), stage="arena")
    assert aimed.target is not None
    rows: list[arena.Row] = []
    lines: list[arena.ArenaLine] = []
    victim = victim_of(aimed)
    for key in arena.first_ticked(arena.refusals(aimed.target)):
        rows.append(arena.attack_row(victim, key, seed))
        lines = arena.lines_of(rows)
        yield from [_with_claims(aimed, rows, [lines[-1]], lines[-1])] * STANDS
    yield _with_claims(aimed, rows, lines, arena.best(lines))


def _with_claims(
    aimed: Frame, rows: list[arena.Row], lines: list[arena.ArenaLine], line: arena.ArenaLine | None
) -> Frame:
    """Return the frame with the claims of an attack on the plane, and what is said of `lines`."""
    assert aimed.target is not None
    claims = None if line is None else arena.claims_of(rows, line, aimed.target.net.d)
    said = arena_words.below(lines), claims, arena_words.title(lines)
    return replace(aimed, arena=Shown(aimed.target, *said))

"""What a student does at each step of each lesson, as commands of the page."""

from __future__ import annotations

from collections.abc import Callable

import torch

from explorer.engine.explanations.cone import FINE
from explorer.engine.explanations.needed import needed_places
from explorer.engine.explanations.others import Rivals, farthest_set, forced_mass
from explorer.page import play
from explorer.page.aim import passed_by
from explorer.page.frame import PointMap, Shown
from explorer.page.lessons import course
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.proof import commands as proof
from explorer.page.stages.train import commands as train
from explorer.research.census import CensusConfig, census
from explorer.research.runs import RADIUS, cone_around

Student = Callable[[Session], None]
TRUTH, UNSEEN, HALF = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.5, 0.5, 0.0)


def done(session: Session) -> bool:
    """Whether the present step is ticked off, once the page has looked."""
    course.check(session)
    walk = course.walk_of(session)
    return walk.at in walk.done


def plays(session: Session) -> None:
    """Play until the goal is met, or the run is over."""
    if session.frame.stage == "draw":
        play.go(session, "train")
    for _ in range(400):
        play.step(session, 50)
        if done(session) or session.frame.status.over:
            return


def steps(n: int) -> Student:
    """Press the step button so often."""
    return lambda session: [play.step(session) for _ in range(n)]  # type: ignore[return-value]


def places(*points: tuple[float, float, int]) -> Student:
    """Click on the plane."""
    return lambda session: draw.add(session, [((x, y), label) for x, y, label in points])


def handle(weights: tuple[float, float, float]) -> Student:
    """Drag the handle of the triangle."""
    return lambda session: landscape.place_handle(session, weights)


def attacks_from_here(session: Session) -> None:
    """Press “Attack from here”: the run's places in the triangle, as the panel shows them."""
    held = landscape.starts(session)
    config = held.problem.of.settings_at(1.0)
    session.choose(seed=0)
    state = attack.first_state(session.frame, session.entry, config, 0, (0.0, 1.0))
    for _ in range(40):
        state = session.entry.advance(held.problem.of.target, state, config, 50)
        landscape.follow_run(session, state, passed_by(held, state))
        if done(session):
            return


def counts(session: Session) -> None:
    """Press “Census”: what a few starts come to, as the panel shows it."""
    problem = landscape.census_problem(session)
    landscape.note_census(session, census(problem, CensusConfig(starts=4)))


def remixes(session: Session) -> None:
    """Drag the small triangle to noise, and play."""
    attack.remix(session, 0.0, 0.0)
    plays(session)


def moves(dx: float, dy: float) -> Student:
    """Drag the point whose map is shown."""

    def drag(session: Session) -> None:
        held = landscape.candidates(session)
        landscape.draw_map(session, PointMap(None, (0, 1, 0, 1), (0, 1)))
        move = torch.tensor([dx, dy], dtype=held.x.dtype)
        landscape.move_point(session, held.mapped, held.x[held.mapped] + move)

    return drag


def splits(session: Session) -> None:
    """Drag the point at the right end along its line."""
    explain.choose(session, 0)
    explain.split_widest(session)


def breaks(session: Session) -> None:
    """Drag a pinned point anywhere."""
    explain.choose(session, 1)
    explain.pull(session, explain.explanation(session).now.x[1] + 0.2, free=True)


def asks(which: str) -> Student:
    """Press one of the two questions of 4 Explain."""

    def ask(session: Session) -> None:
        state = explain.explanation(session)
        rivals = Rivals.of(state.net, state.truth.x, state.truth.y, session.extent)
        if which == "forced":
            explain.take_forced(session, forced_mass(rivals))
        else:
            explain.take_farthest(session, farthest_set(rivals))

    return ask


def argues(session: Session) -> None:
    """Ask where a point must be, and forbid the place of one."""
    target, aim = session.frame.target, session.frame.aim
    assert target is not None and aim is not None
    proof.begin(session)
    cone = cone_around(target, aim.truth)
    *_, made = needed_places(cone, FINE, RADIUS)
    proof.take(session, made)
    proof.finish(session, cone)
    proof.forbid(session, aim.truth.x[0])
    held = session.frame.proof
    assert held is not None
    refit = cone.best_without(proof.hole_of(held.disc))
    proof.take_refit(session, held.disc, refit)


def compares(session: Session) -> None:
    """Click the row of an attack that was run."""
    frame = session.frame
    assert frame.target is not None
    attack.show_claims(session, Shown(frame.target, "claims"))


def goes(stage: str) -> Student:
    """Turn to a stage."""
    return lambda session: play.go(session, stage)


BLUE = places((1.0, 1.0, 1))
LINE = (steps(2), plays, plays, plays)
# By the number of the lesson: what is done at each of its steps; None where it is only read.
STUDENTS: tuple[tuple[Student | None, ...], ...] = (
    (None, places((0.5, 1, 1), (1, 0.5, 1), (-1, 0, -1), (-0.5, -1, -1)),
     lambda session: (play.act(session, "train"), play.pause(session), plays(session))[0],
     BLUE),
    (plays, plays, train.jump_to_exact),
    (None, BLUE, plays, lambda session: (play.go(session, "attack"), plays(session))[1]),
    LINE,
    (plays, plays, plays, plays, plays),
    (handle(TRUTH), handle(HALF), attacks_from_here, counts, remixes),
    (moves(-0.5, 0.5), moves(0.1, -0.4), moves(0.5, 0.5), handle(TRUTH)),
    (splits, breaks, asks("forced"), argues, asks("farthest")),
    (plays, plays),
    (plays, plays, plays),
    (plays, course.note_done),
    (plays, plays),
    (None, course.note_done),
    (plays,) * 8,
    (compares, goes("attack")),
)  # fmt: skip

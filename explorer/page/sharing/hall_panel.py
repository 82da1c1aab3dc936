"""The hall attacks: a round of this page's weights for phones, step by step to the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from explorer.engine import training
from explorer.engine.data import Dataset, write_csv
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.needed import Needed
from explorer.engine.progress import Progress
from explorer.engine.scoring import score
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig, TrainState
from explorer.page import play
from explorer.page.aim import aim_at
from explorer.page.ask import Ask
from explorer.page.controls.control import HallBox
from explorer.page.frame import Aim, Frame
from explorer.page.job import once
from explorer.page.panels.base import Panel
from explorer.page.plane.marks import place_rows
from explorer.page.session import LIVE_STEPS, SERVED, Session
from explorer.page.sharing import words
from explorer.page.sharing.run import run_of_page
from explorer.page.stages.proof.commands import proofs
from explorer.research.game import REVEAL, GameError, Hidden, as_guess, computer_guess, hide
from explorer.research.hall import (
    HALL_RADII,
    HallScore,
    board,
    point_rows,
    read_taps,
    rows_of,
    score_hall,
)
from explorer.research.pictures.axes import Axes
from explorer.research.runs import granted_target

SLICE = 200  # steps of training between two looks at Cancel; arbitrary


@dataclass(frozen=True, eq=False)
class HallRound:
    """One round: what is hidden, what is known of it so far, and what the hall sees.

    Attributes:
        hidden: the challenge, and its reveal.
        truth: the points.
        axes: of the plane when it began.
        aim: the weights at margin 1.
        state: of their training; the question goes on from it.
        config: of that training.
        shown: what phones may see, as `serve.hall` takes it.
        claims: of the machine; None before it is done.
        needed: where a point must be; None before, or where nothing can be proven.
        proven: whether that was asked to the end.
        later: points that the machine finds after twice the steps; None before, or not asked.
        score: at the end.
    """

    hidden: Hidden
    truth: Dataset
    axes: Axes
    aim: Aim
    state: TrainState
    config: TrainConfig
    shown: dict[str, Any]
    claims: Dataset | None = None
    needed: Needed | None = None
    proven: bool = False
    later: int | None = None
    score: HallScore | None = None


def new_round(session: Session) -> HallRound:
    """Return a round of the weights on screen. ValueError where there is none to be had."""
    frame = session.frame
    part, data = frame.training, frame.dataset
    if part.state is None or not data.n or part.given:
        raise GameError(words.NO_WEIGHTS)
    hidden = hide(run_of_page(session), part.state.net)
    shown = board(hidden.challenge, session.axes) | {"task": words.hall_task(data.n)}
    aim = frame.aim
    if aim is None or aim.net is not part.state.net:
        aim = aim_at(part, data, part.certificate)
    if part.state.t:
        shown["question"] = words.hall_question(part.state.t)
    made = HallRound(hidden, data, session.axes, aim, part.state, session.train_config, shown)
    return replace(made, claims=_claims_on_screen(session, aim))


def _claims_on_screen(session: Session, aim: Aim) -> Dataset | None:
    """Return what the attack on screen claims of these weights, if it began knowing no point."""
    held = session.frame.attack
    if held.claims is None or session.frame.aim is not aim or held.judged is not held.state:
        return None
    given = granted_target(aim.target, aim.truth, session.attack_config, session.seed)
    return None if given is not aim.target or held.mix[1] else as_guess(held.claims)


def answers(held: HallRound, progress: Progress) -> Iterator[dict[str, Any]]:
    """Yield what the machine comes to, as fields of the round: claims, proof, claims of later."""
    if held.claims is None:
        yield {"claims": computer_guess(held.hidden.challenge)}
    needed = held.aim.needed
    if needed is None and not obstacle(held.aim.target):
        for part in proofs(held.aim.target, held.aim, progress):
            needed = part if isinstance(part, Needed) else needed
    yield {"needed": needed, "proven": True}
    if "question" in held.shown:
        state, config = held.state, replace(held.config, steps=LIVE_STEPS)
        for t in range(state.t, 2 * state.t, SLICE):
            progress(t / (2 * held.state.t) - 0.5)
            state = training.advance(held.truth, state, config, min(SLICE, 2 * held.state.t - t))
        late = hide(Run(held.truth, config), state.net).challenge
        yield {"later": _hits(held.truth, computer_guess(late))}


def _hits(truth: Dataset, claims: Dataset) -> int:
    return int(score(truth, claims.x, claims.y, HALL_RADII).found[0])


def with_truth(held: HallRound, made: HallScore) -> HallRound:
    """Return a round that is revealed: points, the hall's guess, the seal's text, scores."""
    salt = REVEAL.fullmatch(held.hidden.reveal)
    assert salt is not None  # `hide` made it
    shown = {
        **held.shown,
        "truth": point_rows(held.truth, held.axes),
        "guess": point_rows(made.guess, held.axes),
        "sealed": f"{salt[1]}\n{write_csv(held.truth)}",
        "within": words.WITHIN,
        "scores": {str(n): [*found, made.hall.n] for n, found in made.each.items()},
    }
    return replace(held, shown=shown, score=made)


def with_answer(held: HallRound) -> HallRound:
    """Return a round with the answer to its question, once it is revealed and that is known."""
    if held.score is None or held.later is None or held.claims is None:
        return held
    before = _hits(held.truth, held.claims)
    answer = words.hall_answer(held.state.t, before, held.later)
    right = words.hall_later(before, held.later)
    return replace(held, shown={**held.shown, "answer": answer, "right": right})


def said_of(held: HallRound) -> str:
    """Return the sentence under the question, as far as the round is shown."""
    if held.score is not None:
        return words.hall_result(held.score)[1]
    if "places" in held.shown:
        return words.hall_places(held.needed)
    if "claims" in held.shown and held.claims is not None:
        return words.hall_claims(held.claims.n)
    return words.hall_tapping(held.truth.n)


def scope_of(held: HallRound) -> str:
    """Return of which sets the proof is, in small print while it is shown."""
    proof = "places" in held.shown and held.score is None
    return words.hall_scope(held.needed) if proof else ""


class HallPanel(Panel):
    """On top of the drawer of Share; the taps are of the browser and the server until the end."""

    round: HallRound | None = None
    seen: Dataset | None = None  # the points that were shown last
    before = True  # whether the truth was shown when the round began

    def build(self) -> None:
        """One control; machine and proof work beside the page while the hall taps."""
        self.job = Ask(self, lambda: self.round and self.round.hidden)
        self.scoring = Ask(self, lambda: self.round and self.round.hidden)
        self.view = self.widget = HallBox({
            "begin": self.command(self._begin),
            "claims": self.command(self._claims),
            "places": self.command(self._places),
            "truth": self.command_of(dict, self._truth),
            "end": self.command(self._end),
        }, ("mx-game", "mx-hall"))  # fmt: skip

    def _begin(self) -> None:
        held = self.round = new_round(self.session)
        self.before = self.session.truth_shown
        play.set_truth_shown(self.session, False)
        self.job.begin(partial(answers, held), self._take, self.redraw)
        self.redraw()

    def _take(self, part: dict[str, Any]) -> None:
        if self.round is not None:
            self.round = with_answer(replace(self.round, **part))
            self.redraw()

    def _claims(self) -> None:
        held = self.round
        if held is not None and held.claims is not None:
            self._add(claims=point_rows(held.claims, held.axes))

    def _places(self) -> None:
        held = self.round
        if held is not None and held.proven:
            made = held.needed
            known = made is not None and len(made.rows)
            self._add(places=rows_of(place_rows(made, held.axes)) if made and known else [])

    def _add(self, **parts: Any) -> None:  # noqa: ANN401 - rows
        if self.round is not None:
            self.round = replace(self.round, shown={**self.round.shown, **parts})
            self.redraw()

    def _truth(self, found: dict[str, Any]) -> None:
        """Score the taps in a thread, then show the points."""
        held = self.round
        if held is None or held.claims is None:
            return
        net, machine = held.hidden.challenge.net, held.claims
        taps = read_taps(net, found, held.axes)

        def take(made: HallScore) -> None:
            if self.round is not None:
                self.round = with_answer(with_truth(self.round, made))
                self.seen = self.round.truth
                play.set_truth_shown(self.session, True)
                self.redraw()

        self.scoring.begin(once(lambda _: score_hall(held.truth, taps, machine)), take)

    def _end(self) -> None:
        if self.round is None:
            return
        self.round = None
        self.job.cancel()
        play.set_truth_shown(self.session, self.before)
        self.redraw()

    def render(self, frame: Frame) -> None:
        """Show where the round stands."""
        held = self.round
        if held is None:
            data = frame.dataset
            plane = data.d == 2 and data.outputs == 1
            said = words.NO_PLANE if not plane else words.HALL if SERVED else words.NOT_SERVED
            if SERVED and data.n and data is self.seen:
                said = words.SEEN
            self.view.show(words=said, served=SERVED and plane, round=None, rows=[])
            return
        busy = words.CLAIMING if held.claims is None else "" if held.proven else words.PROVING
        busy = str(self.job.error or self.scoring.error or busy)  # the page's head is covered
        self.view.show(
            words=words.HALL, served=SERVED, round=held.shown, busy=busy, said=said_of(held),
            scope=scope_of(held),
            only_here=words.ONLY_HERE, sealed="" if held.score is None else words.SEALED,
            result="" if held.score is None else words.hall_result(held.score)[0],
            ready={"claims": held.claims is not None, "places": held.proven},
            rows=[] if held.score is None else words.hall_rows(held.score),
        )  # fmt: skip

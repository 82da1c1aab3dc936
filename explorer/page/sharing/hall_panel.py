"""The hall attacks: a round of this page's weights for phones, step by step to the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from explorer.engine import training
from explorer.engine.attacks.claims import Report
from explorer.engine.certificate import holds_margin, in_reach
from explorer.engine.data import Dataset, write_csv
from explorer.engine.explanations.assumptions import obstacle
from explorer.engine.explanations.needed import Needed
from explorer.engine.progress import Progress
from explorer.engine.scoring import Verdict, judge, score
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig, TrainState
from explorer.page import play
from explorer.page.aim import aim_at
from explorer.page.ask import Ask
from explorer.page.controls.control import HallBox
from explorer.page.frame import Aim, Frame, Training
from explorer.page.job import once
from explorer.page.panels.base import Panel
from explorer.page.plane.marks import count_again, place_rows
from explorer.page.session import LIVE_STEPS, SERVED, Session
from explorer.page.sharing import words
from explorer.page.sharing.run import run_of_page
from explorer.page.stages.proof.commands import proofs
from explorer.research.game import REVEAL, GameError, Hidden, as_guess, computer_guess, hide
from explorer.research.hall import (
    HallGuess,
    HallScore,
    beside_boundary,
    blind_hits,
    board,
    finger_radius,
    hall_guess,
    hall_run,
    next_set,
    point_rows,
    read_taps,
    rows_of,
    score_hall,
    strongest,
)
from explorer.research.pictures.axes import Axes, axes_for
from explorer.research.runs import granted_target, train, watch_of

SLICE = 200  # steps of training between two looks at Cancel; arbitrary


@dataclass(frozen=True, eq=False)
class HallRound:
    """One round: what is hidden, what is known of it so far, and what the hall sees.

    Attributes:
        number: of the rounds of this page, from 1.
        name: of the set that the points are of; "" where they are of none.
        hidden: the challenge, and its reveal.
        truth: the points.
        axes: of the plane when it began.
        aim: the weights at margin 1.
        state: of their training; the question goes on from it.
        config: of that training.
        shown: what phones may see, as `serve.hall` takes it.
        claims: of the machine; None before it is done.
        verdict: on these claims; None likewise.
        guess: where the hall believes the points are; None while it taps.
        needed: where a point must be; None before, or where nothing can be proven.
        proven: whether that was asked to the end.
        later: points that the machine recovers after twice the steps; None before, or not asked.
        score: at the end.
    """

    number: int
    name: str
    hidden: Hidden
    truth: Dataset
    axes: Axes
    aim: Aim
    state: TrainState
    config: TrainConfig
    shown: dict[str, Any]
    claims: Dataset | None = None
    verdict: Verdict | None = None
    guess: HallGuess | None = None
    needed: Needed | None = None
    proven: bool = False
    later: int | None = None
    score: HallScore | None = None


def has_own(frame: Frame) -> bool:
    """Return whether the page holds a network that a hall can attack: two classes on the plane."""
    part, data = frame.training, frame.dataset
    return (
        part.state is not None and data.n > 0 and not part.given
        and data.d == 2 and data.outputs == 1
    )  # fmt: skip


def own_round(session: Session, number: int) -> HallRound:
    """Return a round of the weights on screen. ValueError where there is none to be had."""
    frame = session.frame
    part, data = frame.training, frame.dataset
    if part.state is None or not has_own(frame):
        raise GameError(words.NO_WEIGHTS)
    aim = frame.aim
    if aim is None or aim.net is not part.state.net:
        aim = aim_at(part, data, part.certificate)
    hidden = hide(run_of_page(session), part.state.net)
    name = "" if data.source is None else data.source.preset
    made = _round(number, name, hidden, aim, part.state, session.axes, session.train_config)
    return replace(made, claims=_claims_on_screen(session, aim))


def other_round(name: str, seed: int, number: int, progress: Progress) -> HallRound:
    """Return a round of another network, which is trained for it. RunFailed where it cannot be."""
    run = hall_run(name, seed)
    done, data = train(run, watch=watch_of(progress)), run.dataset
    state = done.states[-1]
    aim = aim_at(Training(state), data, done.certificate)
    axes = axes_for(Axes(), data, loaded=True)
    return _round(number, name, hide(run, done.net), aim, state, axes, run.train_config)


def _round(
    number: int,
    name: str,
    hidden: Hidden,
    aim: Aim,
    state: TrainState,
    axes: Axes,
    config: TrainConfig,
) -> HallRound:
    shown = board(hidden.challenge, axes) | {
        "task": words.hall_tapping(aim.truth.n), "network": words.hall_network(number, state),
        "how": words.hall_rule(finger_radius(axes)), "most": aim.truth.n,
    }  # fmt: skip
    return HallRound(number, name, hidden, aim.truth, axes, aim, state, config, shown)


def _claims_on_screen(session: Session, aim: Aim) -> Dataset | None:
    """Return the claims of the attack on screen of these weights, None if it knew a point."""
    held = session.frame.attack
    if held.claims is None or held.judged is not held.state or session.frame.aim is not aim:
        return None
    given = granted_target(aim.target, aim.truth, session.attack_config, session.seed)
    return None if given is not aim.target or held.mix[1] else as_guess(held.claims)


def answers(held: HallRound, progress: Progress) -> Iterator[dict[str, Any]]:
    """Yield what the machine comes to, as fields of the round: claims, proof, claims of later."""
    claims = computer_guess(held.hidden.challenge) if held.claims is None else held.claims
    claims = strongest(claims, held.truth.n)
    held = replace(held, claims=claims, verdict=_verdict_on(claims, held))
    yield {"claims": held.claims, "verdict": held.verdict}
    needed = held.aim.needed
    if needed is None and not obstacle(held.aim.target):
        for part in proofs(held.aim.target, held.aim, progress):
            needed = part if isinstance(part, Needed) else needed
    yield {"needed": needed, "proven": True}
    yield from late_answer(held, progress)


def _verdict_on(claims: Dataset, held: HallRound) -> Verdict:
    """Return what may be said of these claims within the hall's own distance."""
    truth, within = held.truth, finger_radius(held.axes)
    reach = in_reach(held.aim.certificate, truth.n)
    return judge(truth, held.aim.controls, claims.x, claims.y, within, reach, more=True)


def _report_of(claims: Dataset) -> Report:
    return Report(claims.x, claims.y, torch.ones_like(claims.y))


def late_answer(held: HallRound, progress: Progress) -> Iterator[dict[str, Any]]:
    """Yield how many points the machine finds after twice the steps, where that is a question."""
    if _leaves_points(held):
        state, config = held.state, replace(held.config, steps=LIVE_STEPS)
        for t in range(state.t, 2 * state.t, SLICE):
            progress(t / (2 * held.state.t) - 0.5)
            state = training.advance(held.truth, state, config, min(SLICE, 2 * held.state.t - t))
        late = hide(Run(held.truth, config), state.net).challenge
        claims = strongest(computer_guess(late), held.truth.n)
        within = finger_radius(held.axes)
        yield {"later": int(score(held.truth, claims.x, claims.y, (within,)).found)}


def _leaves_points(held: HallRound) -> bool:
    """Return whether longer training can let the machine find more, as far as claims are known."""
    return held.state.t > 0 and held.verdict is not None and held.verdict.found < held.truth.n


def _taps_of(held: HallRound, found: dict[str, Any]) -> dict[int, Dataset]:
    """Return what phones tapped: of each as many taps as there are points."""
    return read_taps(held.hidden.challenge.net, found, held.axes, held.truth.n)


def with_question(held: HallRound) -> HallRound:
    """Return a round with its question, once the machine's claims leave points to be found."""
    if not _leaves_points(held):
        return held
    asked = {"question": words.hall_question(), "answers": words.HALL_ANSWERS}
    return replace(held, shown={**held.shown, **asked})


def with_truth(held: HallRound, made: HallScore) -> HallRound:
    """Return a round that is revealed: points, the hall's guess, the seal's text, scores."""
    salt = REVEAL.fullmatch(held.hidden.reveal)
    assert salt is not None  # `hide` made it
    shown = {
        **held.shown,
        "truth": point_rows(held.truth, held.axes),
        "guess": point_rows(made.guess.places, held.axes),
        "met": _places_met(held, made),
        "reach": rows_of(made.machine.radius / held.axes.half[None]),
        "sealed": f"{salt[1]}\n{write_csv(held.truth)}",
        "within": words.hall_within(made),
        "network": words.hall_points(held.number, held.name, held.truth.n),
        "scores": {str(n): [found, held.truth.n, made.hits[n]] for n, found in made.each.items()},
    }
    return replace(held, shown=shown, guess=made.guess, score=made)


def _places_met(held: HallRound, made: HallScore) -> list[list[float]]:
    """Return the hall's places that meet a point, one to one, as rows for its page."""
    places = made.guess.places
    found = _matches_of(held, places)
    found = found[found >= 0]
    return point_rows(Dataset(places.x[found], places.y[found]), held.axes)


def with_answer(held: HallRound) -> HallRound:
    """Return a round with the answer to its question, once it is revealed and that is known."""
    if held.score is None or held.later is None:
        return held
    before = held.score.machine.found
    answer = words.hall_answer(before, held.later)
    right = words.hall_later(before, held.later)
    return replace(held, shown={**held.shown, "answer": answer, "right": right})


def said_of(held: HallRound) -> str:
    """Return the sentence under the title, as far as the round is shown."""
    if held.score is not None:
        missed = _matches(held) < 0
        reach, off = in_reach(held.aim.certificate, held.truth.n), ~holds_margin(held.state.q)
        gone = None if reach is None else int((missed & ~reach).sum())
        why = words.hall_missed(int(missed.sum()), gone, int((missed & off).sum()))
        said = (
            words.hall_rule(held.score.machine.radius),
            why,
            words.hall_closing(held.score.beside),
        )
        return " ".join(filter(None, said))
    if "places" in held.shown:
        return words.hall_places(held.needed)
    if "claims" in held.shown and held.claims is not None:
        n = held.claims.n
        return words.hall_claims(held.truth.n, n - len(held.shown["claims"]))
    return str(held.shown["how"])


def title_of(held: HallRound) -> str:
    """Return the title, as far as the round is shown."""
    claimed = held.claims.n if "claims" in held.shown and held.claims is not None else 0
    return words.hall_title(
        held.needed, claimed, held.truth.n,
        proven="places" in held.shown, revealed=held.score is not None,
    )  # fmt: skip


def rows_shown(held: HallRound) -> list[list[str]]:
    """Return the rows of machine, hall and proof, as far as the round is shown."""
    if held.score is not None:
        return words.hall_rows(held.score, claims_again(held), _places(held), _right(held))
    if held.guess is not None and held.claims is not None:
        return words.hall_open_rows(held.truth.n, held.claims.n, held.guess)
    return []


def _places(held: HallRound) -> int:
    """Return how many places are shown to be proven."""
    return len(held.needed.rows) if held.needed is not None and held.shown.get("places") else 0


def _right(held: HallRound) -> int:
    """Return how many points must be in their place, as far as that is shown."""
    return held.needed.count_of(held.truth) if held.needed and _places(held) else 0


def claims_again(held: HallRound) -> int:
    """Return how many claims of the machine recover a point that another one recovered."""
    claims, verdict = held.claims, held.verdict
    if claims is None or verdict is None:
        return 0
    return count_again(_report_of(claims), held.truth, _matches(held).numpy(), verdict.radius)


def _matches(held: HallRound) -> Tensor:
    """Return the claim matched to each point, or -1 (n,)."""
    assert held.claims is not None  # they were judged
    return _matches_of(held, held.claims)


def _matches_of(held: HallRound, places: Dataset) -> Tensor:
    """Return which of some places is matched to each point within the hall's distance, or -1."""
    assert held.verdict is not None
    return score(held.truth, places.x, places.y, (held.verdict.radius,)).matches[0]


NO_ROUND: dict[str, Any] = {"round": None, "rows": []}


def shown_of(held: HallRound) -> dict[str, Any]:
    """Return what the projector shows of a round, beside what phones see."""
    over = held.score
    proof_shown = "places" in held.shown and over is None
    return {
        "round": held.shown, "title": title_of(held), "said": said_of(held),
        "scope": words.hall_scope(held.needed) if proof_shown else "",
        "sealed": words.HALL_SEALED if over is None else words.HALL_OPENED,
        "ready": {"claims": held.verdict is not None, "places": held.proven},
        "rows": rows_shown(held), "number": held.number,
    }  # fmt: skip


class HallPanel(Panel):
    """On top of the drawer of Share; the taps are of the browser and the server until the end."""

    round: HallRound | None = None
    rounds = 0  # so far
    turn = 0  # of the drawings that it offers by itself
    seen: Dataset | None = None  # those of this page that were shown last
    before = True  # whether the truth was shown when the round began

    def build(self) -> None:
        """One control; training, machine and proof work beside the page while the hall taps."""
        self.training = Ask(self)
        self.job = Ask(self, lambda: self.round and self.round.hidden)
        self.scoring = Ask(self, lambda: self.round and self.round.hidden)
        self.view = self.widget = HallBox({
            "begin": self.command_among((words.PAGE, *words.HALL_SETS), self._begin),
            "claims": self.command_of(dict, self._claims),
            "places": self.command(self._places),
            "truth": self.command_of(dict, self._truth),
            "end": self.command(self._end),
        }, ("mx-game", "mx-hall"))  # fmt: skip

    def _begin(self, of: str) -> None:
        """Begin a round, the first or the next: of this page's network, or of one to be trained."""
        if self.round is not None and self.round.score is None:
            return
        if of == words.PAGE:
            self._open(own_round(self.session, self.rounds + 1))
            return
        name, seed = (of, self.rounds + 1) if of else next_set(self.turn)
        self.turn += not of
        begun = partial(other_round, name, seed, self.rounds + 1)
        self.training.begin(once(begun), self._open, self.redraw)
        self.redraw()

    def _open(self, held: HallRound) -> None:
        if self.round is None:
            self.before = self.session.truth_shown
        self.round, self.rounds = held, held.number
        play.set_truth_shown(self.session, False)
        self.job.begin(partial(answers, held), self._take, self.redraw)
        self.redraw()

    def _take(self, part: dict[str, Any]) -> None:
        if self.round is not None:
            self.round = with_answer(with_question(replace(self.round, **part)))
            self.redraw()

    def _claims(self, found: dict[str, Any]) -> None:
        """Show the machine's claims, and what the taps come to."""
        held = self.round
        if held is None or held.claims is None or held.verdict is None:
            return
        taps = _taps_of(held, found)
        claims = point_rows(held.claims, held.axes)

        def take(made: HallGuess) -> None:
            if self.round is not None:
                self.round = replace(self.round, guess=made)
                self._add(claims=claims, guess=point_rows(made.places, held.axes))

        guess = partial(hall_guess, taps, held.truth.n, held.verdict.radius)
        self.scoring.begin(once(lambda _: guess()), take)

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
        if held is None or held.verdict is None:
            return
        taps, machine = _taps_of(held, found), held.verdict

        def take(made: HallScore) -> None:
            if self.round is not None:
                self.round = with_answer(with_truth(self.round, made))
                if held.truth is self.session.frame.dataset:
                    self.seen = held.truth
                play.set_truth_shown(self.session, True)
                self._skip_proof()
                self.redraw()

        def score(_: Progress) -> HallScore:
            net, within = held.hidden.challenge.net, machine.radius
            chance = blind_hits(net, held.truth, held.axes, within)
            beside = beside_boundary(net, held.truth, held.axes)
            return score_hall(held.truth, taps, machine, chance, beside)

        self.scoring.begin(once(score), take)

    def _skip_proof(self) -> None:
        """Go on to the answer of the question where the proof is not done: nobody waits for it."""
        held = self.round
        if held is not None and not held.proven:
            self.job.cancel()
            self.job.begin(partial(late_answer, held), self._take, self.redraw)

    def _end(self) -> None:
        if self.round is None:
            return
        self.round = None
        self.job.cancel()
        self.training.cancel()
        play.set_truth_shown(self.session, self.before)
        self.redraw()

    def render(self, frame: Frame) -> None:
        """Show where the round stands."""
        held, own = self.round, has_own(frame)
        fresh = own and frame.dataset is not self.seen
        said = words.HALL if fresh else words.SEEN if own else words.NO_OWN
        if self.training.busy:
            said = words.TRAINING
        self.view.show(
            words=said if SERVED else words.NOT_SERVED, served=SERVED, waits=self.training.busy,
            sets=[*words.HALL_SETS.items(), *([[words.PAGE, words.OWN]] if fresh else [])],
            no_phones=words.NO_PHONES, busy=self._busy(),
            **(NO_ROUND if held is None else shown_of(held)),
        )  # fmt: skip

    def _busy(self) -> str:
        """Return what the round waits for, or why it waits in vain: the page's head is covered."""
        failed = [a.error for a in (self.training, self.job, self.scoring) if a.error]
        if failed or self.round is None or self.training.busy:
            return str(failed[0]) if failed else words.TRAINING if self.training.busy else ""
        if self.round.score is not None:
            return words.LATER if self.round.later is None and self.job.busy else ""
        if self.round.verdict is None:
            return words.CLAIMING
        return "" if self.round.proven else words.PROVING

"""Two players: the seal holds, guesses are scored, and nobody can cheat."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from dataclasses import replace

import pytest
import torch

from explorer.engine.data import Dataset, empty, preset
from explorer.engine.margin import q_of
from explorer.engine.network import init_network
from explorer.engine.scoring import RADII
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.session import Session
from explorer.page.sharing import files, game, hall_panel, words
from explorer.page.sharing.hall_panel import HallPanel
from explorer.page.sharing.run import run_of_page
from explorer.page.sharing.words import hall_later
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.research.game import (
    GameError,
    as_guess,
    commitment_of,
    computer_guess,
    computer_hides,
    guess_text,
    hide,
    open_reveal,
    read_challenge,
    read_guess,
    score_guess,
)
from explorer.research.hall import point_rows
from explorer.research.state import link_of
from explorer.serve.hall import checked_round
from tests.page.test_exchange import weights_of


@pytest.fixture(scope="module")
def hider() -> Session:
    session = Session(preset("alternating-circle", n=8), seed=2)
    play.go(session, "train")
    play.configure(session, widths=(40,))
    play.step(session, 3000)
    game.begin(session)
    return session


def test_a_challenge_holds_the_weights_and_nothing_of_the_points(hider: Session) -> None:
    now, made = hider.frame, hider.game.challenge
    read = read_challenge(f"http://127.0.0.1:8866/#{made.text}")
    assert torch.equal(read.net.theta, made.net.theta) and read.commitment == made.commitment
    q = q_of(read.net, now.dataset.x, now.dataset.y)
    torch.testing.assert_close(q, now.training.state.q / now.training.state.q.min())
    assert len(made.text) < 4000, "40 neurons fit an address"
    again = Session(now.dataset)
    again.show(training=now.training)
    game.begin(again)
    assert again.game.challenge.commitment != made.commitment, "each has a salt of its own"
    run = open_reveal(made, hider.game.reveal)
    assert torch.equal(run.dataset.x, now.dataset.x)
    assert link_of(run) == link_of(run_of_page(hider))


def test_a_challenge_needs_weights_that_separate_the_points() -> None:
    session = Session(preset("moons", n=8))
    with pytest.raises(GameError, match="train"):
        game.begin(session)
    play.step(session, 1)
    assert float(session.frame.training.state.q.min()) <= 0
    with pytest.raises(GameError, match="separate"):
        game.begin(session)
    blind = Session()
    files.open_file(blind, weights_of(2))  # without points
    with pytest.raises(GameError, match="draw"):
        game.begin(blind)


def test_points_that_changed_are_found_out(hider: Session) -> None:
    kept, run = hider.game, open_reveal(hider.game.challenge, hider.game.reveal)
    data = run.dataset
    moved = Dataset(data.x + 1e-9, data.y)
    salt = kept.reveal.split(".")[1]
    other = f"mxr1.{salt}.{link_of(replace(run, dataset=moved))}"
    with pytest.raises(GameError, match="changed"):
        open_reveal(kept.challenge, other)
    with pytest.raises(GameError, match="changed"):  # the right points, another salt
        open_reveal(kept.challenge, kept.reveal.replace(salt, "0" * 32))
    # Sealed before, but of weights that were trained on something else.
    far = replace(run, dataset=Dataset(data.x * 3, data.y))
    lie = hide(far, kept.challenge.net) if separates(kept, far.dataset) else None
    if lie is not None:
        with pytest.raises(GameError, match="margin"):
            open_reveal(replace(kept.challenge, commitment=lie.challenge.commitment), lie.reveal)
    for text in ("", "mxr1.00.mx1.AAAA", kept.reveal[:-8]):
        with pytest.raises(ValueError):
            open_reveal(kept.challenge, text)


def separates(kept: game.Game, data: Dataset) -> bool:
    return float(q_of(kept.challenge.net, data.x, data.y).min()) > 0


def test_damaged_challenges_are_refused(hider: Session) -> None:
    text, drawn = hider.game.challenge.text, random.Random(0)
    for bad in ("", "mxc1.", "mxc1.AAAA", text[:-9], text.replace("mxc1", "mxc2")):
        with pytest.raises(GameError):
            read_challenge(bad)
    for _ in range(200):
        i = drawn.randrange(5, len(text))
        with pytest.raises(GameError):
            read_challenge(f"{text[:i]}{drawn.choice('ABC-_=')}{text[i:]}")


def test_a_reveal_of_no_points_is_refused(hider: Session) -> None:
    none, salt = empty(2), "0" * 32
    sealed = replace(hider.game.challenge, commitment=commitment_of(none, salt))
    with pytest.raises(GameError):
        open_reveal(sealed, f"mxr1.{salt}.{link_of(Run(none, TrainConfig()))}")


def test_a_challenge_that_the_plane_cannot_show_changes_nothing(hider: Session) -> None:
    wide = init_network(
        2, (8,), generator=torch.Generator().manual_seed(0), first_scale=None, outputs=5
    )
    sealed = replace(hider.game.challenge, net=wide.to(dtype=torch.float64))
    session = Session(preset("moons", n=8))
    before = session.frame
    with pytest.raises(ValueError, match="4 classes"):
        game.take(session, sealed.text)
    assert session.frame is before and session.game is None


def test_scores_count_each_point_once_and_the_class() -> None:
    data = preset("moons", n=6)
    run = run_of_page(Session(data))
    perfect = score_guess(run, data)
    assert (perfect.found, perfect.points, perfect.kept) == (6, 100, 0)
    twice = Dataset(torch.cat([data.x, data.x]), torch.cat([data.y, data.y]))
    assert (score_guess(run, twice).found, score_guess(run, twice).points) == (6, 67)
    assert score_guess(run, Dataset(data.x, -data.y)).found == 0
    near = Dataset(data.x + RADII[1] / 2, data.y)
    assert score_guess(run, near).found == 6
    half = score_guess(run, Dataset(data.x[:3], data.y[:3]))
    assert (half.found, half.points, half.kept) == (3, 67, 50)
    with pytest.raises(GameError, match="coordinates"):
        score_guess(run, preset("alternating-line", n=4))


def test_two_pages_play_by_links_and_both_come_to_the_same_scores(hider: Session) -> None:
    kept = hider.game
    guesser = Session(preset("moons"))
    game.take(guesser, kept.challenge.text)
    assert guesser.frame.dataset.n == 0 and guesser.frame.stage == "train"
    with pytest.raises(GameError, match="guess"):
        game.reveal(guesser, kept.reveal)
    with pytest.raises(GameError, match="attack the weights"):
        game.hand_in(guesser)
    play.go(guesser, "attack")
    play.configure(guesser, m=40)
    play.step(guesser, 2000)
    game.hand_in(guesser)
    sent = guesser.game.guess_text
    with pytest.raises(GameError, match="already"):
        game.hand_in(guesser)
    with pytest.raises(GameError):  # a reveal of another game
        game.reveal(guesser, computer_hides(1).reveal)
    assert guesser.game.score is None
    game.score_theirs(hider, sent)
    game.reveal(guesser, kept.reveal)
    mine, theirs = guesser.game.score, hider.game.score
    assert (mine.found, mine.points, mine.kept) == (theirs.found, theirs.points, theirs.kept)
    assert mine.found >= 6, "these weights give their points away"
    assert guesser.frame.stage == "arena" and len(guesser.frame.claims.x) == mine.guessed
    assert torch.equal(guesser.frame.dataset.x, hider.frame.dataset.x)
    game.score_machine(guesser, guesser.game, game.machine_guess(guesser.game))
    assert guesser.game.machine.found >= 6


def test_a_guess_may_be_drawn(hider: Session) -> None:
    guesser = Session()
    game.take(guesser, hider.game.challenge.text)
    x, y = hider.frame.dataset.x[0].tolist(), float(hider.frame.dataset.y[0])
    draw.add(guesser, [(x, y), ([1.5, 1.5], 1.0)])
    game.hand_in(guesser)
    assert read_guess(guesser.game.guess_text).n == 2
    game.reveal(guesser, hider.game.reveal)
    assert (guesser.game.score.found, guesser.game.score.guessed) == (1, 2)


def test_the_computer_hides_and_guesses() -> None:
    made = computer_hides(3)
    run = open_reveal(made.challenge, made.reveal)
    guess = computer_guess(made.challenge)
    assert score_guess(run, guess).n == run.dataset.n >= 6
    assert guess_text(guess) and as_guess(attack_claims()).n <= 200


def attack_claims() -> object:
    session = Session(preset("alternating-circle", n=6))
    play.step(session, 1500)
    attack.begin(session)
    return session.frame.attack.claims


def test_against_the_computer_on_the_page() -> None:
    async def run() -> App:
        page = App(preset("moons", n=8))
        page.unfold("Share")
        panel = page.panels["GamePanel"]
        panel.view.commands["computer"](None)
        await panel.job.wait()
        assert panel.view.state["part"] == "guesser" and page.session.frame.dataset.n == 0
        play.go(page.session, "attack")
        play.step(page.session, 500)
        panel.view.commands["hand_in"](None)
        assert panel.view.state["part"] == "done"
        await panel.job.wait()
        return page

    page = asyncio.run(run())
    rows = page.panels["GamePanel"].view.state["scores"]
    held = page.session.game
    assert len(rows) == 3 and held.machine is not None
    other = replace(held, challenge=replace(held.challenge), machine=None)
    page.session.game = other
    game.score_machine(page.session, held, held.guess)
    assert page.session.game is other, "the guess was at other weights"


def test_a_guess_that_was_drawn_before_the_attack_does_not_change_it(hider: Session) -> None:
    made: list[Session] = []
    for guess in ((), [((0.4, 0.3), 1.0), ((-0.5, 0.2), -1.0)]):
        session = Session(empty(2))
        game.take(session, hider.game.challenge.text)
        draw.add(session, guess)
        play.go(session, "attack")
        play.configure(session, steps=60)
        play.step(session, 60)
        assert session.frame.dataset.n == len(guess) and not session.message
        with pytest.raises(ValueError):
            play.go(session, "landscape")  # it compares with points that nobody told
        made.append(session)
    blind, guessed = (session.frame for session in made)
    assert torch.equal(blind.target.net.theta, guessed.target.net.theta)
    assert torch.equal(blind.attack.claims.x, guessed.attack.claims.x)
    assert blind.truth.n == guessed.truth.n == 0 and guessed.attack.verdict is None


# --- a round of the hall -------------------------------------------------------------------------


@pytest.fixture
def panel(monkeypatch: pytest.MonkeyPatch) -> HallPanel:
    """Of a trained network; the machine claims half of the points, and no proof is asked."""
    session = Session(preset("alternating-circle", n=8), seed=2)
    play.go(session, "train")
    play.configure(session, widths=(40,))
    play.step(session, 1000)
    half = Dataset(session.frame.dataset.x[:4], session.frame.dataset.y[:4])
    monkeypatch.setattr(hall_panel, "computer_guess", lambda _: half)
    monkeypatch.setattr(hall_panel, "obstacle", lambda _: "none")
    return HallPanel(session)


def press(panel: HallPanel, kind: str, value: object = None) -> None:
    panel.view.commands[kind](value)


def test_a_second_claim_of_a_point_is_told_apart_from_a_wrong_one(panel: HallPanel) -> None:
    press(panel, "begin", words.PAGE)
    made = panel.round
    assert made is not None and made.claims is not None and hall_panel.claims_again(made) == 0
    x, y = made.claims.x, made.claims.y
    claims = Dataset(torch.cat([x, x[:1] + 0.001, x[:1] + 5.0]), torch.cat([y, y[:1], y[:1]]))
    assert hall_panel.claims_again(replace(made, claims=claims)) == 1


def test_points_that_leave_no_trace_are_the_reason_where_all_missed_are_such(
    panel: HallPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    press(panel, "begin", words.PAGE)
    reach = torch.tensor([True] * 4 + [False] * 4)
    monkeypatch.setattr(hall_panel, "in_reach", lambda *_: reach)
    press(panel, "truth", {})
    why = words.hall_missed(4, 4, 0)
    assert why in panel.view.state["said"], "the first four are claimed"
    monkeypatch.setattr(hall_panel, "in_reach", lambda *_: ~reach)
    assert panel.round is not None
    assert hall_panel.said_of(panel.round) == " ".join(
        (words.hall_rule(0.1), words.hall_closing(panel.round.score.beside))
    ), "no reason explains the rest"


def test_a_round_goes_step_by_step_and_the_seal_fits(panel: HallPanel) -> None:
    session = panel.session
    truth = point_rows(session.frame.dataset, session.axes)
    press(panel, "begin", words.PAGE)
    state = panel.view.state
    assert not session.truth_shown and state["ready"] == {"claims": True, "places": True}
    of_question, of_weights = (
        {"task", "how", "question", "answers", "most"},
        {"seal", "size", "map", "lines"},
    )
    assert set(state["round"]) == of_weights | of_question | {"needles", "network"}
    assert set(state["round"]["answers"]) >= {hall_later(3, after) for after in (2, 3, 4)}
    press(panel, "claims", {"1": [row[:2] for row in truth], "2": []})
    assert panel.view.state["round"]["claims"] == truth[:4]
    assert panel.view.state["round"]["guess"] == truth, "few taps far apart are the hall's places"
    press(panel, "places")
    assert panel.view.state["round"]["places"] == []
    assert panel.view.state["said"] == words.hall_places(None)
    assert "truth" not in json.dumps(panel.view.state["round"])
    press(panel, "truth", {"1": [row[:2] for row in truth], "2": []})
    state = panel.view.state
    shown = state["round"]
    assert session.truth_shown and shown["truth"] == truth
    assert hashlib.sha256(shown["sealed"].encode()).hexdigest() == shown["seal"]
    assert shown["scores"] == {"1": [8, 8, 2**8 - 1], "2": [0, 8, 0]}
    assert sorted(shown["met"]) == sorted(truth), "the hall tapped each point"
    assert shown["answer"] == words.hall_answer(4, 4)
    machine, hall, _ = (row[1][:6] for row in state["rows"])
    assert machine == "4 of 8", "all its claims"
    assert panel.round is not None and panel.round.score is not None
    assert hall == f"{panel.round.score.hall} of 8"
    assert checked_round(json.loads(json.dumps(shown))) == shown, "the server takes it"
    press(panel, "end")
    assert panel.view.state["round"] is None


def test_the_question_is_answered_where_the_proof_is_skipped(
    panel: HallPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = hall_panel.answers
    monkeypatch.setattr(hall_panel, "answers", lambda *a: iter([next(every(*a))]))  # no proof
    press(panel, "begin", words.PAGE)
    press(panel, "claims")
    assert not panel.view.state["ready"]["places"] and panel.view.state["busy"] == words.PROVING
    press(panel, "truth", {})
    state = panel.view.state
    assert state["round"]["answer"] == words.hall_answer(4, 4)
    assert not state["busy"], "nothing runs any more"


def test_where_the_machine_finds_all_nothing_is_asked(
    panel: HallPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = panel.session.frame.dataset
    monkeypatch.setattr(hall_panel, "computer_guess", lambda _: own)
    press(panel, "begin", words.PAGE)
    assert panel.view.state["ready"]["claims"] and "question" not in panel.view.state["round"]
    press(panel, "claims")
    press(panel, "truth", {})
    assert "answer" not in panel.view.state["round"] and not panel.view.state["busy"]


@pytest.mark.parametrize("shown", [True, False])
def test_a_round_that_ends_before_the_truth_leaves_it_shown_as_it_was(
    panel: HallPanel, shown: bool
) -> None:
    play.set_truth_shown(panel.session, shown)
    press(panel, "begin", words.PAGE)
    assert not panel.session.truth_shown
    press(panel, "end")
    assert panel.session.truth_shown is shown
    press(panel, "end")  # a second press changes nothing
    assert panel.session.truth_shown is shown


@pytest.mark.parametrize("given", ["nothing", "points", "a start"])
def test_claims_of_an_attack_that_knew_points_are_not_the_machines(
    panel: HallPanel, given: str
) -> None:
    session = panel.session
    play.go(session, "attack")
    if given == "points":
        play.configure(session, knows="others")
    if given == "a start":
        attack.remix(session, 1.0, 0.5)
    play.step(session, 20)
    play.assess(session)
    made = hall_panel.own_round(session, 1)
    assert (made.claims is not None) == (given == "nothing")


def test_the_next_round_is_of_other_points_and_the_page_keeps_its_own(panel: HallPanel) -> None:
    own = panel.session.frame.dataset
    press(panel, "begin", words.PAGE)
    first = panel.view.state["round"]
    press(panel, "begin", "moons")
    assert panel.view.state["round"] is first, "before its end no round gives way"
    seen = []
    for of in ("", "", "xor", "xor"):
        press(panel, "claims")
        press(panel, "truth", {})
        seen.append(panel.view.state["round"]["truth"])
        press(panel, "begin", of)
    offered = dict(panel.view.state["sets"])
    assert "xor" in offered and words.PAGE not in offered, "its points were shown"
    assert panel.round is not None and panel.round.number == 5
    assert panel.round.truth.source is not None and panel.round.truth.source.preset == "xor"
    seen.append(point_rows(panel.round.truth, panel.round.axes))
    assert all(seen.count(rows) == 1 for rows in seen), "no round has points of one before"
    assert panel.session.frame.dataset is own and not panel.session.truth_shown
    press(panel, "end")
    assert panel.session.truth_shown


def test_without_weights_no_round_begins(panel: HallPanel) -> None:
    empty = HallPanel(Session())
    press(empty, "begin", words.PAGE)
    assert empty.view.state["round"] is None and words.NO_WEIGHTS in empty.session.message
    assert words.PAGE not in dict(empty.view.state["sets"]), "of another network one can"
    press(empty, "begin", "")
    assert empty.view.state["round"] is not None and not empty.session.frame.dataset.n
    press(panel, "truth", {})
    assert panel.view.state["round"] is None


def test_without_the_server_one_sentence_says_how(panel: HallPanel) -> None:
    assert not panel.view.state["served"] and panel.view.state["words"] == words.NOT_SERVED

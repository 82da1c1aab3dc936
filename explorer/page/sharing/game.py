"""Commands of the game of two: hide these points, take a challenge, guess, reveal, score."""

from __future__ import annotations

from dataclasses import dataclass, replace

from explorer.engine import data
from explorer.engine.attacks.claims import Report
from explorer.engine.data import Dataset
from explorer.page import play
from explorer.page.frame import Shown
from explorer.page.session import Session
from explorer.page.sharing.run import run_of_page
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train import commands as train
from explorer.research.game import (
    Challenge,
    GameError,
    GuessScore,
    Hidden,
    as_guess,
    computer_guess,
    guess_text,
    hide,
    open_reveal,
    read_challenge,
    read_guess,
    score_guess,
)


@dataclass(frozen=True, eq=False)
class Game:
    """One game on this page.

    Attributes:
        challenge: the weights, and the commitment to their points.
        hides: whether this page hides the points.
        computer: whether the other player is the computer.
        reveal: what the hider keeps; of the computer, until the guess.
        guess: what was guessed; it cannot be changed any more.
        score: of the guess; None before the truth is known.
        machine: of the computer's guess at the same weights.
    """

    challenge: Challenge
    hides: bool = False
    computer: bool = False
    reveal: str = ""
    guess: Dataset | None = None
    score: GuessScore | None = None
    machine: GuessScore | None = None

    @property
    def guess_text(self) -> str:
        """Return the guess as text, for the hider."""
        return "" if self.guess is None else guess_text(self.guess)


def begin(session: Session) -> None:
    """Hide the present points in the present weights.

    Raises:
        ValueError: with no network, or one that does not separate the points.
    """
    state = session.frame.training.state
    if state is None or not session.frame.dataset.n:
        raise GameError("draw points and train a network on them; then hide them.")
    made = hide(run_of_page(session), state.net)
    session.game = Game(made.challenge, hides=True, reveal=made.reveal)


def take(session: Session, text: str) -> None:
    """Show the weights of somebody's challenge, without points.

    Raises:
        ValueError: where the text is no challenge, or the plane cannot show its weights.
    """
    _show(session, Game(read_challenge(text)))


def take_computers(session: Session, made: Hidden) -> None:
    """Show the weights of a challenge of the computer."""
    _show(session, Game(made.challenge, computer=True, reveal=made.reveal))


def _show(session: Session, game: Game) -> None:
    train.check_shown(game.challenge.net)  # before the present points give way
    if session.frame.dataset.n:
        draw.load(session, data.empty(game.challenge.net.d))
    train.take_weights(session, game.challenge.net)
    session.message = ""
    session.game = game


def end(session: Session) -> None:
    """Leave the game; the page stays as it is."""
    session.game = None


def present_guess(session: Session) -> Dataset:
    """Return what would be handed in now: the claims of the attack on screen, or the drawn points.

    Raises:
        GameError: where there is neither.
    """
    now = session.frame
    if now.stage == "attack" and now.attack.state is not None and now.attack.claims is not None:
        return as_guess(now.attack.claims)
    if now.dataset.n:
        return now.dataset
    raise GameError("attack the weights, or draw the points that you suspect; then hand them in.")


def hand_in(session: Session) -> None:
    """Fix the guess. Against the computer the truth is revealed at once.

    Raises:
        ValueError: where there is no guess, or it was handed in before.
    """
    game = _game(session)
    if game.guess is not None:
        raise GameError("a guess was handed in already, and cannot be changed.")
    session.game = replace(game, guess=present_guess(session))
    if game.computer:
        reveal(session, game.reveal)


def reveal(session: Session, text: str) -> None:
    """Check what the hider reveals, score the guess, and show the points beside it.

    Raises:
        ValueError: where no guess was handed in, or the reveal does not fit the challenge.
    """
    game = _game(session)
    if game.guess is None:
        raise GameError("hand in your guess first: the points are then revealed.")
    run = open_reveal(game.challenge, text)
    session.game = replace(game, reveal=text, score=score_guess(run, game.guess))
    draw.load(session, run.dataset)
    train.take_weights(session, game.challenge.net)
    play.go(session, "arena")
    _show_guess(session, game.guess)


def score_theirs(session: Session, text: str) -> None:
    """Score the guess of the other player, on the hider's page.

    Raises:
        ValueError: where it is no guess, or of other points.
    """
    game = _game(session)
    guess = read_guess(text)
    run = open_reveal(game.challenge, game.reveal)
    session.game = replace(game, guess=guess, score=score_guess(run, guess))


def machine_guess(game: Game) -> Dataset:
    """Return what the computer guesses; it takes a second or two."""
    return computer_guess(game.challenge)


def score_machine(session: Session, game: Game, guess: Dataset) -> None:
    """Score the computer's guess beside that of the player, if the game is still the same."""
    now = session.game
    if now is not None and now.challenge is game.challenge and now.score is not None:
        run = open_reveal(now.challenge, now.reveal)
        session.game = replace(now, machine=score_guess(run, guess))


def _show_guess(session: Session, guess: Dataset) -> None:
    target = session.frame.target
    if target is not None:
        claims = Report(guess.x, guess.y, guess.y.abs())
        session.show(arena=Shown(target, "", claims))


def _game(session: Session) -> Game:
    game = session.game
    if not isinstance(game, Game):
        raise GameError("no game is on: hide points, or open a challenge.")
    return game

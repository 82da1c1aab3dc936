"""The game of two: hide points in weights, guess them, and see who did better."""

from __future__ import annotations

import hmac
import json
import secrets
from functools import partial
from hashlib import sha256

from explorer.page.ask import Ask
from explorer.page.controls.control import GameBox
from explorer.page.frame import Frame
from explorer.page.job import once
from explorer.page.panels.base import Panel
from explorer.page.session import CLASS_KEY, IN_CLASS
from explorer.page.sharing import game, words
from explorer.research.game import LONGEST_LINK, computer_hides

MOST_SEED = 2**53  # of what the computer hides: too many to be tried


class GamePanel(Panel):
    """In the drawer of Share; the game itself is of the session."""

    every_s = 1.0
    follows = ("game",)

    def build(self) -> None:
        """One control; the computer plays beside the page."""
        session, self.job = self.session, Ask(self)
        self.mine = secrets.token_hex(8)  # no other page signs the same score
        self.view = self.widget = GameBox({
            **self.commands(hide=game.begin, end=game.end),
            "computer": self.command(self._computer),
            "hand_in": self.command(self._hand_in),
            "save_challenge": self.command(self._save),
            "take": self.command_of(str, lambda text: game.take(session, text)),
            "theirs": self.command_of(str, lambda text: game.score_theirs(session, text)),
            "reveal": self.command_of(str, self._reveal),
        }, ("mx-game",))  # fmt: skip

    def _hand_in(self) -> None:
        game.hand_in(self.session)
        self._ask_machine()

    def _reveal(self, text: str) -> None:
        game.reveal(self.session, text)
        self._ask_machine()

    def _computer(self) -> None:
        """Let the computer hide points, in a thread."""
        seed = secrets.randbelow(MOST_SEED)
        self.tell(words.COMPUTER_HIDES)

        take = partial(self.session.attempt, game.take_computers, self.session)
        self.job.begin(once(lambda _: computer_hides(seed)), take, self.redraw)
        self.redraw()

    def _ask_machine(self) -> None:
        """Let the computer guess too, once the truth is known."""
        now = self.session.game
        if now is not None and now.score is not None:
            take = partial(self.session.attempt, game.score_machine, self.session, now)
            self.job.begin(once(lambda _: game.machine_guess(now)), take, self.redraw)

    def _save(self) -> None:
        now = self.session.game
        if now is not None:
            text = f"{now.challenge.text}\n".encode()
            self.view.hand_over("challenge.txt", "text/plain", text)

    def render(self, frame: Frame) -> None:
        """Show where the game stands."""
        now = self.session.game
        if now is None:
            self.view.show(part="none", words=words.NO_GAME, busy=self.job.busy, scores=[])
            return
        part = (
            "hider" if now.hides else "done" if now.score else "waiting" if now.guess else "guesser"
        )
        said = {"hider": words.HIDER, "guesser": words.GUESSER, "waiting": words.WAITING,
                "done": words.DONE}[part]  # fmt: skip
        text = now.challenge.text if now.hides else ""
        self.view.show(
            part=part, words=said, challenge=text, as_link=len(text) <= LONGEST_LINK,
            reveal=now.reveal if now.hides else "", guess=now.guess_text, scores=_scores(now),
            busy=self.job.busy, signed=_signed_score(now, self.mine),
        )  # fmt: skip


def _signed_score(now: game.Game, page: str) -> dict[str, str] | None:
    """Return a score against the computer for the board of a class, as its server believes it."""
    if not IN_CLASS or not now.computer or now.score is None:
        return None
    game_of_page = sha256(f"{page} {now.challenge.text}".encode()).hexdigest()
    score = json.dumps([now.score.points, now.score.found, now.score.n, game_of_page])
    mark = hmac.new(CLASS_KEY.encode(), score.encode(), "sha256").hexdigest()
    return {"score": score, "mark": mark}


def _scores(now: game.Game) -> list[list[str]]:
    """Return the rows of the scores, the best on top."""
    if now.score is None:
        return []
    guesser, hider = ("The guesser", "You") if now.hides else ("You", "The hider")
    rows = [words.score_row(guesser, now.score), words.hider_row(hider, now.score)]
    if now.machine is not None:
        rows.append(words.score_row("The computer, as guesser", now.machine))
    return rows

"""The head of the page: the six stages, examples, lessons, and help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from time import perf_counter
from typing import Any

from explorer.engine.attacks.target import Target
from explorer.page import play
from explorer.page.ask import Ask
from explorer.page.controls.control import Head
from explorer.page.frame import STAGES, Frame, Stage
from explorer.page.job import do_nothing, in_slices
from explorer.page.lessons import course
from explorer.page.lessons.file import contents, packaged_lessons, read
from explorer.page.opening import BREATH_S, SLICE_S, opening, opening_scenario
from explorer.page.panels.base import Panel
from explorer.page.session import SERVED, Note, Session
from explorer.page.sharing.files import check_room
from explorer.page.sharing.words import OPENED, OPENED_POINTS, opening_link
from explorer.page.thumb import thumb
from explorer.page.words.screen import HELP, KEYS, opening_words, stage_gap, stage_tip
from explorer.research.pages import pages
from explorer.research.repeat import is_trained
from explorer.research.scenarios import SCENARIOS, TOPICS, by_name
from explorer.research.state import read_link

SHOWN_S = 0.5  # arbitrary: between two frames meanwhile; many may open a lesson at once
SHEET = Path(course.__file__).parent / "pictures" / "all.webp"  # made by scripts/lessons.py
STORY = {"page": "../../story", "title": "The story in nine scenes"}  # of the server, see voila.py


class Header(Panel):
    """Stage tabs and menus; it also opens examples."""

    look = ("mx-head-box",)
    every_place = False
    follows = ("lesson",)

    def __init__(
        self, session: Session, share: Callable[[], None] = do_nothing,
        turned: Callable[[], None] = do_nothing,
    ) -> None:  # fmt: skip
        """`share` opens the place of links and files; `turned` hears that a stage was pressed."""
        self._share, self._turned = share, turned
        self._answered: tuple[Target | None, set[Stage]] = None, set()  # of these weights
        super().__init__(session)

    def build(self) -> None:
        """One control holds them all."""
        session = self.session
        self.job = Ask(self, in_thread=False, pause_s=BREATH_S)  # it works on the session
        self.view = self.widget = Head(
            {"stage": self.command_among(tuple(STAGES), self._turn),
             "example": self.command_among(tuple(SCENARIOS), self.open),
             "share": lambda _: self._share(),
             "lesson": self.command_among(
                 range(len(contents())), lambda k: course.begin(session, packaged_lessons()[k])),
             "lesson-file": self.command_of(
                 str, lambda text: course.begin(session, read(text.encode()))),
             "record": self.command(lambda: course.record(session)),
             "pictures": lambda _: self.view.send({"kind": "pictures"}, [SHEET.read_bytes()])},
            about=escape(HELP), examples=_examples(), keys=[list(row) for row in KEYS],
            lessons=[{"title": title, "line": line} for title, line in contents()],
            pages=[*[STORY] * SERVED, *({"page": one.name, "title": one.title} for one in pages())],
        ).add_class("mx-head")  # fmt: skip

    def _turn(self, stage: str) -> None:
        """Turn to a stage, also to that on screen: what covers it is closed."""
        self._turned()
        play.turn(self.session, stage)

    def open(self, name: str, beside: bool = True) -> None:
        """Open an example; if `beside`, it trains in slices, and the visitor sees it.

        Raises:
            ValueError: for an unknown name, with the names there are.
        """
        by_name(name)
        seconds = SLICE_S if beside else float("inf")
        slices = opening_scenario(self.session, name, seconds)
        self._follow(slices, lambda share: opening_words(name, share), beside)

    def open_link(self, text: str, beside: bool = True) -> None:
        """Open a link likewise.

        Raises:
            ValueError: where the text is no link, or the link is refused.
        """
        check_room(run := read_link(text))
        words = OPENED if is_trained(run) else OPENED_POINTS
        seconds = SLICE_S if beside else float("inf")
        self._follow(opening(self.session, run, "The link", words, seconds), opening_link, beside)

    def _follow(self, slices: Iterator[float], words: Callable[[float], str], beside: bool) -> None:
        """Do the work slice by slice; if `beside`, between what the visitor does."""
        self._turned()
        self.job.cancel()
        course.end_walk(self.session)  # its words would be of other points
        self.tell(Note(words(0.0)))
        if not beside:
            for _ in slices:
                pass
            return
        shown = -SHOWN_S

        def show(share: float) -> None:
            nonlocal shown
            if (now := perf_counter()) - shown > SHOWN_S:
                self.tell(Note(words(share)))
                self.session.show()
                shown = now

        self.job.begin(in_slices(slices), show)

    def render(self, frame: Frame) -> None:
        """Show the stage of this frame, and which ones are done or not yet to be had.

        What was answered of these weights stays so while other questions are asked.
        """
        if frame.target is not self._answered[0]:
            self._answered = frame.target, set()
        answered = self._answered[1]
        answered |= {stage for stage, is_so in ANSWERED.items() if is_so(frame)}
        self.view.show(
            now=frame.stage,
            stages=[
                {"key": key, "title": title, "tip": stage_tip(frame, key, tip),
                 "state": _state(frame, key, answered)}
                for key, (title, tip) in STAGES.items()
            ],
        )  # fmt: skip


def _has_explanation(frame: Frame) -> bool:
    """Return whether a question of Explain was answered, or a hand made two of a point."""
    asked, radii, held = frame.asked, frame.radii, frame.explain
    if asked is not None and asked.target is frame.target and asked.done:
        return True
    if radii is not None and radii.target is frame.target and radii.done:
        return True
    if held is None or held.present.target is not frame.target:
        return False
    made = held.present
    if made.is_example:  # the page itself showed it
        return False
    return bool(made.words) or made.forced is not None or made.far is not None


def _has_ended_runs(frame: Frame) -> bool:
    """Return whether runs of Landscape have ended, or a census of its starts."""
    held = frame.starts
    if held is None or held.problem.of.target is not frame.target:
        return False
    runs = held.arrivals
    ended = runs is not None and runs.ended == runs.total
    run = held.trail[-1].claims if held.trail else None
    return ended or held.census is not None or run is not None


def _has_comparison(frame: Frame) -> bool:
    """Return whether the runs of Compare have ended."""
    shown = frame.arena
    return shown is not None and shown.target is frame.target and bool(shown.runs)


# What makes a stage done that asks something of the attacked weights.
ANSWERED: dict[Stage, Callable[[Frame], bool]] = {
    "explain": _has_explanation, "landscape": _has_ended_runs, "arena": _has_comparison,
}  # fmt: skip


def _state(frame: Frame, stage: Stage, answered: set[Stage]) -> str:
    """Return whether the work of a stage is "done", can be begun ("open"), or "later"."""
    if stage_gap(frame, stage) and not (stage == "train" and frame.training.state is not None):
        return "later"
    done = {
        "draw": frame.dataset.n, "train": frame.training.state is not None,
        "attack": frame.newest and frame.attack.t,
        **{key: frame.newest and key in answered for key in ANSWERED},
    }  # fmt: skip
    return "done" if done.get(stage) else "open"


def _examples() -> list[dict[str, Any]]:
    """Return the scenarios by what they are about."""
    return [
        {"group": topic, "rows": [
            {"name": row.name, "sentence": row.sentence, "fails": row.fails,
             "points": thumb(row.run.dataset)}
            for row in map(by_name, names)
        ]}
        for topic, names in TOPICS.items()
    ]  # fmt: skip

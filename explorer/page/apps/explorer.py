"""The main page: which panels it has, and where they stand."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import ipywidgets as w

from explorer.engine.data import Dataset
from explorer.engine.files import read_file
from explorer.engine.threads import limit_threads
from explorer.page import cards, play
from explorer.page.ahead import Ahead
from explorer.page.apps.instrument import Instrument
from explorer.page.apps.page import show, under_voila
from explorer.page.clock import Player
from explorer.page.controls.access import Access, Welcome
from explorer.page.controls.control import Folds
from explorer.page.keeping.panel import Keeping
from explorer.page.lessons import course, file
from explorer.page.lessons.file import Lesson, packaged_lessons, read
from explorer.page.lessons.panel import LessonPanel
from explorer.page.opening import open_recorded
from explorer.page.panels.base import Panel
from explorer.page.panels.header import Header
from explorer.page.panels.headline import HeadlinePanel
from explorer.page.panels.notice import NoteBox, Notice
from explorer.page.panels.transport import TransportPanel
from explorer.page.plane.band import BandPanel
from explorer.page.plane.curve import CurveBar
from explorer.page.plane.panel import PlanePanel
from explorer.page.session import Session
from explorer.page.sharing import game
from explorer.page.sharing.panel import SharePanel
from explorer.page.stages.draw.tools import Tools
from explorer.page.stages.landscape.panel import LandscapeTabs
from explorer.page.view.bundle import Bundle
from explorer.research.game import is_challenge
from explorer.research.state import read_link
from explorer.style import CSS


def panel_class(panel: str) -> type[Panel]:
    """Return the class of a panel that `page.cards` names."""
    module, _, name = panel.rpartition(".")
    found: type[Panel] = getattr(import_module(f"explorer.page.{module}"), name)
    return found


PLANE = ("PlanePanel", "Tools", "CurveBar", "Notice")
CARDS = tuple(panel_class(panel) for panel in cards.CARDS.values())
FOLDS = {title: tuple(map(panel_class, panels)) for title, panels in cards.FOLDS.items()}
Drawn = Dataset | tuple[Any, Any] | str  # or points x and classes y, arrays or lists, or a link


class App(Instrument):
    """One visitor's page: a session, its clock and its panels."""

    def __init__(
        self, dataset: Drawn | None = None, seed: int = 0, scenario: str | None = None,
        lesson: int | str | Path | Lesson | None = None,
    ) -> None:  # fmt: skip
        """Build the page on a lesson, else a scenario, else a dataset or a link."""
        super().__init__()
        limit_threads()  # many kernels share one machine
        link = dataset if isinstance(dataset, str) else ""
        self.bundle = Bundle()
        self.session = Session(_points_of(dataset), self.bundle.together, seed=seed)
        self.player = Player(self.session)
        self.follow(self.session)
        self.open = ""  # the fold that is open
        self.header = header = Header(self.session, lambda: self.toggle(cards.SHARE), self._unshare)
        self.plane = PlanePanel(self.session)
        share = SharePanel(self.session, False, self._on_link, self._unshare)
        shown: tuple[type[Panel], ...] = (
            Tools, CurveBar, Notice, NoteBox, BandPanel, HeadlinePanel, *CARDS, LandscapeTabs,
            TransportPanel, LessonPanel,
        )  # fmt: skip
        unseen = [Keeping(self.session), Ahead(self.session)]
        made = [header, *unseen, self.plane, *(kind(self.session) for kind in shown)]
        for kind in (kind for kinds in FOLDS.values() for kind in kinds):
            made.append(share if kind is SharePanel else kind(self.session, unfolded=False))
        self.panels: dict[str, Panel] = {type(panel).__name__: panel for panel in made}
        for half in cards.HALF:
            self.panels[cards.class_name(cards.CARDS[half])].look += ("mx-half",)
        self.folds = Folds({"fold": self.toggle}, titles=[], open="").add_class("mx-folds")
        self.cards = w.Box().add_class("mx-cards")
        self.drawer = w.Box().add_class("mx-drawer")
        self.access = Access()
        self.access.observe(self._on_present, names=["present"])
        self.welcome = Welcome(
            lambda: play.begin_own(self.session),
            self._on_link,
            lambda k: self.session.attempt(lambda: course.begin(self.session, lesson_of(k))),
        )
        self.widget = self._laid_out()
        self._place()
        self.session.observe(self._place, names=["shown", "lesson"])  # after the panels
        if scenario is None and dataset is None and under_voila():
            open_recorded(self.session)  # what the template has just played
        if scenario is not None:
            header.open(scenario, beside=under_voila())
        elif link:
            header.open_link(link, beside=under_voila())
        if lesson is not None:
            course.begin(self.session, lesson_of(lesson))

    def _laid_out(self) -> w.Box:
        """Head, plane and side, transport: the grid itself is in page.css."""
        box = {name: panel.box for name, panel in self.panels.items() if panel.on_screen}
        plane = w.Box([self.panels[name].box for name in PLANE]).add_class("mx-stage")
        foot = w.Box(
            [self.folds, *(self.panels[name].box for name in ("NoteBox", "LandscapeTabs"))]
        ).add_class("mx-foot")
        side = w.Box([box["HeadlinePanel"], self.cards, self.drawer, foot])
        lesson, band = (self.panels[name].box for name in ("LessonPanel", "BandPanel"))
        main = w.Box([lesson, plane, band, side.add_class("mx-side")]).add_class("mx-main")
        unseen = [w.HTML(CSS), self.access, self.welcome, box["Keeping"]]
        head = w.Box(unseen).add_class("mx-unseen")
        screen = w.Box([head, box["Header"], main, box["TransportPanel"]]).add_class("mx-screen")
        return w.Box([screen]).add_class("mx-app").add_class("mx-explorer")

    def _unshare(self) -> None:
        """Close what was opened to share, which covers the stage."""
        if self.open == cards.SHARE:
            self.unfold("")

    def _place(self, change: Any = None) -> None:  # noqa: ANN401 - a change
        """Put the panels that are on screen where they belong; the others cost nothing."""
        if change is not None and change["name"] == "lesson":
            if course.step_of(change["old"]) != course.step_of(change["new"]):
                self._unshare()
        frame, left = self.session.frame, course.cards_of(self.session)
        titles = [
            title
            for title, kinds in FOLDS.items()
            if title != cards.SHARE
            and (title == self.open or self._offers_fold(title))
            and any(self.panels[kind.__name__].belongs(frame) for kind in kinds)
        ]
        if self.open and self.open not in (*titles, cards.SHARE):
            self.unfold("")
        self.folds.show(titles=titles, open=self.open)
        named = [kind.__name__ for kind in CARDS if left is None or kind.__name__ in left]
        _fill(self.cards, [self.panels[name] for name in named])
        _fill(self.drawer, [self.panels[kind.__name__] for kind in FOLDS.get(self.open, ())])

    def _offers_fold(self, title: str) -> bool:
        """Return whether a lesson, if there is one, has this fold and names it."""
        left, naming = course.cards_of(self.session), course.naming_words(self.session)
        return left is None or naming is None or ("folds" in left and title in naming[0])

    def toggle(self, title: Any) -> None:  # noqa: ANN401 - from a browser
        """Open the fold of this title, or close it if it is open."""
        if isinstance(title, str) and title in FOLDS:
            self.unfold("" if title == self.open else title)

    def unfold(self, title: str) -> None:
        """Open the fold of this title alone; an empty title closes all."""
        self.open = title
        for name, kinds in FOLDS.items():
            for kind in kinds:
                panel = self.panels[kind.__name__]
                if panel.unfolded != (name == title):
                    panel.unfold(name == title)
        self._place()

    def panel(self, name: str) -> Panel:
        """Return a panel; the fold in which it stands is opened."""
        for title, kinds in FOLDS.items():
            if name in [kind.__name__ for kind in kinds] and title != self.open:
                self.unfold(title)
        return self.panels[name]

    def _on_link(self, text: str) -> None:
        """Open the link of the address: a run, a lesson, or the weights of a challenge."""
        if is_challenge(text):
            self.unfold(cards.SHARE)
            self.session.attempt(game.take, self.session, text)
        elif file.is_link(text):
            self.session.attempt(lambda: course.begin(self.session, file.read_link(text)))
        else:
            self.session.attempt(self.header.open_link, text)

    def _on_present(self, change: dict[str, Any]) -> None:
        """Draw larger points while the page is shown to a class."""
        self.plane.view.present = change["new"]

    def close(self) -> None:
        """Stop the clock and free the widgets; a second call does nothing."""
        if self.widget.comm is None:
            return
        self.player.close()
        self.session.unobserve(self._place, names=["shown", "lesson"])
        for panel in self.panels.values():
            panel.close()
        self.bundle.close()
        self.widget.close()


def _points_of(drawn: Drawn | None) -> Dataset | None:
    """Return the points that a page begins with."""
    if isinstance(drawn, str):
        return read_link(drawn).dataset
    return drawn if drawn is None or isinstance(drawn, Dataset) else Dataset.of(*drawn)


def _fill(box: w.Box, panels: list[Panel]) -> None:
    """Show those of the panels that are on screen, in their order."""
    children = tuple(panel.box for panel in panels if panel.on_screen)
    if box.children != children:
        box.children = children


def lesson_of(given: int | str | Path | Lesson) -> Lesson:
    """Return a lesson by its number in the course, or from a file or a link.

    Raises:
        ValueError: for a number that there is not, or a file that is no lesson.
    """
    if isinstance(given, Lesson):
        return given
    if isinstance(given, str) and file.is_link(given):
        return file.read_link(given)
    if not isinstance(given, int):
        return read(read_file(given))
    if not 0 <= given < len(packaged_lessons()):
        raise ValueError(f"there are lessons 0 to {len(packaged_lessons()) - 1}; got {given}")
    return packaged_lessons()[given]


def app(
    dataset: Drawn | None = None, seed: int = 0, scenario: str | None = None,
    lesson: int | str | Path | Lesson | None = None, *, shown: bool = True,
) -> App:  # fmt: skip
    """Show the explorer in this cell. To run the cell again replaces its pages.

    Args:
        dataset: what is drawn at first, a set or a pair (x, y) of arrays, or a link, which is
            trained and attacked as it says; nothing by default.
        seed: of initialisation and attack.
        scenario: name of a row in `explorer.research.scenarios` to open on instead.
        lesson: number of a lesson, or a file or a link of one, to open on instead.
        shown: False to place it oneself, as in `ipywidgets.HBox([a.widget, b.widget])`.

    Returns:
        The page: its traits are what was drawn, trained, claimed and found, its methods do what
        clicks do.

    Example:
        >>> from explorer import app, preset
        >>> page = app(preset("two-points"), shown=False)
        >>> page.train(50, widths=(6,))
        >>> page.network.widths, page.dataset.n
        ((6,), 2)
    """
    return show(App, lambda: App(dataset, seed, scenario, lesson), shown)

"""The main page: which panels it has, in which order."""

from __future__ import annotations

import ipywidgets as w

from explorer.engine.data import Dataset
from explorer.engine.threads import limit_threads
from explorer.page.clock import Player
from explorer.page.panels.arena import Arena
from explorer.page.panels.base import Panel
from explorer.page.panels.chooser import Chooser
from explorer.page.panels.curves import LossCurves, MarginCurves, ResidualCurves
from explorer.page.panels.energy import EnergyPanel
from explorer.page.panels.explain import ExplainPanel
from explorer.page.panels.files import Files
from explorer.page.panels.forms import AttackForm, TrainForm
from explorer.page.panels.grid import GridPanel
from explorer.page.panels.header import Header
from explorer.page.panels.hinges import HingesPanel
from explorer.page.panels.margins import MarginsPanel
from explorer.page.panels.mixpad import MixPad
from explorer.page.panels.other import OtherPanel
from explorer.page.panels.plane import PlanePanel
from explorer.page.panels.scoreboard import Scoreboard
from explorer.page.panels.starts import StartsPanel
from explorer.page.panels.tools import Tools
from explorer.page.panels.transport import Transport
from explorer.page.panels.tuner import Tuner
from explorer.page.panels.univariate import UnivariatePanel
from explorer.page.parts.access import Access, tips_of
from explorer.page.parts.page import show, under_voila
from explorer.page.session import Session
from explorer.style import CSS

# Every view once: where it stands, and in which order. A new panel is one row here.
LEFT: tuple[type[Panel], ...] = (PlanePanel, Tools)
CHARTS: tuple[type[Panel], ...] = (
    MarginCurves, ResidualCurves, LossCurves, HingesPanel, Scoreboard,
)  # fmt: skip
BELOW: tuple[type[Panel], ...] = (
    ExplainPanel, OtherPanel, MixPad, TrainForm, AttackForm, Tuner, Arena, StartsPanel,
    EnergyPanel, GridPanel,
)  # fmt: skip
ALL: tuple[type[Panel], ...] = (
    Header,
    *LEFT,
    Chooser,
    MarginsPanel,
    UnivariatePanel,
    *CHARTS,
    *BELOW,
    Transport,
    Files,
)


class App:
    """One visitor's page: a session, its clock and its panels."""

    def __init__(
        self, dataset: Dataset | None = None, seed: int = 0, scenario: str | None = None
    ) -> None:
        """Build the page. `dataset` is drawn at first, or the scenario of the name `scenario`."""
        limit_threads()  # many kernels share one machine
        self.session = Session(dataset, seed=seed)
        self.player = Player(self.session)
        self.panels = {kind.__name__: kind(self.session) for kind in ALL}
        box = {kind: self.panels[kind.__name__].box for kind in ALL}
        left = w.VBox([box[kind] for kind in LEFT]).add_class("mx-left")
        charts = w.HBox([box[kind] for kind in CHARTS]).add_class("mx-charts")
        above = (Chooser, MarginsPanel, UnivariatePanel)
        right = w.VBox([*(box[k] for k in above), charts, *(box[k] for k in BELOW)])
        body = w.Box([left, right.add_class("mx-right")]).add_class("mx-body")
        self.access = Access()
        for panel in self.panels.values():
            panel.box.observe(self._tell_tips, names=["children"])
        self._tell_tips()
        rows = [w.HTML(CSS), self.access, box[Header], body, box[Transport], box[Files]]
        self.widget = w.VBox(rows).add_class("mx-app")
        if scenario is not None:
            header = self.panels["Header"]
            assert isinstance(header, Header)
            header.open(scenario, beside=under_voila())

    def _tell_tips(self, _: object = None) -> None:
        """Tooltips of all controls there are by now: many are made when they are looked at."""
        made = [panel.widget for panel in self.panels.values() if panel.widget is not None]
        for widget in made:
            if isinstance(widget, w.Box):
                widget.observe(self._tell_tips, names=["children"])
        self.access.tips = {k: tip for widget in made for k, tip in tips_of(widget).items()}

    def close(self) -> None:
        """Stop the clock and free the widgets; a second call does nothing."""
        if self.widget.comm is None:
            return
        self.player.close()
        for panel in self.panels.values():
            panel.close()
        self.widget.close()


_shown: App | None = None


def app(dataset: Dataset | None = None, seed: int = 0, scenario: str | None = None) -> App:
    """Show the explorer in this cell. Showing it again replaces the page shown before.

    Args:
        dataset: what is drawn at first; nothing by default.
        seed: of initialisation and attack.
        scenario: name of a row in `explorer.research.scenarios` to open on instead.

    Returns:
        The page: `.session` holds its data, network and attack.
    """
    global _shown
    _shown = show(_shown, lambda: App(dataset, seed, scenario))
    return _shown

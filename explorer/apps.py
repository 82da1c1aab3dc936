"""Which panels, in which order: composition only."""

from __future__ import annotations

import gc

import ipywidgets as w
import torch
from IPython.display import display

from explorer.engine.data import Dataset
from explorer.panels.curves import LossCurves, MarginCurves, ResidualCurves
from explorer.panels.files import Files
from explorer.panels.forms import AttackForm, TrainForm
from explorer.panels.header import Header
from explorer.panels.margins import MarginsPanel
from explorer.panels.mixpad import MixPad
from explorer.panels.plane import PlanePanel
from explorer.panels.scoreboard import Scoreboard
from explorer.panels.tools import Tools
from explorer.panels.transport import Transport
from explorer.parts.access import Access, tips_of
from explorer.player import Player
from explorer.session import Session
from explorer.style import CSS


class App:
    """One visitor's page: a session, its clock and its panels."""

    def __init__(self, dataset: Dataset | None = None, seed: int = 0) -> None:
        """Build the page. `dataset` is what is drawn at first."""
        torch.set_num_threads(1)  # many kernels share one machine
        self.session = Session(dataset, seed=seed)
        self.player = Player(self.session)
        kinds = (
            Header, PlanePanel, Tools, MarginsPanel, MarginCurves, ResidualCurves, LossCurves,
            Scoreboard, MixPad, TrainForm, AttackForm, Transport, Files,
        )  # fmt: skip
        self.panels = {kind.__name__: kind(self.session) for kind in kinds}
        box = {name: panel.box for name, panel in self.panels.items()}
        left = w.VBox([box["PlanePanel"], box["Tools"]]).add_class("mx-left")
        charts = [box[n] for n in ("MarginCurves", "ResidualCurves", "LossCurves", "Scoreboard")]
        right = w.VBox(
            [box["MarginsPanel"], w.HBox(charts).add_class("mx-charts"), box["MixPad"],
             box["TrainForm"], box["AttackForm"]]
        ).add_class("mx-right")  # fmt: skip
        body = w.Box([left, right]).add_class("mx-body")
        tips = {k: v for p in self.panels.values() for k, v in tips_of(p.widget).items()}
        rows = [w.HTML(CSS), Access(tips=tips), box["Header"], body, box["Transport"], box["Files"]]
        self.widget = w.VBox(rows).add_class("mx-app")

    def close(self) -> None:
        """Stop the clock and free the widgets; a second call does nothing."""
        if self.widget.comm is None:
            return
        self.player.close()
        for panel in self.panels.values():
            panel.close()
        self.widget.close()


_shown: App | None = None


def app(dataset: Dataset | None = None, seed: int = 0) -> App:
    """Show the explorer in this cell. Showing it again replaces the page shown before.

    Args:
        dataset: what is drawn at first; nothing by default.
        seed: of initialisation and attack.

    Returns:
        The page: `.session` holds its data, network and attack.
    """
    global _shown
    if _shown is not None:
        _shown.close()  # widgets are never collected while open
    _shown = App(dataset, seed)
    gc.freeze()  # the page's many small objects stay: looking through them cost 3% of the engine
    display(_shown.widget)
    return _shown

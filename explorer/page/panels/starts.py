"""The landscape of all starts: a triangle of energies with a handle, and attacks from there."""

from __future__ import annotations

from typing import Any

import ipywidgets as w
import numpy as np

from explorer.engine.energy.landscape import Weights
from explorer.page.frame import Frame, Starts
from explorer.page.panels.base import Panel
from explorer.page.parts.energies import Energies
from explorer.page.parts.job_row import cancel_button, progress_bar
from explorer.page.stages import landscape
from explorer.page.view.triangle import SHADING, TriangleView, by_rank, shades, span_of
from explorer.page.words import starts as words

LABEL = (
    "Triangle of starts with truth, unseen points and noise at its corners. Arrows move the handle "
    "(Shift: further); T, U and N put it to a corner."
)


class StartsPanel(Panel):
    """Card 1 of the landscape: the triangle, and what is read at the handle."""

    stages = ("landscape",)

    def build(self) -> None:
        """The triangle at the left, numbers beside it."""
        self.energies = Energies(self._on_energies, self._on_energies)
        self.view = TriangleView(label=LABEL, layout=w.Layout(min_height="230px", width="100%"))
        self.view.on_handle(self._on_handle)
        self.title = w.HTML()
        self.read, self.scale, self.said = w.HTML(), w.HTML(), w.HTML()
        self.bar = progress_bar(self.energies.job, "Share of the map computed", "112px")
        self.cancel = cancel_button(self.energies.job, "Keep the map as it is")
        self.energies.job.observe(self._on_job)
        self.aside = w.VBox([self.read, self.scale, self.bar, self.cancel])
        self.body = w.Box(
            [self.view, self.aside],
            layout=w.Layout(display="grid", grid_template_columns="minmax(0, 1fr) 124px",
                            grid_gap="10px", min_height="0"),
        )  # fmt: skip
        self.widget = self.card = w.VBox([self.title, self.body])
        self._drawn: Any = None

    # --- the hand -----------------------------------------------------------------------------
    def _on_handle(self, weights: Weights) -> None:
        self.energies.hand()
        self.command(lambda: landscape.place_handle(self.session, weights))(None)

    # --- the session --------------------------------------------------------------------------
    def render(self, frame: Frame) -> None:
        """Show the handle with its energy; ask for the map of these weights."""
        held = frame.starts
        self.energies.ask(None if held is None else held.landscape)
        if held is None:
            self.said.value = words.html(words.why_none(frame))
            self.card.children = (self.title, self.said)
            self.title.value = words.heading(words.TITLE, "")
            return
        self.card.children = (self.title, self.body)
        self.title.value = words.heading(words.TITLE, words.unit(held.of.attack))
        self.view.handle = held.weights
        self.view.say = words.said(held.weights, held.energy)
        self.read.value = words.readout(held.weights, held.energy)
        self._show(held)

    def _on_energies(self) -> None:
        held = self.session.frame.starts
        if held is not None:
            self._show(held)

    def _on_job(self) -> None:
        for one in (self.bar, self.cancel):
            one.layout.display = "" if self.energies.job.busy else "none"

    def _show(self, held: Starts) -> None:
        """Draw the map, unless the browser has it."""
        values = self.energies.values
        if values is self._drawn:
            return
        self._drawn = values
        if values is None:
            self.view.show({})
            self.scale.value = ""
            return
        ranked = by_rank(values)
        self.view.show({"fill": shades(values, ranked)})
        low = float(np.nanmin(values)) if ranked else span_of(values)[0]
        self.scale.value = words.scale(low, float(np.nanmax(values)), ranked, SHADING)

    def unseen(self, frame: Frame) -> None:
        """Compute nothing out of sight; what is known of these weights stays."""
        self.energies.job.cancel()

    def end(self) -> None:
        """End the work with the page."""
        self.energies.close()

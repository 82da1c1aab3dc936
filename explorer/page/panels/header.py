"""The top of the page: stage, preset, seed, and the one sentence that says what is seen."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from time import perf_counter
from typing import Any

import ipywidgets as w

from explorer.engine.data import PRESETS, preset
from explorer.engine.progress import Progress
from explorer.page import play
from explorer.page.frame import STAGES, Frame
from explorer.page.job import Job
from explorer.page.opening import open_scenario, opening
from explorer.page.panels.base import Panel, button
from explorer.page.stages import draw
from explorer.page.words.headline import headline
from explorer.research.pages import pages
from explorer.research.scenarios import SCENARIOS, by_name

BY_HAND = "by hand"
SLICE_S, BREATH_S = 0.15, 0.03  # arbitrary: of training for an example, and between slices
SHOWN_S = 0.5  # arbitrary: between two frames meanwhile; many may open a lesson at once


class Header(Panel):
    """Stage, preset with n, noise and seed; below, the verdict and any message."""

    def build(self) -> None:
        """Two rows and the sentence."""
        session = self.session
        self.stage = w.ToggleButtons(
            options=[(title, key) for key, title, _ in STAGES],
            tooltips=[tip for *_, tip in STAGES], value=session.frame.stage,
        )  # fmt: skip
        self.stage.style.button_width = "auto"
        self.stage.observe(self._on_stage, names=["value"])
        rows = [(f"{p.title} ({p.d}-D)", key) for key, p in PRESETS.items()]
        self.preset = w.Dropdown(
            options=[("choose a preset …", BY_HAND), *rows], value=BY_HAND,
            tooltip="Draw a ready-made dataset; one undo brings yours back",
            layout=w.Layout(width="220px"),
        )  # fmt: skip
        self.preset.observe(self._on_preset, names=["value"])
        self.n = w.BoundedIntText(20, min=1, max=200, tooltip="Number of points of the preset",
                                  description="n", layout=w.Layout(width="92px"))  # fmt: skip
        self.noise = w.BoundedFloatText(
            0.0, min=0, max=1, step=0.01, tooltip="Noise of the preset, in units of the plane",
            description="noise", layout=w.Layout(width="126px"),
        )  # fmt: skip
        self.seed = w.BoundedIntText(
            0, min=0, max=2**31 - 1, description="seed", layout=w.Layout(width="122px"),
            tooltip="Seed of preset, initialisation and attack: the same seed, the same run",
        )  # fmt: skip
        for field in (self.n, self.noise, self.seed):
            field.style.description_width = "initial"
        again = button("Draw again", "Draw the preset with these n, noise and seed")
        again.on_click(self.command(self._draw_preset))
        self.seed.observe(self._on_seed, names=["value"])
        self.scenario = w.Dropdown(
            options=[("open an example …", ""), *((name, name) for name in SCENARIOS)], value="",
            tooltip="Ready runs: points, network and attack; training takes some seconds",
            layout=w.Layout(width="190px"),
        )  # fmt: skip
        self.scenario.observe(self._on_scenario, names=["value"])
        title = w.HTML("Margin Explorer").add_class("mx-title")
        first = w.HBox([title, self.stage, w.HTML(_menu())]).add_class("mx-header")
        second = w.HBox(
            [self.preset, self.n, self.noise, self.seed, again, self.scenario]
        ).add_class("mx-row")  # fmt: skip
        self.sentence = w.HTML()
        self.verdict = w.VBox([self.sentence]).add_class("mx-verdict")
        self.message = w.HTML()
        self.message_box = w.VBox([self.message]).add_class("mx-message")
        self.widget = w.VBox([w.HBox([first, second]).add_class("mx-header"), self.verdict,
                              self.message_box])  # fmt: skip
        self._setting, self._tone = False, ""
        self.job = Job(in_thread=False, pause_s=BREATH_S)  # it works on the session
        session.observe(self._on_message, names=["message"])
        session.observe(self._on_session_seed, names=["seed"])
        self._on_message({"new": session.message})

    def _on_stage(self, change: dict[str, Any]) -> None:
        if self._setting:
            return
        self.command(lambda: play.go(self.session, change["new"]))(None)
        self._show_stage(self.session.frame.stage)  # where the turn was refused

    def _on_preset(self, change: dict[str, Any]) -> None:
        if self._setting or change["new"] == BY_HAND:
            return
        row = PRESETS[change["new"]]
        with self.n.hold_trait_notifications():  # bounds and value change together
            self.n.min, self.n.max, self.n.value = row.n_min, row.n_max, row.n
        self.noise.value = row.noise
        self.command(self._draw_preset)(None)

    def _on_scenario(self, change: dict[str, Any]) -> None:
        name = change["new"]
        if not name:
            return
        self.scenario.value = ""
        self.command(lambda: self.open(name))(None)

    def open(self, name: str, beside: bool = True) -> None:
        """Open an example; if `beside`, it trains in slices, and the visitor sees it.

        Raises:
            ValueError: for an unknown name, with the names there are.
        """
        by_name(name)
        play.tell(self.session, f"Training for the example {name!r} …")
        if not beside:
            self.job.cancel()
            open_scenario(self.session, name)
            return
        shown = -SHOWN_S

        def work(progress: Progress) -> Iterator[float]:
            for share in opening(self.session, name, SLICE_S):
                progress(share)
                yield share

        def show(share: float) -> None:
            nonlocal shown
            if (now := perf_counter()) - shown > SHOWN_S:
                play.tell(self.session, f"Training for the example {name!r}: {share:.0%} …")
                self.session.show()
                shown = now

        self.job.start(work, show, lambda: self.tell_failure(self.job.error))

    def _draw_preset(self) -> None:
        if self.preset.value == BY_HAND:
            raise ValueError("Choose a preset first; points drawn by hand have no source.")
        session = self.session
        draw.load(session, preset(self.preset.value, self.n.value, self.noise.value, session.seed))
        play.tell(session, PRESETS[self.preset.value].sentence)

    def _on_seed(self, change: dict[str, Any]) -> None:
        play.set_seed(self.session, change["new"])

    def _on_session_seed(self, change: dict[str, Any]) -> None:
        self.seed.value = change["new"]

    def _on_message(self, change: dict[str, Any]) -> None:
        self.message.value = escape(change["new"])
        # The box keeps its height, told or not: the plane below must never jump.
        mark = self.message_box.add_class if change["new"] else self.message_box.remove_class
        mark("told")

    def _show_stage(self, stage: str) -> None:
        self._setting = True
        try:
            self.stage.value = stage
        finally:
            self._setting = False

    def render(self, frame: Frame) -> None:
        """Show the sentence of this frame, and its tone as the colour of its edge."""
        if self.stage.value != frame.stage:
            self._show_stage(frame.stage)
        source = frame.dataset.source
        name = BY_HAND if source is None else source.preset
        if source is not None and (source.n, source.noise) != (self.n.value, self.noise.value):
            with self.n.hold_trait_notifications():
                row = PRESETS[source.preset]
                self.n.min, self.n.max, self.n.value = row.n_min, row.n_max, source.n
            self.noise.value = source.noise
        if self.preset.value != name:
            self._setting = True
            self.preset.value = name
            self._setting = False
        said = headline(frame, self.session.running)
        tone = said.tone
        words = f"<div aria-live='polite'><b>{escape(said.title)}</b> {escape(said.words)}</div>"
        if self.sentence.value != words:
            self.sentence.value = words
        if tone != self._tone:
            if self._tone:
                self.verdict.remove_class(self._tone)
            if tone:
                self.verdict.add_class(tone)
            self._tone = tone

    def end(self) -> None:
        """Stop opening an example."""
        self.job.close()


def _menu() -> str:
    """Links to the lessons and the other pages; the browser completes their addresses."""
    items = "".join(
        f"<li><a data-page='{escape(page.name)}' href='voila/render/{escape(page.name)}' "
        f"target='_blank'>{escape(page.title)}</a></li>"
        for page in pages()
    )
    return (
        f"<details class='mx-menu'><summary>Lessons and pages</summary><ul>{items}</ul></details>"
    )

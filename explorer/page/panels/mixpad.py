"""Where the attack starts: a triangle between truth, held-out data and noise, and two sliders."""

from __future__ import annotations

from typing import Any

import bqplot as bq
import ipywidgets as w
import numpy as np

from explorer.engine.energy.starts import (
    CORNERS,
    mix_from_weights,
    mix_weights,
    outline,
    weights_near,
)
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, with_title
from explorer.page.parts.pad import Pad
from explorer.page.stages import attack

NAMES = ("truth", "held-out", "noise")
STEP = 0.05  # of a slider


class MixPad(Panel):
    """The start (Runkel et al., eq. 10): a dot, and λ₁ (truth against held-out) and λ₂ (data)."""

    stages = ("attack",)

    def build(self) -> None:
        """A small figure with a pad over it, beside the two sliders."""
        x, y = (bq.LinearScale(min=0, max=1, allow_padding=False) for _ in range(2))
        scales = {"x": x, "y": y}
        ring = outline()
        edge = bq.Lines(x=ring[:, 0], y=ring[:, 1], scales=scales, colors=["#7a7a7a"])
        names = bq.Label(
            x=CORNERS[:, 0] + np.array([0.05, -0.06, -0.12]), y=CORNERS[:, 1] + [0.0, -0.12, -0.12],
            text=list(NAMES), scales=scales, default_size=13, font_weight="normal",
            colors=["#7a7a7a"],
        )  # fmt: skip
        self.dot = bq.Scatter(
            x=[0.5], y=[0.5], scales=scales, colors=["#009E73"], default_size=140,
            stroke="white",
        )  # fmt: skip
        figure = bq.Figure(
            marks=[edge, names, self.dot], axes=[], padding_x=0, padding_y=0,
            fig_margin={"top": 0, "bottom": 0, "left": 0, "right": 0}, display_toolbar=False,
            min_aspect_ratio=1.1, max_aspect_ratio=1.1, background_style={"fill": "transparent"},
            layout=w.Layout(width="198px", height="180px", min_width="0"),
        )  # fmt: skip
        self.pad = Pad(
            tip="Drag the dot: the candidates start at this mix of truth, held-out data and noise.",
            label="Triangle of starts; use the two sliders beside it by keyboard.", echo=False,
            spacing=3, cursor="grab",
        )  # fmt: skip
        self.pad.on_msg(self._on_pad)
        triangle = w.Box([figure, self.pad]).add_class("mx-triangle")
        self.sliders = [
            w.FloatSlider(
                min=0, max=1, step=STEP, description=name, tooltip=tip, readout_format=".2f",
                continuous_update=True, layout=w.Layout(width="260px"),
            )
            for name, tip in (
                ("λ₁", "λ₁: share of the truth against the held-out set (0: held-out, 1: truth)"),
                ("λ₂", "λ₂: share of data against noise (0: noise only, 1: no noise)"),
            )
        ]  # fmt: skip
        for slider in self.sliders:
            slider.observe(self._on_slider, names=["value"])
        self.words = w.HTML().add_class("mx-note")
        side = w.VBox([*self.sliders, self.words], layout=w.Layout(flex="1 1 260px"))
        body = w.HBox([triangle, side]).add_class("mx-row")
        self.widget = with_title("Start of the attack (Runkel et al., eq. 10)", body)
        self._setting = False

    def seen(self, frame: Frame) -> bool:
        """Return whether the present attack begins at given candidates."""
        return super().seen(frame) and self.session.entry.takes_start

    def _on_pad(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from the browser
        events = content.get("events") if isinstance(content, dict) else None
        if not isinstance(events, list) or not events or not isinstance(events[-1], dict):
            return
        x, y = (events[-1].get(k) for k in "xy")
        if not isinstance(x, int | float) or not isinstance(y, int | float):
            return
        if np.isfinite(x) and np.isfinite(y):
            self._mix(*mix_from_weights(*weights_near(x, y)))

    def _on_slider(self, _: Any) -> None:  # noqa: ANN401
        if not self._setting:
            self._mix(self.sliders[0].value, self.sliders[1].value)

    def _mix(self, mix_truth: float, mix_data: float) -> None:
        self.command(lambda: attack.remix(self.session, mix_truth, mix_data))(None)

    def render(self, frame: Frame) -> None:
        """Show dot, sliders and words at the session's mix."""
        mix = self.session.mix
        weights = mix_weights(*mix)
        at = np.array(weights) @ CORNERS
        if abs(self.dot.x[0] - at[0]) + abs(self.dot.y[0] - at[1]) > 1e-9:
            with self.dot.hold_sync():
                self.dot.x, self.dot.y = at[:1], at[1:]
        self._setting = True
        try:
            for slider, value in zip(self.sliders, mix, strict=True):
                if abs(slider.value - value) > STEP / 2:
                    slider.value = value
        finally:
            self._setting = False
        parts = ", ".join(f"{100 * v:.0f}% {n}" for v, n in zip(weights, NAMES, strict=True))
        words = f"The candidates start at {parts}. Moving it starts the attack anew."
        if self.words.value != words:
            self.words.value = words

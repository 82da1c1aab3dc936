"""Ready-made sets of points: a picture of each, how many points, how noisy, which seed."""

from __future__ import annotations

from functools import cache
from typing import Any

from explorer.engine.data import PRESETS, preset
from explorer.engine.settings import is_number
from explorer.page.controls.control import Thumbs
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.stages.draw import commands as draw
from explorer.page.thumb import thumb

MOST_SEED = 2**31 - 1
AXIS = {
    1: ("Draw on the plane", "An empty plane: points of two coordinates. Undo brings yours back"),
    2: (
        "Draw on a line",
        "An empty axis: points of one coordinate, above it +1, below it −1. Undo brings yours back",
    ),
}


class Presets(Panel):
    """The first card of the draw stage."""

    look = ("mx-card", "mx-setting")
    stages = ("draw",)
    follows = ("seed",)

    def build(self) -> None:
        """One control."""
        self.view = self.widget = Thumbs({
            "preset": self.command_among(tuple(PRESETS), self._on_preset),
            "redraw": self._on_redraw,
            "seed": self.command_among(range(MOST_SEED + 1), self._reseed),
            "another": self.command(self._another),
            "axis": self.command(self._turn_axis),
        }, ("mx-presets",), sets=thumbs())  # fmt: skip

    def _on_preset(self, name: str) -> None:
        self._load(name, PRESETS[name].n, PRESETS[name].noise)

    def _on_redraw(self, value: Any) -> None:  # noqa: ANN401 - from a browser
        given = value if isinstance(value, dict) else {}
        n, noise = given.get("n"), given.get("noise")
        if isinstance(n, int) and is_number(noise):
            self.do(self._redraw, n, float(noise))

    def _another(self) -> None:
        self._reseed(min(self.session.seed + 1, MOST_SEED))

    def _turn_axis(self) -> None:
        """Begin on a line instead of the plane, or the other way."""
        draw.begin_own(self.session, 3 - self.session.frame.dataset.d)

    def _reseed(self, seed: int) -> None:
        """Draw the chosen set with another seed; points drawn by hand stay."""
        self.session.choose(seed=seed)
        source = self.session.frame.dataset.source
        if source is not None:
            self._load(source.preset, source.n, source.noise)

    def _redraw(self, n: int, noise: float) -> None:
        source = self.session.frame.dataset.source
        if source is None:
            raise ValueError("Choose a set first; points drawn by hand have no source.")
        self._load(source.preset, n, noise)

    def _load(self, name: str, n: int, noise: float) -> None:
        draw.load(self.session, preset(name, n, noise, self.session.seed))

    def render(self, frame: Frame) -> None:
        """Show which set is drawn, and its numbers."""
        source = frame.dataset.source
        axis = AXIS[frame.dataset.d]
        shown: dict[str, Any] = {"chosen": "", "seed": self.session.seed, "axis": axis}
        if source is not None:
            row = PRESETS[source.preset]
            shown |= {"chosen": source.preset, "n": source.n, "noise": source.noise,
                      "low": row.n_min, "high": row.n_max}  # fmt: skip
        self.view.show(**{"n": 20, "noise": 0.0, "low": 1, "high": 200, **shown})


@cache
def thumbs() -> list[dict[str, Any]]:
    """Return every preset with its points, scaled to ±1 for a small picture."""
    return [_thumb(key) for key in PRESETS]


def _thumb(key: str) -> dict[str, Any]:
    row, data = PRESETS[key], preset(key)
    tip = f"{row.title} ({row.d}-D). {row.sentence}"
    return {"key": key, "title": row.title, "tip": tip, "points": thumb(data)}

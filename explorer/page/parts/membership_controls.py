"""The controls of the membership page: what to draw, which rule, and the trained experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as w
import numpy as np

from explorer.engine.data.highdim import LABELS, LAWS, TITLES
from explorer.engine.membership.experiment import MembershipConfig, MembershipTrial
from explorer.page.apps.membership_scene import RULES, Settings

DIMS = (
    *(2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 35, 40, 50, 60, 70, 80, 100, 120, 150, 170, 200),
    *(250, 300, 350, 400, 500, 600, 700, 800, 1000, 1200, 1400, 1600, 1800, 2000),
)
TRAINED_DIMS = "10, 20, 50, 100, 200, 400"
LABEL_TITLES = {"parity": "parity of signs", "random": "random", "component": "component"}


def _with_name(field: w.Widget, width: str) -> w.Widget:
    field.style.description_width = "initial"
    field.layout.width = width
    return field


class Controls:
    """The controls of the exact network and the rule."""

    def __init__(self, start: Settings, changed: Callable[[], None]) -> None:
        """Make rows of controls; `changed` is called after each change."""
        self._changed, self._setting = changed, False
        dims = tuple(sorted({*DIMS, start.d}))
        self.d = _with_name(w.SelectionSlider(
            options=[(f"{d}", d) for d in dims], value=start.d, description="dimension d",
            tooltip="Dimension of the points; the network is solved anew at every move",
        ), "min(100%, 350px)")  # fmt: skip
        self.n = _with_name(w.IntSlider(start.n, min=1, max=50, description="points n",
                                    tooltip="Number of training points"), "210px")  # fmt: skip
        self.law = _with_name(w.Dropdown(options=[(TITLES[k], k) for k in LAWS], value=start.law,
                                     description="distribution",
                                     tooltip="Of members and fresh points"), "262px")  # fmt: skip
        self.labels = _with_name(w.Dropdown(options=_label_options(start.law), value=start.labels,
                                        description="labels",
                                        tooltip="How points are labelled"), "196px")  # fmt: skip
        self.seed = _with_name(w.BoundedIntText(start.seed, min=0, max=2**31 - 1,
                                                description="seed",
                                                tooltip="Of all points"), "100px")  # fmt: skip
        self.rule = w.ToggleButtons(
            options=[(title, key) for key, title in RULES.items()], value=start.rule,
            tooltips=("The attacker knows m", "One of several suspects is known to be a member",
                      "The attacker knows a lower bound of m only"),
        )  # fmt: skip
        self.rule.style.button_width = "auto"
        self.share = _with_name(w.FloatSlider(
            start.share, min=0.05, max=1, step=0.05, description="threshold / m",
            readout_format=".2f",
            tooltip="Share of the margin that |Φ(x)| must reach; the paper takes ½",
        ), "270px")  # fmt: skip
        self.suspects = _with_name(w.IntSlider(
            start.suspects, min=1, max=100, description="suspects",
            tooltip="Points of which one is a member; the largest |Φ| of them stands for m",
        ), "250px")  # fmt: skip
        self.low = _with_name(w.FloatSlider(
            start.low, min=0.1, max=1, step=0.05, description="lower bound / m",
            readout_format=".2f",
            tooltip="What the attacker knows: m is at least this share of itself",
        ), "270px")  # fmt: skip
        self._extra = w.HBox().add_class("mx-row")
        first = w.HBox([self.d, self.n, self.law, self.labels, self.seed]).add_class("mx-row")
        second = w.HBox([self.rule, self._extra]).add_class("mx-row")
        self.widget = w.VBox([first, second]).add_class("mx-card")
        self.law.observe(self._on_law, names=["value"])
        for field in (self.d, self.n, self.law, self.labels, self.seed, self.rule, self.share,
                      self.suspects, self.low):  # fmt: skip
            field.observe(self._on_any, names=["value"])
        self._arrange()

    def _on_law(self, change: dict[str, Any]) -> None:
        wanted = self.labels.value
        options = _label_options(change["new"])
        self._setting = True
        self.labels.options = options
        self.labels.value = wanted if wanted in [v for _, v in options] else "parity"
        self._setting = False

    def _on_any(self, _: Any) -> None:  # noqa: ANN401
        if not self._setting:
            self._arrange()
            self._changed()

    def _arrange(self) -> None:
        rows = {
            "known": (self.share,),
            "leaked": (self.share, self.suspects),
            "bounded": (self.low,),
        }
        if self._extra.children != rows[self.rule.value]:
            self._extra.children = rows[self.rule.value]

    def settings(self) -> Settings:
        """Return the settings of the controls."""
        return Settings(
            d=self.d.value, n=self.n.value, law=self.law.value, labels=self.labels.value,
            seed=self.seed.value, rule=self.rule.value, share=self.share.value,
            suspects=self.suspects.value, low=self.low.value,
        )  # fmt: skip


def _label_options(law: str) -> list[tuple[str, str]]:
    kept = [k for k in LABELS if k != "component" or law == "mixture"]
    return [(LABEL_TITLES[k], k) for k in kept]


class TrainedControls:
    """The button, its settings and its progress."""

    def __init__(self, toggle: Callable[[], None]) -> None:
        """One row; `toggle` starts the experiment or stops it."""
        self.button = w.Button(description=START, button_style="primary", tooltip=(
            "Trains networks of 10,000 neurons by the paper's settings, with the distribution, "
            "labels, n and seed above; again: cancel"))  # fmt: skip
        self.button.on_click(lambda _: toggle())
        self.dims = _with_name(w.Text(TRAINED_DIMS, description="dimensions",
                                  continuous_update=False,
                                  tooltip="By commas"), "300px")  # fmt: skip
        self.trials = _with_name(w.BoundedIntText(3, min=1, max=50, description="trials",
                                              tooltip="For each d"), "110px")  # fmt: skip
        self.bar = w.FloatProgress(
            0, min=0, max=1, layout=w.Layout(width="160px", visibility="hidden")
        )
        self.note = w.HTML("Nothing trained yet: the button fills the last chart.").add_class(
            "mx-note"
        )
        self.widget = w.HBox(
            [self.button, self.dims, self.trials, self.bar, self.note]
        ).add_class("mx-row").add_class("mx-card")  # fmt: skip

    def config(self, settings: Settings) -> MembershipConfig:
        """Return the experiment that the controls describe.

        Raises:
            ValueError: if the dimensions are not a list of numbers, or are missing.
        """
        try:
            dims = tuple(int(word) for word in self.dims.value.split(","))
        except ValueError as error:
            raise ValueError(
                f"dimensions are numbers such as 10, 20, 100; got {self.dims.value!r}"
            ) from error
        return MembershipConfig(
            dims=tuple(sorted(set(dims))), trials=self.trials.value, n=settings.n,
            law=settings.law, labels=settings.labels, seed=settings.seed,
        )  # fmt: skip

    def busy(self, total: int) -> None:
        """While it runs, the button cancels."""
        self.button.description, self.button.button_style = "Cancel", "warning"
        self.bar.max, self.bar.value = total, 0
        self.bar.layout.visibility = "visible"
        self.note.value = "training the first network"

    def progress(self, done: int, d: int) -> None:
        """Show that one more network is trained."""
        self.bar.value = done
        self.note.value = f"{done} of {self.bar.max:.0f} networks; the last in dimension {d}"

    def told(self, trials: Sequence[MembershipTrial], total: int) -> None:
        """Show one sentence on the result."""
        if not trials:
            self.note.value = "Cancelled before the first network was trained."
            return
        last = trials[-1].d
        mine = [t for t in trials if t.d == last]
        above = float(np.nanmean([t.beyond for t in mine]))
        on = float(np.nanmean([t.on_margin for t in mine]))
        what = "" if len(trials) == total else f"Cancelled after {len(trials)} of {total}. "
        self.note.value = (
            f"{what}At d = {last}, {on:.0%} of the training points lie within 10% of the margin "
            f"and {above:.2%} of {len(mine) * mine[0].fresh.numel()} fresh points reach it."
        )

    def idle(self) -> None:
        """Ready to start again."""
        self.button.description, self.button.button_style = START, "primary"
        self.bar.layout.visibility = "hidden"


START = "Run the trained experiment"

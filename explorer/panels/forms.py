"""The settings of training and attack: one row per field of their configs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ipywidgets as w

from explorer.engine.data import Dataset
from explorer.engine.exact import maximum_margin
from explorer.panels.base import Panel, button

JUMP = "Jump to the exact solution"
QUICK = 40  # points that are solved within a fraction of a second
WIDE = w.Layout(width="250px")


@dataclass(frozen=True)
class Row:
    """One setting: the config's field, its widget, and how the two translate."""

    field: str
    widget: w.Widget
    to_config: Callable[[Any], Any] = lambda v: v
    to_widget: Callable[[Any], Any] = lambda v: v


def choice(name: str, tip: str, *options: Any) -> w.Dropdown:  # noqa: ANN401
    """A dropdown over (words, value) or plain values."""
    return _named(w.Dropdown(options=options, description=name, tooltip=tip, layout=WIDE))


def whole(name: str, tip: str, low: int, high: int) -> w.BoundedIntText:
    """A whole number between two bounds."""
    return _named(
        w.BoundedIntText(min=low, max=high, description=name, tooltip=tip, layout=WIDE,
                         continuous_update=False)
    )  # fmt: skip


def real(name: str, tip: str, low: float, high: float) -> w.BoundedFloatText:
    """A real number between two bounds."""
    return _named(
        w.BoundedFloatText(min=low, max=high, description=name, tooltip=tip, layout=WIDE,
                           continuous_update=False)
    )  # fmt: skip


def _named(widget: w.Widget) -> w.Widget:
    widget.style.description_width = "112px"
    return widget


class Form(Panel):
    """Rows of settings, the rarely used ones folded. Refused values jump back."""

    config_trait = ""

    def rows(self) -> tuple[list[Row], list[Row]]:
        """Settings in sight, and folded ones."""
        raise NotImplementedError

    def actions(self) -> list[w.Widget]:
        """Buttons beside the settings."""
        return []

    def build(self) -> None:
        """Lay the rows out in two columns where there is room."""
        shown, folded = self.rows()
        self.all = [*shown, *folded]
        more = w.Accordion(
            children=[self._box(folded)], selected_index=None, titles=("More settings",)
        )
        self.widget = w.VBox([self._box(shown, self.actions()), more])
        self._setting = False
        self._fill()
        for row in self.all:
            row.widget.observe(self._changed(row), names=["value"])
        self.session.observe(lambda _: self._fill(), names=[self.config_trait])

    def _box(self, rows: list[Row], more: list[w.Widget] | None = None) -> w.HBox:
        return w.HBox([*(row.widget for row in rows), *(more or [])]).add_class("mx-row")

    def _changed(self, row: Row) -> Callable[[dict[str, Any]], None]:
        def put(change: dict[str, Any]) -> None:
            if self._setting:
                return
            value = row.to_config(change["new"])
            self.command(lambda: self.session.configure(**{row.field: value}))(None)
            self._fill()  # a refused value jumps back

        return put

    def _fill(self) -> None:
        config = getattr(self.session, self.config_trait)
        self._setting = True
        try:
            for row in self.all:
                value = row.to_widget(getattr(config, row.field))
                if row.widget.value != value:
                    row.widget.value = value
        finally:
            self._setting = False


class TrainForm(Form):
    """Architecture, loss and optimiser."""

    stages = ("draw", "train")
    config_trait = "train_config"

    def rows(self) -> tuple[list[Row], list[Row]]:
        """What a teacher changes in sight; the rest folded."""
        self.layers = choice("hidden layers", "Two layers of weights, or three", ("1", 1), ("2", 2))
        self.width = whole("width", "Neurons in each hidden layer", 1, 2000)
        shown = [
            Row("widths", self.layers, self._widths, len),
            Row("widths", self.width, self._widths, lambda v: v[0]),
            Row("method", choice(
                "method", "Gradient descent, or normalised ascent of the smoothed margin: it goes "
                "to the limit in about a second", ("gradient descent", "gradient"),
                ("normalised ascent", "ascent"))),
            Row("lr", real("step size", "Rate in the units of the step rule; 0: the rule's own",
                           0, 100), lambda v: v or None, lambda v: v or 0.0),
        ]  # fmt: skip
        folded = [
            Row("loss", choice("loss", "exp(−q) or log(1 + exp(−q)) of the margins q",
                               "exponential", "logistic")),
            Row("step_rule", choice("step rule", "Constant, or divided by the loss, so that the "
                                    "direction keeps moving", "constant", "loss-scaled")),
            Row("momentum", real("momentum", "Heavy-ball momentum, below 1", 0, 0.999)),
            Row("batch", whole("mini-batch", "Points per step; 0: all of them", 0, 200),
                lambda v: v or None, lambda v: v or 0),
            Row("steps", whole("steps", "Planned steps: the run ends there",
                               1, 10_000_000)),
            Row("ascent_steps", whole("ascent steps", "Steps in which the ascent goes to "
                                      "its limit", 1, 1_000_000)),
            Row("init_scale", real("init scale", "Standard deviation of the first layer at t = 0; "
                                   "Haim et al.: 0.0001, with a long plateau", 1e-8, 10)),
        ]  # fmt: skip
        return shown, folded

    def _widths(self, _: Any) -> tuple[int, ...]:  # noqa: ANN401
        return (self.width.value,) * self.layers.value

    def actions(self) -> list[w.Widget]:
        """The way to the limit without training."""
        self.jump = button(
            JUMP, "Solve for the exact maximum-margin network: two layers, 1-D and 2-D"
        )
        self.jump.on_click(self.command(self._jump))
        self._solving: asyncio.Task[None] | None = None
        return [self.jump]

    def _jump(self) -> None:
        data = self.session.now.dataset
        if self._solving is not None and not self._solving.done():
            self._solving.cancel()
        elif data.n <= QUICK:
            self.session.jump_to_exact()
        else:
            self._solving = asyncio.get_event_loop().create_task(self._solve(data))

    async def _solve(self, data: Dataset) -> None:
        """Solve beside the page; press again to cancel, and edited points are left alone."""
        session = self.session
        self.jump.description = "Cancel solving"
        session.message = f"Solving for {data.n} points; this may take ten seconds."
        try:
            exact = await asyncio.to_thread(maximum_margin, data.x, data.y)
            session.message = "The points changed meanwhile; press again to solve for these."
            if session.now.dataset is data:
                session.guarded(session.jump_to_exact, exact)
        except asyncio.CancelledError:
            session.message = "Solving was cancelled; the network is as it was."
        except ValueError as error:
            session.message = str(error)
        finally:
            self.jump.description = JUMP


class AttackForm(Form):
    """Candidates, multipliers and optimiser of the KKT attack."""

    stages = ("attack",)
    config_trait = "kkt_config"

    def rows(self) -> tuple[list[Row], list[Row]]:
        """Haim's four knobs in sight."""
        shown = [
            Row("m", whole("candidates m", "Half of them per class; at least 2n is usual", 2, 400)),
            Row("relu_alpha", real("ReLU α", "Slope sigmoid(αz) in the backward pass", 1, 10_000)),
            Row("lam_min", real("floor λ_min", "Multipliers below this share of their mean are "
                                "pulled up", 0, 10)),
            Row("lr_x", real("rate of x", "Learning rate of the candidates", 1e-8, 10)),
        ]  # fmt: skip
        folded = [
            Row("multipliers", choice("multipliers", "Stepped with the candidates, or solved for "
                                      "exactly at each step", "joint", "projected")),
            Row("optimizer", choice("optimiser", "SGD with momentum, or Adam", "sgd", "adam")),
            Row("relu_alpha_start", real("annealed from", "ReLU α at the first step; 0: "
                                         "constant, as published", 0, 10_000),
                lambda v: v or None, lambda v: v or 0.0),
            Row("lr_lam", real("rate of λ", "Learning rate of the multipliers", 1e-8, 10)),
            Row("sigma_x", real("noise σ_x", "Standard deviation of a start from noise", 0, 5)),
            Row("weight_margin", real("weight of margin", "Pull of the candidates onto |Φ| = 1: "
                                      "support points lie there; 0 as published", 0, 1000)),
            Row("merge_angle", real("merge angle", "Neurons closer than this many radians are "
                                    "merged before the attack; 0: none", 0, 1)),
            Row("prior", real("prior box", "Half width of the box that holds the data; 0: none",
                              0, 100), lambda v: v or None, lambda v: v or 0.0),
            Row("steps", whole("steps", "Length of the attack", 1, 1_000_000)),
        ]  # fmt: skip
        return shown, folded

    def actions(self) -> list[w.Widget]:
        """Take the newest weights as the target."""
        again = button("Attack the newest weights", "Take the present network as the target anew")
        again.on_click(self.command(self.session.begin_attack))
        return [again]

"""The settings of training and attack: one row per field of their configs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import ipywidgets as w

from explorer.engine.data import Dataset
from explorer.engine.exact import maximum_margin
from explorer.frame import Frame
from explorer.panels.base import Panel, button
from explorer.parts import (
    settings_bilevel,
    settings_decoreco,
    settings_hinge,
    settings_inversion,
    settings_kkt,
    settings_pooled,
    settings_univariate,
)
from explorer.parts.settings import Row, Rows, choice, real, whole
from explorer.session import Session

JUMP = "Jump to the exact solution"
SETTINGS: dict[str, Callable[[], Rows]] = {
    "kkt": settings_kkt.rows,
    "inversion": settings_inversion.rows,
    "hinge": settings_hinge.rows,
    "pooled": settings_pooled.rows,
    "decoreco": settings_decoreco.rows,
    "univariate": settings_univariate.rows,
    "bilevel": settings_bilevel.rows,
}
QUICK = 40  # points that are solved within a fraction of a second


class Form(Panel):
    """Rows of settings, the rarely used ones folded. Refused values jump back."""

    config_trait = ""

    def rows(self) -> Rows:
        """Settings in sight, and folded ones."""
        raise NotImplementedError

    def actions(self) -> list[w.Widget]:
        """Buttons beside the settings."""
        return []

    def build(self) -> None:
        """Lay the rows out in two columns where there is room."""
        shown, folded = self.rows()
        self.all = [*shown, *folded]
        boxes: list[w.Widget] = [self._box(shown, self.actions())]
        if folded:
            boxes.append(
                w.Accordion(
                    children=[self._box(folded)], selected_index=None, titles=("More settings",)
                )
            )
        self.widget = w.VBox(boxes)
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
        if not all(hasattr(config, row.field) for row in self.all):
            return  # another attack is on screen
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

    def rows(self) -> Rows:
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
            Row("weight_decay", real("weight decay", "mu of mean loss + mu/2 |theta|^2, a defence: "
                                     "the norm stays finite; gradient descent only", 0, 100)),
            Row("init_scale", real("init scale", "Standard deviation of the first layer at t = 0; "
                                   "Haim et al.: 0.0001, with a long plateau", 1e-8, 10)),
            Row("init", choice("first weights", "Small in the first layer, or torch's default in "
                               "every layer", ("small first layer", "small"),
                               ("standard", "standard"))),
            Row("all_biases", choice("biases", "In every layer the network is no longer "
                                     "homogeneous: the theorems do not apply",
                                     ("first layer", False), ("every layer", True))),
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


class AttackForm(Panel):
    """The settings of the present attack; which one it is, the chooser says."""

    stages = ("attack",)

    def build(self) -> None:
        """Room for the form of the chosen attack."""
        self.forms: dict[str, AttackSettings] = {}
        self.body = self.widget = w.VBox()

    def render(self, frame: Frame) -> None:
        """The form of the present attack, made when it is first looked at."""
        name = frame.attack_name
        if name not in self.forms:
            self.forms[name] = AttackSettings(self.session, name)
        if self.body.children != (self.forms[name].box,):
            self.body.children = [self.forms[name].box]

    def end(self) -> None:
        """Close the forms with it."""
        for form in self.forms.values():
            form.close()


class AttackSettings(Form):
    """The settings of one attack."""

    config_trait = "attack_config"

    def __init__(self, session: Session, name: str) -> None:
        """A form for the attack of this key."""
        self.name, self.attacks = name, (name,)
        super().__init__(session)

    def rows(self) -> Rows:
        """From the table of settings; an attack without a row there has none to set."""
        return SETTINGS[self.name]() if self.name in SETTINGS else ([], [])

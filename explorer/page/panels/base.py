"""The base of all panels: built when first seen, one redraw a frame, failures in its own box."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from html import escape
from time import perf_counter
from typing import Any, TypeVar

import ipywidgets as w

from explorer.engine.attacks.target import Target
from explorer.engine.charts import Chart
from explorer.engine.settings import Setting
from explorer.page import play
from explorer.page.cards import CARDS, class_name
from explorer.page.controls.row import Item, Row
from explorer.page.controls.settings import LAYERS, in_form, items_of
from explorer.page.frame import Aim, Frame
from explorer.page.job import Job
from explorer.page.lessons import course
from explorer.page.session import Refusal, Session
from explorer.page.view.chart import ChartView
from explorer.page.words.failures import failure

T = TypeVar("T")
ON_CARDS = frozenset(map(class_name, CARDS.values()))


class Panel:
    """A view of the session. Subclasses build `self.widget` and write `render`.

    It is built when it is first seen: half of the page's widgets are in its later stages.
    """

    widget: w.Widget | None = None
    look: tuple[str, ...] = ("mx-card",)  # style classes; mx-setting: not where one presents
    stages: tuple[str, ...] = ()  # drawn in these stages only; empty: in all
    every_s = 0.0  # while running, no oftener: what is read rather than watched can be slower
    every_place = True  # else it is drawn where a drag of the handle begins and rests, not between
    follows: tuple[str, ...] = ()  # fields of the session: a change of one is drawn, as a frame is

    def __init__(self, session: Session, unfolded: bool = True) -> None:
        """Follow the session. A panel in a fold is built when the fold is first opened."""
        self.session, self._drawn_s = session, 0.0
        self.unfolded, self.on_screen = unfolded, False
        self.asks: list[Job] = []  # what is asked beside the page; it ends with the panel
        self._aim: Aim | None = None  # when it was drawn last
        self._limited: tuple[str, str] | None = None  # the words that name the buttons in sight
        session.observe(self._on_frame, names=["shown", *self.follows])
        self._draw(session.frame)

    @cached_property
    def box(self) -> w.VBox:
        """Return what the page places: the widget, and below it how it failed."""
        return w.VBox(layout=w.Layout(overflow="visible"), _dom_classes=self.look)

    @cached_property
    def failure(self) -> w.HTML:
        """Return the place for failures, hidden while there is none."""
        return w.HTML(layout=w.Layout(display="none")).add_class("mx-failed")

    def unfold(self, unfolded: bool) -> None:
        """Put it in sight, or out of it, whatever the stage."""
        self.unfolded = unfolded
        self.redraw()

    def redraw(self) -> None:
        """Draw the frame on screen again: something else that is shown here has changed."""
        self._draw(self.session.frame)

    def build(self) -> None:
        """Make `self.widget`."""
        raise NotImplementedError

    def render(self, frame: Frame) -> None:
        """Show `frame`."""

    def retire(self, frame: Frame) -> None:
        """Take every frame while out of sight, once built: to end background work."""

    def belongs(self, frame: Frame) -> bool:
        """Return whether this view belongs to the stage and the attack on screen."""
        return not self.stages or frame.stage in self.stages

    def _on_frame(self, change: dict[str, Any]) -> None:
        frame = self.session.frame
        if self.every_place or not frame.passing or change["name"] != "shown":
            self._draw(frame)

    def _draw(self, frame: Frame) -> None:
        belongs = self.belongs(frame)
        seen = belongs and self.unfolded
        if seen and self.widget is None:
            self.build()
        if seen != self.on_screen:
            self.on_screen = seen
            self.box.children = [self.widget] if seen else []
        if not belongs and self.widget is not None:
            self.retire(frame)
        if not seen:  # in a fold that is closed it only forgets what it found on other weights
            if not belongs or self.widget is None or frame.aim is self._aim:
                return
        now = perf_counter()
        if self.session.running and now - self._drawn_s < self.every_s:
            return
        self._drawn_s, self._aim = now, frame.aim
        try:
            self.render(frame)
            self._limit()
        except Exception as error:  # one broken view must not take the page down
            self.fail(error)
        else:
            if "failure" in vars(self) and self.failure.layout.display != "none":
                self.failure.layout.display = "none"

    def _limit(self) -> None:
        """Leave in sight, on a card beside a lesson, the buttons that its words name."""
        words = course.naming_words(self.session) if type(self).__name__ in ON_CARDS else None
        if words is not None or self._limited is not None:
            self._limited = words
            for row in rows_in(self.widget):
                row.limit(*(words or (None,)))

    def fail(self, error: Exception) -> None:
        """Show an error in this panel's own box."""
        what = escape(failure(error).rstrip("."))
        self.failure.value = f"This view failed: {what}. The others go on; press Reset."
        self.failure.layout.display = ""
        if self.widget is not None and self.failure not in self.box.children:
            self.box.children = [self.widget, self.failure]

    def weights(self) -> Target | None:
        """Return the attacked weights: what most answers are about."""
        return self.session.frame.target

    def tell(self, words: str) -> None:
        """Show words at the head of the page."""
        play.tell(self.session, words)

    def tell_failure(self, error: Exception | None) -> None:
        """Show how a job failed: a refusal on the page, another error in this panel's own box."""
        if isinstance(error, ValueError | ImportError):  # it names the extra
            self.tell(Refusal(error))
        elif error is not None:
            self.fail(error)

    def do(self, command: Callable[..., None], *args: Any, **named: Any) -> None:  # noqa: ANN401
        """Run a command; the page shows a refusal, and this panel's box any other error."""
        try:
            self.session.attempt(command, *args, **named)
        except Exception as error:  # would vanish in the kernel's log
            self.tell_failure(error)

    def command(self, call: Callable[[], None]) -> Callable[[Any], None]:
        """Return a control's callback that runs `call`, whatever value the control passes."""
        return lambda _: self.do(call)

    def commands(self, **calls: Callable[[Session], None]) -> dict[str, Callable[[Any], None]]:
        """Return callbacks by name that run commands of the session."""
        return {name: self.command(partial(call, self.session)) for name, call in calls.items()}

    def button_items(self, **rows: tuple[str, str, Callable[[Session], None]]) -> dict[str, Item]:
        """Return buttons by name: what stands on each, its tooltip, and its command."""
        calls = self.commands(**{name: call for name, (*_, call) in rows.items()})
        return {
            name: Item("button", label, tip, call=calls[name])
            for name, (label, tip, _) in rows.items()
        }

    def command_of(self, kind: type[T], call: Callable[[T], None]) -> Callable[[Any], None]:
        """Return a control's callback that runs `call` with a value of this type, and no other."""

        def run(value: Any) -> None:  # noqa: ANN401 - from a browser
            if isinstance(value, kind):
                self.do(call, value)

        return run

    def command_among(self, known: Sequence[T], call: Callable[[T], None]) -> Callable[[Any], None]:
        """Return a control's callback that runs `call` with one of these values, and no other."""
        kind = type(known[0])
        return self.command_of(kind, lambda value: call(value) if value in known else None)

    def end(self) -> None:
        """Stop what else works beside the page; called only if the panel was built."""

    def close(self) -> None:
        """Unfollow the session and free the widgets in the browser."""
        self.session.unobserve(self._on_frame, names=["shown", *self.follows])
        for ask in self.asks:
            ask.close()
        if self.widget is not None:
            self.end()
            self.box.close()


def rows_in(widget: w.Widget | None) -> Iterator[Row]:
    """Yield the rows of a widget, and of all in it."""
    if isinstance(widget, Row):
        yield widget
    for child in getattr(widget, "children", ()):
        yield from rows_in(child)


class ChartPanel(Panel):
    """A chart that fills its card. Subclasses return it for a frame."""

    every_s = 0.2

    def build(self) -> None:
        """Make the view."""
        self.widget = self.view = ChartView()

    def chart(self, frame: Frame) -> Chart:
        """Return what is to be seen of `frame`."""
        raise NotImplementedError

    def render(self, frame: Frame) -> None:
        """Show it; an equal chart is not sent again."""
        self.view.draw(self.chart(frame))


WIDTHS = frozenset({"widths"})  # of the network: the one choice to make while drawing


class Form(Panel):
    """Rows of settings, the rarely used ones folded. Refused values jump back."""

    config_trait = ""
    kind: type[Any]  # the class of settings
    parts: tuple[str, ...] = ("sight", "more")  # which rows: those in sight, the rarely used ones
    fields: frozenset[str] = frozenset()  # these too
    without: frozenset[str] = frozenset()  # but not these

    def build(self) -> None:
        """Lay the settings out in as many columns as there is room for."""
        self.row = Row(("mx-form",), **items_of(in_form(self.kind, self._has_item), self._put))
        self.widget = self.row
        self._fill()
        self.session.observe(lambda _: self._fill(), names=[self.config_trait])

    def _has_item(self, declared: Setting) -> bool:
        """Return whether this form has a row for a setting."""
        if declared.name in self.fields:
            return True
        return declared.form in self.parts and declared.name not in self.without

    def _put(self, name: str, _: Any) -> None:  # noqa: ANN401 - of any setting
        value = self.row.value(name)
        if name == "widths":
            value = (value,) * self.row.value(LAYERS)
        self.do(play.configure, self.session, **{name: value})
        self._fill()  # a refused value jumps back

    def _fill(self) -> None:
        config = getattr(self.session, self.config_trait)
        if type(config) is not self.kind:
            return  # another attack is on screen
        with self.row.at_once():
            for name in self.row.items:
                if name == LAYERS:
                    self.row.put(name, value=len(config.widths))
                else:
                    value = getattr(config, name)
                    self.row.put(name, value=value[0] if name == "widths" else value)


def with_title(title: str, body: w.Widget) -> w.VBox:
    """Return a view under its title."""
    head = w.HTML(title).add_class("mx-chart-title")
    return w.VBox([head, body], layout=w.Layout(overflow="visible"))

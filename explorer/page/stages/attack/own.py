"""What an attack shows of itself: the `panel` of its row, as a card or with the further curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

import ipywidgets as w

from explorer.engine.attack_panel import AttackPanel, PanelAnswer, PanelContent, PanelQuestion
from explorer.engine.charts import NOTHING, Chart
from explorer.engine.roster import by_key
from explorer.page.ask import Question
from explorer.page.frame import Frame
from explorer.page.job import JobState, once
from explorer.page.panels.base import ChartPanel, Panel
from explorer.page.session import Session
from explorer.page.view.chart import ChartView
from explorer.style import PROVEN


def panel_of(frame: Frame) -> AttackPanel | None:
    """Return the panel of the attack on screen; None where it has none."""
    return by_key(frame.attack.name).panel if frame.stage == "attack" else None


def content(session: Session, frame: Frame) -> PanelContent | None:
    """Return what the panel of the attack on screen shows; None where there is nothing."""
    own, state, target = panel_of(frame), frame.attack.state, frame.target
    if own is None or state is None or target is None:
        return None
    return own.show(target, state, session.attack_config, session.axes.x)


def last_step(session: Session, frame: Frame) -> str:
    """Return what the last step of the attack on screen did."""
    assert frame.attack.state is not None  # it shows something
    return by_key(frame.attack.name).words(frame.attack.state, session.attack_config)


class OwnCurve(ChartPanel):
    """The chart of an attack that shows a chart alone."""

    stages = ("attack",)

    def belongs(self, frame: Frame) -> bool:
        """Return whether the attack on screen has such a chart."""
        own = panel_of(frame)
        return own is not None and not own.title

    def chart(self, frame: Frame) -> Chart:
        """Return it, of the present state."""
        shown = content(self.session, frame)
        if shown is None:
            return NOTHING
        said = last_step(self.session, frame)
        return replace(shown.chart, foot=said, label=f"{shown.chart.title}. {said}")


class OwnPanel(Panel):
    """Words, a fold of rules, a chart with its note, and a question with its answer."""

    stages = ("attack",)
    every_s = 0.1

    def build(self) -> None:
        """Make what every such panel has; the rest is made when its attack is chosen."""
        self.words, self.chart, self.answer = w.HTML(), ChartView(), w.HBox()
        self.rules, self.note = (w.HTML().add_class("mx-note") for _ in range(2))
        self.title = w.HTML().add_class("mx-chart-title")
        self.answer.add_class("mx-charts")
        self.question: Question | None = None
        self.widget = self.body = w.VBox()
        self._of: tuple[object, object] = (None, None)

    def belongs(self, frame: Frame) -> bool:
        """Return whether the attack on screen has a panel."""
        own = panel_of(frame)
        return own is not None and bool(own.title)

    def render(self, frame: Frame) -> None:
        """Show the present state; what was answered on other weights is dropped."""
        own, shown = panel_of(frame), content(self.session, frame)
        if own is None or shown is None:
            return
        if self._of != (own, frame.target):
            self._lay_out(own, own is self._of[0])
            self._of = own, frame.target
        self.words.value = escape(last_step(self.session, frame))
        fold = f"<summary>{escape(own.rules)}</summary>{rules_html(shown.rules)}"
        self.rules.value = f"<details class='mx-more'>{fold}</details>"
        self.chart.draw(shown.chart)
        self.note.value = with_marks(shown.note)

    def _lay_out(self, own: AttackPanel, again: bool) -> None:
        """Show the parts that this panel has; `again`: they are there, and the weights changed."""
        asked = own.question
        if self.question is not None:
            self.question.cancel()
        self._forget()
        if not again:
            self.title.value = escape(own.title)
            self.question = None if asked is None else self._question(asked)
            row = [] if self.question is None else [self.question.row, self.answer]
            head = w.VBox([self.title, self.words], layout=w.Layout(overflow="visible"))
            rules = [self.rules] if own.rules else []
            self.body.children = (head, *rules, self.chart, self.note, *row)
        if asked is not None and self.question is not None:
            self.question.say(escape(asked.before))

    def _forget(self) -> None:
        """Take the charts of an answer away."""
        charts, self.answer.children = self.answer.children, ()
        for chart in charts:
            chart.close()

    def _question(self, asked: PanelQuestion) -> Question:
        words = {JobState.CANCELLED: escape(asked.cancelled)}
        made = Question(self, asked.label, asked.tip, lambda: self._ask(asked, made), words)
        return made

    def _ask(self, asked: PanelQuestion, question: Question) -> None:
        """Compute the answer beside the page."""
        target, config = self.session.frame.target, self.session.attack_config
        if question.busy or target is None:
            return

        def take(answer: PanelAnswer) -> None:
            self._forget()
            views = [ChartView() for _ in answer.charts]
            for view, chart in zip(views, answer.charts, strict=True):
                view.draw(chart)
            self.answer.children = views
            question.say(escape(answer.words))

        question.begin(once(lambda progress: asked.ask(target, config, progress)), take)


def rules_html(rules: Sequence[tuple[str, str]]) -> str:
    """Return rules as HTML, a line each."""
    return "<br>".join(f"<b>{escape(name)}:</b> {escape(said)}" for name, said in rules)


def with_marks(note: str) -> str:
    """Return a note as HTML, its marks in the colour that they have on the plane."""
    made = escape(note)
    for mark in "□◌":
        made = made.replace(mark, f"<span style='color:{PROVEN}'>{mark}</span>")
    return made

"""A slider of epsilon: what private training of the drawn points costs, and what it hides."""

from __future__ import annotations

from functools import partial

from explorer.engine.data import Dataset
from explorer.engine.number_words import coarse_share, count
from explorer.page import play
from explorer.page.ask import Ask
from explorer.page.controls.row import Item, Row, choices
from explorer.page.frame import Frame
from explorer.page.job import JobState
from explorer.page.panels.base import Panel, with_title
from explorer.research.epsilons import CLIPPED, EPSILONS, STEPS, PrivateRun, private_runs
from explorer.research.runs import RADIUS

TITLE, GO, CANCEL = "Private training", "Train at each ε", "Cancel the runs"
GO_TIP = f"Train privately at {len(EPSILONS)} ε, {STEPS:,} steps each, and attack each network"
SLIDER_TIP = "How much one point more or less may change the weights: a small ε is private"
PROMISE = (
    "In each step every point’s gradient is cut to one length, and noise is added to their sum; ε "
    "says how much one point can show. Networks are of your points, this width and this seed."
)
CHANGED = {JobState.STALE: "The points or the network changed meanwhile; press again."}
NO_BOUND = 0.9995  # would be written as 100%
NAMES = {CLIPPED: "∞", 1e3: "10³", 1e4: "10⁴"}
Question = tuple[Dataset, tuple[int, ...], int]  # points, widths, seed


class PrivatePanel(Panel):
    """One network at each epsilon, trained beside the page; the slider tells of one."""

    stages = ("train",)
    look = ("mx-card",)

    def build(self) -> None:
        """Make the button, the slider, and what is said."""
        self.runs: list[PrivateRun] = []
        self.of: Question | None = None  # what they are of
        self.job = Ask(self, words=CHANGED)
        options = choices(*((name_of(epsilon), epsilon) for epsilon in EPSILONS))
        self.row = Row(
            go=Item("job", GO, GO_TIP, call=self.command(self._start), job=self.job, cancel=CANCEL),
            share=Item("bar", tip="Share of the runs", job=self.job),
            epsilon=Item("slider", "ε", SLIDER_TIP, CLIPPED, options, lambda _: self._tell(),
                         live=True, disabled=True),
            said=Item("words", value=PROMISE),
        )  # fmt: skip
        self.widget = with_title(TITLE, self.row)

    def _start(self) -> None:
        self.of = points, widths, seed = self._question()
        if not points.n:
            raise ValueError("Draw points first.")
        play.pause(self.session)
        self.runs = []
        self._tell()
        work = partial(private_runs, points, widths, seed)
        self.job.begin(work, self._take, stale=self._has_changed)

    def _question(self) -> Question:
        return self.session.frame.dataset, self.session.train_config.widths, self.session.seed

    def _has_changed(self) -> bool:
        """Return whether the networks are of other points, another width or another seed."""
        points, *rest = self._question()
        return self.of is not None and (points is not self.of[0] or rest != [*self.of[1:]])

    def _take(self, made: PrivateRun) -> None:
        self.runs.append(made)
        self._tell()

    def render(self, frame: Frame) -> None:
        """Drop what is of other points or another network."""
        if self.runs and self._has_changed():
            self.runs = []
            self._tell()

    def retire(self, frame: Frame) -> None:
        """End the work on another stage; what is done stays."""
        self.job.cancel()

    def _tell(self) -> None:
        """Tell of the network at the slider, or of the newest that is there."""
        self.row.put("epsilon", disabled=not self.runs)
        chosen = self.row.value("epsilon")
        shown = [run for run in self.runs if run.epsilon == chosen] or self.runs[-1:]
        self.row.say(sentence_of(shown[0]) if shown else PROMISE)


def name_of(epsilon: float) -> str:
    """Return an epsilon in words."""
    return NAMES.get(epsilon, f"{epsilon:g}")


def sentence_of(run: PrivateRun) -> str:
    """Return what one network costs and hides."""
    words = f"ε = {name_of(run.epsilon)}: {run.right} of {count(run.n, 'point')} on their side."
    if run.why_not:
        words += " So there is no margin to attack by: none is found, none certified."
    else:
        sure = "nothing can be certified" if run.certified is None else f"{run.certified} certified"
        words += f" The attack finds {run.found}, of an unseen set {run.control:.2g}; {sure}."
    if run.bound > NO_BOUND:
        return f"{words} No theorem hides a point here."
    return words + (
        f" Whoever knows all other points comes within {RADIUS} of the last, drawn anywhere in the "
        f"square, with probability {coarse_share(run.bound)} at most."
    )

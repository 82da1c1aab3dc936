"""Another training set that explains the attacked weights, drawn beside truth and candidates."""

from __future__ import annotations

from html import escape

from explorer.engine.attacks.target import Target
from explorer.engine.explanations.others import OtherSet
from explorer.page.ask import Ask
from explorer.page.controls.row import Item, Row
from explorer.page.frame import Frame, Shown
from explorer.page.job import JobState, once
from explorer.page.panels.base import Panel, with_title
from explorer.page.stages.attack import commands as attack
from explorer.research.sweep.experiment import as_claims, other_set
from explorer.research.words import explanations
from explorer.style import NEGATIVE, POSITIVE

SHOW = "Another set that explains the weights"
SHOW_TIP = (
    "The set on the margin that explains the weights and is farthest from the true one, with a "
    "proven bound: no such set is farther"
)
OPEN = (
    "The verdict leaves open whether the weights tell these points. Press the button to see other "
    "points that explain the same weights, where there are any."
)
SURE = "Press the button to see whether other points would explain the same weights."
LEGEND = (
    f"<b style='color:{POSITIVE}'>☆</b> +1 &nbsp; <b style='color:{NEGATIVE}'>☆</b> −1 &nbsp; "
    "of the other set, on the margin. Explain drags points from the one set towards the other."
)
CANCELLED = {JobState.CANCELLED: "Cancelled; press again to look anew."}
UNDECIDED = ("AMBIGUOUS", "NOT_RECOVERABLE")
IN_SIGHT = 0.95  # of the half width of the plane; arbitrary


class OtherPanel(Panel):
    """A toggle that computes the set once and draws it; the sentence says how far off it is."""

    stages = ("attack",)

    def build(self) -> None:
        """Make the toggle with progress and Cancel; the sentence is below."""
        self.job = Ask(self, self.weights, CANCELLED, lambda said: self.row.say(said))
        self.row = Row(
            shown=Item("button", SHOW, SHOW_TIP, False, call=self._on_press),
            share=Item("bar", tip="Share of the search", job=self.job),
            stop=Item("cancel", "Cancel", "Stop looking for another set", job=self.job),
            said=Item("words", value=""),
        )
        self.widget = with_title("Would other points explain these weights?", self.row)
        self._target: Target | None = None
        self.found: OtherSet | None = None
        self._why = ""

    def belongs(self, frame: Frame) -> bool:
        """Return whether the attack is on these weights, not on a model that it trains itself."""
        return super().belongs(frame) and self.session.entry.own is None

    def unfold(self, unfolded: bool) -> None:
        """Take the set off the plane where its fold is closed: its button is there."""
        if not unfolded and self.unfolded and self.widget is not None:
            self._release()
            self._hide()
        super().unfold(unfolded)

    # --- the search ---------------------------------------------------------------------------
    def _on_press(self, shown: bool) -> None:
        self.do(self._show if shown else self._hide)

    def _show(self) -> None:
        now = self.session.frame
        if self.found is not None:
            self._put(self.found)
            return
        target, truth, made = now.target, now.truth, now.training.certificate
        if target is None or truth is None or made is None:
            self._release()
            raise ValueError(explanations.NO_WEIGHTS)
        plane = IN_SIGHT * float(self.session.extent)  # so that marks are whole

        def take(found: OtherSet) -> None:
            self.found = found
            self._put(found)

        self.row.say("Looking for other points that explain these weights …")
        search = once(lambda progress: other_set(target, truth, made, progress, plane))
        self.job.begin(search, take, self._end)

    def _end(self) -> None:
        if self.job.state in (JobState.CANCELLED, JobState.FAILED):
            self._release()
        if self.job.state is JobState.FAILED:
            self._tell(self.session.frame)

    # --- what is seen -------------------------------------------------------------------------
    def _put(self, found: OtherSet) -> None:
        """Draw it on the plane, if it is another set at all."""
        target = self.session.frame.target
        assert target is not None
        said, claims = explanations.alike(found), as_claims(found) if found.other else None
        attack.show_other(self.session, Shown(target, said, claims, other=True))
        self.row.say(escape(said) + (f"<div>{LEGEND}</div>" if claims else ""))

    def _hide(self) -> None:
        self.job.cancel()
        if self.session.frame.attack.other is not None:
            attack.show_other(self.session, None)
        self._tell(self.session.frame)

    def _release(self) -> None:
        self.row.put("shown", value=False)

    def _tell(self, frame: Frame) -> None:
        undecided = frame.attack.verdict is not None and frame.attack.verdict.kind.name in UNDECIDED
        self.row.say(OPEN if undecided else SURE)

    def render(self, frame: Frame) -> None:
        """Drop the set of other weights; say if none can be computed."""
        target, truth = frame.target, frame.truth
        if target is not self._target:
            self.job.cancel()
            self._target, self.found = target, None
            self._release()
            self._why = ""
            if target is not None and truth is not None:
                certificate = frame.training.certificate
                self._why = explanations.no_other(target, truth, certificate)
            self.row.put("shown", disabled=bool(self._why))
            self.row.say(escape(self._why))
        if self.found is not None and self.row.value("shown") and frame.attack.other is None:
            self._release()  # another line of time
            self._tell(frame)
        if not (self._why or self.row.value("shown")) and self.row.text in ("", OPEN, SURE):
            self._tell(frame)

"""Another training set that explains the attacked weights, drawn beside truth and candidates."""

from __future__ import annotations

import asyncio
from html import escape
from threading import Event
from typing import Any

import ipywidgets as w

from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Certificate
from explorer.engine.data import Dataset
from explorer.engine.explanations.programs import Stopped
from explorer.page.frame import Frame, Shown
from explorer.page.panels.base import Panel, button, titled
from explorer.page.stages import attack
from explorer.research.experiment import Other, no_other, other_set
from explorer.style import NEGATIVE, POSITIVE

SHOW = "Another set that explains the weights"
OPEN = (
    "The verdict leaves open whether the weights tell these points. Press the button to see other "
    "points that explain the same weights, where there are any."
)
SURE = "Press the button to see whether other points would explain the same weights."
LEGEND = (
    f"<b style='color:{POSITIVE}'>◇</b> +1 &nbsp; <b style='color:{NEGATIVE}'>▽</b> −1 &nbsp; "
    "of the other set, on the margin. Explain drags points from the one set towards the other."
)
UNDECIDED = ("AMBIGUOUS", "NOT_RECOVERABLE")
IN_SIGHT = 0.95  # of the half width of the plane; arbitrary
LOOK_S = 0.1  # between two looks at the share done; arbitrary


class OtherPanel(Panel):
    """A toggle that looks for the set once and draws it; the sentence has what both sets leave."""

    stages = ("attack",)

    def build(self) -> None:
        """The toggle with progress and Cancel; below, what is seen."""
        self.shown = w.ToggleButton(
            description=SHOW, layout=w.Layout(width="auto"),
            tooltip="The set on the margin that explains the weights and is farthest from the "
            "true one: linear programs on sampled points, seconds on trained networks",
        )  # fmt: skip
        self.shown.observe(self._on_toggle, names=["value"])
        self.stop = button("Cancel", "Stop looking for another set", disabled=True)
        self.stop.on_click(self.command(self.cancel))
        self.progress = w.FloatProgress(
            value=0, min=0, max=1, layout=w.Layout(width="120px"), tooltip="Share of the search"
        )
        self.said = w.HTML().add_class("mx-note")
        row = w.HBox([self.shown, self.progress, self.stop]).add_class("mx-row")
        self.widget = titled("Would other points explain these weights?", w.VBox([row, self.said]))
        self._target: Target | None = None
        self.found: Other | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = Event()
        self._setting, self._why = False, ""

    def seen(self, frame: Frame) -> bool:
        """Only for attacks on these weights, not on those of a model of their own."""
        return super().seen(frame) and self.session.entry.victim is None

    # --- the search ---------------------------------------------------------------------------
    def _on_toggle(self, change: dict[str, Any]) -> None:
        if not self._setting:
            self.command(self._show if change["new"] else self._hide)(None)

    def _show(self) -> None:
        now = self.session.frame
        if self.found is not None:
            self._put(self.found)
            return
        target, truth, made = now.target, now.truth, now.training.certificate
        if target is None or truth is None or made is None:
            self._release()
            raise ValueError("No weights to explain: train a network first.")
        self._stop = Event()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no page is waiting
            self._take(target, other_set(target, truth, made, plane=self._plane()))
            return
        self._task = loop.create_task(self._look(target, truth, made, self._stop))

    async def _look(self, target: Target, truth: Dataset, made: Certificate, stop: Event) -> None:
        """In a thread; a cancelled search is left to itself, and what it finds is dropped."""
        done = [0.0]

        def go_on(share: float) -> bool:
            done[0] = share
            return not stop.is_set()

        self.stop.disabled = False
        self.said.value = "Looking for other points that explain these weights …"
        task = asyncio.create_task(
            asyncio.to_thread(other_set, target, truth, made, go_on, self._plane())
        )
        try:
            while not task.done() and not stop.is_set():
                await asyncio.wait({task}, timeout=LOOK_S)
                self.progress.value = done[0]
            if stop.is_set():
                task.add_done_callback(lambda left: left.cancelled() or left.exception())
                raise Stopped("cancelled")
            self._take(target, task.result())
        except Stopped:
            self._end(target, "Cancelled; press again to look anew.")
        except ValueError as error:
            self._end(target, str(error))
        except Exception as error:  # would vanish in the task
            self._end(target, "")
            self.fail(error)
        finally:
            self.stop.disabled, self.progress.value = True, 0.0

    def _plane(self) -> float:
        """Within the edge of the plane, so that marks are whole."""
        return IN_SIGHT * float(self.session.extent)

    def cancel(self) -> None:
        """Stop looking."""
        self._stop.set()

    # --- what is seen -------------------------------------------------------------------------
    def _take(self, target: Target, found: Other) -> None:
        if self.session.frame.target is target:
            self.found = found
            self._put(found)

    def _put(self, found: Other) -> None:
        """On the plane, if it is another set at all."""
        target = self.session.frame.target
        assert target is not None
        claims = found.claims if found.apart else None
        attack.show_other(self.session, Shown(target, found.sentence, claims))
        self.said.value = escape(found.sentence) + (f"<div>{LEGEND}</div>" if claims else "")

    def _end(self, target: Target, words: str) -> None:
        if self.session.frame.target is target:
            self._release()
            self.said.value = escape(words)

    def _hide(self) -> None:
        self.cancel()
        if self.session.frame.attack.other is not None:
            attack.show_other(self.session, None)
        self._tell(self.session.frame)

    def _release(self) -> None:
        self._setting = True
        self.shown.value = False
        self._setting = False

    def _tell(self, frame: Frame) -> None:
        undecided = frame.attack.verdict is not None and frame.attack.verdict.kind.name in UNDECIDED
        self.said.value = OPEN if undecided else SURE

    def render(self, frame: Frame) -> None:
        """Forget the set of other weights; say where none can be looked for."""
        target, truth = frame.target, frame.truth
        if target is not self._target:
            self.cancel()
            self._target, self.found = target, None
            self._release()
            known = target is not None and truth is not None
            self._why = no_other(target, truth, frame.training.certificate) if known else ""  # type: ignore[arg-type]
            self.shown.disabled, self.said.value = bool(self._why), escape(self._why)
        if self.found is not None and self.shown.value and frame.attack.other is None:
            self._release()  # another line of time
            self._tell(frame)
        if not self._why and not self.shown.value and self.said.value in ("", OPEN, SURE):
            self._tell(frame)

    def end(self) -> None:
        """Stop looking."""
        self.cancel()

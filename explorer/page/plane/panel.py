"""The plane: points, candidates and the network between them. In 1-D, the graph of Phi."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np

from explorer.engine.attacks.shapes import EMPTY
from explorer.page.frame import Frame
from explorer.page.lessons import course
from explorer.page.panels.base import Panel
from explorer.page.plane import words
from explorer.page.plane.hands import (
    CurveHand,
    DrawHand,
    ExplainHand,
    Hand,
    LandscapeHand,
    ProofHand,
)
from explorer.page.plane.scene import KeptBackdrop, Look, network, scene, start_rows
from explorer.page.plane.shapes import pointed_at, shapes_of
from explorer.page.session import Session
from explorer.page.stages.draw import commands as draw
from explorer.page.view.canvases import PlaneView
from explorer.style import CLASSES

SPACING = {"place": 16, "move": 3, "erase": 6}  # px; arbitrary


class PlanePanel(Panel):
    """The plane, in the middle of the page; its axes are the same in all stages."""

    view: PlaneView

    def build(self) -> None:
        """The canvas with its pad."""
        session = self.session
        self.draw_hand = DrawHand(session)
        self.hands: dict[str, Hand] = {
            "explain": ExplainHand(session),
            "landscape": LandscapeHand(session),
            "proof": ProofHand(session),
            "sketch": CurveHand(session),
        }  # of the stages that have one of their own
        self._said_by: Hand = self.draw_hand
        self._behind = KeptBackdrop()  # a drag moves points, not the network
        # Frames on their way to a browser, by the view's number and the session's.
        self._sent: deque[tuple[int, int]] = deque(maxlen=64)
        self.view = PlaneView(tip=words.KEYS)
        self.view.on("events", self._on_events)
        self.view.on("drawn", self._on_drawn)
        self.widget = self.view.add_class("mx-plane")
        session.observe(
            self._on_tool, names=["tool", "label", "truth_shown", "layers", "pointed", "editing"]
        )
        self._on_tool(None)

    def _on_events(self, content: dict[str, Any]) -> None:
        try:
            hand = self._hand_of(self.session.frame)
            hand.handle(content)
            self.view.say, self._said_by = hand.say, hand
        except Exception as error:  # would vanish in the kernel's log
            self.fail(error)

    def _hand_of(self, frame: Frame) -> Hand:
        stage = frame.stage if frame.proof is None else "proof"
        stage = stage if frame.sketch is None else "sketch"
        return self.hands.get(stage, self.draw_hand)

    def _on_drawn(self, number: int) -> None:
        while self._sent and self._sent[0][0] <= number:
            _, shown = self._sent.popleft()
            self.session.choose(drawn=shown)

    def _on_tool(self, _: Any) -> None:  # noqa: ANN401
        session = self.session
        with self.view.hold_sync():
            self._tool_of(session)
            shown = CLASSES.get(session.label)
            self.view.ink = shown.colour if shown else "#777777"
        self._draw(session.frame)

    def _tool_of(self, session: Session) -> None:
        is_open = draw.is_open(session)
        cursor = {"place": "crosshair", "move": "grab", "erase": "cell"}[session.tool]
        self.view.spacing = SPACING[session.tool]
        self.view.echo = is_open and session.tool == "place"
        self.view.cursor = cursor if is_open else "default"

    def render(self, frame: Frame) -> None:
        """Show network, points and candidates, and what the stage draws: one message."""
        session = self.session
        look = Look(session.layers, session.truth_shown, session.running)
        self._tell(frame)
        shapes = EMPTY
        try:
            shapes = shapes_of(frame, session.axes)
            if session.pointed >= 0:  # in a chart; marked as what is in hand
                at = pointed_at(frame, session.pointed)
                shapes = replace(shapes, hands=np.concatenate([shapes.hands, at]))
        finally:  # or a run would wait for a page that does not answer
            behind = self._behind.of(*network(frame), session.axes, look)
            arrays, values = scene(frame, session.axes, look, shapes, behind)
            if frame.handle is not None:
                arrays["starts"] = start_rows(frame.handle.problem.parts, session.axes)
            if frame.passing and not session.running:
                values["unasked"] = True  # no run waits until it is drawn
            self._sent.append((self.view.show(arrays, **values), session.shown))

    def first_words(self, frame: Frame) -> str:
        """Return how an empty plane is drawn on, with what is in sight."""
        if course.has_task(self.session):
            return ""  # its words tell it
        one = frame.dataset.d == 1 and not self.session.label
        return words.FIRST_ON_LINE if one else words.FIRST

    def line_words(self, frame: Frame) -> str:
        """Return how to come from a line to the plane, where one draws on it."""
        drawing = frame.stage == "draw" and self.session.lesson is None
        return words.LINE if drawing and frame.dataset.d == 1 else ""

    def _tell(self, frame: Frame) -> None:
        if self.session.opening or self._said_by is not self._hand_of(frame):
            self.view.say = self._said_by.say = ""  # it was of points that are gone, or out of hand
        n = frame.dataset.n
        explain = frame.explain if frame.stage == "explain" else None
        mapped = frame.stage == "landscape" and frame.map_kind != "starts"
        landscape = frame.landscape if mapped else None
        keys, places, drawn = words.KEYS, 0, frame.sketch
        if drawn is not None:
            keys = words.CURVE_KEYS
        elif frame.proof is not None:
            keys, places = words.PROOF_KEYS, int(frame.proof.done)
        elif not frame.is_aimed and not draw.is_open(self.session):
            keys = words.FOLDED_KEYS
        elif explain is not None:
            keys, places = words.EXPLAIN_KEYS, explain.present.now.n
        elif landscape is not None:
            keys, places = words.LANDSCAPE_KEYS, len(landscape.present.x)
        with self.view.hold_sync():
            self.view.active = not frame.is_aimed or places > 0 or drawn is not None
            self.view.stops = places
            self.view.wheel = frame.proof is not None and frame.proof.centre is not None
            self.view.path = drawn is not None
            if drawn is not None:
                self.view.echo, self.view.spacing, self.view.cursor = True, 3, "crosshair"
            elif places:
                self.view.echo, self.view.spacing, self.view.cursor = False, 2, "grab"
            else:
                self._tool_of(self.session)
            told = self.line_words(frame) if n else self.first_words(frame)
            first = told * (self.session.game is None)
            self.view.hint = words.FIRST_OF_CURVE * (not drawn) if drawn is not None else first
            self.view.tip = keys
            self.view.label = f"Plane with {n} points. {keys}"

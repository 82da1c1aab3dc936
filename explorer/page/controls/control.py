"""Controls of the page that the browser builds by itself: one widget each, whatever they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from traitlets import Dict

from explorer.page.view.base import POPUP
from explorer.page.view.bundle import View

HERE = Path(__file__).parent


def source(*names: str) -> str:
    """Return files of this folder as one script, before them what all parts of a page share."""
    files = [(HERE / name).read_text(encoding="utf-8") for name in ("dom.js", *names)]
    return "\n".join([POPUP, *files])


def script(*names: str) -> str:
    """Return the browser's half of a control: its own files, and what all controls share."""
    return source(*names, "controls.js")


class Control(View):
    """A control: `state` says what it shows; what a hand does comes back as a message.

    Attributes:
        state: plain values, sent whole when one of them changes.
        commands: for each kind of message what is called with its value, which is not checked.
    """

    state = Dict().tag(sync=True)

    def __init__(
        self, commands: dict[str, Callable[[Any], None]], look: tuple[str, ...] = (),
        **state: Any,  # noqa: ANN401 - plain values
    ) -> None:  # fmt: skip
        """Show `state`; call `commands`. `look`: style classes, there from the first paint."""
        super().__init__(state=state, _dom_classes=look)
        self.commands = commands

    def show(self, **state: Any) -> None:  # noqa: ANN401 - plain values
        """Change some values of the state; the browser is told if they differ."""
        new = {**self.state, **state}
        if new != self.state:
            self.state = new

    def hand_over(self, name: str, kind: str, content: bytes) -> None:
        """Let the browser save a file of this name and media type."""
        self.send({"kind": "file", "name": name, "type": kind}, [content])

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Call the command; of a list what came as bytes is the end."""
        if kind in self.commands:
            value = content.get("value")
            if isinstance(value, list):
                value = [*value, *map(bytes, buffers)]
            self.commands[kind](value)


class Head(Control):
    """The name of the page, the tabs of its stages, and the menus beside them."""

    _esm = script("tabs.js", "dots.js", "head.js")


class PageHead(Control):
    """The way back to the main page, the name of this one, its steps and its theme."""

    _esm = script("tabs.js", "page_head.js")


class Palette(Control):
    """The tools on the plane's left edge and the layers at its foot."""

    _esm = script("palette.js")


class Toast(Control):
    """A notice over the plane, with a button that closes it."""

    _esm = script("toast.js")


class TimeBar(Control):
    """Play, step, speed, the time line with its branches."""

    _esm = script("time_bar.js")


class Title(Control):
    """The headline, the sentence under it, its numbers, and the next sensible thing to do."""

    _esm = script("title.js")


class Thumbs(Control):
    """Ready-made sets of points as small pictures, with n, noise and seed."""

    _esm = script("dots.js", "thumbs.js")


class Segments(Control):
    """One of several: the first few side by side, the others behind "others"."""

    _esm = script("segments.js")


class ShareBox(Control):
    """A link, the code, and files of the present moment."""

    _esm = script("share.js", "video.js", "copy.js")


class GameBox(Control):
    """Two players: one hides points in weights, the other guesses them."""

    _esm = script("game.js", "copy.js")


class HallBox(Control):
    """The hall attacks: a round on the projector, its phones, and what is shown of it."""

    _esm = script("../view/base.js", "../view/plane.js", "copy.js", "hall_plane.js", "hall.js")


class Folds(Control):
    """A row of buttons, each of which opens a drawer over the side."""

    _esm = script("folds.js")


class LessonBox(Control):
    """A step of a lesson: words, question, folded answer, goal, the way on and back."""

    _esm = script("lesson.js")


class LessonForm(Control):
    """A lesson that is written: its steps with their words and goals."""

    _esm = script("lesson_form.js", "copy.js")

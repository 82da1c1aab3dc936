"""One message a frame: what many views send while a frame is shown leaves as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

import anywidget

Part = tuple["View", dict[str, Any], list[Any]]  # whose message, the message, its buffers


class View(anywidget.AnyWidget):
    """A widget whose messages may travel in a `Bundle`, and that hands on what a hand does to it.

    A browser's message is a dictionary with its `kind`; what else it holds is not checked.
    """

    # What was sent while a frame is shown, else None. No context variable: a job begun meanwhile
    # would keep its value, and send nothing any more.
    waiting: ClassVar[list[Part] | None] = None

    def __init__(self, **traits: Any) -> None:  # noqa: ANN401 - traits of the view
        """Wait for a browser."""
        super().__init__(**traits)
        self._listeners: dict[str, list[Callable[..., None]]] = {}
        self.on_msg(self._receive)

    def on(self, kind: str, call: Callable[..., None]) -> None:
        """Call `call` with what a hand does of this kind; each view says which kinds it has."""
        self._listeners.setdefault(kind, []).append(call)

    def tell(self, kind: str, *values: Any) -> None:  # noqa: ANN401 - of the kind
        """Call those that wait for this kind."""
        for call in self._listeners.get(kind, ()):
            call(*values)

    def hear(self, kind: str, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        """Act on a message of a browser."""

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:  # noqa: ANN401 - from a browser
        kind = content.get("kind") if isinstance(content, dict) else None
        if isinstance(kind, str):
            self.hear(kind, content, buffers or ())

    def _send(self, msg: dict[str, Any], buffers: list[Any] | None = None) -> None:
        if View.waiting is None:
            super()._send(msg, buffers)
        else:
            View.waiting.append((self, msg, list(buffers or [])))

    def repeat(self) -> None:
        """Send all that it shows once more, to a browser that may have missed some of it."""
        self.send_state([key for key in self.keys if not key.startswith("_")])


class Bundle(anywidget.AnyWidget):
    """Carries the messages of views to their halves in the browser, many as one.

    Before a browser says that it can open a bundle, messages go one by one.
    """

    _esm = (Path(__file__).parent / "bundle.js").read_text()

    def __init__(self) -> None:
        """Wait for a browser."""
        super().__init__()
        self._ready = False
        self._carried: WeakSet[View] = WeakSet()
        self.on_msg(self._answer)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Send what views send meanwhile as one message, at the end."""
        if not self._ready or View.waiting is not None:
            yield
            return
        parts = View.waiting = []
        try:
            yield
        finally:
            View.waiting = None
            self._post([part for part in parts if part[0].comm is not None])

    def _post(self, parts: list[Part]) -> None:
        if not parts:
            return
        self._carried.update(view for view, *_ in parts)
        rows = [[view.model_id, message, len(own)] for view, message, own in parts]
        self.send({"parts": rows}, [buffer for *_, own in parts for buffer in own])

    def _answer(self, _: Any, content: Any, __: Any) -> None:  # noqa: ANN401 - from a browser
        """Begin, or make up for what a browser has missed that was opened later."""
        if isinstance(content, dict) and content.get("kind") == "ready":
            self._ready = True
            for view in [view for view in self._carried if view.comm is not None]:
                view.repeat()

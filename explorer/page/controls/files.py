"""A file that the page offers as a link, and one that a visitor uploads."""

from __future__ import annotations

import base64
from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets as w


def link(name: str, kind: str, data: bytes) -> str:
    """Return a download; the link holds the bytes, so it works after its kernel has ended."""
    coded = base64.b64encode(data).decode()
    size = f"{max(1, len(data) // 1024):,} kB"
    return f"<a download='{name}' href='data:{kind};base64,{coded}'>Download {name}</a> ({size})"


def upload(
    label: str, accept: str, tip: str, read: Callable[[str, bytes], None],
    guard: Callable[[Callable[[], None]], Callable[[Any], None]],
) -> w.FileUpload:  # fmt: skip
    """Return a button for a file; `read` takes its name and content, under `guard`."""
    made = w.FileUpload(accept=accept, description=label, tooltip=tip)
    made.layout.width = "auto"

    def take(change: dict[str, Any]) -> None:
        if not change["new"]:
            return
        name, content = change["new"][0]["name"], bytes(change["new"][0]["content"])
        guard(lambda: read(name, content))(None)
        made.value = ()  # the same file may be chosen again

    made.observe(take, names=["value"])
    return made


# --- Finished cells in and out of the page: two downloads, an upload, and a button that forgets -

FORGET = "Forget these cells"
GROWN = 1.2  # arbitrary: the downloads are made anew when a fifth more cells are there


class GridFiles:
    """One row and a sentence; it knows no grid, only texts and callbacks."""

    def __init__(
        self, take: Callable[[str, bytes], None], forget: Callable[[], None],
        guard: Callable[[Callable[[], None]], Callable[[object], None]],
    ) -> None:  # fmt: skip
        """`take` is called with a file's name and content; `guard` shows what a call refuses."""
        self.links = w.HTML()
        self.open = upload(
            "Take up saved cells", ".jsonl", "Cells that this page once offered: the grid goes on "
            "from there; cells of other weights, points or settings are refused", take, guard,
        )  # fmt: skip
        self.forget = w.Button(
            description=FORGET, layout=w.Layout(width="auto"), disabled=True,
            tooltip="Take the cells of this grid off the page, and off the disk where they are "
            "kept",
        )  # fmt: skip
        self.forget.on_click(guard(self._pressed))
        self._forget, self._asked, self._offered = forget, False, 0
        self.said = w.HTML().add_class("mx-note")
        self._row = w.HBox([self.open, self.forget]).add_class("mx-row")
        self.widget = w.VBox([self._row, self.said], layout=w.Layout(overflow="visible"))

    def _pressed(self) -> None:
        """Forget the cells at the second press: they cannot be brought back."""
        if self._asked:
            self._forget()
            return
        self._asked = True
        self.forget.description = "Press again to forget"

    def show(self, count: int, texts: Callable[[], tuple[str, str]], said: str, anew: bool) -> None:
        """Offer `count` cells; their lines and their table are made only when they are needed."""
        if anew or not count:  # not while cells come in: the second press would come too late
            self._asked, self.forget.description = False, FORGET
        self.forget.disabled = not count
        children = (*([self.links] if count else []), self._row, self.said)
        if self.widget.children != children:
            self.widget.children = children
        if self.said.value != escape(said):
            self.said.value = escape(said)
        if not count:
            self.links.value, self._offered = "", 0
        elif anew or count < self._offered or count >= GROWN * self._offered:
            self._offered = count
            lines, table = (text.encode() for text in texts())
            self.links.value = (
                f"{link('grid.jsonl', 'application/x-ndjson', lines)} &nbsp; "
                f"{link('grid.csv', 'text/csv', table)}: {count} cells"
            )

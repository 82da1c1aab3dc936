"""A file that the page holds in a link, and one that a visitor hands in."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import ipywidgets as w


def link(name: str, kind: str, data: bytes) -> str:
    """A download; the link holds the bytes, so that it works after its kernel has ended."""
    coded = base64.b64encode(data).decode()
    size = f"{max(1, len(data) // 1024):,} kB"
    return f"<a download='{name}' href='data:{kind};base64,{coded}'>Download {name}</a> ({size})"


def upload(
    label: str, accept: str, tip: str, read: Callable[[str, bytes], None],
    guard: Callable[[Callable[[], None]], Callable[[Any], None]],
) -> w.FileUpload:  # fmt: skip
    """A button for a file; `read` is given its name and content, under `guard`."""
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

"""What the page's hosts do not give: its height, a key, tooltips and names; it draws nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anywidget
import ipywidgets as w
from traitlets import Bool, Dict


class Access(anywidget.AnyWidget):
    """Adds them to its page.

    Attributes:
        tips: the tooltip of each control, by its text.
        present: whether the page is shown to a class: a large plane, no settings.
    """

    _esm = Path(__file__).with_name("access.js")
    tips = Dict().tag(sync=True)
    present = Bool(False).tag(sync=True)


def tips_of(root: w.Widget) -> dict[str, str]:
    """Return the tooltip of every control below `root` that has a text."""
    return {x.description: x.tooltip for x in _below(root) if _is_told(x)}


def _is_told(widget: w.Widget) -> bool:
    return bool(getattr(widget, "description", "") and getattr(widget, "tooltip", None))


def _below(root: w.Widget) -> Iterator[w.Widget]:
    yield root
    for child in getattr(root, "children", ()):
        yield from _below(child)

"""What the hosts of a page do not give it, and the marks of a first visit."""

from __future__ import annotations

from collections.abc import Callable

import anywidget
from traitlets import Bool, Unicode

from explorer.page.controls.control import Control, script, source
from explorer.page.words.screen import MARKS


class Access(anywidget.AnyWidget):
    """Adds them to its page.

    Attributes:
        present: whether the page is shown to a class: plane and pictures large, no settings.
        task: the page whose task in a lesson was done here, as "digits"; "" for none yet.
    """

    _esm = source("access.js")
    present = Bool(False).tag(sync=True)
    task = Unicode("").tag(sync=True)


class Welcome(Control):
    """Asks the browser what became of the opening, and points out three things, once."""

    _esm = script("welcome.js")

    def __init__(
        self, own: Callable[[], None], link: Callable[[str], None], lesson: Callable[[int], None]
    ) -> None:
        """Call `own` for a plane of the visitor's own, `link` and `lesson` with an address's."""
        commands = {
            "own": lambda _: own(),
            "link": lambda text: link(text) if isinstance(text, str) else None,
            "lesson": lambda asked: lesson(asked) if isinstance(asked, int) else None,
        }
        super().__init__(commands, marks=[list(mark) for mark in MARKS])

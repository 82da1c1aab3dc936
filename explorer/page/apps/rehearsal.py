"""Everything that a page needs once, done before a page is there.

The first page of a process imports what is imported late, and fills what is remembered. A server
rehearses in the process that it forks its kernels from, so that no visitor waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import ipywidgets as w

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App

SEPARATED = 1000  # steps; arbitrary: an attack needs a network that separates the points


def rehearse() -> Iterator[None]:
    """Build a page; then, at the next call, train and attack on it. No widget is left either time.

    A page is usable after the first part; the second makes its first Play as quick as the next.
    """
    App().close()
    w.Widget.close_all()
    yield
    page = App(preset("alternating-circle"))
    for stage, steps in (("train", SEPARATED), ("attack", 2)):
        play.go(page.session, stage)
        play.step(page.session, steps)
    page.close()
    w.Widget.close_all()

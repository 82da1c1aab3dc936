"""Pages as tests of later stages begin with them; what a browser sends to them and shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import ipywidgets as w
import numpy as np
import pytest

from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.controls.row import Row
from explorer.page.job import Job, Work
from explorer.page.stages.train import commands as train
from explorer.research.grid import even


def opened(stage: str, name: str, **given) -> App:
    """A page on the exact network of a preset, turned to a stage; `given` as to `preset`.

    In the landscape there is a candidate for each point, which costs little.
    """
    made = App(preset(name, **given))
    session = made.session
    if stage == "landscape":
        n = session.frame.dataset.n
        session.attack_config = replace(session.attack_config, m=even(n))
    play.go(made.session, "train")
    train.jump_to_exact(made.session)
    play.go(made.session, stage)
    return made


def fixture_of(make: Callable[[], Any]) -> Any:
    """The fixture of a module: its page for one test."""

    @pytest.fixture
    def page() -> Iterator[Any]:
        made = make()
        yield made
        made.close()

    return page


def trained() -> App:
    """A page on six points of the circle that 20 neurons were trained on, with a short attack."""
    made = App(preset("alternating-circle", n=6))
    session = made.session
    play.configure(session, widths=(20,))
    play.go(session, "train")
    play.step(session, 600)
    session.attack_config = KKTConfig(m=12, steps=60)
    return made


def walk(root: w.Widget) -> Iterator[w.Widget]:
    """A widget and all that stand in it."""
    yield root
    for child in getattr(root, "children", ()):
        yield from walk(child)


def named(root: w.Widget, kind: type, description: str) -> w.Widget:
    """The widget of a kind that carries this name."""
    found = [x for x in walk(root) if isinstance(x, kind) and x.description == description]
    assert len(found) == 1, (description, len(found))
    return found[0]


def classes(widget: w.DOMWidget) -> list[str]:
    """The style classes that the browser is told of."""
    return list(widget.get_state()["_dom_classes"])


def send(widget: w.Widget, *buffers: bytes, **content: object) -> None:
    """What the browser says to a widget, by its own channel."""
    data = {"method": "custom", "content": content}
    buffers_ = [memoryview(buffer) for buffer in buffers]
    widget.comm.handle_msg({"content": {"data": data}, "buffers": buffers_})


def press(row: Row, name: str) -> None:
    """A press on a button of a row: it says what stands on it."""
    send(row, kind="set", value=[name, row.json(name)["value"]])


def label(row: Row, name: str) -> str:
    """What stands on a button of a row."""
    return str(row.json(name)["label"])


def choose(row: Row, name: str, value: object) -> None:
    """A choice of a row, or a number in one of its fields."""
    item = row.items[name]
    given = [known for _, known, _ in item.options].index(value) if item.options else value
    send(row, kind="set", value=[name, given])


def on_plane(app: App) -> dict[str, Any]:
    """What the plane of a page shows: the fields of `view/plane.js`."""
    shown: dict[str, Any] = app.panels["PlanePanel"].view.frame
    return shown


def hand_in(row: Row, name: str, content: bytes, file: str = "mine") -> None:
    """A file that is chosen at a button of a row."""
    send(row, content, kind="set", value=[name, file])


def of_class(rows: np.ndarray, label: int) -> np.ndarray:
    """The points or candidates of one class."""
    return rows[rows[:, 2] == label]


def click_mark(mark: w.Widget, index: int) -> None:
    """A click on one element of a drawn mark."""
    send(mark, event="element_click", data={"index": index})


def hold_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each job that begins from now on do its work, and then wait until somebody ends it.

    So a job is at work when a test ends it, however fast the work or slow the machine.
    """
    start, waits = Job.start, object()

    def held(job: Job, work: Work, take: Callable = lambda _: None, *given, **named) -> None:
        def longer(progress):
            yield from work(progress)
            while True:
                progress(1.0)
                time.sleep(0.001)
                yield waits

        start(job, longer, lambda part: None if part is waits else take(part), *given, **named)

    monkeypatch.setattr(Job, "start", held)

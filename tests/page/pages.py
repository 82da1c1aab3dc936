"""Pages as tests of later stages begin with them; what a browser sends to them and shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import ipywidgets as w
import numpy as np
import pytest

from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import Dataset, preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.controls.row import Row
from explorer.page.frame import Stage
from explorer.page.job import Job, Work
from explorer.page.panels.base import Panel
from explorer.page.session import Session
from explorer.page.stages.train import commands as train
from explorer.research.grid import even

Kind = TypeVar("Kind", bound=Panel)


def lead(session: Session, stage: Stage, steps: int | None, **settings: Any) -> None:
    """Bring a session to a stage, on the exact network or one of so many steps of training."""
    play.go(session, "train")
    if settings:
        play.configure(session, **settings)
    if steps is None:
        train.jump_to_exact(session)
    elif steps:
        play.step(session, steps)
    play.go(session, stage)


def reached(stage: Stage, points: Dataset, steps: int | None = None, **settings: Any) -> Session:
    """A session in a stage: see `lead`; `settings` of training."""
    session = Session(points)
    lead(session, stage, steps, **settings)
    return session


def page_in(stage: Stage, points: Dataset, steps: int | None = None, **settings: Any) -> App:
    """The same with a page."""
    made = App(points)
    lead(made.session, stage, steps, **settings)
    return made


def opened(stage: Stage, name: str, **given: Any) -> App:
    """A page on the exact network of a preset, turned to a stage; `given` as to `preset`.

    In the landscape there is a candidate for each point, which costs little.
    """
    made = App(preset(name, **given))
    session = made.session
    if stage == "landscape":
        n = session.frame.dataset.n
        session.attack_config = replace(session.attack_config, m=even(n))
    lead(session, stage, None)
    return made


def trained(stage: Stage = "train") -> App:
    """A page on six points of the circle that 20 neurons were trained on, with a short attack."""
    made = App(preset("alternating-circle", n=6))
    lead(made.session, "train", 600, widths=(20,))
    made.session.attack_config = KKTConfig(m=12, steps=60)
    play.go(made.session, stage)
    return made


def panel_of(app: App, kind: type[Kind]) -> Kind:
    """The panel of this class."""
    made = app.panels[kind.__name__]
    assert isinstance(made, kind)
    return made


def no_failures(app: App) -> None:
    """No panel has failed."""
    for name, panel in app.panels.items():
        assert panel.failure.layout.display == "none", (name, panel.failure.value)


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

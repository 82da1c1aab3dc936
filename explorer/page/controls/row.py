"""The kit of controls: buttons, choices, fields, files, bars and words, a row of them one widget.

An `Item` declares a control once: its words, its bounds, its value, and what it does. A `Row` shows
items side by side, checks what a browser sends, and follows the jobs that its items start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from explorer.engine.settings import is_number
from explorer.page.controls.control import Control, script
from explorer.page.job import Job, JobState

Kind = Literal["button", "job", "cancel", "segments", "select", "number", "slider", "text", "file",
               "bar", "words", "break"]  # fmt: skip
Call = Callable[[Any], None]
CANCELLING = "Cancelling …"
BEGIN, END = "begin", "end"  # what a press on the button of a job means
MOST = 10_000  # characters of a text; arbitrary: a hundred times what a field has room for
CHOSEN = ("button", "job", "select", "segments")  # what words may name
FLAGS = ("filled", "disabled", "hidden")


@dataclass(frozen=True)
class Item:
    """One thing in a row.

    Attributes:
        kind: what it is. A "job" is a button that starts a job, and cancels it while it runs; a
            "cancel" and a "bar" of a job are there while it goes on; a "break" begins a new line.
        label: what stands on it, or before it.
        tip: what is said of it when the pointer rests there.
        value: of a choice one of its options, of a field its content, of a bar its share, of words
            their HTML; of a button that stays pressed, whether it is.
        options: of a choice: words, value and tooltip of each. A slider may be a choice.
        call: called with the new value when a hand has changed it, or pressed it; of a file with
            its name and content.
        job: what a "job" starts, a "cancel" cancels, a "bar" shows.
        cancel: what a "job" says while it can be cancelled.
        low: least value of a number.
        high: largest value of a number.
        step: of a slider; from 1 on, of a real number, it is a ratio.
        whole: whether a number is whole.
        optional: whether 0 stands for None.
        live: whether a slider tells its value during a drag, not at its end alone.
        form: of words, the same with {names} for what the browser reads under a hand; "" for none.
        accept: of a file, the endings that may be chosen.
        filled: whether a button is the next thing to do.
        disabled: whether nothing can be done with it.
        hidden: whether it is out of sight.
    """

    kind: Kind
    label: str = ""
    tip: str = ""
    value: Any = None
    options: tuple[tuple[str, Any, str], ...] = ()
    call: Call | None = None
    job: Job | None = None
    cancel: str = "Cancel"
    low: float = 0.0
    high: float = 0.0
    step: float = 0.0
    whole: bool = False
    optional: bool = False
    live: bool = False
    form: str = ""
    accept: str = ""
    filled: bool = False
    disabled: bool = False
    hidden: bool = False

    @property
    def place(self) -> int:
        """Return where the value stands among the options; -1 for nowhere."""
        return next((i for i, (_, value, _) in enumerate(self.options) if value == self.value), -1)

    def is_named(self, words: str) -> bool:
        """Return whether words name it, or an option of it, within “”."""
        labels = (self.label, *(option for option, *_ in self.options))
        return any(f"“{label}”" in words for label in labels)

    @property
    def json(self) -> dict[str, Any]:
        """Return it as `row.js` takes it, apart from what its job does."""
        made = {"kind": self.kind, "label": self.label, "tip": self.tip, "value": self.value}
        if self.options:
            options = [[words, tip] for words, _, tip in self.options]
            made |= {"value": self.place, "options": options}
        elif self.kind in ("number", "slider"):
            ratio = self.step >= 1 and not self.whole
            made |= {"low": self.low, "high": self.high, "whole": self.whole, "step": self.step,
                     "ratio": ratio, "value": self.value or 0}  # fmt: skip
        if self.kind == "file":
            made["accept"] = self.accept
        if self.live:
            made["live"] = True
        if self.form:
            made["form"] = self.form
        return made | {name: True for name in FLAGS if getattr(self, name)}

    def value_of(self, given: Any, content: bytes | None = None) -> Any:  # noqa: ANN401
        """Return the value that a browser asks for. ValueError for one that it cannot have."""
        if self.kind in ("button", "cancel"):
            return None if self.value is None else not self.value
        if self.kind == "job":
            return str(given)  # what it did where it was pressed, which may be over by now
        if self.kind == "file" and content is not None:
            return str(given)[:MOST], content
        if self.kind == "text" and isinstance(given, str) and len(given) <= MOST:
            return given
        if self.options and is_number(given) and given in range(len(self.options)):
            return self.options[int(given)][1]
        if self.kind in ("number", "slider") and is_number(given):
            near = min(max(given, self.low), self.high)
            near = round(near) if self.whole else float(near)
            return None if self.optional and not near else near
        raise ValueError(f"{self.label or self.kind} takes no {given!r}")


class Row(Control):
    """Items side by side; the row wraps.

    >>> row = Row(price=Item("number", "price", value=0.0, high=5.0))
    >>> row.put("price", value=2.0)
    >>> row.value("price")
    2.0
    """

    _esm = script("row.js")

    def __init__(self, look: tuple[str, ...] = (), /, **items: Item) -> None:
        """Show these items, each by its name; `look`: style classes."""
        self.items = items
        self._named: str | None = None
        self._pressed = ""
        self._began: dict[Job, str] = {}  # the item that started each job that goes on
        super().__init__({"set": self.take}, look, items=self._rows())
        for job in {item.job: None for item in items.values() if item.job is not None}:
            job.observe(self._follow)

    def value(self, name: str) -> Any:  # noqa: ANN401 - of any item
        """Return the value of an item."""
        return self.items[name].value

    def put(self, name: str, **changes: Any) -> None:  # noqa: ANN401 - fields of Item
        """Change an item; the browser is told if it differs. Nothing is called."""
        made = replace(self.items[name], **changes)
        if made != self.items[name]:
            self.items[name] = made
            self.show(items=self._rows())

    def limit(self, words: str | None, pressed: str = "") -> None:
        """Keep in sight, of buttons and choices, those that `words` name; None for all.

        Only those that `pressed` names are filled then: what is to be done now.
        """
        if (words, pressed) != (self._named, self._pressed):
            self._named, self._pressed = words, pressed
            self.show(items=self._rows())

    def say(self, words: str) -> None:
        """Put words, as HTML, into the item `said`; without any it takes no room."""
        self.put("said", value=words)

    @property
    def text(self) -> str:
        """Return what the item `said` says, as HTML."""
        return str(self.value("said"))

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Send all changes made meanwhile as one."""
        with self.hold_sync():
            yield

    def json(self, name: str) -> dict[str, Any]:
        """Return an item as the browser has it."""
        item = self.items[name]
        made = item.json | self._of_job(name, item)
        if self._named is None or item.kind not in CHOSEN:
            return made
        if not item.is_named(self._named):
            return made | {"hidden": True}
        return made | {"filled": item.is_named(self._pressed) and made["value"] != END}

    def press(self, name: str) -> None:
        """Do what stands on a button."""
        self.take([name, self.json(name)["value"]])

    def take(self, given: Any) -> None:  # noqa: ANN401 - from a browser
        """Take over what a hand has done, a name and a value, unless the item cannot have it."""
        if not isinstance(given, list) or len(given) < 2 or given[0] not in self.items:
            return
        name, item = given[0], self.items[given[0]]
        try:
            value = item.value_of(*given[1:3])
        except ValueError:
            return
        if item.disabled:
            return
        if item.kind == "job":
            self._press_job(name, item, value)
            return
        if item.kind == "cancel" and item.job is not None:
            item.job.cancel()
        elif item.kind != "file" and (item.kind != "button" or value is not None):
            self.put(name, value=value)
        if item.call is not None:
            item.call(value)

    def _rows(self) -> list[list[Any]]:
        return [[name, self.json(name)] for name in self.items]

    def _of_job(self, name: str, item: Item) -> dict[str, Any]:
        """Return what the state of its job makes of an item."""
        job = item.job
        if job is None:
            return {}
        if item.kind == "bar":
            return {"value": job.share, "hidden": item.hidden or not job.busy}
        if item.kind == "cancel":
            return {
                "hidden": item.hidden or not job.busy,
                "disabled": job.state is not JobState.RUNNING,
            }
        if not job.busy or self._began.get(job, name) != name:
            return {"value": BEGIN}
        cancelling = job.state is JobState.CANCELLING
        said = CANCELLING if cancelling else item.cancel
        return {"value": END, "label": said, "filled": False}

    def _follow(self) -> None:
        """Show what jobs do; at the end of one its button is ready again."""
        self._began = {job: name for job, name in self._began.items() if job.busy}
        self.show(items=self._rows())

    def _press_job(self, name: str, item: Item, meant: str) -> None:
        """Start a job or cancel it: what stood on the button when it was pressed.

        A Cancel that comes after the end starts nothing, and the second click of a double click
        cancels nothing.
        """
        job = item.job
        if job is None or item.call is None:
            return
        if meant == END:
            job.cancel()
        elif meant == BEGIN and not job.busy:
            self._began[job] = name
            item.call(None)
            self._follow()


def choices(*pairs: tuple[str, Any], tips: Sequence[str] = ()) -> tuple[tuple[str, Any, str], ...]:
    """Return options of a choice from words and values."""
    every = [*tips, *[""] * (len(pairs) - len(tips))]
    return tuple((words, value, tip) for (words, value), tip in zip(pairs, every, strict=True))


def pick_options(name: str, *pairs: tuple[str, Any]) -> tuple[tuple[str, Any, str], ...]:
    """Return options of a list beside a chart, before them the invitation to choose: None."""
    return choices((f"choose a {name} …", None), *pairs)


def pick(name: str, tip: str, load: Call) -> Item:
    """Return a list beside a chart: choosing an entry loads it, by keyboard as well."""

    def call(value: Any) -> None:  # noqa: ANN401 - of an entry
        if value is not None:
            load(value)

    return Item("select", name, tip, None, pick_options(name), call)

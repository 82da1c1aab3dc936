"""The hand on the plane: pointer and keyboard events of the pad become commands of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.engine.settings import is_number
from explorer.page import play, prior, sight
from explorer.page.session import Session
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.proof import commands as proof
from explorer.research.pictures.axes import Axes
from explorer.style import CLASSES

REACH = 0.05  # share of the plane's width within which a point is grabbed or erased; arbitrary
NUDGE = 0.02  # of the plane's half width; Shift goes five times as far; arbitrary
MOST_EVENTS = 500  # in one message: more than a hand can do between two of them


@dataclass(frozen=True)
class Event:
    """What a hand did on the plane.

    Attributes:
        at: the place.
        gesture: number of the stroke or the press; the edits of one are undone together.
        shift: whether Shift was held.
    """

    at: tuple[float, float]
    gesture: int
    shift: bool

    def place(self, d: int) -> Tensor:
        """Return the first d coordinates of the place."""
        return torch.tensor(self.at[:d], dtype=torch.float64)


def events_in(content: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a message from a browser
    """Return the events of a message of the pad; none for anything else."""
    events = content.get("events") if isinstance(content, dict) else None
    if not isinstance(events, list):
        return []
    return [event for event in events[:MOST_EVENTS] if isinstance(event, dict)]


def event_of(given: dict[str, Any], axes: Axes) -> Event | None:
    """Return what a hand did, or None where a browser names no place."""
    x, y = given.get("x"), given.get("y")
    if not (is_number(x) and is_number(y)):
        return None
    at = axes.place(*(min(1.0, max(0.0, float(v))) for v in (x, y)))
    gesture = given.get("gesture")
    return Event(at, gesture if isinstance(gesture, int) else 0, given.get("shift") is True)


def nearest(points: Tensor, event: Event, axes: Axes) -> int | None:
    """Return the point (n, d) within REACH of an event; on the line the axis alone counts."""
    x = points.double().cpu()
    if not len(x):
        return None
    gaps = (x - event.place(x.shape[1])).norm(dim=1)
    i = int(gaps.argmin())
    return i if float(gaps[i]) <= REACH * 2 * axes.x[1] else None


def presses(content: Any, points: Tensor, axes: Axes) -> Iterator[tuple[Event, int]]:  # noqa: ANN401 - a message from a browser
    """Yield each press of a message of the pad, with the point (n, d) that is near; -1 for none."""
    for given in events_in(content):
        event = event_of(given, axes)
        if event is not None and given.get("kind") in ("down", "act"):
            near = nearest(points, event, axes)
            yield event, -1 if near is None else near


Act = Callable[[Event], None]


RETRACING = ("undo", "redo")  # kinds of events that every hand takes


class Hand:
    """Turns events of the pad into commands, by a table of what each kind of event does.

    Attributes:
        say: text for a screen reader.
        held: the point in hand, or None.
        acts: what each kind of event does.
    """

    fleeting: tuple[str, ...] = ()  # kinds: of several in a row the last one counts

    def __init__(self, session: Session) -> None:
        """Act on `session`; nothing is held yet."""
        self.session, self.say = session, ""
        self.held: int | None = None
        self.acts = self.table()

    def table(self) -> dict[str, Act]:
        """Return what each kind of event does."""
        return {
            "undo": lambda _: self._retrace(play.undo, "undone"),
            "redo": lambda _: self._retrace(play.redo, "redone"),
        }

    def ready(self) -> bool:
        """Return whether there is anything to act on."""
        return True

    def takes(self, kind: str) -> bool:
        """Return whether events of a kind are acted on now."""
        return True

    def points(self) -> Tensor:
        """Return the points that can be grabbed (n, d)."""
        raise NotImplementedError

    def handle(self, content: Any) -> None:  # noqa: ANN401 - a message from a browser
        """Act on one message; anything that is not an event of the pad is ignored."""
        events = events_in(content)
        if not events or not self.ready():
            return
        for given, after in zip(events, [*events[1:], {}], strict=True):
            kind = str(given.get("kind"))
            event = event_of(given, self.session.axes)
            act = self.acts.get(kind) if self.takes(kind) else None
            skipped = kind in self.fleeting and after.get("kind") == kind
            if event is not None and act is not None and not skipped:
                act(event)

    def nearest(self, event: Event) -> int | None:
        """Return the point within REACH of an event; on the line the axis alone counts."""
        return nearest(self.points(), event, self.session.axes)

    def _do(self, command: Callable[..., None], *args: Any) -> None:  # noqa: ANN401
        self.session.attempt(command, self.session, *args)

    def _retrace(self, command: Callable[..., None], done: str) -> None:
        self._do(command)
        self.say = self.session.message or done


def _place_words(place: Any) -> str:  # noqa: ANN401 - a tuple or a tensor of coordinates
    return ", ".join(f"{float(v):.2f}" for v in place)


class DrawHand(Hand):
    """Places, moves and erases points: what the present tool does."""

    def table(self) -> dict[str, Act]:
        """Return what each kind of event does."""
        return super().table() | {
            "down": self._down,
            "move": self._move,
            "up": self._up,
            "cursor": self._cursor,
            "act": self._act,
            "erase": self._erase_here,
            "positive": lambda _: self._class(1),
            "negative": lambda _: self._class(-1),
            "third": lambda _: self._class(3),
            "fourth": lambda _: self._class(4),
            "place": lambda _: self._tool("place"),
            "move-tool": lambda _: self._tool("move"),
            "erase-tool": lambda _: self._tool("erase"),
        }

    def takes(self, kind: str) -> bool:
        """Return whether events of a kind are acted on: with the tools folded, undo and redo."""
        return kind in RETRACING or draw.is_open(self.session)

    def points(self) -> Tensor:
        """Return the drawn points (n, d)."""
        return self.session.frame.dataset.x

    # --- pointer ----------------------------------------------------------------------------
    def _down(self, event: Event) -> None:
        if self.session.tool == "move":
            self.held = self.nearest(event)
        else:
            self._paint(event)

    def _move(self, event: Event) -> None:
        if self.session.tool == "move":
            self._drag(event)
        else:
            self._paint(event)

    def _up(self, event: Event) -> None:
        if self.session.tool == "move":
            self._drag(event)
            self.held = None

    def _paint(self, event: Event) -> None:
        if self.session.tool == "erase":
            self._erase(event)
        else:
            self._do(draw.add, [(self._place(event), self._label(event))], event.gesture)

    def _drag(self, event: Event) -> None:
        data = self.session.frame.dataset
        if self.held is not None and self.held < data.n:
            self._do(draw.edit, data.with_point_at(self.held, self._place(event)), event.gesture)

    def _erase(self, event: Event) -> None:
        index = self.nearest(event)
        if index is not None:
            self._do(draw.edit, self.session.frame.dataset.without([index]), event.gesture)

    # --- keyboard ---------------------------------------------------------------------------
    def _cursor(self, event: Event) -> None:
        if self.held is not None:
            self._drag(event)
        near, where = self.nearest(event), _place_words(self._place(event))
        self.say = where if near is None else f"{where}, on {self._point_name(near)}"

    def _act(self, event: Event) -> None:
        tool = self.session.tool
        if tool == "move":
            self.held = self.nearest(event) if self.held is None else None
            self.say = "dropped" if self.held is None else f"holding {self._point_name(self.held)}"
        elif tool == "erase":
            self._erase_here(event)
        else:
            before = self.session.frame.dataset.n
            self._paint(event)
            count = self.session.frame.dataset.n
            placed = f"placed {self._point_name(count - 1)} at {_place_words(self._place(event))}"
            self.say = placed if count > before else self.session.message

    def _erase_here(self, event: Event) -> None:
        near = self.nearest(event)
        said = "no point here" if near is None else f"erased {self._point_name(near)}"
        self._erase(event)
        self.say = said

    def _class(self, label: int) -> None:
        if label > 1 and self.session.frame.dataset.d == 1:
            self.say = "a line has two classes; further ones need the plane"
            return
        if label not in draw.classes(self.session):
            self.say = f"there are {self.session.classes} classes to draw"
            return
        self.session.choose(label=label)
        self.say = f"class {CLASSES[label].name}"

    def _tool(self, name: str) -> None:
        self.session.choose(tool=name)
        self.held, self.say = None, f"tool: {name}"

    # --- places -----------------------------------------------------------------------------
    def _place(self, event: Event) -> tuple[float, ...]:
        return event.at[: self.session.frame.dataset.d]

    def _label(self, event: Event) -> float:
        if self.session.frame.dataset.d == 1 and self.session.label == 0:
            return 1.0 if event.at[1] >= 0 else -1.0
        return float(self.session.label or 1)

    def _point_name(self, index: int) -> str:
        return f"point {index + 1}, class {CLASSES[int(self.session.frame.dataset.y[index])].name}"


class CurveHand(Hand):
    """Draws the curve that an attacker knows: by a stroke, or corner by corner."""

    def table(self) -> dict[str, Act]:
        """Return what each kind of event does; undo takes back a corner."""
        return {
            "down": lambda event: prior.begin_stroke(self.session, event.at),
            "move": lambda event: prior.add(self.session, event.at, shown=False),
            "up": self._up,
            "cursor": lambda event: self._say(_place_words(event.at)),
            "act": self._act,
            "end": lambda _: self._end(),
            "cancel": lambda _: self._cancel(),
            "erase": lambda _: self._take_back(),
            "undo": lambda _: self._take_back(),
        }

    def ready(self) -> bool:
        """Return whether a curve is drawn."""
        return self.session.frame.sketch is not None

    def _say(self, words: str) -> None:
        self.say = words

    def _up(self, event: Event) -> None:
        prior.add(self.session, event.at, shown=False)
        self._end()

    def _act(self, event: Event) -> None:
        prior.add(self.session, event.at)
        count = len(self.session.frame.sketch or ())
        self.say = f"corner {count} at {_place_words(event.at)}"

    def _take_back(self) -> None:
        prior.take_back(self.session)
        self.say = f"{len(self.session.frame.sketch or ())} corners left"

    def _end(self) -> None:
        self._do(prior.finish)
        self.say = self.session.message or "the attacker knows this curve"

    def _cancel(self) -> None:
        self._do(prior.cancel)
        self.say = "no curve is drawn"


class PointHand(Hand):
    """Chooses and moves one of the points: Tab goes through them, arrows nudge the chosen one."""

    fleeting = ("move",)

    def table(self) -> dict[str, Act]:
        """Return what each kind of event does."""
        return super().table() | {
            "down": self._down,
            "move": self._move,
            "up": lambda _: self._up(),
            "next": lambda _: self._step(1),
            "previous": lambda _: self._step(-1),
            "left": lambda event: self._arrow(-1, 0, event),
            "right": lambda event: self._arrow(1, 0, event),
            "up-key": lambda event: self._arrow(0, 1, event),
            "down-key": lambda event: self._arrow(0, -1, event),
        }

    def _down(self, event: Event) -> None:
        """Take the point that is near."""
        raise NotImplementedError

    def _move(self, event: Event) -> None:
        """Drag the point in hand."""
        raise NotImplementedError

    def _up(self) -> None:
        """Let it go."""
        raise NotImplementedError

    def _step(self, by: int) -> None:
        """Go to another point."""
        raise NotImplementedError

    def _nudge(self, by: Tensor, gesture: int) -> None:
        """Move the point by a step (2,)."""
        raise NotImplementedError

    def _arrow(self, dx: int, dy: int, event: Event) -> None:
        size = NUDGE * self.session.axes.x[1] * (5 if event.shift else 1)
        self._nudge(size * torch.tensor([dx, dy], dtype=torch.float64), event.gesture)


class ExplainHand(PointHand):
    """Chooses, drags, nudges and merges points of the present explanation."""

    def table(self) -> dict[str, Act]:
        """Return what each kind of event does."""
        return super().table() | {
            "act": lambda _: self._let_go(),
            "move-tool": lambda _: self._merge(),
            "free": lambda _: self._free(),
        }

    def ready(self) -> bool:
        """Return whether there is an explanation to act on."""
        return self.session.frame.explain is not None

    def points(self) -> Tensor:
        """Return the points of the explanation (n, d)."""
        return explain.explanation(self.session).now.x

    # --- pointer ----------------------------------------------------------------------------
    def _down(self, event: Event) -> None:
        self.held = self.nearest(event)
        if self.held not in explain.explanation(self.session).halves:  # else the drag goes on
            explain.drop(self.session)
            if self.held is not None:
                self._do(explain.choose, self.held)
        if self.held is not None:
            self.say = self._point_name()

    def _move(self, event: Event) -> None:
        if self.held is not None:
            d = explain.explanation(self.session).net.d
            self._do(explain.pull, event.place(d), event.shift or None)

    def _up(self) -> None:
        if self.held is not None:
            self.held = None
            explain.drop(self.session)
            sight.keep_in_sight(self.session)

    # --- keyboard ---------------------------------------------------------------------------
    def _step(self, by: int) -> None:
        state = explain.explanation(self.session)
        explain.drop(self.session)
        start = (-1 if by > 0 else 0) if state.selected is None else state.selected
        self._do(explain.choose, (start + by) % state.now.n)
        self.say = self._point_name()

    def _nudge(self, by: Tensor, gesture: int) -> None:
        self._do(explain.nudge, tuple(by.tolist()))
        sight.keep_in_sight(self.session)
        change = explain.explanation(self.session).change
        self.say = self.session.message or f"{self._point_name()}, residual {change:.1e}"

    def _let_go(self) -> None:
        explain.drop(self.session)
        self.say = "let go"

    def _merge(self) -> None:
        self._do(explain.combine)
        self.say = self.session.message or explain.explanation(self.session).words

    def _free(self) -> None:
        self._do(explain.set_free, not explain.explanation(self.session).free)
        free = explain.explanation(self.session).free
        self.say = "drags are free" if free else "drags keep the level line"

    def _point_name(self) -> str:
        state = explain.explanation(self.session)
        i = state.selected
        if i is None:
            return "no point"
        where, label = _place_words(state.now.x[i]), CLASSES[int(state.now.y[i])].name
        pin = ", cannot be split" if bool(state.pinned[i]) else ""
        return f"point {i + 1} of {state.now.n}, class {label} at {where}{pin}"


class ProofHand(PointHand):
    """Moves and resizes the disc in which no point may be."""

    fleeting = ("move",)

    def table(self) -> dict[str, Act]:
        """Return what each kind of event does."""
        return super().table() | {
            "larger": lambda _: self._resize(True),
            "smaller": lambda _: self._resize(False),
            "erase": lambda _: self._lift(),
        }

    def ready(self) -> bool:
        """Return whether all places are known."""
        return self.session.frame.proof is not None and self.session.frame.proof.done

    def _down(self, event: Event) -> None:
        self._put(event.place(self._d))

    def _move(self, event: Event) -> None:
        self._put(event.place(self._d))

    def _up(self) -> None:
        """Leave the disc where it is."""

    def _step(self, by: int) -> None:
        self._nudge(torch.zeros(2, dtype=torch.float64), 0)

    def _nudge(self, by: Tensor, gesture: int) -> None:
        centre = proof.proof(self.session).centre
        start = torch.from_numpy(self.session.axes.centre)[: self._d]
        if centre is not None:
            start = torch.tensor(centre, dtype=torch.float64)
        self._put(start + by[: self._d])

    @property
    def _d(self) -> int:
        return proof.proof(self.session).target.net.d

    def _put(self, place: Tensor) -> None:
        self._do(proof.forbid, place)
        self._tell()

    def _resize(self, wider: bool) -> None:
        self._do(proof.resize, wider)
        self._tell()

    def _lift(self) -> None:
        self._do(proof.allow)
        self.say = "the disc is lifted"

    def _tell(self) -> None:
        held = proof.proof(self.session)
        if held.centre is not None:
            self.say = f"no point within {held.radius:.2g} of {_place_words(held.centre)}"


class LandscapeHand(PointHand):
    """Chooses and moves points of the energy map: a click maps a point, a drag moves it."""

    travelled = False  # whether the point in hand was dragged

    def ready(self) -> bool:
        """Return whether a point is mapped: the handle of the triangle moves the starts."""
        frame = self.session.frame
        return frame.landscape is not None and frame.map_kind != "starts"

    def points(self) -> Tensor:
        """Return the candidates (n, d)."""
        return landscape.candidates(self.session).x

    # --- pointer ----------------------------------------------------------------------------
    def _down(self, event: Event) -> None:
        self.held, self.travelled = self.nearest(event), False

    def _move(self, event: Event) -> None:
        if self.held is not None:
            self.travelled = True
            place = event.place(self.points().shape[1])
            self._do(landscape.move_point, self.held, place, event.gesture)

    def _up(self) -> None:
        if self.held is not None and not self.travelled:
            self._map(self.held)
        self.held = None

    def _map(self, i: int) -> None:
        self._do(landscape.map_point, i)
        self.say = f"map of {self._point_name()}"

    # --- keyboard ---------------------------------------------------------------------------
    def _step(self, by: int) -> None:
        candidates = landscape.candidates(self.session)
        self._map((candidates.mapped + by) % len(candidates.x))

    def _nudge(self, by: Tensor, gesture: int) -> None:
        candidates, axes = landscape.candidates(self.session), self.session.axes
        i, d = candidates.mapped, candidates.x.shape[1]
        centre, half = (torch.from_numpy(v)[:d] for v in (axes.centre, axes.half))
        place = (candidates.x[i] + by[:d]).clamp(centre - half, centre + half)
        self._do(landscape.move_point, i, place, gesture)
        self.say = self._point_name()

    def _point_name(self) -> str:
        candidates = landscape.candidates(self.session)
        i = candidates.mapped
        where, label = _place_words(candidates.x[i]), CLASSES[int(candidates.y[i])].name
        return f"point {i + 1} of {len(candidates.x)}, class {label} at {where}"

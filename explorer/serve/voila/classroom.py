"""The teacher's page of a class: who is there, a freeze, a scene for everybody, a board of scores.

Pages of students and the teacher's page hold a socket to the server. A student's says which stage
is open: no name, no address and no drawing. Who has played against the computer may put the score
on the board, under a name of their choice: the kernel signs the score, so a page cannot make one
up. The teacher's needs the key that `serve` prints at its start.

voila.py loads this file by its path.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tornado.web import RequestHandler

from explorer.serve.sockets import TOKEN, SmallSocket, checked_name

STAGES = ("draw", "train", "attack", "explain", "landscape", "arena")
SCENE = re.compile(r"[\w~.-]{1,6000}")  # what a link holds behind "#"; never read in this process
READER = ("-m", "explorer.page.apps.scene")  # by name, as a notebook names a page: another layer
READER_S = 60  # arbitrary: it loads torch first
MOST_ENTRIES = 500  # on the board; a class has thirty
MOST_SCORES = 20_000  # that were put there; arbitrary
PAGE = Path(__file__).with_name("teacher.html")
STYLES = Path(__file__).resolve().parents[2] / "page.css"
WRONG_KEY = "This page is the teacher's. Open it by the address that the server printed."


@dataclass(frozen=True)
class Entry:
    """One student's best score on the board: of a guess at points that the computer hid."""

    name: str
    points: int
    found: int
    n: int
    at: float


class Classroom:
    """Who is there, what the teacher last asked of all, and the board."""

    def __init__(self, sign: str = "", kernels: Container[str] = ()) -> None:
        """Nobody is there. `sign`: what kernels sign scores with; `kernels`: of the open pages."""
        self.sign = sign
        self.kernels = kernels
        self.phones: Callable[[], int] = lambda: 0  # in rounds of the hall
        self.board: dict[str, Entry] = {}
        self.owners: dict[str, str] = {}  # of each score, by its mark
        self.stages: dict[StudentSocket, str] = {}
        self.teachers: set[TeacherSocket] = set()
        self.frozen = False
        self.scene = ""
        self.scenes = 0  # how many were given out: the same one can be given again

    def orders(self) -> str:
        """Return what students' pages have to do, as JSON."""
        return json.dumps({"frozen": self.frozen, "scene": self.scene, "number": self.scenes})

    def summary(self) -> str:
        """Return what the teacher sees, as JSON."""
        counts = Counter(self.stages.values())
        stages = {stage: counts[stage] for stage in STAGES}
        there = len(self.stages)
        best = sorted(self.board.values(), key=lambda e: (e.points, e.at), reverse=True)
        board = [[e.name, e.points, e.found, e.n] for e in best]
        seen = {"there": there, "phones": self.phones(), "stages": stages, "board": board}
        return json.dumps({**seen, "frozen": self.frozen})

    def put(self, who: str, name: str, score: str, mark: str) -> bool:
        """Put a score that a kernel signed on the board; return whether it made sense.

        A student stays there with the best score, the newest of equal ones. A score is of the one
        student who put it there first.
        """
        shown = checked_name(name)
        if not shown or not TOKEN.fullmatch(who):
            return False
        made = hmac.new(self.sign.encode(), score.encode(), "sha256").hexdigest()
        if not self.sign or not hmac.compare_digest(made.encode(), mark.encode()):
            return False
        if len(self.owners) >= MOST_SCORES or self.owners.setdefault(mark, who) != who:
            return False
        points, found, n, *_ = json.loads(score)  # and what no other score has
        before = self.board.get(who)
        if before is not None and before.points > points:
            self.board[who] = replace(before, name=shown)
        elif before is not None or len(self.board) < MOST_ENTRIES:
            self.board[who] = Entry(shown, points, found, n, time.monotonic())
        self.tell_teachers()
        return True

    def tell_teachers(self) -> None:
        """Send what is seen to every open teacher's page."""
        for socket in [*self.teachers]:
            socket.show()

    def enter(self, socket: StudentSocket, kernel: str) -> bool:
        """Let a page in, if it has a kernel here; return whether it is in. It has one socket."""
        gone = [s for s in self.stages if s.kernel == kernel or s.kernel not in self.kernels]
        for other in gone:
            del self.stages[other]
            other.close(1013, "Another socket came for this page, or its kernel has ended.")
        if kernel in self.kernels:
            socket.kernel = kernel
            self.stages[socket] = ""
        return socket in self.stages

    def ask_all(self) -> None:
        """Send what is asked to every student's page."""
        for socket in [*self.stages]:
            socket.tell(self.orders())


class StudentSocket(SmallSocket):
    """One student's page."""

    kernel = ""

    def open(self, *_: str, **__: str) -> None:
        """Count it, and say what holds now."""
        if not self.room.enter(self, self.get_query_argument("kernel", "")):
            self.close(1013, "This page has no kernel here any more. Reload it.")
            return
        # A scene given out before is not forced on who comes later, nor again on who comes back.
        self.tell(json.dumps({"frozen": self.room.frozen, "number": self.room.scenes}))
        self.room.tell_teachers()

    def take(self, found: dict[str, Any]) -> bool:
        """Note the stage, or a score."""
        match found:
            case {"who": str(who), "name": str(name), "score": str(score), "mark": str(mark)}:
                return self in self.room.stages and self.room.put(who, name, score, mark)
        stage = found.get("stage")
        if stage not in STAGES or self not in self.room.stages:
            return False
        if stage != self.room.stages[self]:
            self.room.stages[self] = stage
            self.room.tell_teachers()
        return True

    def on_close(self) -> None:
        """Count it no more."""
        if self.room.stages.pop(self, None) is not None:
            self.room.tell_teachers()


async def why_not(scene: str) -> str:
    """Return why pages would refuse a scene; empty where they open it."""
    pipe = asyncio.subprocess.PIPE
    reader = await asyncio.create_subprocess_exec(
        sys.executable, *READER, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        said, _ = await asyncio.wait_for(reader.communicate(scene.encode()), READER_S)
    except TimeoutError:
        reader.kill()
        return "It took too long to read this link. Nothing was given."
    refused = said.decode().strip() or (reader.returncode and "This link cannot be read.")
    return f"{refused} Nothing was given." if refused else ""


class _WithKey(RequestHandler):
    """What the teacher's key opens."""

    key = ""

    def prepare(self) -> None:
        """Refuse any other."""
        key = self.get_query_argument("key", "")
        if not hmac.compare_digest(key.encode(), self.key.encode()):
            self.set_status(403)
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(WRONG_KEY)


class TeacherPage(_WithKey):
    """The page itself."""

    def initialize(self, key: str, network: str = "") -> None:
        """Keep the key, and this machine's address on its network."""
        self.key, self.network = key, network

    def get(self) -> None:
        """Answer with the page; its address, which holds the key, is told to no other."""
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cache-Control", "no-store")
        styles = STYLES.read_text(encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8").replace("/* page.css */", styles)
        self.finish(page.replace("/* network */", self.network))


class TeacherSocket(_WithKey, SmallSocket):
    """One open teacher's page."""

    def initialize(self, room: Classroom, key: str = "") -> None:
        """Keep the room and the key."""
        super().initialize(room)
        self.key = key
        self.changed = False

    def open(self, *_: str, **__: str) -> None:
        """Say who is there."""
        self.room.teachers.add(self)
        self.show()

    def show(self) -> None:
        """Tell what is seen."""
        self.changed = True
        self.feed()

    async def news(self) -> str | None:
        """Return what is seen, where that has changed."""
        changed, self.changed = self.changed, False
        return self.room.summary() if changed else None

    def take(self, found: dict[str, Any]) -> bool:
        """Freeze or free all screens, give a scene to all, or clear the board."""
        match found:
            case {"freeze": bool(frozen)}:
                self.room.frozen = frozen
            case {"scene": str(scene)} if SCENE.fullmatch(scene):
                self.giving = asyncio.ensure_future(self._give(scene))
                return True
            case {"clear": True}:
                self.room.board.clear()
            case _:
                return False
        self.room.ask_all()
        self.room.tell_teachers()
        return True

    async def _give(self, scene: str) -> None:
        """Give a scene to all pages, unless they would refuse it; say which."""
        refused = await why_not(scene)
        if not refused:
            self.room.scene, self.room.scenes = scene, self.room.scenes + 1
            self.room.ask_all()
        self.tell(json.dumps({"said": refused or "Given to all."}))

    def on_close(self) -> None:
        """Tell it nothing more."""
        self.room.teachers.discard(self)


def handlers(
    base: str, key: str, sign: str = "", kernels: Container[str] = (), network: str = "",
    hall: Any = None,
) -> list[Any]:  # fmt: skip
    """Return the addresses of a class: students' socket, the teacher's page and its socket.

    Args:
        base: the address of the server's root.
        key: of the teacher's page.
        sign: what kernels sign scores with.
        kernels: of the open pages.
        network: this machine's address on its network, "" where it has none.
        hall: the `serve.hall.Hall` whose phones the teacher sees.
    """
    room = Classroom(sign, kernels)
    if hall is not None:
        room.phones, hall.changed = hall.phones, room.tell_teachers
    return [
        (f"{base}class/student", StudentSocket, {"room": room}),
        (f"{base}class/teacher", TeacherSocket, {"room": room, "key": key}),
        (f"{base}teacher", TeacherPage, {"key": key, "network": network}),
    ]

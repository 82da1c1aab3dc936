"""The hall attacks: phones tap where they believe the points are, and a projector shows all taps.

A page with a kernel begins a round, and says what phones may see of it: the boundary and the
weights' needles, later the machine's claims, the proven places and the truth. Before its page has
said it, nothing of that is in this process. A phone asks by POST alone: it sends all its taps each
time, so that what a lost network swallowed comes with the next. It is known by a token that it drew
itself and that no answer holds.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import re
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tornado.web import RequestHandler

from explorer.serve.network import Door
from explorer.serve.sockets import TOKEN, SmallSocket, checked_name, is_loopback

MOST_TAPS = 30  # of a phone, however many points there are; arbitrary
MOST_PHONES = 600  # of a round; arbitrary: two halls
MOST_EACH = 400  # of them from one address, which a hall behind a proxy shares; arbitrary
MOST_NEW = 200  # phones of one address that join in a second; arbitrary: a hall is in after two
MOST_BODY = 2000  # bytes that a phone sends
MOST_ROUND = 300_000  # bytes of a round with the scores of all phones
MOST_ROWS = 1000  # of each kind in a round
REST_S = 0.05  # between two requests of one phone: half of what its page leaves
FEED_S = 0.05  # taps of so long reach the projector together; arbitrary
LETTERS = "BCDFGHJKLNPRSTVXZ"  # of a code: no vowels, so no words; none that is wide
ORIGIN = re.compile(r"https?://[\w.:\[\]-]{1,200}")
ANSWER = re.compile(r"[a-z]{1,10}")
# What phones may see of a round, and what its values are: rows of so many numbers at most, or text.
ROWS = {"lines": 5, "needles": 3, "claims": 3, "places": 5, "truth": 3, "guess": 3,
        "met": 3, "reach": 2}  # fmt: skip
TEXTS = {"seal": 64, "map": 20_000, "within": 150, "sealed": 60_000, "task": 100, "how": 160,
         "question": 300, "answer": 300, "right": 10, "network": 120}  # fmt: skip
PAGE = Path(__file__).with_name("hall.html")
PARTS = PAGE.parents[1]
PAINTER = ("view/dom.js", "view/base.js", "view/plane.js", "controls/hall_plane.js")
NONE = "No round has this code. Look at the projector."
OVER = "This round is over. The next one opens here by itself."
FULL = "This round has as many phones as it may. Look on with a neighbour."
FAST = "Too fast: your taps are kept, and sent again."
WRONG = "Not as this page sends it. Reload the page."


@dataclass
class Phone:
    """One phone: its number on the projector, and what it last sent."""

    number: int
    address: str
    joined: float
    heard: float = -math.inf
    name: str = ""
    taps: list[list[float]] = field(default_factory=list)
    guess: str = ""


@dataclass(eq=False)
class Rounds:
    """The rounds of a page, one after the other: their code, what phones may see, and the phones.

    Attributes:
        code: of all rounds of this page.
        kernel: of the page.
        shown: what phones may see of the present round; empty between two.
        text: the same as JSON.
        version: how often it changed, over all rounds.
        before: the version that came before the present round.
        scores: of each phone, by its number; told to it alone.
        phones: by their tokens; they stay for the next round.
        socket: of the page, while it is connected.
        news: numbers of phones that changed since the projector was told.
    """

    code: str
    kernel: str
    shown: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    version: int = 0
    before: int = 0
    scores: dict[str, list[int]] = field(default_factory=dict)
    phones: dict[str, Phone] = field(default_factory=dict)
    socket: ProjectorSocket | None = None
    news: set[int] = field(default_factory=set)

    @property
    def open(self) -> bool:
        """Return whether taps count: until the machine's claims are shown."""
        return not self.shown.keys() & {"claims", "truth"}

    def show(self, content: dict[str, Any]) -> None:
        """Let phones see this from now on; another seal is another round, without a tap yet."""
        self.scores = content.pop("scores", {})  # to each phone alone
        if content["seal"] != self.shown.get("seal"):
            self.before = self.version
            for phone in self.phones.values():
                phone.taps, phone.guess = [], ""
                self.news.add(phone.number)
        text = json.dumps(content)
        if text != self.text:
            self.shown, self.text, self.version = content, text, self.version + 1

    def end(self) -> None:
        """End the round and let all phones go; the code stays."""
        self.shown, self.text, self.version = {}, "", self.version + 1
        self.scores, self.phones, self.news, self.socket = {}, {}, set(), None

    def phone(self, token: str, address: str, most_each: int) -> Phone | str:
        """Return the phone of a token; a new one joins where there is room, else why it cannot."""
        if token in self.phones:
            return self.phones[token]
        now = time.monotonic()
        own = [phone.joined for phone in self.phones.values() if phone.address == address]
        if len(self.phones) >= MOST_PHONES or len(own) >= (most_each or MOST_EACH):
            return FULL
        if len(own) >= MOST_NEW and now - own[-MOST_NEW] < 1:
            return FAST
        made = self.phones[token] = Phone(len(self.phones) + 1, address, now)
        self.news.add(made.number)
        return made

    def take(self, phone: Phone, name: str, taps: list[list[float]], guess: str, seen: int) -> None:
        """Keep what a phone sent: its name, and while taps count its taps and its guess.

        A phone that has `seen` no version of this round taps at the one before: that is over.
        """
        guess = guess if guess in self.shown.get("answers", ()) else ""
        counts = self.open and seen > self.before
        now = (name, taps, guess) if counts else (name, phone.taps, phone.guess)
        if now != (phone.name, phone.taps, phone.guess):
            phone.name, phone.taps, phone.guess = now
            self.news.add(phone.number)
        if self.news and self.socket is not None:
            self.socket.feed()

    def answer(self, phone: Phone, seen: int) -> str:
        """Return what a phone is told, as JSON: the round where it has not seen it, its score."""
        told = {"version": self.version, "open": self.open, "counted": len(phone.taps),
                "number": phone.number}  # fmt: skip
        score = self.scores.get(str(phone.number))
        head = json.dumps(told if score is None else {**told, "score": score})
        return head if seen == self.version else f'{head[:-1]}, "round": {self.text}}}'

    def report(self, numbers: Iterable[int]) -> str:
        """Return what the projector is told of these phones, as JSON."""
        every = list(self.phones.values())
        some = {n: [every[n - 1].taps, every[n - 1].guess, every[n - 1].name] for n in numbers}
        return json.dumps({"count": len(every), "phones": some})


class Hall:
    """The rounds of all pages of this server."""

    def __init__(self, rooms: Any, base: str = "/", network: str = "") -> None:  # noqa: ANN401
        """`rooms` holds the pages' kernels; `network`: this machine's address there, or ""."""
        self.rooms, self.base, self.network = rooms, base, network
        self.door: Door | None = None  # for phones, where only this machine reaches the server
        self.held: dict[str, Rounds] = {}  # by code
        self.changed: Callable[[], None] = lambda: None  # called when phones came or went

    def find(self, code: str) -> Rounds | None:
        """Return the rounds of a code, while their page is open."""
        found = self.held.get(code)
        return found if found is not None and found.kernel in self.rooms else None

    def phones(self) -> int:
        """Return how many phones are in rounds that go on."""
        return sum(len(r.phones) for r in self.held.values() if r.kernel in self.rooms)

    def of(self, kernel: str) -> Rounds:
        """Return the rounds of a page, under one code; those of pages that are gone are let go."""
        self.held = {c: each for c, each in self.held.items() if each.kernel in self.rooms}
        for held in self.held.values():
            if held.kernel == kernel:
                return held
        code = ""
        while not code or code in self.held:
            code = "".join(secrets.choice(LETTERS) for _ in range(4))
        self.held[code] = Rounds(code, kernel)
        return self.held[code]

    def end(self, kernel: str) -> None:
        """End the round of a page."""
        for held in self.held.values():
            if held.kernel == kernel:
                held.end()
        self.changed()

    def join_address(self, origin: str) -> str:
        """Return where phones find their page, as the projector's page was opened; "" if none can.

        A page that was opened on this machine itself is at the machine's address on its network, or
        behind the door for phones.
        """
        parts = urlsplit(origin) if ORIGIN.fullmatch(origin) else urlsplit("")
        host, port = parts.hostname or "", parts.netloc.rpartition("]")[2].rpartition(":")[2]
        if not is_loopback(host):
            return f"{origin}{self.base}hall" if host else ""
        if self.network:
            return f"{parts.scheme}://{self.network}:{port}{self.base}hall"
        return f"{self.door.url}hall" if self.door is not None and self.door.url else ""


# --- what comes from outside --------------------------------------------------------------------
def _are_rows(found: object, wide: int, most: int = MOST_ROWS, far: float = 4.0) -> bool:
    """Return whether these are rows of `wide` finite numbers, none beyond `far`."""
    return isinstance(found, list) and len(found) <= most and all(
        isinstance(row, list) and len(row) == wide
        and all(type(v) in (int, float) and abs(v) <= far for v in row)  # a nan is not
        for row in found
    )  # fmt: skip


def _are_answers(found: object) -> bool:
    """Return whether these are a few answers to a question, by short keys."""
    return isinstance(found, dict) and len(found) <= 5 and all(
        ANSWER.fullmatch(key) and isinstance(name, str) and len(name) <= 20
        for key, name in found.items()
    )  # fmt: skip


def checked_round(found: object) -> dict[str, Any] | None:
    """Return a round as its page sent it, or None where it is not as that sends it."""
    others = {"size", "most", "scores", "answers"}
    if not isinstance(found, dict) or not found.keys() <= {*ROWS, *TEXTS, *others}:
        return None
    fit = all(
        _are_rows(value, ROWS[name]) if name in ROWS
        else isinstance(value, str) and len(value) <= TEXTS[name] if name in TEXTS
        else type(value) is int and 2 <= value <= 128 if name == "size"
        else type(value) is int and 1 <= value <= MOST_ROWS if name == "most"
        else _are_answers(value) if name == "answers"
        else isinstance(value, dict) and _are_rows(list(value.values()), 3, far=2**MOST_TAPS)
        for name, value in found.items()
    )  # fmt: skip
    return dict(found) if fit and {"seal", "size", "map"} <= found.keys() else None


# --- handlers -----------------------------------------------------------------------------------
class PhonePage(RequestHandler):
    """The phone's page: the same for all, it holds nothing of a round."""

    def get(self) -> None:
        """Answer with it."""
        self.set_header("Content-Type", "text/html; charset=utf-8")
        packed = "gzip" in self.request.headers.get("Accept-Encoding", "")
        if packed:
            self.set_header("Content-Encoding", "gzip")
        self.finish(packed_page() if packed else phone_page())


@cache
def packed_page() -> bytes:
    """Return the phone's page packed, a third of its size."""
    return gzip.compress(phone_page().encode())


@cache
def phone_page() -> str:
    """Return the phone's page with colours and scripts: read once, since a hall asks at once."""
    colours = (PARTS / "page.css").read_text(encoding="utf-8").partition("/* Names that")[0]
    script = "\n".join((PARTS / "page" / name).read_text(encoding="utf-8") for name in PAINTER)
    page = PAGE.read_text(encoding="utf-8").replace("/* colours */", colours)
    return page.replace("/* hall_plane.js */", script)


class PhoneTaps(RequestHandler):
    """What a phone sends, and what it is told."""

    def initialize(self, hall: Hall) -> None:
        """Keep the hall."""
        self.hall = hall

    def check_xsrf_cookie(self) -> None:
        """Ask for no cookie: the token, which only this phone knows, says who it is."""

    def refuse(self, status: int, why: str) -> None:
        """Say why, as JSON."""
        self.set_status(status)
        self.finish(json.dumps({"said": why}))

    def post(self) -> None:
        """Take the taps of a phone, and tell it how the round stands."""
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-store")
        found: object = None
        with suppress(ValueError, RecursionError):  # also of bytes that are no text
            found = json.loads(self.request.body) if len(self.request.body) <= MOST_BODY else None
        match found:
            case {"code": str(code), "token": str(token), "name": str(name), "taps": taps,
                  "guess": str(guess), "seen": int(seen)}:  # fmt: skip
                shown = checked_name(name)
                fit = TOKEN.fullmatch(token) and _are_rows(taps, 2, MOST_TAPS, 1.0)
                if fit and shown is not None and (not guess or ANSWER.fullmatch(guess)):
                    self._take(code.upper(), token, (shown, taps, guess), seen)
                    return
        self.refuse(400, WRONG)

    def _take(self, code: str, token: str, sent: tuple[str, Any, str], seen: int) -> None:
        held, rooms = self.hall.find(code), self.hall.rooms
        if held is None:
            self.refuse(404, NONE)
            return
        if not held.shown:
            self.finish(json.dumps({"said": OVER, "over": True}))
            return
        before = len(held.phones)
        phone = held.phone(token, rooms.address_of(self.request), rooms.most_each)
        if len(held.phones) > before:
            self.hall.changed()
        now = time.monotonic()
        if isinstance(phone, str) or now - phone.heard < REST_S:
            self.refuse(429, phone if isinstance(phone, str) else FAST)
            return
        phone.heard = now
        held.take(phone, *sent, seen)
        self.finish(held.answer(phone, seen))


class ProjectorSocket(SmallSocket):
    """The page that began a round: it says what phones may see, and is told of all taps."""

    room: Hall
    most_bytes = MOST_ROUND
    held: Rounds | None = None

    def open(self, *_: str, **__: str) -> None:
        """Let in who has a kernel here, which only its own page knows."""
        self.kernel = self.get_query_argument("kernel", "")
        self.set_nodelay(True)
        if self.kernel not in self.room.rooms:
            self.close(1013, "This page has no kernel here any more. Reload it.")

    def take(self, found: dict[str, Any]) -> bool:
        """Show phones a round as it stands now, or end it."""
        if self.kernel not in self.room.rooms:
            return False
        if found == {"end": True}:
            self.room.end(self.kernel)
            return True
        if found == {"open": True}:
            return self._open_door()
        content = checked_round(found.get("round"))
        if content is None:
            return False
        held = self.held = self.room.of(self.kernel)
        held.show(content)
        if held.socket is not self:
            held.socket = self
            self._tell_where(held)
        self.feed()
        return True

    def _tell_where(self, held: Rounds) -> None:
        """Tell the code, the address for phones, whether one can be had, and all phones anew."""
        address = self.room.join_address(self.get_query_argument("origin", ""))
        can_open = not address and self._door() is not None
        self.tell(json.dumps({"code": held.code, "address": address, "can_open": can_open,
                              "qr": qr_rows(address, held.code)}))  # fmt: skip
        held.news |= {phone.number for phone in held.phones.values()}

    def _door(self) -> Door | None:
        """Return the door that this page may open: who sits at this machine, a shut one."""
        door = self.room.door
        here = is_loopback(str(self.request.remote_ip))
        return door if door is not None and here and door.can_open() else None

    def _open_door(self) -> bool:
        """Let phones of the network in; return whether this page may ask for it."""
        door, held = self._door(), self.held
        if door is None or held is None:
            return False
        door.open()
        self._tell_where(held)
        self.feed()
        return True

    async def news(self) -> str | None:
        """Return what is told of the phones that changed, soon and together."""
        held = self.held
        if held is None or held.socket is not self or not held.news:
            return None
        await asyncio.sleep(FEED_S)
        some, held.news = held.news, set()
        return held.report(some)

    def on_close(self) -> None:
        """Wait for the page to come back; phones go on."""
        if self.held is not None and self.held.socket is self:
            self.held.socket = None


def qr_rows(address: str, code: str) -> list[str]:
    """Return a QR code of the address as rows of 0 and 1; none without the library segno."""
    with suppress(ImportError):
        import segno

        if address:
            return ["".join(map(str, row)) for row in segno.make(f"{address}#{code}").matrix]
    return []


def handlers(base: str, hall: Hall) -> list[Any]:
    """Return the addresses of the hall: the phone's page, what it sends, the projector's socket."""
    return [
        *phone_handlers(base, hall),
        (f"{base}hall/projector", ProjectorSocket, {"room": hall}),
    ]


def phone_handlers(base: str, hall: Hall) -> list[Any]:
    """Return the addresses that a phone asks: all that stand behind the door."""
    return [(f"{base}hall", PhonePage), (f"{base}hall/taps", PhoneTaps, {"hall": hall})]

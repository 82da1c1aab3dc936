"""A class of students at once: what fails, how long a click and a page take, frames and memory.

    python benchmarks/bench_class.py [--students 30] [--browsers 4] [--seconds 5] [--turns 1]
    python benchmarks/bench_class.py --only forked --cores 0,1
    python benchmarks/bench_class.py --only forked --students 60 --browsers 0
    python benchmarks/bench_class.py --soak 30

Each student opens the page within ten seconds of the others, draws the alternating circle, trains,
attacks, scrubs, and while they play pauses and goes on every second or two: a click's time runs
until the button has its other word. All play together: nobody trains before everybody's page is
usable. Most students are websocket clients that answer every frame as a browser does, once it has
come; `--browsers` of them are Chromium. Both kinds of server are measured in turns: kernels forked
from one warm process, and kernels that start one by one. PSS counts a page of memory that n
processes share as 1/n. Linux alone: read from /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from bench_live import FLAGS, _found, quantile
from playwright.async_api import Browser, async_playwright
from processes import kernels_of
from tornado.httpclient import HTTPRequest
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.websocket import WebSocketClientConnection, websocket_connect

from explorer.serve import server as serve
from explorer.serve import warm

PROTOCOL = "v1.kernel.websocket.jupyter.org"
PRESET, TITLE = "alternating-circle", "Alternating circle"
PATIENCE_S = 180.0
CLICK_PATIENCE_S = 60.0
ARRIVE_WITHIN_S = 10.0
WATCH_S = 5.0


@dataclass
class Seen:
    """What a class saw."""

    usable: list[float] = field(default_factory=list)
    clicks: list[float] = field(default_factory=list)
    frames: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    pss: float = 0.0
    server: float = 0.0


def _offsets(message: bytes) -> list[bytes]:
    """Return channel, header, parent, metadata, content and buffers of a message."""
    count = int.from_bytes(message[:8], "little")
    at = [int.from_bytes(message[8 * i : 8 * i + 8], "little") for i in range(1, count + 1)]
    return [message[a:b] for a, b in itertools.pairwise(at)]


class Student:
    """A visitor without a browser: knows the page's widgets, and answers its frames."""

    def __init__(self, url: str) -> None:
        """Nothing is open yet."""
        self.url, self.count, self.drawn, self.messages = url, itertools.count(), 0, 0
        self.states: dict[str, dict[str, Any]] = {}
        self.changed = asyncio.Event()
        self.link: WebSocketClientConnection | None = None
        self.reader: asyncio.Task[None] | None = None

    async def open(self) -> float:
        """Open the page; return the seconds until its widgets are here."""
        begun = time.perf_counter()
        client = SimpleAsyncHTTPClient(force_instance=True, max_clients=100)
        request = HTTPRequest(self.url, request_timeout=PATIENCE_S, connect_timeout=PATIENCE_S)
        page = (await client.fetch(request)).body.decode()
        config = re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)
        self.kernel = json.loads(config[1])["kernelId"]
        address = f"{self.url.replace('http', 'ws', 1)}api/kernels/{self.kernel}/channels"
        self.link = await websocket_connect(
            HTTPRequest(address, request_timeout=PATIENCE_S, connect_timeout=PATIENCE_S),
            subprotocols=[PROTOCOL],
        )
        self.reader = asyncio.create_task(self._read())
        states = {"comm_id": "all", "target_name": "jupyter.widget.control", "data": {}}
        self.send("comm_open", states, version="1.0.0")
        self.send("comm_msg", {"comm_id": "all", "data": {"method": "request_states"}})
        await self.until(lambda: self.find("TimeBar"), PATIENCE_S)
        return time.perf_counter() - begun

    def send(self, kind: str, content: dict[str, Any], version: str = "2.1.0") -> None:
        """Send a message to the kernel."""
        header = {"msg_id": f"{id(self)}-{next(self.count)}", "msg_type": kind, "session": "s",
                  "username": "", "version": "5.3", "date": "2020-01-01T00:00:00Z"}  # fmt: skip
        parts = [b"shell", *(json.dumps(p).encode() for p in (
            header, {}, {"version": version}, content))]  # fmt: skip
        at = [8 * (len(parts) + 2)]
        for part in parts:
            at.append(at[-1] + len(part))
        numbers = b"".join(n.to_bytes(8, "little") for n in (len(at), *at))
        assert self.link is not None
        self.link.write_message(numbers + b"".join(parts), binary=True)

    def custom(self, widget: str, **content: Any) -> None:
        """Send a widget a message of its own."""
        self.send("comm_msg", {"comm_id": widget, "data": {"method": "custom", "content": content}})

    async def _read(self) -> None:
        assert self.link is not None
        while (message := await self.link.read_message()) is not None:
            self.messages += 1
            _, header, _, _, content, *_ = _offsets(message)
            if b"comm_" in header:
                self._take(json.loads(content))

    def _take(self, content: dict[str, Any]) -> None:
        data, widget = content.get("data", {}), content["comm_id"]
        method = data.get("method", "update" if "state" in data else "")
        if method == "update_states":
            self.states |= {key: value["state"] for key, value in data["states"].items()}
        elif method in ("update", "echo_update"):
            self.states.setdefault(widget, {}).update(data["state"])
        elif method == "custom" and data["content"].get("kind") == "frame":
            self.drawn += self.name_of(widget) == "PlaneView"
            self.custom(widget, kind="drawn", frame=data["content"]["frame"])
        self.changed.set()

    def name_of(self, widget: str) -> str:
        """Return the name of the widget's class."""
        return str(self.states.get(widget, {}).get("_anywidget_id", "")).rpartition(".")[2]

    def find(self, name: str) -> str:
        """Return the widget of a class, or an empty string."""
        return next((key for key in self.states if self.name_of(key) == name), "")

    async def until(self, holds: Any, seconds: float) -> None:
        """Wait until it holds."""
        end = time.perf_counter() + seconds
        while not holds():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), max(0.01, end - time.perf_counter()))

    async def go(self, stage: str) -> None:
        """Choose a tab."""
        self.custom(self.find("Head"), kind="stage", value=stage)

    async def draw(self) -> None:
        """Draw the preset."""
        await self.go("draw")
        self.custom(self.find("Thumbs"), kind="preset", value=PRESET)

    async def toggle(self) -> float:
        """Press Play or Pause; return the seconds until the button has its other word."""
        bar, begun = self.states[self.find("TimeBar")], time.perf_counter()
        before = bar["state"]["running"]
        self.custom(self.find("TimeBar"), kind="pause" if before else "play")
        await self.until(lambda: bar["state"]["running"] != before, CLICK_PATIENCE_S)
        return time.perf_counter() - begun

    async def scrub(self) -> None:
        """Drag the timeline."""
        for value in range(10, 0, -1):
            self.custom(self.find("TimeBar"), kind="seek", value=value / 10)
            await asyncio.sleep(0.05)

    async def frames(self) -> int:
        """Return how many frames were drawn."""
        return self.drawn

    async def close(self) -> None:
        """Leave as a closing page does."""
        if self.link is not None:
            self.link.close()
        if self.reader is not None:
            self.reader.cancel()


class Person:
    """A visitor with a browser."""

    WATCH = """window.drawn = 0; document.addEventListener('mx-drawn',
      event => { if (event.target.closest('.mx-plane')) window.drawn++; });"""

    def __init__(self, url: str, browser: Browser) -> None:
        """Nothing is open yet."""
        self.url, self.browser = url, browser

    async def open(self) -> float:
        """Open the page; return the seconds until its buttons are here."""
        context = await self.browser.new_context(viewport={"width": 1280, "height": 720})
        self.page = await context.new_page()
        await self.page.add_init_script(self.WATCH)
        begun = time.perf_counter()
        patience = 1000 * PATIENCE_S
        await self.page.goto(self.url, timeout=patience, wait_until="commit")
        own = self.page.locator(".mx-opening-own")  # what plays while the kernel starts is left
        self.play = self.page.locator(".mx-play")
        await own.or_(self.play).first.wait_for(timeout=patience)
        if await own.count():
            await own.click(timeout=patience)
        await self.play.wait_for(timeout=patience)
        await self.page.locator(".mx-plane").wait_for(timeout=patience)
        return time.perf_counter() - begun

    async def go(self, stage: str) -> None:
        """Choose a tab."""
        tab = self.page.locator(".mx-head button").filter(has_text=re.compile(stage, re.IGNORECASE))
        await tab.first.click()

    async def draw(self) -> None:
        """Draw the preset."""
        await self.go("draw")
        await self.page.locator(".mx-thumb").filter(has_text=TITLE).first.click()

    async def toggle(self) -> float:
        """Press Play or Pause; return the seconds until the button has its other word."""
        return await self.play.evaluate(
            """button => new Promise(done => {
              const word = () => button.getAttribute("aria-label");
              const before = word(), begun = performance.now();
              const look = () => word() !== before
                ? done((performance.now() - begun) / 1000) : requestAnimationFrame(look);
              button.click(); look(); })"""
        )

    async def scrub(self) -> None:
        """Drag the timeline."""
        await self.page.locator(".mx-time").evaluate(
            """line => { for (let part = 10; part > 0; part--) {
              line.value = line.max * part / 10;
              line.dispatchEvent(new Event("input", {bubbles: true})); } }"""
        )

    async def frames(self) -> int:
        """Return how many frames were drawn."""
        return int(await self.page.evaluate("window.drawn"))

    async def close(self) -> None:
        """Close the page."""
        await self.page.context.close()


async def lesson(
    who: Student | Person, seen: Seen, ready: asyncio.Barrier, seconds: float, late: float
) -> None:
    """One student's lesson."""
    name, step = type(who).__name__, "open"
    try:
        await asyncio.sleep(late)
        seen.usable.append(await who.open())
    except Exception as error:
        seen.failures.append(f"{name}, {step}: {type(error).__name__} {error}")
        await ready.wait()
        return
    await ready.wait()
    try:
        step = "draw"
        await who.draw()
        for step in ("train", "attack"):
            await who.go(step)
            await asyncio.sleep(0.3)
            seen.clicks.append(await who.toggle())
            before, begun = await who.frames(), time.perf_counter()
            while time.perf_counter() - begun < seconds:
                await asyncio.sleep(random.uniform(1.0, 2.0))
                seen.clicks += [await who.toggle(), await who.toggle()]
            seen.frames.append((await who.frames() - before) / (time.perf_counter() - begun))
            seen.clicks.append(await who.toggle())
        step = "scrub"
        await who.scrub()
    except Exception as error:
        seen.failures.append(f"{name}, {step}: {type(error).__name__} {error}")


async def watch(server: serve.Server, seen: Seen) -> None:
    """Note the peak of all processes' memory, until cancelled.

    In a thread and seldom: the system needs most of a second to add up so many processes, in which
    the students would see nothing.
    """
    while True:
        seen.pss = max(seen.pss, await asyncio.to_thread(memory_of, server.process.pid))
        await asyncio.sleep(WATCH_S)


def memory_of(pid: int) -> float:
    """Return the share of memory of a process and all its children, GB."""
    own = psutil.Process(pid)
    return sum(pss(each) for each in {pid, *(child.pid for child in own.children(recursive=True))})


def pss(pid: int) -> float:
    """Return a process's share of memory, GB; 0 where it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(r"^Pss:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1.024e-6 if found else 0.0


async def measure(options: argparse.Namespace, forked: bool) -> Seen:
    """Return what a class saw of one server."""
    os.environ[warm.FORK] = "1" if forked else "0"
    seen = Seen()
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, options.cores or everywhere)  # the server and its kernels inherit it
    with serve.start(port=0, class_size=options.students + 1) as server:
        os.sched_setaffinity(0, everywhere)
        if forked:
            await Student(server.url).open()  # the warm process has imported everything
        async with async_playwright() as play:
            browser = await play.chromium.launch(
                executable_path=_found(os.environ.get("CHROMIUM", "chromium")), args=FLAGS
            )
            people = [Person(server.url, browser) for _ in range(options.browsers)]
            others = [Student(server.url) for _ in range(options.students - options.browsers)]
            everyone = [*people, *others]
            ready = asyncio.Barrier(len(everyone))
            watcher = asyncio.create_task(watch(server, seen))
            await asyncio.gather(
                *(
                    lesson(who, seen, ready, options.seconds, random.uniform(0, ARRIVE_WITHIN_S))
                    for who in everyone
                )
            )
            watcher.cancel()
            times = psutil.Process(server.process.pid).cpu_times()
            seen.server = times.user + times.system
            for who in everyone:
                await who.close()
            await browser.close()
        assert kernels_of(server.process.pid)
    return seen


# --- one page for long --------------------------------------------------------------------------
FIRST_MIN = 5.0  # until all that is built once has been built


async def soak(minutes: float) -> None:
    """Print the memory of one page's kernel and of its server, minute by minute."""
    with serve.start(port=0, class_size=2) as server:
        student = Student(server.url)
        await student.open()
        (kernel,) = kernels_of(server.process.pid)
        pids = {"kernel": kernel.pid, "server": server.process.pid}
        begun, rounds, first = time.perf_counter(), 0, dict[str, float]()
        while (spent := (time.perf_counter() - begun) / 60) < minutes or not first:
            for _ in range(20):
                await one_round(student, rounds)
                rounds += 1
            held = {name: 1000 * pss(pid) for name, pid in pids.items()}
            said = ", ".join(f"{name} {mb:.0f} MB" for name, mb in held.items())
            print(f"{spent:5.1f} min, {rounds} rounds: {said}", flush=True)
            if spent >= FIRST_MIN and not first:
                first = held
        for name, mb in held.items():
            print(f"{name}: {mb / first[name] - 1:+.1%} since the first {FIRST_MIN:.0f} minutes")
        await student.close()


async def one_round(student: Student, number: int) -> None:
    """Play, scrub, branch and reset, in training or in the attack of what was trained."""
    await student.draw()
    for stage in ("train", "attack"):
        await student.go(stage)
        await student.toggle()
        await asyncio.sleep(1.0)
        if student.states[student.find("TimeBar")]["state"]["running"]:
            await student.toggle()
        await student.scrub()
        bar = student.find("TimeBar")
        student.custom(bar, kind="branch")
        student.custom(bar, kind="reset")
        await asyncio.sleep(0.3)


def show(name: str, seen: Seen) -> None:
    """Print one side of the table."""
    print(f"\n{name}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    rows = [
        ("usable pages", f"{len(seen.usable)}", "all"),
        ("failures", f"{len(seen.failures)}", "0"),
        ("click, median", f"{statistics.median(seen.clicks or [0]):.2f} s", ""),
        ("click, 95th percentile", f"{quantile(seen.clicks or [0], 0.95):.2f} s", "1 s"),
        ("first usable page, median", f"{statistics.median(seen.usable or [0]):.1f} s", ""),
        ("first usable page, 95th", f"{quantile(seen.usable or [0], 0.95):.1f} s", "10 s"),
        ("frames/s a student, all play", f"{statistics.mean(seen.frames or [0]):.1f}", "3"),
        ("memory at its peak (PSS)", f"{seen.pss:.1f} GB", "4 GiB"),
        ("the server's own process", f"{seen.server:.0f} CPU s", ""),
    ]
    for what, measured, asked in rows:
        print(f"{what:32s} {measured:>10s}   {asked}", flush=True)
    for failure in sorted(set(seen.failures))[:5]:
        print(f"  {seen.failures.count(failure)} x {failure[:150]}")


def main() -> None:
    """Print the table, forked and not, in turns."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--students", type=int, default=30)
    parser.add_argument("--browsers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--only", choices=("forked", "single"))
    parser.add_argument("--cores", type=lambda text: {int(part) for part in text.split(",")})
    parser.add_argument("--soak", type=float, default=0.0, metavar="MINUTES")
    options = parser.parse_args()
    random.seed(0)
    if options.soak:
        asyncio.run(soak(options.soak))
        return
    for _ in range(options.turns):
        for kind in ("forked", "single"):
            if options.only in (None, kind):
                seen = asyncio.run(measure(options, kind == "forked"))
                show(f"{options.students} students, kernels {kind}", seen)


if __name__ == "__main__":
    main()

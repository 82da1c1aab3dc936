"""How live the page is: drawn frames, their lag, the answer to a click, and the engine's speed.

    python benchmarks/bench_live.py [--seconds 60] [--clicks 20] [--frames [--band]]

Chromium without a screen draws the page that Voila serves, on the same machine: 200 points, a
2-100-100-1 network, the 60 x 60 map and three curves. A frame counts as drawn in the animation
frame after its last message; its lag runs from the kernel's send to that moment, on one clock.
The kernel's CPU time of a frame is that of making and sending it, without the engine's steps; that
of Chromium counts all its processes. Messages are those of the page's sockets, in and out.
The engine's share compares steps per second of the kernel's own CPU time with those of the same
run in a process without a page. To account for the browser, that process runs beside a page that
draws as fast (its own training held at 100 steps/s): caches and memory are shared either way. The
same process on an otherwise idle machine is printed too. With `--band` the page is another one: 20
points of a circle, a 2-100-1 network, and the weights below the plane, unfolded.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright
from processes import kernels_of

from explorer.research import pages
from explorer.serve import server as serve

# What the server gives its kernels (explorer/serve/voila/kernels): the same for both sides.
KERNEL = json.loads((serve.SETTINGS / "kernels" / pages.KERNEL / "kernel.json").read_text())

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-sync"]  # fmt: skip
WATCH = """
window.seen = [];
window.messages = 0;
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', () => window.messages++);
  }
  send(data) { window.messages++; super.send(data); }
};
document.addEventListener('mx-drawn', e => {
  if (!e.target.closest('.mx-plane')) return;
  const now = performance.timeOrigin + performance.now();
  window.seen.push([e.detail.frame, e.detail.sent, now]);
});
window.answers = [];
window.clicked = (name, want) => new Promise(done => {
  const named = name => document.querySelector(`.mx-transport button[aria-label="${name}"]`);
  const button = named(name);
  const begun = performance.now();
  const look = () => named(want)
    ? requestAnimationFrame(() => done(performance.now() - begun)) : requestAnimationFrame(look);
  button.dispatchEvent(new MouseEvent('click', {bubbles: true}));
  look();
});
"""
# The measured page: 200 points, two hidden layers of 100, everything drawn; the kernel tells in a
# file how many frames it made, their CPU time, and the step.
MEASURED = """
import json, os, time
from explorer.engine.data import preset
from explorer.engine.training import TrainConfig
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.session import Session
show, spent = Session.show, [0, 0.0, 0]
def timed(session, **changes):
    begun = time.process_time()
    show(session, **changes)
    spent[0] += 1
    spent[1] += time.process_time() - begun
    state = session.frame.training.state
    spent[2] = 0 if state is None else state.t
    with open({path!r} + ".new", "w") as file:
        json.dump(spent, file)
    os.replace({path!r} + ".new", {path!r})
Session.show = timed
app = App(preset({points}))
app.session.train_config = TrainConfig(widths={widths}, steps=10**7)
app.session.band = {band}
app.session.choose(steps_per_second=float("inf"))
play.go(app.session, "train")
app.widget
"""
PAGE = {"points": "'blobs', n=200", "widths": "(100, 100)", "band": False}
BAND = {"points": "'alternating-circle', n=20", "widths": "(100,)", "band": True}
HEADLESS = """
import time, torch
torch.set_num_threads(1)
from explorer.engine import training
from explorer.engine.data import preset
from explorer.engine.training import TrainConfig
data, config = preset("blobs", n=200), TrainConfig(widths=(100, 100), steps=10**9)
state = training.init(data, config, torch.Generator().manual_seed(0))
until, steps, cpu = time.perf_counter() + 8, 0, time.process_time()
while time.perf_counter() < until:
    state = training.step(data, state, config)
    steps += 1
print(steps / (time.process_time() - cpu))
"""


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def kernel_of(server: serve.Server) -> psutil.Process:
    return max(kernels_of(server.process.pid), key=lambda k: sum(k.cpu_times()[:2]))


def open_page(page: Page, url: str) -> float:
    begun = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.locator(".mx-opening-own").click()  # an empty plane
    page.locator("#opening").wait_for(state="detached", timeout=120_000)
    page.locator(".mx-plane .mx-pad-surface").wait_for(timeout=90_000)
    page.get_by_role("button", name="Step", exact=True).wait_for()
    return time.perf_counter() - begun


def browser_cpu() -> float:
    """Seconds of CPU of all processes of the browser."""
    mine = psutil.Process().children(recursive=True)
    return sum(sum(p.cpu_times()[:2]) for p in mine if "--no-first-run" in p.cmdline()
               or "--type=" in " ".join(p.cmdline()))  # fmt: skip


def told(path: Path) -> tuple[int, float, int]:
    """Frames that the kernel made, the CPU seconds that they took, and the step."""
    frames, seconds, step = json.loads(path.read_text())
    return frames, seconds, step


@contextmanager
def measured_page(
    browser: Browser, what: dict[str, object] = PAGE
) -> Iterator[tuple[Page, serve.Server, Path]]:
    """The measured page, served and open."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "told.json"
        cells = (MEASURED.format(path=str(path), **what),)
        with serve.start(port=0, cells=cells) as server:
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.add_init_script(WATCH)
            page.goto(server.url)
            page.locator(".mx-plane .mx-pad-surface").wait_for(timeout=90_000)
            page.get_by_role("button", name="Play").wait_for()
            time.sleep(2)
            yield page, server, path


def live(page: Page, server: serve.Server, seconds: float, path: Path) -> dict[str, float]:
    kernel = kernel_of(server)
    page.get_by_role("button", name="Play").click()
    for _ in range(600):  # the first step may compile its loop
        if told(path)[2] > 0:
            break
        time.sleep(0.1)
    time.sleep(3)  # the curves fill, the caches warm
    page.evaluate("window.seen.length = 0")
    cpu, begun = sum(kernel.cpu_times()[:2]), time.perf_counter()
    chromium, messages = browser_cpu(), page.evaluate("window.messages")
    frames, making, steps = told(path)
    time.sleep(seconds)
    took, used = time.perf_counter() - begun, sum(kernel.cpu_times()[:2]) - cpu
    chromium, messages = browser_cpu() - chromium, page.evaluate("window.messages") - messages
    made, spent, done = told(path)
    seen = page.evaluate("window.seen")
    lags = [at - sent for _, sent, at in seen]
    third, drawn = max(1, len(lags) // 3), len({at for *_, at in seen})
    return {
        "frames": drawn / took,
        "chromium": 1000 * chromium / drawn,
        "kernel": 1000 * (spent - making) / (made - frames),
        "messages": messages / drawn,
        "lag50": statistics.median(lags),
        "lag95": quantile(lags, 0.95),
        "first": statistics.median(lags[:third]),
        "last": statistics.median(lags[-third:]),
        "steps_per_cpu": (done - steps) / used,
        "steps_per_s": (done - steps) / took,
    }


def answers(page: Page, clicks: int) -> tuple[list[float], list[float]]:
    pauses, steps = [], []
    for name, into in [("Pause", pauses), ("Step", steps)] * clicks:
        time.sleep(0.7)
        into.append(page.evaluate(f"window.clicked({name!r}, 'Play')"))
        time.sleep(0.3)
        page.evaluate("window.clicked('Play', 'Pause')")
    return pauses, steps


def headless() -> float:
    """Steps per CPU second of the same training in a process of its own."""
    env = {**os.environ, **KERNEL["env"]}
    run = subprocess.run(
        [sys.executable, "-c", HEADLESS], capture_output=True, text=True, check=True, env=env
    )
    return float(run.stdout)


def beside_a_page(page: Page) -> float:
    """The same while the page draws, its own training held at 100 steps a second."""
    page.locator(".mx-transport select").first.select_option(label="100 steps/s")
    speeds = [headless() for _ in range(3)]
    page.locator(".mx-transport select").first.select_option(label="as fast as it goes")
    return statistics.median(speeds)


def row(what: str, got: str, asked: str) -> None:
    print(f"{what:<46} {got:>22}   {asked}")


def frame_rows(seen: dict[str, float], seconds: float) -> None:
    row(f"drawn frames over {seconds:.0f} s", f"{seen['frames']:.1f} /s", "at least 30 /s")
    row("CPU of Chromium, a frame", f"{seen['chromium']:.1f} ms", "under 20 ms")
    row("CPU of the kernel, a frame", f"{seen['kernel']:.1f} ms", "under 5 ms")
    row("messages in and out, a frame", f"{seen['messages']:.1f}", "")
    row("lag of a drawn frame, median", f"{seen['lag50']:.0f} ms", "")
    row("lag of a drawn frame, 95th percentile", f"{seen['lag95']:.0f} ms", "under 30 ms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clicks", type=int, default=20)
    parser.add_argument("--frames", action="store_true", help="the figures of a frame alone")
    parser.add_argument("--band", action="store_true", help="of them: with the weights unfolded")
    args = parser.parse_args()
    program = os.environ.get("CHROMIUM", "chromium")
    if args.frames:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=_found(program), args=FLAGS)
            with measured_page(browser, BAND if args.band else PAGE) as (page, server, path):
                frame_rows(live(page, server, args.seconds, path), args.seconds)
            browser.close()
        return 0
    alone = [headless() for _ in range(3)]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=_found(program), args=FLAGS)
        loads = {}
        with serve.start(port=0) as server:
            for name in ("first", "next"):
                page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
                loads[name] = open_page(page, server.url)
                page.context.close()
        with measured_page(browser) as (page, server, path):
            seen = live(page, server, args.seconds, path)
            pauses, steps = answers(page, args.clicks)
            base = beside_a_page(page)
        browser.close()
    row("first usable page, once the server listens", f"{loads['first']:.1f} s", "under 4 s")
    row("first usable page of the next visitor", f"{loads['next']:.1f} s", "under 1.5 s")
    frame_rows(seen, args.seconds)
    row(
        "median lag, first third to last",
        f"{seen['first']:.0f} to {seen['last']:.0f} ms",
        "not growing",
    )
    row("engine, steps per kernel CPU second", f"{seen['steps_per_cpu']:.0f}", "")
    row("headless beside a drawn page, median of 3", f"{base:.0f}", "")
    row("share of that", f"{seen['steps_per_cpu'] / base:.0%}", "at least 70%")
    idle = statistics.median(alone)
    row("headless on the idle machine, median of 3", f"{idle:.0f}", "")
    row("share of that", f"{seen['steps_per_cpu'] / idle:.0%}", "")
    row("engine, steps per second of the clock", f"{seen['steps_per_s']:.0f}", "")
    for name, values in (("Pause", pauses), ("Step", steps)):
        got = f"{statistics.median(values):.0f} / {quantile(values, 0.95):.0f} ms"
        row(f"click on {name} to its sight, median / 95th", got, "95th under 100 ms")
    return 0


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise SystemExit(f"no {program}: set CHROMIUM to a Chromium, or run `make bench`")
    return path


if __name__ == "__main__":
    raise SystemExit(main())

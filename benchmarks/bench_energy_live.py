"""From the pointer to the redrawn landscape, in a browser: a drag of the handle of the triangle.

    python benchmarks/bench_energy_live.py [--moves 400] [--preset moons] [--n 20]

Chromium without a screen shows the page that Voila serves, on the same machine: n points of the
moons, or of another preset, and a network that was trained on them. The handle is drawn round the
triangle. The time of a move runs from the pointer's raw event to the frame in which the plane, the
energy in words and the strip have answered it or a later one: while one place is on its way, the
newest waits. Plane, energy, shares and strip follow the hand without the kernel, which are rows of
their own: until the frame in which they show what the browser read where the handle is.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from typing import Any

from bench_live import FLAGS, _found, quantile, row
from playwright.sync_api import Page, sync_playwright

from explorer.serve import server as serve

CELL = """
from explorer import app, preset
from explorer.page import play
made = app(preset("{data}", n={n}))
play.go(made.session, "train")
play.advance(made.session, steps={steps}); play.assess(made.session)
play.go(made.session, "attack")
play.go(made.session, "landscape")
"""
# Each handle that is sent has a number; the answer, one message, tells which were taken over.
WATCH = """
window.seen = [];
const see = (what, number) => window.seen.push([what, performance.now(), number]);
const numberIn = (data, name) => {
  const text = typeof data === 'string' ? data : new TextDecoder().decode(data);
  return Number(new RegExp(`"${name}": ?([0-9]+)`).exec(text)?.[1] || 0);
};
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', e => {
      see('message', 0);
      const taken = numberIn(e.data, 'taken');
      if (taken) see('taken', taken);
    });
  }
  send(data) {
    see('message', 0);
    const sent = numberIn(data, 'number');
    if (sent) see('sent', sent);
    super.send(data);
  }
};
document.addEventListener('mx-drawn', e => {
  for (const kind of ['plane', 'strip-view']) if (e.target.closest(`.mx-${kind}`)) see(kind, 0);
});
let holds = 0;
document.addEventListener('mx-light', e => {
  if (!e.detail.start) return;
  const number = holds += 1;
  see('held', number);
  const {reading} = e.detail;
  queueMicrotask(() => requestAnimationFrame(() => { // after it painted
    see('followed', number);
    const said = document.querySelector('.mx-starts-aside [data-item=read]').textContent;
    const drawn = document.querySelector('.mx-strip-view canvas').mxPainted?.handle;
    if (reading && said.includes(reading.energy) && drawn?.[1] === reading.value)
      see('read', number);
  }));
});
window.addEventListener('pointerrawupdate', () => see('moved', 0), true);
"""


def drag(page: Page, moves: int) -> list[tuple[str, float, int]]:
    """Draw the handle round the middle of the triangle; return what was seen, and when (ms)."""
    pad = page.locator(".mx-triangle-view").first.get_by_role("application")
    pad.wait_for(timeout=120_000)
    page.wait_for_timeout(8000)  # the map of all starts is whole
    box = pad.bounding_box()
    assert box is not None
    side = min(box["width"] - 56, (box["height"] - 52) * 2 / 3**0.5)  # as triangle.js lays it out
    x, y = box["x"] + box["width"] / 2, box["y"] + 26 + (box["height"] - 52) / 2 + side / 12
    page.mouse.move(x, y)
    page.mouse.down()
    page.wait_for_timeout(500)
    page.evaluate("window.seen.length = 0")
    for i in range(moves):
        angle = 2 * math.pi * i / 170
        page.mouse.move(x + 0.14 * side * math.cos(angle), y + 0.14 * side * math.sin(angle))
    page.wait_for_timeout(1000)
    page.mouse.up()
    seen: list[Any] = page.evaluate("window.seen")
    return [(str(what), float(at), int(number)) for what, at, number in seen]


def answers(seen: list[tuple[str, float, int]]) -> list[tuple[float, float, float]]:
    """Milliseconds of each move: until its place leaves, until it is answered, until all is drawn.

    A place leaves when that before it was answered; one that is passed by meanwhile never does.
    """
    times: dict[str, list[tuple[float, int]]] = {}
    for what, at, number in seen:
        times.setdefault(what, []).append((at, number))
    found = []
    for moved, _ in times["moved"]:
        sent = next(((at, k) for at, k in times["sent"] if at >= moved), None)
        if sent is None:
            continue
        taken = next((at for at, k in times["taken"] if k >= sent[1]), math.inf)
        drawn = [next((at for at, _ in times[kind] if at > taken), math.inf)
                 for kind in ("plane", "strip-view")]  # fmt: skip
        if max(drawn) < math.inf:
            found.append((sent[0] - moved, taken - sent[0], max(drawn) - taken))
    return found


def spread(times: list[float]) -> str:
    """Return the median and the 95th percentile of some milliseconds."""
    return f"{statistics.median(times):.0f} / {quantile(times, 0.95):.0f} ms"


def follows(seen: list[tuple[str, float, int]], kind: str) -> list[float]:
    """Return the milliseconds from each move until it was "followed" by the plane, or "read"."""
    painted = {number: at for what, at, number in seen if what == kind}
    holds = [(at, number) for what, at, number in seen if what == "held"]
    moves = [at for what, at, _ in seen if what == "moved"]
    found = [(at, next((k for held, k in holds if held >= at), None)) for at in moves]
    return [painted[k] - at for at, k in found if k is not None and k in painted]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=400)
    parser.add_argument("--preset", default="moons")
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--steps", type=int, default=6000)
    args = parser.parse_args()
    program = _found(os.environ.get("CHROMIUM", "chromium"))
    code = CELL.format(data=args.preset, n=args.n, steps=args.steps)
    with sync_playwright() as play, serve.start(port=0, cells=(code,)) as server:
        browser = play.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.add_init_script(WATCH)
        page.goto(server.url)
        begun = time.perf_counter()
        seen = drag(page, args.moves)
        browser.close()
    took = answers(seen)
    sent = sum(what == "sent" for what, *_ in seen)
    row("moves of the pointer, and places sent", f"{len(took)}, {sent}", "")
    for what, kind in (("plane", "followed"), ("energy and strip", "read")):
        times = follows(seen, kind)
        row(f"handle to {what} in the browser ({len(times)})", spread(times), "95th under 20 ms")
    parts = ("until its place leaves", "there and back", "until it is drawn")
    for name, times, goal in (
        ("handle to all three by the kernel", [sum(one) for one in took], ""),
        *((name, [one[k] for one in took], "") for k, name in enumerate(parts)),
    ):
        row(f"{name}, median / 95th", spread(times), goal)
    messages = sum(what == "message" for what, *_ in seen) / max(sent, 1)
    row("messages in and out, a place", f"{messages:.1f}", "")
    row("seconds in all", f"{time.perf_counter() - begun:.0f}", "")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The last act in a browser: from the click to the first ring, from the disc to what is refitted.

    python benchmarks/bench_proof.py [--moves 300]

Chromium without a screen shows the page that Voila serves, on the same machine: the opening's
network, 20 points of a circle. The disc is drawn once round the circle. The time of a move runs
from the pointer's raw event to the frame with the best explanation without the disc there, or at
the place of a later move.
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
from explorer import app
from explorer.page.opening import open_recorded
made = app()
open_recorded(made.session)
"""
WATCH = """
window.seen = [];
const shown = () => document.querySelector('.mx-plane canvas')?.mxFrame;
addEventListener('pointermove', e => {
  const box = document.querySelector('.mx-plane .mx-pad-surface')?.getBoundingClientRect();
  if (box) seen.push(['moved', performance.now(), 2 * (e.clientX - box.x) / box.width - 1,
                      1 - 2 * (e.clientY - box.y) / box.height]);
}, true);
addEventListener('pointerdown', () => seen.push(['pressed', performance.now(), 0, 0]), true);
document.addEventListener('mx-drawn', e => {
  if (!e.target.closest('.mx-plane')) return;
  const { disc, places } = shown(); // with the disc stands what is fitted without it
  seen.push(['drawn', performance.now(), ...(disc ? disc.data.slice(0, 2) : [NaN, NaN])]);
  if (places) seen.push(['ring', performance.now(), 0, 0]);
});
"""
Seen = list[tuple[str, float, float, float]]


def first_ring(page: Page) -> tuple[float, float]:
    """Press the blue button; seconds to the first ring, and until all places are known."""
    ask = page.get_by_role("button", name="Could they be elsewhere?")
    ask.wait_for(timeout=120_000)
    page.wait_for_timeout(3000)
    begun = time.perf_counter()
    ask.click()
    page.get_by_role("button", name="Reveal the points").wait_for(timeout=120_000)
    whole = time.perf_counter() - begun
    seen: Any = page.evaluate("window.seen")
    pressed = next(at for what, at, *_ in seen if what == "pressed")
    ring = next(at for what, at, *_ in seen if what == "ring")
    return (ring - pressed) / 1000, whole


def drag(page: Page, moves: int) -> Seen:
    """Draw the disc round the circle; return what was seen, and when (ms)."""
    box = page.locator(".mx-stage .mx-pad-surface").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x + box["width"] / 4, y)
    page.mouse.down()
    page.wait_for_timeout(2000)
    page.evaluate("window.seen.length = 0")
    for i in range(1, moves + 1):
        angle, r = 2 * math.pi * i / moves, box["width"] / 4
        page.mouse.move(x + r * math.cos(angle), y + r * math.sin(angle))
        page.wait_for_timeout(15)
    page.wait_for_timeout(1500)
    page.mouse.up()
    seen: Seen = page.evaluate("window.seen")
    return seen


def answers(seen: Seen) -> list[float]:
    """Milliseconds from each move to the first frame with the disc there, or later on its way."""
    moved = [(at, x, y) for what, at, x, y in seen if what == "moved"]
    reached = []  # of each drawn frame: when, and the last move whose place it shows
    for what, at, x, y in seen:
        if what == "drawn" and not math.isnan(x):
            gaps = [(math.hypot(x - u, y - v), -i) for i, (t, u, v) in enumerate(moved) if t < at]
            if gaps and min(gaps)[0] < 0.01:
                reached.append((at, -min(gaps)[1]))
    found = (next((at for at, k in reached if k >= i), math.inf) - t
             for i, (t, *_) in enumerate(moved))  # fmt: skip
    return [took for took in found if took < math.inf]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=300)
    args = parser.parse_args()
    program = _found(os.environ.get("CHROMIUM", "chromium"))
    with sync_playwright() as play, serve.start(port=0, cells=(CELL,)) as server:
        browser = play.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
        page.add_init_script(WATCH)
        page.goto(server.url)
        ring, whole = first_ring(page)
        took = answers(drag(page, args.moves))
        browser.close()
    row("first ring after the click", f"{ring:.2f} s", "1 s")
    row("all places, and the eraser ready", f"{whole:.1f} s", "")
    got = f"{statistics.median(took):.0f} / {quantile(took, 0.95):.0f} ms"
    row(f"disc to refitted picture, {len(took)} moves, median / 95th", got, "95th under 100 ms")
    row("load of the machine", f"{os.getloadavg()[0]:.1f}", "")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

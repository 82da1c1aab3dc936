"""From the pointer to the redrawn energy map, in a browser: one drag, and the choice of a point.

    python benchmarks/bench_energy_live.py [--preset moons] [--drags 20] [--n 10] [--widths 100]
        [--steps 6000]

Chromium without a screen shows the page that Voila serves, on the same machine: n points of a
preset, with the exact network and with a trained one whose neurons are merged. A drag goes from a
point of the plane to a place nearby, from rest: the map is at its finest, and nothing is drawn. Its
time runs from the pointer's event to the animation frame after the map's picture changed: to the
first picture, and to the first of 61 pixels a side or more, which may be the same one: a
sketch, where the weights have many neurons.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

from bench_live import FLAGS, _found, quantile, row
from playwright.sync_api import Page, sync_playwright

from explorer.serve import server as serve

CELL = """
from explorer import app, preset
from explorer.page import play
from explorer.page.stages import train
made = app(preset("{preset}", n={n}))
session = made.session
play.configure(session, widths=({width},))
play.go(session, "train")
{train}
play.go(session, "landscape")
"""
EXACT = "train.jump_to_exact(session)"
TRAINED = "play.advance(session, steps={steps}); play.assess(session)"
# The map's figure is the one whose <image> lies under the second pad; all are seen from one place.
WATCH = """
window.shots = [];
window.pointer = null;
for (const kind of ['pointerdown', 'pointermove'])
  document.addEventListener(kind, e => { window.pointer ??= performance.now(); }, true);
const begin = () => {
  const plane = [...document.querySelectorAll('.mx-plane')][1];
  const image = plane && plane.querySelector('image');
  if (!image) return void setTimeout(begin, 100);
  const name = () => image.getAttribute('href') || image.getAttribute('xlink:href');
  let last = name();
  const seen = async () => {
    const href = name();
    if (href === last) return;  // only its place or size
    last = href;
    const at = await new Promise(done => requestAnimationFrame(() => done(performance.now())));
    const probe = new Image();
    probe.src = href;
    await probe.decode().catch(() => {});
    window.shots.push({at, side: probe.naturalWidth});
  };
  new MutationObserver(seen).observe(image, {attributes: true});
  window.watched = true;
};
begin();
"""
READ = """want => new Promise(done => {
  const look = () => {
    const first = window.shots[0], fine = window.shots.find(s => s.side >= want);
    if (first && fine) done([first.at - window.pointer, fine.at - window.pointer, first.side]);
    else setTimeout(look, 10);
  };
  look();
})"""


def rest(page: Page) -> None:
    """Wait until the map has not changed for a second."""
    last = -1
    while (now := page.evaluate("window.shots.length")) != last:
        last = now
        time.sleep(1.0)
    page.evaluate("window.shots.length = 0; window.pointer = null")


def opened(page: Page, url: str) -> None:
    page.goto(url, wait_until="commit")
    page.locator(".mx-opening-own").click()  # an empty plane
    page.locator("#opening").wait_for(state="detached", timeout=120_000)
    page.get_by_text("Energy: where else could a point be?").wait_for(timeout=120_000)
    page.wait_for_function("window.watched")
    time.sleep(2)


def places(page: Page) -> tuple[dict[str, float], list[tuple[float, float]]]:
    """The plane on the screen, and its points as shares of it, from the table of the page."""
    page.locator(".jupyter-widget-Collapse-header", has_text="Points as a table").click()
    cells = page.locator(".mx-note table td")
    cells.first.wait_for()
    texts = cells.all_inner_texts()
    x = [(float(texts[i + 1]), float(texts[i + 2])) for i in range(0, len(texts), 5)]
    box = page.locator(".mx-plane .mx-pad-surface").first.bounding_box()
    return box, [((a + 2) / 4, (2 - b) / 4) for a, b in x]


def measure(page: Page, drags: int, want: int) -> dict[str, list[float]]:
    page.evaluate("window.scrollTo(0, 0)")
    box, points = places(page)
    out: dict[str, list[float]] = {"first": [], "fine": [], "choice": [], "side": []}
    for k in range(drags):
        rest(page)
        i = k % len(points)
        x, y = points[i]
        at = box["x"] + x * box["width"], box["y"] + y * box["height"]
        page.mouse.move(*at)
        page.mouse.down()
        rest(page)
        page.mouse.move(at[0] + (6 if k % 2 else -6), at[1] + 4)
        first, fine, side = page.evaluate(READ, want)
        out["first"].append(first)
        out["fine"].append(fine)
        out["side"].append(side)
        page.mouse.up()
        points[i] = (x + (6 if k % 2 else -6) / box["width"], y + 4 / box["height"])
    for k in range(drags):
        i = (k + 3) * 3 % len(points)
        x, y = points[i]
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        rest(page)
        page.mouse.down()
        page.mouse.up()
        out["choice"].append(page.evaluate(READ, want)[1])
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drags", type=int, default=20)
    parser.add_argument("--preset", default="moons")
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--widths", type=int, default=100)
    parser.add_argument("--steps", type=int, default=6000)
    args = parser.parse_args()
    program = _found(os.environ.get("CHROMIUM", "chromium"))
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=FLAGS)
        for name, train in (("exact", EXACT), ("trained", TRAINED.format(steps=args.steps))):
            code = CELL.format(preset=args.preset, n=args.n, width=args.widths, train=train)
            with serve.start(port=0, cells=(code,)) as server:
                page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
                page.add_init_script(WATCH)
                opened(page, server.url)
                seen = measure(page, args.drags, 61)
                told = page.get_by_text("neurons merged to").first.inner_text()
                page.context.close()
            print(f"\n{name}: {told.partition('. ')[2][-160:]}")
            for words, key in (
                ("drag to the first changed map", "first"),
                ("drag to the map at 61 x 61 or finer", "fine"),
                ("another point chosen, to 61 x 61", "choice"),
            ):
                got = f"{statistics.median(seen[key]):.0f} / {quantile(seen[key], 0.95):.0f} ms"
                row(f"{words}, median / 95th", got, "under 200 ms")
            sides = sorted({int(v) for v in seen["side"]})
            row("pixels a side of the first map", ", ".join(map(str, sides)), "61")
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""A page that plays: its size, the states that it shows in a second, and a move of its triangle.

    python benchmarks/bench_playing.py [--repeat 3] [--steps 6000 2000]

A circle run (6,000 + 2,000 steps) with its landscape is made anew, in some minutes. Chromium
without a screen and without a GPU opens the files from the disk at 1280 x 720. A move goes from the
pointer's event to the end of the animation frame that shows it. CPU time is that of the page's main
thread, in which Chromium then paints, too. The load of the machine is printed: frames are late
where others compute.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from explorer import Run, TrainConfig, preset
from explorer.engine.attacks.kkt import KKTConfig
from explorer.page.recording.document import page_that_plays
from explorer.research.repeat import with_states

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"]
SECONDS, MOVES = 1.5, 60
SHOWN = """(seconds) => new Promise((done) => {
  const canvas = document.querySelector('.mx-plane canvas'), begun = performance.now();
  let shown = 0, last = canvas.mxFrame;
  const look = () => {
    if (canvas.mxFrame !== last) { shown += 1; last = canvas.mxFrame; }
    const gone = (performance.now() - begun) / 1000;
    if (gone > seconds) done(shown / gone); else requestAnimationFrame(look);
  };
  look();
})"""
MOVED = """() => {
  window.took = [];
  document.querySelector('.mx-played-triangle [role=application]').addEventListener('pointermove', () => {
    const begun = performance.now(), channel = new MessageChannel();
    channel.port1.onmessage = () => window.took.push(performance.now() - begun);
    requestAnimationFrame(() => channel.port2.postMessage(0));
  }, true);
}"""  # noqa: E501


def states_a_second(page: Page, speed: str) -> float:
    page.get_by_label("Speed").select_option(speed)
    page.locator(".mx-title").click()
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    found: float = page.evaluate(SHOWN, SECONDS)
    return found


def moves(page: Page) -> tuple[float, float]:
    """Milliseconds of a move, the median, and of the main thread's CPU in each."""
    page.get_by_role("button", name="Landscape").click()
    page.wait_for_timeout(500)
    page.evaluate(MOVED)
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    tools.send("Performance.enable")

    def busy() -> float:
        rows = tools.send("Performance.getMetrics")["metrics"]
        return next(row["value"] for row in rows if row["name"] == "TaskDuration")

    box = page.locator(".mx-played-triangle [role=application]").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 0.6 * box["height"]
    page.mouse.move(x, y)
    page.mouse.down()
    begun = busy()
    for i in range(MOVES):
        page.mouse.move(x + 4 * (i % 20 - 10), y + 8 * (i % 7 - 3))
        page.wait_for_timeout(20)
    spent = 1000 * (busy() - begun) / MOVES
    page.mouse.up()
    return statistics.median(page.evaluate("() => window.took")), spent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--steps", type=int, nargs=2, default=[6000, 2000], metavar="N")
    given = parser.parse_args()
    trained, attacked = given.steps
    plan = Run(
        preset("alternating-circle"), TrainConfig(steps=trained), stage="attack",
        attack_config=KKTConfig(steps=attacked), steps=(trained, attacked),
    )  # fmt: skip
    run = with_states(plan)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        files = {name: Path(folder, f"{name}.html") for name in ("run", "landscape")}
        for name, file in files.items():
            file.write_text(page_that_plays(run, starts=name == "landscape"), encoding="utf-8")
            print(f"{name}: {file.stat().st_size / 1000:.0f} kB")
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
        for _ in range(given.repeat):
            page = browser.new_page(viewport={"width": 1280, "height": 720})
            page.goto(files["landscape"].as_uri())
            page.locator(".mx-title").wait_for()
            once, fast = (states_a_second(page, speed) for speed in ("1 ×", "4 ×"))
            took, spent = moves(page)
            print(f"states a second: {once:.0f} at 1 ×, {fast:.0f} at 4 ×; a move: {took:.1f} ms, "
                  f"{spent:.1f} ms of CPU; load {os.getloadavg()[0]:.1f}")  # fmt: skip
            page.close()
        browser.close()


if __name__ == "__main__":
    main()

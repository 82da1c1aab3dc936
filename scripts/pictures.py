"""Make the README's pictures anew: the app in light and dark, and a recording of the road.

Run by `make pictures`. The pictures go to docs/pictures/.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from explorer.serve.server import server as serve

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SCREEN = {"width": 1366, "height": 1000}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
# Twelve points of a circle, classes in turn; shares of the plane, y upward.
CIRCLE = [
    (0.5 + 0.24 * math.cos(math.pi * k / 6), 0.5 + 0.24 * math.sin(math.pi * k / 6))
    for k in range(12)
]
BLUE, RED = CIRCLE[::2], CIRCLE[1::2]
COLOURS = 160  # of the recording's palette; arbitrary
FRAME_MS = 160  # arbitrary: calm enough to follow, small enough to load
RECORDED_WIDTH = 900


class Recorder:
    """Takes pictures of a page, and puts them together to one moving picture."""

    def __init__(self, page: Page) -> None:
        self.page, self.frames, self.times = page, [], []

    def shoot(self, hold_ms: int = FRAME_MS) -> None:
        """One more frame, shown for `hold_ms`."""
        image = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        size = (RECORDED_WIDTH, image.height * RECORDED_WIDTH // image.width)
        self.frames.append(image.resize(size, Image.Resampling.LANCZOS))
        self.times.append(hold_ms)

    def watch(self, frames: int, every_ms: int) -> None:
        """Frames of a run, in the pace it has."""
        for _ in range(frames):
            self.page.wait_for_timeout(every_ms)
            self.shoot()

    def save(self, path: Path) -> None:
        """One palette for all frames, so that nothing flickers."""
        width, height = self.frames[0].size
        some = self.frames[:: max(1, len(self.frames) // 6)] + self.frames[-1:]
        sheet = Image.new("RGB", (width, height * len(some)))
        for k, frame in enumerate(some):
            sheet.paste(frame, (0, k * height))
        palette = sheet.quantize(COLOURS)
        frames = [f.quantize(palette=palette, dither=Image.Dither.NONE) for f in self.frames]
        frames[0].save(
            path, save_all=True, append_images=frames[1:], duration=self.times, loop=0,
            optimize=True,
        )  # fmt: skip


def enter(page: Page, url: str) -> None:
    """Open the page with an empty plane, as one who has been here before."""
    page.add_init_script("try { localStorage.setItem('mx-marks-seen', '1') } catch {}")
    page.goto(url, wait_until="commit")
    page.locator(".mx-opening-own").click()
    page.locator("#opening").wait_for(state="detached", timeout=90_000)
    page.locator(".mx-plane .mx-pad-surface").wait_for()
    page.wait_for_timeout(1500)  # the layout settles


def press(page: Page, label: str) -> None:
    page.get_by_role("button", name=label, exact=False).first.click()


def speed(page: Page, label: str) -> None:
    page.locator(".mx-transport select").first.select_option(label=label)


def pause(page: Page) -> None:
    """Pause, unless the run has ended by itself; then wait for the last frame."""
    button = page.get_by_role("button", name="Pause")
    if button.count():
        button.first.click()
    page.wait_for_timeout(700)


def draw(page: Page, recorder: Recorder, tool: str, points: list[tuple[float, float]]) -> None:
    """Click points of one class into the plane; `y` counts upward."""
    press(page, tool)
    surface = page.locator(".mx-plane .mx-pad-surface")
    for x, y in points:
        box = surface.bounding_box()
        surface.click(position={"x": x * box["width"], "y": (1 - y) * box["height"]})
        page.wait_for_timeout(120)
        recorder.shoot()


def record(page: Page, tools: tuple[str, str]) -> None:
    """The road: draw, train, attack. Leaves the page at the end of the attack."""
    recorder = Recorder(page)
    recorder.shoot(800)
    for tool, points in zip(tools, (BLUE, RED), strict=True):
        draw(page, recorder, tool, points)
    press(page, "2 Train")
    speed(page, "1000 steps/s")
    press(page, "Play")
    recorder.watch(frames=16, every_ms=350)
    pause(page)
    recorder.shoot(1500)
    press(page, "3 Attack")
    speed(page, "100 steps/s")
    press(page, "Play")
    recorder.watch(frames=26, every_ms=600)
    speed(page, "as fast as it goes")
    page.get_by_text("Finished").wait_for(timeout=120_000)
    pause(page)
    recorder.shoot(3000)
    recorder.save(FOLDER / "road.gif")


def attack_circle(page: Page) -> None:
    """Twenty alternating points on the circle, trained and attacked to the end."""
    page.locator("select").first.select_option(label="Alternating circle (2-D)")
    press(page, "2 Train")
    press(page, "Play")
    page.wait_for_timeout(8000)
    pause(page)
    press(page, "3 Attack")
    press(page, "Play")
    page.get_by_text("Finished").wait_for(timeout=120_000)
    page.wait_for_timeout(1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", nargs=2, default=("+1", "−1"), metavar="LABEL")
    tools = tuple(parser.parse_args().tools)
    FOLDER.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with serve.start(port=0) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
        for theme in serve.THEMES:
            page = browser.new_page(viewport=SCREEN)
            enter(page, f"{server.url}?theme={theme}")
            if theme == "light":
                record(page, tools)
                enter(page, f"{server.url}?theme={theme}")
                attack_circle(page)
                page.screenshot(path=FOLDER / "app.png")
            else:
                attack_circle(page)
                page.screenshot(path=FOLDER / "app-dark.png")
            page.close(run_before_unload=True)
        browser.close()
    for path in sorted(FOLDER.iterdir()):
        print(f"{path.relative_to(FOLDER.parents[1])}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

"""Make the README's pictures anew: the app in light and dark, its last acts, and a recording.

Run by `make pictures`. The pictures go to docs/pictures/.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from explorer.serve import server as serve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.browser.steps import NEGATIVE, POSITIVE, Explorer, know_the_marks

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SCREEN = {"width": 1280, "height": 720}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
# Twelve points of a circle, classes in turn; shares of the plane, y upward.
CIRCLE = [
    (0.5 + 0.24 * math.cos(math.pi * k / 6), 0.5 + 0.24 * math.sin(math.pi * k / 6))
    for k in range(12)
]
BLUE, RED = CIRCLE[::2], CIRCLE[1::2]
TRAINED = 10_000  # steps of their network, as many on any machine; arbitrary
COLOURS = 160  # of the recording's palette; arbitrary
FLAT = 40  # of them: those of most pixels; arbitrary
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
        # The page's flat colours as they are; then by coverage: the colours of the classes are on
        # few pixels, and must not be lost.
        counted = sorted(sheet.getcolors(sheet.width * sheet.height), reverse=True)[:FLAT]
        rest = sheet.quantize(COLOURS - FLAT, method=Image.Quantize.MAXCOVERAGE).getpalette()
        palette = Image.new("P", (1, 1))
        palette.putpalette([v for _, colour in counted for v in colour] + rest)
        frames = [f.quantize(palette=palette, dither=Image.Dither.NONE) for f in self.frames]
        frames[0].save(
            path, save_all=True, append_images=frames[1:], duration=self.times, loop=0,
            optimize=True,
        )  # fmt: skip


def speed(page: Page, label: str) -> None:
    page.locator(".mx-transport select").first.select_option(label=label)


def pause(app: Explorer) -> None:
    """Pause, unless the run has ended by itself; then wait for the last frame."""
    if app.button("Pause").is_visible():
        app.press("Pause")
    app.page.wait_for_timeout(700)


def train_on(app: Explorer) -> None:
    """Take the steps that are left up to `TRAINED`."""
    assert app.step() < TRAINED, "it ran too far between two frames"
    app.press("Steps")
    app.page.get_by_label("n steps").fill(str(TRAINED - app.step()))
    app.press("Step × n")
    expect(app.where).to_have_text(f"step {TRAINED:,}")
    app.page.keyboard.press("Escape")  # the menu stays open for more steps
    expect(app.button("Play")).to_be_visible()
    app.page.wait_for_timeout(700)  # the last frame


def draw(app: Explorer, recorder: Recorder, name: str, points: list[tuple[float, float]]) -> None:
    """Click points of one class into the plane; `y` counts upward."""
    app.press(name)
    for x, y in points:
        app.click((x, 1 - y))
        app.page.wait_for_timeout(120)
        recorder.shoot()


def end(app: Explorer) -> None:
    """Wait for the end of the attack, and for the verdict on it."""
    app.page.locator(".mx-verdict", has_text="recovered").wait_for(timeout=120_000)
    app.page.locator(".mx-action", has_text="elsewhere").wait_for(timeout=120_000)
    for close in app.page.locator(".mx-toast-close:visible").all():  # it would cover the plane
        close.click()
    app.page.wait_for_timeout(1000)


def record(app: Explorer) -> None:
    """The road: draw, train, attack. Leaves the page at the end of the attack."""
    recorder = Recorder(app.page)
    recorder.shoot(800)
    for name, points in ((POSITIVE, BLUE), (NEGATIVE, RED)):
        draw(app, recorder, name, points)
    app.press("2 Train")
    app.press("Play")
    for _ in range(24):
        recorder.watch(frames=1, every_ms=350)
        if 2 * app.step() > TRAINED:
            break
    pause(app)
    train_on(app)
    recorder.shoot(1500)
    app.press("3 Attack")
    app.press("Play")
    recorder.watch(frames=24, every_ms=350)
    speed(app.page, "as fast as it goes")
    end(app)
    recorder.shoot(3000)
    recorder.save(FOLDER / "road.gif")


def opened(browser: Browser, url: str) -> Explorer:
    """A page at the end of its opening: twenty points of the circle, trained and attacked."""
    app = Explorer(browser.new_page(viewport=SCREEN))
    know_the_marks(app.page)
    app.page.goto(url)
    expect(app.page.locator("#opening")).to_have_count(0)
    end(app)
    return app


def last_acts(app: Explorer) -> None:
    """Where a point must be, with the points; then the ends of runs from 21 starts."""
    app.press("Could they be elsewhere?")
    app.press("Reveal the points")
    app.page.wait_for_timeout(4000)  # until the set that answers a disc is known
    expect(app.button("Cancel")).not_to_be_visible()
    app.page.screenshot(path=FOLDER / "proof.png")
    app.press("5 Landscape")
    app.press("Attack from 21 starts")
    app.page.locator(".mx-title", has_text="runs end at the truth").wait_for(timeout=300_000)
    app.page.wait_for_timeout(8000)  # the best run is shown to its end
    app.page.screenshot(path=FOLDER / "landscape.png")


def visit(browser: Browser, url: str) -> Explorer:
    return Explorer(browser.new_page(viewport=SCREEN)).visit(url)


def main() -> None:
    """Make all pictures."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=120_000)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with serve.start(port=0) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
        app = visit(browser, f"{server.url}?theme=light")
        record(app)
        app.page.close(run_before_unload=True)
        for theme, name in (("light", "app.png"), ("dark", "app-dark.png")):
            app = opened(browser, f"{server.url}?theme={theme}")
            app.page.screenshot(path=FOLDER / name)
            if theme == "light":
                last_acts(app)
            app.page.close(run_before_unload=True)
        browser.close()
    for path in sorted(FOLDER.iterdir()):
        print(f"{path.relative_to(FOLDER.parents[1])}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

"""Make the pictures of the lessons anew, for their index: the plane at one step of each.

Where a lesson leads to another page, the picture shows a part of that one; where its place is not
the plane, that place.

Where the step begins an attack, the picture shows its end. Run by `make pictures`; numbers of
lessons behind `scripts/lessons.py` make these alone.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from PIL import Image, ImageOps
from playwright.sync_api import Locator, Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from explorer.page.apps.lessons import PICTURES
from explorer.page.lessons.file import Lesson, packaged_lessons, write
from explorer.serve import server as serve
from scripts.pictures import FLAGS, SCREEN

WIDTH, COLOURS = 360, 200  # of a picture; arbitrary: sharp in a card, 10 to 40 kB
STEPS = 2000  # of an attack, to its end
OTHER_PAGES = {"digits": ".mx-pictures", "membership": ".mx-charts .mx-chart-plot"}  # their parts
# Lessons whose place is not the plane, by number, and that place.
PLACES = {5: ".mx-triangle-view", 14: ".mx-table table"}
SMALL, COLUMNS = (176, 88), 5  # of the sheet of all, for the menu; as page.css reads it


def still(lesson: Lesson) -> Lesson:
    """Return a lesson of one step: the picture."""
    state = lesson.steps[lesson.picture - 1].state
    assert state is not None, f"{lesson.title}: its picture has a state"
    if state.stage == "attack":
        state = replace(state, attack_steps=STEPS)
    return Lesson(title=lesson.title, steps=(replace(lesson.steps[0], state=state, cards=()),))


def shoot(page: Page, lesson: Lesson, folder: Path) -> Image.Image:
    """Return the plane of the lesson's picture."""
    path = folder / "still.json"
    path.write_bytes(write(still(lesson)))
    page.locator(".mx-lessons input[type=file]").set_input_files(path)
    expect(page.locator(".mx-lesson-title")).to_have_text(lesson.title)
    expect(page.locator(".mx-lesson-goal", has_text="Getting ready")).to_have_count(
        0, timeout=90_000
    )
    page.wait_for_timeout(2500)  # maps are refined, ticks have moved
    image = Image.open(io.BytesIO(page.locator(".mx-stage .mx-plane").screenshot())).convert("RGB")
    edge = image.height // 8
    image = image.crop((0, edge, image.width, image.height - edge))
    return image.resize((WIDTH, WIDTH * image.height // image.width), Image.Resampling.LANCZOS)


def shoot_place(page: Page, lesson: Lesson, selector: str, folder: Path) -> Image.Image:
    """Return a place beside the plane at the lesson's first step, after its comparison."""
    shoot(page, replace(lesson, picture=1), folder)
    go = page.get_by_role("button", name="Run the attacks")
    if go.count():
        go.click()
        page.wait_for_timeout(1000)  # it says Cancel meanwhile
        expect(go).to_be_enabled(timeout=300_000)
    expect(page.locator(".mx-starts-aside [data-item=share]:visible")).to_have_count(
        0, timeout=90_000
    )
    return fitted(page.locator(selector).first, (0.5, 0.0))


def fitted(part: Locator, centring: tuple[float, float]) -> Image.Image:
    """Return a part of a page as a picture of a lesson."""
    image = Image.open(io.BytesIO(part.screenshot())).convert("RGB")
    size = WIDTH, WIDTH * 3 // 4
    return ImageOps.fit(image, size, Image.Resampling.LANCZOS, centering=centring)


def shoot_page(page: Page, url: str, name: str) -> Image.Image:
    """Return a part of the other page of a lesson, after its attack where it has one."""
    page.goto(f"{url}voila/render/{name}.ipynb?theme=light")
    part = page.locator(OTHER_PAGES[name]).first
    part.wait_for(timeout=90_000)
    for words in ("Train", "Attack") if name == "digits" else ():
        button = page.locator(".mx-run button", has_text=words).first
        expect(button).to_be_enabled(timeout=90_000)
        button.click()
        page.wait_for_timeout(1000)  # it says Cancel meanwhile
        expect(page.locator(".mx-run button", has_text=words).first).to_be_enabled(timeout=300_000)
    page.wait_for_timeout(2500)
    return fitted(part, (0.0, 0.5))


def sheet() -> None:
    """Save all pictures, small, as one."""
    wide, high = SMALL
    files = sorted(PICTURES.glob("*.png"))
    made = Image.new("RGB", (wide * COLUMNS, high * -(-len(files) // COLUMNS)))
    for k, file in enumerate(files):
        small = ImageOps.fit(Image.open(file).convert("RGB"), SMALL, Image.Resampling.LANCZOS)
        made.paste(small, (wide * (k % COLUMNS), high * (k // COLUMNS)))
    made.save(PICTURES / "all.webp", quality=70)


def main() -> None:
    """Serve the page, open each lesson, and save its picture; then the sheet of all."""
    PICTURES.mkdir(exist_ok=True)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with (
        serve.start(port=0) as server,
        sync_playwright() as play,
        tempfile.TemporaryDirectory() as name,
    ):
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport=SCREEN)
        page.goto(f"{server.url}?theme=light&lesson=0")
        page.locator(".mx-lesson-title").wait_for(timeout=90_000)
        page.wait_for_timeout(2000)
        wanted = {int(number) for number in sys.argv[1:]}
        for k, lesson in enumerate(packaged_lessons()):
            if wanted and k not in wanted:
                continue
            if k in PLACES:
                image = shoot_place(page, lesson, PLACES[k], Path(name))
            else:
                image = shoot(page, lesson, Path(name))
            if lesson.pages:
                other = browser.new_page(viewport=SCREEN)
                image = shoot_page(other, server.url, lesson.pages[0])
                other.close()
            image.quantize(COLOURS, kmeans=3).save(PICTURES / f"{k:02d}.png", optimize=True)
            print(k, lesson.title, (PICTURES / f"{k:02d}.png").stat().st_size)
        browser.close()
    sheet()


if __name__ == "__main__":
    main()

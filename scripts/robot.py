"""Do every lesson to its end by the mouse, and print which of its steps are ticked.

    python scripts/robot.py [--seed N] [LESSON ...]

All 15, or those named by number; with `--seed` every step's set, first weights and first candidates
are of that seed, in a copy of the package. A line a lesson: its steps that were done, and the
seconds; it ends with an error where a step is not ticked.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from playwright.sync_api import Error, Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from explorer.page.lessons.file import packaged_lessons
from explorer.serve import server as serve
from scripts.pictures import FLAGS, SCREEN
from tests.browser.steps import NEGATIVE, Explorer, Place, settled
from tests.browser.test_triangle import Triangle

PATIENCE_MS = 45_000  # of one task; arbitrary
Move = Callable[[Explorer], object]


def nothing(app: Explorer) -> None:
    """A step that asks for nothing."""


def play(app: Explorer) -> None:
    app.page.locator(".mx-play").click()


def press(*names: str) -> Move:
    return in_turn(*(lambda app, name=name: app.press(name) for name in names))


def click(*places: Place) -> Move:
    return in_turn(*(lambda app, place=place: app.click(place) for place in places))


def drag(start: Place, end: Place) -> Move:
    return lambda app: app.drag(start, end)


def place(at: Place) -> Move:
    return in_turn(press("Place"), click(at))


def in_turn(*moves: Move) -> Move:
    return lambda app: [move(app) for move in moves]


def handle(*shares: float) -> Move:
    """Drag the handle of the triangle, from where it stands, to these three shares."""

    def move(app: Explorer) -> None:
        triangle, mouse = Triangle(app.page, "noise"), app.page.mouse
        mouse.move(*triangle.at(*(share / 100 for share in triangle.shares())))
        mouse.down()
        mouse.move(*triangle.at(*shares), steps=12)
        mouse.up()

    return move


def own_points(app: Explorer) -> None:
    click((0.7, 0.3), (0.8, 0.5))(app)
    app.press(NEGATIVE)
    click((0.25, 0.6), (0.3, 0.8))(app)


def ticked(app: Explorer) -> None:
    expect(app.page.locator(".mx-lesson-goal")).to_have_class(re.compile("done"))


def action(app: Explorer) -> None:
    app.page.locator(".mx-action").click()


def compare(app: Explorer) -> None:
    app.press("Run the attacks")
    app.page.locator(".mx-table tr.mx-can").first.click()


def other_page(move: Callable[[Page], None]) -> Move:
    """Do the task on the page that the lesson links to."""

    def turn(app: Explorer) -> None:
        with app.page.context.expect_page() as opened:
            app.page.locator(".mx-lesson-link").click()
        move(opened.value)
        ticked(app)
        opened.value.close()

    return turn


def least_dimension(page: Page) -> None:
    slider = page.get_by_role("slider").first
    expect(page.locator(".mx-verdict")).to_contain_text("members found")
    box = slider.bounding_box()
    assert box is not None
    y, stops = box["y"] + box["height"] / 2, int(slider.get_attribute("max") or 0)
    page.mouse.move(box["x"] + 1, y)
    page.mouse.down()
    for k in range(1, stops + 1):
        page.mouse.move(box["x"] + 8 + k / stops * (box["width"] - 16), y)
        page.wait_for_timeout(400)  # each is drawn, as for an eye
    page.mouse.up()


def proof(app: Explorer) -> None:
    press("Where must a point be?", "Reveal the points")(app)
    app.click((0.5625, 0.5))


def two_attacks_on_images(page: Page) -> None:
    """Train and attack; then once more from small first weights."""

    def train_and_attack() -> None:
        for name in ("Train", "Attack"):
            button = page.get_by_role("button", name=name, exact=True)
            button.click()
            page.wait_for_timeout(1000)  # its Cancel is there by then
            expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
            expect(button).to_be_enabled()

    train_and_attack()
    page.get_by_role("button", name="More settings").click()
    scale = page.get_by_role("slider", name="first scale")
    box, (low, high) = (
        scale.bounding_box(),
        (float(scale.get_attribute(end) or 0) for end in ("min", "max")),
    )
    assert box is not None
    mouse, x = page.mouse, box["x"] + 8 + (-4 - low) / (high - low) * (box["width"] - 16)
    mouse.click(x, box["y"] + box["height"] / 2)  # its numbers are powers of ten
    page.get_by_role("spinbutton", name="steps", exact=True).first.fill("4000")
    page.keyboard.press("Tab")
    train_and_attack()


MOVES: dict[int, tuple[Move, ...]] = {
    0: (nothing, own_points, action, place((0.85, 0.2))),
    1: (play, play, press("Jump to the exact solution")),
    2: (nothing, place((0.85, 0.2)), play, in_turn(press("3 Attack"), play)),
    3: (press("Step", "Step"), play, play, play),
    4: (play,) * 5,
    5: (handle(0.95, 0.05, 0), handle(0.5, 0.5, 0), press("Attack from here"), press("Census"),
        in_turn(handle(0, 0, 1), play)),
    6: (drag((0.669, 0.367), (0.55, 0.45)), drag((0.294, 0.754), (0.4, 0.68)),
        drag((0.725, 0.316), (0.6, 0.25)), handle(0, 0.5, 0.5)),
    7: (in_turn(click((0.782, 0.493)), drag((0.782, 0.493), (0.846, 0.475))),
        in_turn(press("Anywhere"), drag((0.546, 0.434), (0.577, 0.346))),
        press("Which points are certified?"), proof, press("Farthest other set")),
    8: (play, play),
    9: (play,) * 3,
    10: (play, other_page(least_dimension)),
    11: (play, play),
    12: (nothing, other_page(two_attacks_on_images)),
    13: (play,) * 8,
    14: (compare, press("3 Attack")),
}  # fmt: skip


def done(page: Page) -> int:
    return page.locator(".mx-lesson-dot.done").count()


def walk(app: Explorer, number: int) -> list[str]:
    """Do the tasks of a lesson; the steps that were not ticked, each with why."""
    page, lesson, missed = app.page, packaged_lessons()[number], []
    here = '.mx-lesson-dot[aria-current=step][title^="Step {}"]'
    following, goal = page.locator(".mx-lesson-next"), page.locator(".mx-lesson-goal")
    app.lesson(lesson.title)
    for k, (step, move) in enumerate(zip(lesson.steps, MOVES[number], strict=True), 1):
        expect(page.locator(here.format(k))).to_be_visible()
        expect(goal.filter(has_text="Getting ready")).to_have_count(0)
        settled(app.plane)
        try:
            move(app)
            if step.goal is not None:
                ticked(app)
        except (Error, AssertionError) as error:
            missed.append(f"step {k}: {str(error).splitlines()[0]}; {app.verdict.inner_text()}")
            page.screenshot(path=f"robot-{number}-{k}.png")
        following.click()
        if step.goal is None and k < len(lesson.steps):
            expect(page.locator(".mx-lesson-dot.done")).to_have_count(k)
    return missed


def main(numbers: list[int]) -> None:
    """Serve the page, and do these lessons on it."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    failed = 0
    expect.set_options(timeout=PATIENCE_MS)
    with serve.start(port=0) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport=SCREEN)
        page.set_default_timeout(PATIENCE_MS)
        app = Explorer(page).visit(server.url)
        for number in numbers:
            begun, steps = perf_counter(), len(packaged_lessons()[number].steps)
            missed = walk(app, number)
            failed += bool(missed)
            ticks = f"{steps - len(missed)} of {steps}"
            took = f"{perf_counter() - begun:.0f} s"
            print(f"{number:2} {ticks} {took}", *missed, sep="  ", flush=True)
            if page.locator(".mx-lesson-leave:visible").count():
                app.leave_lesson()
        browser.close()
    print(f"{len(numbers) - failed} of {len(numbers)} lessons done by the mouse")
    sys.exit(bool(failed))


def of_seed(seed: int, numbers: list[int]) -> int:
    """Do these lessons in a copy of the package where each step has this seed; the exit status."""
    root = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("explorer", "notebooks", "scripts", "tests"):
            skip = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / name, Path(folder, name), ignore=skip)
        for file in Path(folder, "explorer/page/lessons/texts").glob("*.json"):
            lesson = json.loads(file.read_text(encoding="utf-8"))
            for step in lesson["steps"]:
                if "state" in step:
                    step["state"]["seed"] = seed
            file.write_text(json.dumps(lesson), encoding="utf-8")
        command = [sys.executable, str(Path(folder, "scripts/robot.py")), *map(str, numbers)]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": folder}).returncode


if __name__ == "__main__":
    read = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    read.add_argument("--seed", type=int, help="of every step, in place of its own")
    read.add_argument("lessons", type=int, nargs="*", help="numbers; all where none is given")
    told = read.parse_args()
    if told.seed is None:
        main(told.lessons or list(range(len(packaged_lessons()))))
    else:
        sys.exit(of_seed(told.seed, told.lessons))

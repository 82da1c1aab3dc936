"""What a visitor's hand does on the page, and what the eye reads off it."""

from __future__ import annotations

import re
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from explorer.serve import server as serve

Place = tuple[float, float]  # shares of the plane, from its left and from its top
HALF = 2.0  # the plane goes from -2 to 2
NEGATIVE, POSITIVE = "▲ −1", "● +1"
STAGES = ("1 Draw", "2 Train", "3 Attack", "4 Explain", "5 Landscape", "6 Compare")
TOOLS = {NEGATIVE, POSITIVE, "Place", "Move", "Erase", "Undo", "Redo", "Clear"}
FURTHER = {"Step × n", "New seed"}
VERDICT = re.compile(r"\d+ of \d+ points")
NEAR_KKT = re.compile("KKT point|end yet|end of training")

# Twelve points that a network separates within a second or two.
BLUE = ((0.2, 0.2), (0.5, 0.15), (0.8, 0.2), (0.85, 0.5))
ORANGE = ((0.15, 0.5), (0.2, 0.8), (0.5, 0.5), (0.8, 0.8))
STROKE = ((0.35, 0.9), (0.65, 0.9))
SPRAYED = 4  # where the stroke begins, and at each of three moves


class Explorer:
    """The app on one page, in whichever host; waits are for what is seen, never for time."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.plane = page.locator(".mx-stage .mx-pad-surface")
        self.verdict = page.locator(".mx-verdict")
        self.message = page.locator(".mx-message")
        self.said = page.locator(".mx-stage .mx-said")
        self.where = page.locator(".mx-transport .mx-where")

    def visit(self, url: str) -> Explorer:
        """Open the page and wait until it can be drawn on."""
        enter(self.page, url)
        return self.ready()

    def ready(self) -> Explorer:
        """Wait until the plane has its size and its hint: only then is it on screen."""
        self.plane.wait_for()  # a kernel may start slowly on a busy machine
        expect(self.page.locator(".mx-plane .mx-pad-hint")).to_contain_text("Click to place")
        # Figures are laid out once more, 300 ms after their place on the page is known.
        settled(self.plane)
        return self

    def start_over(self) -> Explorer:
        """Come from whatever stage to an empty plane."""
        self.page.keyboard.press("Escape")
        if self.button("Pause").is_visible():
            self.press("Pause")
        self.press("1 Draw")
        if self.n_points():
            self.press("Clear")
        self.expect_points(0)
        self.press(POSITIVE)
        settled(self.plane)
        return self

    # --- controls ---------------------------------------------------------------------------
    def button(self, name: str) -> Locator:
        """A button by its words, or by its name where it shows an icon alone."""
        words = re.compile(rf"^\s*{re.escape(name)}\s*$")
        shown = self.page.locator(".mx-app button:not(.mx-term)").filter(has_text=words)
        return shown.or_(self.page.locator(f'.mx-app button[aria-label="{name}"]')).first

    def press(self, name: str) -> None:
        """Press a button; the tools, and the menu of further steps, are opened for it."""
        if name in TOOLS and not self.button(name).is_visible():
            self.button("Edit the points").click()
        if name in FURTHER and not self.button(name).is_visible():
            self.button("Steps").click()
        self.button(name).click()
        if name in STAGES:  # tools, chips and folds of the stage before are gone then
            expect(self.page.locator(".mx-tab[aria-selected=true]")).to_have_text(name)

    def preset(self, title: str) -> None:
        """Draw a ready-made set, in the draw stage."""
        self.page.locator(".mx-thumb").filter(has_text=re.compile(f"^{title}$")).click()

    def to_exact(self, title: str) -> None:
        """Take a ready-made set and its exact network, by the stages Draw and Train."""
        self.press("1 Draw")
        self.preset(title)
        self.press("2 Train")
        self.press("Jump to the exact solution")
        expect(self.where).to_have_text("exact")
        expect(self.verdict).to_contain_text(NEAR_KKT)

    def fold(self, title: str) -> None:
        """Open or close a fold of the side, or a folded part within it; the head has Share."""
        if title == "Share":
            self.press("Share")
            return
        kinds = ".mx-fold, .mx-items [aria-pressed]:visible"
        self.page.locator(kinds, has_text=title).first.click()

    def unfold_settings(self) -> None:
        """Open the further settings, unless they are."""
        fold = self.page.locator(".mx-fold:visible", has_text="More settings")
        if fold.get_attribute("aria-expanded") != "true":
            fold.click()

    def lesson(self, title: str) -> None:
        """Open a lesson by the menu, and wait until it stands there."""
        self.press("Lessons")
        self.page.locator(".mx-lessons button.mx-menu-row", has_text=title).click()
        expect(self.page.locator(".mx-lesson-title")).to_have_text(title)

    def leave_lesson(self) -> None:
        """Leave it: the page is what it was before."""
        self.page.locator(".mx-lesson-leave:visible").click()
        expect(self.page.locator(".mx-lesson:visible")).to_have_count(0)

    def branches(self) -> Locator:
        """The marks of the branches on the time line."""
        return self.page.locator(".mx-mark")

    def box(self) -> dict[str, float]:
        """The plane on the screen, scrolled into view."""
        self.plane.scroll_into_view_if_needed()
        found = self.plane.bounding_box()
        assert found is not None
        return dict(found)

    def at(self, place: Place) -> Place:
        """A place on the plane in pixels of the screen."""
        box = self.box()
        return box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"]

    def click(self, place: Place) -> None:
        self.page.mouse.click(*self.at(place))

    def drag(self, start: Place, end: Place, steps: int = 12) -> None:
        """Press, go in a straight line, let go."""
        self.page.mouse.move(*self.at(start))
        self.page.mouse.down()
        self.page.mouse.move(*self.at(end), steps=steps)
        self.page.mouse.up()

    def draw_twelve(self) -> None:
        """Both classes; by clicks, and by a stroke that sprays."""
        for name, places in ((POSITIVE, BLUE), (NEGATIVE, ORANGE)):
            self.press(name)
            for place in places:
                self.click(place)
        self.expect_points(8)
        self.drag(*STROKE, steps=SPRAYED - 1)
        self.expect_points(12)

    # --- readings ---------------------------------------------------------------------------
    def expect_points(self, n: int) -> None:
        """The plane tells how many points it holds."""
        expect(self.plane).to_have_attribute("aria-label", re.compile(rf"^Plane with {n} points\."))

    def n_points(self) -> int:
        said = self.plane.get_attribute("aria-label") or ""
        return int(said.removeprefix("Plane with ").split()[0])

    def step(self) -> int:
        """The step shown now."""
        return int(self.where.inner_text().split()[1].replace(",", ""))

    def wait_for_step(self, least: int) -> int:
        """Wait until the run has come at least so far; give the step shown then."""
        self.page.wait_for_function(
            """least => {
                 const shown = document.querySelector('.mx-transport').innerText;
                 const step = shown.match(/step ([\\d,]+)/);
                 return step && Number(step[1].replaceAll(',', '')) >= least;
               }""",
            arg=least,
        )
        return self.step()

    def points(self) -> list[tuple[float, float, int]]:
        """(x1, x2, label) of every point, from the file that the page offers (unfolded)."""
        return [
            (float(x1), float(x2), int(y))
            for x1, x2, y in (row.split(",") for row in self.csv().splitlines()[1:])
        ]

    def csv(self) -> str:
        """The text of the file that the page offers (unfolded)."""
        return self.saved("Points: CSV").decode()

    def saved(self, name: str) -> bytes:
        """What a button of Share saves (unfolded)."""
        with self.page.expect_download() as download:
            self.button(name).click()
        return Path(download.value.path()).read_bytes()


def field(page: Page, name: str) -> Locator:
    """The control of a form with these words."""
    return page.locator(".mx-app").get_by_label(name, exact=True).first


def on_plane(place: Place) -> Place:
    """Coordinates of a place."""
    return (2 * place[0] - 1) * HALF, (1 - 2 * place[1]) * HALF


def enter(page: Page, url: str) -> None:
    """Open a page; where an opening is played, ask for an empty plane at once."""
    know_the_marks(page)
    page.goto(url, wait_until="commit")
    leave_opening(page)


def leave_opening(page: Page) -> None:
    """Ask for an empty plane where an opening is played, and wait until the page is there."""
    first = page.locator("#opening, #loading, #coming").first
    first.wait_for(state="attached")
    if first.get_attribute("id") == "opening":
        page.locator(".mx-opening-own").click()
        expect(page.locator("#opening")).to_have_count(0)


def know_the_marks(page: Page) -> None:
    """Visit as one who has been here: no marks are shown."""
    page.add_init_script("try { localStorage.setItem('mx-marks-seen', '1') } catch {}")


def drag_by_finger(page: Page, start: Place, end: Place, moves: int = 5) -> None:
    """One finger down, along a line of the screen, and up. Playwright itself only taps."""
    fingers = page.context.new_cdp_session(page)
    (x, y), (u, v) = start, end
    for i in range(moves + 1):
        share = i / moves
        finger = {"x": x + share * (u - x), "y": y + share * (v - y)}
        kind = "touchMove" if i else "touchStart"
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [finger]})
    # The finger rests before it is lifted: the first tap after a fling only ends the fling.
    page.wait_for_timeout(200)
    fingers.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [finger]})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    fingers.detach()


def settled(locator: Locator) -> None:
    """Wait until an element has kept its box for 20 drawn frames, a third of a second."""
    locator.evaluate(
        """e => new Promise(done => {
             let last = "", kept = 0;
             const look = () => {
               const now = JSON.stringify(e.getBoundingClientRect());
               kept = now === last ? kept + 1 : 0; last = now;
               kept >= 20 ? done() : requestAnimationFrame(look);
             };
             look();
           })"""
    )


def barriers(page: Page, within: str | None = None) -> list[str]:
    """What axe-core finds of impact serious or critical, one line a place, or `within` some."""
    found = Axe().run(page, within).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {' '.join(map(str, node['target']))}: {said}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
        for said in [node["failureSummary"].replace("\n", " ")]
    ]


def saved(page: Page, picture: Locator, kind: str, folder: Path) -> Path:
    """Save a picture on the page by its own menu, as "png", "csv" ...; the file in `folder`."""
    picture.hover()
    picture.get_by_role("button", name="Save this picture", exact=True).click()
    with page.expect_download() as waited:
        picture.get_by_role("button", name=kind.upper(), exact=True).click()
    path = folder / waited.value.suggested_filename
    waited.value.save_as(path)
    return path


def kernel_address(page: Page, server: serve.Server) -> str:
    """Where the server tells whether the kernel of a page under Voila is alive."""
    kernel = page.evaluate(
        "JSON.parse(document.getElementById('jupyter-config-data').textContent).kernelId"
    )
    return f"{server.url}api/kernels/{kernel}"


def triangle_layout(width: float, height: float, small: bool = False) -> tuple[float, float]:
    """The side of the triangle of starts in a box, and the px above it, as triangle.js has it."""
    found = []
    for aside, above in [(10, 24)] if small or width < 300 else [(80, 16), (28, 30)]:
        found.append((min(width - 2 * aside, (height - 2 * above) * 2 / 3**0.5), above))
    return max(found, key=lambda one: one[0])  # names beside the corners, or above and below

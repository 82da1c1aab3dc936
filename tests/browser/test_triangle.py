"""The triangle of starts in a browser: dragged by mouse, touch and keys, attacked from."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from explorer import KKTConfig, Run, TrainConfig, link_of, preset
from explorer.engine.energy.landscape import read_lattice
from explorer.engine.energy.starts import lattice
from explorer.page.stages.landscape import words
from explorer.page.view import canvases
from explorer.serve import server as serve
from tests.browser.steps import (
    drag_by_finger,
    know_the_marks,
    saved,
    settled,
    triangle_layout,
)
from tests.serve.visits import within

# The landscape of eight points.
LINK = link_of(
    Run(preset("moons", n=8), TrainConfig(), attack_config=KKTConfig(m=8, steps=60), exact=True,
        stage="landscape")
)  # fmt: skip
# The legend as it is while the map is computed: with its bar and its Cancel.
COMPUTING = "el => { el.querySelector('[data-item=share]').hidden = false; }"
SHARES = re.compile(r"(\d+)% truth, (\d+)% unseen, (\d+)% noise")


class Triangle:
    """The triangle on a page, and what it says."""

    def __init__(self, page: Page, at: str = "100% noise") -> None:
        self.page, view = page, page.locator(".mx-triangle-view").first
        self.pad, self.said = view.get_by_role("application"), view.locator(".mx-said[aria-live]")
        self.pad.wait_for()
        expect(self.said).to_contain_text(at)
        self.pad.scroll_into_view_if_needed()

    @property
    def corners(self) -> dict[str, tuple[float, float]]:
        """The corners on the screen, which a headline of another height moves."""
        settled(self.pad)
        box = self.pad.bounding_box()
        assert box is not None
        width, height = box["width"], box["height"]
        side, above = triangle_layout(width, height)
        high = side * 3**0.5 / 2
        x, y = box["x"] + width / 2, box["y"] + above + (height - 2 * above - high) / 2
        return {
            "truth": (x, y), "unseen": (x - side / 2, y + high), "noise": (x + side / 2, y + high),
        }  # fmt: skip

    def at(self, *weights: float) -> tuple[float, float]:
        """The place on the screen of three shares."""
        pairs = list(zip(weights, self.corners.values(), strict=True))
        return sum(w * c[0] for w, c in pairs), sum(w * c[1] for w, c in pairs)

    def shares(self) -> tuple[int, ...]:
        """Per cent of truth, unseen points and noise, as a screen reader hears them."""
        found = SHARES.search(self.said.text_content() or "")
        assert found is not None
        return tuple(map(int, found.groups()))

    def rests_at(self, *wanted: int) -> None:
        """Wait until the shares are these, but for a pixel."""
        near = "|".join(
            f"{a}% truth, {b}% unseen, {100 - a - b}% noise"
            for a in range(wanted[0] - 2, wanted[0] + 3)
            for b in range(wanted[1] - 2, wanted[1] + 3)
        )
        expect(self.said).to_contain_text(re.compile(near))


RAW = """(pad, [x, y]) => pad.dispatchEvent(
  new PointerEvent("pointerrawupdate", {clientX: x, clientY: y, bubbles: true}))"""
# What plane, words and strip show after such a move, and the numbers of their newest frames.
SHOWN = """() => {
  const [plane, strip] = ["plane", "strip-view"].map(
    kind => document.querySelector(`.mx-${kind} canvas`));
  const {handle, start, top, number} = strip.mxPainted;
  const said = document.querySelector(".mx-starts-aside [data-item=read]").innerText;
  const title = document.querySelector(".mx-headline h1").textContent;
  const at = [...plane.mxPainted.candidates.data];
  const numbers = [plane.mxFrame.number, number];
  return {title, at, said, handle, top, start: [...start.data], numbers};
}"""
# First in the next animation frame, then a second later, when the kernel has answered: it may have
# done so before that frame.
FOLLOWED = f"""(pad, place) => new Promise(done => {{
  const before = ({SHOWN})().numbers, begun = performance.now();
  ({RAW})(pad, place);
  let followed = null;
  const look = () => {{
    const now = ({SHOWN})();
    followed ??= now;
    const answered = now.numbers.every((n, i) => n > before[i]);
    if (answered && performance.now() - begun > 1000) done([followed, now]);
    else requestAnimationFrame(look);
  }};
  requestAnimationFrame(look);
}})"""
# A drag that stays comes to no rest; `false` ends that.
RESTLESS = """(_, on) => {
  const {setTimeout: usual} = Window.prototype.mxUsual ??= {setTimeout: window.setTimeout};
  window.setTimeout = on ? (call, ms, ...more) => ms === 150 ? 0 : usual(call, ms, ...more) : usual;
}"""


def test_pictures_are_saved_the_handle_is_dragged_and_attacks_roll_from_it(
    page: Page, voila_server: serve.Server, tmp_path: Path
) -> None:
    know_the_marks(page)
    page.goto(f"{voila_server.url}#{LINK}", wait_until="commit")
    expect(page.locator(".mx-tab[aria-selected=true]")).to_have_text("5 Landscape")
    expect(page.locator(".mx-starts .mx-triangle-view, .mx-strip-view").first).to_be_visible()
    triangle = Triangle(page)
    every_picture_has_a_menu_that_saves_it(page, tmp_path)
    # A finer map would read otherwise than the one that the hand began on.
    computing = page.locator(".mx-starts-aside [data-item=share]")
    expect(computing).to_be_attached()
    expect(computing).to_be_hidden(timeout=120_000)
    the_handle_is_dragged_by_mouse_and_by_keys(triangle)
    attacks_roll_from_the_handle_and_from_all_places(triangle)
    the_triangle_tilts_and_is_flat_again(triangle)
    a_census_is_counted_and_its_ends_are_chosen(triangle)
    page.get_by_role("tab", name="Attack").click()
    chart = page.locator(".mx-chart-view").first
    assert saved(page, chart, "png", tmp_path).stem not in ("", "chart")


def the_handle_is_dragged_by_mouse_and_by_keys(triangle: Triangle) -> None:
    page = triangle.page
    told_before_the_next_animation_frame(triangle)
    page.mouse.move(*triangle.at(0, 0, 1))
    page.mouse.down()
    page.mouse.move(*triangle.at(0.4, 0.2, 0.4), steps=20)
    triangle.rests_at(40, 20, 40)
    page.mouse.move(*triangle.at(1, 0, 0), steps=20)
    page.mouse.up()
    triangle.rests_at(100, 0, 0)
    expect(triangle.said).to_have_text(re.compile("unexplained less than 0.01%$"))  # exact at rest
    page.mouse.click(*triangle.at(0.2, 0.5, 0.3))
    triangle.rests_at(20, 50, 30)
    x, y = triangle.corners["unseen"]
    page.mouse.move(*triangle.at(0.2, 0.5, 0.3))
    page.mouse.down()
    page.mouse.move(x - 60, y + 60, steps=5)  # beyond the corner it stays in the triangle
    page.mouse.up()
    triangle.rests_at(0, 100, 0)
    page.keyboard.press("n")
    triangle.rests_at(0, 0, 100)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowUp")
    expect(triangle.said).not_to_contain_text("100% noise")
    assert triangle.shares()[0] > 0
    page.keyboard.press("t")
    triangle.rests_at(100, 0, 0)
    the_triangle_stays_where_it_is_while_dragged(triangle)


def the_triangle_stays_where_it_is_while_dragged(triangle: Triangle) -> None:
    """On a page so narrow that the headline of a small energy takes a line more."""
    page, headline = triangle.page, triangle.page.locator(".mx-headline h1")
    wide = page.viewport_size
    assert wide is not None
    page.set_viewport_size({"width": 1180, "height": 820})
    page.keyboard.press("n")
    triangle.rests_at(0, 0, 100)
    settled(triangle.pad)
    before, lines = triangle.pad.bounding_box(), headline.bounding_box()
    assert before is not None and lines is not None
    x, y, width, height = (before[side] for side in ("x", "y", "width", "height"))
    page.mouse.move(x + width / 2, y + height / 2)
    page.mouse.down()
    page.mouse.move(x + width / 2, y + 1, steps=5)
    triangle.rests_at(100, 0, 0)
    read = page.locator(".mx-starts-aside [data-item=read]")
    expect(read).to_contain_text("less than")  # at rest, no more what the map reads
    assert headline.bounding_box() == lines, "a hand changes what is read, and no headline"
    settled(triangle.pad)
    assert triangle.pad.bounding_box() == before
    page.mouse.up()
    page.set_viewport_size(wide)


def told_before_the_next_animation_frame(triangle: Triangle) -> None:
    """A raw move of the pointer moves the handle while a button is down, and no other."""
    place = list(triangle.at(0.2, 0.3, 0.5))
    triangle.pad.evaluate(RAW, place)
    assert triangle.shares() == (0, 0, 100)
    triangle.page.mouse.move(*triangle.corners["noise"])
    triangle.page.mouse.down()
    triangle.pad.evaluate(RESTLESS, True)
    first, before = triangle.pad.evaluate(FOLLOWED, list(triangle.at(0.4, 0.3, 0.3)))
    assert "the map" in first["said"] and before["said"] == first["said"]
    followed, told = triangle.pad.evaluate(FOLLOWED, list(triangle.at(0.2, 0.3, 0.5)))
    triangle.pad.evaluate(RESTLESS, False)
    assert followed["title"] == before["title"] and followed["said"] != before["said"]
    assert (told["title"], told["said"]) == (followed["title"], followed["said"])
    for name in ("at", "handle", "top"):  # as the kernel then said
        assert followed[name] == pytest.approx(told[name], abs=1e-6)
    ours, theirs = (np.array(one["start"]).reshape(-1, 2) for one in (followed, told))
    assert np.interp(theirs[:, 0], *ours.T) == pytest.approx(theirs[:, 1], abs=1e-3)
    triangle.rests_at(20, 30, 50)
    triangle.page.mouse.up()


# What the browser reads at places of a lattice, unknown energies of it null, and its words.
READ = """([values, places]) => {
  const data = Float32Array.from(values.flat().map(v => v ?? NaN));
  const map = {data, shape: [values.length, values.length]};
  return places.map(place => {
    const {value, ...read} = readingOf(map, place);
    return [Number.isNaN(value) ? null : value, filledForm("FORM", read)];
  });
}"""


def test_parts_of_the_triangle_without_a_kernel(page: Page) -> None:
    browser_and_kernel_read_the_same_of_a_map(page)
    for side, seeds in ((6, 1), (6, 2), (11, 1)):
        each_start_is_marked_by_the_best_end_of_its_runs_and_no_mark_covers_another(
            page, side, seeds
        )
    a_relief_is_flat_at_no_tilt_rises_straight_up_and_fits_its_box(page)


def browser_and_kernel_read_the_same_of_a_map(page: Page) -> None:
    rng, view = np.random.default_rng(0), Path(canvases.__file__).parent
    places = rng.dirichlet([1, 1, 1], 50)
    places[:12] = [
        np.roll(np.append(rng.multinomial(12, [0.5, 0.5]), 0), k) / 12 for k in range(12)
    ]
    values = 10 ** rng.uniform(-5, 0.2, (13, 13))
    values[np.add.outer(np.arange(13), np.arange(13)) > 12] = np.nan
    values[2, 3] = np.nan  # not computed yet
    values = values.astype(np.float32).astype(float)
    given = [[None if np.isnan(v) else v for v in row] for row in values.tolist()]
    page.goto("about:blank")
    for name in ("dom.js", "lattice.js"):
        page.add_script_tag(content=(view / name).read_text())
    form = words.readout_form(rough=True)
    read = page.evaluate(READ.replace("FORM", form), [given, places.tolist()])
    told = read_lattice(values, places)
    assert 0 < np.isnan(told).sum() < 20
    for place, near, (value, said) in zip(places, told, read, strict=True):
        assert (np.nan if value is None else value) == pytest.approx(near, rel=1e-12, nan_ok=True)
        assert said == words.readout(tuple(place), near, rough=True)


# What is drawn is on the canvas with the next animation frame.
PICTURE = """el => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(
  () => done(el.querySelector("canvas").toDataURL()))))"""
# Each place at three heights, on the screen, of a relief in a box.
PROJECTED = """async ([source, tilt, turn, places]) => {
  const module = await import(URL.createObjectURL(new Blob([source], {type: "text/javascript"})));
  const at = module.projection([[200, 30], [80, 240], [320, 240]], {tilt, turn},
    {width: 400, height: 270});
  return places.map(w => [0, 0.5, 1].map(h => at(w, h)));
}"""


# The marks of runs at their starts, and whether one covers another, or the handle.
MARKED = """async ([source, spots, kinds, handle, middle]) => {
  const told = source + "\\nexport {endMarks, boxAt};";
  const module = await import(URL.createObjectURL(new Blob([told], {type: "text/javascript"})));
  const marks = module.endMarks(spots, kinds, handle, middle), boxes = marks.map(module.boxAt);
  const apart = (a, b) => a[0] > b[2] || b[0] > a[2] || a[1] > b[3] || b[1] > a[3];
  const over = boxes.some((a, i) => boxes.some((b, j) => i < j && !apart(a, b)));
  return {marks, over, held: boxes.some(([l, t, r, b]) =>
    handle[0] > l && handle[0] < r && handle[1] > t && handle[1] < b)};
}"""


def each_start_is_marked_by_the_best_end_of_its_runs_and_no_mark_covers_another(
    page: Page, side: int, seeds: int
) -> None:
    rng, source = np.random.default_rng(0), (Path(canvases.__file__).parent / "triangle.js")
    page.goto("about:blank")
    corners = np.array([[200, 30], [79, 240], [321, 240]])
    spots = np.array(lattice(side)) @ corners / (side - 1)
    n, middle = len(spots), corners.mean(0).tolist()
    kinds = rng.integers(0, 4, n * seeds)
    given = [np.tile(spots, (seeds, 1)).tolist(), kinds.tolist()]
    for handle in (*spots[:21].tolist(), [150.0, 150.0]):
        made = page.evaluate(MARKED, [source.read_text(), *given, handle, middle])
        assert not made["over"]
        assert not made["held"] or n > 21, "a mark makes room for the handle"
        runs = sorted(run for mark in made["marks"] for run in mark["runs"])
        assert runs == np.flatnonzero(kinds < 3).tolist(), "each once, and no run under way"
        for mark in made["marks"]:
            assert mark["kind"] == min(kinds[mark["runs"]])
            shares = np.linalg.solve(np.vstack([corners.T, np.ones(3)]), [*mark["at"], 1])
            assert shares.min() > -1e-9, "within the triangle"
            assert mark["spot"] == pytest.approx(spots[mark["runs"][0] % n])
            assert {run % n for run in mark["runs"]} == {mark["runs"][0] % n}


def a_relief_is_flat_at_no_tilt_rises_straight_up_and_fits_its_box(page: Page) -> None:
    page.goto("about:blank")
    for tilt, turn in ((0.0, 1.3), (0.3, -0.4), (1.0, 0.0), (1.0, 2.5)):
        a_relief_stands(page, tilt, turn)


def a_relief_stands(page: Page, tilt: float, turn: float) -> None:
    places = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.5, 0.3]]
    made = page.evaluate(PROJECTED, [canvases.RELIEF, tilt, turn, places])
    corners = [(200, 30), (80, 240), (320, 240)]
    for w, (low, middle, high) in zip(places, made, strict=True):
        flat = [sum(a * c[k] for a, c in zip(w, corners, strict=True)) for k in (0, 1)]
        assert low[0] == pytest.approx(high[0]) == pytest.approx(middle[0])
        assert middle[1] == pytest.approx((low[1] + high[1]) / 2)
        if tilt:
            assert high[1] < low[1] - 20 * tilt
        else:
            assert low[:2] == high[:2] == pytest.approx(flat)
        if tilt == 1:
            assert 25 < high[0] < 375 and 25 < high[1] < low[1] < 245
    grounds = [low for low, *_ in made]
    inner = [
        sum(a * one[k] for a, one in zip(places[3], grounds[:3], strict=True)) for k in (0, 1, 2)
    ]
    assert grounds[3] == pytest.approx(inner)  # straight lines stay straight
    near = sorted(range(4), key=lambda i: grounds[i][2])
    assert near == sorted(range(4), key=lambda i: grounds[i][1])  # nearer is lower


def clear_place(triangle: Triangle) -> tuple[float, float]:
    """A place about the middle of the triangle that no mark at the end of a run covers."""
    box = triangle.pad.bounding_box()
    assert box is not None
    for down, along in product((0.5, 0.47, 0.53, 0.44, 0.41), (0.5, 0.52, 0.48, 0.54, 0.46)):
        place = box["x"] + along * box["width"], box["y"] + down * box["height"]
        triangle.page.mouse.move(*place)
        if triangle.pad.evaluate("el => el.style.cursor") == "grab":
            return place
    raise AssertionError("marks cover all of these places")


def the_triangle_tilts_and_is_flat_again(triangle: Triangle) -> None:
    page, view = triangle.page, triangle.page.locator(".mx-triangle-view").first
    page.emulate_media(reduced_motion="reduce")
    triangle.pad.press("n")
    triangle.rests_at(0, 0, 100)
    expect(page.locator(".mx-starts-aside [data-item=share]")).to_be_hidden()  # the map is whole
    page.mouse.move(0, 0)  # no path is under the pointer
    settled(triangle.pad)
    button, flat = view.get_by_role("button", name="Tilt into a relief"), view.evaluate(PICTURE)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(button).to_be_focused()
    tilted = view.evaluate(PICTURE)
    assert tilted != flat
    page.keyboard.press("ArrowRight")
    assert view.evaluate(PICTURE) != tilted
    older = view.get_by_role("slider", name="Steps of training")
    expect(view.locator(".mx-ages")).to_contain_text("on screen", timeout=60_000)
    older.press("Home")
    expect(view.locator(".mx-ages")).not_to_contain_text("on screen")
    assert within(30, lambda: view.evaluate(PICTURE) != tilted)
    older.press("End")  # these weights are the exact ones
    expect(view.locator(".mx-ages")).to_contain_text("on screen")
    box = triangle.pad.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.keyboard.down("Shift")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 40, y + 10, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert triangle.shares() == (0, 0, 100)  # Shift turns, and leaves the handle
    page.mouse.click(*clear_place(triangle))
    expect(triangle.said).not_to_contain_text("100% noise")
    page.mouse.down()  # on the handle, which is where it was put
    page.mouse.up()
    here = triangle.shares()
    assert min(here) > 0
    triangle.pad.press("n")
    triangle.rests_at(0, 0, 100)
    page.mouse.move(0, 0)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    triangle.pad.press("n")
    assert within(30, lambda: view.evaluate(PICTURE) == flat)


def the_handle_is_dragged_by_touch(page: Page) -> None:
    triangle = Triangle(page)
    drag_by_finger(page, triangle.at(0, 0, 1), triangle.at(0.3, 0.4, 0.3))
    triangle.rests_at(30, 40, 30)


def attacks_roll_from_the_handle_and_from_all_places(triangle: Triangle) -> None:
    page = triangle.page
    page.mouse.click(*triangle.at(0.3, 0.4, 0.3))
    triangle.rests_at(30, 40, 30)
    settled(triangle.pad)
    before = triangle.pad.bounding_box()
    page.get_by_role("button", name="Attack from here").click()
    expect(page.locator(".mx-starts")).to_contain_text("begun at")
    expect(page.get_by_role("button", name="Numbers")).to_be_visible()
    settled(triangle.pad)
    assert triangle.pad.bounding_box() == before, "what is told of a run moves no triangle"
    triangle.rests_at(30, 40, 30)  # the handle stays where the run began
    page.get_by_role("button", name="Attack from 21 starts").click()
    expect(page.locator(".mx-starts")).to_contain_text(re.compile(r"\d+ under way"))
    expect(page.locator(".mx-starts")).not_to_contain_text("under way")
    counts = re.findall(r"(?:truth|other set|stuck) (\d+)", page.locator(".mx-starts").inner_text())
    assert sum(map(int, counts)) == 21
    expect(page.locator(".mx-verdict")).to_contain_text(re.compile(r"\b21 runs|No run"))
    page.set_viewport_size({"width": 1280, "height": 720})
    whole = "el => el.scrollHeight <= el.clientHeight + 1"
    aside = page.locator(".mx-starts-aside")
    settled(aside)
    assert aside.evaluate(whole)
    aside.evaluate(COMPUTING)  # a slower machine is still at the map when the runs have ended
    assert aside.evaluate(whole)
    page.get_by_role("button", name="Runs", exact=True).click()
    expect(page.locator(".mx-starts [data-item=colours] select")).to_be_visible()
    assert aside.evaluate(whole)  # what it opens takes no line of the legend away


def a_census_is_counted_and_its_ends_are_chosen(triangle: Triangle) -> None:
    page = triangle.page
    page.get_by_role("button", name="Runs", exact=True).click()
    page.get_by_role("button", name="Census", exact=True).click()
    ends = page.locator(".mx-starts-aside [data-item=ends] select")
    expect(ends).to_be_visible()
    rows = page.locator(".mx-triangle-view").first.locator("table tr")
    expect(page.locator(".mx-verdict")).to_contain_text(re.compile(r"of 200 starts rolls? "))
    aside = page.locator(".mx-starts-aside")
    kinds = re.findall(r"(?:truth|other set|elsewhere) (\d+)", aside.inner_text())
    expect(rows).to_have_count(1 + sum(map(int, kinds)))
    settled(aside)
    assert aside.evaluate("el => el.scrollHeight <= el.clientHeight + 1")
    ends.select_option(index=1)  # by the keyboard, as any list
    expect(page.locator(".mx-verdict")).to_contain_text("Valley 1")


def every_picture_has_a_menu_that_saves_it(page: Page, tmp_path: Path) -> None:
    names = set()
    for picture in page.locator(".mx-picture").all():
        kept = saved(page, picture, "svg", tmp_path)
        ElementTree.fromstring(kept.read_text())
        names.add(kept.stem)
        names.add(saved(page, picture, "csv", tmp_path).name)
    assert names == {"plane", "starts", "profile", "plane.csv", "triangle-of-starts.csv",
                     "energy-along-the-path.csv"}  # fmt: skip
    energies = (tmp_path / "triangle-of-starts.csv").read_text().splitlines()
    assert energies[1].startswith("energy,") and len(energies) > 20
    rows = page.locator(".mx-strip-view table tr")
    expect(rows).to_have_count(12)
    expect(rows.nth(1)).to_have_text(re.compile(r"^noise[\d.]+%"))
    expect(page.locator(".mx-starts-head")).to_have_count(1)  # looks are there at the first paint

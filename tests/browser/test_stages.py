"""The stages beyond the road, by mouse: choose, drag, compare attacks."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from explorer.serve import server
from tests.browser.known_curve import a_curve_is_drawn_for_the_attacker
from tests.browser.steps import NEGATIVE, POSITIVE, STAGES, Explorer, field, know_the_marks, settled
from tests.browser.test_opening import a_click_ends_it_at_its_last_frame

# Two points on a line through the middle: a network for them is found at once.
TWO = (((0.75, 0.5), POSITIVE), ((0.25, 0.5), NEGATIVE))
EXACT = "Jump to the exact solution"


# Bytes of bqplot's files that the page has loaded; to know that there is a bqplot takes few.
BQPLOT = """() => performance.getEntriesByType("resource")
    .filter((e) => e.name.includes("/bqplot/")).reduce((sum, e) => sum + e.decodedBodySize, 0)"""
MUCH = 100_000


def two_points(app: Explorer) -> None:
    """Two points, and the exact weights that separate them."""
    for place, name in TWO:
        app.press(name)
        app.click(place)
    app.expect_points(2)
    app.press("2 Train")
    app.press(EXACT)
    expect(app.verdict).to_contain_text("KKT point")


def test_two_points_go_through_every_stage(page: Page, voila_server: server.Server) -> None:
    """One visit: each stage begins with the same two points and the same weights."""
    know_the_marks(page)
    a_click_ends_it_at_its_last_frame(page, voila_server)
    app = Explorer(page).start_over()
    two_points(app)
    an_attack_is_chosen_on_top_and_one_that_does_not_fit_says_so(app)
    a_point_is_dragged_into_two_that_explain_the_same(app)
    an_arena_runs_and_a_click_shows_the_claims(app)
    the_filled_button_is_one_and_has_one_place(app)
    app.press("3 Attack")
    app.fold("Another set")
    app.press("Another set that explains the weights")
    expect(
        page.get_by_text(re.compile("No training set on the margin|other points, on"))
    ).to_be_visible()
    page.locator(".mx-fold:visible", has_text="Another set").click()
    a_curve_is_drawn_for_the_attacker(app)


FILLED = """() => [...document.querySelectorAll(".mx-explorer button")].filter((b) => {
    const shown = b.checkVisibility({ visibilityProperty: true });
    return shown && getComputedStyle(b).backgroundColor === "rgb(47, 91, 234)";
}).map((b) => [b.getBoundingClientRect().x, b.getBoundingClientRect().y].map(Math.round))"""


def the_filled_button_is_one_and_has_one_place(app: Explorer) -> None:
    """So has the time line, where a stage has a run."""
    page, wide, places, lines = app.page, app.page.viewport_size, [], []
    page.set_viewport_size({"width": 1280, "height": 720})
    app.press("3 Attack")
    app.press("KKT")  # it has starts
    for stage in STAGES:
        app.press(stage)
        expect(page.locator(".mx-side .mx-action:visible")).to_have_count(1)
        settled(page.locator(".mx-side .mx-action:visible"))
        places += page.evaluate(FILLED)
        line = page.locator(".mx-timeline").bounding_box()
        lines += [] if line is None else [(line["x"], line["width"])]
    assert len(places) == len(STAGES) and all(place == places[0] for place in places), places
    assert len(lines) == len(STAGES) - 2 and len(set(lines)) == 1
    assert wide is not None
    page.set_viewport_size(wide)


def an_attack_is_chosen_on_top_and_one_that_does_not_fit_says_so(app: Explorer) -> None:
    app.press("3 Attack")
    further = app.page.locator(".mx-further")
    further.get_by_title("Further attacks").click()
    further.get_by_role("button", name="Hinges", exact=True).click()
    expect(app.page.locator(".mx-chosen")).to_contain_text("crossings")
    further.get_by_title("Further attacks").click()
    further.locator(".mx-menu-row.unfit").first.click()
    expect(app.message).to_contain_text("does not apply")
    expect(app.page.locator(".mx-chosen")).to_contain_text("crossings")
    app.press("Play")
    expect(app.verdict).to_contain_text("No place is needed")


# Both halves of the point that is shown as two stand where the frame has them.
WHOLE_WAY = """() => {
  const { mxPainted, mxFrame } = document.querySelector(".mx-plane canvas");
  return mxFrame?.apart && mxPainted === mxFrame;
}"""


def a_point_is_dragged_into_two_that_explain_the_same(app: Explorer) -> None:
    app.page.emulate_media(reduced_motion="reduce")
    app.press("4 Explain")
    app.press("Which can become two?")
    app.page.wait_for_function(WHOLE_WAY)
    app.page.emulate_media(reduced_motion="no-preference")
    expect(app.button("↶")).not_to_be_visible()
    app.plane.press("Control+z")
    expect(app.verdict).to_contain_text("can become two")
    before = app.verdict.text_content() or ""
    app.page.get_by_role("button", name="Anywhere").click()
    app.drag(TWO[0][0], (0.75, 0.4))
    expect(app.verdict).not_to_have_text(before)
    expect(app.page.locator(".mx-explain > .mx-chart-view").nth(1)).to_be_visible()
    app.press("↶")
    expect(app.verdict).to_have_text(before)


def tick(box: Locator, left: int) -> None:
    """Tick a box or untick it."""
    box.click()
    expect(box.page.locator(".mx-table input:checked")).to_have_count(left)


def an_arena_runs_and_a_click_shows_the_claims(app: Explorer) -> None:
    app.press("6 Compare")
    table = app.page.locator(".mx-table")
    ticked = table.locator("input:checked")
    expect(ticked.first).to_be_visible()
    settled(table)
    for left in reversed(range(ticked.count())):
        tick(ticked.first, left)
    for done, name in enumerate(("Hinges", "Model inversion"), 1):
        tick(table.get_by_label(f"Run {name}"), done)
    field(app.page, "runs of each").fill("1")
    assert app.page.evaluate(BQPLOT) < MUCH  # its code comes with its first chart
    app.press("Run the attacks")
    rows = table.locator("tr.mx-can")
    expect(rows.filter(has_text="Hinges")).to_be_visible()
    expect(app.button("Run again")).to_be_visible()
    expect(app.page.locator(".mx-side .mx-action:visible")).to_have_text(["Draw your own"])
    line = rows.filter(has_text="Model inversion")
    line.locator("td").nth(2).click()
    expect(line).to_have_class(re.compile("mx-on"))
    expect(app.verdict).to_contain_text("within 0.03")
    a_line_in_the_curves_restates_the_table(app.page)


def a_line_in_the_curves_restates_the_table(page: Page) -> None:
    """Click into the chart of bqplot and move: the line goes with the pointer."""
    title, chart = page.locator(".mx-table"), page.locator(".mx-brush .bqplot")
    expect(title).to_contain_text("within 0.03")
    settled(chart)
    box = chart.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.click(box["x"] + box["width"] / 2, middle)
    page.mouse.move(box["x"] + 0.9 * box["width"], middle, steps=4)
    expect(title).to_contain_text(re.compile(r"within 0\.[12]"))
    expect(page.locator(".mx-brush summary")).to_have_text("Values")
    assert page.evaluate(BQPLOT) > MUCH


SELECT = """td => { const r = document.createRange(); r.selectNodeContents(td);
    const s = getSelection(); s.removeAllRanges(); s.addRange(r); return s.toString(); }"""


def test_the_table_of_compare_stays_in_place_while_attacks_run(circle: Explorer) -> None:
    app, page = circle, circle.page
    app.press("6 Compare")
    first = page.get_by_role("checkbox", name="Run KKT reconstruction")
    for other in ("Model inversion", "DecoReco", "Hinges"):
        tick = page.get_by_role("checkbox", name=f"Run {other}")
        tick.click()  # not uncheck(): rows of the tick before may come in between
        expect(tick).not_to_be_checked()
    first.evaluate("e => { e.marked = true; }")
    page.get_by_role("button", name=re.compile("cannot run")).click()  # they stand behind a row
    chosen = page.locator(".mx-table td.mx-words", has_text="own training").evaluate(SELECT)
    app.button("Run the attacks").focus()
    page.keyboard.press("Enter")  # a click would take the selection away by itself
    row = page.locator(".mx-table tr", has=first)
    expect(row).to_contain_text(re.compile(r"\d of \d"))
    expect(app.button("Run again")).to_be_focused()  # it said Cancel meanwhile
    assert chosen and page.evaluate("getSelection().toString()") == chosen
    assert first.evaluate("e => e.marked")

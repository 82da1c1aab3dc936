"""The stages beyond the road, by mouse: choose, drag, run an arena, click a cell, open a lesson."""

from __future__ import annotations

import base64
import re

import pytest
from playwright.sync_api import Page, expect

from explorer.engine.energy.starts import CORNERS
from explorer.serve import server
from tests.browser.steps import NEGATIVE, POSITIVE, Explorer, settled

# Two points on a line through the middle: a network for them is found at once.
TWO = (((0.75, 0.5), POSITIVE), ((0.25, 0.5), NEGATIVE))
EXACT = "Jump to the exact solution"


@pytest.fixture
def app(page: Page, voila_server: server.Server) -> Explorer:
    """Two points, and the exact weights that separate them."""
    made = Explorer(page).visit(voila_server.url)
    two_points(made)
    return made


def two_points(app: Explorer) -> None:
    for place, name in TWO:
        app.press(name)
        app.click(place)
    app.expect_points(2)
    app.press("2 Train")
    app.press(EXACT)
    expect(app.verdict).to_contain_text("KKT point")


def field(page: Page, name: str):
    """The control of a form with these words."""
    box = page.locator(".mx-app .widget-inline-hbox").filter(has=page.get_by_text(name, exact=True))
    return box.locator("select, input").first


def test_two_points_go_through_every_stage(
    app: Explorer, page: Page, voila_server: server.Server
) -> None:
    """One visit: each stage begins with the same two points and the same weights."""
    an_attack_is_chosen_on_top_and_one_that_does_not_fit_says_so(app)
    a_point_is_dragged_into_two_that_explain_the_same(app)
    an_arena_runs_and_a_click_shows_the_claims(app)
    lines = the_cells_of_a_grid_are_offered_as_a_file(app)
    starts_are_read_off_the_triangle(app)
    # Another kernel with the same weights takes the cells up; a click shows where one ended.
    app.visit(voila_server.url)
    two_points(app)
    cells_are_taken_up(app, lines)
    app.press("3 Attack")
    app.fold("Another set")
    app.press("Another set that explains the weights")
    expect(
        page.get_by_text(re.compile("No training set on the margin|other points, on"))
    ).to_be_visible()
    a_lesson_opens_from_the_menu_with_its_words_and_its_page(app)


def an_attack_is_chosen_on_top_and_one_that_does_not_fit_says_so(app: Explorer) -> None:
    app.press("3 Attack")
    chosen = field(app.page, "attack")
    chosen.select_option(label="Hinges")
    expect(app.page.locator(".mx-chosen")).to_contain_text("Crossings")
    chosen.select_option(label="Provable, on the line (not for this network)")
    expect(app.message).to_contain_text("does not apply")
    expect(chosen.locator("option:checked")).to_have_text("Hinges")
    app.press("Play")
    expect(app.message).to_contain_text("Finished")


def a_point_is_dragged_into_two_that_explain_the_same(app: Explorer) -> None:
    app.press("5 Explain")
    before = app.verdict.inner_text()
    app.page.get_by_role("button", name="Anywhere").click()
    app.drag(TWO[0][0], (0.75, 0.4))
    expect(app.verdict).not_to_have_text(before)
    expect(app.page.get_by_text("While you drag", exact=True)).to_be_visible()
    app.press("↶")
    expect(app.verdict).to_have_text(before)


def an_arena_runs_and_a_click_shows_the_claims(app: Explorer) -> None:
    app.press("6 Compare")
    table = app.page.locator(".mx-table")
    expect(table.locator("input:checked").first).to_be_visible()
    for box in table.locator("input:checked").all():
        box.uncheck()
    for name in ("Hinges", "Model inversion"):
        table.get_by_label(f"Run {name}").check()
    field(app.page, "seeds").fill("1")
    app.press("Run the attacks")
    rows = table.locator("tr.mx-can")
    expect(rows).to_have_count(3)  # and another set
    expect(app.button("Run the attacks")).to_be_visible()
    line = rows.filter(has_text="Model inversion")
    line.locator("td").nth(2).click()
    expect(line).to_have_class(re.compile("mx-on"))
    expect(app.verdict).to_contain_text("within 0.03")


def grid_of_two_steps(app: Explorer) -> None:
    app.press("4 Landscape")
    app.fold("Grid of starts")
    steps = field(app.page, "steps per cell")
    steps.fill("2")
    steps.press("Tab")


def click_the_middle_cell(app: Explorer) -> None:
    title = "//*[normalize-space(text())='distance to truth']"
    cells = app.page.locator(f"xpath={title}/following::*[contains(@class, 'bqplot')][1]")
    cells.scroll_into_view_if_needed()
    settled(cells)
    box = cells.locator(".plotarea_events").bounding_box()
    assert box is not None
    app.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(app.page.get_by_text(re.compile("^λ₁ = 0.5, λ₂ = 0.5: the candidates"))).to_be_visible()


def the_cells_of_a_grid_are_offered_as_a_file(app: Explorer) -> bytes:
    grid_of_two_steps(app)
    app.press("Run the grid")
    expect(app.page.get_by_text(re.compile("^Of 25 cells"))).to_be_visible()
    expect(app.button("Run the grid")).to_be_visible()
    click_the_middle_cell(app)
    link = app.page.locator("a[download='grid.jsonl']")
    expect(app.page.get_by_text("21 cells")).to_be_visible()
    lines = base64.b64decode((link.get_attribute("href") or "").partition(",")[2])
    assert lines.count(b"\n") == 21
    return lines


def starts_are_read_off_the_triangle(app: Explorer) -> None:
    """The energy of all starts, under a real mouse."""
    page = app.page
    kind = page.locator(".mx-app select").filter(has_text="All starts of an attack")
    kind.select_option(label="All starts of an attack")
    expect(page.get_by_text(re.compile(r"of 1326 starts lie below"))).to_be_visible()
    triangle = page.locator(".mx-plane .mx-pad-surface").nth(1)
    triangle.scroll_into_view_if_needed()
    settled(triangle)
    box = triangle.bounding_box()
    assert box is not None
    truth = CORNERS[0]
    page.mouse.move(
        box["x"] + truth[0] * box["width"], box["y"] + (1.02 - truth[1]) * box["height"]
    )
    expect(
        page.get_by_text(re.compile(r"^9\d% truth, \d% held-out data, \d% noise"))
    ).to_be_visible()


def cells_are_taken_up(app: Explorer, lines: bytes) -> None:
    grid_of_two_steps(app)
    expect(app.page.get_by_text("lost with this page")).to_be_visible()
    with app.page.expect_file_chooser() as chooser:
        app.page.locator(".jupyter-button", has_text="Take up saved cells").click()
    chooser.value.set_files({"name": "mine.jsonl", "mimeType": "", "buffer": lines})
    expect(app.message).to_contain_text("21 cells of mine.jsonl taken up")
    click_the_middle_cell(app)


def a_lesson_opens_from_the_menu_with_its_words_and_its_page(app: Explorer) -> None:
    page = app.page
    app.press("Lessons")
    link = page.get_by_role("link", name=re.compile("^Lesson 3:"))
    expect(link).to_have_attribute("href", re.compile("lesson-03"))
    page.goto(link.evaluate("a => a.href"))
    expect(page.locator("h1[id^=Lesson]")).to_contain_text("Lesson 3:")
    expect(app.verdict).to_contain_text("points")
    expect(page.locator("#loading")).to_have_count(0)
    expect(page.locator(".mx-failed:visible")).to_have_count(0)

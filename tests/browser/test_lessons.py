"""A lesson in a real browser, with a real mouse; its index; one recorded, saved and played."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from explorer.page.lessons.file import packaged_lessons
from tests.browser.conftest import Visit
from tests.browser.steps import NEGATIVE, Explorer, know_the_marks, settled
from tests.browser.test_themes import the_page_of_membership_has_its_look_tables_and_line

LAPTOP = {"width": 1280, "height": 720}


CUT = """parts => [...document.querySelectorAll(parts)].filter(e => {
    const r = e.getBoundingClientRect(), u = e.closest('.mx-cards').getBoundingClientRect();
    return e.scrollHeight > e.clientHeight + 1 || r.bottom > u.bottom + 1;
  }).map(e => `${e.className} ${e.scrollHeight} of ${e.clientHeight}`)"""


def ready(page: Page) -> None:
    """Wait until the page stands where the step begins."""
    goal = page.locator(".mx-lesson-goal", has_text="Getting ready")
    expect(goal).to_have_count(0)


def whole(page: Page) -> None:
    """No part of the screen is pushed out of it."""
    page.wait_for_function(
        "() => [...document.querySelectorAll("
        "'.mx-lesson-foot, .mx-stage, .mx-side, .mx-transport')].every(e => {"
        " const r = e.getBoundingClientRect();"
        " return r.left >= 0 && r.right <= innerWidth + 1 && r.bottom <= innerHeight + 1; })"
        " && document.documentElement.scrollHeight <= innerHeight + 1"
    )


def letters(part: Locator) -> float:
    """How large its words are, px."""
    return part.locator("p").first.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")


def the_index_leads_to_lesson_0_which_is_done_with_a_mouse(page: Page) -> None:
    cards = page.locator(".mx-index a")
    expect(cards).to_have_count(15)
    expect(cards.first).to_contain_text("Start here")
    assert cards.locator("img").evaluate_all("all => all.every(e => e.naturalWidth > 100)")
    cards.first.click()
    app = Explorer(page)
    title, caption = page.locator(".mx-lesson-title"), page.locator(".mx-lesson-caption")
    goal, following = page.locator(".mx-lesson-goal"), page.locator(".mx-lesson-next")
    done = page.locator(".mx-lesson-dot.done")
    expect(title).to_have_text(packaged_lessons()[0].title)
    expect(app.verdict).to_contain_text("Both points hold the margin")
    whole(page)
    size = letters(caption)
    following.click()
    expect(caption).to_contain_text("Now your own points")
    expect(done).to_have_count(1)
    ready(page)
    for place in ((0.7, 0.3), (0.8, 0.5)):
        app.click(place)
    app.press(NEGATIVE)
    for place in ((0.25, 0.6), (0.3, 0.8)):
        app.click(place)
    expect(goal).to_have_class(re.compile("done"))
    following.click()
    expect(caption).to_contain_text("The network bends")
    page.locator(".mx-action").click()
    expect(done).to_have_count(3)
    following.click()
    expect(app.verdict).to_contain_text("2 of 8 points hold the margin")
    ready(page)
    app.press("Place")  # it opens the tools
    app.click((0.85, 0.2))
    expect(done).to_have_count(4)
    expect(page.locator(".mx-lesson-answer")).to_be_hidden()
    page.locator(".mx-lesson-fold summary").click()
    expect(page.locator(".mx-lesson-answer")).to_contain_text("No.")
    assert letters(caption) == size >= 15, "a longer step has no smaller words"
    whole(page)
    following.click()
    expect(title).to_have_text(packaged_lessons()[1].title)
    app.leave_lesson()
    expect(page.locator(".mx-failed:visible")).to_have_count(0)


# Press a button and write into a field before any answer can have come.
HURRY = """([press, field, words]) => {
  const find = (kind, match) => [...document.querySelectorAll(kind)].find(match);
  find(".mx-lesson-form button", b => b.textContent === press).click();
  const input = find(".mx-lesson-form textarea", t => t.getAttribute("aria-label") === field);
  input.focus();
  input.value = words;
  input.dispatchEvent(new Event("input", {bubbles: true}));
}"""


def test_a_lesson_is_recorded_saved_and_played(new_page, voila_server, tmp_path: Path) -> None:
    page = new_page(viewport=LAPTOP)
    app = Explorer(page).visit(voila_server.url)
    app.press("Lessons")
    page.locator(".mx-lessons .mx-menu-row", has_text="Record a lesson").click()
    form = page.locator(".mx-lesson-form")
    form.get_by_label("Title of the lesson").fill("Mine")
    app.preset("Blobs")
    app.press("Record this moment")
    form.get_by_label("Words: what is to be seen, what to do").fill("Train them.")
    expect(form.locator(".mx-lesson-list")).to_contain_text("Train them.")
    form.get_by_label("Goal of the step").select_option("separated")
    # What is written at once is of the new step, however slow the kernel.
    label = "Words: what is to be seen, what to do"
    page.evaluate(HURRY, ["Record this moment", label, "At once."])
    rows, words = form.locator(".mx-lesson-list li"), form.get_by_label(label)
    expect(rows).to_have_text([re.compile("Train"), re.compile("At once")])
    expect(words).to_have_value("At once.")
    form.get_by_role("button", name="Earlier").click()
    expect(rows.first).to_contain_text("At once.")
    expect(words).to_have_value("At once.")
    form.get_by_role("button", name="Later").click()
    expect(rows.first).to_contain_text("Train them.")
    form.get_by_role("button", name="Link", exact=True).click()
    line = page.get_by_label("Link to the lesson")
    assert form.evaluate("e => e.scrollWidth <= e.clientWidth"), "its buttons fit"
    expect(line).to_have_value(re.compile(re.escape(f"{voila_server.url}#mxl1.")))
    whole(page)
    link = line.input_value()
    # Not saved yet, and the page is loaded anew: the browser has kept it.
    page.wait_for_function(
        "() => Object.values(localStorage).some(text => text.includes('separated')"
        " && /Train them[.].*At once[.]/s.test(text))"  # in this order: the last move, too
    )
    page.reload(wait_until="commit")
    page.locator(".mx-kept").get_by_role("button", name="Take up").click()
    expect(form.get_by_label("Title of the lesson")).to_have_value("Mine")
    expect(form.locator(".mx-lesson-list")).to_contain_text("Train them.")
    expect(form.get_by_label("Goal of the step")).to_have_value("separated")
    with page.expect_download() as saving:
        app.press("Save")
    path = tmp_path / saving.value.suggested_filename
    saving.value.save_as(path)
    assert json.loads(path.read_bytes())["steps"][0]["goal"] == {"name": "separated"}
    app.press("Leave")
    app.press("Lessons")
    page.locator(".mx-lessons input[type=file]").set_input_files(path)
    expect(page.locator(".mx-lesson-title")).to_have_text("Mine")
    ready(page)
    page.locator(".mx-action").click()
    expect(page.locator(".mx-lesson-goal")).to_have_class(re.compile("done"))
    there = new_page(viewport=LAPTOP)
    know_the_marks(there)
    there.goto(link, wait_until="commit")
    expect(there.locator(".mx-lesson-title")).to_have_text("Mine", timeout=90_000)
    path.write_text('{"title": "x", "steps": [{"goal": {"name": "win"}}]}')
    page.locator(".mx-lessons input[type=file]").set_input_files(path)
    expect(app.message).to_contain_text("step 1: goal")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "parts"), [(5, ".mx-starts-aside"), (6, ".mx-energy > *"), (14, ".mx-compare button")]
)
def test_legends_and_buttons_are_whole_beside_a_lesson(new_page, voila_server, k, parts) -> None:
    page = new_page(viewport=LAPTOP)
    page.goto(f"{voila_server.url}?lesson={k}")
    expect(page.locator(".mx-lesson-title")).to_have_text(
        packaged_lessons()[k].title, timeout=90_000
    )
    ready(page)
    expect(page.locator(".mx-cards canvas, .mx-cards table, .mx-energy").first).to_be_visible()
    settled(page.locator(".mx-cards"))
    cut = page.evaluate(CUT, parts)
    assert cut == []
    if k == 5:
        box = page.locator(".mx-triangle-view").bounding_box()
        assert box and box["width"] >= 260 and box["height"] >= 240
    for head in page.locator(".mx-table th:visible").all():  # no column is pushed out of its card
        box, card = head.bounding_box(), page.locator(".mx-compare").bounding_box()
        assert box and card and box["x"] + box["width"] <= card["x"] + card["width"] + 1


def test_a_task_on_another_page_ticks_its_step_and_the_index_which_leads_to_lesson_0(
    app: Explorer, visit: Visit
) -> None:
    a_task_on_another_page_ticks_its_step_and_the_menu_the_lesson(app)
    index = visit.beside()
    index.set_viewport_size(LAPTOP)
    index.goto(f"{visit.url}voila/render/lessons.ipynb")  # of all lessons, marks it too
    marked = index.locator(".mx-index .done")
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text(packaged_lessons()[10].title)
    the_index_leads_to_lesson_0_which_is_done_with_a_mouse(index)
    index.goto("about:blank")
    index.close()
    # The kernel of the page that was left has ended, and its watch may have asked for it once more.
    visit.errors[:] = [said for said in visit.errors if "404" not in said]


def a_task_on_another_page_ticks_its_step_and_the_menu_the_lesson(app: Explorer) -> None:
    page = app.page
    page.set_viewport_size(LAPTOP)
    app.lesson(packaged_lessons()[10].title)
    ready(page)
    page.locator(".mx-play").click()
    done = page.locator(".mx-lesson-dot.done")
    expect(done).to_have_count(1)
    page.locator(".mx-lesson-next").click()
    with page.context.expect_page() as opened:
        page.locator(".mx-lesson-link").click()
    other = opened.value
    slider = other.get_by_role("slider").first
    expect(other.locator(".mx-verdict")).to_contain_text("members found", timeout=90_000)
    expect(done).to_have_count(1)
    slider.focus()
    for _ in range(12):
        other.keyboard.press("ArrowRight")
        other.wait_for_timeout(400)  # each is drawn, as for an eye
        if done.count() == 2:
            break
    expect(done).to_have_count(2)
    app.leave_lesson()
    app.lesson(packaged_lessons()[10].title)  # once more: what was done stays ticked
    ready(page)
    expect(done).to_have_count(2)
    page.get_by_role("button", name="Lessons").click()
    expect(page.locator(".mx-lessons .mx-menu-row", has_text="✓")).to_have_count(1)
    the_page_of_membership_has_its_look_tables_and_line(other)
    other.goto("about:blank")  # as a person leaves it
    other.close()
    page.keyboard.press("Escape")
    app.leave_lesson()

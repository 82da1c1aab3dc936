"""The weights under the plane: needles and lines light each other, by mouse and by keys."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.steps import Explorer, settled

BAND = "document.querySelector('.mx-band canvas')"
PLANE = "document.querySelector('.mx-plane canvas')"
LIT = f"() => {BAND}.mxLit"
LINE = f"() => {PLANE}.mxLit?.line ?? null"


def lit(page: Page) -> int:
    return int(page.evaluate(LIT))


def unfold(app: Explorer) -> None:
    app.press("Weights")
    app.page.wait_for_function("() => document.querySelector('.mx-band canvas')?.mxFrame")
    settled(app.plane)


def test_needles_lines_and_words_light_each_other(circle: Explorer) -> None:
    circle.page.set_viewport_size({"width": 1280, "height": 720})
    unfold(circle)
    try:
        needles_and_lines_light_each_other_by_mouse_and_keys(circle)
        a_word_under_the_pointer_or_in_focus_lights_what_it_names(circle.page)
    finally:
        circle.press("Weights")


def needles_and_lines_light_each_other_by_mouse_and_keys(circle: Explorer) -> None:
    page = circle.page
    box = page.locator(".mx-band-box").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    page.wait_for_function(f"({LIT})() >= 0")
    page.wait_for_function(f"({LINE})() !== null")
    first, line = lit(page), page.evaluate(LINE)
    # On that line of the plane its needle is lit, or one of its bundle.
    u, v = page.evaluate(
        "([a, b, c]) => { const r = a * a + b * b; return [-a * c / r, -b * c / r]; }", line
    )
    assert first >= 0 and abs(u) < 1 and abs(v) < 1
    plane = circle.box()
    page.mouse.move(plane["x"] + (u + 1) / 2 * plane["width"] + 1,
                    plane["y"] + (1 - v) / 2 * plane["height"] + 1)  # fmt: skip
    page.wait_for_function(f"({LIT})() >= 0")
    page.mouse.move(5, 5)
    page.wait_for_function(f"({LIT})() < 0")
    expect(page.locator(".mx-band-left")).to_have_text("unexplained less than 10⁻¹²")
    page.locator(".mx-band-box").focus()
    page.keyboard.press("End")
    last = lit(page)
    page.keyboard.press("ArrowLeft")
    assert lit(page) == last - 1
    expect(page.locator(".mx-band-box")).to_have_attribute("aria-valuenow", str(last))
    assert "bias" in page.locator(".mx-band-box").get_attribute("aria-valuetext")
    page.wait_for_function(f"({LINE})() !== null")
    page.keyboard.press("Escape")
    page.wait_for_function(f"({LINE})() === null")
    assert page.locator(".mx-explorer").evaluate("e => e.scrollHeight - e.clientHeight") <= 0


def a_word_under_the_pointer_or_in_focus_lights_what_it_names(page: Page) -> None:
    page.locator(".mx-chart-head .mx-term", has_text="Margin").first.hover()
    page.wait_for_function(f"() => {PLANE}.mxLit?.term === 'margin'")
    canvases = page.locator(".mx-chart-view canvas")
    assert "margin" in canvases.evaluate_all("all => all.map(c => c.mxTerm)")
    page.mouse.move(5, 5)
    page.wait_for_function(f"() => {PLANE}.mxLit.term === ''")
    page.keyboard.press("Tab")
    page.locator(".mx-band-left .mx-term").focus()
    page.wait_for_function(f"() => {BAND}.mxTerm === 'left'")
    page.keyboard.press("Shift+Tab")
    page.wait_for_function(f"() => {BAND}.mxTerm === ''")

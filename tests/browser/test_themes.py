"""The look: narrow and wide, further pages in both themes, and words for every control."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from explorer.serve import server
from tests.browser.steps import NEGATIVE, Explorer, barriers, settled

WIDTHS = (800, 1280)
TALL = 1400  # the whole page, in both layouts

# The page scrolls in an element of its host, so every box above and inside the app is asked.
OVERFLOWING = """() => {
  const app = document.querySelector('.mx-app'), wide = [];
  for (let e = app; e; e = e.parentElement)
    if (e.scrollWidth > e.clientWidth + 1) wide.push(e.className || e.tagName);
  const edge = app.getBoundingClientRect().right;
  for (const e of app.querySelectorAll('.jupyter-widgets'))
    if (e.checkVisibility() && e.getBoundingClientRect().right > edge + 1) wide.push(e.className);
  return wide;
}"""

# No box within the page scrolls sideways either.
SIDEWAYS = """() => [...document.querySelectorAll('.mx-app *')].filter(e =>
  e.checkVisibility() && e.clientWidth && e.scrollWidth > e.clientWidth + 1 &&
  ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)
).map(e => `${e.className}: ${e.innerText}`)"""

# A tooltip says more than what stands on the control.
WITHOUT_TOOLTIP = """() => {
  const kinds = 'button:not(.mx-term), input, select, textarea, [role=slider]'; // a term has a card
  const all = [...document.querySelectorAll('.mx-app :is(' + kinds + ')')];
  return all.filter(e => {
    if (!e.checkVisibility({visibilityProperty: true})) return false;
    const tips = [e, ...e.querySelectorAll('[title]')].map(t => t.title).filter(Boolean);
    return !tips.some(tip => tip !== e.innerText.trim());
  }).map(e => e.innerText || e.outerHTML);
}"""
MENDED_WITHIN = 20  # looks, half a second apart; arbitrary, for a loaded machine
INPUTS = {"button", "checkbox", "combobox", "spinbutton", "textbox", "slider", "radio"}


def test_page_fits_explains_its_controls_and_keeps_its_plane_in_place(app: Explorer) -> None:
    plane_stays_in_place_whatever_the_sentence_says(app)
    app.start_over()
    page_fits_and_every_control_explains_and_names_itself(app)


def page_fits_and_every_control_explains_and_names_itself(app: Explorer) -> None:
    page = app.page
    assert page.title() == "Margin Explorer"
    expect(page.locator("#loading")).to_have_count(0)
    fits(app)
    app.to_exact("Alternating circle")
    fits(app)
    explains_itself(app)
    app.press("3 Attack")
    app.press("Step × n")
    expect(app.where).to_have_text("step 100")
    fits(app)
    explains_itself(app)


def the_page_of_membership_has_its_look_tables_and_line(page: Page) -> None:
    """The page that a lesson opens: test_lessons.py."""
    page.emulate_media(color_scheme="dark")
    follows_the_system_and_has_no_barriers(page)
    charts_have_tables_and_the_colours_of_the_theme(page)
    settings_outlive_a_reload(page)
    a_line_in_the_roc_restates_the_rates(page)


def follows_the_system_and_has_no_barriers(page: Page) -> None:
    """A page in the dark theme, in which that of test_digits.py was opened."""
    expect(page.locator(".mx-app")).to_have_attribute("data-theme", "dark")
    for theme in server.THEMES:
        page.emulate_media(color_scheme=theme)
        expect(page.locator(".mx-app")).to_have_attribute("data-theme", theme)
        assert mended(lambda: barriers(page), page) == [], theme
    assert nameless(page) + page.evaluate(WITHOUT_TOOLTIP) == []
    expect(page.locator("#loading, #coming")).to_have_count(0)
    expect(page.locator(".mx-failed:visible")).to_have_count(0)


def a_line_in_the_roc_restates_the_rates(page: Page) -> None:
    """Click into the chart of bqplot and move; zoom by the wheel; reset."""
    chart, words = page.locator(".mx-brush .bqplot"), page.get_by_text("At most 0.1%")
    chart.scroll_into_view_if_needed()
    expect(words).to_be_visible()
    settled(chart)
    box = chart.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.click(box["x"] + 0.6 * box["width"], middle)
    page.mouse.move(box["x"] + 0.7 * box["width"], middle, steps=4)
    expect(page.get_by_text(re.compile(r"At most \d+% false positives"))).to_be_visible()
    curve = page.locator(".mx-brush path.line").last
    before = curve.get_attribute("d") or ""
    page.get_by_role("button", name="Zoom", exact=True).click()
    expect(page.locator(".mx-brush .bqplot [style*='cursor: move']")).to_be_attached()
    page.mouse.move(box["x"] + 0.4 * box["width"], middle)
    page.mouse.wheel(0, -600)
    expect(curve).not_to_have_attribute("d", before)
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(words).to_be_visible()
    expect(curve).to_have_attribute("d", before)


# Whether no picture has the light theme's colour of lines, #e3e6ea.
NO_LIGHT_LINE = """() => [...document.querySelectorAll(".mx-chart-plot canvas")].every(c => {
  if (!c.width || !c.height) return false;
  const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  for (let i = 0; i < d.length; i += 4)
    if (d[i] === 227 && d[i + 1] === 230 && d[i + 2] === 234 && d[i + 3] === 255) return false;
  return true;
})"""


def charts_have_tables_and_the_colours_of_the_theme(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    charts = page.locator(".mx-chart-view:not(.mx-empty), .mx-brush:visible")
    expect(charts).to_have_count(3)
    for table in charts.locator("table").all():
        expect(table.locator("tr").nth(1)).to_be_attached()
    page.wait_for_function(NO_LIGHT_LINE)


def settings_outlive_a_reload(page: Page) -> None:
    seed = page.get_by_role("spinbutton", name="seed")
    seed.fill("17")
    seed.press("Enter")
    page.wait_for_function("() => Object.values(sessionStorage).some(text => text.includes('17'))")
    page.reload(wait_until="commit")
    expect(page.get_by_role("spinbutton", name="seed")).to_have_value("17")


def fits(app: Explorer) -> None:
    """No sideways scrolling at either width."""
    for width in WIDTHS:
        app.page.set_viewport_size({"width": width, "height": TALL})
        settled(app.plane)
        assert app.page.evaluate(OVERFLOWING) == [], f"at {width} px"
        assert app.page.evaluate(SIDEWAYS) == [], f"at {width} px"


def explains_itself(app: Explorer) -> None:
    app.unfold_settings()
    assert unexplained(app.page) == []


def plane_stays_in_place_whatever_the_sentence_says(app: Explorer) -> None:
    app.page.set_viewport_size({"width": min(WIDTHS), "height": TALL})
    settled(app.plane)
    tops = [below_the_top(app)]
    for n, place in enumerate(((0.3, 0.3), (0.7, 0.7), (0.5, 0.5)), 1):
        app.click(place)
        app.expect_points(n)
        tops.append(below_the_top(app))
        if n == 1:
            app.press(NEGATIVE)
    app.press("Step × n")
    expect(app.where).to_have_text("step 100")
    tops.append(below_the_top(app))
    app.press("3 Attack")
    app.press("Step × n")
    expect(app.where).to_have_text("step 100")
    expect(app.message).to_have_text("")
    tops.append(below_the_top(app))
    assert len(set(tops)) == 1, tops


def below_the_top(app: Explorer) -> float:
    """How far the plane is below the top of the page, which is scrolled there first.

    The plane sticks to the screen, so that on a page scrolled to a control it is further down.
    """
    return app.plane.evaluate(
        """plane => {
             for (let e = plane; e; e = e.parentElement) e.scrollTop = 0;
             const top = document.querySelector('.mx-app').getBoundingClientRect().top;
             return plane.getBoundingClientRect().top - top;
           }"""
    )


def unexplained(page: Page) -> list[str]:
    """Controls without a name or a tooltip; the page mends new ones a moment after they appear."""
    return mended(lambda: nameless(page) + page.evaluate(WITHOUT_TOOLTIP), page)


def mended(look_for: Callable[[], list[str]], page: Page) -> list[str]:
    """What is still found once the page had time to mend it."""
    for _ in range(MENDED_WITHIN):
        found = look_for()
        if not found:
            break
        page.wait_for_timeout(500)
    return found


def nameless(page: Page) -> list[str]:
    """Controls that a screen reader cannot name, as Chromium's own accessibility tree has them."""
    browser = page.context.new_cdp_session(page)
    tree = browser.send("Accessibility.getFullAXTree")["nodes"]
    controls = [n for n in tree if n.get("role", {}).get("value") in INPUTS and not n["ignored"]]
    assert len(controls) > 10
    unnamed = [n for n in controls if not n.get("name", {}).get("value", "").strip("\u200b ")]
    numbers = [n["backendDOMNodeId"] for n in unnamed]
    nodes = [browser.send("DOM.describeNode", {"backendNodeId": i})["node"] for i in numbers]
    return [f"without a name: {n['localName']} {n['attributes']}" for n in nodes]

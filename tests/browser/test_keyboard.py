"""By keys alone: every control is reached by Tab, and the plane is drawn on without a mouse."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import Explorer

MOST_TABS = 80  # arbitrary: above the number of controls on the page

# Controls in sight; Tab has to come by each of them.
MARK_CONTROLS = """() => {
  const kinds = 'button, input, select, textarea, [role=slider], .mx-pad-surface';
  const all = [...document.querySelectorAll('.mx-app :is(' + kinds + ')')];
  window.unreached = new Set(all.filter(e => !e.disabled &&
    e.checkVisibility({visibilityProperty: true}) && e.getBoundingClientRect().width > 0));
  document.addEventListener('focusin', e => {
    for (const u of window.unreached) if (u.contains(e.target)) window.unreached.delete(u);
  });
  return window.unreached.size;
}"""
UNREACHED = """() => [...window.unreached].map(
  e => (e.innerText || e.title || e.getAttribute('aria-label') || e.outerHTML).slice(0, 60))"""


def test_keys_reach_and_do_everything(app: Explorer) -> None:
    tab_reaches_every_control_and_keys_draw(app)
    app.to_exact("Alternating circle")
    a_word_is_explained_by_keys_and_by_the_pointer(app)
    a_button_that_changes_or_goes_takes_no_focus_away(app)


def tab_reaches_every_control_and_keys_draw(app: Explorer) -> None:
    page, keys = app.page, app.page.keyboard
    tab_to(page, "document.activeElement.matches('.mx-plane .mx-pad-surface')")
    cursor = page.locator(".mx-pad-surface canvas")
    expect(cursor).to_be_visible()
    keys.press("Enter")
    expect(app.said).to_have_text("placed point 1, class +1 (blue circle) at 0.00, 0.00")
    keys.press("2")
    for _ in range(3):
        keys.press("Shift+ArrowRight")
    keys.press("ArrowDown")
    keys.press("Space")
    expect(app.said).to_have_text("placed point 2, class −1 (orange triangle) at 1.20, -0.08")
    app.expect_points(2)

    keys.press("m")
    keys.press("Enter")
    expect(app.said).to_have_text("holding point 2, class −1 (orange triangle)")
    keys.press("Shift+ArrowUp")
    keys.press("Enter")
    expect(app.said).to_have_text("dropped")
    keys.press("Delete")
    expect(app.said).to_have_text("erased point 2, class −1 (orange triangle)")
    app.expect_points(1)
    keys.press("Control+z")
    app.expect_points(2)
    expect(app.said).to_have_text("undone")
    keys.press("Control+z")  # the move
    keys.press("ArrowLeft")
    keys.press("Delete")
    expect(app.said).to_have_text("no point here")
    keys.press("Control+y")
    keys.press("Control+Shift+z")
    expect(app.said).to_have_text("redone")
    app.expect_points(1)
    keys.press("Control+z")
    app.expect_points(2)
    keys.press("p")  # a third one, orange again, at the other end
    for _ in range(10):
        keys.press("Shift+ArrowLeft")
    keys.press("Enter")
    app.expect_points(3)

    # On to training, and to its end, without a mouse.
    tab_to(page, "document.activeElement.ariaLabel === 'Play'")
    expect(cursor).to_be_hidden()  # nothing is on it: it would be laid over every frame
    keys.press("Space")
    app.wait_for_step(20)
    keys.press("Space")
    expect(app.button("Play")).to_be_focused()
    assert page.evaluate(MARK_CONTROLS) > 20
    for _ in range(MOST_TABS):
        keys.press("Tab")
    assert page.evaluate(UNREACHED) == []
    tab_to(page, "document.activeElement.innerText.startsWith('Jump')")
    keys.press("Enter")
    expect(app.where).to_have_text("exact")
    tab_to(page, "document.activeElement.innerText.trim() === '3 Attack'", back=True)
    keys.press("Enter")

    # A start from the truth finds it at step 0: the triangle's key T.
    expect(page.locator(".mx-triangle-view")).to_be_visible()
    tab_to(page, "document.activeElement.closest('.mx-triangle-view') !== null")
    keys.press("t")
    expect(app.verdict).to_contain_text("3 of 3")
    keys.press("n")  # as other tests of this page begin
    expect(app.verdict).not_to_contain_text("3 of 3")


def tab_to(page: Page, reached: str, back: bool = False) -> None:
    """Press Tab until an expression is true in the page."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        if page.evaluate(reached):
            return
    raise AssertionError(f"{MOST_TABS} times Tab, and not {reached}")


def a_page_that_moves_under_a_resting_pointer_explains_nothing(
    page: Page, term: Locator, card: Locator
) -> None:
    box, head = term.bounding_box(), page.locator(".mx-headline")
    assert box is not None
    head.evaluate("e => { e.style.translate = '0 200px'; }")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    term.evaluate("e => e.addEventListener('pointerenter', () => { e.dataset.entered = 'yes'; })")
    head.evaluate("e => { e.style.translate = ''; }")
    expect(term).to_have_attribute("data-entered", "yes")
    expect(card).to_be_hidden()
    page.mouse.move(x + 1, y)
    expect(card).to_be_visible()
    page.mouse.move(2, 2)
    expect(card).to_be_hidden()


def a_word_is_explained_by_keys_and_by_the_pointer(app: Explorer) -> None:
    page = app.page
    term, card = page.locator(".mx-headline .mx-term").first, page.locator(".mx-term-card")
    expect(term).to_contain_text("KKT")
    page.get_by_role("tab", selected=True).focus()
    tab_to(page, "document.activeElement.matches('.mx-headline .mx-term')")
    expect(card).to_be_visible()
    said = card.inner_text()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    term.hover()
    expect(card).to_have_text(said)
    box = card.bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= page.viewport_size["width"]
    page.mouse.move(2, 2)
    expect(card).to_be_hidden()
    a_page_that_moves_under_a_resting_pointer_explains_nothing(page, term, card)
    app.press("3 Attack")
    app.unfold_settings()
    expect(page.locator(".mx-form .mx-term").first).to_be_visible()  # names of settings too
    app.fold("More settings")


def a_button_that_changes_or_goes_takes_no_focus_away(app: Explorer) -> None:
    page = app.page
    app.press("3 Attack")
    app.button("Hide the truth").focus()
    page.keyboard.press("Enter")
    expect(app.button("Reveal the truth")).to_be_focused()
    app.button("Attack").focus()
    page.keyboard.press("Enter")
    expect(app.button("Pause")).to_be_visible()
    expect(page.locator(".mx-told")).to_be_focused()
    app.press("Reveal the truth")

"""The page of images in a real browser: a digit drawn by hand, and tiles shown large."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from explorer.serve import server
from tests.browser.steps import settled
from tests.browser.test_themes import follows_the_system_and_has_no_barriers


def test_images_are_trained_on_attacked_and_drawn_on_one_page(
    new_page: Callable[..., Page], voila_server: server.Server
) -> None:
    page = new_page(own=True, color_scheme="dark")  # with scripts at hand the focus is lost
    page.goto(f"{voila_server.url}voila/render/digits.ipynb?template=reveal")
    follows_the_system_and_has_no_barriers(page)
    the_handle_of_the_triangle_shows_the_images_of_a_start(page)
    a_digit_is_drawn_added_and_seen_large(page)


def a_digit_is_drawn_added_and_seen_large(page: Page) -> None:
    pad = page.locator(".mx-digit-pad canvas")
    expect(pad).to_be_hidden()  # a black square outweighs the images
    page.get_by_role("button", name="Draw a digit", exact=True).click()
    pad.scroll_into_view_if_needed()
    place = pad.bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + 75, place["y"] + 25)
    page.mouse.down()
    page.mouse.move(place["x"] + 75, place["y"] + 118, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="Add", exact=True).click()
    step = page.locator(".mx-tab[aria-selected=true]")
    expect(step).to_have_text("2 Train")
    train = page.locator("button[data-item=train]")
    expect(train).to_be_enabled()  # a button at rest alone takes the focus
    step.click()  # a step brings its part into sight, under the head
    expect(train).to_be_focused()
    head = page.locator(".mx-head").bounding_box()
    assert head and 0 <= head["y"] <= 8
    expect(train).to_be_in_viewport()
    mine = page.locator(".mx-tile[aria-label*='your 3']")
    expect(mine).to_have_count(1)
    middle = mine.locator("canvas").evaluate(
        "c => [...c.getContext('2d').getImageData(4, 4, 1, 1).data].slice(0, 3)"
    )
    assert middle[0] > 100  # white on black
    mine.hover()
    card = page.locator(".mx-pictures-card:popover-open")
    expect(card).to_have_count(1)
    expect(card).to_contain_text("your 3")
    inside = card.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    assert inside, "the card cuts its images"
    page.mouse.move(2, 2)
    expect(card).to_have_count(0)
    pad.focus()  # the same by keys
    for key in (" ", "ArrowDown", "ArrowDown", "ArrowRight", " "):
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="Add", exact=True)).to_be_enabled()


def the_handle_of_the_triangle_shows_the_images_of_a_start(page: Page) -> None:
    page.get_by_role("button", name="Train", exact=True).click()
    triangle = page.locator("[aria-label^='Triangle of starts']").last
    expect(triangle).to_have_attribute("aria-disabled", "false")
    triangle.focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator(".mx-tile[aria-label*='a candidate of the start']")).to_have_count(10)
    a_lasso_shows_those_images_alone(page)


def a_lasso_shows_those_images_alone(page: Page) -> None:
    """Attack for a few steps, and draw a lasso around the images of one class."""
    page.get_by_role("button", name="More settings").click()
    page.get_by_role("spinbutton", name="attack steps").fill("60")
    page.get_by_role("button", name="Attack", exact=True).click()
    expect(page.get_by_text("step 60,")).to_be_visible()
    expect(page.get_by_role("button", name="Attack", exact=True)).to_be_enabled()
    pair = page.locator(".mx-gallery .mx-tile").first.locator("canvas")
    expect(pair).to_have_count(2)
    boxes = pair.evaluate_all("all => all.map(e => e.getBoundingClientRect().toJSON())")
    assert all(box["width"] >= 64 for box in boxes)  # seen from the last row
    assert boxes[0]["y"] == boxes[1]["y"], "side by side"
    chart = page.locator(".mx-brush .bqplot")
    wide = page.viewport_size
    page.set_viewport_size({"width": 1280, "height": 720})
    page.evaluate("document.querySelector('.mx-app').scrollIntoView()")
    expect(chart).to_be_in_viewport(ratio=0.99)
    one_line = "e => e.scrollWidth <= e.clientWidth && e.clientHeight < 30"
    assert page.get_by_text("step 60,").evaluate(one_line)
    page.set_viewport_size(wide)
    chart.scroll_into_view_if_needed()
    settled(chart)
    inside = chart.locator("rect.plotarea_events").bounding_box()
    assert inside is not None
    corners = ((0.55, 0.04), (0.55, 0.96), (0.97, 0.96), (0.97, 0.04), (0.56, 0.04))
    places = [(inside["x"] + u * inside["width"], inside["y"] + v * inside["height"])
              for u, v in corners]  # fmt: skip
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=6)
    page.mouse.up()
    expect(page.get_by_text("The 10 of 20 in the lasso.")).to_be_visible()
    tiles = page.locator(".mx-gallery .mx-tile:visible")
    expect(tiles).to_have_count(10)
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(page.get_by_text("in the lasso.")).to_have_count(0)
    few = page.get_by_role("button", name="All 20")
    few.click()
    expect(tiles).to_have_count(20)

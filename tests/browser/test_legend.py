"""The legend of the plane, and what a glyph says under the pointer."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.steps import Explorer, settled

SIZES = ((1280, 720), (800, 1000))


def test_the_legend_opens_by_mouse_and_keys_and_a_glyph_says_what_it_is(circle: Explorer) -> None:
    circle.press("4 Explain")
    circle.press("Which can become two?")
    for width, height in SIZES:
        circle.page.set_viewport_size({"width": width, "height": height})
        settled(circle.plane)
        opens_and_says(circle)


def opens_and_says(app: Explorer) -> None:
    """The legend opens by mouse and keys, and says what the glyph under the pointer is."""
    page = app.page
    chip, rows = page.locator(".mx-legend-chip"), page.locator(".mx-legend li")
    expect(page.locator(".mx-legend")).to_be_hidden()
    chip.click()
    expect(rows.first).to_be_visible()
    glyphs = rows.evaluate_all("all => all.map(row => row.dataset.glyph)")
    assert "truth" in glyphs and len(glyphs) == len(set(glyphs))
    pictures = rows.evaluate_all("all => all.map(r => r.querySelector('canvas').toDataURL())")
    assert len(set(pictures)) == len(pictures) and all(
        rows.evaluate_all("all => all.map(row => row.title)")
    )
    box, plane = page.locator(".mx-legend").bounding_box(), app.plane.bounding_box()
    assert box["x"] >= plane["x"] and box["y"] >= plane["y"]
    page.keyboard.press("Escape")
    expect(page.locator(".mx-legend")).to_be_hidden()
    expect(chip).to_be_focused()
    page.keyboard.press("Enter")
    expect(rows.first).to_be_visible()
    page.mouse.click(plane["x"] - 4, plane["y"] + plane["height"] / 2)  # elsewhere
    expect(page.locator(".mx-legend")).to_be_hidden()
    at = page.evaluate(
        "() => [...document.querySelector('.mx-plane canvas').mxFrame.points.data.slice(0, 2)]"
    )
    page.mouse.move(plane["x"] + (at[0] + 1) / 2 * plane["width"],
                    plane["y"] + (1 - at[1]) / 2 * plane["height"])  # fmt: skip
    sentence = rows.evaluate_all("all => all.map(row => row.title)")
    expect(app.plane).not_to_have_attribute("title", "")
    assert any(app.plane.get_attribute("title").endswith(one) for one in sentence)

"""A link by a real mouse: copied here, opened there, the same numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from explorer import Run, TrainConfig, link_of, preset
from explorer.page.sharing.words import only_here
from explorer.serve import server
from tests.browser.steps import Explorer, know_the_marks
from tests.browser.test_files import a_run_file_opens_elsewhere
from tests.browser.test_keeping import (
    KEEPS_NOTHING,
    a_browser_without_storage_says_so_once_and_nothing_breaks,
)
from tests.browser.test_playing import the_file_of_a_run_plays_it

LEFT = "() => document.querySelector('.mx-aside-note')?.innerText.startsWith('Opened')"


def test_a_link_and_a_run_file_open_for_another_visitor_with_the_same_numbers(
    app: Explorer, new_page: Callable[..., Page], voila_server: server.Server, tmp_path: Path
) -> None:
    page = app.page
    app.draw_twelve()
    app.press("Step × n")
    expect(app.where).to_have_text("step 100")
    said = page.locator(".mx-title").inner_text()
    app.fold("Share")
    csv = app.csv()
    there = new_page()
    the_file_of_a_run_plays_it(app, said, there, tmp_path)
    line = page.get_by_label("Link to this moment")
    expect(line).to_have_value(re.compile(re.escape(f"{voila_server.url}#mx1.")))
    expect(page.get_by_text(only_here(""))).to_be_visible()  # the server's address is 127.0.0.1
    # Where the clipboard is forbidden the line is selected and copied as of old.
    page.evaluate("() => Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    copy = app.button("Copy link")
    copy.click()
    expect(page.get_by_role("button", name=re.compile("Copied|Press Ctrl"))).to_be_visible()
    assert page.evaluate("() => getSelection().toString()") == line.input_value()
    link = line.input_value()
    assert len(link) < 2000

    know_the_marks(there)
    there.goto(link, wait_until="commit")
    there.wait_for_function(LEFT)
    other = Explorer(there)
    expect(other.where).to_have_text("step 100")
    expect(there.locator(".mx-title")).to_have_text(said)
    other.fold("Share")
    assert other.csv() == csv
    # A damaged one, put into the address of an open page, changes nothing.
    there.evaluate("() => { location.hash = location.hash.slice(1, -9); }")
    expect(other.message).to_contain_text("Copy it again")
    assert other.csv() == csv
    assert other.saved("Picture: PDF").startswith(b"%PDF")
    assert b"mx1." in other.saved("Run: Report")
    video = other.saved("Training: Video")
    assert len(video) > 10_000 and (video[4:8] == b"ftyp" or video[:4] == b"\x1a\x45\xdf\xa3")
    expect(other.message).to_be_hidden()
    a_run_file_opens_elsewhere(app, other, tmp_path)


def test_a_link_waits_at_a_full_room_and_a_browser_without_storage_says_so(
    new_page: Callable[..., Page], console_errors: list[str]
) -> None:
    with server.start(port=0, class_size=1) as full:
        first, second = new_page(), new_page()
        first.goto(f"{full.url}voila/render/lessons.ipynb")
        expect(first.locator(".mx-index a").first).to_be_visible()
        run = Run(preset("xor"), TrainConfig(widths=(10,)), stage="train", steps=(70, 0))
        know_the_marks(second)
        second.add_init_script(KEEPS_NOTHING)
        second.goto(link_of(run, full.url), wait_until="commit")
        expect(second.get_by_role("alert")).to_contain_text("full")
        first.goto("about:blank")
        expect(Explorer(second).where).to_have_text("step 70")
        first.close()
        a_browser_without_storage_says_so_once_and_nothing_breaks(second)
    assert all("503" in error for error in console_errors)  # the room said that it is full
    console_errors.clear()

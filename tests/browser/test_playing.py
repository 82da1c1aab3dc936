"""A page that plays without Python, opened from a disk: by mouse and keys, whole and damaged."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from explorer.page.recording import document
from explorer.page.recording.frames import RecordedFrame
from explorer.page.recording.lesson import lesson_that_plays
from explorer.page.recording.packing import recording
from explorer.page.stages.landscape.words import unexplained_share
from tests.browser.steps import Explorer, barriers
from tests.page.test_document import MARKUP, data_of, small_lesson, small_run, with_starts
from tests.page.test_recording import read
from tests.serve.visits import within

LAST = re.compile(r"^step 6$")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run as such a page."""
    path = tmp_path_factory.mktemp("playing") / "run.html"
    path.write_text(document.page_that_plays(small_run()), encoding="utf-8")
    return path


def opened(page: Page, text: str, folder: Path) -> Page:
    """The page of a file with this text."""
    path = folder / "other.html"
    path.write_text(text, encoding="utf-8")
    page.goto(path.as_uri())
    return page


def where(page: Page) -> str:
    return page.locator(".mx-where").inner_text()


def assert_shown(page: Page, arrays: dict[str, Any]) -> None:
    """The browser has read these arrays of the recording."""
    shown = page.evaluate(
        "() => Object.fromEntries("
        "Object.entries(document.querySelector('.mx-plane canvas').mxFrame)"
        ".filter(([, v]) => v?.shape).map(([name, v]) => [name, [...v.data]]))"
    )
    assert shown.keys() == arrays.keys()
    for name, array in arrays.items():  # a gap comes as None
        np.testing.assert_array_equal(np.array(shown[name], dtype=float), array.ravel())


def test_a_run_and_a_lesson_play_and_a_damaged_file_runs_nothing(
    page: Page, file: Path, tmp_path: Path, console_errors: list[str]
) -> None:
    it_plays_and_is_scrubbed_by_mouse_and_keys(page, file)
    for scheme in ("light", "dark"):
        it_has_no_barriers_and_follows_the_theme(page, file, scheme)
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    a_lesson_plays_where_its_words_say_and_folds_its_answers(page, tmp_path)
    what_is_cut_short_or_of_a_later_version_says_one_sentence(page, file, tmp_path, console_errors)
    markup_in_every_word_stays_words(page, file, tmp_path)


# Whether it has played by itself, however late one looks.
BEGUN = """new MutationObserver(() => {
  if (document.querySelector('[aria-label="Pause"]')) window.begun = true;
}).observe(document, {subtree: true, childList: true, attributes: true})"""


def it_plays_and_is_scrubbed_by_mouse_and_keys(page: Page, file: Path) -> None:
    page.add_init_script(BEGUN)
    page.goto(file.as_uri())
    time, play = page.get_by_label("Time"), page.get_by_role("button", name="Play", exact=True)
    expect(page.locator(".mx-where")).to_have_text(LAST)
    assert page.evaluate("window.begun"), "it begins by itself"
    expect(play).to_be_visible()
    expect(page.locator(".mx-title")).to_contain_text("of 8")
    assert page.evaluate(
        "() => document.querySelector('.mx-plane canvas').mxFrame.claims !== undefined"
    )
    packed = base64.b64decode(data_of(file.read_text(encoding="utf-8"))["recording"])
    assert_shown(page, read(packed)[-1]["arrays"])
    page.keyboard.press("Home")
    expect(page.locator(".mx-where")).to_have_text("")
    page.get_by_role("button", name="Train").click()
    expect(page.locator(".mx-where")).to_have_text("step 0")
    page.keyboard.press("ArrowRight")
    one_on = where(page)
    assert one_on not in ("step 0", "")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".mx-where")).to_have_text("step 0")
    box = time.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    expect(page.locator(".mx-where")).to_have_text(LAST)
    page.get_by_label("Speed").select_option("0.25 ×")
    page.locator(".mx-title").click()
    page.keyboard.press(" ")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".mx-where")).to_have_text(re.compile("^(step [0-5])?$"))  # once more
    page.keyboard.press("End")
    expect(page.locator(".mx-where")).to_have_text(LAST)
    plot = page.locator(".mx-chart-plot").bounding_box()
    page.mouse.click(plot["x"] + 60, plot["y"] + plot["height"] / 2)
    expect(page.locator(".mx-where")).to_have_text(re.compile("step [0-5]$"))
    page.get_by_text("Do it again").click()
    expect(page.get_by_label("Link", exact=True)).to_have_value(re.compile(r"^mx1\."))
    page.get_by_text("Legend").click()
    expect(page.locator(".mx-legend li").first).to_be_visible()


def a_lesson_plays_where_its_words_say_and_folds_its_answers(page: Page, tmp_path: Path) -> None:
    opened(page, lesson_that_plays(small_lesson()), tmp_path)
    expect(page.get_by_role("heading", level=1)).to_have_text("Mine")
    expect(page.locator(".mx-told-step")).to_have_count(3)
    expect(page.locator(".mx-told")).to_have_count(1)  # a picture only where a step names a run
    page.locator(".mx-told .mx-plane").scroll_into_view_if_needed()
    step, play = page.locator(".mx-where"), page.get_by_role("button", name="Play picture 1")
    expect(step).to_have_text("step 40")  # it begins by itself, and comes to its end
    expect(play).to_be_visible()
    page.get_by_label("Time of picture 1").focus()
    page.keyboard.press("Home")
    expect(step).to_have_text("")
    answer = page.locator(".mx-lesson-answer")
    expect(answer).to_be_hidden()
    page.locator("summary", has_text="Answer").click()
    expect(answer).to_have_text("Because.")
    assert barriers(page) == []


def it_has_no_barriers_and_follows_the_theme(page: Page, file: Path, scheme: str) -> None:
    page.evaluate("() => { try { localStorage.clear(); } catch {} }")  # no theme was chosen
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.goto(file.as_uri())
    expect(page.locator(".mx-where")).to_have_text(LAST)  # nobody asked for motion
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    for fold in page.locator("summary").all():
        fold.click()
    assert barriers(page) == []
    page.get_by_role("button", name="Theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def what_is_cut_short_or_of_a_later_version_says_one_sentence(
    page: Page, file: Path, tmp_path: Path, console_errors: list[str]
) -> None:
    whole = file.read_text(encoding="utf-8")
    data = data_of(whole)
    data_at = whole.index('id="mx-data"') + 1000
    for end in (data_at, whole.index('id="mx-code"') + 1000, len(whole) - 40):
        opened(page, whole[:end], tmp_path)
        expect(page.locator("#mx-fault")).to_have_text(document.CUT)
        expect(page.locator(".mx-app")).to_have_count(0)
    assert not console_errors
    later = document.document_of({**data, "version": document.VERSION + 1})
    short = document.document_of(
        {**data, "recording": data["recording"][: len(data["recording"]) // 8 * 4]}
    )
    other = document.document_of({**data, "format": "another"})
    for text, sentence in (
        (later, "later version"),
        (short, "cannot be read"),
        (other, "cannot be read"),
    ):
        opened(page, text, tmp_path)
        expect(page.locator("#mx-fault")).to_contain_text(sentence)
        expect(page.locator(".mx-app")).to_have_count(0)


def with_markup(value: Any) -> Any:
    """The value with markup in place of every word."""
    if isinstance(value, str):
        return MARKUP
    if isinstance(value, list):
        return [with_markup(one) for one in value]
    if isinstance(value, dict):
        return {name: with_markup(one) for name, one in value.items()}
    return value


def markup_in_every_word_stays_words(page: Page, file: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    page.on("dialog", lambda one: (asked.append(one.message), one.dismiss()))
    data = data_of(file.read_text(encoding="utf-8"))
    told = dict.fromkeys(("title", "words", "still", "tone", "step"), MARKUP)
    points = np.array([[0.1, 0.2, 1.0, -1.0, 0.0]])
    values = {"view": [0, 0, 2, 2], "flat": False, "hollow": False, "margins": False,
              "texts": [[0.0, 0.0, MARKUP]], "legend": [["point", MARKUP, MARKUP]]}  # fmt: skip
    every = [
        RecordedFrame(scene, {"points": points}, values, told, 1, ((MARKUP, MARKUP),))
        for scene in ("train", "end")
    ]
    bad = {**data, "title": MARKUP, "what": MARKUP, "about": with_markup(data["about"]),
           "recording": base64.b64encode(recording(every)).decode()}  # fmt: skip
    for chart in bad["charts"].values():
        for name in ("title", "note", "foot", "label", "tips"):
            chart["values"][name] = with_markup(chart["values"][name])
    opened(page, document.document_of(bad), tmp_path)
    expect(page.locator(".mx-title")).to_have_text(MARKUP)
    for fold in page.locator("summary").all():
        fold.click()
    page.get_by_text("Legend").click()  # beside the plane, it stands over them
    expect(page.locator("img")).to_have_count(0)
    assert page.evaluate("() => [...document.scripts].map((s) => s.type)") == [
        "application/json", "application/gzip", "", "",
    ]  # fmt: skip
    assert asked == []


def test_the_triangle_is_dragged_over_what_was_computed_and_its_runs_roll(
    page: Page, tmp_path: Path
) -> None:
    text, made = with_starts()
    page.add_init_script(BEGUN)
    opened(page, text, tmp_path)
    page.get_by_role("button", name="Landscape").click()
    title = page.locator(".mx-title")
    whole = title.inner_text()
    assert "run" in whole
    packed = base64.b64decode(data_of(text)["landscape"]["recording"])
    assert_shown(page, read(packed)[0]["arrays"])
    pad = page.locator(".mx-played-triangle [role=application]")
    box = pad.bounding_box()
    at = (box["x"] + box["width"] / 2, box["y"] + 0.8 * box["height"])  # clear of all marks
    page.mouse.move(*at)
    page.mouse.down()
    page.mouse.move(at[0] + 12, at[1] - 9, steps=4)
    page.mouse.up()
    expect(title).to_have_text(whole)
    pad.focus()
    page.keyboard.press("t")  # the truth
    energy = made.held.landscape.energy((1.0, 0.0, 0.0))
    said = page.locator(".mx-played-triangle [aria-live]")
    expect(said).to_contain_text(f"unexplained here {unexplained_share(energy)}")
    expect(title).to_have_text(whole)  # a drag leaves the headline
    title.click()
    page.evaluate("window.begun = false")
    page.keyboard.press(" ")
    assert within(30, lambda: page.evaluate("window.begun"))  # by no eval in the page: its policy
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    expect(page.locator(".mx-where")).to_have_text(re.compile(r"step [1-9]"))
    page.get_by_role("button", name="Train").click()
    expect(page.locator(".mx-where")).to_have_text("step 0")
    assert barriers(page) == []


def the_file_of_a_run_plays_it(app: Explorer, said: str, page: Page, tmp_path: Path) -> None:
    """Share, which is open, saves the run on screen, of a hundred steps: test_sharing.py."""
    content = app.saved("Run: A page that plays")
    opened(page, content.decode(), tmp_path)
    expect(page.locator(".mx-where")).to_have_text("step 100")
    expect(page.locator(".mx-title")).to_have_text(said)

"""The story, scrolled by the mouse: it plays, stops, asks and shows; calm, on paper, cut short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from explorer.page.recording.document import CUT
from explorer.page.recording.story import story_page
from explorer.serve.server import Server
from tests.browser.conftest import keep
from tests.browser.steps import barriers

PLAYS, STANDS = re.compile(r"^Pause picture"), re.compile(r"^Play picture")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "story.html"
    path.write_text(story_page(), encoding="utf-8")
    return path


def anew(page: Page, file: Path) -> None:
    """Open the story at its top, not at the scene of a hash."""
    page.goto("about:blank")
    page.goto(file.as_uri())


def scroll_to(page: Page, scene: Locator) -> None:
    """Turn the wheel until the plane of a scene is in the middle."""
    page.mouse.move(300, 400)
    for _ in range(60):
        box = scene.locator(".mx-plane").bounding_box()
        away = box["y"] + box["height"] / 2 - 380
        if abs(away) < 40:
            return
        page.mouse.wheel(0, max(-500, min(500, away)))
        page.wait_for_timeout(60)


def arrow_keys_turn_to_the_scene_before_and_after(page: Page) -> None:
    link = page.get_by_role("navigation", name="Scenes").get_by_role("link")
    for key, i in (("", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
        if key:
            page.keyboard.press(key)
        expect(link.nth(i)).to_have_attribute("aria-current", "true")


def test_each_scene_stands_whole_and_still_in_a_file_and_on_a_server_or_it_is_one_sentence(
    page: Page, file: Path, tmp_path: Path, voila_server: Server
) -> None:
    """On a projector, a phone and paper; and a file that was cut short."""
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(reduced_motion="reduce")  # a link or a key jumps there at once
    anew(page, file)
    arrow_keys_turn_to_the_scene_before_and_after(page)
    anew(page, file)
    scenes_stand_whole_on_a_projector(page)
    calm_and_on_paper_each_scene_stands_still(page, file)
    page.emulate_media(media="screen")
    cut_short_it_is_one_sentence(page, file, tmp_path)
    a_server_has_it_without_a_kernel(page, voila_server)


def scenes_stand_whole_on_a_projector(page: Page) -> None:
    for part in (".mx-guess", ".mx-lesson-fold", "figcaption"):  # at first sight
        expect(page.locator(f"#margin {part}").first).to_be_in_viewport(ratio=1)
    page.get_by_role("navigation", name="Scenes").get_by_role("link", name="Theft").click()
    page.locator("#theft").get_by_role("button", name="All of them").click()
    for part in (".mx-guess", ".mx-lesson-fold"):  # with its answer
        expect(page.locator(f"#theft {part}").first).to_be_in_viewport(ratio=1)
    for scene in page.locator(".mx-scene").all():  # with its answer it is one screen at most
        scene.locator("summary").click()
        scene.evaluate("el => el.scrollIntoView()")
        expect(scene.locator("figcaption")).to_be_in_viewport(ratio=1)
        assert scene.bounding_box()["height"] <= 720 - 52, "the screen below the head"


def test_one_scrolls_it_plays_what_is_on_screen_sees_guesses_and_is_shown(
    page: Page, file: Path
) -> None:
    a_picture_plays_only_while_its_sentence_is_on_screen(page, file)
    one_scrolls_it_sees_guesses_and_is_shown(page, file)


def a_picture_plays_only_while_its_sentence_is_on_screen(page: Page, file: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    anew(page, file)
    page.evaluate("() => { document.documentElement.style.scrollBehavior = 'auto'; }")
    scene = page.locator("#sum")
    play, told = scene.locator(".mx-play"), scene.locator("figcaption b")
    top = "el => scrollTo(0, el.getBoundingClientRect().bottom + scrollY - innerHeight + {})"
    told.evaluate(top.replace("{}", "-4"))  # its plane is in sight, the sentence just below
    expect(scene.locator(".mx-plane")).to_be_in_viewport(ratio=0.9)
    page.wait_for_timeout(400)
    expect(play).to_have_attribute("aria-label", STANDS)
    told.evaluate(top.replace("{}", "4"))
    expect(play).to_have_attribute("aria-label", PLAYS)


def one_scrolls_it_sees_guesses_and_is_shown(page: Page, file: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": 760})
    anew(page, file)
    first, second = page.locator("#theft"), page.locator("#failure")
    play, guess = first.locator(".mx-play"), first.locator(".mx-guess")
    link = page.get_by_role("navigation", name="Scenes").get_by_role("link", name="Theft")
    expect(page.locator(".mx-scene")).to_have_count(9)
    drawn = "document.querySelector('#theft .mx-plane canvas').mxFrame.points.shape[0]"
    assert page.evaluate(drawn) == 20, "before it plays it stands with all of its points"
    scroll_to(page, first)
    expect(play).to_have_attribute("aria-label", PLAYS)  # it begins by itself
    expect(page.locator(".mx-head")).not_to_be_in_viewport()  # out of the way of what comes
    scroll_to(page, second)
    assert page.evaluate(drawn) == 20, "nor is it left half drawn"
    expect(play).to_have_attribute("aria-label", STANDS)  # and stops when it has left
    scroll_to(page, first)
    expect(page.locator(".mx-head")).to_be_in_viewport(ratio=1)  # back as one goes up
    expect(guess).to_have_class(re.compile("now"))  # the question stops it
    expect(play).to_have_attribute("aria-label", STANDS)
    expect(first.locator(".mx-where")).to_have_text("step 20,000")
    expect(first.locator(".mx-lesson-answer").first).to_be_hidden()
    expect(link).not_to_have_class(re.compile("good"))  # no tick without a guess
    keep(page, "story-asks")
    term = first.get_by_role("button", name="candidates")
    term.hover()
    lit = "term => document.querySelector('#theft .mx-plane canvas').mxLit.term === term"
    page.wait_for_function(lit, arg="candidate")
    page.mouse.move(300, 400)
    page.wait_for_function(lit, arg="")
    first.get_by_role("button", name="All of them").click()
    expect(link).to_have_class(re.compile("good"))
    expect(first.locator(".mx-lesson-answer").first).to_be_visible()
    expect(first.locator("figcaption b")).to_have_text("20 of 20 points recovered")
    expect(first.locator(".mx-where")).to_have_text("step 2,000")
    keep(page, "story-shows")
    fold = page.locator("#margin summary")
    fold.click()  # an answer without a guess: it is shown, and no tick is given
    expect(page.locator("#margin .mx-where")).to_have_text("step 12,000", timeout=15_000)
    expect(page.get_by_role("link", name="Margin")).not_to_have_class(re.compile("good"))
    expect(page.locator(".mx-onward")).to_contain_text("margin-explorer serve")
    assert barriers(page) == []


def calm_and_on_paper_each_scene_stands_still(page: Page, file: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(reduced_motion="reduce", color_scheme="dark")
    anew(page, file)
    expect(page.locator("#theft .mx-where")).to_have_text("step 20,000")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert barriers(page) == []
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".mx-scene details[open]")).to_have_count(9)
    expect(page.locator("#theft figcaption b")).to_have_text("20 of 20 points recovered")
    expect(page.locator("#landscape figcaption b")).to_contain_text("No run ends at the truth")
    page.set_viewport_size({"width": 718, "height": 1040})  # of A4
    page.emulate_media(media="print")
    for scene in page.locator(".mx-scene").all():  # words and picture side by side
        words, plane = (scene.locator(part).first.bounding_box() for part in ("h2", ".mx-plane"))
        assert words["x"] + words["width"] <= plane["x"]


def cut_short_it_is_one_sentence(page: Page, file: Path, tmp_path: Path) -> None:
    text = file.read_text(encoding="utf-8")
    path = tmp_path / "short.html"
    path.write_text(text[: len(text) // 2], encoding="utf-8")
    page.goto(path.as_uri())
    assert page.locator("body").inner_text().strip() == CUT


def a_server_has_it_without_a_kernel(page: Page, voila_server: Server) -> None:
    page.goto(f"{voila_server.url}story", timeout=60_000)
    expect(page.locator(".mx-scene")).to_have_count(9)
    expect(page.get_by_role("link", name="Open the live page")).to_have_attribute("href", "/")

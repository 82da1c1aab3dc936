"""The story: its words say nothing that its recordings do not show, and it is one small file."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from typer.testing import CliRunner

from explorer import cli
from explorer.page.recording.story import KEPT, WORDS, story_page
from explorer.page.stages.landscape import words
from explorer.page.stages.landscape.energy_words import ENDS, MARKS
from scripts.story import RECORDERS
from tests.page.test_document import data_of
from tests.page.test_recording import read

SAID = ("title", "words", "still", "tone")
MOST = 200_000  # bytes of a scene
# What a question names beforehand: a radius, how many runs, a step.
PLANNED = {"theft": {"0.03"}, "landscape": {"21"}, "defence": {"400"}}
NUMBER = re.compile(r"\d(?:[\d.,]*\d)?(?:e-\d+)?")


@cache
def page() -> str:
    return story_page()


def scenes() -> list[dict[str, Any]]:
    return data_of(page())["scenes"]


def strings(value: Any) -> Iterator[str]:
    """Every word and number that a frame, or a part of it, says."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from () if name in ("arrays", "values") else strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    else:
        yield str(value)


def numbers_in(texts: Any) -> set[str]:
    return {number for text in strings(texts) for number in NUMBER.findall(text)}


@pytest.mark.parametrize("scene", scenes(), ids=lambda scene: scene["key"])
def test_every_number_in_a_text_is_one_of_its_record(scene: dict[str, Any]) -> None:
    frames = read(base64.b64decode(scene["recording"]))
    shown = numbers_in(frames)
    if scene["starts"]:
        starts = scene["starts"]
        shown |= numbers_in(read(base64.b64decode(starts["recording"]))[0])
        shown |= numbers_in(starts["counts"]) | {str(len(starts["runs"]))}
    said = numbers_in([scene["words"], scene["question"], scene["answer"]])
    assert said and said <= shown, said - shown
    told = numbers_in([scene["words"], scene["question"]]) - PLANNED.get(scene["key"], set())
    before = numbers_in(frames[: scene["asked"]])
    assert told <= before, "what is said before the question has been seen by then"
    assert 0 < scene["asked"] <= len(frames) and 0 <= scene["right"] < len(scene["options"])


def test_no_number_is_written_by_hand() -> None:
    for scene in json.loads(WORDS.read_text(encoding="utf-8"))["scenes"].values():
        texts = [scene[name] for name in ("name", "title", "words", "question", "answer", "alt")]
        assert numbers_in([*texts, scene["options"]]) == set()


def test_a_scene_is_small_and_the_file_asks_no_host() -> None:
    assert all(len(json.dumps(scene).encode()) < MOST for scene in scenes()) and len(scenes()) == 9
    asked = set(re.findall(r"https?://[\w.]+", page())) - {"http://www.w3.org"}
    assert not asked and "default-src 'none'" in page()


def test_its_recordings_are_what_the_recorders_make() -> None:
    """Of the scenes that take seconds, with their words; scripts/story.py makes them all again."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert list(kept) == list(RECORDERS)
    for key in ("margin", "sum", "failure", "proof"):
        made, held = RECORDERS[key](), read(base64.b64decode(kept[key]["recording"]))
        assert made.facts == kept[key]["facts"], "run scripts/story.py"
        said = [{name: frame[name] for name in SAID} for frame in held]
        assert said == [{name: frame.words[name] for name in SAID} for frame in made.frames]
    named = [tuple(row[:3]) for row in kept["landscape"]["starts"]["counts"]]
    assert named == [(mark, colour, name) for name, (mark, colour) in zip(ENDS, MARKS, strict=True)]


def test_the_landscape_says_what_the_page_says() -> None:
    starts = json.loads(KEPT.read_text(encoding="utf-8"))["landscape"]["starts"]
    said = (f"{words.UNEXPLAINED} {words.AT_START}", words.LABEL, words.unit("kkt", "log"))
    assert (starts["title"], starts["label"], starts["unit"]) == said


def test_the_verb_exports_it(tmp_path: Any) -> None:
    said = CliRunner().invoke(cli.app, ["export", "story", "--out", str(tmp_path / "story.html")])
    assert said.exit_code == 0, said.output
    assert (tmp_path / "story.html").read_text(encoding="utf-8") == page()

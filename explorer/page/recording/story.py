"""The story: nine recorded scenes that one scrolls, with a prediction before each reveal.

scripts/story.py makes the recordings from seeds and keeps them in `story.json`. A page of them and
of the words in `story_words.json` is one file of HTML, as all that plays. No number is written in
those words: a name in braces stands for one of the scene's own recording (its `facts`), so that
what is said is true of what is seen.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from explorer.page.recording.document import FORMAT, VERSION, document_of

KEPT = Path(__file__).with_name("story.json")  # made by scripts/story.py
WORDS = KEPT.with_name("story_words.json")


def story_page(more: str = "") -> str:
    """Return the story as one file of HTML that plays without Python.

    Args:
        more: address of the page that leads on, beside the file; "" for none.

    Example:
        >>> from explorer.page.recording.story import story_page
        >>> story_page()[:15]
        '<!doctype html>'
    """
    kept, words = (json.loads(path.read_text(encoding="utf-8")) for path in (KEPT, WORDS))
    scenes = [
        {"key": key, **scene_words(words["scenes"][key], made.pop("facts")), **made}
        for key, made in kept.items()
    ]
    data = {"format": FORMAT, "version": VERSION, "title": words["title"], "line": words["line"],
            "more": more, "scenes": scenes}  # fmt: skip
    return document_of(data, "story")


def scene_words(told: dict[str, Any], facts: dict[str, str]) -> dict[str, Any]:
    """Return the words of a scene with its own numbers in them, paragraphs apart."""
    right = told["options"].index(facts["letter"]) if "letter" in facts else told["right"]
    said = {name: told[name].format_map(facts) for name in ("words", "question", "answer")}
    apart = {name: said[name].split("\n\n") for name in ("words", "answer")}
    return {"note": "", **told, **said, **apart, "right": right}

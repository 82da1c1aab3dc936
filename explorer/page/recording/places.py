"""The page that plays of what a person names: a file, a link, a lesson, the story."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from explorer.engine.files import safe_name
from explorer.engine.progress import Progress
from explorer.engine.store import Run
from explorer.page.recording.document import page_that_plays
from explorer.page.recording.story import story_page
from explorer.research import runs
from explorer.research.repeat import share_of_steps, with_states
from explorer.research.state import is_link, read_link

STORY = "story"  # nine scenes that were recorded
Bar = Callable[[str], AbstractContextManager[Progress]]  # what shows how far the named work is


def page_of(place: str, landscape: bool, bar: Bar) -> str:
    """Return the page of a place as one file of HTML.

    Args:
        place: a saved run, a link, which is run again, the file or link of a lesson, or `STORY`.
        landscape: whether a run's starts are computed.
        bar: shows how far the work is.

    Raises:
        ValueError: for weights without a run, and for what is no such place.
    """
    if place == STORY:
        return story_page()
    if place.lower().endswith(".json") or "mxl1." in place:
        return _lesson_page(place, bar)
    run = _run_of(place, bar)
    with bar("page") as progress:
        return page_that_plays(run, progress=progress, starts=landscape)


def _lesson_page(place: str, bar: Bar) -> str:
    """Return the page of a lesson, which is checked by the page's own commands: they ask traitlets.

    So these are imported here alone: runs and the story play without.
    """
    from explorer.page.recording.lesson import lesson_of, lesson_that_plays

    lesson = lesson_of(place)
    with bar("page") as progress:
        return lesson_that_plays(lesson, progress)


def _run_of(place: str, bar: Bar) -> Run:
    """Return the run of a file, or that of a link, run again."""
    if is_link(place):
        run = read_link(place)
        with bar("repeat") as progress:
            return runs.in_own_unit(with_states(run, share_of_steps(run, progress)))
    held, _, _ = runs.open_run(Path(place))
    if held is None:
        raise ValueError(
            f"{safe_name(Path(place).name)} holds weights, but no run. Save one by `train`."
        )
    return held

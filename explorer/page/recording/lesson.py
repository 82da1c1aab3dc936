"""A lesson as one file of HTML: words, pictures that play where the text says, folded answers.

What a step puts the page to is recorded as a run is, and played by the player of all recordings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer.engine.charts import Chart
from explorer.engine.energy.questions import STANDARD, Answers, MapConfig, MapQuestion
from explorer.engine.energy.starts import mix_weights
from explorer.engine.files import read_file
from explorer.engine.progress import Progress, no_progress, with_progress
from explorer.engine.roster import by_key
from explorer.engine.store import Run
from explorer.page.aim import point_map
from explorer.page.frame import STAGES, Frame, first_candidates
from explorer.page.history import History
from explorer.page.lessons.file import Lesson, State, Step, is_link, link_of, read, read_link
from explorer.page.lessons.goals import ELSEWHERE, TURNED
from explorer.page.plane.weights import shown_of
from explorer.page.recording.band import band_arrays
from explorer.page.recording.document import FORMAT, VERSION, chart_data, document_of
from explorer.page.recording.frames import config_of, frames_of, pictures, recorded_axes
from explorer.page.recording.images import task_frames
from explorer.page.recording.landscape import starts_data, starts_of, with_aim
from explorer.page.recording.packing import recording_text
from explorer.page.recording.stages import compared_frames, explained_frames
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.charts import margins_chart, unexplained_chart
from explorer.research.repeat import with_states
from explorer.research.runs import in_own_unit

DRAWN, MOST = 8, 30  # frames in which points appear, of training and of the attack; arbitrary
TRAINED = 2_000  # steps that Play comes to where a step begins with training; arbitrary
NO_PICTURE: dict[str, Any] = {"recording": "", "starts": None}  # of a step of words
STANDS = 12  # frames of a map; arbitrary
STATES = 60  # kept of an attack that plans no steps; arbitrary


def lesson_that_plays(lesson: Lesson, progress: Progress = no_progress) -> str:
    """Return a lesson as one file of HTML that plays without Python.

    Args:
        lesson: of the course, or out of a file.
        progress: hears of the work, and may end it.

    Raises:
        StoreError: where a step holds an attack on other weights than it trains.

    Example:
        >>> from explorer.page.lessons.file import Lesson, Step
        >>> from explorer.page.recording.lesson import lesson_that_plays
        >>> lesson_that_plays(Lesson(title="Mine", steps=(Step(caption="Read."),)))[:15]
        '<!doctype html>'
    """
    steps = [
        {
            "caption": step.caption.split("\n\n"), "question": step.question,
            "answer": step.answer, "goal": "" if step.goal is None else step.goal.words,
            **_step_parts(step, lesson.pages),
        }
        for step in with_progress(iter(lesson.steps), len(lesson.steps), progress)
    ]  # fmt: skip
    data: dict[str, Any] = {
        "format": FORMAT, "version": VERSION, "title": lesson.title, "line": lesson.line,
        "steps": steps, "link": link_of(lesson),
    }  # fmt: skip
    return document_of(data, "lesson")


def lesson_of(place: str) -> Lesson:
    """Return the lesson of a file or a link.

    Raises:
        LessonError: where it holds none, in one sentence.
    """
    return read_link(place) if is_link(place) else read(read_file(Path(place)))


def _step_parts(step: Step, pages: Sequence[str]) -> dict[str, Any]:
    """Return the recording of what a step asks for, and the landscape where it shows that.

    `NO_PICTURE` where nothing is drawn there. `pages` belong to the lesson.
    """
    if step.goal is not None and step.goal.name == ELSEWHERE and "digits" in pages:
        return {**NO_PICTURE, "recording": recording_text(task_frames(MOST))}
    state = played_state(step)
    run = None if state is None else played_run(state)
    if state is None or run is None or not run.dataset.n:
        return NO_PICTURE
    made = in_own_unit(with_states(run))
    frames, axes = list(frames_of(made, drawn=DRAWN, most=MOST)), recorded_axes(made)
    end, charts = frames[-1][1], training_charts(frames, step.cards)
    if state.stage == "landscape" and state.map == "point":
        frames += [("landscape", _with_map(end, state, axes))] * STANDS
    if state.stage == "explain":
        goal = "" if step.goal is None else step.goal.name
        frames += [("explain", frame) for frame in explained_frames(end, axes, goal)]
    if state.stage == "arena":
        frames += [("arena", frame) for frame in compared_frames(end, run.seed)]
    told = list(pictures(iter(frames), axes))
    for i, chart in enumerate(charts):
        if chart is not None:
            told[i] = replace(told[i], values={**told[i].values, "chart": chart_data(chart)})
    if state.weights:
        bands = (band_arrays(shown_of(f, config_of(made)), axes) for _, f in frames)
        told = [replace(p, arrays={**p.arrays, **b}) for p, b in zip(told, bands, strict=True)]
    starts = None
    if state.stage == "landscape" and state.map == "starts":
        at = list(mix_weights(*state.mix))  # where the handle stands
        known = starts_of(replace(made, mix=None), end)
        starts = {**starts_data(known, end, axes), "at": at}
    return {"recording": recording_text(told), "starts": starts}


def _with_map(end: Frame, state: State, axes: Axes) -> Frame:
    """Return the frame with the map of its step's point."""
    aimed = with_aim(end)
    assert aimed.target is not None and aimed.truth is not None
    held, index = first_candidates(aimed.target, aimed.truth), state.point - 1
    asked = MapQuestion(
        "point", aimed.target.net, aimed.truth, aimed.heldout, held.x, index,
        MapConfig(extent=float(axes.half.max())),
    )  # fmt: skip
    picture = Answers().answer(asked, STANDARD)
    return replace(
        aimed, stage="landscape", map_kind="point", landscape=History(replace(held, mapped=index)),
        point_map=point_map(picture, held.x[index].numpy()),
    )  # fmt: skip


def training_charts(
    frames: Sequence[tuple[str, Frame]], cards: Sequence[str]
) -> list[Chart | None]:
    """Return the chart of training that a step has in sight, for each frame; None for none."""
    known: list[tuple[int, float]] = []
    charts: list[Chart | None] = []
    last = max(frame.training.t for _, frame in frames)
    for scene, frame in frames:
        part, chart = frame.training, None
        if part.certificate is not None and (not known or known[-1][0] < part.t):
            known.append((part.t, part.certificate.residual))
        if part.state is not None and frame.stage == "train" and "margins" in cards:
            chart = margins_chart(part.state.q, frame.dataset.y, scene != "train")
        elif last and known and frame.stage == "train" and "curves" in cards:
            chart = unexplained_chart(known, part.t, last)
        charts.append(chart)
    return charts


def played_state(step: Step) -> State | None:
    """Return where a step puts the page, at the stage that it asks to turn to."""
    state, goal = step.state, step.goal
    if state is None or state.network == "none" or goal is None or goal.name != TURNED:
        return state
    stages: list[Any] = list(STAGES)
    asked = int(goal.value or 1) - 1
    return replace(state, stage=stages[max(stages.index(state.stage), asked)])


def played_run(state: State) -> Run:
    """Return the run of a step, as far as Play would take it: training, or a whole attack."""
    run = state.run()
    trained, attacked = run.steps
    if state.stage in ("draw", "train"):
        return run if run.exact else replace(run, steps=(max(trained, TRAINED), 0))
    entry = by_key(run.attack_name)
    if state.stage == "attack":
        attacked = max(attacked, entry.step_count(config_of(run), STATES))
    return replace(run, steps=(trained, attacked))

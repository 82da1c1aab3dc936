"""A lesson beside the plane: its words, its steps, its goal; or what is written of one."""

from __future__ import annotations

from functools import partial
from typing import Any

import ipywidgets as w

from explorer.engine.settings import is_number
from explorer.page.ask import Ask
from explorer.page.controls.control import LessonBox, LessonForm
from explorer.page.frame import Frame
from explorer.page.job import in_slices
from explorer.page.lessons import course, words
from explorer.page.lessons.course import Draft, Walk
from explorer.page.lessons.file import (
    Lesson,
    Step,
    file_name,
    link_of,
    packaged_lessons,
    read,
    read_link,
    write,
)
from explorer.page.lessons.goals import ELSEWHERE, KINDS
from explorer.page.opening import BREATH_S, SLICE_S
from explorer.page.panels.base import Panel
from explorer.page.stages.draw import commands as draw

TEXTS = ("caption", "question", "answer")
WIDE = {"starts", "compare"}  # cards that need width, in all steps of a lesson that has one of them


class LessonPanel(Panel):
    """In sight while a lesson is open or recorded; it also puts the page where a step begins."""

    look = ("mx-lesson-box",)
    follows = ("lesson",)

    def belongs(self, frame: Frame) -> bool:
        """Return whether there is a lesson."""
        return self.session.lesson is not None

    def build(self) -> None:
        """One control to read a lesson with, one to write it with."""
        self.job = Ask(self, in_thread=False, pause_s=BREATH_S)  # it works on the session
        self.job.observe(self._tell_share)
        self.asked: Walk | None = None  # the step that the page is being put to
        session, leave = self.session, self.commands(leave=course.leave)
        self.view = LessonBox({
            "turn": self.command_of(int, partial(course.turn, session)),
            "next": self.command(self._next), **leave, **self.commands(done=course.note_done),
        }, ("mx-lesson",))  # fmt: skip
        self.form = LessonForm({
            "words": self._on_words, "text": self._on_text, "goal": self._on_goal,
            "choose": self.command_of(int, partial(course.choose_step, session)),
            "move": self.command_among((1, -1), partial(course.move_step, session)), **leave,
            **self.commands(record=course.add_step, again=course.record_again,
                            delete=course.delete_step, preview=course.preview),
            "save": self.command(self._save), "link": self.command(self._link),
            "open": self.command_of(str, lambda text: course.record(session, read(text.encode()))),
        }, ("mx-lesson", "mx-lesson-form"), goals=words.goals())  # fmt: skip
        self.widget = w.Box([self.view, self.form]).add_class("mx-lesson-holder")

    # --- the hand ---------------------------------------------------------------------------
    def _next(self) -> None:
        """Turn to the next step, else to the next lesson of the course, else to its last words.

        After these the page is an empty plane; after a lesson out of a file, what it was before.
        """
        walk = course.walk_of(self.session)
        if walk.at + 1 < len(walk.lesson.steps):
            course.turn(self.session, walk.at + 1)
            return
        place = course.place_of(walk)
        if place is not None and place + 1 < len(packaged_lessons()):
            course.begin(self.session, packaged_lessons()[place + 1])
        elif place is not None and not walk.over:
            course.end_course(self.session)
        else:
            course.leave(self.session)
            if walk.over:
                draw.begin_own(self.session)

    def _on_words(self, value: Any) -> None:  # noqa: ANN401 - from a browser
        if isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value):
            self.do(course.put_words, self.session, *value)

    def _on_text(self, value: Any) -> None:  # noqa: ANN401 - from a browser
        if isinstance(value, list) and len(value) == 2 and value[0] in TEXTS:
            self.do(course.put_step, self.session, **{value[0]: value[1]})

    def _on_goal(self, value: Any) -> None:  # noqa: ANN401 - from a browser
        if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
            return
        name, number = value
        known = is_number(number) and name in KINDS
        given = KINDS[name].value_of(float(number)) if known else None
        self.do(course.put_goal, self.session, name, given)

    def _save(self) -> None:
        """Give the browser the file."""
        lesson = course.draft_of(self.session).lesson()
        content = write(lesson)
        read(content)  # what cannot be opened again is not saved
        self.form.hand_over(file_name(lesson.title), "application/json", content)

    def _link(self) -> None:
        """Give the browser the lesson as a link."""
        link = link_of(course.draft_of(self.session).lesson())
        read_link(link)
        self.form.send({"kind": "link", "text": link})

    # --- where a step begins ------------------------------------------------------------------
    def _put(self, walk: Walk) -> None:
        """Put the page there beside what the visitor sees."""
        self.asked = walk
        slices = in_slices(course.putting(self.session, SLICE_S))
        self.job.begin(
            slices, lambda _: self.session.show(), self._end,
            lambda: self.session.lesson is not walk,
        )  # fmt: skip

    def _end(self) -> None:
        if self.job.error is not None:
            course.give_up(self.session)

    def _tell_share(self) -> None:
        share = round(self.job.share, 2) if self.job.busy else None
        self.view.show(share=share)

    # --- what is seen -------------------------------------------------------------------------
    def render(self, frame: Frame) -> None:
        """Show the step, or the form; tick it off if its goal is met."""
        held = self.session.lesson
        shown = self.form if isinstance(held, Draft) else self.view
        for one in (self.view, self.form):  # hidden rather than taken out: no view is made anew
            display = "" if one is shown else "none"
            if one.layout.display != display:
                one.layout.display = display
        if isinstance(held, Draft):
            self.form.show(**_draft(held))
        elif isinstance(held, Walk):
            self.view.show(**_walk(held))
            if held.waiting and held is not self.asked:
                self._put(held)
            course.check(self.session)


def _walk(walk: Walk) -> dict[str, Any]:
    """Return what is shown of a lesson that is walked."""
    step, count, place = walk.step, len(walk.lesson.steps), course.place_of(walk)
    last, done = walk.at + 1 == count, walk.at in walk.done
    seen = done or step.goal is None  # what a question is about
    following = words.following(last, place, len(packaged_lessons()))
    if walk.over:
        return {**_steps(walk), "caption": words.FINISHED, "question": "", "answer": "", "goal": "",
                "done": False, "asks": False, "next": words.OWN, "ready": True, "plays": False,
                "links": [], "guesses": False}  # fmt: skip
    return {
        **_steps(walk),
        "caption": step.caption, "question": step.question, "answer": step.answer,
        "asks": seen, "guesses": course.GUESS in step.caption,
        "goal": "" if step.goal is None else step.goal.words, "done": done,
        "next": following, "ready": seen, "plays": not seen and course.names_play(walk),
        "links": _links(walk.lesson, step),
    }  # fmt: skip


def _steps(walk: Walk) -> dict[str, Any]:
    """Return what is shown over the words of a step; after the last step no dot is lit."""
    count, preview = len(walk.lesson.steps), walk.draft is not None
    return {
        "title": words.FINISHED_TITLE if walk.over else walk.lesson.title,
        "number": words.number(course.place_of(walk), preview), "place": course.place_of(walk),
        "at": count if walk.over else walk.at, "steps": [i in walk.done for i in range(count)],
        "leave": words.leaving(preview),
        "wide": any(WIDE & {*step.cards} for step in walk.lesson.steps),
        "texts": _texts(walk.lesson),
    }  # fmt: skip


def _links(lesson: Lesson, step: Step) -> list[dict[str, str]]:
    """Return the pages on which the task of a step is done."""
    elsewhere = step.goal is not None and step.goal.name == ELSEWHERE
    return [{"page": f"{name}.ipynb", "title": words.PAGES[name]}
            for name in lesson.pages if elsewhere]  # fmt: skip


def _texts(lesson: Lesson) -> list[dict[str, Any]]:
    """Return the words of all steps, which together set the size of the words."""
    return [
        {"caption": step.caption, "question": step.question,
         "goal": "" if step.goal is None else step.goal.words, "links": _links(lesson, step)}
        for step in lesson.steps
    ]  # fmt: skip


def _draft(draft: Draft) -> dict[str, Any]:
    """Return what is shown of a lesson that is written."""
    step = draft.steps[draft.at] if draft.steps else None
    goal = None if step is None else step.goal
    row = None if goal is None else KINDS[goal.name]
    number = None if goal is None or goal.value is None else KINDS[goal.name].number_of(goal.value)
    return {
        "title": draft.title, "line": draft.line, "at": draft.at,
        "steps": [words.short(s.caption, i) for i, s in enumerate(draft.steps)],
        "step": None if step is None else {name: getattr(step, name) for name in TEXTS},
        "goal": "" if goal is None else goal.name, "value": number,
        "number": row is not None and row.low is not None,
        "of": "" if step is None or step.state is None else words.state(step.state),
    }  # fmt: skip

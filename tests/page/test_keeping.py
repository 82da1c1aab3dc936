"""What a page gives its browser to keep comes back as the same page."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from explorer.engine import store
from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.digits import DigitsApp
from explorer.page.apps.membership import MembershipApp
from explorer.page.controls.remembered import Remembered
from explorer.page.controls.row import Item, Row
from explorer.page.keeping.panel import Keeping
from explorer.page.lessons import course
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train import commands as train
from explorer.research.state import from_text, to_text
from tests.page.pages import choose, send
from tests.page.test_digits import TINY
from tests.page.test_exchange import attacked, weights_of


def back(session: Session) -> Session:
    """The page of another kernel that takes up what this one gave to keep."""
    other = Session()
    files.open_file(other, files.as_text(session)[0].encode())
    return other


def reached(session: Session, stage: str) -> Session:
    """A page of an attack whose visitor turned to a stage."""
    play.go(session, stage)
    return session


def trained() -> Session:
    """A page that has taken a few steps."""
    page = reached(Session(preset("alternating-line", n=6), seed=3), "train")
    play.step(page, 20)
    return page


PAGES: dict[str, Any] = {
    "nothing": Session,
    "drawn": lambda: Session(preset("moons"), seed=5),
    "trained": trained,
    "drawn after training": lambda: reached(trained(), "draw"),
    "attacked": attacked,
    "landscape": lambda: reached(attacked(), "landscape"),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_kept_page_comes_back_with_points_settings_weights_and_stage(name: str) -> None:
    page = PAGES[name]()
    page.mix = (0.25, 0.5)
    page.attack_config = replace(page.attack_config, lr_x=0.034)
    other = back(page)
    one, two = page.frame, other.frame
    assert torch.equal(one.dataset.x, two.dataset.x) and torch.equal(one.dataset.y, two.dataset.y)
    assert (one.dataset.source, one.stage, page.seed) == (two.dataset.source, two.stage, other.seed)
    assert (page.train_config, page.attack_config) == (other.train_config, other.attack_config)
    assert page.mix == other.mix
    for a, b in ((one.training.state, two.training.state), (one.attack.state, two.attack.state)):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert a.t == b.t
    if one.training.state is not None:
        assert torch.equal(one.training.state.net.theta, two.training.state.net.theta)
    assert files.as_text(other) == files.as_text(page) and files.as_text(page)[1]


def test_undo_comes_back_with_the_drawing_newest_first() -> None:
    page = Session()
    for k in range(30):
        draw.add(page, [((0.05 * k - 1, 0.1), 1 if k % 2 else -1)])
    play.undo(page)
    other = back(page)
    assert other.frame.dataset.n == 29
    for n in range(28, 28 - files.EARLIER, -1):
        play.undo(other)
        assert other.frame.dataset.n == n
        assert torch.equal(other.frame.dataset.x, page.frame.dataset.x[:n])
    with pytest.raises(ValueError):
        play.undo(other)
    play.redo(other)
    assert other.frame.dataset.n == 10


def test_a_long_past_is_cut_and_a_damaged_one_costs_the_past_alone() -> None:
    page = Session()
    for seed in range(40):
        draw.load(page, preset("random-circle", n=150, seed=seed))
        draw.add(page, [((0.01 * seed, 0.5), 1)])  # no ready-made set any more: all its numbers
    text, whole = files.as_text(page)
    assert whole and len(text) < files.MOST_KEPT + files.MOST_EARLIER + files.EARLIER
    first, *others = text.split()
    assert 0 < len(others) <= files.EARLIER
    other = Session()
    files.take_up(other, "\n".join([first, others[0], others[1][:-30], *others[2:]]))
    assert torch.equal(other.frame.dataset.x, page.frame.dataset.x)
    assert len(other.frame.drawing.past) == 1
    with pytest.raises(ValueError):
        files.take_up(other, "\n".join([first[:-30], *others]))


def test_a_run_trained_on_after_its_attack_can_be_opened_again() -> None:
    page = attacked()
    play.go(page, "train")
    play.step(page, 100)
    for content in (files.as_text(page)[0].encode(), store.dump(files.as_run(page))):
        other = Session()
        files.open_file(other, content)
        assert other.frame.training.state.t == page.frame.training.state.t
        assert other.frame.stage == "train"


def test_weights_of_others_come_back_without_points() -> None:
    page = Session()
    files.open_file(page, weights_of(2))
    play.go(page, "attack")
    other = back(page)
    assert other.frame.dataset.n == 0 and other.frame.stage == "attack"
    assert torch.equal(other.frame.target.net.theta, page.frame.target.net.theta)


def test_weights_that_are_too_large_are_trained_again() -> None:
    page = Session(preset("moons", n=6), seed=7)
    page.train_config = replace(page.train_config, widths=(900, 900))
    train.begin(page)
    play.step(page, 2)
    text, whole = files.as_text(page)
    assert not whole and len(text) <= files.MOST_KEPT
    other = back(page)
    assert torch.equal(other.frame.dataset.x, page.frame.dataset.x)
    assert other.frame.stage == "train" and other.frame.training.state.t == 0
    assert "step 2" in other.message
    play.step(other, 2)
    assert torch.equal(other.frame.training.state.net.theta, page.frame.training.state.net.theta)


def test_a_kept_page_that_cannot_be_shown_changes_nothing() -> None:
    page = trained()
    before, text = page.frame, files.as_text(page)[0]
    unknown = to_text(replace(from_text(text), stage="<b>nowhere</b>"))
    for bad in (text[:-40], text.replace("mx1", "mx9"), "mx1.", unknown):
        with pytest.raises(ValueError):
            files.open_file(page, bad.encode())
        assert page.frame is before
    draw.clear(page)
    files.open_file(page, text.encode())
    assert torch.equal(page.frame.dataset.x, before.dataset.x)


def test_nothing_is_kept_before_a_visitor_acts() -> None:
    session = Session(preset("moons"))
    panel = Keeping(session)
    train.begin(session)
    assert panel.view.kept == {}
    send(panel.view, kind="begin")
    play.tell(session, "a notice is no change")
    play.go(session, "draw")  # nor is it work to look round
    assert panel.view.kept == {}
    draw.add(session, [((0.5, 0.5), 1)])
    assert from_text(panel.view.kept["text"].split()[0]).dataset.n == session.frame.dataset.n == 25
    assert panel.view.kept["whole"]


@pytest.mark.parametrize(
    ("change", "read"),
    [
        (lambda s: s.choose(seed=11), lambda s: s.seed == 11),
        (lambda s: play.configure(s, lr=0.5), lambda s: s.train_config.lr == 0.5),
        (lambda s: play.step(s, 3), lambda s: s.frame.training.state.t == 3),
        (lambda s: (play.step(s, 1), play.go(s, "draw")), lambda s: s.frame.stage == "draw"),
        (lambda s: draw.load(s, preset("xor")), lambda s: s.frame.dataset.source.preset == "xor"),
    ],
)
def test_each_change_is_kept(change: Any, read: Any) -> None:
    session = Session(preset("moons"))
    panel = Keeping(session)
    train.begin(session)
    session.show(stage="train")
    send(panel.view, kind="begin")
    change(session)
    other = Session()
    files.take_up(other, panel.view.kept["text"])
    assert read(other) and files.as_text(other)[0] == panel.view.kept["text"]


def test_how_the_weights_were_made_is_kept_beside_the_settings_of_the_next_run() -> None:
    page = Session(preset("moons"), seed=3)
    play.go(page, "train")
    play.step(page, 20)
    page.choose(seed=11)
    page.train_config = replace(page.train_config, widths=(7,))
    other = back(page)
    assert (other.seed, other.train_config.widths) == (11, (7,))
    known = other.frame.training.plan
    assert (known.seed, known.train_config.widths) == (3, (100,))


def test_edits_in_a_row_are_kept_once_more_when_the_hand_rests() -> None:
    async def spray() -> tuple[int, int]:
        session = Session()
        panel = Keeping(session)
        send(panel.view, kind="begin")
        made: list[int] = []
        panel.view.observe(lambda change: made.append(1), names=["kept"])
        for i in range(20):
            draw.add(session, [((0.01 * i, 0.5), 1)])
        at_once = len(made)
        while not made:
            await asyncio.sleep(0.05)
        assert from_text(panel.view.kept["text"].split()[0]).dataset.n == 20
        draw.add(session, [((-0.5, 0.5), 1)])
        while from_text(panel.view.kept["text"].split()[0]).dataset.n < 21:
            await asyncio.sleep(0.05)
        panel.close()
        return at_once, len(made)

    assert asyncio.run(spray()) == (0, 2), "the hand is answered first"


def test_another_drawing_is_kept_beside_the_last() -> None:
    session = Session(preset("moons"))
    panel = Keeping(session)
    send(panel.view, kind="begin")
    draw.add(session, [((0.5, 0.5), 1)])
    assert not panel.view.kept["anew"] and panel.view.kept["own"]
    held = panel.view.kept
    draw.clear(session)
    assert panel.view.kept == held, "a cleared plane takes the place of nothing"
    play.undo(session)
    session.choose(seed=3)
    assert not panel.view.kept["anew"], "the same drawing again"
    draw.load(session, preset("xor"))
    assert panel.view.kept["anew"] and not panel.view.kept["own"]
    draw.add(session, [((0.5, 0.5), 1)])
    assert not panel.view.kept["anew"] and panel.view.kept["own"]


@pytest.mark.parametrize("title", ["Mine", ""])
def test_a_lesson_that_is_recorded_is_kept_until_it_is_left(title: str) -> None:
    page = Session(preset("blobs"))
    panel = Keeping(page)
    send(panel.view, kind="begin")
    course.record(page)
    course.add_step(page)
    course.put_step(page, caption="Look.")
    course.put_words(page, title, "A line")
    kept = panel.view.kept
    other = Session()
    again = Keeping(other)
    send(again.view, kind="take up", text=kept["text"], lesson=kept["lesson"])
    draft = course.draft_of(other)
    assert (draft.title, draft.line, draft.steps) == (title, "A line", page.lesson.steps)
    assert torch.equal(other.frame.dataset.x, page.frame.dataset.x)
    send(again.view, kind="take up", text=kept["text"], lesson="no lesson")
    assert other.message and course.draft_of(other) is draft
    course.leave(page)
    assert panel.view.kept["lesson"] == ""
    panel.close()
    again.close()


def test_what_the_browser_gives_back_is_shown_or_refused_in_a_sentence() -> None:
    page = trained()
    text = files.as_text(page)[0]
    session = Session(preset("moons"))
    panel = Keeping(session)
    for bad in ({}, {"text": 7}, {"text": None}):
        send(panel.view, kind="take up", **bad)
    before = session.frame
    send(panel.view, kind="take up", text=text[:-30])
    assert session.frame is before and session.message
    send(panel.view, kind="take up", text=text)
    assert torch.equal(session.frame.dataset.x, page.frame.dataset.x) and not session.message
    assert session.frame.stage == "train"
    play.undo(session)
    assert session.frame.dataset is before.dataset


def test_the_kernel_answers_when_it_is_asked() -> None:
    panel = Keeping(Session())
    sent: list[Any] = []
    panel.view.send = sent.append
    send(panel.view, kind="beat")
    assert sent == [{"kind": "beat"}]


# --- settings of the pages of membership and digits that a browser's tab keeps over a reload ------


def remembered(page: MembershipApp | DigitsApp) -> Remembered:
    (made,) = [one for one in page.widget.children if isinstance(one, Remembered)]
    return made


def test_membership_comes_back_as_it_was_set() -> None:
    page, again = MembershipApp(), MembershipApp()
    given = {"law": "mixture", "labels": "component", "n": 7, "rule": "bounded", "low": 0.4}
    for name, value in given.items():
        choose(page.controls, name, value)
    choose(page.trained, "dims", "5, 6")
    send(remembered(again), kind="restore", text=remembered(page).kept)
    assert again.controls.settings() == page.controls.settings()
    assert again.trained.value("dims") == "5, 6"


def test_digits_come_back_as_they_were_set() -> None:
    page, again = DigitsApp(TINY), DigitsApp(TINY)
    choose(page.controls, "train_steps", 41)
    choose(page.controls, "init_scale", 0.01)
    send(page.controls, kind="set", value=["start", 1])
    send(remembered(again), kind="restore", text=remembered(page).kept)
    assert again.controls.run() == page.controls.run()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"n": "many"}', '{"n": 1e400}', '{"law": 99}',
                                  '{"seed": -3}', '{"nobody": 1}', "9" * 20_000])  # fmt: skip
def test_nonsense_is_left_out(text: str) -> None:
    page = MembershipApp()
    before = page.controls.settings()
    send(remembered(page), kind="restore", text=text)
    now = page.controls.settings()
    assert now.law == before.law and 0 <= now.seed and now.n == before.n


def test_nothing_is_kept_before_a_hand_has_changed_something() -> None:
    row = Row(field=Item("slider", value=3, high=9, whole=True), said=Item("words", value=""))
    made = Remembered(row)
    assert made.kept == ""
    choose(row, "field", 4)
    assert json.loads(made.kept) == {"field": 4}

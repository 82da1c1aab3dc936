"""Settings of the pages of membership and digits that a browser's tab keeps over a reload."""

from __future__ import annotations

import json

import pytest

from explorer.page.apps.digits import DigitsApp
from explorer.page.apps.membership import MembershipApp
from explorer.page.controls.remembered import Remembered
from explorer.page.controls.row import Item, Row
from tests.page.pages import choose, send
from tests.page.test_digits import TINY


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

"""Settings of the pages of membership and digits that a browser's tab keeps over a reload."""

from __future__ import annotations

import json

import ipywidgets as w
import pytest

from explorer.page.apps.digits import DigitsApp
from explorer.page.apps.membership import MembershipApp
from explorer.page.controls.remembered import Remembered
from tests.page.pages import send
from tests.page.test_digits import TINY


def remembered(page: MembershipApp | DigitsApp) -> Remembered:
    (made,) = [one for one in page.widget.children if isinstance(one, Remembered)]
    return made


def test_membership_comes_back_as_it_was_set() -> None:
    page, again = MembershipApp(), MembershipApp()
    fields = page.controls.fields
    fields["law"].value, fields["labels"].value = "mixture", "component"
    fields["n"].value, fields["rule"].value, fields["low"].value = 7, "bounded", 0.4
    page.trained.dims.value = "5, 6"
    send(remembered(again), kind="restore", text=remembered(page).kept)
    assert again.controls.settings() == page.controls.settings()
    assert again.trained.dims.value == "5, 6"


def test_digits_come_back_as_they_were_set() -> None:
    page, again = DigitsApp(TINY), DigitsApp(TINY)
    page.controls.fields["train_steps"].value, page.controls.fields["init_scale"].value = 41, 0.01
    page.controls.fields["start"].index = 1
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
    field = w.IntSlider(3)
    made = Remembered({"field": field})
    assert made.kept == ""
    field.value = 4
    assert json.loads(made.kept) == {"field": 4}

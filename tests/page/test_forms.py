"""The forms: every row is a setting of its class, shows its value, and stands as it stood."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import pytest

from explorer.engine.data import preset
from explorer.engine.roster import ROSTER
from explorer.engine.settings import setting, settings
from explorer.page import play
from explorer.page.controls.row import Item
from explorer.page.controls.settings import LAYERS, in_form, items_of
from explorer.page.panels.base import Form
from explorer.page.session import Session
from explorer.page.stages.attack.form import AttackSettings
from explorer.page.stages.draw.form import NetworkForm
from explorer.page.stages.train.form import TrainForm
from tests.page.pages import choose

# field, kind, title, tooltip, choices or bounds, in sight or folded: of forms written by hand
GOLDEN = json.loads((Path(__file__).parent / "forms.json").read_text(encoding="utf-8"))


def form_of(key: str) -> Form:
    session = Session(preset("moons"))
    if key == "train":
        play.go(session, "train")
        return TrainForm(session)
    session.attack_config = ROSTER[key].config()
    return AttackSettings(session, key)


def told(field: str, item: Item, form: str) -> dict[str, Any]:
    kind = "whole" if item.whole else item.kind
    said = {"field": field, "kind": kind, "title": item.label, "tip": item.tip, "form": form}
    if item.options:
        return {**said, "options": [[words, value] for words, value, _ in item.options]}
    return {**said, "low": item.low, "high": item.high}


@pytest.mark.parametrize("key", ROSTER)
def test_every_row_is_a_setting_and_shows_it(key: str) -> None:
    known = {field.name for field in fields(ROSTER[key].config)}
    form = form_of(key)
    assert set(form.row.items) <= known
    for name in form.row.items:
        assert form.row.value(name) == getattr(form.session.attack_config, name)
    form.close()


@pytest.mark.parametrize("key", GOLDEN)
def test_the_forms_stand_as_they_were_written_by_hand(key: str) -> None:
    form = form_of(key)
    found = []
    for setting_ in in_form(form.kind):
        for item in items_of([setting_], lambda *_: None).values():
            found.append(told(setting_.name, item, setting_.form))
    assert found == GOLDEN[key]
    form.close()


def test_every_attack_has_its_golden_form() -> None:
    assert set(GOLDEN) == {*ROSTER, "train"}


def test_of_an_optional_setting_0_stands_for_none() -> None:
    items = items_of(in_form(ROSTER["inversion"].config), lambda *_: None)
    box, value = items["box"], items["value"]
    assert box.value_of(0.0) is None and replace(box, value=None).json["value"] == 0
    assert box.value_of(2.5) == replace(box, value=2.5).json["value"] == 2.5
    assert value.value_of(0.0) == 0.0  # not optional


def test_the_two_items_of_the_widths_make_equal_layers() -> None:
    form = NetworkForm(Session(preset("moons")))
    choose(form.row, LAYERS, 2)
    choose(form.row, "widths", 30)
    assert form.session.train_config.widths == (30, 30)
    form.close()


@settings
class Unbounded:
    far: Annotated[float, setting("Without an end", form="sight", ge=0)] = 1.0


@settings
class Unnamed:
    yes: Annotated[bool, setting("Without words for its values", form="sight")] = True


@pytest.mark.parametrize(("kind", "words"), [(Unbounded, "page="), (Unnamed, "labels")])
def test_what_no_widget_can_show_is_said(kind: type, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        items_of(in_form(kind), lambda *_: None)

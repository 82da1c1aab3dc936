"""The forms: every row is a setting of its class, shows its value, and stands as it stood."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import pytest

from explorer.engine.data import preset
from explorer.engine.roster import ROSTER
from explorer.engine.settings import setting, settings
from explorer.page import play
from explorer.page.controls.settings import SettingRow, rows_of
from explorer.page.panels.forms import AttackSettings, Form, NetworkForm, TrainForm
from explorer.page.session import Session

# field, widget, title, tooltip, choices or bounds, in sight or folded: of forms written by hand
GOLDEN = json.loads((Path(__file__).parent / "forms.json").read_text(encoding="utf-8"))


def form_of(key: str) -> Form:
    session = Session(preset("moons"))
    if key == "train":
        play.go(session, "train")
        return TrainForm(session)
    session.attack_config = ROSTER[key].config()
    return AttackSettings(session, key)


def told(row: SettingRow, form: str) -> dict[str, Any]:
    widget = row.widget
    said = {"field": row.field, "widget": type(widget).__name__, "title": widget.description,
            "tip": widget.tooltip, "form": form}  # fmt: skip
    if hasattr(widget, "options"):
        pairs = [o if isinstance(o, tuple) else (o, o) for o in widget.options]
        return {**said, "options": [list(pair) for pair in pairs]}
    return {**said, "low": widget.min, "high": widget.max}


@pytest.mark.parametrize("key", ROSTER)
def test_every_row_is_a_setting_and_shows_it(key: str) -> None:
    known = {field.name for field in fields(ROSTER[key].config)}
    form = form_of(key)
    assert {row.field for row in form.all} <= known
    for row in form.all:
        assert row.widget.value == row.to_widget(getattr(form.session.attack_config, row.field))
    form.close()


@pytest.mark.parametrize("key", GOLDEN)
def test_the_forms_stand_as_they_were_written_by_hand(key: str) -> None:
    form = form_of(key)
    sight, more = rows_of(form.kind)
    found = [told(row, "sight") for row in sight] + [told(row, "more") for row in more]
    assert found == GOLDEN[key]
    form.close()


def test_every_attack_has_its_golden_form() -> None:
    assert set(GOLDEN) == {*ROSTER, "train"}


def test_of_an_optional_setting_0_stands_for_none() -> None:
    rows = {row.field: row for row in rows_of(ROSTER["inversion"].config)[0]}
    assert rows["box"].to_config(0.0) is None and rows["box"].to_widget(None) == 0
    assert rows["box"].to_config(2.5) == rows["box"].to_widget(2.5) == 2.5
    assert rows["value"].to_config(0.0) == 0.0  # not optional


def test_the_two_widgets_of_the_widths_make_equal_layers() -> None:
    form = NetworkForm(Session(preset("moons")))
    layers, width = (row for row in form.all if row.field == "widths")
    layers.widget.value, width.widget.value = 2, 30
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
        rows_of(kind)

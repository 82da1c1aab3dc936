"""The forms of the attacks: every row is a setting of its attack, and is filled with its value."""

from __future__ import annotations

from dataclasses import fields

import pytest

from explorer.engine.roster import ROSTER
from explorer.panels.forms import SETTINGS, AttackSettings
from explorer.session import Session


@pytest.mark.parametrize("key", SETTINGS)
def test_every_row_is_a_setting_and_shows_it(key: str) -> None:
    known = {field.name for field in fields(ROSTER[key].config)}
    session = Session()
    session.attack_config = ROSTER[key].config()
    form = AttackSettings(session, key)
    assert {row.field for row in form.all} <= known
    for row in form.all:
        assert row.widget.value == row.to_widget(getattr(session.attack_config, row.field))
    form.close()

"""One declaration per setting: a field added to a class is found everywhere that settings are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pytest
from typer.testing import CliRunner

from explorer import cli
from explorer.commands.base import attack_config
from explorer.commands.settings import kinds, markdown
from explorer.commands.tables import table_of
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.roster import ROSTER
from explorer.engine.settings import schema, setting, settings
from explorer.engine.store.codec import decode, encode
from explorer.page.session import Session
from explorer.page.stages.attack.form import AttackSettings

ROOT = Path(__file__).resolve().parents[1]


WHAT = "How far candidates stay from each other"


@settings
class WithOneMore(KKTConfig):
    """Settings of an attack, and one more."""

    shyness: Annotated[
        float,
        setting(
            WHAT, title="shyness σ", unit="of the data",
            note="Arbitrary.", form="sight", page=(0, 3), ge=0,
        ),
    ] = 0.5  # fmt: skip


@pytest.fixture
def added(monkeypatch) -> type[KKTConfig]:
    monkeypatch.setitem(ROSTER, "kkt", replace(ROSTER["kkt"], config=WithOneMore))
    return WithOneMore


def call(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, list(words))
    assert result.exit_code == code, result.output
    return result.output


# --- a field that one declaration adds ------------------------------------------------------
def test_the_check_knows_it(added) -> None:
    with pytest.raises(ValueError, match=r"shyness must not be negative; got -1\.0\. Try 0\.5"):
        added(shyness=-1.0)


def test_the_codec_carries_it(added) -> None:
    made = added(shyness=0.25)
    assert decode(json.loads(json.dumps(encode(made, {}))), {}, added) == made


def test_the_form_has_its_row(added) -> None:
    session = Session()
    session.attack_config = added()
    form = AttackSettings(session, "kkt")
    item = form.row.items["shyness"]
    assert item.kind == "number" and (item.low, item.high) == (0, 3)
    assert item.label == "shyness σ" and item.tip == WHAT
    session.attack_config = replace(session.attack_config, shyness=1.5)
    assert form.row.value("shyness") == 1.5
    form.close()


def test_the_command_line_takes_it_and_lists_it(added) -> None:
    config = attack_config("kkt", ["shyness=0.75"])
    assert isinstance(config, added) and config.shyness == 0.75
    with pytest.raises(ValueError, match="shyness must be a finite number; got 'very'"):
        attack_config("kkt", ["shyness=very"])
    assert table_of(None, ["attack_config.shyness=1,2"]) == {
        "attack_config": {"shyness": [1.0, 2.0]}
    }
    listed = call("settings", "kkt")
    assert all(text in listed for text in ("shyness", *WHAT.split()[:3], "data"))


def test_the_table_of_the_docs_has_its_line(added) -> None:
    line = (
        f"| **shyness σ** | `WithOneMore.shyness = 0.5` | {WHAT}. "
        "Arbitrary. | a finite number, at least 0, on the page 0 to 3 | of the data |"
    )
    assert line in call("settings", "kkt", "--markdown").splitlines()


def test_the_json_schema_has_it(added) -> None:
    found = json.loads(call("settings", "kkt", "--json"))["properties"]["shyness"]
    assert (found["type"], found["minimum"], found["default"]) == ("number", 0, 0.5)
    assert found["description"] == WHAT


# --- the verb and its page ------------------------------------------------------------------
def test_the_page_of_the_docs_is_what_the_declarations_say() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    made = markdown(list(kinds()))
    assert page == made, "run: margin-explorer settings --markdown > docs/settings.md"


@pytest.mark.parametrize("name", list(kinds()))
def test_every_class_is_listed_with_all_its_settings(name: str) -> None:
    _, kind, _ = kinds()[name]
    names = {row.name for row in schema(kind)}
    assert set(json.loads(call("settings", name, "--json"))["properties"]) == names
    assert all(f"{kind.__name__}.{n}" in call("settings", name, "--markdown") for n in names)


def test_without_a_name_all_are_listed_and_a_wrong_one_is_refused() -> None:
    assert set(json.loads(call("settings", "--json"))) == set(kinds())
    assert "KKT reconstruction" in call("settings") and "Training" in call("settings")
    assert "'fly'" in call("settings", "fly", code=2)


def test_options_that_are_settings_take_their_words_from_the_declaration() -> None:
    found = " ".join(call("tune", "--help").replace("│", " ").split())
    assert "Candidates of" in found and "Networks" not in found
    found = " ".join(call("attack", "--help").replace("│", " ").split())
    assert "per class" in found and "Length of" in found

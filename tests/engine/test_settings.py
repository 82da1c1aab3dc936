"""Classes of settings: real dataclasses, checked strictly, with one declaration that all read."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import pytest
import torch

from explorer.engine.roster import ROSTER
from explorer.engine.settings import (
    config_of,
    json_schema,
    schema,
    setting,
    setting_of,
    settings,
    value_of,
)
from explorer.engine.store.codec import decode, encode
from explorer.engine.training import TrainConfig

ROOT = Path(__file__).resolve().parents[2]
CLASSES = (TrainConfig, *(entry.config for entry in ROSTER.values()))


@settings
class Sample:
    """One field of every kind."""

    # fmt: off
    m: Annotated[int, setting(
        "How many", ge=2, multiple_of=2, why="half of each", unit="candidates", place=2,
        form="sight", page=(2, 40),
    )] = 10
    rate: Annotated[float, setting("How fast", title="rate of x", gt=0, note="Arbitrary.")] = 0.5
    share: Annotated[float, setting("Which share", ge=0, lt=1)] = 0.0
    box: Annotated[float | None, setting("How wide", gt=0)] = None
    goal: Annotated[Literal["far", "near"], setting(
        "Where to", labels=(("far away", "far"), ("near by", "near")),
    )] = "far"
    strict: Annotated[bool, setting("Whether all")] = False
    name: Annotated[str, setting("Whose")] = ""
    widths: Annotated[tuple[Annotated[int, setting("Of one", ge=1)], ...], setting(
        "Of each layer", strict=False, min_length=1,
    )] = (100,)
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse what contradicts."""
        if self.strict and self.goal == "near":
            raise ValueError("strict needs goal='far'; got 'near'")


def problem(**given: Any) -> str:
    with pytest.raises(ValueError) as refused:
        Sample(**given)
    assert type(refused.value) is ValueError and refused.value.__cause__ is None
    return str(refused.value)


# --- a real dataclass -----------------------------------------------------------------------
def test_it_is_a_frozen_dataclass_as_any_other() -> None:
    made = Sample(4, rate=0.25)
    assert is_dataclass(made) and [f.name for f in fields(made)][:2] == ["m", "rate"]
    assert repr(replace(made, m=6)).startswith("Sample(m=6, rate=0.25, share=0.0, box=None, goal=")
    assert made == Sample(m=4, rate=0.25) != Sample() and hash(made) == hash(Sample(4, 0.25))
    assert copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made
    assert asdict(made)["rate"] == 0.25 and Sample.m == 10 and vars(made) == asdict(made)
    with pytest.raises(FrozenInstanceError):
        made.m = 8  # type: ignore[misc]
    assert get_type_hints(Sample)["box"] == float | None


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_is_stored_and_opens_as_it_was(kind: type) -> None:
    made = kind()
    assert decode(encode(made, {}), {}, kind) == made
    assert encode(made, {})["fields"].keys() == {f.name for f in fields(kind)}


def test_importing_the_engine_and_the_classes_loads_no_pydantic() -> None:
    program = "import sys, explorer; print('pydantic' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


# --- the check ------------------------------------------------------------------------------
def test_a_whole_number_will_do_for_a_real_one_and_a_list_for_a_tuple() -> None:
    made = Sample(rate=1, widths=[3, 4])
    assert made.rate == 1.0 and type(made.rate) is float and made.widths == (3, 4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"m": 7}, "m must be even and at least 2 (half of each); got 7. Try 8."),
        ({"m": 0}, "m must be even and at least 2 (half of each); got 0. Try 2."),
        ({"m": "8"}, "m must be a whole number; got '8'"),
        ({"m": True}, "m must be a whole number; got True"),
        ({"m": 8.0}, "m must be a whole number; got 8.0"),
        ({"m": torch.tensor(8)}, "m must be a whole number; got tensor(8)"),
        ({"rate": -1.0}, "rate must be positive; got -1.0. Try 0.5."),
        ({"rate": "1"}, "rate must be a finite number; got '1'"),
        ({"rate": math.nan}, "rate must be a finite number; got nan"),
        ({"rate": math.inf}, "rate must be a finite number; got inf"),
        ({"rate": False}, "rate must be a finite number; got False"),
        ({"share": 1}, "share must be from 0 to below 1; got 1. Try 0.0."),
        ({"box": 0.0}, "box must be positive, or None; got 0.0"),
        ({"box": "wide"}, "box must be a finite number or None; got 'wide'"),
        ({"goal": "up"}, "goal must be one of far, near; got 'up'"),
        ({"strict": 1}, "strict must be True or False; got 1"),
        ({"name": 3}, "name must be a word; got 3"),
        ({"widths": ()}, "widths must hold at least one number, each at least 1; got ()"),
        ({"widths": (3, 0)}, "widths must hold at least one number, each at least 1; got (3, 0)"),
        ({"widths": [True]}, "widths must be whole numbers such as [100, 100]; got [True]"),
        ({"strict": True, "goal": "near"}, "strict needs goal='far'; got 'near'"),
        ({"colour": 1}, "Sample has no setting 'colour'; it has: m, rate, share, box, goal"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(given: dict[str, Any], words: str) -> None:
    assert problem(**given).startswith(words)
    with pytest.raises(ValueError, match=r"got|no setting"):
        config_of(Sample, given, "a sample")


def test_what_is_unknown_is_said_of_its_owner() -> None:
    with pytest.raises(ValueError, match="a sample has no setting 'colour'; it has: m, rate"):
        config_of(Sample, {"m": 4, "colour": 1}, "a sample")
    assert config_of(Sample, {"m": 4}) == Sample(m=4)


def test_a_subclass_declares_anew() -> None:
    kkt, decoreco = ROSTER["kkt"].config, ROSTER["decoreco"].config
    with pytest.raises(ValueError, match="even"):
        kkt(m=7)
    assert decoreco(m=7).m == 7  # shares of three classes


# --- what it says of itself -----------------------------------------------------------------
def test_the_schema_says_all_that_is_declared() -> None:
    rows = {row.name: row for row in schema(Sample)}
    assert list(rows) == [f.name for f in fields(Sample)]
    m = rows["m"]
    assert (m.kind, m.default, m.low, m.high, m.multiple) == ("whole", 10, 2, None, 2)
    assert (m.unit, m.form, m.place, m.page) == ("candidates", "sight", 2, (2, 40))
    assert (rows["rate"].title, rows["rate"].note) == ("rate of x", "Arbitrary.")
    assert rows["rate"].open_low and not rows["share"].open_low and rows["share"].open_high
    assert rows["box"].optional and not rows["rate"].optional
    assert rows["goal"].choices == (("far away", "far"), ("near by", "near"))
    assert rows["rate"].help == "Rate of x. How fast."
    kinds = ["whole", "real", "real", "real", "choice", "flag", "word", "wholes"]
    assert [row.kind for row in rows.values()] == kinds


def test_the_json_schema_is_pydantics_own() -> None:
    made = json_schema(Sample)
    assert made["additionalProperties"] is False
    m = made["properties"]["m"]
    assert (m["minimum"], m["multipleOf"], m["default"]) == (2, 2, 10)
    assert made["properties"]["goal"]["enum"] == ["far", "near"]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_setting_of_an_attack_says_what_it_is(kind: type) -> None:
    for row in schema(kind):
        assert row.description and not row.description.endswith("."), row.name
        assert row.note == "" or row.note.endswith("."), row.name


# --- from text ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("m", " 12", 12), ("rate", "1e-3", 1e-3), ("rate", "2", 2.0), ("box", "None", None),
        ("box", "null", None), ("box", "3", 3.0), ("strict", "true", True),
        ("strict", "False", False), ("goal", "near", "near"), ("goal", "'near'", "near"),
        ("name", "12", "12"), ("name", "null", "null"), ("widths", "100,50", (100, 50)),
        ("widths", "[100, 50]", (100, 50)), ("widths", "(7,)", (7,)), ("widths", "7", (7,)),
    ],
)  # fmt: skip
def test_a_text_is_read_as_its_setting_says(name: str, text: str, value: object) -> None:
    found = value_of(setting_of(Sample, name), text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("m", "2.0"), ("m", "None"), ("rate", "fast"), ("rate", "nan"), ("rate", "inf"),
     ("strict", "maybe"), ("strict", "1"), ("widths", "wide"), ("widths", "[]"), ("box", "off")],
)  # fmt: skip
def test_a_text_that_is_no_value_is_refused(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be .*; got '.*'"):
        value_of(setting_of(Sample, name), text)

"""One bound of a page: what its forms do not offer is refused before it is trained or drawn."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import pytest
import torch

from explorer.engine import store
from explorer.engine.data import Dataset, preset
from explorer.engine.files import MOST_WORDS
from explorer.engine.network import Network
from explorer.engine.roster import ROSTER
from explorer.engine.settings import schema, setting, settings
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.page import play
from explorer.page.controls.row import Item
from explorer.page.controls.settings import LAYERS, in_form, items_of
from explorer.page.lessons.file import LessonError, read
from explorer.page.panels.base import Form
from explorer.page.panels.header import Header
from explorer.page.session import Session
from explorer.page.sharing import files, game
from explorer.page.stages.attack.form import AttackSettings
from explorer.page.stages.draw.form import NetworkForm
from explorer.page.stages.train import commands as train
from explorer.page.stages.train.form import TrainForm
from explorer.research.game import hide
from explorer.research.state import link_of, to_text
from tests.page.pages import choose

DATA = preset("two-points")
KKT, HINGE = ROSTER["kkt"].config, ROSTER["hinge"].config
# A run, and the setting that is named.
TOO_LARGE = {
    "wide": (Run(DATA, TrainConfig(widths=(10**6,))), "widths"),
    "wider by one": (Run(DATA, TrainConfig(widths=(train.MOST_WIDTH + 1,))), "widths"),
    "a product": (Run(DATA, TrainConfig(widths=(2000, 2000))), "widths"),
    "layers": (Run(DATA, TrainConfig(widths=(9,) * (train.MOST_LAYERS + 1))), "widths"),
    "of the next run": (Run(DATA, TrainConfig(), next_config=TrainConfig(widths=(3000,))),
                        "widths"),
    "candidates": (Run(DATA, TrainConfig(), attack_config=KKT(m=100_000)), "m"),
    "a grid": (Run(DATA, TrainConfig(), attack_config=HINGE(grid=10_000), attack_name="hinge"),
               "grid"),
}  # fmt: skip


def link(session: Session, run: Run) -> None:
    Header(session).open_link(link_of(run), beside=False)


def run_file(session: Session, run: Run) -> None:
    files.open_file(session, store.dump(run))


def kept(session: Session, run: Run) -> None:
    files.take_up(session, to_text(run))


@pytest.mark.parametrize("name", TOO_LARGE)
@pytest.mark.parametrize("way", [link, run_file, kept])
def test_a_run_beyond_the_forms_is_refused_and_the_page_stays(
    way: Callable[[Session, Run], None], name: str
) -> None:
    run, named = TOO_LARGE[name]
    session = Session(preset("moons", 10))
    before = session.frame, session.train_config, session.attack_config, session.seed
    with pytest.raises(ValueError, match=rf"{named} must be .*on a page; got .*command line"):
        way(session, replace(run, stage="train", steps=(50, 0), seed=4))
    assert (session.frame, session.train_config, session.attack_config, session.seed) == before


def test_weights_and_challenges_beyond_it_are_refused() -> None:
    v = torch.ones(1, train.MOST_WIDTH + 1, dtype=torch.float64)
    net = Network((v.T.contiguous(), v), (v[0], None))  # above 0 everywhere right of -1
    session = Session(preset("moons", 10))
    held = session.frame
    with pytest.raises(ValueError, match="on a page"):
        train.take_weights(session, net)
    right = Dataset(torch.tensor([[1.0]]).double(), torch.tensor([1.0]).double())
    with pytest.raises(ValueError, match="on a page"):
        game.take(session, hide(Run(right, TrainConfig()), net).challenge.text)
    assert session.frame is held and session.game is None


@pytest.mark.parametrize(("key", "value"), [("widths", [2000, 2000]), ("widths", [9] * 5)])
def test_a_lesson_is_held_to_the_same(key: str, value: object) -> None:
    text = """{"title": "a", "line": "b", "steps": [{"caption": "c",
               "state": {"preset": "moons", "train": {"%s": %s}}}]}"""
    with pytest.raises(LessonError, match="on a page"):
        read((text % (key, value)).encode())


def test_a_refusal_of_what_was_kept_is_as_short_as_any_other(monkeypatch) -> None:
    def long(text: str) -> Run:
        raise store.StoreError("x " * MOST_WORDS)

    monkeypatch.setattr(files, "from_text", long)
    with pytest.raises(ValueError) as refused:
        files.take_up(Session(), "mx1.AAAA")
    assert len(str(refused.value)) <= MOST_WORDS


def test_a_form_does_not_offer_what_a_file_may_not_ask() -> None:
    """What one field after another gives is within the bound, or it jumps back with a sentence."""
    session = Session(preset("moons", 10))
    form = NetworkForm(session)
    row = form.row
    assert max(count for _, count, _ in row.items[LAYERS].options) == train.MOST_LAYERS
    assert row.items["widths"].high == train.MOST_WIDTH
    choose(row, "widths", train.MOST_WIDTH)
    choose(row, LAYERS, 2)
    assert session.train_config.widths == (train.MOST_WIDTH,)
    assert row.value(LAYERS) == 1 and 0 < len(session.message) <= MOST_WORDS


@pytest.mark.parametrize("key", ROSTER)
def test_the_largest_that_forms_offer_opens(key: str) -> None:
    entry = ROSTER[key]
    rows = [row for row in schema(entry.config) if row.kind == "whole" and row.page]
    config = replace(entry.config(), **{row.name: int(row.page[1]) for row in rows})
    widths = (1000, 1000)
    run = Run(DATA, TrainConfig(widths=widths), attack_config=config, attack_name=key)
    files.check_room(run)
    session = Session()
    play.configure(session, widths=(train.MOST_WIDTH,))
    play.configure(session, widths=(500,) * train.MOST_LAYERS)
    assert session.train_config.widths == (500,) * train.MOST_LAYERS


# --- forms ---------------------------------------------------------------------------------------


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

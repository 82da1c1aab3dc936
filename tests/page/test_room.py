"""One bound of a page: what its forms do not offer is refused before it is trained or drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from explorer.engine import store
from explorer.engine.data import Dataset, preset
from explorer.engine.files import MOST_WORDS
from explorer.engine.network import Network
from explorer.engine.roster import ROSTER
from explorer.engine.settings import schema
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.page import play
from explorer.page.controls.settings import LAYERS
from explorer.page.lessons.file import LessonError, read
from explorer.page.panels.header import Header
from explorer.page.session import Session
from explorer.page.sharing import files, game
from explorer.page.stages.draw.form import NetworkForm
from explorer.page.stages.train import commands as train
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

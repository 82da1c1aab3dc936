"""What a page gives its browser to keep comes back as the same page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from explorer.engine import store
from explorer.engine.data import preset
from explorer.page import files, play
from explorer.page.session import Session
from explorer.page.stages import draw, train
from explorer.research.state import from_text, to_text
from tests.page.test_exchange import attacked, weights_of


def back(session: Session) -> Session:
    """The page of another kernel that takes up what this one gave to keep."""
    other = Session()
    files.open_file(other, files.as_text(session).encode())
    return other


def reached(session: Session, stage: str) -> Session:
    """A page of an attack whose visitor turned to a stage."""
    play.go(session, stage)
    return session


PAGES: dict[str, Any] = {
    "nothing": Session,
    "drawn": lambda: Session(preset("moons"), seed=5),
    "trained": lambda: reached(attacked(), "train"),
    "drawn after training": lambda: reached(attacked(), "draw"),
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
    assert files.as_text(other) == files.as_text(page)


def test_a_run_trained_on_after_its_attack_can_be_opened_again() -> None:
    page = attacked()
    play.go(page, "train")
    play.step(page, 100)
    for content in (files.as_text(page).encode(), store.dump(files.as_run(page))):
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
    text = files.as_text(page)
    assert len(text) <= files.MOST_KEPT
    other = back(page)
    assert torch.equal(other.frame.dataset.x, page.frame.dataset.x)
    assert other.frame.stage == "train" and other.frame.training.state.t == 0
    assert "step 2" in other.message
    play.step(other, 2)
    assert torch.equal(other.frame.training.state.net.theta, page.frame.training.state.net.theta)


def test_a_kept_page_that_cannot_be_shown_changes_nothing() -> None:
    page = attacked()
    before, text = page.frame, files.as_text(page)
    unknown = to_text(replace(from_text(text), stage="<b>nowhere</b>"))
    for bad in (text[:-40], text.replace("mx1", "mx9"), "mx1.", unknown):
        with pytest.raises(ValueError):
            files.open_file(page, bad.encode())
        assert page.frame is before
    draw.clear(page)
    files.open_file(page, text.encode())
    assert torch.equal(page.frame.dataset.x, before.dataset.x)

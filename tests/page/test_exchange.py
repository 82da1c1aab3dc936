"""A page as a file, and as code: both give the same numbers again."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from pathlib import Path

import ipywidgets as w
import pytest
import torch
from typer.testing import CliRunner

from explorer.cli import app
from explorer.engine import store
from explorer.engine.data import Dataset, preset
from explorer.engine.network import init_network
from explorer.engine.store import Run, StoreError
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.play import act
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train import commands as train
from explorer.page.words.headline import headline
from explorer.research.words import sentence
from explorer.research.words.weights import note
from tests import mutants
from tests.page.pages import classes, walk


def attacked() -> Session:
    session = Session(preset("alternating-line"), seed=3)
    play.go(session, "train")
    play.step(session, 1500)
    play.go(session, "attack")
    play.step(session, 25)
    return session


def test_a_saved_page_opens_to_the_same_numbers_and_history() -> None:
    session = attacked()
    data = store.dump(files.as_run(session))
    other = Session()
    files.open_file(other, data)
    assert torch.equal(other.frame.dataset.x, session.frame.dataset.x)
    assert torch.equal(other.frame.training.state.net.theta, session.frame.training.state.net.theta)
    assert torch.equal(other.frame.attack.state.x, session.frame.attack.state.x)
    assert other.frame.stage == "attack" and other.seed == 3
    assert sentence(other.frame.attack.verdict) == sentence(session.frame.attack.verdict)
    assert other.branch.attack.last_t == 25
    play.step(session, 5)
    play.step(other, 5)
    assert torch.equal(other.frame.attack.state.x, session.frame.attack.state.x), (
        "it goes on as it would have"
    )


def test_a_run_in_single_precision_opens_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    words = ["--preset", "two-points", "--widths", "8", "--dtype", "float32", "--steps", "300"]
    assert CliRunner().invoke(app, ["train", *words, "--out", str(path)]).exit_code == 0
    words = ["attack", str(path), "--steps", "3", "--out", str(path)]
    assert CliRunner().invoke(app, words).exit_code == 0
    session = Session()
    files.open_file(session, path.read_bytes())
    session.attack_config = replace(session.attack_config, steps=9)
    play.step(session, 2)
    assert session.frame.attack.state.t == 5
    play.go(session, "train")
    play.step(session, 2)
    assert session.frame.training.state.net.dtype == torch.float64


def test_an_attack_on_other_weights_is_refused() -> None:
    run = store.load(mutants.run_of("hinge"))
    files.open_file(Session(), store.dump(run))
    last = run.attack_states[-1]
    assert last.left
    cut = replace(last, left=tuple(block[:, :-1] for block in last.left))
    with pytest.raises(StoreError, match="on other weights"):
        files.open_file(Session(), store.dump(replace(run, attack_states=(cut,))))


def test_a_run_that_cannot_be_opened_leaves_the_page_as_it_was() -> None:
    session = attacked()
    before = session.frame, session.train_config, session.seed, session.attack_config
    run = files.as_run(attacked())
    high = preset("two-points").x.repeat(1, 3)
    wide = Run(Dataset(high, preset("two-points").y), run.train_config, seed=9)
    with pytest.raises(ValueError, match="1 or 2 coordinates"):
        files.open_file(session, store.dump(wide))
    assert (session.frame, session.train_config, session.seed, session.attack_config) == before


@pytest.mark.parametrize("content", [b"", b"garbage" * 50, b"\x80\x04N."])
def test_a_foreign_file_is_refused_and_the_page_stays(content: bytes) -> None:
    session = attacked()
    before = session.frame
    with pytest.raises(ValueError):
        files.open_file(session, content)
    assert session.frame.attack is before.attack and session.frame.dataset is before.dataset


def weights_of(d: int) -> bytes:
    net = init_network(d, [7], generator=torch.Generator().manual_seed(0), first_scale=1.0)
    state = {"fc1.weight": net.weights[0], "fc1.bias": net.biases[0], "fc2.weight": net.weights[1]}
    out = io.BytesIO()
    torch.save(state, out)
    return out.getvalue()


def test_weights_of_others_become_the_network_of_the_present_points() -> None:
    session = Session(preset("moons"))
    files.open_file(session, weights_of(2))
    assert session.frame.training.state.net.widths == (7,)
    assert session.frame.stage == "train"
    assert session.message == note(session.frame.training.state.net) != ""


def test_that_weights_were_taken_as_relu_is_told_wherever_they_go() -> None:
    session = Session(preset("moons"))
    files.open_file(session, weights_of(2))
    play.step(session, 3)
    assert session.frame.training.state.net.assumed_relu
    other = Session(preset("xor"))
    files.open_file(other, store.dump(files.as_run(session)))
    assert other.message == note(session.frame.training.state.net)
    own = Session(preset("moons"))
    train.begin(own)
    last = Session()
    files.open_file(last, store.dump(files.as_run(own)))
    assert "ReLU" not in last.message and not last.frame.training.state.net.assumed_relu


def failures(page: App) -> list[str]:
    """What the panels tell of errors of their own."""
    told = [x for p in page.panels.values() for x in walk(p.box) if isinstance(x, w.HTML)]
    return [x.value for x in told if "mx-failed" in classes(x) and x.layout.display != "none"]


@pytest.mark.parametrize("name", ["", "alternating-line"])
def test_weights_without_their_points_ask_for_them_or_are_attacked_without(name: str) -> None:
    async def visit() -> None:
        page = App(preset(name) if name else None)
        session = page.session
        files.open_file(session, weights_of(2))
        theta = session.frame.training.state.net.theta.clone()
        asked = headline(session.frame)
        assert session.frame.dataset.n == 0 and session.frame.dataset.d == 2
        assert asked.action is not None and asked.action.key == "attack"
        for stage in ("explain", "landscape", "arena"):
            with pytest.raises(ValueError, match="without their data"):
                play.go(session, stage)
        act(session, "attack")
        session.running = False
        play.step(session, 30)
        part = session.frame.attack
        assert part.verdict is None and part.claims is not None
        assert str(len(part.claims.x)) in headline(session.frame).title
        assert failures(page) == []
        draw.load(session, preset("moons"))
        assert torch.equal(session.frame.training.state.net.theta, theta), "the weights await them"
        assert session.frame.dataset.n == 24 and session.frame.target is None
        assert headline(session.frame) != asked
        page.close()

    asyncio.run(visit())  # an action may press Play


def test_play_on_weights_of_a_file_is_said_to_change_them() -> None:
    session = Session(preset("moons"))
    files.open_file(session, weights_of(2))
    before = headline(session.frame)
    assert "Play" in before.words
    play.step(session, 1)
    assert "Play" not in headline(session.frame).words


def test_weights_that_the_plane_cannot_show_are_refused() -> None:
    session = Session(preset("moons"))
    with pytest.raises(ValueError, match="1 or 2 coordinates"):
        files.open_file(session, weights_of(3))

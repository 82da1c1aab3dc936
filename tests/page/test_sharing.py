"""A link holds the page: opened there, by Python or by the command, it gives the same numbers."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace

import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from explorer import link_of, read_link, repeat
from explorer.cli import app
from explorer.engine.data import Dataset, preset
from explorer.engine.roster import ROSTER
from explorer.page import branches, play
from explorer.page.opening import opening
from explorer.page.panels.headline import HeadlinePanel
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.sharing.panel import SharePanel
from explorer.page.sharing.run import gap, run_of_page
from explorer.page.sharing.words import ANEW, ATTACK_ANEW, WEIGHTS, only_here
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train import commands as train
from explorer.page.words.headline import headline
from explorer.research.code import command_of, python_of
from explorer.research.pictures import planes
from explorer.research.runs import to_the_end
from explorer.research.words import sentence
from tests.page.pages import send
from tests.page.test_document import data_of
from tests.page.test_exchange import weights_of
from tests.page.test_recording import read


def by_hand(n: int = 8) -> Dataset:
    generator = torch.Generator().manual_seed(1)
    x = 3 * torch.rand(n, 2, generator=generator, dtype=torch.float64) - 1.5
    return Dataset(x, torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(n // 2))


def close(one: torch.Tensor, other: torch.Tensor, within: float = 1e-9) -> None:
    """To rounding, as steps go in other blocks; candidates on their way magnify it."""
    torch.testing.assert_close(one, other, rtol=within, atol=within)


def kkt(session: Session) -> None:
    play.go(session, "train")
    play.configure(session, widths=(20,))
    play.configure(session, momentum=0.9)
    play.step(session, 400)
    play.go(session, "attack")
    play.configure(session, m=20)
    play.step(session, 30)


def mixed_from_another_seed(session: Session) -> None:
    kkt(session)
    attack.remix(session, 0.3, 0.2)
    play.reseed(session)
    play.step(session, 7)


def exact_on_the_line(session: Session) -> None:
    draw.load(session, preset("alternating-line"))
    train.jump_to_exact(session)
    attack.choose(session, "univariate")
    play.go(session, "attack")
    play.step(session, 2)


def finished(session: Session) -> None:
    play.go(session, "train")
    play.configure(session, widths=(30,))
    play.step(session, 300)
    now = session.frame
    for state, made in to_the_end(now.dataset, now.training.state, session.train_config):
        train.take(session, state, made)


def set_back(session: Session) -> None:
    finished(session)
    branches.seek(session, session.timeline.nearest(200))
    play.step(session, 5)


def drawn(session: Session) -> None:
    play.go(session, "train")
    play.go(session, "draw")
    draw.add(session, [((0.123456789, -0.7), 1)])
    play.step(session, 60)


WAYS: tuple[Callable[[Session], None], ...] = (
    kkt, mixed_from_another_seed, exact_on_the_line, finished, set_back, drawn,
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_link_opens_to_the_same_numbers(way: Callable[[Session], None]) -> None:
    session = Session(by_hand(), seed=4)
    way(session)
    link = link_of(run_of_page(session), "http://127.0.0.1:8866/?theme=dark")
    assert not gap(session)
    other = Session(preset("moons"))
    for _ in opening(other, read_link(link), "The link", "done", seconds=0.01):
        pass
    now, then = other.frame, session.frame
    assert torch.equal(now.dataset.x, then.dataset.x) and now.dataset.source == then.dataset.source
    assert now.stage == then.stage and other.message == "done"
    assert now.training.state.t == then.training.state.t
    close(now.training.state.net.theta, then.training.state.net.theta)
    assert other.train_config == session.train_config
    if then.attack.state is not None:
        assert now.attack.state.t == then.attack.state.t
        close(now.attack.state.x, then.attack.state.x, 1e-5)
        assert sentence(now.attack.verdict) == sentence(then.attack.verdict)
        assert other.attack_config == session.attack_config
    assert link_of(run_of_page(other)) == link_of(run_of_page(session)), "it can be passed on"


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_python_and_command_print_the_numbers_of_the_page(way: Callable[[Session], None]) -> None:
    session = Session(by_hand(), seed=4)
    way(session)
    now, run = session.frame, run_of_page(session)
    said = io.StringIO()
    with redirect_stdout(said):
        exec(python_of(run), space := {})
    close(space["state"].net.theta, now.training.state.net.theta)
    assert f"{now.training.state.q_min:.6g}" in said.getvalue()
    _, *words = command_of(run).split()
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["training"]["q"] == pytest.approx(now.training.state.q.tolist(), rel=1e-6)
    if now.attack.verdict is not None:
        words = sentence(now.attack.verdict)
        assert words in said.getvalue() and told["attack"]["verdict"]["sentence"] == words
    else:
        assert "attack" not in python_of(run)


@pytest.mark.parametrize("attack_name", ROSTER)
def test_the_python_of_every_attack_finds_what_the_page_found(attack_name: str) -> None:
    session = Session(preset("alternating-line", n=6), seed=2)
    play.go(session, "train")
    play.configure(session, widths=(20,))
    play.step(session, 400)
    attack.choose(session, attack_name)
    play.go(session, "attack")
    play.step(session, 6)
    now, said = session.frame, io.StringIO()
    assert now.attack.name == attack_name and now.attack.verdict is not None
    with redirect_stdout(said):
        exec(python_of(run_of_page(session)), space := {})
    assert sentence(now.attack.verdict) in said.getvalue()
    one, other = (x.sort(dim=0).values for x in (space["claims"].x, now.attack.claims.x))
    close(one, other, 1e-5)  # the order of equally good ones is that of rounding


def test_what_cannot_be_made_again_is_told_and_left_out() -> None:
    session = Session(by_hand())
    play.step(session, 20)
    assert not gap(session)
    draw.add(session, [((0.1, 0.2), 1)])
    assert gap(session) == ANEW and run_of_page(session).steps == (0, 0)
    play.step(session, 20)
    run = run_of_page(session)
    assert gap(session) and run.steps == (0, 0) and run.stage == "draw"
    assert torch.equal(run.dataset.x, session.frame.dataset.x)
    play.reset(session)
    play.step(session, 20)
    assert not gap(session) and run_of_page(session).steps == (20, 0)
    play.configure(session, momentum=0.5)
    assert gap(session)
    play.reset(session)
    assert not gap(session), "from its first step on it has these settings"
    kkt(session)
    assert not gap(session)
    session.put(attack=replace(session.frame.attack, seed=None))  # one that was loaded
    assert gap(session) == ATTACK_ANEW
    files.open_file(session, weights_of(2))
    assert gap(session) == WEIGHTS


def test_a_page_of_points_alone_is_a_link_too() -> None:
    session = Session(by_hand())
    run = read_link(link_of(run_of_page(session)))
    assert torch.equal(run.dataset.x, session.frame.dataset.x) and run.stage == "draw"
    assert repeat(run).state is None
    other = Session()
    assert list(opening(other, run, "The link", "done")) == []
    assert other.frame.dataset.n == 8 and other.frame.training.state is None


def test_forty_points_take_less_than_two_kilobytes() -> None:
    session = Session(by_hand(40))
    play.go(session, "train")
    link = link_of(run_of_page(session), "http://class.example.org:8866/")
    assert len(link) < 2000


def test_what_a_visitor_does_ends_the_opening() -> None:
    session = Session(by_hand(), seed=4)
    kkt(session)
    run, other = run_of_page(session), Session()
    slices = opening(other, run, "The link", "done", seconds=0.002)
    next(slices)
    draw.clear(other)
    assert list(slices) == [] and other.message != "done"


def test_no_headline_bids_to_press_play_while_a_link_is_opened() -> None:
    session = Session(by_hand(), seed=4)
    kkt(session)
    run, other = run_of_page(session), Session()
    panel = HeadlinePanel(other)
    for _ in opening(other, run, "The link", "done", seconds=0.002):
        other.show()
        made = headline(other.frame, running=True)
        assert panel.text == f"{made.title} {made.under_title}" and not panel.view.state["action"]
    other.show()
    assert not other.opening and panel.view.state["action"]
    slices = opening(other, run, "The link", "done", seconds=0.002)
    next(slices)
    assert other.opening
    slices.close()
    assert not other.opening, "also where it is given up"


def test_without_matplotlib_what_needs_it_names_the_extra(monkeypatch) -> None:
    session = Session(by_hand())
    play.step(session, 30)
    panel = SharePanel(session, unfolded=True, on_link=str)
    session.show()
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for key in ("pdf", "png", "report", "train"):
        session.message = ""
        send(panel.view, kind="save", value=key)
        assert "margin-explorer[cli]" in session.message
        assert not panel.failure.value


def test_a_film_is_saved_as_gif_or_given_to_the_browser_frame_by_frame(monkeypatch) -> None:
    session = Session(by_hand())
    play.step(session, 5)
    panel, sent = SharePanel(session, unfolded=True, on_link=str), []
    session.show()
    monkeypatch.setattr(panel.view, "send", lambda told, buffers=(): sent.append((told, buffers)))
    send(panel.view, kind="save", value="train")
    send(panel.view, kind="save", value="train-video")
    (gif, (film,)), (video, frames) = sent
    assert gif["name"] == "training.gif" and film.startswith(b"GIF89a")
    assert video["kind"] == "frames" and len(frames) == len(video["times"]) > 2
    assert all(Image.open(io.BytesIO(f)).size == (planes.VIDEO,) * 2 for f in frames)
    assert session.message
    send(panel.view, kind="recorded", value=True)
    assert not session.message
    send(panel.view, kind="recorded", value=False)
    assert "ffmpeg" in session.message


def test_a_page_that_plays_is_saved_of_the_run_on_screen(monkeypatch) -> None:
    session = Session(by_hand())
    panel, sent = SharePanel(session, unfolded=True, on_link=str), []
    session.show()
    kinds = {k["key"]: k for _, row in panel.view.state["files"] for k in row}
    assert kinds["page"]["off"], "there is nothing to play yet"
    play.step(session, 30)
    monkeypatch.setattr(panel.view, "hand_over", lambda *given: sent.append(given))
    send(panel.view, kind="save", value="page")
    ((name, kind, content),) = sent
    assert (name, kind) == ("run.html", "text/html")
    data = data_of(content.decode())
    last = read(base64.b64decode(data["recording"]))[-1]
    assert (last["t"], last["title"]) == (30, headline(session.frame).title)
    assert read_link(data["about"]["link"]).steps == (30, 0)


def test_where_the_network_finds_the_machine_a_link_says_where() -> None:
    assert "--host" in only_here("")
    assert "{address}" in only_here("192.0.2.1")  # which the browser fills in

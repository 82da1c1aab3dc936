"""The page in the hands of a notebook: its parts as traits, its clicks as methods, its code."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from traitlets import TraitError

import explorer
from explorer.engine.data import preset
from explorer.engine.status import Status
from explorer.engine.store import Run
from explorer.page.apps import page as shown_pages
from explorer.page.apps.explorer import App
from explorer.page.apps.page import Place
from explorer.page.sharing.run import run_of_page
from explorer.research.code import notebook_of
from tests.page.pages import on_plane

page = pytest.fixture(lambda: App(preset("alternating-circle", n=6)))


def test_calls_do_what_clicks_do_and_every_result_has_a_public_name(page: App) -> None:
    seen: list[str] = []
    names = ["dataset", "network", "target", "claims", "verdict", "certificate"]
    page.observe(lambda change: seen.append(change["name"]), names)
    page.draw((0.1, 0.2), -1)
    page.draw([[0.4, 0.3], [-0.4, -0.3]], [1, -1])
    assert page.dataset.n == 9 and page.dataset.y.tolist()[-3:] == [-1, 1, -1]
    assert len(on_plane(page)["points"]) == 9
    page.train(400, widths=(20,))
    assert page.network.widths == (20,) and page.session.frame.training.t == 400
    assert page.certificate is not None and page.session.frame.stage == "train"
    page.train(1000)
    page.attack("kkt", steps=30, m=12)
    assert page.session.frame.attack.t == 30 and page.session.attack_config.m == 12
    assert page.target.net is not None and page.claims is not None and page.verdict is not None
    assert set(seen) == set(names)
    page.go("landscape")
    assert page.session.frame.stage == "landscape" and page.energies.shape[0] > 2
    assert page.run.attack_name == "kkt" and page.run.net.widths == (20,)
    assert repr(page).startswith("App(9 points")


def test_the_run_is_observed_like_the_other_traits_at_each_moment_of_rest(page: App) -> None:
    seen: list[Run] = []
    page.observe(lambda change: seen.append(change["new"]), "run")
    assert "run" in page.trait_names() and page.traits()["run"].read_only
    page.train(1000, widths=(20,))
    assert seen[-1].train_states[-1].t == 1000 and seen[-1].dataset is page.dataset
    page.attack("kkt", steps=10, m=4)
    assert seen[-1].attack_states[-1].t == page.run.attack_states[-1].t == 10
    many = len(seen)
    page.session.show()  # nothing happened
    assert len(seen) == many
    with pytest.raises(TraitError):
        page.run = seen[0]


def test_an_attack_goes_on_to_its_end_and_beyond_what_was_planned(page: App) -> None:
    page.train(400, widths=(20,))
    page.attack("kkt", m=12, steps=3000)
    assert page.session.attack_config.steps == 3000 and page.session.frame.attack.t == 3000
    assert page.session.frame.status is not Status.RUNNING


def test_points_that_are_set_are_an_edit(page: App) -> None:
    page.train(50, widths=(8,))
    before = page.dataset
    page.dataset = ([[0.0, 1.0], [1.0, 0.0]], [1, -1])
    assert page.session.frame.dataset is page.dataset and page.dataset.n == 2
    assert page.network is None  # it was trained on none of them
    page.dataset = before
    assert len(on_plane(page)["points"]) == 6


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda page: page.draw((0.0, 0.0), 7), "labels here are 1, -1, 3, 4; got 7"),
        (lambda page: page.draw((1.0, 2.0, 3.0), 1), "a point here has 2 coordinates"),
        (lambda page: page.go("attacks"), "a stage is one of draw, train"),
        (lambda page: page.attack("kkt"), "No network to attack"),
        (lambda page: page.train(5, widths=(0,)), "widths"),
        (lambda page: setattr(page, "dataset", "moons"), "expected a Dataset or a pair"),
        (lambda page: setattr(page, "network", None), "read-only"),
        (lambda page: explorer.link(page, page, "network"), "both have the traits dataset; got"),
    ],
)
def test_what_is_refused_is_one_sentence_and_changes_nothing(page: App, call, words: str) -> None:
    before, stage = page.dataset, page.session.frame.stage
    with pytest.raises((ValueError, TraitError)) as refused:
        call(page)
    assert words in str(refused.value) and "\n" not in str(refused.value)
    assert page.dataset is before and page.session.frame.stage == stage


def test_linked_pages_have_one_drawing_and_networks_of_their_own(page: App) -> None:
    other = App()
    (made,) = explorer.link(page, other, "dataset")
    assert other.dataset is page.dataset
    page.train(100, widths=(8,))
    other.train(100, widths=(16,))
    other.draw((0.3, 0.3), 1)
    assert page.dataset is other.dataset and page.dataset.n == 7
    assert page.network.widths == (8,) and other.network.widths == (16,)
    made.unlink()
    other.draw((0.5, 0.3), 1)
    assert (page.dataset.n, other.dataset.n) == (7, 8)


def test_the_code_of_a_notebook_makes_the_same_page(page: App) -> None:
    page.train(300, widths=(20,), momentum=0.9)
    page.attack("kkt", steps=40, m=12)
    code = notebook_of(run_of_page(page.session))
    assert "page.train(300, widths=(20,), momentum=0.9)" in code
    assert "page.attack('kkt', steps=40, m=12)" in code
    exec(code, space := {})
    again = space["page"]
    assert torch.equal(again.network.theta, page.network.theta)
    assert torch.equal(again.session.frame.attack.state.x, page.session.frame.attack.state.x)
    assert notebook_of(run_of_page(again.session)) == code


def test_what_no_call_does_is_opened_by_its_link(page: App) -> None:
    page.train(300, widths=(20,))
    page.attack("kkt", m=12, steps=5)
    page.session.mix = (0.5, 0.0)
    assert 'page = app("mx1.' in notebook_of(run_of_page(page.session))


def test_a_cell_may_show_several_pages_and_a_run_of_it_replaces_them(monkeypatch) -> None:
    here = Place("one", "a")
    monkeypatch.setattr(shown_pages, "this_place", lambda: here)
    first, second = explorer.app(shown=False), explorer.app(shown=False)
    here = Place("two", "b")
    third = explorer.app(shown=False)
    live = [first, second, third]

    def open_() -> list[bool]:
        return [one.widget.comm is not None for one in live]

    assert open_() == [True, True, True]
    here = Place("one", "c")
    fourth = explorer.app(shown=False)
    assert open_() == [False, False, True]
    here = Place("three", "d", ("two",))
    fifth: Any = explorer.app(shown=False)
    assert open_() == [False, False, False]
    fourth.close(), fifth.close()

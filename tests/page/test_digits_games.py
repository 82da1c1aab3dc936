"""The digits page: a quiz that hides the truth, and images drawn by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from explorer.engine.data.images import Choice, draw
from explorer.page.apps.digits import DigitsApp
from explorer.page.view.pictures import DRAWN, PicturesView
from explorer.research import image_runs
from explorer.research.image_runs import ImageRun
from tests.page.pages import choose, press, send

TINY = ImageRun(Choice(n=10), widths=(40,), train_steps=60, steps=4)
page = pytest.fixture(lambda: DigitsApp(TINY))


def attacked(page):
    page.run_training()
    page.run_attack()
    assert page.failure.layout.display == "none", page.failure.value


def line(page, digit, columns=slice(10, 14)):
    """Draw an upright line, as a browser sends it, and add it as this digit."""
    drawn = torch.zeros(DRAWN, DRAWN, dtype=torch.uint8)
    drawn[4:24, columns] = 255
    page.own.pad.hear("drawn", {"kind": "drawn"}, [drawn.numpy().tobytes()])
    choose(page.own.row, "digit", digit)
    press(page.own.row, "add")


def test_a_quiz_waits_for_an_attack_and_hides_the_truth_until_it_is_over(page):
    card, gallery = page.quiz, page.board.gallery
    assert card.row.items["play"].disabled
    attacked(page)
    shown = gallery.view.pixels
    press(card.row, "play")
    assert "hidden" in gallery.title.value and gallery.view.captions == ["closest reconstruction"]
    assert len(card.sheet.view.tiles) == 10 and card.row.items["reveal"].disabled
    for tile in (0, 1, 1, 2, 3, 4, 5):  # the second is taken back, the last finds no room
        send(card.sheet.view, kind="press", tile=tile)
    assert card.guess.nonzero()[:, 0].tolist() == [0, 2, 3, 4]
    assert [tile["on"] for tile in card.sheet.view.tiles] == card.guess.tolist()
    made, guess = card.quiz, card.guess
    press(card.row, "reveal")
    assert f" {made.right(guess)} of 4" in card.sheet.title.value
    marks = [tile["mark"] == "good" for tile in card.sheet.view.tiles]
    assert marks == made.trained.tolist() and gallery.view.pixels == shown
    send(card.sheet.view, kind="press", tile=0)  # it is over
    assert card.quiz is None
    page.run_training()
    assert card.row.items["play"].disabled and "Attack first" in card.sheet.title.value


def filled(page):
    """The buttons that the page shows as the next thing to do."""
    rows = (page.controls, page.quiz.row, page.own.row)
    return [name for row in rows for name in row.items if row.json(name).get("filled")]


def test_one_button_is_filled_the_next_thing_to_do(page):
    assert filled(page) == ["train"]
    page.run_training()
    assert filled(page) == ["go"]
    page.run_attack()
    assert filled(page) == ["play"]
    press(page.quiz.row, "play")
    assert filled(page) == ["reveal"]
    for tile in range(4):
        send(page.quiz.sheet.view, kind="press", tile=tile)
    press(page.quiz.row, "reveal")
    assert filled(page) == ["open"]
    press(page.own.row, "open")
    assert filled(page) == ["add"]
    line(page, 3)
    assert filled(page) == ["train"]


def test_what_is_believed_says_which_is_right_unless_the_truth_is_secret(page):
    attacked(page)
    believed, drawn = page.board.believed, page.draw
    assert len(believed.widget.children) == 1  # one start agrees with nothing
    mine = drawn.pictures(drawn.train.x)
    starts = [torch.cat([mine[:4], 1 - mine[4:6]]), mine[:4]]
    found = image_runs.score_pictures(drawn, page.trained.net, torch.cat(starts))
    found = replace(found, selection=image_runs.selection(drawn, starts))
    believed.show_best(found, False)
    marks = [tile["mark"] == "good" for tile in believed.view.tiles]
    assert marks == found.selection.right.tolist() and 2 < sum(marks) < len(marks)
    line(page, 3)
    own = page.draw.pictures(page.draw.own.x)
    assert image_runs.selection(page.draw, [own, own]).of.tolist() == [10]
    believed.show_best(found, True)
    assert not any(tile["mark"] for tile in believed.view.tiles)


def test_images_of_ones_own_are_trained_on_and_read_back_beside_the_counts(page):
    without = page.draw
    attacked(page)
    usual = page.trained
    line(page, 3)
    line(page, 8, slice(4, 24))
    assert page.trained is None and page.draw.own.y.tolist() == [1, -1]
    assert page.draw.trained.n == 12 and page.draw.train.n == 10
    own = page.draw.pictures(page.draw.own.x)
    assert own.shape == (2, 1, 8, 8) and 0 <= float(own.min()) < 1e-12 < 0.9 < float(own.max()) <= 1
    attacked(page)
    assert len(page.trained.q) == 12 and not torch.equal(page.trained.net.theta, usual.net.theta)
    assert page.scored.verdict.n == 10 and len(page.scored.own.ncc) == 2
    assert "of your 2" in page.own.sheet.title.value and len(page.own.sheet.view.tiles) == 2
    press(page.own.row, "drop")
    assert page.draw.own is None and torch.equal(page.draw.train.x, without.train.x)
    assert page.own.row.items["drop"].disabled


def test_an_attack_that_holds_ones_own_image_finds_it_and_names_no_other_by_it(page):
    line(page, 1)
    attacked(page)
    drawn = page.draw
    own = drawn.pictures(drawn.own.x)
    found = image_runs.score_pictures(drawn, page.trained.net, own)
    assert float(found.own.ncc[0]) == pytest.approx(1) and found.verdict.found == 0
    assert found.verdict.of_controls == 0


def test_ten_classes_take_the_digit_and_cifar_has_no_pad(page):
    choose(page.controls, "task", "ten")
    line(page, 7)
    assert page.draw.own.y.tolist() == draw(Choice(task="ten", n=10)).train.y.unique()[7:8].tolist()
    choose(page.controls, "kind", "cifar")
    assert page.own.images == [] or page.draw is None


def test_an_empty_square_is_not_added_and_strange_messages_are_not_taken(page):
    press(page.own.row, "add")
    page.own.pad.hear("drawn", {"kind": "drawn"}, [b"short"])
    assert page.own.images == [] and page.draw.own is None
    view = PicturesView()
    view.draw([torch.rand(3, 1, 2, 2)], ["one"], [{"mark": "", "words": ""}] * 3)
    heard = []
    view.on("press", heard.append)
    for tile in (0, 3, -1, "0", None):
        send(view, kind="press", tile=tile)
    assert heard == [] and len(view.pixels) == 12
    view.pressable = True
    for tile in (2, 3, -1, "0", None):
        send(view, kind="press", tile=tile)
    assert heard == [2]


def test_the_handle_shows_the_images_of_a_start(page):
    page.run_training()
    view = page.grid.view
    assert view.enabled and len(page.grid.mixed.widget.children) == 1
    send(view, kind="handle", weights=[1.0, 0.0, 0.0], number=1)
    assert (
        "100% truth" in page.grid.mixed.title.value
        and "squared weights" in page.grid.mixed.title.value
    )
    truth = (page.draw.pictures(page.draw.train.x)[:10] * 255).round().to(torch.uint8)
    assert sorted(page.grid.mixed.view.pixels) == sorted(truth.flatten().tolist())
    choose(page.controls, "seed", 1)
    assert not view.enabled and len(page.grid.mixed.widget.children) == 1

"""Attacks on real images end to end: the road, the page without a browser, the verb."""

from __future__ import annotations

import asyncio
import json
import runpy
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import explorer
from explorer.cli import app as command
from explorer.engine.data.images import Choice, draw
from explorer.engine.images import NCC_LEAST, image_scores
from explorer.engine.margin import q_of
from explorer.engine.roster import by_key
from explorer.page.apps.digits import DigitsApp
from explorer.page.apps.digits_charts import FEW, Gallery
from explorer.research import image_runs
from explorer.research.image_runs import ImageRun, carried_numbers, picture_attacks
from explorer.research.pictures import image_sheets
from explorer.research.runs import RunFailed
from explorer.research.words import verdicts
from tests.page.pages import choose, label, press, send

TINY = ImageRun(Choice(n=10), widths=(40,), train_steps=60, steps=4)


def last(states):
    for state in states:
        kept = state
    return kept


def through(run):
    drawn = draw(run.choice)
    trained = None if run.attack == "bilevel" else last(image_runs.train(drawn, run))
    aimed = image_runs.aim(drawn, run, trained)
    return drawn, aimed, last(image_runs.attack(drawn, run, aimed))


@pytest.mark.parametrize("attack", picture_attacks())
def test_every_attack_runs_from_noise_and_is_judged(attack):
    drawn, aimed, state = through(replace(TINY, attack=attack))
    found = image_runs.assess(drawn, aimed, [state])
    assert len(found.controls) == 19 and 0 <= found.chance <= 1
    assert found.verdict.n == 10 and found.verdict.why_not is None
    assert 0 <= found.diversity <= 1 and 0 <= found.roc.auc <= 1
    assert found.diversity * len(found.found) == found.verdicts["rank"].found
    assert found.found.shape[1:] == (1, 8, 8)


@pytest.mark.parametrize("attack", ["kkt", "decoreco", "bilevel"])
@pytest.mark.parametrize("start", ["truth", "partition"])
def test_a_start_is_where_it_says(attack, start):
    run = replace(TINY, attack=attack, start=start)
    drawn = draw(run.choice)
    trained = None if attack == "bilevel" else last(image_runs.train(drawn, run))
    aimed = image_runs.aim(drawn, run, trained)
    found = image_runs.assess(drawn, aimed, [next(image_runs.attack(drawn, run, aimed))])
    mine, rest = found.verdict.share, found.start_share
    assert (mine, rest, found.chance) == ((1, 0, 0) if start == "truth" else (0, 1, 0))
    assert (found.roc.auc == 1) == (start == "truth")


def test_bilevel_stays_at_the_truth():
    run = replace(TINY, attack="bilevel", start="truth", steps=20)
    drawn, _, state = through(run)
    assert torch.equal(state.x, drawn.train.x)


@pytest.mark.parametrize("attack", picture_attacks())
def test_attacks_that_have_a_choice_take_the_type_of_images(attack):
    """Weights stay as they were trained; whatever is scored is in float64."""
    drawn, aimed, state = through(replace(TINY, attack=attack))
    chosen = by_key(attack).needs.anywhere
    assert state.x.dtype == (image_runs.ATTACK_TYPE if chosen else torch.float64)
    assert aimed.net.dtype == torch.float64
    assert image_runs.assess(drawn, aimed, [state]).found.dtype == torch.float64


def test_ten_classes_are_attacked_by_decoreco():
    run = replace(TINY, choice=Choice(task="ten", n=10), attack="decoreco", train_steps=120)
    drawn, aimed, state = through(run)
    assert aimed.net.outputs == 10
    assert len(image_runs.assess(drawn, aimed, [state]).outputs) == 10
    with pytest.raises(ValueError, match="two classes"):
        replace(run, attack="kkt")


def test_merged_networks_hold_fewer_numbers():
    first = torch.tensor([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 1.0, 0.0]])
    net = explorer.Network((first, torch.ones(1, 3)), (torch.zeros(3), None))
    assert carried_numbers(net) == 2 * 4


@pytest.mark.parametrize(
    "fields",
    [{"attack": "hinge"}, {"start": "nowhere"}, {"attack": "inversion", "start": "truth"}],
)
def test_runs_that_cannot_be_are_refused(fields):
    with pytest.raises(ValueError):
        replace(TINY, **fields)


def test_an_unseparated_network_is_not_attacked():
    run = replace(TINY, train_steps=1)
    drawn = draw(run.choice)
    with pytest.raises(ValueError, match="more steps"):
        image_runs.aim(drawn, run, None)


def test_weights_with_training_errors_are_attacked_where_that_is_asked_for(tmp_path):
    run = replace(TINY, choice=Choice(n=40), train_steps=8, widths=(6,))
    drawn = draw(run.choice)
    state = last(image_runs.train(drawn, run))
    wrong = int((state.q <= 0).sum())
    assert 0 < wrong < 20
    with pytest.raises(ValueError, match="--errors"):
        image_runs.aim(drawn, run, state)
    with pytest.raises(RunFailed):
        image_runs.train_and_attack(drawn, run)
    aimed = image_runs.aim(drawn, replace(run, errors=True), state)
    right = state.q[state.q > 0]
    unit = q_of(aimed.net, drawn.train.x, drawn.train.y)
    assert float(unit[unit > 0].median()) == pytest.approx(1)
    assert int((unit > 0).sum()) == len(right)
    found, net = image_runs.train_and_attack(drawn, replace(run, errors=True))
    assert image_runs.accuracy(net, [drawn.train]) == 1 - wrong / 40 and found.verdict.n == 40
    words = [
        "digits",
        "--n",
        "40",
        "--widths",
        "6",
        "--steps",
        "8",
        "--attack-steps",
        "4",
        "--json",
    ]
    words += ["--errors", "--out", str(tmp_path / "a.png")]
    row = json.loads(CliRunner().invoke(command, words).stdout)
    assert f"{wrong} of 40" in row["note"] and "residual" not in row


def test_a_sheet_shows_pixels_as_they_are():
    truth = torch.zeros(3, 1, 2, 3, dtype=torch.float64)
    truth[1, 0, 1, 2] = 1
    sheet = image_sheets.pairs(truth, truth.flip(0), ["", "#009E73", ""], 2)
    edge, factor = image_sheets.EDGE, 48 // 3
    x = 3 * factor + 2 * edge + image_sheets.GAP
    assert tuple(sheet[0, x]) == (0, 0x9E, 0x73, 255)  # the frame of the second pair
    inside = sheet[edge : edge + 2 * factor, x + edge : x + edge + 3 * factor, 0]
    assert (inside[factor:, 2 * factor :] == 255).all() and (inside[:factor] == 0).all()
    assert image_sheets.png(sheet).startswith(b"\x89PNG")


def test_weights_are_grey_at_zero():
    made = image_sheets.grey_at_zero(torch.tensor([[0.0, -2.0, 2.0, 0.0]]), (1, 2, 2))
    assert made.tolist() == [[[[0.5, 0.0], [1.0, 0.5]]]]
    rows = torch.tensor([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]])
    assert image_sheets.strongest(rows, 2).tolist() == [[3, 4], [0, 2]]


page = pytest.fixture(lambda: DigitsApp(TINY))


def well(page):
    assert page.failure.layout.display == "none", page.failure.value


def stands(page):
    """The steps that the head shows as done, and the present one."""
    shown = page.head.state
    return [row["key"] for row in shown["stages"] if row["state"] == "done"], shown["now"]


def found_pairs_come_first_and_the_likest_have_the_full_frame(page):
    found, gallery = page.scored, page.board.gallery
    marks = [tile["mark"] for tile in gallery.view.tiles]
    assert marks == sorted(marks, key=["good", "faint", ""].index)
    likest = (found.matched & (found.truth.ncc > NCC_LEAST)).sum()
    assert marks.count("good") == likest and marks.count("") == 10 - found.verdict.found
    assert gallery.view.few == (int(likest) or FEW), "in sight at first"
    title = page.sentence.value
    assert f"{found.verdict.found} of 10" in title and f"{likest} of them" in title
    worst = torch.zeros(10, dtype=torch.bool)
    worst[found.scores.argmin()] = True
    alone = replace(found, truth=replace(found.truth, named=worst))
    gallery.compare(page.draw, alone)
    assert [bool(tile["mark"]) for tile in gallery.view.tiles] == [True] + 9 * [False]
    gallery.compare(page.draw, found)


def test_the_page_says_what_to_do_trains_and_attacks(page):
    assert stands(page) == (["images"], "train")
    assert "Press Train" in page.sentence.value and page.controls.items["go"].disabled
    assert "never sees" in page.board.gallery.title.value
    page.run_training()
    assert stands(page) == (["images", "train"], "attack")
    assert "Press Attack" in page.sentence.value and not page.controls.items["go"].disabled
    assert "numbers" in page.board.neurons.key.value
    page.run_attack()
    assert "of 10" in page.sentence.value
    assert "unseen" in page.sentence.value and page.job.share == 1
    assert stands(page) == (["images", "train", "attack"], "attack")
    assert {row["part"] for row in page.head.state["stages"]} == {
        f"[data-item={name}]" for name in ("kind", "train", "go") if name in page.controls.items
    }
    found_pairs_come_first_and_the_likest_have_the_full_frame(page)
    a_lasso_shows_those_images_alone(page)
    well(page)


def a_lasso_shows_those_images_alone(page):
    chart, tiles = page.board.outputs, page.board.gallery.view
    dots = {mark.labels[0]: mark for mark in chart.figure.marks}
    place = {int(i): (float(x), float(y)) for s in chart.shown.series
             for i, x, y in zip(s.ids, s.x, s.y, strict=True)}  # fmt: skip
    assert sorted(place) == list(range(10))
    assert all(place[i][1] == pytest.approx(float(page.scored.truth.ncc[i])) for i in place)
    assert len(tiles.tiles) == 10
    name, mark = next((name, mark) for name, mark in dots.items() if name)
    mark.selected = np.array([0])
    (tile,) = tiles.tiles
    (series,) = [s for s in chart.shown.series if s.name == name]
    assert f"NCC {page.scored.truth.ncc[int(series.ids[0])]:.2f}" in tile["words"]
    press(chart.tools, "reset")
    assert chart.figure.interaction is chart.choosing and len(tiles.tiles) == 10
    mark = next(mark for mark in chart.figure.marks if mark.labels == [name])
    mark.selected = np.array([0])
    assert len(tiles.tiles) == 1
    page.run_attack()  # nothing is chosen of the next
    assert page.board.chosen is None and len(tiles.tiles) == 10


def test_another_vote_shows_other_pictures_of_the_same_candidates(page):
    page.run_training()
    page.run_attack()
    near, state = page.scored, page.attacked
    choose(page.controls, "vote", "mean")
    assert "the mean" in page.board.gallery.key.value
    assert page.attacked is state
    assert torch.equal(page.scored.found, near.found)
    assert torch.equal(page.scored.truth.nearest, near.truth.nearest)
    drawn = page.draw
    sets = (drawn.train, drawn.other, *drawn.controls)
    want, _, *controls = image_scores([drawn.pictures(s.x) for s in sets], near.found, vote="mean")
    assert torch.equal(page.scored.truth.images, want.images)
    assert not torch.equal(page.scored.truth.images, near.truth.images)
    for mine, other in zip(page.scored.controls, controls, strict=True):
        assert torch.equal(mine.ssim, other.ssim)


def test_the_page_and_the_command_say_the_same_of_a_run(page):
    page.run_training()
    page.run_attack()
    found, _ = image_runs.train_and_attack(draw(TINY.choice), TINY)
    assert verdicts.images({"rank": found.verdict}, "rank") in page.sentence.value


def test_a_new_control_forgets_what_it_no_longer_describes(page):
    page.run_training()
    page.run_attack()
    choose(page.controls, "start", "truth")
    assert page.scored is None and page.trained is not None
    page.run_attack()
    assert "no attacker" in page.sentence.value
    choose(page.controls, "seed", 1)
    assert page.trained is None and page.controls.items["go"].disabled
    well(page)


def test_cancelled_training_keeps_what_was_reached(page):
    choose(page.controls, "train_steps", 100_000)

    async def impatient():
        press(page.controls, "train")
        while (
            page.job.share < 0.05
        ):  # 1,000 steps separate the images; states come after their share
            await asyncio.sleep(0.01)
        assert label(page.controls, "train") == "Cancel" and page.controls.items["n"].disabled
        press(page.controls, "train")
        await page.job.wait()

    asyncio.run(impatient())
    assert page.trained is not None and page.trained.t < 100_000
    assert label(page.controls, "train") == "Train" and not page.controls.items["n"].disabled
    well(page)


def test_missing_files_are_said_and_mended(page, tmp_path):
    choose(page.controls, "kind", "mnist")
    choose(page.controls, "folder", str(tmp_path))
    assert "train-images-idx3-ubyte" in page.sentence.value
    assert page.controls.items["train"].disabled
    choose(page.controls, "kind", "digits")
    assert "Press Train" in page.sentence.value and not page.controls.items["train"].disabled
    well(page)


@pytest.mark.parametrize("start", [ImageRun(), ImageRun(Choice("mnist", folder="/srv/mnist"))])
def test_visitors_from_elsewhere_name_no_folder(monkeypatch, start):
    monkeypatch.setenv("MARGIN_EXPLORER_FOLDERS", "0")
    page = DigitsApp(start)
    assert page.controls.items["folder"].hidden
    assert [kind for _, kind, _ in page.controls.items["kind"].options] == ["digits"]
    choose(page.controls, "folder", "/etc")  # as a visitor's own message can
    assert page.controls.choice().kind == "digits"
    assert "/etc" not in page.sentence.value and "/srv" not in page.controls.value("folder")
    send(page.controls, kind="set", value=["kind", 1])
    assert page.controls.value("kind") == "digits"
    page.close()


def test_ten_classes_and_the_baseline_fix_what_they_need(page):
    choose(page.controls, "task", "ten")
    assert page.controls.value("attack") == "decoreco"
    choose(page.controls, "task", "two")
    choose(page.controls, "start", "truth")
    choose(page.controls, "attack", "inversion")
    assert page.controls.value("start") == "noise"


def test_components_are_granted_where_they_are_named_to_attacks_that_know_them(page):
    assert page.controls.run().knows == "nothing"
    choose(page.controls, "components", 7)
    run = page.controls.run()
    assert run.knows == "components" and run.config.components == 7
    choose(page.controls, "attack", "inversion")
    assert not page.controls.value("components") and page.controls.run().knows == "nothing"


def test_every_control_explains_itself(page):
    for name, item in page.controls.items.items():
        assert item.tip or item.kind in ("words", "break"), name


def test_the_picture_before_the_page_holds_its_training_images_and_reconstructions(root):
    made = runpy.run_path(str(root / "scripts" / "coming.py"))
    held = np.asarray(Image.open(made["PICTURE"]).convert("LA"))[:, :, 0] / 255
    ours = draw(ImageRun().choice)
    images = (ours.pictures(ours.train.x)[:, 0].numpy() * 255).round() / 255
    side, step = 8 * made["LARGER"], made["LARGER"]
    for k in range(made["FEW"]):
        left = k * (2 * side + made["WITHIN"] + made["GAP"])
        first, second = (held[:side:step, at : at + side : step]
                         for at in (left, left + side + made["WITHIN"]))  # fmt: skip
        assert abs(images - first).max(axis=(1, 2)).min() < 1e-9, "a training image of the page"
        assert np.corrcoef(first.ravel(), second.ravel())[0, 1] > 0.8, "alike"


def test_a_gallery_without_images_has_no_picture():
    gallery = Gallery()
    gallery.only(draw(Choice(n=10)))
    assert gallery.view in gallery.widget.children
    named = {tile["mark"]: tile["words"].split()[0] for tile in gallery.view.tiles}
    assert named == {"pos": "odd", "neg": "even"}, "as pupils say it"
    gallery.clear()
    assert gallery.widget.children == (gallery.title,)


def test_the_verb_prints_a_row_and_writes_the_picture(tmp_path):
    out = tmp_path / "grid.png"
    words = ["digits", "--n", "10", "--widths", "40", "--steps", "60", "--attack-steps", "4"]
    result = CliRunner().invoke(command, [*words, "--json", "--out", str(out)])
    assert result.exit_code == 0, result.output
    row = json.loads(result.stdout)
    assert 0 <= row["matched"] <= 1 and row["config"]["choice"]["n"] == 10
    assert row["measures"]["rank"]["found"] == round(10 * row["matched"])
    assert row["roc"]["tpr"][-1] == row["roc"]["fpr"][-1] == 1 and row["diversity"] <= 1
    again = CliRunner().invoke(command, [*words, "--measure", "ssim", "--out", str(out)])
    assert "SSIM above 0.4" in again.stdout.replace("\n", " ")
    assert out.read_bytes().startswith(b"\x89PNG")
    asked = tmp_path / "quiz.png"
    more = [*words, "--starts", "2", "--dtype", "float32", "--quiz", str(asked), "--json"]
    row = json.loads(CliRunner().invoke(command, [*more, "--out", str(out)]).stdout)
    assert asked.read_bytes().startswith(b"\x89PNG") and 1 <= row["chosen"] <= 5
    assert 0 <= row["precision"] <= row["precision_knowing"] <= 1
    right = {int(place) for place in row["quiz_right"].split(", ")}
    assert len(right) == 4 and right <= set(range(1, 11))
    refused = CliRunner().invoke(command, ["digits", "--images", "mnist", "--folder", "none"])
    assert refused.exit_code == 2


def test_it_is_exported():
    assert explorer.digits.__name__ == "digits"


def test_settings_of_training_and_attack_are_taken_by_name():
    more = {"train_settings": {"all_biases": True}, "attack_settings": {"prior": 1.0, "m": 12}}
    run = replace(TINY, **more)
    assert run.config.prior == 1 and run.config.m == 12
    _, aimed, state = through(run)
    assert not aimed.net.homogeneous and len(state.x) == 12
    with pytest.raises(ValueError, match="no setting"):
        replace(TINY, attack_settings={"nothing": 1}).config  # noqa: B018


@pytest.mark.parametrize("attack", ["kkt", "decoreco"])
def test_candidates_are_pixels_where_the_mean_is_granted(attack):
    run = replace(TINY, attack=attack, steps=30)
    drawn, _, state = through(run)
    pictures = drawn.pictures(state.x)
    assert float(pictures.min()) >= -1e-7 and float(pictures.max()) <= 1 + 1e-7  # of float32
    assert float((pictures <= 1e-7).double().mean()) > 0.05  # the ground is black
    _, _, wide = through(replace(run, attack_settings={"prior": 1.0}))
    assert float(drawn.pictures(wide.x).min()) < -0.05


def test_scale_and_steps_follow_the_images(page):
    assert ImageRun(Choice("mnist")).first_scale == 0.0286  # 0.8 over the root of 784
    assert ImageRun(Choice("mnist", n=50)).training_steps == 1500
    assert ImageRun(Choice("mnist", n=50), widths=(1000, 1000)).training_steps == 5000
    assert ImageRun().training_steps == 300 and ImageRun(Choice(n=100)).training_steps == 1100
    choose(page.controls, "n", 100)
    assert page.controls.run().training_steps == page.controls.value("train_steps") == 1100


def test_several_starts_are_one_attack_on_the_page_and_by_command(page):
    run = replace(TINY, starts=3)
    found, _ = image_runs.train_and_attack(draw(run.choice), run)
    alone = [
        image_runs.train_and_attack(draw(run.choice), each)[0].found
        for each in image_runs.runs_of(run)
    ]
    assert len(alone) == 3 and not torch.equal(alone[0], alone[1])
    assert torch.equal(found.found[: len(alone[0])], alone[0])
    page.run_training()
    choose(page.controls, "starts", 3)
    page.run_attack()
    assert len(page.attacked) == 3 and page.job.share == 1
    assert 0 < len(page.board.believed.view.tiles) <= 10
    assert torch.equal(page.scored.found, found.found)
    with pytest.raises(ValueError, match="differ by their noise"):
        replace(run, start="truth")
    well(page)


def test_deeper_networks_begin_smaller(page):
    assert ImageRun(widths=(9,)).first_scale == 0.1 and ImageRun(init_scale=0.5).first_scale == 0.5
    choose(page.controls, "widths", (300, 300))
    assert page.controls.run().first_scale == page.controls.value("init_scale") == 0.03
    assert "Press Train" in page.sentence.value

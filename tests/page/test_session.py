"""The shared state: commands, refusals that lose nothing, and runs that repeat."""

from __future__ import annotations

import asyncio

import pytest
import torch
from traitlets import TraitError

from explorer.engine import store, training
from explorer.engine.data import MAX_POINTS, Dataset, empty, preset
from explorer.engine.network import phi
from explorer.engine.status import Status
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.page import branches, play
from explorer.page.apps.explorer import App
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.landscape import commands as landscape
from explorer.page.stages.train import commands as train
from explorer.page.words.headline import headline
from explorer.research import report, runs
from explorer.research.pictures.axes import Axes
from tests.page.pages import page_in, press, reached


def trained(steps: int = 1500, name: str = "alternating-line") -> Session:
    session = reached("train", preset(name), steps)
    return session


def test_one_command_is_one_frame_or_two() -> None:
    session, frames = Session(), []
    session.observe(lambda _: frames.append(session.frame), names=["shown"])
    draw.add(session, [((0.5, 0.5), 1.0)])
    assert len(frames) == 1
    assert frames[0].dataset.n == 1 and session.shown == 2


def test_steps_change_the_present_and_panels_hear_of_it_once() -> None:
    session, told = Session(preset("two-points")), []
    play.go(session, "train")
    session.observe(lambda _: told.append(session.frame.training.state.t), names=["shown"])
    for _ in range(3):
        play.advance(session, steps=2)
    assert session.frame.training.state.t == 6 and not told
    session.show()
    assert told == [6]


def test_training_goes_on_where_it_is_when_points_change() -> None:
    session = trained(50, "two-points")
    before = session.frame.training.state
    draw.add(session, [((0.1,), 1.0)])
    after = session.frame.training.state
    assert after.t == before.t == 50
    assert torch.equal(after.net.theta, before.net.theta)
    assert len(after.q) == session.frame.dataset.n == before.q.shape[0] + 1
    expected = session.frame.dataset.y * phi(after.net, session.frame.dataset.x)
    assert torch.allclose(after.q, expected)
    play.step(session, 10)
    assert session.frame.training.state.t == 60


def test_erasing_point_by_point_keeps_the_network_and_loses_nothing() -> None:
    session = trained(20)
    for _ in range(8):
        draw.edit(session, session.frame.dataset.without([0]))
    play.step(session, 3)
    assert session.frame.training.state.t == 23
    play.undo(session)
    assert session.frame.dataset.n == 1


def test_points_of_which_none_was_trained_on_start_anew_and_moved_ones_go_on() -> None:
    session = trained(20, "two-points")
    for i in range(2):
        draw.edit(session, session.frame.dataset.with_point_at(i, (0.3 * i - 0.1,)))
    assert session.frame.training.t == 20, "moved one after the other they are the same points"
    draw.add(session, [((0.7,), 1.0)])
    draw.edit(session, session.frame.dataset.without([0, 1]))
    assert session.frame.training.state is None
    play.undo(session)
    assert session.frame.dataset.n == 3 and session.frame.training.t == 20
    for _ in range(3):
        draw.edit(session, session.frame.dataset.without([0]))
    draw.add(session, [((0.7,), 1.0)])
    assert session.frame.training.state is None, "an emptied plane holds none of them"


def test_a_cleared_plane_starts_anew_and_undo_brings_the_points_back() -> None:
    session = trained(20)
    draw.clear(session)
    now = session.frame
    assert now.dataset.n == 0 and now.training.state is None and now.stage == "draw"
    draw.add(session, [((0.1,), 1.0)])
    play.undo(session)
    play.undo(session)
    assert session.frame.dataset.n == 8 and session.frame.training.state.t == 20


def test_a_refused_command_draws_the_frame_once_more() -> None:
    """A browser shows a point at once: when it is refused, the frame takes it back."""
    session = Session(preset("moons", n=MAX_POINTS))
    drawn = session.shown
    session.attempt(draw.add, session, [((0.0, 0.0), 1.0)])
    assert session.message and session.shown == drawn + 1


def test_same_seed_same_run_and_reset_repeats_it() -> None:
    one, two = trained(40), trained(40)
    assert torch.equal(one.frame.training.state.net.theta, two.frame.training.state.net.theta)
    play.reset(one)
    assert one.frame.training.state.t == 0
    play.step(one, 40)
    assert torch.equal(one.frame.training.state.net.theta, two.frame.training.state.net.theta)
    play.reseed(one)
    play.step(one, 40)
    assert not torch.equal(one.frame.training.state.net.theta, two.frame.training.state.net.theta)


def test_attack_before_the_points_are_separated_is_refused_with_a_remedy() -> None:
    session = Session(preset("moons"))
    play.go(session, "train")
    frame = session.frame
    session.attempt(play.go, session, "attack")
    assert "Train on" in session.message
    assert session.frame is frame


def test_the_attack_sees_the_weights_at_margin_one_and_the_truth_it_left() -> None:
    session = trained()
    play.go(session, "attack")
    frame = session.frame
    q = frame.truth.y * phi(frame.target.net, frame.truth.x)
    assert abs(float(q.min()) - 1) < 1e-9
    assert frame.attack.verdict is not None and frame.attack.scores is not None
    play.step(session, 30)
    assert session.frame.attack.state.t == 30


def test_attack_survives_a_look_at_training_and_restarts_on_new_weights() -> None:
    session = trained()
    play.go(session, "attack")
    play.step(session, 5)
    play.go(session, "train")
    play.go(session, "attack")
    assert session.frame.attack.state.t == 5
    play.go(session, "train")
    play.step(session, 1)
    play.go(session, "attack")
    assert session.frame.attack.state.t == 0


def test_mix_at_the_truth_starts_on_the_truth_and_moving_it_restarts() -> None:
    session = trained()
    play.go(session, "attack")
    play.step(session, 5)
    attack.remix(session, 1.0, 1.0)
    state, truth = session.frame.attack.state, session.frame.truth
    assert state.t == 0
    for x, y in zip(state.x, state.y, strict=True):
        same = truth.x[truth.y == y]
        assert float((same - x).abs().min()) < 1e-12


def test_editing_during_an_attack_keeps_the_points_and_says_what_happened() -> None:
    session = trained()
    play.go(session, "attack")
    draw.edit(session, session.frame.dataset.without([0]))
    assert session.frame.stage == "train"
    assert "older" in session.message or "old ones" in session.message
    assert session.frame.dataset.n == 7


def test_settings_of_training_apply_live_and_of_architecture_anew() -> None:
    session = trained(20)
    play.configure(session, lr=0.5)
    assert session.frame.training.state.t == 20
    play.configure(session, widths=(30, 30))
    assert session.frame.training.state.t == 0
    assert session.frame.training.state.net.widths == (30, 30)
    with pytest.raises(ValueError, match="lr"):
        play.configure(session, lr=-1.0)
    assert session.frame.training.state.net.widths == (30, 30)


def test_a_solution_that_is_not_proved_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.engine.exact.polish", lambda *_: iter(()))
    data = preset("alternating-circle", n=9)
    session = Session(data)
    train.jump_to_exact(session)
    assert "ruled out" in session.message
    done = runs.train(Run(data, TrainConfig(), exact=True))
    made = report.of_training(done)
    assert dict(made.rows)["optimum"] == session.message
    assert made.content["training"]["optimum"]["polished"] is False


def test_training_to_the_end_goes_on_from_the_network_on_screen() -> None:
    page = page_in("train", preset("alternating-circle", 20, 0.0), 100)
    session = page.session
    press(page.panels["TrainForm"].buttons, "finish")
    now = session.frame.training
    assert session.message
    assert float(now.state.q.max() / now.state.q.min()) < 1 + 1e-6
    assert any("cells" in value for _, value in headline(session.frame, False).fold)
    assert now.certificate.residual < 1e-6 and now.state.t > 600
    branches.seek(session, 0)
    assert session.frame.training.state.t < 600
    assert session.frame.training.state.net.widths == (100,)
    assert not any("cells" in value for _, value in headline(session.frame, False).fold)


def test_what_cannot_be_finished_is_said_and_stays() -> None:
    page = App(preset("alternating-circle", 20, 0.0))
    session = page.session
    play.go(session, "train")
    play.configure(session, widths=(5, 5))
    press(page.panels["TrainForm"].buttons, "finish")
    assert "two layers" in session.message
    assert session.frame.training.state.net.widths == (5, 5)


def test_exact_solution_of_conflicting_points_is_refused_and_nothing_is_lost() -> None:
    session = Session(empty(1).with_point([0.5], 1).with_point([0.5], -1))
    session.attempt(train.jump_to_exact, session)
    assert "opposite labels" in session.message
    assert session.frame.dataset.n == 2 and session.frame.training.state is None


def test_loading_points_of_another_dimension_starts_over_and_undo_returns() -> None:
    session = trained(10)
    draw.load(session, preset("moons"))
    assert session.frame.training.state is None and session.frame.stage == "draw"
    assert session.label == 1
    play.undo(session)
    assert session.frame.dataset.d == 1 and session.label == 0


def test_a_new_drawing_starts_anew_and_edited_points_go_on() -> None:
    session = trained(30)
    draw.load(session, preset("alternating-line", n=6))
    assert session.frame.training.state is None and session.frame.stage == "draw"
    assert not session.branch.train.states
    play.step(session, 5)
    assert session.frame.training.state.t == 5, "time 0 and fresh weights"
    other = Session(preset("alternating-line", n=6))
    play.step(other, 5)
    fresh = other.frame.training.state
    assert torch.equal(session.frame.training.state.net.theta, fresh.net.theta)
    draw.edit(session, session.frame.dataset.without([0]))
    assert session.frame.training.state.t == 5
    play.undo(session)
    assert session.frame.training.state.t == 5
    play.undo(session)
    assert session.frame.dataset.n == 8 and session.frame.training.state.t == 30


def test_a_preset_on_a_plane_that_was_cleared_starts_anew_too() -> None:
    session = trained(30)
    draw.clear(session)
    draw.load(session, preset("alternating-line", n=6))
    assert session.frame.training.state is None


def test_an_attack_that_was_left_in_its_run_goes_on_when_one_comes_back() -> None:
    session = trained()
    play.go(session, "attack")
    for running in (True, False):
        session.running = running
        play.advance(session, steps=3)
        play.go(session, "train")
        assert not session.running
        play.go(session, "attack")
        assert session.running is running
    session.running = True
    play.go(session, "train")
    play.advance(session, steps=1)
    play.go(session, "attack")
    assert not session.running  # other weights, another run


def test_a_preset_chosen_while_an_attack_runs_leaves_nothing_of_it() -> None:
    session = trained(1500)
    play.go(session, "attack")
    play.step(session, 5)
    session.running = True
    draw.load(session, preset("alternating-line", n=6))
    now = session.frame
    assert not session.running and now.target is None and now.attack.state is None
    session.attempt(play.go, session, "attack")
    assert session.frame.stage == "draw" and session.message


def test_points_far_out_widen_the_plane() -> None:
    session = Session()
    draw.load(session, empty(2).with_point([5.0, 0.0], 1))
    assert session.axes == Axes((0.0, 6.3), (0.0, 6.3))
    play.undo(session)
    assert session.axes == Axes()


def test_a_label_outside_the_classes_is_refused() -> None:
    with pytest.raises(TraitError):
        Session().label = 5


def test_a_finished_run_says_so_and_takes_no_more_steps() -> None:
    session = trained(0)
    play.configure(session, steps=5)
    assert play.advance(session, steps=100) == 5
    assert session.frame.status is Status.FINISHED


def test_seek_shows_the_kept_state_and_play_overwrites_the_future() -> None:
    session = trained(60)
    branches.seek(session, 20)
    assert session.frame.training.state.t == 20
    assert session.branch.train.last_t == 60, "looking back forgets nothing"
    kept = session.branch.train.states[30].net.theta
    play.step(session, 10)
    assert session.branch.train.last_t == 30
    assert torch.equal(session.frame.training.state.net.theta, kept), (
        "the same seed, the same future"
    )


def test_branch_keeps_the_old_line_where_it_was() -> None:
    session = trained(40)
    branches.seek(session, 10)
    branches.branch(session)
    assert "“main”" in session.message, "how the run that is kept comes back"
    play.configure(session, lr=0.1)
    play.step(session, 5)
    assert [b.train.last_t for b in session.branches] == [40, 15]
    branches.select(session, 0)
    assert session.frame.training.state.t == 10 and session.branch.train.last_t == 40
    branches.select(session, 1)
    assert session.frame.training.state.t == 15


def test_an_emptied_plane_leaves_branches_behind_until_an_undo() -> None:
    session = trained(40)
    branches.seek(session, 10)
    branches.branch(session)
    play.step(session, 5)
    assert branches.in_sight(session) == [0, 1]
    draw.clear(session)
    assert branches.in_sight(session) == [1]
    draw.add(session, [((0.5,), 1.0), ((-0.5,), -1.0)])
    assert branches.in_sight(session) == [1], "of other points"
    for _ in range(2):
        draw.restore(session, session.frame.drawing.undo())
    assert branches.in_sight(session) == [0, 1]


def test_branch_of_an_attack_keeps_both_attacks() -> None:
    session = trained()
    play.go(session, "attack")
    play.step(session, 8)
    branches.branch(session)
    play.step(session, 4)
    assert [b.attack.last_t for b in session.branches] == [8, 12]


def test_seek_after_an_edit_shows_old_weights_on_the_present_points() -> None:
    session = trained(30)
    draw.add(session, [((1.9,), 1.0)])
    branches.seek(session, 5)
    assert session.frame.training.state.t == 5
    assert len(session.frame.training.state.q) == session.frame.dataset.n


def test_a_stage_of_old_weights_says_whose_they_are() -> None:
    session = reached("train", preset("moons", n=8))
    session.attempt(play.go, session, "landscape")
    assert session.message == ""
    play.go(session, "draw")
    draw.add(session, [((0.3, 1.4), 1)])
    session.attempt(play.go, session, "landscape")
    assert "8 points" in session.message and "Train again" in session.message
    play.go(session, "draw")
    play.undo(session)
    session.attempt(play.go, session, "landscape")
    assert session.message == ""


def test_undo_takes_back_what_was_done_in_the_stage_on_screen() -> None:
    session = reached("draw", preset("moons", n=8))
    draw.add(session, [((0.3, 1.4), 1.0)])
    play.undo(session)
    play.go(session, "landscape")
    with pytest.raises(ValueError, match="no point was dragged yet"):
        play.undo(session)
    at = landscape.candidates(session).x[0]
    landscape.move_point(session, 0, at + 0.1)
    play.go(session, "explain")
    with pytest.raises(ValueError, match="the points it was trained on"):
        play.undo(session)
    play.go(session, "landscape")
    play.undo(session)
    assert torch.equal(landscape.candidates(session).x[0], at)
    with pytest.raises(ValueError, match="no edit was made before"):
        play.go(session, "draw")
        play.undo(session)
    play.redo(session)
    assert session.frame.dataset.n == 9


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_points_of_another_size_are_trained_on_and_attacked_in_their_unit(scale: float) -> None:
    circle = preset("alternating-circle", n=12)
    session, given = Session(), Dataset(circle.x * scale, circle.y)
    draw.load(session, given)
    play.go(session, "train")
    seen = session.frame.dataset
    assert 0.7 < float(seen.x.norm(dim=1).mean()) < 1.42 and "divided by" in session.message
    state = session.frame.training.state
    train.take(session, training.advance(seen, state, session.train_config, 20_000))
    assert session.frame.training.state.net.unit == 1
    play.go(session, "attack")
    now, entry = session.frame, session.entry
    end = entry.advance(now.target, now.attack.state, session.attack_config, 2000)
    claims = entry.report(now.target, end, session.attack_config)
    found = runs.judgement(claims, now.truth, now.aim.controls, now.aim.certificate)
    assert found.verdict.found >= 10
    play.undo(session)
    assert torch.equal(session.frame.dataset.x, given.x), "one undo brings the points back"
    assert not session.frame.training.state


def test_the_exact_network_and_a_run_of_a_library_come_to_the_page_in_their_unit(tmp_path) -> None:
    data = preset("moons", n=10)
    far, config = Dataset(data.x * 128, data.y), TrainConfig(widths=(20,), steps=300)
    session = Session(far)
    train.jump_to_exact(session)
    assert torch.equal(session.frame.dataset.x, data.x)
    first = training.init(far, config, torch.Generator().manual_seed(0))
    state = training.advance(far, first, config, 300)
    store.save_run(store.Run(far, config, (state,)), path := tmp_path / "run.safetensors")
    files.open_file(session, path.read_bytes())
    now = session.frame
    assert torch.equal(now.dataset.x, data.x) and now.training.state.net.unit == 1
    assert torch.equal(phi(now.training.state.net, data.x), phi(state.net, far.x))


def three_classes() -> Session:
    session = reached("train", preset("three-blobs"), 600)
    return session


def test_an_attack_that_stood_in_for_another_goes_with_the_weights_it_suits() -> None:
    session = three_classes()
    wanted = session.frame.attack.name
    play.go(session, "attack")
    assert session.frame.attack.name == "decoreco" != wanted
    draw.load(session, preset("alternating-circle", n=6))
    play.go(session, "train")
    play.advance(session, steps=600)
    play.go(session, "attack")
    assert session.frame.attack.name == wanted
    assert isinstance(session.attack_config, session.entry.config)
    attack.choose(session, "decoreco")  # chosen, it stays
    draw.load(session, preset("alternating-circle", n=8))
    play.go(session, "train")
    play.advance(session, steps=600)
    play.go(session, "attack")
    assert session.frame.attack.name == "decoreco"


def test_a_chosen_start_is_that_of_its_points_alone() -> None:
    session = reached("attack", preset("alternating-circle", n=6), 600)
    before = session.attack_config
    attack.remix(session, 1.0, 1.0)
    assert session.attack_config != before
    draw.load(session, preset("alternating-circle", n=8))
    assert session.mix == (0.0, 0.0) and session.attack_config == before
    play.go(session, "train")
    play.advance(session, steps=600)
    play.go(session, "landscape")
    assert session.frame.starts.weights == (0.0, 0.0, 1.0)


def test_a_network_that_cannot_be_finished_trains_on_and_says_why() -> None:
    app = page_in("train", preset("three-blobs"), 50)
    session = app.session

    async def finish() -> None:
        session.running = True
        press(app.panels["TrainForm"].buttons, "finish")
        assert session.running, "it goes on"
        session.running = False

    asyncio.run(finish())
    assert "3 classes" in session.message and "Network" not in session.message


def test_hidden_points_are_told_by_nothing_on_the_page() -> None:
    app = page_in("attack", preset("alternating-circle", n=6), 600, widths=(20,))
    session = app.session
    play.configure(session, steps=300)
    play.step(session, 300)
    board, said = app.panels["Scoreboard"], app.panels["HeadlinePanel"]
    shown = said.text
    assert board.on_screen and str(session.frame.attack.verdict.found) in shown
    play.set_truth_shown(session, False)
    assert not board.on_screen and not any(sign.isdigit() for sign in said.text)
    play.act(session, "reveal")
    assert session.truth_shown and board.on_screen and said.text == shown


def test_score_and_dots_are_those_of_the_judged_step() -> None:
    app = App(preset("alternating-circle", n=6))
    session, board, counts = app.session, app.panels["Scoreboard"], set()
    play.configure(session, widths=(20,))
    play.go(session, "train")
    play.advance(session, steps=600)
    play.go(session, "attack")
    play.configure(session, steps=400)

    async def run() -> None:  # the steps of the clock, which waits meanwhile
        session.running = True
        for _ in range(8):
            play.advance(session, steps=50)
            session.show()  # a frame in between: it is not judged
            attack.judge(session)
            counts.add(session.frame.attack.verdict.found)
            label = board.view.dots.shown.label
            assert label.startswith(f"{session.frame.attack.verdict.found} of 6")
            play.advance(session, steps=3)
            session.show()
            assert board.view.dots.shown.label == label
        session.running = False

    asyncio.run(run())
    assert len(counts) > 1


def test_own_points_begin_with_the_settings_of_a_new_page() -> None:
    session = reached("attack", preset("blobs", 8), 500)
    attack.choose(session, "bilevel")
    play.go(session, "train")
    play.configure(session, weight_decay=0.5)
    play.act(session, "own")
    new = Session()
    assert not session.frame.dataset.n and session.frame.attack.name == new.frame.attack.name
    assert session.train_config == new.train_config
    assert session.attack_config == new.attack_config
    play.undo(session)
    assert session.frame.dataset.n == 8

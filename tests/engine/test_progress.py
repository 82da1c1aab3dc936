"""Long work of the engine: it says how far it is, and ends at the call that asks it to.

Each row of `WORKS` is one that a page runs beside itself. What is counted is work, not time: how
often the row's own inner function is called after the listener has said that it wants no more.
"""

from __future__ import annotations

from functools import cache

import pytest

from explorer.engine import exact, linear_programs
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.certificate import certify
from explorer.engine.controls import control_sets
from explorer.engine.data import heldout, preset
from explorer.engine.energy.questions import MAPS, Answers, MapConfig, MapQuestion, forced_share
from explorer.engine.exact import maximum_margin, newton
from explorer.engine.explanations import masses
from explorer.engine.explanations.others import Rivals, farthest_set, forced_mass
from explorer.engine.membership.experiment import MembershipConfig, membership_experiment
from explorer.engine.progress import Stopped
from explorer.engine.training import TrainConfig
from explorer.research.grid import Grid
from explorer.research.grid.landscape import Runs
from explorer.research.sweep.experiment import Victim, ambiguity, other_set
from explorer.research.tuning import TuneConfig, tune
from tests.engine import draws


@cache
def trained():
    """A deeper network on ten points, its target and certificate."""
    data = preset("moons", 10)
    config = TrainConfig(widths=(8, 8), steps=1500, method="ascent")
    state = draws.trained(data, config)
    return data, draws.aimed(state), certify(state.net, data.x, data.y)


def rivals():
    data, target, made = trained()
    return Rivals.of(target.merged(0.02), data.x, data.y, 2.0, made.tau)


def energy(kind):
    def ask(progress):
        data, target, _ = trained()
        asked = MapQuestion(kind, target.net, data, heldout(data, 1), data.x, 0, MapConfig())
        Answers().answer(asked, 12 if kind == "starts" else 31, progress)

    return ask


def victim():
    data, target, made = trained()
    return Victim(target, data, control_sets(data), made, 1.0)


def cells(progress):
    data, target, _ = trained()
    runs = Runs(Grid(target, data, heldout(data, 1), "kkt", KKTConfig(m=4, steps=60), 0, 5))
    runs.prepare(2, lambda _: progress(0.0))
    for _ in runs.roll([(0, 0.0, 1.0)], progress):
        pass


def on_a_line(progress):
    data = preset("alternating-line", 8)
    net = maximum_margin(data.x, data.y).net
    asked = MapQuestion("point", net, data, heldout(data, 1), data.x, 0, MapConfig())
    Answers().answer(asked, 61, progress)


WORKS = {
    "maximum margin": lambda p: maximum_margin(*points(), progress=p),
    "forced mass": lambda p: forced_mass(rivals(), p),
    "farthest set": lambda p: farthest_set(rivals(), p),
    "forced shares": lambda p: forced_share(trained()[1].merged(0.02), trained()[0], p),
    "other set": lambda p: other_set(trained()[1], trained()[0], trained()[2], p),
    "what else explains": lambda p: ambiguity(victim(), p),
    "membership": lambda p: list(
        membership_experiment(
            MembershipConfig(dims=(3, 4), trials=2, width=50, test=1500, epochs=5), p
        )
    ),
    "tuning": lambda p: list(tune(trained()[1], TuneConfig(trials=2, m=4, steps=120), (), p)),
    "cells of the grid": cells,
    "curve of energies": on_a_line,
    **{f"energy, {kind}": energy(kind) for kind in MAPS},
}


def points():
    data = preset("moons", 16)
    return data.x, data.y


@pytest.mark.parametrize("name", WORKS)
def test_shares_rise_from_0_to_1(name) -> None:
    heard: list[float] = []
    WORKS[name](heard.append)
    assert len(heard) >= 2, "work that cannot be ended before it is done"
    assert heard == sorted(heard) and 0 <= heard[0] and heard[-1] <= 1


@pytest.mark.parametrize("name", WORKS)
def test_no_work_is_done_after_it_was_asked_to_end(name) -> None:
    for last in (1, 2):
        calls = []

        def until(share: float, last: int = last, calls: list[float] = calls) -> None:
            calls.append(share)
            if len(calls) >= last:
                raise Stopped("enough")

        with pytest.raises(Stopped):
            WORKS[name](until)
        assert len(calls) == last


SLOWEST = {  # each call of these is one piece of work that nothing can end
    "maximum margin": {
        linear_programs: ("linprog",), exact: ("peaks", "height", "arrange"),
        newton: ("_solution",),
    },
    "farthest set": {masses: ("_cheapest",)},
    "forced mass": {masses: ("_forced_mass",)},
}  # fmt: skip


@pytest.mark.parametrize("name", SLOWEST)
def test_between_two_calls_is_one_piece_of_work(name, monkeypatch) -> None:
    """However many points there are: a cancel waits for one program or one point at most."""
    since, pieces = [0], []

    def counted(solve):
        def call(*args, **options):
            since[0] += 1
            return solve(*args, **options)

        return call

    def heard(share: float) -> None:
        pieces.append(since[0])
        since[0] = 0

    for module, names in SLOWEST[name].items():
        for each in names:
            monkeypatch.setattr(module, each, counted(getattr(module, each)))
    WORKS[name](heard)
    assert max([*pieces[1:], since[0]]) == 1  # before the first call the weights are made


def test_the_program_behind_the_name_of_a_point_can_be_ended() -> None:
    calls: list[float] = []

    def until_all_places_are_done(share: float) -> None:
        calls.append(share)
        if share >= 1:
            raise Stopped("enough")

    with pytest.raises(Stopped):
        on_a_line(until_all_places_are_done)
    assert calls.count(1.0) == 1

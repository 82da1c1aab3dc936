"""Many starts are the attacks of their seeds alone, judged as one attack that claims all of it."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import pytest
import torch

from explorer import attack_starts
from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.kkt.blocks import start_bytes
from explorer.engine.attacks.target import Target
from explorer.engine.controls import Controls, Origin, control_sets, meeting_counts
from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.engine.progress import Stopped
from explorer.engine.roster import ROSTER
from explorer.research import devices, runs
from explorer.research import starts as module
from explorer.research.devices import DeviceError
from explorer.research.runs import RunFailed
from explorer.research.sweep.experiment import Experiment, key_of, run_experiment, victim_of
from tests.engine.pretend import NAME, Pretend

DATA = preset("alternating-circle", 8)
TARGET = Target.of(maximum_margin(DATA.x, DATA.y).net, 1.0)
CONFIG = KKTConfig(m=16, steps=400)
SEEDS = (3, 0, 8)


@pytest.mark.parametrize("name", ["kkt", "inversion", "decoreco"])
def test_each_start_is_the_attack_of_its_seed_alone(name):
    config = ROSTER[name].config(m=8, steps=40)
    made = attack_starts(TARGET, config, SEEDS, name=name)
    for seed, one in zip(SEEDS, made.each, strict=True):
        alone = runs.attack(TARGET, config, seed, name=name)
        assert torch.equal(one.states[-1].x, alone.states[-1].x)
        assert torch.equal(one.claims.x, alone.claims.x)
    assert made.seeds == SEEDS and made.together == 1 and made.union.verdict is None


@pytest.mark.parametrize("multipliers", ["joint", "projected"])
@pytest.mark.parametrize("room", [None, 2], ids=["all fit", "two fit"])
def test_on_a_device_they_are_those_of_the_cpu(multipliers, room, monkeypatch):
    config = KKTConfig(m=4, steps=8, multipliers=multipliers)
    if room:
        one = start_bytes(TARGET.net, 4, torch.float64, multipliers == "projected")
        monkeypatch.setattr(devices, "free_bytes", lambda _: room * one)
    there = attack_starts(TARGET, config, SEEDS, truth=DATA)
    with Pretend() as device:
        sent = attack_starts(TARGET, config, SEEDS, truth=DATA, device=NAME)
        single = runs.attack(TARGET, config, 3, device=NAME)
    assert device.reads and sent.together == (room or len(SEEDS))
    for a, b in zip(sent.each, there.each, strict=True):
        torch.testing.assert_close(a.states[-1].x, b.states[-1].x, rtol=0, atol=1e-6)
    torch.testing.assert_close(sent.each[0].states[-1].x, single.states[-1].x, rtol=0, atol=1e-6)
    torch.testing.assert_close(sent.union.claims.x, there.union.claims.x, rtol=0, atol=1e-6)
    assert sent.most == there.most and sent.made_by.tolist() == there.made_by.tolist()


def test_many_starts_read_no_more_than_one():
    counts = []
    for seeds in (range(1), range(4)):
        with Pretend() as device:
            attack_starts(TARGET, KKTConfig(m=4, steps=8), seeds, device=NAME)
        counts.append(sum(device.reads.values()))
    # Beside what comes back at the end, a vector for each tensor of each start's last state.
    assert counts[1] <= counts[0] * 1.5 + 4 * 20, counts


def test_where_the_memory_runs_out_fewer_go_at_once(monkeypatch):
    sizes: list[int] = []
    kkt = ROSTER["kkt"]

    def first(target, config, generator, start):
        sizes.append(len(generator))
        if len(generator) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
        return kkt.first(target, config, generator, start)

    config, tight = KKTConfig(m=4, steps=3), replace(kkt, first=first)
    with Pretend():
        made = attack_starts(TARGET, config, SEEDS, name=tight, device=NAME)
        whole = attack_starts(TARGET, config, SEEDS, device=NAME)
        assert sizes == [3, 1, 1, 1] and made.together == 1
        for a, b in zip(made.each, whole.each, strict=True):
            torch.testing.assert_close(a.states[-1].x, b.states[-1].x, rtol=0, atol=1e-8)
        full = replace(kkt, first=lambda *_: first(None, None, range(3), None))
        monkeypatch.setattr(devices, "free_bytes", lambda _: 1000)
        with pytest.raises(DeviceError, match=r"1 starts? takes? about .* not one fits"):
            attack_starts(TARGET, config, SEEDS, name=full, device=NAME)


@pytest.mark.parametrize("device", ["cpu", NAME])
@pytest.mark.parametrize("multipliers", ["joint", "projected"])
def test_a_start_that_diverges_costs_itself_alone(device, multipliers):
    """Seed 0 begins where the next step overflows; the others never see it."""
    kkt = ROSTER["kkt"]

    def first(target, config, generator, start):
        several = not isinstance(generator, torch.Generator)
        seeds = [g.initial_seed() for g in generator] if several else [generator.initial_seed()]
        state = kkt.first(target, config, generator, start)
        far = torch.tensor([1e200 if seed == 0 else 1.0 for seed in seeds]).to(state.x)
        far = far[:, None, None] if several else far[0]
        mean, square = state.moments.mean, state.moments.square
        pushed = (mean[0] + (far > 1) * far * 1e100, mean[1])
        return replace(state, moments=replace(state.moments, mean=pushed, square=square))

    config, entry = KKTConfig(m=8, steps=12, multipliers=multipliers), replace(kkt, first=first)
    with Pretend():
        made = attack_starts(TARGET, config, SEEDS, name=entry, device=device)
    assert made.diverged == (0,) and made.seeds == (3, 8)
    usual = attack_starts(TARGET, config, made.seeds)
    for a, b in zip(made.each, usual.each, strict=True):
        torch.testing.assert_close(a.states[-1].x, b.states[-1].x, rtol=0, atol=1e-6)
    with Pretend(), pytest.raises(RunFailed):
        attack_starts(TARGET, config, [0], name=entry, device=device)


def test_the_union_holds_each_place_once_and_every_claim_is_in_it():
    made = attack_starts(TARGET, CONFIG, range(6), truth=DATA)
    union = made.union.claims
    apart = torch.cdist(union.x, union.x) + 9 * torch.eye(len(union.x))
    assert not bool(((apart < 1e-3) & (union.y[:, None] == union.y)).any())
    assert bool((made.made_by >= 1).all()) and int(made.made_by.max()) <= 6
    assert max(len(one.claims.x) for one in made.each) <= len(union.x)
    assert len(union.x) <= sum(len(one.claims.x) for one in made.each)
    found = made.union.scores[0].found[1]
    assert int(found) >= made.most.found >= max(
        int(runs.score(DATA, one.claims.x, one.claims.y, (0.03,)).found) for one in made.each
    )  # fmt: skip
    left = [float(one.states[-1].l_stationary) for one in made.each]
    assert (
        left[made.least] == min(left) and made.union.states[-1] is made.each[made.least].states[-1]
    )


def test_the_union_is_judged_with_all_of_its_claims():
    """Claims everywhere meet every point, and every control as well: p says so."""
    config = ROSTER["inversion"].config(m=40, steps=1, box=1.5)
    entry = ROSTER["inversion"]
    truth = preset("random-circle", 8)
    made = attack_starts(TARGET, config, range(100), name=entry, truth=truth)
    few = attack_starts(TARGET, config, range(1), name=entry, truth=truth)
    verdict = made.union.verdict
    assert verdict.claims == len(made.union.claims.x) > 10 * few.union.verdict.claims
    assert verdict.found > few.union.verdict.found and verdict.chance > 1
    assert verdict.p_value > 0.05


def test_the_best_of_many_is_corrected_for_the_choice():
    """Under a null, the truth being one more control, p of the best start is uniform."""
    config, entry = ROSTER["inversion"].config(m=20, steps=1), ROSTER["inversion"]
    sets = control_sets(preset("random-circle", 8), 20).sets
    low = 0
    for k in range(20):
        others = Controls(sets[:k] + sets[k + 1 :], Origin.HELD_OUT)
        made = attack_starts(TARGET, config, range(12), name=entry, truth=sets[k], controls=others)
        low += made.most.p_value <= 0.1
        counts = [
            int((meeting_counts(others, c.claims.x, c.claims.y, (0.03,)) >= made.most.found).sum())
            for c in made.each
        ]
        assert made.most.p_value >= (1 + min(counts)) / 20 or math.isnan(made.most.p_value)
    assert low <= 0.1 * 20 + 4


def test_seeds_are_some_and_differ():
    for seeds in ((), (1, 1)):
        with pytest.raises(ValueError, match="expected seeds that differ"):
            attack_starts(TARGET, CONFIG, seeds)


@pytest.mark.parametrize("device", ["cpu", NAME])
def test_whoever_listens_hears_of_it_and_may_end_it(device):
    said: list[float] = []

    def until(share: float) -> None:
        said.append(share)
        if share > 0.5:
            raise Stopped

    with Pretend(), pytest.raises(Stopped):
        attack_starts(
            TARGET, replace(CONFIG, m=4, steps=20), range(4), device=device, progress=until
        )
    assert said == sorted(said) and 0.5 < said[-1] < 0.6


def test_an_attack_with_a_victim_of_its_own_has_one_for_all_starts():
    config = ROSTER["bilevel"].config(steps=3, m=8)
    data = preset("moons", 8)
    made = attack_starts(TARGET, config, range(2), name="bilevel", truth=data)
    a, b = (one.states[-1].victim.theta for one in made.each)
    assert torch.equal(a, b) and made.union.verdict is not None


def test_starts_go_one_after_another_where_there_is_no_program_for_all(monkeypatch):
    monkeypatch.setattr(module, "starts_load", lambda *_: pytest.fail("one at a time"))
    with Pretend():
        made = attack_starts(
            TARGET, ROSTER["inversion"].config(m=4, steps=3), [0, 1], name="inversion", device=NAME
        )
    assert made.together == 1


def test_a_row_of_a_sweep_takes_many_starts():
    row = Experiment(
        preset="alternating-line", n=5, method="exact", starts=3, seed=2,
        attack_config={"m": 8, "steps": 60},
    )  # fmt: skip
    one = replace(row, starts=1)
    assert key_of(one) != key_of(row) and "starts" in asdict(row)
    result, single = run_experiment(row), run_experiment(one)
    assert result["found"][1] >= single["found"][1] and result["claims"] >= single["claims"]
    victim = victim_of(row)
    made = attack_starts(victim.target, KKTConfig(m=8, steps=60), range(2, 5))
    assert result["x"] == made.union.claims.x.tolist()
    with pytest.raises(ValueError, match="starts"):
        replace(row, starts=0)


def test_a_claim_that_merging_left_aside_still_speaks_for_its_place():
    """Five starts pull the place to one side; the sixth is then farther than the merge radius."""
    at = iter([0.0, 0.029, 0.029, 0.029, 0.029, -0.029])
    entry = replace(
        ROSTER["kkt"],
        report=lambda _, state, __: Report(
            torch.tensor([[x := next(at), 0.0]]).double(),
            torch.ones(1).double(),
            torch.tensor([1.0 if x == 0 else 0.9]).double(),
        ),
    )
    made = attack_starts(TARGET, KKTConfig(m=4, steps=2), range(6), name=entry)
    assert made.made_by.tolist() == [6]

"""The arena: shares and intervals, pooled verdicts, attacks that do not fit, one small run."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import binomtest

from explorer.engine.confidence import share
from explorer.engine.controls import Origin, control_sets
from explorer.engine.data import Dataset, preset
from explorer.engine.multipliers import fit_multipliers
from explorer.engine.scoring import LEVEL as CHANCE
from explorer.engine.scoring import RADII, Kind, judge, score
from explorer.research.pictures.figures import arena_figure
from explorer.research.records import write_csv
from explorer.research.sweep import Experiment, arena, sweep, threads
from explorer.research.sweep.arena import AT, arena_rows, best, lines_of
from explorer.research.sweep.experiment import Refused, ambiguity, flip_labels, victim_of
from explorer.research.words.arena import below, sentence, title
from explorer.research.words.verdicts import sets

BASE = Experiment(preset="alternating-circle", n=6, widths=(20,), steps=600)
SMALL = {"attack_config": {"m": 12, "steps": 60}}


def row(key="kkt", seed=0, n=10, found=(1, 5, 8), claims=9, reach=8, chance=None, p_value=0.1):
    return {
        "status": "done", "message": "", "trial": {"attack": key, "seed": seed},
        "seconds": {"attack": 2.0},
        "result": {
            "n": n, "reach": reach, "claims": claims, "found": list(found),
            "found_reach": [min(f, reach) for f in found],
            "chance": chance or [[0, 0, 1]] * 99, "controls": "held-out",
            "distance": 0.2, "residual": 0.3, "p_value": p_value, "kind": "FOUND",
        },
    }  # fmt: skip


def test_a_share_of_one_run_has_wilsons_interval() -> None:
    made = share([5], [10])
    wilson = binomtest(5, 10).proportion_ci(0.95, "wilson")
    assert (made.value, made.low, made.high) == (0.5, wilson.low, wilson.high)
    # by hand: (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)
    z = 1.959964
    half = z * math.sqrt(0.025 + z * z / 400) / (1 + z * z / 10)
    assert made.high == pytest.approx(0.5 + half, abs=1e-6)


def test_runs_that_differ_widen_the_interval_and_equal_ones_do_not() -> None:
    even, uneven = share([5] * 6, [10] * 6), share([0, 10, 0, 10, 0, 10], [10] * 6)
    assert even.value == uneven.value == 0.5
    assert uneven.low < even.low < 0.5 < even.high < uneven.high
    assert share([0, 0], [0, 0]).value != share([0, 0], [0, 0]).value  # nothing: nan
    assert str(share([], [])) == "–"
    for k in (0, 10):
        edge = share([k] * 4, [10] * 4)
        assert 0 <= edge.low <= edge.value <= edge.high <= 1


def test_a_lower_level_narrows_both_kinds_of_interval() -> None:
    for found in ([50] * 6, [3, 91, 17, 78, 22, 94]):  # Wilson's, then the bootstrap's
        wide, narrow = share(found, [100] * 6), share(found, [100] * 6, 0.9)
        assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_lines_pool_their_runs() -> None:
    lines = lines_of([row(seed=0), row("inversion", found=(0, 0, 0)), row(seed=1, found=(3, 7, 8))])
    assert [line.key for line in lines] == ["kkt", "inversion"]
    kkt = lines[0]
    assert (kkt.n, kkt.found, kkt.claims, kkt.runs) == (20, (4, 12, 16), 18, 2)
    assert kkt.recall[AT].value == 0.6 and kkt.precision[AT].value == pytest.approx(2 / 3)
    assert kkt.reach[AT].value == 0.75 and kkt.control[2] == pytest.approx(0.1)
    assert kkt.kind is Kind.FOUND and kkt.p_value == pytest.approx(1 / 100)
    assert lines[1].p_value > CHANCE and lines[0].p_value <= CHANCE
    assert best(lines) is kkt and best(lines[1:]) is None
    lucky = lines_of([row(chance=[[5, 5, 5]] * 99)])
    assert best(lucky) is lucky[0] and lucky[0].p_adjusted > CHANCE


def test_none_is_best_alone_whose_interval_meets_another() -> None:
    sound, equal = row(found=(3, 7, 8), claims=8), row("decoreco", found=(3, 6, 8), claims=8)
    lines = lines_of([sound, equal])
    assert "DecoReco" in below(lines) and "best" not in title(lines)
    poor = lines_of([sound, row("decoreco", found=(0, 1, 1), claims=2)])
    assert "DecoReco" not in below(poor) and "best" in title(poor)


def test_the_words_are_of_the_middle_run_which_the_plane_shows() -> None:
    runs = [
        row(seed=k, found=(0, f, f), claims=c) for k, (f, c) in enumerate(((7, 9), (4, 8), (5, 6)))
    ]
    (line,) = lines_of(runs)
    assert (line.middle, line.once) == (2, (5, 6))
    assert "5 of 10" in title([line]) and "6 claims" in below([line])
    alike = lines_of([row(seed=k, found=(0, 5, 5), claims=c) for k, c in enumerate((9, 7, 8, 6))])
    assert (alike[0].middle, alike[0].once) == (0, (5, 9)), "of equal ones the first"
    none = lines_of([row(seed=k, found=(0, f, f)) for k, f in enumerate((0, 3, 0))])
    assert none[0].once[0] == 0 and "0 of 10" in title(none)


def test_the_best_is_one_that_chance_does_not_explain() -> None:
    lucky = row(found=(5, 8, 8), chance=[[9, 9, 9]] * 9 + [[0, 0, 0]] * 90, claims=8)  # p = 0.1
    sound = row("inversion", found=(1, 4, 4), claims=8)  # p = 0.01, less merit
    first, other = lines_of([lucky, sound])
    assert first.merit > other.merit and first.p_adjusted > CHANCE >= other.p_adjusted
    assert sentence([first, other]).startswith(other.title)
    assert title([first, other]).startswith(other.title)
    nothing = row(found=(0, 2, 2))
    nothing["result"]["found_reach"] = [0, 0, 0]
    (line,) = lines_of([nothing])
    assert best([line]) is None and line.found[AT] == 2 and line.reach[AT].value == 0


def test_few_controls_rule_no_chance_out() -> None:
    few = [row(chance=[[0, 0, 0]] * 10), row("inversion", chance=[[0, 0, 0]] * 10)]
    lines = lines_of(few)
    for line in lines:
        assert len(line.chance) == 10 and line.origin is Origin.HELD_OUT
        assert line.p_value == line.p_adjusted == pytest.approx(1 / 11)
        assert line.p_value > CHANCE


def test_rows_of_an_older_file_are_pooled_by_the_controls_that_both_have() -> None:
    old, new = row(seed=0, chance=[[0, 0, 0]] * 10), row(seed=1)
    del old["result"]["controls"]
    (line,) = lines_of([old, new])
    assert len(line.chance) == 10 and line.origin is Origin.GIVEN


def test_the_table_and_the_sentence_name_resampled_sets() -> None:
    drawn = row()
    drawn["result"]["controls"] = "resampled"
    (line,) = lines_of([drawn])
    assert line.control_words == sets(Origin.RESAMPLED, 99) in sentence([line])
    assert arena.table([line])[0]["controls"] == line.control_words


def test_of_controls_made_in_several_ways_the_hardest_counts() -> None:
    """The first attack is met as well by a tenth of the turned sets."""
    made = [row(found=(1, 5, 8)), row("inversion", found=(1, 7, 8))]
    for one in made:
        turned = [[0, 6, 9]] * 9 + [[0, 0, 0]] * 90
        one["result"] |= {"controls": "resampled", "beside": {"turned": turned}}
    first, other = lines_of(made)
    assert first.p_value == first.p_adjusted == pytest.approx(0.1)
    assert first.origin is Origin.TURNED and sum(first.chance) == 54
    assert other.p_value == other.p_adjusted == pytest.approx(0.01)


def test_one_run_agrees_with_the_judge() -> None:
    truth = preset("moons", 12, seed=1)
    controls = control_sets(truth)
    x, y = truth.x[:7] + 1e-3, truth.y[:7]
    verdict = judge(truth, controls, x, y, RADII[AT])
    one = row(
        n=12, reach=12, claims=7, found=score(truth, x, y).found.tolist(),
        chance=[score(c, x, y).found.tolist() for c in controls.sets], p_value=verdict.p_value,
    )  # fmt: skip
    (line,) = lines_of([one])
    assert line.kind is verdict.kind and line.p_value == verdict.p_value


def test_an_attack_that_does_not_fit_is_a_line_with_the_reason(tmp_path: Path) -> None:
    rows = [
        {"status": "refused", "message": "refused", "trial": {"attack": "univariate"},
         "result": {}, "seconds": {}},
        row(),
    ]  # fmt: skip
    lines = lines_of(rows)
    assert lines[0].runs == 0 and lines[0].message == "refused" and lines[0].merit == 0
    assert best(lines[:1]) is None
    write_csv(tmp_path / "arena.csv", arena.table(lines))
    with (tmp_path / "arena.csv").open() as file:
        table = list(csv.DictReader(file))
    assert table[0]["message"] == "refused" and float(table[1]["recall@0.03"]) == 0.5
    arena_figure(tmp_path / "arena.png", lines, sentence(lines))
    assert (tmp_path / "arena.png").stat().st_size > 5000
    arena_figure(tmp_path / "none.png", [], "nothing")


def test_rows_of_an_arena_meet_the_same_networks() -> None:
    rows = arena_rows(BASE, ["kkt", "inversion"], [3, 4])
    assert [(r.seed, r.attack) for r in rows] == [
        (3, "kkt"), (3, "inversion"), (4, "kkt"), (4, "inversion"),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="no attack 'spell'"):
        arena_rows(BASE, ["spell"], [0])


def test_a_small_arena_over_a_sweep() -> None:
    base = replace(BASE, **SMALL)
    rows = [r if r.attack == "kkt" else replace(r, attack_config={})
            for r in arena_rows(base, ["kkt", "univariate"], [0, 1])]  # fmt: skip
    kkt, univariate = lines_of(sorted(sweep(rows, threads(1)), key=lambda r: r["trial"]["attack"]))
    assert kkt.runs == 2 and kkt.n == 12 and univariate.runs == 0
    assert "one input" in univariate.message and 0 <= kkt.residual < 1


def test_what_is_not_determined_is_said_and_another_set_explains_the_weights() -> None:
    exact = Experiment(preset="alternating-circle", n=6, method="exact", attack="")
    victim = victim_of(exact)
    found = ambiguity(victim)
    assert found is not None and found.certified.shape == (6,)
    x, y = found.other.x, found.other.y
    net = victim.target.merged(0.02)
    assert fit_multipliers(net, x, y, 1e-6).residual < 1e-4  # they explain theta as well
    rows = [row(n=6, reach=6, claims=9, found=(1, 2, 2))]
    rows[0]["result"] |= {"determined": [True, False] * 3, "matched": [True, True] + [False] * 4}
    (line,) = lines_of(rows)
    assert (line.determined, line.sure) == (3, 1)
    rows[0]["result"] |= {"found": [0, 0, 0], "found_reach": [0, 0, 0], "matched": [False] * 6}
    (nothing,) = lines_of(rows)  # the verdict stands where no attack finds a point, too
    assert best([nothing]) is None and (nothing.determined, nothing.sure) == (3, 0)


def test_flips_are_seeded_and_keep_the_source() -> None:
    data = preset("xor", 10)
    one, two = flip_labels(data, 0.3, 1), flip_labels(data, 0.3, 1)
    assert (one.y == two.y).all() and int((one.y != data.y).sum()) == 3
    assert one.source == data.source and flip_labels(data, 0.0, 1) is data
    with pytest.raises(ValueError, match="two classes"):
        more = Dataset(data.x, data.y.clone().index_fill(0, data.y.nonzero()[:1, 0], 3.0))
        flip_labels(more, 0.3, 1)
    with pytest.raises(Refused, match="flips none; take at least"):
        flip_labels(data, 0.03, 1)

"""Every row can be drawn, trained and attacked, and says what is to be seen."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from itertools import islice

import pytest
import torch

from explorer.engine import training
from explorer.engine.attacks.target import Target
from explorer.engine.data import PRESETS
from explorer.engine.exact import maximum_margin
from explorer.engine.roster import ROSTER
from explorer.research.scenarios import SCENARIOS, by_name


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_row_runs_from_end_to_end(name):
    row = SCENARIOS[name]
    data = row.dataset()
    assert data.source == row.source
    assert data.n == row.source.n
    assert PRESETS[row.source.preset].d == data.d
    state = training.init(data, row.train, torch.Generator().manual_seed(row.seed))
    states = list(islice(training.iterate(data, state, row.train), 20))
    assert states[-1].t == 20
    assert states[-1].log_loss < state.log_loss
    net = states[-1].net  # exact networks are known for two classes
    exact = maximum_margin(data.x, data.y).net if data.outputs == 1 else net
    target = Target.of(exact, 1.0)
    entry = ROSTER[row.attack_name]
    target = entry.target_for(target, data.x, data.y, row.attack, row.seed)
    first = entry.init(target, row.attack, torch.Generator().manual_seed(row.seed))
    last = list(islice(entry.iterate(target, first, row.attack), 5))[-1]
    assert 0 < last.t <= 5
    assert torch.isfinite(last.x).all()


def test_rows_are_a_handful_of_frozen_sentences():
    assert len(SCENARIOS) >= 6
    assert {1, 2} == {row.dataset().d for row in SCENARIOS.values()}
    for name, row in SCENARIOS.items():
        assert row.name == name
        assert row.sentence.endswith(".")
        with pytest.raises(FrozenInstanceError):
            row.seed = 1  # type: ignore[misc]


def test_a_freeze_beyond_the_plan_is_refused():
    row = SCENARIOS["two points"]
    with pytest.raises(ValueError, match="within the 4000 planned"):
        replace(row, freeze=4001)


def test_an_unknown_name_is_answered_with_the_known_ones():
    assert by_name("xor").source.preset == "xor"
    with pytest.raises(ValueError, match=r"no scenario 'x'; there are: .*two points"):
        by_name("x")

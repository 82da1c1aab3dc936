"""Every row can be drawn, trained and attacked, and says what is to be seen."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from itertools import islice

import pytest
import torch

from explorer.engine.attacks.target import Target
from explorer.engine.data import PRESETS
from explorer.engine.exact import maximum_margin
from explorer.engine.roster import ROSTER
from explorer.research import runs
from explorer.research.scenarios import SCENARIOS, by_name


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_row_runs_from_end_to_end(name):
    run = SCENARIOS[name].run
    data, config = run.dataset, run.train_config
    assert data.n == data.source.n
    assert PRESETS[data.source.preset].d == data.d
    assert run.steps[0] in (0, 100, config.steps) and not run.train_states
    states = list(islice(runs.training_states(replace(run, exact=False)), 21))
    state = states[0]
    assert states[-1].t == 20
    assert states[-1].log_loss < state.log_loss
    net = states[-1].net  # exact networks are known for two classes
    exact = maximum_margin(data.x, data.y).net if data.outputs == 1 else net
    target = Target.of(exact, 1.0)
    entry, hit = ROSTER[run.attack_name], run.attack_config
    target = entry.target_for(target, data.x, data.y, hit, run.seed)
    following = entry.states(target, hit, torch.Generator().manual_seed(run.seed))
    last = list(islice(following, 6))[-1]
    assert 0 < last.t <= 5
    assert torch.isfinite(last.x).all()


def test_rows_are_a_handful_of_frozen_sentences():
    assert len(SCENARIOS) >= 6
    assert {1, 2} == {row.run.dataset.d for row in SCENARIOS.values()}
    for name, row in SCENARIOS.items():
        assert row.name == name
        assert row.sentence.endswith(".")
        with pytest.raises(FrozenInstanceError):
            row.name = name  # type: ignore[misc]


def test_an_unknown_name_is_answered_with_the_known_ones():
    assert by_name("xor").run.dataset.source.preset == "xor"
    with pytest.raises(ValueError, match=r"no scenario 'x'; there are: .*two points"):
        by_name("x")

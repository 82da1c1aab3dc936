"""The verb `tune`: its front, its log, its interrupts, and a verdict that no trial has seen."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from explorer.commands import tune as verb
from explorer.engine.attacks.kkt import KKTConfig
from explorer.research import runs
from explorer.research import tuning as tune
from explorer.research.records import lock
from tests.verbs import NET

SEARCH = "--restarts 2 --m 4 --trial-steps 4 --trials"
SMALL = f"tune {NET} {SEARCH} 3"


@pytest.fixture(autouse=True)
def short_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings taken and the defaults are compared by attacks of a few steps."""
    usual = tune.full_length
    monkeypatch.setattr(tune, "full_length", lambda trial: usual(trial, 6, 5))
    monkeypatch.setattr(verb, "KKTConfig", lambda: KKTConfig(m=6, steps=5))


def test_tune_prints_the_front_the_settings_and_an_honest_verdict(call) -> None:
    told = call(f"{SMALL} --out front.png").words
    for words in ("3 trials", "settings taken", "tuned: verdict", "defaults: verdict",
                  "tuned settings found"):  # fmt: skip
        assert words in told
    assert Path("front.png").stat().st_size > 5000


def test_tune_goes_on_from_its_log(call) -> None:
    first = call(f"{SMALL} --log s.jsonl --json").json
    more = f"tune {NET} {SEARCH} 5 --log s.jsonl"
    second = call(f"{more} --json").json
    assert second["trials"][:3] == first["trials"] and len(second["trials"]) == 5
    assert second["best"] in [t["number"] for t in second["trials"]]
    assert second["front"] and "which found" in second["comparison"]
    assert "another search" in call(f"{SMALL} --seed 4 --log s.jsonl", code=2).line
    with lock(Path("s.jsonl")):
        assert "writing s.jsonl" in call(more, code=2).line


def stop_at(monkeypatch, last) -> None:
    """An interrupt in the trial `last`; no full attack may begin after it."""
    attempt = tune.attempt

    def stopped(target, config, number, params, progress, device):
        if number == last:
            raise KeyboardInterrupt
        return attempt(target, config, number, params, progress, device)

    monkeypatch.setattr(tune, "attempt", stopped)
    monkeypatch.setattr(runs, "attack", lambda *a, **k: pytest.fail("a full attack began"))


def test_an_interrupt_keeps_what_is_done_and_ends(call, monkeypatch) -> None:
    stop_at(monkeypatch, 2)
    told = call(f"{SMALL} --log s.jsonl --json", code=130)
    assert len(told.json["trials"]) == 2 and "2 trials" in told.err
    assert len(Path("s.jsonl").read_text().splitlines()) == 3
    told = call(SMALL, code=130)
    assert "--log FILE" in told.err and "settings taken" in told.out


def test_an_interrupt_before_the_first_trial_says_so(call, monkeypatch) -> None:
    stop_at(monkeypatch, 0)
    told = call(SMALL, code=130)
    assert "first trial" in told.err and told.out == ""


def test_a_search_whose_trials_all_fail_exits_with_1(call, monkeypatch) -> None:
    def failed(target, config, number, params, progress, device):
        return tune.Trial(number, params, tune.KKTConfig(), math.inf, 0.0, 0.0, "diverged")

    monkeypatch.setattr(tune, "attempt", failed)
    assert "trial failed" in call(SMALL, code=1).err


def test_a_margin_is_used_or_spoken_of(call, saved: Path) -> None:
    for margin in ("nan", "-1"):
        told = call(f"tune {SEARCH} 3 --margin {margin}", saved, code=2)
        assert "must be" in told.line
    assert call(f"tune {SEARCH} 3 --margin 3 --json", saved).json["note"].startswith("The margin")
    assert "a file" in call(f"{SMALL} --margin 3", code=2).line


def test_tune_on_a_file_and_the_published_draws(call, saved: Path) -> None:
    found = call(f"tune {SEARCH} 3 --search random --json", saved).json
    assert found["attacks"]["tuned"]["verdict"]
    assert all(t["config"]["optimizer"] == "sgd" for t in found["trials"])

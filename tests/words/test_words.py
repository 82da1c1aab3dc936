"""Words are functions of numbers: laws of all sentences, and one file that keeps them."""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from safetensors import safe_open

from explorer.engine.attacks.target import Target
from explorer.engine.attacks.univariate import intervals
from explorer.engine.data import Dataset, preset
from explorer.engine.exact import maximum_margin
from explorer.engine.roster import ROSTER
from explorer.engine.store import load_run
from explorer.page.words import glossary
from explorer.research.words import sentence
from tests.words import golden

NUMBER = re.compile(r"\d+(?:\.\d+)?")
SENTENCES = {  # classes of the engine whose rows carry a sentence of their own, and where
    "attacks/attack.py": "Attack",
    "data/presets.py": "Preset",
}


@pytest.mark.parametrize(
    "word",
    ["KKT", "KKT point", "λ", "multipliers", "slackness", "stationarity residual", "residual",
     "margin", "certificate", "candidate", "p", "by chance", "unseen sets", "tau"],
)  # fmt: skip
def test_a_word_that_nobody_knows_is_explained_once_in_a_plain_sentence(word: str) -> None:
    found = [said for pattern, said in glossary.GLOSSARY if re.fullmatch(pattern, word)]
    assert len(found) == 1
    assert found[0].endswith(".") and len(found[0].split()) <= 35
    longer = [pattern for pattern, _ in glossary.GLOSSARY if re.search(pattern, word)]
    assert re.fullmatch(longer[0], word), "a longer word stands after a part of it"


def test_each_word_that_lights_something_is_one_of_the_glossary() -> None:
    lights = [glossary.light_of(pattern) for pattern, _ in glossary.GLOSSARY]
    assert sorted(filter(None, lights)) == sorted(glossary.LIGHTS)


def test_every_sentence_is_the_one_that_is_kept() -> None:
    made, kept = golden.made(), json.loads(golden.KEPT.read_text())
    lines = [[f"{name}: {text}" for name, text in sentences.items()] for sentences in (kept, made)]
    found = "\n".join(difflib.unified_diff(*lines, "kept", "made", lineterm="", n=0))
    assert not found, f"{found}\n\nIf this is meant: python -m tests.words.golden"


def test_a_sentence_is_a_function_of_its_numbers() -> None:
    """Made twice, with one thread and with two: the same."""
    first, threads = golden.made(), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        again = golden.made()
    finally:
        torch.set_num_threads(threads)
    assert again == first
    for name, text in first.items():
        assert text and not re.search(r"\bnan\b|[=,] None", text), name


def enums() -> Iterator[Enum]:
    for kind in (golden.Light, golden.Status, golden.Kind, golden.Archetype):
        yield from kind


@pytest.mark.parametrize("member", list(enums()), ids=str)
def test_every_member_has_words_and_a_key_that_is_none(member: Enum) -> None:
    text = sentence(member)
    assert len(text.split()) > 3 or text == "Running."
    assert len(str(member.value).split()) <= 2
    assert sum(sentence(other) == text for other in type(member)) == 1


def test_every_turn_of_the_walk_is_kept() -> None:
    kept = json.loads(golden.KEPT.read_text())
    for seen in get_args(intervals.Seen):
        assert any(name.startswith(f"univariate, turn, {seen}") or (
            seen == "shared 3.3" and "shared 3.3" in name) for name in kept), seen  # fmt: skip


def test_what_has_no_sentence_is_refused() -> None:
    with pytest.raises(TypeError, match="no sentence"):
        sentence(3)


# --- attacks ------------------------------------------------------------------------------------


def target(data: Dataset) -> Target:
    net = maximum_margin(data.x, data.y).net
    before = net.with_theta(net.theta + torch.arange(1.0, len(net.theta) + 1).double().sin())
    return Target.of(net, 1.0, before=before)


@pytest.mark.parametrize("key", list(ROSTER))
def test_every_attack_accounts_for_its_first_states_or_says_nothing(key: str) -> None:
    row = ROSTER[key]
    data = next(
        d for d in (preset("xor", 4), preset("alternating-line", 4)) if not row.refusal(target(d))
    )
    config: Any = row.config()
    if key == "pooled":
        config = replace(config, starts=1, m=4, descent=5)
    aimed: Any = row.target_for(target(data), data.x, data.y, config, 0)
    state = row.init(aimed, config, torch.Generator().manual_seed(0))
    texts = [row.words(state, config)]
    for _ in range(2):
        state = row.step(aimed, state, config)
        texts.append(row.words(state, config))
    if texts != [""] * 3:  # it has words of its own
        assert all(text.endswith(".") for text in texts) and len(set(texts)) == 3


def test_an_attack_brings_words_of_its_own() -> None:
    row = replace(ROSTER["kkt"], words=lambda state, config: f"{len(state.x)} of {config.m}.")
    data = preset("xor", 4)
    config = row.config(m=8)
    state = row.init(target(data), config, torch.Generator().manual_seed(0))
    assert row.words(state, config) == "8 of 8."


# --- files of version 0.1 -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["line-exact-univariate", "circle-exact-hinge", "circle-pooled"])
def test_a_run_that_holds_its_sentences_opens_and_speaks_of_the_same_numbers(
    name: str, root: Path
) -> None:
    path = root / "tests" / "engine" / "kept" / f"{name}.safetensors"
    run = load_run(path)
    with safe_open(path, "pt") as file:
        then = json.loads(file.metadata()["run"])["fields"]["attack_states"]
    assert len(run.attack_states) == len(then) > 1
    for state, old in zip(run.attack_states, then, strict=True):
        text = ROSTER[run.attack_name].words(state, run.attack_config)
        figures = set(NUMBER.findall(old["fields"]["sentence"]))
        assert text.endswith((".", "?")) and set(NUMBER.findall(text)) <= figures, text


# --- the engine ---------------------------------------------------------------------------------


def test_the_engine_returns_numbers() -> None:
    """No class of the engine has a sentence, but rows of a list: an attack, a preset."""
    engine = Path(inspect.getfile(Target)).parents[1]
    found = []
    for path in sorted(engine.rglob("*.py")):
        for kind in ast.walk(ast.parse(path.read_text())):
            if not isinstance(kind, ast.ClassDef):
                continue
            names = {
                getattr(part, "name", None) or getattr(getattr(part, "target", None), "id", "")
                for part in kind.body
            }
            name = path.relative_to(engine).as_posix()
            if names & {"sentence", "caveat", "reason"} and SENTENCES.get(name) != kind.name:
                found.append(f"{name}: {kind.name}")
    assert not found, found

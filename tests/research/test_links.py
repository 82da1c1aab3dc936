"""Links: old ones open for ever, damaged ones are refused in one sentence, and nothing is run."""

from __future__ import annotations

import base64
import json
import random
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from explorer import Run, StoreError, TrainConfig, link_of, preset, read_link, repeat
from explorer.cli import app
from explorer.engine import store
from explorer.engine.files import MOST_WORDS
from explorer.research import report
from explorer.research.run_report import page_of

OLD = json.loads((Path(__file__).parent / "kept_links" / "version-1.json").read_text())
LINK = next(row["link"] for row in OLD if row["name"].startswith("kkt"))


@pytest.mark.parametrize("row", OLD, ids=[row["name"] for row in OLD])
def test_an_old_link_opens_and_gives_its_numbers(row: dict) -> None:
    run = read_link(f"https://class.example.org/lesson?theme=dark#{row['link']}")
    assert float(run.dataset.x.sum()) == row["points"] and run.dataset.y.tolist() == row["labels"]
    assert (run.stage, list(run.steps), run.attack_name) == (
        row["stage"], row["steps"], row["attack"],
    )  # fmt: skip
    made = repeat(run)
    assert (None if made.state is None else made.state.t) == row["t"]
    if made.state is not None:  # rounding differs from machine to machine, and grows
        assert float(made.state.net.theta.norm()) == pytest.approx(row["norm"], rel=1e-4)
    if made.attacked is not None:
        places = float(made.attacked.states[-1].x.norm())
        assert places == pytest.approx(row["places"], rel=1e-2)


def test_there_are_ten_of_them() -> None:
    assert len({row["link"] for row in OLD}) == 10


def refused(text: str) -> str:
    with pytest.raises(StoreError) as error:
        read_link(text)
    words = str(error.value)
    assert "\n" not in words and len(words) <= MOST_WORDS
    return words


def packed(data: bytes) -> str:
    coded = base64.urlsafe_b64encode(zlib.compress(data, 9)).decode()
    return f"mx1.{coded.rstrip('=')}"


def test_mutated_links_are_refused_or_read_and_never_anything_else() -> None:
    drawn, read = random.Random(0), 0
    letters = "ABCxyz019-_.#%é "
    for _ in range(400):
        text = list(LINK)
        for _ in range(drawn.randint(1, 4)):
            i = drawn.randrange(len(text))
            text[i : i + drawn.choice((0, 1, 3))] = drawn.choice(letters) * drawn.choice((0, 1, 2))
        try:
            read_link("".join(text))
            read += 1
        except StoreError as error:
            assert len(str(error)) <= MOST_WORDS
    assert read < 40, "a checksum finds nearly all"
    more = zlib.compress(store.dump(read_link(LINK)), 9) + b"more"
    refused(f"mx1.{base64.urlsafe_b64encode(more).decode().rstrip('=')}")


def test_mutated_contents_are_refused_or_read_and_never_anything_else() -> None:
    """Behind a checksum that fits: what somebody writes who means harm."""
    run = read_link(LINK)
    data, drawn = store.dump(run), random.Random(1)
    words = (b'"', b"{", b"}", b"null", b"1e999", b"-1", b"9" * 30, b"__class__", b"[[[[", b"\0")
    for _ in range(400):
        mine = bytearray(data)
        for _ in range(drawn.randint(1, 3)):
            i = drawn.randrange(8, len(mine))
            word = drawn.choice(words)
            mine[i : i + drawn.choice((1, len(word)))] = word
        try:
            read_link(packed(bytes(mine)))
        except StoreError as error:
            assert len(str(error)) <= MOST_WORDS


@pytest.mark.parametrize("change", [
    {"stage": "../../etc"}, {"steps": (10**12, 0)}, {"steps": (5, 10**8)}, {"finish": -3},
    {"attack_seed": -1}, {"train_config": TrainConfig(widths=(100_000, 100_000))},
], ids=str)  # fmt: skip
def test_a_link_to_what_cannot_be_is_refused(change: dict) -> None:
    refused(link_of(replace(read_link(LINK), **change)))


def test_a_bomb_is_not_unpacked() -> None:
    bomb = packed(b"\0" * (80 * 2**20))
    assert len(bomb) < 200_000
    assert "too long" in refused(bomb)
    long = "mx1." + "A" * (17 * 2**20)
    assert str(len(long)) in refused(long)  # before a letter of it is read


def test_a_link_of_a_later_version_says_so() -> None:
    assert "version 2" in refused(LINK.replace("mx1", "mx2"))
    assert "mx1" in refused("https://example.org/") and "whole" in refused("")


@pytest.mark.parametrize("verb", ["train", "univariate", "demo"])
def test_the_points_of_a_link_in_place_of_a_file(verb: str, tmp_path: Path) -> None:
    line = verb == "univariate"
    points = preset("alternating-line", n=5) if line else preset("moons", n=6)
    link = link_of(Run(points, TrainConfig(widths=(3,)), seed=8), "http://127.0.0.1:8866/")
    given = ["--widths", "20", "--steps", "400", "--json", "--out", str(tmp_path / "out.png")]
    given += ["--attack-steps", "2"] if verb == "demo" else []
    result = CliRunner().invoke(app, [verb, "--data", link, *given])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["dataset"]["n"] == points.n
    assert line or told["network"]["widths"] == [20], "its settings are not taken"


def test_a_repeated_run_is_saved_and_its_report_holds_what_is_needed(tmp_path: Path) -> None:
    out, page = tmp_path / "run.safetensors", tmp_path / "report.html"
    words = ["repeat", LINK, "--out", str(out), "--report", str(page), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["run"], told["report"]) == (str(out), str(page))
    run = store.load(out.read_bytes())
    made = repeat(read_link(LINK))
    assert torch.equal(run.net.theta, made.state.net.theta)
    assert torch.equal(run.attack_states[-1].x, made.attacked.states[-1].x)
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text and "<script" not in text and link_of(read_link(LINK)) in text
    for needed in ("margin-explorer repeat", "torch", "Haim", "x1,x2,y", "lr_x", "step 300"):
        assert needed in text or needed.replace("step 300", "300") in text


def test_a_report_is_made_of_default_settings_and_is_whole_on_paper() -> None:
    run = Run(preset("moons", n=6), TrainConfig(widths=(20,)), steps=(400, 5), stage="attack")
    text = page_of(repeat(run))  # it names no settings of its attack
    assert "lr_x" in text and "100% noise" in text and "preset moons" in text
    assert "@software{" in text and "<details open" in text and "@media print" in text
    points = replace(run, steps=(0, 0), stage="draw")
    assert "<svg" in page_of(repeat(points)) and "lr_x" not in page_of(repeat(points))


def test_a_file_is_described_in_words() -> None:
    run = Run(preset("moons", n=6), TrainConfig(widths=(20,)), steps=(1, 0), stage="train")
    state = repeat(run).state
    rows = dict(report.of_file(replace(run, train_states=(state,))).rows)
    assert "Source" not in rows["points"] and "moons" in rows["points"]
    assert rows["training"].startswith("1 state,") and "0" not in rows["attack"]
    rows = dict(report.of_file(replace(run, train_states=(state, state))).rows)
    assert rows["training"].startswith("2 states,")

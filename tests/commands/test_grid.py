"""The verbs `grid` and `bilevel`: tables, JSON, CSV, picture, resuming, refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from explorer.cli import app
from explorer.engine.store import load_run
from explorer.research.grid import GridCell, fingerprint, open_cell

FEW = ("--n", "6", "--set", "steps=2")


def call(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result.output


def test_grid_writes_a_picture_a_table_and_goes_on(tmp_path: Path) -> None:
    out, table, rows = (tmp_path / name for name in ("grid.png", "cells.csv", "rows.jsonl"))
    words = ["grid", "--preset", "blobs", "--attack", "bilevel", "--side", "3", *FEW, "--json"]
    words += ["--out", str(out), "--csv", str(table), "--rows", str(rows)]
    first = json.loads(call(*words))
    assert len(first["cells"]) == 7 and "Of 9 cells" in first["sentence"]
    assert out.stat().st_size > 10_000
    with table.open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 7 and float(lines[0]["truth"]) >= 0
    kept = rows.read_text(encoding="utf-8")
    assert json.loads(call(*words))["cells"] == first["cells"]
    assert rows.read_text(encoding="utf-8") == kept  # nothing ran twice


def test_a_saved_run_is_attacked_with_its_own_weights(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run, rows = tmp_path / "run.safetensors", tmp_path / "rows.jsonl"
    shape = ("--preset", "blobs", "--n", "6", "--widths", "9")
    call("train", *shape, "--steps", "300", "--out", str(run))
    words = ["grid", str(run), "--side", "2", "--set", "steps=2", "--json"]
    words += ["--out", str(tmp_path / "grid.png")]
    found = json.loads(call(*words, "--rows", str(rows)))
    assert found["data"] == str(run) and len(found["cells"]) == 3
    truth = next(c for c in found["cells"] if (c["mix_truth"], c["mix_data"]) == (1, 1))
    assert truth["truth_before"] == 0  # its points
    cell = GridCell(str(run), "kkt", 0, 0, file=fingerprint(run))
    points, target = open_cell(cell)
    kept = load_run(run)
    assert torch.equal(points.x, kept.dataset.x)
    cosine = target.net.theta @ kept.net.theta / (target.net.rho * kept.net.rho)
    assert float(cosine) == pytest.approx(1)  # rescaled to margin 1
    assert CliRunner().invoke(app, [*words, "--n", "4"]).exit_code == 2
    call("train", *shape, "--steps", "301", "--out", str(run))
    with pytest.raises(ValueError, match="has changed since"):
        open_cell(cell)
    assert json.loads(call(*words, "--rows", str(rows)))["cells"] != found["cells"]
    capfd.readouterr()
    assert CliRunner().invoke(app, ["grid", str(rows)]).exit_code == 2


def test_bilevel_prints_the_three_starts_of_both_models() -> None:
    words = ["bilevel", "--preset", "blobs", *FEW, "--set", "width=3", "--set", "mu=0.1"]
    found = json.loads(call(*words, "--json"))
    rows = {(row["model"], row["start"]): row for row in found["rows"]}
    assert len(rows) == 6
    for model in ("affine", "hidden"):
        truth = rows[model, "truth"]
        assert truth["before"] == truth["after"] == truth["truth"] == 0
        assert truth["converged"] == truth["seeds"] == 1 > rows[model, "random"]["converged"]
        assert rows[model, "partition"]["heldout"] < rows[model, "partition"]["truth"]
    assert rows["affine", "random"]["paper"] == 1.1214e-3
    assert call(*words).partition("converged:")[2].count("random") == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("grid", "--seed", "a"), "seeds are numbers and ranges"),
        (("grid", "--attack", "inversion"), "attacks with a start"),
        (("bilevel", "--preset", "rings"), "digits or one of"),
        (("grid", "--set", "steps"), "NAME=VALUE"),
    ],
)
def test_wrong_words_are_refused_in_one_line(
    words: tuple[str, ...], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 2
    assert why in result.output + capfd.readouterr().err

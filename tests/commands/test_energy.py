"""The verb `energy`: tables, arrays, pictures and refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from explorer.cli import app


def run(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["energy", "--preset", "moons", "--n", "6", *words])
    return found.exit_code, found.output


def test_a_map_with_its_files(tmp_path) -> None:
    table, picture = tmp_path / "map.csv", tmp_path / "map.png"
    code, text = run(
        "--size", "12", "--all", "--json", "--out", str(table), "--picture", str(picture)
    )
    assert code == 0
    found = json.loads(text)
    assert len(found["archetypes"]) == 6 and found["lowest"] <= found["without"] + 1e-9
    assert len(table.read_text().splitlines()) == 1 + 144
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize("kind", ["split", "starts", "ridge", "last"])
def test_other_maps(tmp_path, kind: str) -> None:
    path = tmp_path / "map.npz"
    assert run("--map", kind, "--size", "9", "--out", str(path))[0] == 0
    with np.load(path) as arrays:
        assert arrays["shape"].tolist() == [9, 9] and len(arrays["energy"]) == 81


def test_a_curve(tmp_path) -> None:
    picture = tmp_path / "curve.png"
    words = ["energy", "--preset", "alternating-line", "--size", "9", "--picture", str(picture)]
    assert CliRunner().invoke(app, words).exit_code == 0 and picture.exists()


def test_what_is_refused() -> None:
    assert run("--point", "9")[0] == 2
    assert run("--out", "map.txt")[0] == 2

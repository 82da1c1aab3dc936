"""Row files of commit ca7d2b3 open, are gone on from, and say what they said to its code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.engine.test_kept import near
from tests.research.kept_rows.make import numbers

KEPT = Path(__file__).parent / "kept_rows"
SAID = json.loads((KEPT / "numbers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """What today's code says of copies: a file that is gone on from is opened to be written."""
    folder = tmp_path_factory.mktemp("rows")
    for path in KEPT.glob("*.jsonl"):
        shutil.copy(path, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    said = json.loads(json.dumps(numbers(folder)))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    return said


def test_every_file_is_read(mine):
    assert set(mine) == set(SAID) == {path.stem for path in KEPT.glob("*.jsonl")}


@pytest.mark.parametrize("name", SAID)
def test_rows_of_before_open_with_their_numbers(name, mine):
    for part, said in SAID[name].items():
        if part in ("rows", "keys", "table", "front", "start", "end"):
            assert mine[name][part] == said, part
        else:
            assert near(mine[name][part], said), (part, mine[name][part], said)

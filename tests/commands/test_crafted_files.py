"""Files made to take more than they have: none takes a gigabyte, and each has its answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.engine.files import MOST_WORDS

MOST_MB = 1000


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(sys.platform == "win32", reason="a process is measured by wait4")
def test_no_crafted_file_takes_a_gigabyte(root: Path) -> None:
    """Each is read in a process of its own, which a limit of the processor's time ends."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crafted"], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    print(done.stdout)
    assert len(rows) >= 81
    for row in rows:
        assert row["peak_mb"] < MOST_MB, row
        assert not row["answer"].startswith("RAISED"), row
        assert (row["answer"] == "taken") or row["name"] != "link: largest", row
        assert len(row["answer"]) <= MOST_WORDS and row["answer"].isprintable(), row

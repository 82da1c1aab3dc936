"""What tests of the verbs share: a call in a folder of its own, and what it answers."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from explorer import cli
from tests.verbs import FILES, NET


@dataclass(frozen=True)
class Answer:
    """What a command printed."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        """The JSON on stdout, which holds nothing else."""
        return json.loads(self.out)

    @property
    def words(self) -> str:
        """Words of the tables on stdout, each cell whole."""
        return " ".join(self.out.replace("│", " ").replace("┃", " ").split())

    @property
    def line(self) -> str:
        """The one line on stderr, with nothing on stdout."""
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("margin-explorer: ") and len(line) > 40
        return line


def answer(line: str, *more: object, code: int = 0) -> Answer:
    """Run a command line; its exit code is checked, and that no traceback is shown."""
    result = CliRunner().invoke(cli.app, [*shlex.split(line), *map(str, more)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return Answer(result.stdout, result.stderr)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run commands in a folder that holds `FILES` alone: call(line, *more, code=0) -> Answer."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    return answer


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved run of two points, to be read."""
    path = tmp_path_factory.mktemp("saved") / "run.safetensors"
    answer(f"train {NET} --seed 3 --out", path)
    return path

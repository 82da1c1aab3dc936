"""The README's Python runs as it stands, and its commands exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from typer.testing import CliRunner

from explorer.cli import app as command

README = Path(__file__).resolve().parents[1] / "README.md"


def test_every_python_example_prints_what_it_says() -> None:
    failed, tried = doctest.testfile(str(README), module_relative=False)
    assert tried >= 12
    assert failed == 0


def test_every_command_named_exists() -> None:
    named = set(re.findall(r"^ {4}margin-explorer (\w+)", README.read_text(), re.MULTILINE))
    assert {"demo", "train", "attack", "show"} <= named
    for verb in named:
        result = CliRunner().invoke(command, [verb, "--help"])
        assert result.exit_code == 0, (verb, result.output)


def test_every_file_named_is_there() -> None:
    text = README.read_text()
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (README.parent / link).exists(), link

"""A file is saved whole or not at all: a full disk leaves what stood there, and nothing beside."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from explorer.cli import app
from explorer.engine import files
from explorer.engine.files import write_file
from explorer.research.pictures import planes

pytest.importorskip("matplotlib")

NO_ROOM = os.strerror(errno.ENOSPC)
TRAIN = ["train", "--preset", "two-points", "--widths", "8", "--steps", "300"]
ENERGY = ["energy", "--preset", "two-points", "--size", "4"]
# A verb for each kind of file; its name comes last.
SAVED = {
    "run.safetensors": [*TRAIN, "--out"],
    "attacked.safetensors": ["attack", "RUN", "--steps", "3", "--out"],
    "road.svg": ["demo", *TRAIN[1:], "--attack-steps", "3", "--out"],
    "film.gif": ["film", "RUN", "--out"],
    "map.csv": [*ENERGY, "--out"],
    "map.npz": [*ENERGY, "--out"],
    "map.png": [*ENERGY, "--picture"],
    "audit.json": ["audit", "RUN", "POINTS", "--attack", "hinge", "--out"],
}


def full(number: int) -> None:
    """What the system says when a disk is full."""
    raise OSError(errno.ENOSPC, NO_ROOM)


def test_what_a_disk_has_no_room_for_replaces_nothing(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "kept.bin"
    write_file(path, b"good")
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match=r"^cannot write kept\.bin: No space.*Make room.*stays\.$"):
        write_file(path, b"newer and longer")
    with pytest.raises(OSError, match=r"absent\.bin"):
        write_file(tmp_path / "absent.bin", b"new")
    assert path.read_bytes() == b"good"
    assert [p.name for p in tmp_path.iterdir()] == ["kept.bin"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_writer_that_ends_midway_leaves_nothing_behind(
    error: type[BaseException], tmp_path: Path, monkeypatch
) -> None:
    path = tmp_path / "kept.bin"
    write_file(path, b"good")

    class Midway(io.FileIO):
        def write(self, data: object) -> int:
            super().write(bytes(data)[:3])  # type: ignore[call-overload]
            raise error

    monkeypatch.setattr(Path, "open", lambda self, mode="r": Midway(self, "x"))
    with pytest.raises(error):
        write_file(path, b"newer")
    monkeypatch.undo()
    assert path.read_bytes() == b"good" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_a_limit_of_the_system_destroys_no_run(tmp_path: Path) -> None:
    """A process that may write 4 kB a file: the second run does not fit, the first one opens."""
    path = tmp_path / "run.safetensors"
    assert CliRunner().invoke(app, [*TRAIN, "--out", str(path)]).exit_code == 0
    before = path.read_bytes()
    assert len(before) > 4096
    program = (
        "import resource, sys\n"
        "from explorer import load_run, save_run\n"
        "run = load_run(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "save_run(run, sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True
    )
    assert "run.safetensors" in done.stderr and os.strerror(errno.EFBIG) in done.stderr
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("given")
    run, points = folder / "run.safetensors", folder / "points.csv"
    assert CliRunner().invoke(app, [*TRAIN, "--out", str(run)]).exit_code == 0
    points.write_text("x1,y\n0.5,1\n-0.5,-1\n", encoding="utf-8")
    return {"RUN": str(run), "POINTS": str(points)}


@pytest.mark.parametrize("name", SAVED)
def test_each_verb_keeps_what_stood_there(
    name: str, given: dict[str, str], tmp_path: Path, monkeypatch
) -> None:
    path = tmp_path / name
    path.write_bytes(b"good")
    words = [given.get(word, word) for word in SAVED[name]] + [str(path)]
    monkeypatch.setattr(planes, "MOST_FRAMES", 2)
    with monkeypatch.context() as disk:
        disk.setattr(files.os, "fsync", full)
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 2 and name in done.stderr and NO_ROOM in done.stderr, done.output
    assert path.read_bytes() == b"good" and list(tmp_path.iterdir()) == [path]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert path.read_bytes() != b"good" and list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="has other permissions")
def test_the_rights_of_a_file_stay_and_a_link_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "one", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_file(link, "new")
    assert link.is_symlink() and path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    new, mask = tmp_path / "two", os.umask(0o027)
    try:
        write_file(new, "x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    write_file("/dev/null", b"x")  # a device is written to, not replaced
    assert Path("/dev/null").is_char_device()


def test_nothing_is_saved_but_by_it(root: Path) -> None:
    """Rows are appended to files of their own, and the server's notebooks lie in its own folder."""
    free = {"commands/outputs.py", "engine/files.py", "research/pages.py", "research/records.py",
            "serve/warm.py"}  # fmt: skip
    found = []
    for path in sorted((root / "explorer").rglob("*.py")):
        name = path.relative_to(root / "explorer").as_posix()
        text = path.read_text(encoding="utf-8")
        wild = re.findall(r"\.write_(?:bytes|text)\(|open\(\"[wx]|(?:savefig|savez\w*)\(path", text)
        found += [(name, hit) for hit in wild if name not in free]
    assert not found

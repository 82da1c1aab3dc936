"""What is read of a file: ordinary ones, so far and no further; and what is said of others."""

from __future__ import annotations

import io
import os
import socket
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest

from explorer.engine import files
from explorer.engine.files import FileError, members, one_line, read_file, reading
from explorer.engine.store import StoreError
from tests.crafted import lying


def test_a_sentence_is_one_line_whose_end_stays() -> None:
    assert one_line("a\nb\t\x1b[2J c\u202e") == "a b [2J c"
    long = one_line("begin " + "x" * 10**7 + " Take the remedy.")
    assert len(long) <= files.MOST_WORDS
    assert long.startswith("begin") and long.endswith("remedy.")
    assert one_line("x" * 300) == "x" * 300
    assert len(str(FileError("word " * 1000))) <= files.MOST_WORDS


@pytest.mark.parametrize(
    "error", [MemoryError("no"), RecursionError(), OverflowError("1\n2"), KeyError(3)]
)
def test_whatever_goes_wrong_while_reading_is_said(error: Exception) -> None:
    name = type(error).__name__
    with pytest.raises(StoreError, match=f"^the list is damaged \\({name}.*\\). Write it again.$"):
        with reading("the list", "Write it again.", StoreError):
            raise error


def test_a_refusal_keeps_its_words_and_takes_the_kind() -> None:
    with pytest.raises(StoreError, match=r"^too long$"), reading("a", "b.", StoreError):
        raise FileError("too long")


def test_a_file_is_read_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "given"
    path.write_bytes(b"12345")
    assert read_file(path, 5) == b"12345"
    with pytest.raises(FileError, match="at most 0 MB"):
        read_file(path, 4)


def test_a_file_that_grows_meanwhile_is_read_no_further(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "given"
    path.write_bytes(bytes(1000))
    real = os.fstat

    def before(number: int) -> os.stat_result:
        parts = list(real(number))
        parts[6] = 3  # its size, as it was
        return os.stat_result(parts)

    monkeypatch.setattr(files.os, "fstat", before)
    with pytest.raises(FileError, match="at most"):
        read_file(path, 10)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"^cannot read absent: No such file.*Check the path.$"):
        read_file(tmp_path / "absent")
    with pytest.raises(FileError, match="no name of a file"):
        read_file("a\0b")
    with pytest.raises(FileError, match=r"folder, a device or a pipe|Permission"):
        read_file(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="has other devices")
def test_devices_pipes_and_sockets_are_refused_before_they_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody writes: a reader would wait
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
        for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path / "socket"):
            with pytest.raises(FileError, match=r"device or a pipe|No such device"):
                read_file(path)


def test_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError) as told:
        read_file(tmp_path / ("x" * 200))
    assert str(tmp_path) not in str(told.value)


def packed(content: bytes, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as file:
        file.writestr("one", content)
        file.writestr("two", content[::2])
    return out.getvalue()


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("size", [0, 1, 4096, 70_000])
def test_an_honest_archive_is_read_whole(size: int, kind: int) -> None:
    content = os.urandom(size // 2) + bytes(size - size // 2)
    found = members(packed(content, kind), 2 * size, FileError, "Pack it again.")
    assert found == {"one": content, "two": content[::2]}


@pytest.mark.parametrize("checked", [True, False], ids=["right checksum", "wrong checksum"])
@pytest.mark.parametrize("said", [0, 1, 1000, 2**25 - 1, 2**25 + 1])
def test_an_archive_is_unpacked_no_further_than_its_directory_says(
    said: int, checked: bool
) -> None:
    """Whether the checksum fits what is said or not."""
    data = packed(bytes(2**25))
    checksum = zlib.crc32(bytes(said)) if checked else None
    given = lying(data, said, checksum)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"^the archive is damaged \(.*Pack it again\.$"):
            members(given, 2**27, FileError, "Pack it again.")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * said + 2**20

"""Files that somebody gives: read at most so far, and whatever is wrong said in one sentence.

Files that are saved stand there whole, or not at all. Every reader raises a `FileError` of its own
kind and nothing else, however damaged the bytes are.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_WORDS = 300  # characters of a refusal: what one reads at a glance
MOST_NAME = 60  # of them, those of a name that the file or its giver chose
MAX_BYTES = 64 * 2**20  # arbitrary: 500 states of a width of 1000 fit
# A pipe without a writer must not hold its reader up; Windows has neither.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class FileError(ValueError):
    """A file that cannot be used. The message is one line of at most `MOST_WORDS` characters."""

    def __init__(self, message: object) -> None:
        super().__init__(one_line(message))


def one_line(text: object, most: int = MOST_WORDS) -> str:
    """Return the text without line breaks and control characters.

    Where it is long, its middle left out.

    Its end stays, as that is where the remedy stands.
    """
    words = str(text)
    if len(words) > 8 * most:  # the rest could not be seen anyway
        words = words[: 4 * most] + words[-4 * most :]
    words = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    if len(words) <= most:
        return words
    tail = most // 3
    return f"{words[: most - tail - 3]} … {words[-tail:]}"


def safe_name(name: object) -> str:
    """Return a name out of a file, or of one, as it can stand in a sentence."""
    return one_line(name, MOST_NAME)


@contextmanager
def reading(what: str, remedy: str, kind: type[FileError] = FileError) -> Iterator[None]:
    """Raise a `kind` for whatever goes wrong within: `what` is damaged, why, and the remedy.

    Libraries raise errors of many types on damaged bytes, MemoryError and RecursionError among
    them. Only reading belongs within.
    """
    try:
        yield
    except FileError as error:
        if isinstance(error, kind):
            raise
        raise kind(error) from error
    except Exception as error:
        why = one_line(error, MOST_WORDS // 3)
        if not isinstance(error, ValueError):  # these words alone may say little
            why = f"{type(error).__name__}: {why}"
        raise kind(f"{what} is damaged ({why}). {remedy}") from error


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Let whatever is refused within begin with the name of its file."""
    try:
        yield
    except FileError as error:
        name = safe_name(Path(path).name)
        if name in str(error):
            raise
        raise type(error)(f"{name}: {error}") from error


def read_file(path: str | Path, most: int = MAX_BYTES, kind: type[FileError] = FileError) -> bytes:
    """Return the bytes of an ordinary file, which has at most `most`.

    Raises:
        FileError: of this `kind`, where there is none to read, it is a folder, a device or a pipe,
            or it is larger; no more than `most` + 1 bytes are read of one that grows meanwhile.
    """
    name = safe_name(Path(path).name)
    try:
        number = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no name of a file"
        raise kind(f"cannot read {name}: {why}. Check the path.") from error
    try:
        there = os.fstat(number)
        if not stat.S_ISREG(there.st_mode):
            raise kind(f"{name} is a folder, a device or a pipe. Name an ordinary file.")
        check_size(there.st_size, most, kind)
        with os.fdopen(number, "rb", closefd=False) as file:
            content = file.read(most + 1)
    except OSError as error:
        raise kind(f"cannot read {name}: {error.strerror}. Check the path.") from error
    finally:
        os.close(number)
    check_size(len(content), most, kind)
    return content


@contextmanager
def to_disk(path: str | Path) -> Iterator[None]:
    """Yield an error of the system within names the file, and the remedy."""
    try:
        yield
    except BrokenPipeError:  # who reads the pipe has left
        raise
    except OSError as error:
        raise OSError(
            f"cannot write {safe_name(Path(path).name)}: {error.strerror or error}. Make room, or "
            "name a file elsewhere. What stood there stays."
        ) from error


def write_file(path: str | Path, content: bytes | str) -> None:
    """Write a file whole, or leave what is there: beside it first, then in its place.

    Raises:
        OSError: with the name and a remedy, where it cannot be written; nothing is left behind.
    """
    data, path = content.encode() if isinstance(content, str) else content, Path(path)
    with to_disk(path):
        if path.exists() and not path.is_file():  # a device or a pipe; a folder is refused
            path.write_bytes(data)
            return
        path = path.resolve()  # where it is a link, the file that it leads to
        beside = spare_name(path)
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                beside.chmod(stat.S_IMODE(path.stat().st_mode))
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def spare_name(path: Path) -> Path:
    """Return a name beside `path` that no other file has."""
    return path.with_name(f".{secrets.token_hex(8)}.part")


def check_size(size: int, most: int = MAX_BYTES, kind: type[FileError] = FileError) -> None:
    """Raise a FileError of this `kind` for more than `most` bytes."""
    if size > most:
        raise kind(
            f"the file has {size / 2**20:.1f} MB; at most {most // 2**20} MB are read. "
            "Save fewer states, a smaller network or a subset."
        )


# --- Zip archives from anywhere, as `.npz` and `.pt` files are: unpacked within bounds, or refused

MOST_MEMBERS = 4096  # arbitrary: a network of a thousand layers has two tensors a layer
_ENTRY = b"PK\x01\x02"  # begins every member of the directory
_ENCRYPTED = 0x1
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # LZMA may ask for gigabytes of dictionary


def is_archive(data: bytes) -> bool:
    """Return whether the bytes begin as a zip archive does."""
    return data[:4] == b"PK\x03\x04"


def members(data: bytes, most: int, kind: type[FileError], remedy: str) -> dict[str, bytes]:
    """Return the members of an archive by name, unpacked to at most `most` bytes together.

    Raises:
        FileError: of this `kind`, for a damaged archive, one that unpacks to more or to another
            size than it says, one with too many members or two of one name, and one that is
            encrypted or packed in a rare way.
    """
    # Counted before the directory is read: a small entry of it takes twenty times its room.
    if data.count(_ENTRY) > MOST_MEMBERS:
        raise kind(f"the archive has more than {MOST_MEMBERS} members. {remedy}")
    with reading("the archive", remedy, kind), zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        size = sum(entry.file_size for entry in entries)
        if size > most:
            raise kind(
                f"the file unpacks to {size / 2**20:.0f} MB; "
                f"at most {most // 2**20} MB are read. {remedy}"
            )
        if len({entry.filename for entry in entries}) < len(entries):
            raise kind(f"two members of the archive have one name. {remedy}")
        for entry in entries:
            if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _KINDS:
                raise kind(
                    f"{safe_name(entry.filename)} is encrypted or packed in a rare way. {remedy}"
                )
        return {entry.filename: _member_bytes(archive, entry) for entry in entries}


def _member_bytes(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return one member, of the size that the directory names.

    `archive.read` unpacks all there is before it looks at that size. One byte more is asked for
    here, and an honest member has none.
    """
    size = entry.file_size
    entry.file_size += 1
    with archive.open(entry) as member:
        content = member.read(size + 1)
    if len(content) != size:
        raise ValueError(f"{safe_name(entry.filename)} has another size than its directory says")
    return content

"""Zip archives from anywhere, as `.npz` and `.pt` files are: unpacked within bounds, or refused."""

from __future__ import annotations

import io
import zipfile

from explorer.engine.files import FileError, named, reading

MOST_MEMBERS = 4096  # arbitrary: a network of a thousand layers has two tensors a layer
_ENTRY = b"PK\x01\x02"  # begins every member of the directory
_ENCRYPTED = 0x1
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # LZMA may ask for gigabytes of dictionary


def is_archive(data: bytes) -> bool:
    """Whether the bytes begin as a zip archive does."""
    return data[:4] == b"PK\x03\x04"


def members(data: bytes, most: int, kind: type[FileError], remedy: str) -> dict[str, bytes]:
    """The members of an archive by name, unpacked to at most `most` bytes together.

    Raises:
        FileError: of this `kind`, for a damaged archive, one that unpacks to more, one with too
            many members or two of one name, and one that is encrypted or packed in a rare way.
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
                    f"{named(entry.filename)} is encrypted or packed in a rare way. {remedy}"
                )
        return {entry.filename: archive.read(entry) for entry in entries}

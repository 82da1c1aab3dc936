"""MNIST and CIFAR-10 from their standard files, in a folder that the user names.

Nothing is downloaded, and nothing in a file is run: the idx format holds numbers alone, and the
python batches of CIFAR-10, which are pickles, are read without an unpickler (`engine.pickles`).
"""

from __future__ import annotations

import gzip
import io
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.files import FileError, check_size, named, read_file, reading
from explorer.engine.pickles import Pickle

MNIST = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
CIFAR = tuple(f"data_batch_{k}" for k in range(1, 6))
WHERE = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "cifar": "https://www.cs.toronto.edu/~kriz/cifar.html (the python version)",
}
MOST_BYTES = 128 * 2**20  # arbitrary: the 60,000 images of MNIST are 47 MB, a batch of CIFAR 31


class ImageFileError(FileError):
    """A file is not there or not what its name says; the message says which, and what to do."""


def read_mnist(folder: str | Path) -> tuple[Tensor, Tensor]:
    """Training images (n, 1, 28, 28) as bytes and their digits (n,), from idx files, gz or not.

    Raises:
        ImageFileError: a file is missing, or no idx file of its kind.
    """
    images = _idx(_found(Path(folder), MNIST[0], "mnist"), 3)
    digits = _idx(_found(Path(folder), MNIST[1], "mnist"), 1)
    if len(images) != len(digits):
        raise ImageFileError(
            f"{MNIST[0]} holds {len(images)} images and {MNIST[1]} {len(digits)} labels; "
            f"fetch both again from {WHERE['mnist']}"
        )
    if images.shape[1:] != (28, 28) or bool((digits > 9).any()):
        raise ImageFileError(
            f"{MNIST[0]} and {MNIST[1]} must hold images of 28 by 28 and digits; got "
            f"{images.shape[1:]} and labels up to {digits.max(initial=0)}. Fetch both again."
        )
    return torch.from_numpy(images)[:, None], torch.from_numpy(digits).long()


def read_cifar(folder: str | Path) -> tuple[Tensor, Tensor]:
    """The training images (n, 3, 32, 32) as bytes and classes (n,) of the batches that are there.

    The folder may be the one that the archive unpacks to, or hold it; one batch is enough.

    Raises:
        ImageFileError: no batch is there, or one holds something else.
    """
    folder = Path(folder)
    inner = folder / "cifar-10-batches-py"
    folder = inner if inner.is_dir() else folder
    paths = [folder / name for name in CIFAR if (folder / name).is_file()]
    if not paths:
        raise ImageFileError(_missing(folder, CIFAR[0], "cifar"))
    pairs = [_batch(path) for path in paths]
    images = np.concatenate([p[0] for p in pairs])
    classes = np.concatenate([p[1] for p in pairs])
    return torch.from_numpy(images), torch.from_numpy(classes).long()


def _missing(folder: Path, name: str, kind: str) -> str:
    more = " (or .gz)" if kind == "mnist" else ""
    if kind == "mnist":
        needed = f"Needed: {' and '.join(MNIST)}{more}."
    else:
        needed = f"Needed: one or more of {CIFAR[0]} to {CIFAR[-1]}."
    place = named(folder)
    there = f"{place} has no {name}{more}" if folder.is_dir() else f"there is no folder {place}"
    return f"{there}. {needed} Get them from {WHERE[kind]} and name the folder that holds them."


def _found(folder: Path, name: str, kind: str) -> Path:
    """The file of this name, gz or not; archives also write a dot before `idx`."""
    for stem in (name, name.replace("-idx", ".idx")):
        for path in (folder / stem, folder / f"{stem}.gz"):
            if path.is_file():
                return path
    raise ImageFileError(_missing(folder, name, kind))


def _idx(path: Path, ndim: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """An idx file of unsigned bytes: 0, 0, 8, ndim, then ndim big-endian sizes, then the bytes."""
    raw = read_file(path, MOST_BYTES, ImageFileError)
    name = named(path.name)
    if path.suffix == ".gz":
        with (
            reading(f"{name} is no whole gzip file: it", "Fetch it again.", ImageFileError),
            gzip.open(io.BytesIO(raw)) as file,
        ):
            raw = file.read(MOST_BYTES + 1)
        check_size(len(raw), MOST_BYTES, ImageFileError)
    head = 4 + 4 * ndim
    if len(raw) < head or raw[:4] != bytes((0, 0, 8, ndim)):
        raise ImageFileError(
            f"{name} is no idx file of bytes in {ndim} dimensions; got the header "
            f"{raw[:4]!r}. Fetch it again."
        )
    shape = struct.unpack(f">{ndim}I", raw[4:head])
    if len(raw) - head != math.prod(shape):
        raise ImageFileError(
            f"{name} promises {shape} bytes and holds {len(raw) - head}; fetch it again"
        )
    return np.frombuffer(raw, np.uint8, offset=head).reshape(shape).copy()


class _Batch(Pickle):
    """Arrays, numbers, bytes, strings, lists and dictionaries; nothing else can be named."""

    kind = ImageFileError
    remedy = "Fetch it again."

    def called(self, name: str, given: tuple[Any, ...]) -> object:
        """Empty arrays and types, and bytes as Python 2 wrote them."""
        if name in ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"):
            return _Array()
        if name == "numpy.dtype" and given:
            return given[0]
        if name == "_codecs.encode" and len(given) == 2 and given[1] in ("latin1", b"latin1"):
            return str(given[0]).encode("latin-1")
        raise ImageFileError(
            f"it asks for {named(name)}, which no CIFAR-10 batch does; it was not read"
        )

    def built(self, held: object, state: object) -> object:
        """The array of a shape and bytes."""
        if not isinstance(held, _Array):
            return held
        if not isinstance(state, tuple) or len(state) != 5:
            self.damaged("an array without a state")
        _, shape, kind, columns, content = state
        if kind not in ("u1", b"u1") or columns or not isinstance(content, bytes):
            self.damaged("an array of other things than bytes, row by row")
        return np.frombuffer(content, np.uint8).reshape(shape)


class _Array:
    """An array whose shape and content are yet to come."""


def _batch(path: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    name = named(path.name)
    content = read_file(path, MOST_BYTES, ImageFileError)
    with reading(f"{name} is no CIFAR-10 batch: it", "Fetch it again.", ImageFileError):
        try:
            found = _Batch().value(io.BytesIO(content))
        except ImageFileError as error:
            raise ImageFileError(f"{name} is no CIFAR-10 batch: {error}") from error
    data, labels = (
        (found.get(b"data"), found.get(b"labels")) if isinstance(found, dict) else (None, None)
    )
    if not (
        isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == 3072
        and isinstance(labels, list) and len(labels) == len(data)
        and all(isinstance(label, int) and 0 <= label < 10 for label in labels)
    ):  # fmt: skip
        raise ImageFileError(
            f"{name} is no CIFAR-10 batch: expected data (n, 3072) of bytes and n labels of 0 to "
            "9. Fetch it again."
        )
    return data.reshape(-1, 3, 32, 32), np.asarray(labels, dtype=np.int64)

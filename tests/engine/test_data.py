"""Laws of datasets: presets, edits, the held-out partition, files."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.engine.classes import labels
from explorer.engine.data import (
    BOX,
    MAX_POINTS,
    PRESETS,
    DataError,
    Dataset,
    Source,
    empty,
    heldout,
    heldouts,
    preset,
    read_csv,
    read_npz,
    write_csv,
    write_npz,
)
from explorer.engine.data.files import LARGEST, read_table
from tests.engine.draws import rng

NAMES = list(PRESETS)


def sizes(name: str) -> list[int]:
    row = PRESETS[name]
    return [row.n] if row.n_min == row.n_max else [row.n_min, 7, row.n, row.n_max]


def hand_drawn(seed: int = 0, n: int = 7, d: int = 2) -> Dataset:
    generator = rng(seed)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    return Dataset(x, torch.where(torch.arange(n) < 3, 1.0, -1.0).to(torch.float64))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("noise", [None, 0.0, 5.0])
def test_presets_fill_the_box_with_every_label(name: str, noise: float | None) -> None:
    for n in sizes(name):
        data = preset(name, n, noise, seed=3)
        assert data.x.shape == (n, PRESETS[name].d)
        assert data.x.dtype == torch.float64
        assert float(data.x.abs().max()) <= BOX
        assert set(data.y.tolist()) == {1.0, -1.0, 3.0, 4.0}.intersection(
            labels(PRESETS[name].classes)
        )
        assert data.conflict() is None or noise == 0.0
        assert data.source is not None
        assert data.source.n == n


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_draws_the_same_set(name: str) -> None:
    first, again = preset(name, seed=5), preset(name, seed=5)
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.y, again.y)
    other = preset(name, noise=0.1, seed=6)
    assert not torch.equal(preset(name, noise=0.1, seed=5).x, other.x)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_the_control_is_as_large_and_disjoint(name: str, seed: int) -> None:
    for n in sizes(name):
        data = preset(name, n, seed=seed)
        control = heldout(data, seed)
        assert torch.equal(control.y.sort().values, data.y.sort().values)
        assert float(torch.cdist(control.x, data.x).min()) > 0
        assert float(control.x.abs().max()) <= BOX
        assert control.source is None
        assert torch.equal(heldout(data, seed).x, control.x)
        assert not torch.equal(heldout(data, seed + 1).x, control.x)


def test_the_control_of_a_regular_set_stays_a_quarter_spacing_away() -> None:
    for seed in range(20):
        line = preset("alternating-line", 8)
        gap = torch.cdist(heldout(line, seed).x, line.x).min()
        assert float(gap) >= 0.25 * 3 / 8 - 1e-12
        ring = preset("alternating-circle", 20)
        turned = heldout(ring, seed)
        assert float(torch.cdist(turned.x, ring.x).min()) >= 0.99 * 0.25 * 2 * torch.pi / 20
        assert torch.allclose(turned.x.norm(dim=1), torch.ones(20, dtype=torch.float64))


def test_the_control_of_a_preset_is_not_its_next_seed() -> None:
    control = heldout(preset("moons", seed=0), 0)
    assert all(not torch.equal(control.x, preset("moons", seed=s).x) for s in range(5))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_bootstrap_keeps_counts_and_follows_the_classes(d: int) -> None:
    data = hand_drawn(d=d)
    far = Dataset(data.x + 100 * data.y[:, None], data.y)
    control = heldout(far, seed=1)
    assert torch.equal(control.y, far.y)
    first, second = heldouts(far, (1, 2))
    assert torch.equal(first.x, control.x) and torch.equal(second.x, heldout(far, 2).x)
    assert not bool((first.x == second.x).any())
    assert float(torch.cdist(control.x, far.x).min()) > 0
    assert bool((control.x.sign() == far.y[:, None]).all())  # class by class, not pooled


def test_the_bootstrap_of_one_point_or_none() -> None:
    one = empty(2).with_point([0.3, -0.4], 1)
    assert float((heldout(one).x - one.x).norm()) > 0
    assert heldout(empty(2)).n == 0


def test_a_control_drawn_on_the_plane_stays_on_it() -> None:
    corner = Dataset(2.0 * torch.ones(6, 2, dtype=torch.float64), torch.ones(6).double())
    assert float(heldout(corner).x.abs().max()) <= 2.0


def test_edits_return_new_sets_and_keep_the_old() -> None:
    data = preset("moons", 9)
    before = data.x.clone()
    more = data.with_point([0.1, 0.2], -1)
    assert (more.n, more.source) == (10, None)
    assert torch.equal(more.x[:9], data.x)
    assert more.x[9].tolist() == [0.1, 0.2]
    assert float(more.y[9]) == -1.0
    moved = data.with_point_at(4, torch.tensor([1.0, -1.0]))
    assert moved.x[4].tolist() == [1.0, -1.0]
    assert torch.equal(moved.y, data.y)
    less = data.without([0, 8])
    assert torch.equal(less.x, data.x[1:8])
    assert torch.equal(data.x, before)
    assert data.source == Source("moons", 9, PRESETS["moons"].noise, 0)


def test_a_full_set_takes_no_more_points() -> None:
    full = preset("blobs", MAX_POINTS)
    with pytest.raises(ValueError, match="at most 200"):
        full.with_point([0.0, 0.0], 1)


@pytest.mark.parametrize("index", [-1, 7])
def test_an_index_outside_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="points 0 to 6"):
        hand_drawn().with_point_at(index, [0.0, 0.0])
    with pytest.raises(ValueError, match="points 0 to 6"):
        hand_drawn().without([index])


def test_conflict_names_the_pair() -> None:
    data = empty(2).with_point([0.5, 1], 1).with_point([0, 1], -1).with_point([0, 1], -1)
    assert data.conflict() is None
    assert data.with_point([0.5, 1], -1).conflict() == (0, 3)
    assert empty(1).conflict() is None


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.zeros(3), torch.ones(3), "expected x"),
        (torch.zeros(3, 2), torch.ones(2), "expected x"),
        (torch.zeros(3, 2), torch.zeros(3), "-1 or 1"),
        (torch.full((3, 2), torch.nan), torch.ones(3), "nan or inf"),
        (torch.zeros(3, 2, dtype=torch.int64), torch.ones(3), "floating"),
    ],
)
def test_bad_sets_are_refused(x: torch.Tensor, y: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Dataset(x, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("moon",), "alternating-circle"),
        (("moons", 1), "from 2 to 200"),
        (("moons", 201), "from 2 to 200"),
        (("two-points", 3), "from 2 to 2"),
        (("moons", 9, -0.1), "noise"),
        (("moons", 9, float("nan")), "noise"),
        (("moons", 9, 0.1, -1), "seed"),
    ],
)
def test_bad_presets_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        preset(*arguments)


numbers = st.floats(-LARGEST, LARGEST, width=64)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.data())
def test_files_read_back_exactly(d: int, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=1, max_size=6))
    labels = data.draw(
        st.lists(st.sampled_from([-1.0, 1.0]), min_size=len(rows), max_size=len(rows))
    )
    truth = Dataset(*(torch.tensor(v, dtype=torch.float64) for v in (rows, labels)))
    for again in (
        read_csv(write_csv(truth)),
        read_csv(write_csv(truth).encode()),
        read_npz(write_npz(truth)),
    ):
        assert torch.equal(again.x, truth.x)
        assert torch.equal(again.y, truth.y)
        assert again.source is None


def test_csv_in_the_dress_of_other_programs() -> None:
    data = read_csv(b"\xef\xbb\xbfX1, X2 ,y\r\n0.5, -1,1\r\n\r\n2e-1,0, 0\r\n")
    assert data.x.tolist() == [[0.5, -1.0], [0.2, 0.0]]
    assert data.y.tolist() == [1.0, -1.0]  # 0 and 1 throughout are -1 and +1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        (b"", "empty"),
        ("x1,x2,y\n", "no points"),
        ("a,b,y\n1,2,1\n", "line 1: expected the header"),
        ("0.1,0.2,1\n", "line 1: expected the header"),
        ("x1;x2;y\n1;2;1\n", "expected the header"),
        ("y\n1\n", "expected the header"),
        ("x1,x2,y\n1,2\n", "line 2: expected 3 values"),
        ("x1,x2,y\n1,2,1\n1,two,1\n", "line 3: x2 must be a number"),
        ("x1,x2,y\n1,2,1\n\n1,,1\n", "line 4: x2 must be a number"),
        ("x1,y\n1,1\nnan,1\n", "line 3: nan or inf"),
        ("x1,y\n1,1\n1e999,1\n", "line 3: nan or inf"),
        ("x1,y\n1,1\n2,3\n", "line 3: label y must be -1 or 1"),
        ("x1,y\n1,-1\n2,0\n", "line 3: label y must be -1 or 1"),
        ("x1,y\n1,nan\n", "line 2: label"),
        ("x1,y\n" + "1,1\n" * 201, "201 points or more; at most 200"),
        (b"x1,y\n" + b" " * 2**23, "at most 8 MiB"),
        (b"PK\x03\x04\xff\xfe", "not a text file"),
        ('x1,y\n"' + "1" * 200_000, "line"),
    ],
)
def test_bad_csv_says_where_and_what(text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_csv(text)


def archive(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def bomb(header_shape: str) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {header_shape}, }}"
    raw = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(80)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("x.npy", raw)
        file.writestr("y.npy", raw)
    return out.getvalue()


def zeros_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", bytes(2**24))
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an NPZ"),
        (b"x1,y\n1,1\n", "not an NPZ"),
        (write_npz(hand_drawn())[:200], "archive is damaged"),
        (archive(x=np.ones((3, 2))), "not an NPZ"),
        (archive(x=np.ones((3, 2)), y=np.ones(2)), "expected x"),
        (archive(x=np.ones(3), y=np.ones(3)), "expected x"),
        (archive(x=np.ones((0, 2)), y=np.ones(0)), "no points"),
        (archive(x=np.ones((201, 2)), y=np.ones(201)), "201 points"),
        (archive(x=np.full((3, 2), np.inf), y=np.ones(3)), "row 0: nan or inf"),
        (archive(x=np.ones((3, 2)), y=np.array([1, 2, 1])), "row 1: label"),
        (archive(x=np.ones((3, 2), dtype=complex), y=np.ones(3)), "real numbers"),
        (archive(x=np.array([[{}]], dtype=object), y=np.ones(1)), "real numbers"),
        (bomb("(1000000000000, 2)"), "damaged"),
        (bomb("(-5, -2)"), "damaged"),
        (zeros_bomb(), "unpacks to 16 MB; at most 8 MB"),
    ],
)
def test_bad_npz_says_what(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_npz(data)


def test_class_numbers_go_out_and_come_back() -> None:
    data = preset("pie", 7)
    text = write_csv(data)
    assert text.splitlines()[0] == "x1,x2,class"
    assert [line.split(",")[2] for line in text.splitlines()[1:]] == list("1234123")
    for back in (read_csv(text), read_npz(write_npz(data))):
        assert torch.equal(back.x, data.x) and torch.equal(back.y, data.y)
    assert read_csv("x1,class\n1,1\n2,2\n").y.tolist() == [1, -1]
    with pytest.raises(DataError, match="line 3: class must be a number from 1 to 10; got 0"):
        read_csv("x1,class\n1,1\n2,0\n")


def test_editing_keeps_further_classes() -> None:
    data = hand_drawn().with_point((0.0, 0.0), 4.0)
    assert data.outputs == 4 and data.with_point_at(0, (1.0, 1.0)).outputs == 4
    assert data.without([7]).outputs == 1
    assert set(heldout(data, 1).y.tolist()) == {1.0, -1.0, 4.0}


def test_npz_takes_whole_numbers_and_zero_one_labels() -> None:
    data = read_npz(archive(x=np.arange(6).reshape(3, 2), y=np.array([0, 1, 1], dtype=np.int8)))
    assert data.x.dtype == torch.float64
    assert data.y.tolist() == [-1.0, 1.0, 1.0]


def test_to_changes_the_type_and_keeps_the_source() -> None:
    data = preset("moons", 5).to(dtype=torch.float32)
    assert (data.x.dtype, data.y.dtype) == (torch.float32, torch.float32)
    assert data.source is not None
    assert heldout(data).x.dtype == torch.float32


def test_numbers_of_a_table_are_in_plain_digits() -> None:
    """Python takes more for a number than a table may hold."""
    for cell in ("1_0", "\u0661\u0662", "\uff11", "0x1"):
        with pytest.raises(DataError, match="line 2: x1 must be a number with a decimal point"):
            read_csv(f"x1,y\n{cell},1\n")
        assert read_table(f"x1,y\n0.5,{cell}\n0.6,b\n".encode()).y == [cell, "b"]
    assert read_csv("x1,y\n 1e0 ,1\n").x.item() == 1


@pytest.mark.parametrize("value", ["1e308", "-1e151"])
def test_points_too_large_to_be_squared_are_refused_as_points(value: str) -> None:
    text = f"x1,y\n{value},1\n0,-1\n"
    for read in (read_csv, lambda table: read_table(table.encode())):
        with pytest.raises(DataError, match=r"line 2: x1 must be within 1e\+150 of 0; take"):
            read(text)
    out = io.BytesIO()
    np.savez(out, x=np.array([[float(value)], [0.0]]), y=np.array([1.0, -1.0]))
    with pytest.raises(DataError, match="within"):
        read_npz(out.getvalue())

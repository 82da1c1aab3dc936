"""Files damaged on purpose, by seed: whole ones of every kind that is read, and what is bent.

python -m tests.mutants 50000      the count of inputs that end otherwise than in one sentence
"""

from __future__ import annotations

import faulthandler
import gzip
import io
import json
import os
import pickle
import re
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors

from explorer.commands.base import assignments
from explorer.commands.tables import table_of
from explorer.engine import store, training
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import preset, read_csv, read_npz, write_csv, write_npz
from explorer.engine.data.images import CIFAR, MNIST, read_cifar, read_mnist
from explorer.engine.files import MOST_WORDS, FileError
from explorer.engine.network import Network
from explorer.engine.roster import ROSTER, by_key
from explorer.engine.settings import config_of
from explorer.engine.store import Run
from explorer.page import play
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.sharing.run import run_of_page
from explorer.page.stages.attack import commands as attack_stage
from explorer.research.code import python_of
from explorer.research.grid.store import CELLS
from explorer.research.records import RowFile, rows_in
from explorer.research.sweep import ROWS, experiments, key_of
from explorer.research.tuning import Trial, TuneConfig, row_of, search_rows
from tests.engine.test_images import idx

HANG_S = 120  # a stuck input ends the process with its traceback
FEW = {"kkt": {"m": 4, "steps": 10}, "decoreco": {"m": 4, "steps": 10}}
SMALL = TuneConfig(trials=3, restarts=2, m=4, steps=3)


@dataclass(frozen=True)
class Kind:
    """Whole files of one kind, and what reads them: a folder and the bytes."""

    name: str
    whole: Callable[[], list[bytes]]
    read: Callable[[Path, bytes], object]
    error: type[Exception] = FileError


# --- whole files --------------------------------------------------------------------------------
@cache
def session(attack: str) -> Session:
    """A small page with an attack under way."""
    made = Session(preset("alternating-line", 4), seed=1)
    made.train_config = training.TrainConfig(widths=(6,), steps=2000)
    play.go(made, "train")
    play.step(made, 400)
    play.go(made, "attack")
    attack_stage.choose(made, attack)
    made.attack_config = replace(made.attack_config, **FEW.get(attack, {}))
    play.reset(made)
    play.step(made, 3)
    return made


def run_of(attack: str) -> bytes:
    """The saved page, with few states."""
    run = files.as_run(session(attack))
    return steady(store.dump(store.thinned_run(run, 60_000)))


def steady(data: bytes) -> bytes:
    """The same file with its notes in order: the library writes them in any."""
    length = int.from_bytes(data[:8], "little")
    text = json.dumps(json.loads(data[8 : 8 + length]), sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


@cache
def runs() -> list[bytes]:
    """Runs of every attack that these weights bear, and one that was never attacked."""
    data = preset("moons", n=5, seed=4)
    config = training.TrainConfig(widths=(4, 3), steps=3)
    first = training.init(data, config, torch.Generator().manual_seed(3))
    states = (first, *islice(training.iterate(data, first, config), 2))
    plain = steady(store.dump(Run(data, config, states, seed=3)))
    return [plain, *(run_of(a) for a in ROSTER)]


def states() -> list[dict[str, torch.Tensor]]:
    """Weights in double and half precision, with biases and without."""
    generator = torch.Generator().manual_seed(0)
    wide = {
        "a.0.weight": torch.randn(4, 1, generator=generator).double(),
        "a.0.bias": torch.randn(4, generator=generator).double(),
        "a.2.weight": torch.randn(1, 4, generator=generator).double(),
    }
    return [wide, {k: v.half() for k, v in wide.items()}]


def saved(state: object, **how: bool) -> bytes:
    stream = io.BytesIO()
    torch.save(state, stream, **how)
    return stream.getvalue()


def keyed(data: bytes) -> bytes:
    """The file of one storage, which torch names by its place in memory, under a fixed name."""
    return re.sub(rb"\d{12,16}", lambda found: b"7" * len(found[0]), data)


class Touch:
    """Would run code where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> object:
        return Path.touch, (self.mark,)


MARK = Path(tempfile.gettempdir()) / f"mutants-mark-{os.getpid():010d}"  # of this process alone


def weights() -> list[bytes]:
    """As torch saves them today and did before 1.6, in a checkpoint, and with code beside them."""
    wide, half = states()
    one = {"a.weight": torch.ones(1, 1, dtype=torch.float64)}
    return [
        saved(wide), saved(half), saved({"epoch": 3, "rate": 0.5, "state_dict": wide}),
        keyed(saved(one, _use_new_zipfile_serialization=False)), saved({**wide, "b": Touch(MARK)}),
        saved({k: torch.nn.Parameter(v) for k, v in wide.items()}),
    ]  # fmt: skip


def batches() -> list[bytes]:
    data = np.arange(2 * 3072, dtype=np.uint32).astype(np.uint8).reshape(2, 3072)
    content = {b"data": data, b"labels": [3, 7], b"batch_label": b"one"}
    return [pickle.dumps(content, protocol=2), pickle.dumps({**content, b"more": Touch(MARK)}, 2)]


def search(path: Path) -> RowFile:
    return RowFile(path, search_rows(session("kkt").frame.target, SMALL))


def searches() -> list[bytes]:
    place = {"lr_x": 0.01, "relu_alpha": 50.0, "annealing": 2.0, "lam_min": 0.1,
             "weight_margin": 1.0, "sigma_x": 0.5}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        kept = search(path)
        for number, residual in enumerate((0.5, float("inf"))):
            trial = Trial(number, place, KKTConfig(m=4), residual, 1.0, 2.0)
            kept.append(row_of(trial))
        return [path.read_bytes()]


def sweeps() -> list[bytes]:
    rows = [
        {"key": f"k{k}", "status": "done", "message": "", "trial": {"n": k, "preset": "moons"},
         "result": {"recall": [0.1, 0.2], "radii": [1, 2]}, "seconds": {"all": 0.5}}
        for k in range(3)
    ]  # fmt: skip
    return ["".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()]


def cells() -> list[bytes]:
    place = {"truth": 0.5, "heldout": 0.25, "noise": 1.0}
    rows = [
        {"key": f"{k} 0 0", "of": {"attack": "kkt"}, "mix_truth": 0.0, "mix_data": 0.5 * k,
         "seed": k, "result": {**place, "start": place, "steps": 3, "trail": [[0.1, 0.2, 0.7]]}}
        for k in range(2)
    ]  # fmt: skip
    return ["".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()]


TABLE = (
    b'[table]\npreset = ["moons", "xor"]\nseed = "0-2"\nn = 10\nattack = "kkt"\n'
    b"[table.attack_config]\nm = [4, 8]\nlr_x = 0.01\n"
)
WORDS = [b"lr_x=0.01", b"m=8", b"optimizer='adam'", b"relu_alpha_start=None"]


# --- readers ------------------------------------------------------------------------------------
def usable(held: Run | Network) -> None:
    """AssertionError where what was read is not finite, or of shapes that do not fit."""
    net = held if isinstance(held, Network) else held.net
    if net is not None:
        assert bool(torch.isfinite(net.theta).all()) and net.d > 0
    if isinstance(held, Run):
        assert all(state.net.d == held.dataset.d for state in held.train_states)


def open_store(_: Path, data: bytes) -> object:
    held = store.open_bytes(data)
    usable(held)
    return held


def on_page(_: Path, data: bytes) -> object:
    """Opened on a page; what it then says of itself, and a step further."""
    page = Session(preset("alternating-line", 4))
    files.open_file(page, data)
    python_of(run_of_page(page))
    play.step(page)
    return store.dump(files.as_run(page))


def image_folder(names: tuple[str, ...], read: Callable[[Path], object]) -> object:
    def open_images(folder: Path, data: bytes) -> object:
        place = folder / names[0]
        place.write_bytes(data)
        for name in names[1:]:
            (folder / name).write_bytes(idx(np.array([3, 1], dtype=np.uint8)))
        try:
            return read(folder)
        finally:
            place.unlink()

    return open_images


def by_path(read: Callable[[Path], object]) -> Callable[[Path, bytes], object]:
    def open_path(folder: Path, data: bytes) -> object:
        path = folder / "given.txt"
        path.write_bytes(data)
        return read(path)

    return open_path


def table(path: Path) -> object:
    return [key_of(row) for row in experiments(table_of(path, []))]


def setting(_: Path, data: bytes) -> object:
    kind = by_key("kkt").config
    return config_of(kind, assignments(kind, [data.decode("utf-8", "replace")], "kkt"), "kkt")


def packed(array: np.ndarray) -> bytes:
    return gzip.compress(idx(array), mtime=0)


IMAGES = np.arange(2 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(2, 28, 28)
POINTS = preset("moons", 5)
KINDS = (
    Kind("pt", weights, open_store),
    Kind("run", runs, open_store),
    Kind("run on a page", runs, on_page),
    Kind("weights on a page", weights, on_page, ValueError),
    Kind("safetensors", lambda: [write_tensors(s) for s in states()], open_store),
    Kind("csv", lambda: [write_csv(POINTS).encode(), write_csv(preset("pie", 5)).encode()],
         lambda _, data: read_csv(data)),
    Kind("npz", lambda: [write_npz(POINTS), write_npz(preset("pie", 5))],
         lambda _, data: read_npz(data)),
    Kind("idx", lambda: [idx(IMAGES)], image_folder(MNIST, read_mnist)),
    Kind("idx.gz", lambda: [packed(IMAGES)],
         image_folder((f"{MNIST[0]}.gz", MNIST[1]), read_mnist)),
    Kind("cifar", batches, image_folder(CIFAR[:1], read_cifar)),
    Kind("rows", sweeps, by_path(lambda path: RowFile(path, ROWS).rows)),
    Kind("cells", cells, lambda _, data: rows_in(data, CELLS)),
    Kind("search", searches, by_path(lambda path: search(path).rows)),
    Kind("table", lambda: [TABLE], by_path(table), ValueError),
    Kind("setting", lambda: WORDS, setting, ValueError),
)  # fmt: skip


# --- damage -------------------------------------------------------------------------------------
STRANGE = (
    -1, 0, 5, 2**31, 2**63, 10**400, 1e308, -1e308, float("nan"), float("inf"), "", "x" * 400,
    "a\nb\x1b[2J", None, True, [], {}, [[]], {"float": "nan"}, {"tensor": "t0"}, {"tensor": "t999"},
    {"kind": "Path", "fields": {}}, {"map": {}}, [1] * 50,
)  # fmt: skip


def bent_bytes(data: bytes, random: Random) -> bytes:
    """Flips, cuts, splices, insertions, repeats, and numbers that look like lengths."""
    bent = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        at, how = random.randrange(len(bent) + 1), random.randrange(8)
        span = random.choice((1, 2, 4, 8, 64))
        if how == 0 and at < len(bent):
            bent[at] ^= 1 << random.randrange(8)
        elif how == 1:
            del bent[at:]
        elif how == 2:
            bent[at:at] = random.randbytes(span)
        elif how == 3:
            del bent[at : at + span]
        elif how == 4:
            source = random.randrange(len(bent) + 1)
            bent[at : at + span] = bent[source : source + span]
        elif how == 5:
            size = random.choice((1, 2, 4, 8))
            value = random.choice((0, 1, 255, 2**15, 2**31 - 1, 2**32 - 1, 2**63))
            bent[at : at + size] = (value % 256**size).to_bytes(
                size, random.choice(("little", "big"))
            )
        elif how == 6:
            bent[at : at + span] = bytes(span)
        else:
            bent[at:at] = bent[at : at + span] * random.choice((1, 3, 100))
    return bytes(bent)


def bent_json(value: object, random: Random) -> object:
    """One place of the value bent: another type, a strange number, gone, twice, or renamed."""
    if isinstance(value, dict) and value and random.random() < 0.97:
        inside = "fields" in value and random.random() < 0.95
        key = "fields" if inside else random.choice(list(value))
        how = random.randrange(24)
        if how == 0:
            return {k: v for k, v in value.items() if k != key}
        if how == 1:
            return {(k + "x" if k == key else k): v for k, v in value.items()}
        if how == 2:
            return {**value, key: value[random.choice(list(value))]}
        return {**value, key: bent_json(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.97:
        at, how = random.randrange(len(value)), random.randrange(16)
        if how == 0:
            return [*value[:at], *value[at + 1 :]]
        if how == 1:
            return [*value, value[at]]
        if how == 2:
            return [value[at], *value]
        return [*value[:at], bent_json(value[at], random), *value[at + 1 :]]
    if isinstance(value, int | float) and random.random() < 0.5:
        return random.choice((-value, value + 1, value * 1e6, value / 3, int(value)))
    return random.choice(STRANGE)


def bent_run(data: bytes, random: Random) -> bytes:
    """The run with its JSON or one of its tensors bent, in a sound file."""
    length = int.from_bytes(data[:8], "little")
    notes = json.loads(data[8 : 8 + length]).get("__metadata__")
    tensors = {k: v.clone() for k, v in sorted(read_tensors(data).items())}
    if notes is not None and random.random() < 0.7:
        body = bent_json(json.loads(notes["run"]), random)
        notes = {**notes, "run": json.dumps(body)}
        if random.random() < 0.05:
            notes["version"] = "99"
    else:
        tensors = bent_tensors(tensors, random)
    return steady(write_tensors(tensors, metadata=notes))


def bent_tensors(tensors: dict[str, torch.Tensor], random: Random) -> dict[str, torch.Tensor]:
    """One tensor of another shape, type, name or content."""
    name = random.choice(list(tensors))
    value = tensors[name]
    how = random.randrange(8)
    if how == 0:
        return {k: v for k, v in tensors.items() if k != name}
    if how == 1:
        return {(k + "x" if k == name else k): v for k, v in tensors.items()}
    if how == 2:
        value = value[:-1].contiguous() if value.ndim and len(value) else value[None]
    elif how == 3:
        value = value.reshape(-1) if value.ndim > 1 else value[None]
    elif how == 4:
        value = value.to(random.choice((torch.float16, torch.float32, torch.int32, torch.bool)))
    elif how == 5:
        value = value * random.choice((0, -1, 1e300, float("nan")))
    elif how == 6:
        value = tensors[random.choice(list(tensors))].clone()
    else:
        value = torch.cat([value, value]) if value.ndim else value
    return {**tensors, name: value}


def bent_archive(data: bytes, random: Random) -> bytes:
    """A sound archive with one member bent, gone, twice, packed or flagged as encrypted."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        held = {name: old.read(name) for name in old.namelist()}
        name, how = random.choice(list(held)), random.randrange(6)
        for key, content in held.items():
            place = zipfile.ZipInfo(key)  # without the time of day: a seed gives the same file
            if key != name or how > 4:
                new.writestr(place, content)
            elif how == 1:
                kinds = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
                new.writestr(place, content, random.choice(kinds))
            elif how == 2:
                new.writestr(zipfile.ZipInfo(key + "x"), content)
            elif how != 3:
                new.writestr(place, bent_bytes(content, random))
    made = bytearray(out.getvalue())
    if how == 5:
        at = made.find(b"PK\x01\x02")
        made[at + 8] |= 1  # as if it were encrypted
    return bytes(made)


def bent_lines(data: bytes, random: Random) -> bytes:
    """Lines of JSON with one of them bent."""
    lines = data.splitlines(keepends=True)
    at = random.randrange(len(lines))
    lines[at] = json.dumps(bent_json(json.loads(lines[at]), random)).encode() + b"\n"
    return b"".join(lines)


def bent(data: bytes, random: Random) -> bytes:
    """The file damaged in one of the ways that its form has."""
    if random.random() < 0.4:
        return bent_bytes(data, random)
    if data[:2] == b"PK":
        return bent_archive(data, random)
    if data[8:9] == b"{":
        return bent_run(data, random)
    if data[:1] == b"{":
        return bent_lines(data, random)
    return bent_bytes(data, random)


# --- judgement ----------------------------------------------------------------------------------
def mutants(count: int, seed: int) -> Iterator[tuple[Kind, int, bytes]]:
    """`count` damaged files, each kind in turn, with the number that names each."""
    whole = {kind.name: kind.whole() for kind in KINDS}
    for number in range(count):
        random = Random(f"{seed} {number}")
        kind = KINDS[number % len(KINDS)]
        yield kind, number, bent(random.choice(whole[kind.name]), random)


def fault_of(kind: Kind, folder: Path, data: bytes) -> str:
    """Why an input ended otherwise than well or in one sentence; "" where it did not."""
    try:
        kind.read(folder, data)
    except kind.error as error:
        text = str(error)
        if not 20 < len(text) <= MOST_WORDS or not text.isprintable() or str(folder) in text:
            return f"no sentence: {text!r}"
    except Exception as error:  # what this looks for
        return f"{type(error).__name__}: {error}"
    return ""


def faults(count: int, seed: int, folder: Path) -> Iterator[str]:
    """The inputs that ended otherwise, of `count`."""
    MARK.unlink(missing_ok=True)
    for kind, number, data in mutants(count, seed):
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        fault = fault_of(kind, folder, data)
        if fault or MARK.exists():
            yield f"{kind.name} {seed} {number}: {fault or 'code was run'}"
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    asked = int(sys.argv[1])
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        found = list(faults(asked, int(sys.argv[2]) if len(sys.argv) > 2 else 0, Path(place)))
    for line in found[:40]:
        print(line[:600])
    print(Counter(line.split(" 0 ")[0] for line in found))
    print(f"{len(found)} of {asked} mutated inputs ended otherwise than in one sentence")

"""Files made to take far more time or memory than they have bytes, and what reading each takes.

python -m tests.crafted [lying]     a line of JSON a file: name, MB at the peak, seconds, answer
"""

from __future__ import annotations

import io
import json
import os
import pickle
import resource
import struct
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors

from explorer.engine import store, training
from explorer.engine.attacks import hinge, kkt
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset, read_csv, read_npz
from explorer.engine.files import MAX_BYTES, MOST_WORDS, read_file
from explorer.engine.margin import normalise
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.page.apps.explorer import App
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.research.state import to_text

CPU_S = 60  # a stuck file is killed, and then counts as one that did not end
ROOM = MAX_BYTES - 2**16
DIRECTORY = b"PK\x01\x02"  # begins each entry of it


# --- .pt ----------------------------------------------------------------------------------------
def pt(state: object, **how: bool) -> bytes:
    out = io.BytesIO()
    torch.save(state, out, **how)
    return out.getvalue()


def layer(size: tuple[int, ...], stride: tuple[int, ...], numbers: int = 4, **more: Any) -> bytes:
    storage = torch.zeros(numbers, **more)
    return pt({"a.weight": torch.as_strided(storage, size, stride)})


def archive(content: bytes, more: dict[str, bytes] | None = None, deflate: bool = False) -> bytes:
    out = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", kind) as file:
        file.writestr("archive/data.pkl", content)
        for name, data in (more or {}).items():
            file.writestr(f"archive/{name}", data)
    return out.getvalue()


def bomb(lie: int | None = None) -> bytes:
    """A gigabyte of zeros in two members, packed; their directory may lie about the size."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("archive/data.pkl", "x.npy"):
            with file.open(name, "w") as member:
                for _ in range(32):
                    member.write(bytes(2**24))
    return out.getvalue() if lie is None else lying(out.getvalue(), lie)


def lying(data: bytes, size: int, checksum: int | None = None) -> bytes:
    """The archive whose directory says that each member has this size, and this checksum."""
    made, at = bytearray(data), data.find(DIRECTORY)
    while at >= 0:
        struct.pack_into("<I", made, at + 24, size)
        if checksum is not None:
            struct.pack_into("<I", made, at + 16, checksum)
        at = data.find(DIRECTORY, at + 1)
    return bytes(made)


def crowd(count: int) -> bytes:
    """An archive of empty members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for k in range(count):
            file.writestr(f"archive/data/{k}", b"")
    return out.getvalue()


def doubled(rounds: int) -> bytes:
    """A tuple of two of a tuple of two ...: short to write, endless to walk."""
    return b"\x80\x02)" + b"q\x00h\x00\x86" * rounds + b"."


def call(module: str, name: str, given: bytes) -> bytes:
    return b"\x80\x02c" + module.encode() + b"\n" + name.encode() + b"\n" + given + b"\x85R."


def words(text: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text


def key_bomb() -> bytes:
    """The tuple above as a name in a table."""
    return b"\x80\x02}" + doubled(60)[2:-1] + b"Ns."


def nest() -> bytes:
    """A state_dict in which lists of lists hold 2^60 items."""
    made: Any = []
    for _ in range(60):
        made = [made, made]
    return pt({"state_dict": {"a.weight": torch.ones(1, 1), "b.weight": made}})


def recursive() -> bytes:
    made: dict[str, Any] = {}
    made["state_dict"] = made
    return pickle.dumps(made, 2)


def tied() -> bytes:
    whole = torch.zeros(2**21)
    return pt({f"{k}.weight": whole.view(1024, 2048) for k in range(1000)})


def unfinished(kind: str) -> torch.Tensor:
    if kind == "sparse":
        return torch.sparse_coo_tensor(torch.zeros(2, 1).long(), torch.ones(1), (40_000, 40_000))
    if kind == "quantized":
        return torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.qint8)
    return torch.empty(40_000, 40_000, device="meta")


def old(numel: int) -> bytes:
    """A file of torch before 1.6 whose count of numbers is a lie."""
    data = pt({"a.weight": torch.ones(1, 4)}, _use_new_zipfile_serialization=False)
    return data[:-24] + struct.pack("<Q", numel) + data[-16:]


def plain(layers: int, width: int, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """A network of zeros on the line but for its first weight."""
    sizes = [1, *[width] * layers, 1]
    return {
        f"{k}.weight": torch.full((b, a), 1e-3, dtype=dtype)
        for k, (a, b) in enumerate(pairwise(sizes))
    }


# --- safetensors --------------------------------------------------------------------------------
def headed(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    size = len(header) if length is None else length
    return struct.pack("<Q", size) + header + data


def shaped(**entry: Any) -> bytes:
    return headed(json.dumps({"a.weight": entry}).encode(), bytes(64))


def filled(text: bytes, end: bytes = b"", size: int = ROOM) -> bytes:
    """A header of `size` bytes made of `text`, again and again."""
    begun = b'{"__metadata__":['
    return headed(begun + text * ((size - len(begun)) // len(text)) + end)


# --- runs ---------------------------------------------------------------------------------------
def run_of(attack: bool = True) -> Run:
    data = preset("moons", n=9, seed=4)
    config = training.TrainConfig(widths=(7, 5), steps=300, lr=0.5)
    state = training.init(data, config, torch.Generator().manual_seed(3))
    states = [state, *training.iterate(data, state, config)]
    if not attack:
        return Run(data, config, tuple(states[::100]), seed=3)
    net, _ = normalise(states[-1].net, data.x, data.y)
    hit = kkt.KKTConfig(m=6, steps=10)
    first = kkt.init(Target.of(net, 1.0), hit, torch.Generator().manual_seed(5))
    found = (first, *islice(kkt.iterate(Target.of(net, 1.0), first, hit), 2))
    return Run(data, config, tuple(states[::100]), hit, found, seed=3)


def hinged() -> Run:
    run = run_of(attack=False)
    net, _ = normalise(run.train_states[-1].net, run.dataset.x, run.dataset.y)
    target, config = Target.of(net, 1.0), hinge.HingeConfig()
    first = hinge.init(target, config, torch.Generator().manual_seed(5))
    found = (first, *islice(hinge.ATTACK.iterate(target, first, config), 4))
    return Run(
        run.dataset, run.train_config, run.train_states, config, found, 3, None, attack_name="hinge"
    )


def changed(change: Callable[[dict[str, Any], dict[str, torch.Tensor]], Any], run: Run) -> bytes:
    """The file of a run whose JSON and tensors went through `change`."""
    data = store.dump(run)
    tensors = {k: v.clone() for k, v in read_tensors(data).items()}
    length = int.from_bytes(data[:8], "little")
    notes = json.loads(data[8 : 8 + length])["__metadata__"]
    body = json.loads(notes["run"])
    made = change(body["fields"], tensors)
    body = body if made is None else made
    text = body if isinstance(body, str) else json.dumps(body)
    return write_tensors(tensors, metadata={**notes, "run": text})


def put(*path: Any, run: Callable[[], Run] = run_of) -> Callable[[], bytes]:
    """A run with the last item of `path` at the place that the others lead to."""

    def change(fields: Any, _: Any) -> None:
        *way, last, value = path
        for step in way:
            fields = fields[step]
            fields = fields["fields"] if isinstance(fields, dict) and "fields" in fields else fields
        fields[last] = value

    return lambda: changed(change, run())


def said(text: str) -> Callable[[], bytes]:
    """A run whose description is this text."""
    return lambda: changed(lambda fields, tensors: text, run_of(attack=False))


def many_states(count: int, big: int = 0) -> Callable[[], bytes]:
    """A run of many states; with `big`, all of one large tensor."""

    def change(fields: Any, tensors: dict[str, torch.Tensor]) -> None:
        first = fields["train_states"][0]
        if big:
            net = first["fields"]["net"]["fields"]
            last = tensors[net["weights"][2]["tensor"]]
            for name, shape in (("w", (big, 2)), ("b", (big,)), ("v", (5, big))):
                tensors[name] = torch.zeros(shape, dtype=torch.float64)
            tensors["all"] = torch.zeros(8 * big + 5, dtype=torch.float64)
            net["weights"][:2] = [{"tensor": "w"}, {"tensor": "v"}]
            net["biases"][0] = {"tensor": "b"}
            first["fields"] |= {"grads": {"tensor": "all"}, "velocity": {"tensor": "all"},
                                "rho": float(last.norm())}  # fmt: skip
        fields["train_states"] = [
            {**first, "fields": {**first["fields"], "t": t}} for t in range(count)
        ]

    return lambda: changed(change, run_of(attack=False))


def out_of_range(fields: Any, tensors: dict[str, torch.Tensor]) -> None:
    name = fields["attack_states"][-1]["fields"]["active"]["tensor"]
    tensors[name] = torch.full_like(tensors[name], 10**9)


def mismatched(fields: Any, tensors: dict[str, torch.Tensor]) -> None:
    name = fields["attack_states"][-1]["fields"]["grad_x"]["tensor"]
    tensors[name] = torch.zeros(3, 9, dtype=torch.float64)


def asking(*widths: int, **more: Any) -> Callable[[], bytes]:
    """A link to a run that is trained and attacked on a network of these widths."""
    run = Run(preset("moons", 10), TrainConfig(widths=widths), steps=(60, 5), stage="attack")
    return lambda: to_text(replace(run, **more)).encode()


FILES: dict[str, Callable[[], bytes]] = {
    "stride 0": lambda: layer((40_000, 40_000), (0, 0), 1),
    "stride 0 in one axis": lambda: layer((2**30, 4), (0, 1)),
    "stride 0, double": lambda: layer((40_000, 20_000), (0, 0), 1, dtype=torch.float64),
    "stride 0, half": lambda: layer((60_000, 40_000), (0, 0), 1, dtype=torch.float16),
    "overlapping rows": lambda: layer((2**20, 2**10), (1, 1), 2**21),
    "a vector of stride 0": lambda: pt({"a.bias": torch.zeros(1).expand(2**31)}),
    "a thousand names of one tensor": tied,
    "packed zeros": lambda: bomb(),
    "packed zeros, lying": lambda: bomb(1000),
    "packed zeros, lying with the right checksum": lambda: lying(bomb(), 1000, crc32(bytes(1000))),
    "packed storage": lambda: archive(b"N.", {"data/0": bytes(2**28)}, deflate=True),
    "packed room": lambda: archive(b"N.", {"data/0": bytes(ROOM)}, deflate=True),
    "members": lambda: crowd(400_000),
    "a list of numbers": lambda: archive(b"\x80\x02](" + b"K\x01" * (ROOM // 2 - 99) + b"e."),
    "instructions": lambda: archive(b"\x80\x02" + b"N" * (ROOM - 99) + b"."),
    "marks": lambda: archive(b"\x80\x02" + b"(" * (ROOM - 99) + b"."),
    "bare instructions": lambda: b"\x80\x02" + b"N" * (ROOM - 99) + b".",
    "bytearray": lambda: archive(call("__builtin__", "bytearray", b"\x8a\x05\x00\x00\x00\x00\x04")),
    "torch.Tensor": lambda: archive(
        b"\x80\x02ctorch\nTensor\n" + b"J\xa0\x86\x01\x00" * 2 + b"\x86R."),
    "a storage": lambda: archive(call("torch", "FloatStorage", b"\x8a\x05\x00\x00\x00\x00\x04")),
    "a codec": lambda: archive(
        b"\x80\x02c_codecs\nencode\n" + words(b"a" * 2**20) + words(b"hex") + b"\x86R."),
    "tuples of tuples": lambda: archive(doubled(60)),
    "a name that is endless to hash": lambda: archive(key_bomb()),
    "lists of lists": nest,
    "a table in itself": lambda: archive(recursive()),
    "a place in the memo": lambda: archive(b"\x80\x02}r\xff\xff\xff\x7f."),
    "words that are promised": lambda: archive(b"\x80\x04\x8d" + struct.pack("<Q", 2**60) + b"a."),
    "a frame that is promised": lambda: archive(b"\x80\x04\x95" + struct.pack("<Q", 2**60) + b"}."),
    "sparse": lambda: pt({"a.weight": unfinished("sparse")}),
    "quantized": lambda: pt({"a.weight": unfinished("quantized")}),
    "meta": lambda: pt({"a.weight": unfinished("meta")}),
    "old, promised": lambda: old(2**40),
    "old, endless": lambda: old(2**64 - 1),
    "a name of digits": lambda: pt({"9" * 10**6 + ".weight": torch.ones(1, 1)}),
    "names of digits": lambda: pt(
        {f"{'9' * 4000}{k}.weight": torch.ones(1, 1) for k in range(900)}),
    "layers": lambda: pt({f"{k}.weight": torch.ones(1, 1) for k in range(2000)}),
    "no rows": lambda: pt({"a.weight": torch.zeros(0, 2**50)}),
    "as wide as it may be": lambda: pt(plain(2, 2000)),
    "as wide, half": lambda: pt(plain(2, 2000, torch.float16)),
    "as wide, double": lambda: pt(plain(2, 2000, torch.float64)),
    "one broad layer": lambda: pt(plain(1, 2_000_000)),
    "too wide": lambda: pt(plain(2, 3900)),
    "open brackets": lambda: filled(b"["),
    "lists": lambda: filled(b"[],", b"0]}"),
    "lists, four MB": lambda: filled(b"[],", b"0]}", 2**22 - 99),
    "tables, four MB": lambda: filled(b"{},", b"0]}", 2**22 - 99),
    "a header that is promised": lambda: headed(b"{}", length=2**63),
    "forty thousand tensors": lambda: headed(json.dumps({
        f"{k}.weight": {"dtype": "F32", "shape": [1, 1], "data_offsets": [4 * k, 4 * k + 4]}
        for k in range(40_000)}).encode(), bytes(160_000)),
    "a shape that overflows": lambda: shaped(dtype="F32", shape=[2**62, 8], data_offsets=[0, 64]),
    "more than is there": lambda: shaped(dtype="F32", shape=[2**15, 2**15],
                                         data_offsets=[0, 2**32]),
    "another shape": lambda: shaped(dtype="F32", shape=[2**15, 2**15], data_offsets=[0, 64]),
    "eight bits": lambda: shaped(dtype="F8_E4M3", shape=[8, 8], data_offsets=[0, 64]),
    "bfloat16": lambda: write_tensors(plain(2, 2000, torch.bfloat16)),
    "run: 5": said("5"),
    "run: lists": said("[" + "[]," * 10**6 + "0]"),
    "run: depth": said("[" * 10**6),
    "run: a number of 5000 digits": said("9" * 5000),
    "run: a number of 400 digits": put("seed", 10**400),
    "run: seed -1": put("seed", -1),
    "run: widths of 400 digits": put("train_config", "widths", [10**400]),
    "run: wide": put("train_config", "widths", [2**40]),
    "run: a million layers": put("train_config", "widths", [1] * 10**6),
    "run: candidates": put("attack_config", "m", 2**40),
    "run: a preset that is none": put("dataset", "source", "preset", "nowhere"),
    "run: points of a preset": put("dataset", "source", "n", 2**40),
    "run: scale": put("train_states", 0, "log_scale", 1e308),
    "run: nan": put("train_config", "momentum", {"float": "nan"}),
    "run: states": many_states(3000),
    "run: states of one large network": many_states(1000, 2**18),
    "run: mismatched": lambda: changed(mismatched, run_of()),
    "run: candidates that are not there": lambda: changed(out_of_range, hinged()),
    "link: a million neurons": asking(10**6),
    "link: two layers of 2000": asking(2000, 2000),
    "link: a million candidates": asking(9, attack_config=kkt.KKTConfig(m=10**6)),
    "link: largest": asking(1000, 1000),
    "csv: columns": lambda: (",".join(f"x{k}" for k in range(1, 500_000)) + ",y\n").encode(),
    "csv: rows": lambda: b"x1,y\n" + b"1,1\n" * (2**21 - 9),
    "csv: quotes": lambda: b'x1,y\n"' + b"1" * (2**23 - 99),
    "npz: packed zeros": lambda: archive(b"", {"x.npy": bytes(2**28)}, deflate=True),
    "npz: packed zeros, lying": lambda: bomb(1000),
    "npz: members": lambda: crowd(60_000),
}  # fmt: skip


def opened(name: str, path: Path) -> str:
    """What a page answers to the file: a sentence, or "taken"."""
    data = read_file(path)
    try:
        if name.startswith("link"):
            App().header.open_link(data.decode(), beside=False)
        elif name.startswith(("csv", "npz")):
            (read_csv if name.startswith("csv") else read_npz)(data)
        else:
            files.open_file(Session(preset("alternating-line", 6)), data)
    except ValueError as error:
        return str(error)
    return "taken"


def forked(work: Callable[[], str]) -> tuple[str, float, float]:
    """What `work` says, in a process of its own; its peak in MB, and its seconds of a processor."""
    ends = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        try:
            text = work()
        except BaseException as error:  # what no reader may raise
            text = f"RAISED {type(error).__name__}: {error}"
        os.write(ends[1], text.encode()[:4000])
        os._exit(0)
    os.close(ends[1])
    with os.fdopen(ends[0], "rb") as pipe:
        answer = pipe.read().decode()
    _, _, used = os.wait4(child, 0)
    kilo = 2**20 if sys.platform == "darwin" else 2**10
    return answer or "RAISED nothing was said", used.ru_maxrss / kilo, used.ru_utime + used.ru_stime


def measured(folder: Path, some: str = "") -> list[dict[str, Any]]:
    """One row a file named so: name, bytes, peak in MB, seconds of a processor, answer."""
    rows = []
    for name, make in ((name, make) for name, make in FILES.items() if some in name):
        path = folder / "given"
        made, _, _ = forked(lambda: f"{path.write_bytes(make())}")  # noqa: B023 - run at once
        if made.startswith("RAISED"):
            raise RuntimeError(f"{name} was not made: {made}")
        answer, peak, seconds = forked(lambda: opened(name, path))  # noqa: B023
        size = path.stat().st_size
        rows.append({"name": name, "bytes": size, "peak_mb": round(peak), "s": round(seconds, 2),
                     "answer": answer})  # fmt: skip
    return rows


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of torch, about the tensors made here
    with tempfile.TemporaryDirectory() as place:
        for row in measured(Path(place), *sys.argv[1:]):
            odd = len(row["answer"]) > MOST_WORDS or not row["answer"].isprintable()
            print(json.dumps({**row, "odd": odd or row["answer"].startswith("RAISED")}), flush=True)

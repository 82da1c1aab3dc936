"""A device that is not there, or whose memory is used up, is said in one sentence."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from explorer.commands.options import Device
from explorer.engine.attacks import kkt
from explorer.engine.attacks.descent import step_table
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.attacks.kkt.blocks import Replay, start_bytes
from explorer.engine.attacks.target import Target
from explorer.engine.data import preset
from explorer.engine.network import init_network
from explorer.engine.roster import ROSTER
from explorer.engine.settings import setting_of
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.research import devices, runs
from explorer.research.sweep.experiment import Experiment
from tests.engine.draws import rng


def target(d: int = 2, widths: tuple[int, ...] = (20,)) -> Target:
    return Target(init_network(d, widths, generator=rng(0), first_scale=d**-0.5))


def test_the_command_line_offers_the_devices_of_a_row() -> None:
    declared = setting_of(Experiment, "device")
    assert [value for _, value in declared.choices] == [one.value for one in Device]


@pytest.mark.parametrize("name", ["cuda", "cuda:3", "mps"])
def test_a_device_that_is_not_there_is_named_with_those_that_are(name, monkeypatch):
    monkeypatch.setattr(devices, "devices", lambda: ["cpu"])
    with pytest.raises(devices.DeviceError, match=r"got .*, expected cpu\. Take --device cpu"):
        runs.train(Run(preset("moons", 6), TrainConfig(steps=2)), device=name)
    with pytest.raises(devices.DeviceError, match=name):
        runs.attack(target(), KKTConfig(m=4, steps=2), 0, device=name)


def test_a_number_beyond_the_last_is_refused(monkeypatch):
    monkeypatch.setattr(devices, "devices", lambda: ["cpu", "cuda"])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    devices.check_device("cuda:1")
    with pytest.raises(devices.DeviceError, match="cuda:2, expected a number below 2"):
        devices.check_device("cuda:2")


def test_mps_has_no_double_precision(monkeypatch):
    monkeypatch.setattr(devices, "devices", lambda: ["cpu", "mps"])
    devices.check_device("mps", torch.float32)
    with pytest.raises(devices.DeviceError, match="Take --dtype float32"):
        devices.check_device("mps", torch.float64)


FULL = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
    RuntimeError("MPS backend out of memory"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
    MemoryError(),
]


def failing(error: Exception):
    def step(*_: object) -> None:
        raise error

    return step


@pytest.mark.parametrize("error", FULL, ids=["cuda", "mps", "cpu", "python"])
def test_a_full_memory_names_the_number_of_candidates_that_fits(error, monkeypatch):
    config, aimed = KKTConfig(m=1000, steps=5), target(30, (200,))
    monkeypatch.setattr(devices, "free_bytes", lambda _: 10_000_000)
    full = replace(ROSTER["kkt"], first=failing(error))
    with pytest.raises(devices.DeviceError) as caught:
        runs.attack(aimed, config, 0, name=full)
    words = str(caught.value)
    fits = int(words.split("where about ")[1].split(" fit")[0].replace(",", ""))
    need = [start_bytes(aimed.net, m, torch.float64, True) for m in (fits, fits + 1)]
    assert need[0] <= 10_000_000 < need[1] and 10 < fits < 1000
    assert "1,000 candidates" in words and "10 MB" in words and "fewer" in words
    with pytest.raises(ValueError, match="not that"):
        runs.attack(aimed, config, 0, name=replace(full, first=failing(ValueError("not that"))))
    with pytest.raises(RuntimeError, match="a bug") as bug:
        runs.attack(aimed, config, 0, name=replace(full, first=failing(RuntimeError("a bug"))))
    assert not isinstance(bug.value, devices.DeviceError)


def test_a_full_memory_in_training_names_the_points(monkeypatch):
    monkeypatch.setattr(devices, "free_bytes", lambda _: None)
    monkeypatch.setattr(runs.training, "advance", failing(FULL[0]))
    with pytest.raises(devices.DeviceError, match=r"8 points take about .*Take fewer points"):
        runs.train(Run(preset("moons", 8), TrainConfig(steps=2)))


def test_the_largest_that_fits():
    assert devices.largest(lambda m: m * m, 50, 100) == 7
    assert devices.largest(lambda m: m * m, 0, 100) == 0
    assert devices.largest(lambda m: m, 1000, 100) == 99  # less than what did not fit


class Live(TorchDispatchMode):
    """The most bytes that tensors made under it hold at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self.held: dict[int, int] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for made in tree_flatten(out)[0]:
            storage = made.untyped_storage() if isinstance(made, torch.Tensor) else None
            if storage is not None and id(storage) not in self.held:
                self.held[id(storage)] = storage.nbytes()
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self.drop, id(storage))
        return out

    def drop(self, key: int) -> None:
        self.now -= self.held.pop(key, 0)


SIZES = [(2, (300,), 40), (60, (100,), 20), (2, (30,), 100), (30, (60, 60), 40), (30, (60, 60), 90)]


@pytest.mark.parametrize(
    ("d", "widths", "m", "multipliers", "dtype"),
    [
        *((*size, "joint", torch.float32) for size in SIZES),
        *((*size, "projected", torch.float64) for size in SIZES),
        (*SIZES[0], "joint", torch.float64),
        (*SIZES[3], "projected", torch.float32),
    ],
)
def test_the_memory_of_a_start_is_what_a_step_takes(d, widths, m, multipliers, dtype):
    config, starts = KKTConfig(m=m, steps=9, multipliers=multipliers, merge_angle=0.0), 4
    aimed = Target(target(d, widths).net.to(dtype=dtype))
    first = kkt.init(aimed, config, [rng(s) for s in range(starts)])
    run = Replay(aimed, first, config, portable=True)
    gc.collect()
    with torch.no_grad(), Live() as live:
        run.descend(run.held, step_table(config, 0, 0, 2, run.steep))
    stated = start_bytes(aimed.net, m, dtype, multipliers == "projected")
    held = sum(v.numel() * v.element_size() for v in run.held.all)
    assert (live.most + held) / starts <= stated <= 2.5 * (live.most + held) / starts

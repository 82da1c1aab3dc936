"""Where it runs: which devices there are, and what is said where one is missing or too small.

All that is trained and attacked goes through `on_device`, which alone knows an error for memory.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch

from explorer.engine.progress import Progress, part_progress, with_progress
from explorer.engine.roster import AnyAttack, AnyConfig, AnyTarget
from explorer.engine.tables import map_arrays

OUT = ("out of memory", "can't allocate memory")  # how torch's errors say it that have no class


class DeviceError(ValueError):
    """A device that is not there, or that has too little memory; the message says what to do."""


class MemoryFull(DeviceError):
    """The memory of a device is used up; the message says how much would fit."""


KINDS = ("cpu", "cuda", "mps")


def devices() -> list[str]:
    """Return the kinds of devices that torch sees here, the CPU first."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return ["cpu", *(name for name, seen in there.items() if seen)]


def check_device(device: str, dtype: torch.dtype | None = None) -> None:
    """Raise DeviceError where torch does not see this device, or it lacks the floating type.

    Args:
        device: such as cpu, cuda or cuda:1.
        dtype: what is to be computed in; None: whatever the device has.
    """
    kind, _, number = device.partition(":")
    there = devices()
    if kind not in {*KINDS, *there} or (number and not number.isdigit()):
        raise DeviceError(f"no device {device!r}; expected {', '.join(KINDS)} or such as cuda:1")
    if kind not in there:
        raise DeviceError(
            f"torch {torch.__version__} sees no {kind} here; got the device {device}, expected "
            f"{' or '.join(there)}. Take --device cpu, or install torch's build for {kind}."
        )
    count = torch.cuda.device_count() if kind == "cuda" else 1
    if kind == "cuda" and number and int(number) >= count:
        raise DeviceError(
            f"this machine has {count} of cuda; got the device {device}, expected a number below "
            f"{count}. Take --device cuda."
        )
    if kind == "mps" and dtype == torch.float64:
        raise DeviceError("mps has no float64; got it, expected float32. Take --dtype float32.")


def wide_on(device: str) -> torch.dtype:
    """Return the widest floating type of a device."""
    return torch.float32 if device == "mps" else torch.float64  # mps has no other


def free_bytes(device: str) -> int | None:
    """Return how much memory of a device is free, in bytes; None where nobody says."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    if device == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # not on every system
        return None


@dataclass(frozen=True)
class Load:
    """What fills the memory.

    Attributes:
        unit: what there may be fewer of, such as "candidates".
        count: how many of them there are.
        need: the bytes that so many take, about, which grow with their number.
    """

    unit: str
    count: int
    need: Callable[[int], int]


def training_load(n: int, d: int, widths: tuple[int, ...], dtype: torch.dtype) -> Load:
    """Return what a training on n points of d coordinates takes."""
    sizes = (d + 1, *widths, 1)
    weights = sum(a * b for a, b in pairwise(sizes))
    return Load("points", n, lambda n: dtype.itemsize * 6 * (n * sum(sizes) + weights))


def attack_load(
    entry: AnyAttack, target: AnyTarget, config: AnyConfig, m: int, dtype: torch.dtype | None
) -> Load | None:
    """Return what an attack with m candidates takes; None where nobody knows."""
    many = entry.many
    if many is None or not m:
        return None
    return Load("candidates", m, lambda m: many.memory(target, config, m, dtype))


def starts_load(
    entry: AnyAttack, target: AnyTarget, config: AnyConfig, starts: int, dtype: torch.dtype | None
) -> Load | None:
    """Return what so many starts at once take; None where nobody knows."""
    one = attack_load(entry, target, config, entry.candidate_count(config), dtype)
    return one and Load("starts", starts, lambda count: count * one.need(one.count))


def to_cpu(held: Any) -> Any:  # noqa: ANN401 - states and what they hold
    """Return it on the CPU, in float64 if it is of floating type."""

    def move(array: Any) -> Any:  # noqa: ANN401 - a tensor, or an array of numpy
        if not torch.is_tensor(array):
            return array
        return array.to("cpu", torch.float64 if array.is_floating_point() else array.dtype)

    return map_arrays(move, held, into=object)


def target_on(
    target: AnyTarget, entry: AnyAttack, device: str, dtype: torch.dtype | None = None
) -> AnyTarget:
    """Return the target on `device` where the attack follows its weights (`Needs.anywhere`)."""
    if not entry.needs.anywhere or (device == "cpu" and dtype is None):
        return target
    return replace(target, net=target.net.to(device=device, dtype=dtype or wide_on(device)))


@contextmanager
def on_device(device: str, dtype: torch.dtype | None, load: Load | None) -> Iterator[None]:
    """Run the body on a device. Where its memory is used up, say how much would fit.

    Args:
        device: where.
        dtype: floating type, where one is chosen.
        load: what fills the memory, where that is known.

    Raises:
        DeviceError: where the device is not there.
        MemoryFull: where its memory is used up.
    """
    check_device(device, dtype)
    try:
        yield
    except (RuntimeError, MemoryError) as error:  # torch's own is a RuntimeError
        known = isinstance(error, torch.OutOfMemoryError | MemoryError)
        if not known and not any(words in str(error).lower() for words in OUT):
            raise
        raise MemoryFull(_too_large(device, load)) from error


def _too_large(device: str, load: Load | None) -> str:
    """Return the sentence on a memory that is used up."""
    told, free = f"the memory of {device} is used up", free_bytes(device)
    if load is not None:
        told += f": {load.count:,} {load.unit} take about {_size(load.need(load.count))}"
        if free is not None:
            most = largest(load.need, free, load.count)
            fits = f"about {most:,} fit" if most else "not one fits"
            told += f", and {_size(free)} are free, where {fits}"
    fewer = "" if load is None else f"fewer {load.unit}, "
    return f"{told}. Take {fewer}narrower layers, float32 or another device."


def most_that_fit(load: Load | None, device: str, count: int) -> int:
    """Return how many of a load the free memory of a device takes, from 1 to `count`."""
    free = free_bytes(device)
    if load is None or free is None:
        return count
    return max(1, largest(load.need, free, count + 1))


def largest(need: Callable[[int], int], free: int, count: int) -> int:
    """Return the largest number below `count` whose need is at most `free`; 0 where none is."""
    return max(0, bisect_right(range(count), free, key=need) - 1)


def _size(count: float) -> str:
    """Return bytes in words."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} GB"


def at_once(entry: AnyAttack, device: str) -> bool:
    """Return whether starts descend as one program: on a device, by attacks that have one.

    On the CPU they go one after another, where compiled loops are quickest.
    """
    return entry.many is not None and torch.device(device).type != "cpu"


def last_states(
    target: AnyTarget, entry: AnyAttack, config: AnyConfig, seeds: Sequence[int], device: str,
    dtype: torch.dtype | None, stride: int, progress: Progress,
) -> Iterator[Any]:  # fmt: skip
    """Yield the last state of each start; they go in turn, or `at_once`.

    What was sent to a device is on the CPU again.

    Args:
        target: the weights, of the attack's kind.
        entry: the attack.
        config: its settings.
        seeds: of the starts.
        device: where to run.
        dtype: floating type, where one is chosen.
        stride: steps between two states that `progress` hears of.
        progress: hears what share is done, and may end the work.

    Raises:
        DeviceError: where the device is not there.
        MemoryFull: where its memory is used up.
    """
    together = entry.many if at_once(entry, device) else None
    load = starts_load(entry, target, config, len(seeds) if together else 1, dtype)
    count = math.ceil(entry.step_count(config, 1) / stride)
    with on_device(device, dtype, load):
        aimed = target_on(target, entry, device, dtype)
        drawn = [torch.Generator().manual_seed(seed) for seed in seeds]
        groups: list[Any] = [drawn] if together else drawn
        for k, generators in enumerate(groups):
            here = part_progress(progress, k / len(groups), (k + 1) / len(groups))
            state = entry.init(aimed, config, generators)
            states = entry.iterate(aimed, state, config, stride)
            for following in with_progress(states, count, here):
                state = following
            ends = together.apart(state) if together else [state]
            sent = device != "cpu" or dtype is not None
            yield from map(to_cpu, ends) if sent else ends

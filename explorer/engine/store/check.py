"""Whether the parts of a saved run fit each other: a file may say anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from explorer.engine.attacks.attack import STATE_SIZES, AttackState
from explorer.engine.classes import check_labels
from explorer.engine.data import Dataset, preset
from explorer.engine.data.presets import MAX_POINTS
from explorer.engine.files import safe_name
from explorer.engine.optim import Moments
from explorer.engine.roster import by_key
from explorer.engine.settings import MOST_INT
from explorer.engine.sizes import Like, Size, declarations
from explorer.engine.store.weights import MOST_NUMBERS, MOST_TENSORS
from explorer.engine.training import TrainState

if TYPE_CHECKING:
    from explorer.engine.store import Run

MOST_SCALE = 1e6  # arbitrary: it grows as the logarithm of a logarithm of time
MOST_STEPS = 10_000_000  # as many as a page plans
MOST_STATES = 1000  # arbitrary: pages and commands keep at most 400


def check_run(run: Run) -> None:
    """Raise ValueError where parts of `run` do not fit each other, or are out of range."""
    for seed in (run.seed, run.attack_seed or 0, run.next_seed or 0):
        if not 0 <= seed <= MOST_INT:
            raise ValueError(f"the seed must be from 0 to 2^63 - 1; got {seed}")
    for steps in (*run.steps, run.finish or 0):
        if not 0 <= steps <= MOST_STEPS:
            raise ValueError(f"a run has from 0 to {MOST_STEPS} steps; got {steps}")
    if run.mix is not None and not all(0 <= share <= 1 for share in run.mix):
        raise ValueError(f"the shares of mix must be from 0 to 1; got {run.mix}")
    _check_points(run.dataset)
    for config in (run.train_config, run.next_config or run.train_config):
        _check_room(config.widths, run.dataset)
    kept: tuple[tuple[TrainState | AttackState, ...], ...] = (run.train_states, run.attack_states)
    for states in kept:
        if len(states) > MOST_STATES:
            raise ValueError(f"{len(states)} states; at most {MOST_STATES} are read")
        if any(state.t < 0 for state in states) or any(a.t >= b.t for a, b in pairwise(states)):
            raise ValueError("the states must follow one another in t, from 0")
    known = _Known()
    for state in run.train_states:
        _check_training(state, run.dataset, known)
    _check_attack(run, known)


def _check_points(data: Dataset) -> None:
    """Check that the points are not too many, and of the source that they name."""
    if data.n > MAX_POINTS:
        raise ValueError(f"{data.n} points; at most {MAX_POINTS} are supported")
    source = data.source
    if source is None:
        return
    if source.seed < 0 or not (math.isfinite(source.noise) and source.noise >= 0):
        raise ValueError(f"seed and noise of the points must not be negative; got {source}")
    drawn = preset(source.preset, source.n, source.noise, source.seed)
    if drawn.x.shape != data.x.shape or drawn.outputs != data.outputs:
        raise ValueError(
            f"{source.preset} gives {tuple(drawn.x.shape)} points of other classes or another "
            f"number than the {tuple(data.x.shape)} of the file"
        )


def _check_room(widths: tuple[int, ...], data: Dataset) -> None:
    """Check that a network of these widths is one that a file could hold."""
    sizes = [data.d, *widths, data.outputs]
    if 2 * len(sizes) > MOST_TENSORS or sum(a * b for a, b in pairwise(sizes)) > MOST_NUMBERS:
        raise ValueError(
            f"widths {safe_name(widths)} make more than {MOST_NUMBERS} weights or too many layers"
        )


class _Known:
    """What was asked of a tensor, once: a thousand states may share one."""

    def __init__(self) -> None:
        self._finite: dict[int, bool] = {}
        self._squares: dict[int, float] = {}

    def finite(self, *tensors: Tensor) -> bool:
        """Return whether all numbers of all are finite."""
        for tensor in tensors:
            if id(tensor) not in self._finite:
                self._finite[id(tensor)] = bool(torch.isfinite(tensor).all())
        return all(self._finite[id(tensor)] for tensor in tensors)

    def square(self, tensor: Tensor) -> float:
        """Return the squared norm."""
        if id(tensor) not in self._squares:
            self._squares[id(tensor)] = float(tensor.double().square().sum())
        return self._squares[id(tensor)]


def _check_training(state: TrainState, data: Dataset, known: _Known) -> None:
    net = state.net
    if net.d != data.d:
        raise ValueError(f"the network of step {state.t} takes {net.d} coordinates, not {data.d}")
    check_labels(data.y, net.outputs)
    _check_kind(state, net.dtype)
    count = sum(p.numel() for p in net.parameters)
    finite = _check_sizes(state, declarations(type(state)), {"n": data.n, "d": data.d, "P": count})
    first = (net.unit**2 - 1) * known.square(net.weights[0])  # the norm is that of `in_unit`
    norm = math.sqrt(abs(sum(map(known.square, net.parameters)) + first))
    if not math.isfinite(norm):
        raise ValueError(f"the weights of step {state.t} are not finite; the file is damaged")
    # 0.1%: far more than the rounding of single precision.
    if not abs(norm - state.rho) <= 1e-3 * norm:
        raise ValueError(f"the weights of step {state.t} have the norm {norm:g}, not {state.rho:g}")
    sound = abs(state.log_scale) <= MOST_SCALE and math.isfinite(state.kappa)
    if not (sound and known.finite(*finite)):
        raise ValueError(f"numbers of step {state.t} are not finite; the file is damaged")
    if state.batch_seed < 0:
        raise ValueError(f"the seed of step {state.t} must be 0 or more; got {state.batch_seed}")


def _check_attack(run: Run, known: _Known) -> None:
    config, data = run.attack_config, run.dataset
    entry = by_key(run.attack_name)
    if config is None and run.attack_states:
        raise ValueError("states of an attack without its settings")
    if config is not None and type(config) is not entry.config:
        raise ValueError(f"{type(config).__name__} are no settings of {run.attack_name}")
    if config is not None and entry.numbers(config, data.d) > MOST_NUMBERS:
        raise ValueError(f"the settings of the attack make more than {MOST_NUMBERS} numbers")
    for state in run.attack_states:
        if type(state) is not entry.state:
            raise ValueError(f"a {type(state).__name__} is no state of {run.attack_name}")
        if not known.finite(*check_state(state, data.d)):
            raise ValueError(f"candidates of step {state.t} are not finite; the file is damaged")


def check_state(state: AttackState, d: int) -> list[Tensor]:
    """Raise ValueError where tensors of an attack's state are not as its class declares them.

    d: coordinates of the points. -> the tensors that must be finite, which is not asked here.
    """
    _check_kind(state, state.x.dtype)
    return _check_sizes(state, {**STATE_SIZES, **declarations(type(state))}, {"d": d})


def _check_sizes(
    state: Any, declared: Mapping[str, Size | Like], known: dict[str, int]  # noqa: ANN401
) -> list[Tensor]:  # fmt: skip
    """Check that tensors have the sizes declared; new axes enter `known`.

    -> those to be finite.
    """
    finite: list[Tensor] = []
    counts: list[tuple[str, Tensor, str]] = []
    for f in fields(state):
        value, wanted = getattr(state, f.name), declared.get(f.name)
        if isinstance(value, Moments):
            _check_moments(value, state, wanted)
        elif is_dataclass(value) and not isinstance(value, type):
            finite += _check_sizes(value, declarations(type(value)), known)
        elif isinstance(value, Tensor):
            size = wanted if isinstance(wanted, Size) else Size(f"length_of_{f.name}")
            _check_size(f.name, value, size, known)
            finite += [value] * size.finite
            counts += [(f.name, value, size.below)] * bool(size.below)
    for name, value, axis in counts:
        if not bool(((value >= 0) & (value < known.get(axis, 0))).all()):
            raise ValueError(f"{name} must be from 0 and below the {known.get(axis, 0)} of {axis}")
    return finite


def _check_size(name: str, value: Tensor, size: Size, known: dict[str, int]) -> None:
    if size.empty and not value.numel():
        return
    axes, shape = size.axes.split(), tuple(value.shape)
    fits = len(axes) == len(shape) and all(
        known.setdefault(axis, length) == length for axis, length in zip(axes, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join(str(known.get(axis, axis)) for axis in axes)
        raise ValueError(f"{name} must be ({wanted}); got {shape}")


def _check_moments(moments: Moments, state: Any, like: object) -> None:  # noqa: ANN401
    """Check that running means have the shapes of the fields that they are declared like."""
    moved = [getattr(state, n) for n in like.names] if isinstance(like, Like) else moments.mean
    shapes = [tuple(part.shape) for part in moved]
    if moments.t < 0 or any(bool((part < 0).any()) for part in moments.square):
        raise ValueError("moments must be of a count and of squares from 0")
    for held in (moments.mean, moments.square):
        if [tuple(part.shape) for part in held] != shapes:
            raise ValueError(f"moments must be of {shapes}; got {[tuple(p.shape) for p in held]}")


def _check_kind(
    held: Any, dtype: torch.dtype, name: str = "", size: object = None,  # noqa: ANN401
) -> None:  # fmt: skip
    """Check that tensors of a state have one floating type, but for those declared of another."""
    if isinstance(held, Tensor):
        wanted = (size.dtype if isinstance(size, Size) else None) or dtype
        if dtype not in (torch.float32, torch.float64) or held.dtype != wanted:
            raise ValueError(
                f"{name} must be of {wanted}, and floating ones of 32 or 64 bits; got {held.dtype}"
            )
    elif isinstance(held, tuple):
        for part in held:
            _check_kind(part, dtype, name)
    elif is_dataclass(held) and not isinstance(held, type):
        declared = declarations(type(held))
        for f in fields(held):
            _check_kind(getattr(held, f.name), dtype, f.name, declared.get(f.name))

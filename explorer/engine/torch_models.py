"""A trained model of PyTorch as a `Network`: its forward is followed step by step, never guessed.

The forward runs once on a few points, and each step that these go through is written down. Linear
layers with ReLU between them are understood, however they are written: as modules, as functions, as
products with parameters. Between two ReLUs all that is affine becomes one layer: batch
normalisation as it is in use, a scaling, a Linear layer after another. What shifts and divides each
coordinate before the first layer, such as a standardiser, is an `InputFrame`. What does nothing
when a model is used (Dropout, Flatten) is left out, and so is a sigmoid or softmax at the end:
margins are those of what goes into it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.engine.network import Network, phi_all
from explorer.engine.store.weights import HOLDERS, from_state_dict

KNOWN = "Margin Explorer knows fully connected networks: Linear layers with ReLU between them."
SAME = 1e-4  # arbitrary: relative difference of model and network that rounding may make
POINTS = 7  # on which a forward is followed; arbitrary, and seldom a width
TRIES = 12  # widths that a model may take as coordinates; arbitrary, and seldom more than two
SCALED, NORMALISED = "a scaling between layers", "batch normalisation"
JOINED, MADE = "Linear layers without ReLU between them", "weights that are made of other numbers"
_LINEAR = ("addmm", "mm", "mv")
_NORMS = (
    "native_batch_norm", "_native_batch_norm_legit_no_training", "_native_batch_norm_legit",
    "cudnn_batch_norm", "miopen_batch_norm", "_batch_norm_no_update",
)  # fmt: skip
_EACH = ("add", "sub", "rsub", "mul", "div", "neg")  # a number for each coordinate
_LAST = ("sigmoid", "_softmax", "_log_softmax", "log_sigmoid_forward")
_NOTHING = (
    "view", "_unsafe_view", "reshape", "_reshape_alias", "squeeze", "unsqueeze", "flatten", "clone",
    "detach", "alias", "_to_copy", "contiguous", "slice", "select", "lift_fresh", "lift_fresh_copy",
)  # fmt: skip
_TURNED = ("t", "transpose", "permute", "numpy_T", *_NOTHING)  # of a matrix of weights
_SHAPES = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")


class ModelError(ValueError):
    """A model that is not a fully connected ReLU network; the message says where it differs.

    Example:
        >>> from torch import nn
        >>> from explorer import network_of
        >>> network_of(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)))
        Traceback (most recent call last):
            ...
        explorer.engine.torch_models.ModelError: the model has the step tanh. ...
    """


class InputFrame(NamedTuple):
    """The network behind what a model does first: (x - centre) / scale, of each coordinate."""

    centre: Tensor
    scale: Tensor
    net: Network


@dataclass(frozen=True, eq=False)
class Reading:
    """What was read from a model.

    Attributes:
        net: the network that it computes, in units of its input.
        frame: the coordinates that it makes of its input; None: those as they are.
        folded: what became part of the weights, though training moved other numbers.
    """

    net: Network
    frame: InputFrame | None = None
    folded: tuple[str, ...] = ()


def network_of(model: nn.Module | Mapping[str, Any] | Network) -> Network:
    """Return the network that a trained model computes.

    Args:
        model: a module of Linear layers with ReLU between them, its state_dict, a checkpoint that
            holds one, or a network. A state_dict names no activation: ReLU is then assumed, and
            `assumed_relu` says so.

    Returns:
        The network, in the floating type of the model, but of 32 bits or more. Where the model
        scales its input, in float64.

    Raises:
        ModelError: for another activation, another kind of layer, or a forward that cannot be
            followed.
        StoreError: for a state_dict of other layers than linear ones.

    Example:
        >>> from torch import nn
        >>> from explorer import network_of
        >>> network_of(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1, bias=False)))
        Network(2-8-1, order 2, 1 output, float32)
    """
    return read_model(model).net


def read_model(
    model: nn.Module | Mapping[str, Any] | Network, points: Tensor | None = None
) -> Reading:
    """Return what a model computes: see `network_of`.

    Args:
        model: as there.
        points: (n, ...) as the model takes them; on them the network must say what the model says.
            Without them, or where they do not fit, widths of its layers are tried.
    """
    if isinstance(model, Network):
        return Reading(model)
    if isinstance(model, Mapping):
        return Reading(from_state_dict(_state_of(model)))
    if not isinstance(model, nn.Module):
        raise ModelError(
            "expected a module of PyTorch, its state_dict or a Network; "
            f"got {type(model).__name__}. The command line reads files: margin-explorer audit."
        )
    inner = getattr(model, "_orig_mod", model)  # of torch.compile
    if isinstance(inner, nn.DataParallel | nn.parallel.DistributedDataParallel):
        inner = inner.module
    with _in_use(inner), torch.no_grad():
        given, steps, out = _trace(inner, points)
        found = _Layers(given.dtype).read(steps, given, out)
        if points is not None and points.shape[1:].numel() == found.net.d:
            given = _as_taken(inner, points)
        _check(inner, found.net, given)
    return found


def _state_of(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the state_dict in a checkpoint, its arrays as tensors."""
    for holder in HOLDERS:
        held = given.get(holder)
        given = held if isinstance(held, Mapping) else given
    return {
        key: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for key, value in given.items()
    }


@contextmanager
def _in_use(model: nn.Module) -> Iterator[None]:
    """Yield the model as it is used, each of its modules afterwards as it was."""
    before = [(m, m.training) for m in model.modules() if hasattr(m, "training")]
    for module, _ in before:
        module.training = False
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


def _as_taken(model: nn.Module, points: Tensor) -> Tensor:
    """Return points in the floating type and on the device of a model."""
    held = (value for value in model.parameters() if value.is_floating_point())
    like = next(held, torch.empty(0, dtype=torch.get_default_dtype()))
    return points.detach().to(like).clone()


class ModuleStep(NamedTuple):
    """A step of a forward; `args` are held with `None` where points go in."""

    name: str
    taken: tuple[Tensor, ...]  # what of the points went in
    args: tuple[Any, ...]
    more: dict[str, Any]
    shape: torch.Size  # of what went in first
    out: Tensor
    made: bool  # whether its weights were made of other numbers


class _Record:
    """What happened to the points."""

    def __init__(self, given: Tensor) -> None:
        super().__init__()
        self.steps: list[ModuleStep] = []
        self._moving = {id(given): given}
        self._made: dict[int, Tensor] = {}  # weights made of other numbers
        self._kept: list[Any] = []  # so that no id is given twice

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        """Run a step; write it down if points go through it."""
        more = kwargs or {}
        name = func.overloadpacket.__name__.removesuffix("_")
        tensors = [a for a in chain(args, more.values()) if isinstance(a, Tensor)]
        tensors += [b for a in args if isinstance(a, list | tuple) for b in a if torch.is_tensor(b)]
        taken = tuple(a for a in tensors if id(a) in self._moving)
        shape = taken[0].shape if taken else torch.Size()
        made = any(id(a) in self._made for a in tensors)
        if taken and name in ("_local_scalar_dense", "is_nonzero", "equal"):
            raise ModelError("it decides by the points that it sees")
        out = func(*args, **more)
        self._kept.append((args, out))
        first = out[0] if isinstance(out, tuple | list) else out
        if not isinstance(first, Tensor) or name in _SHAPES:
            return out
        if taken:
            held = tuple(None if id(a) in self._moving else a for a in args)
            self._moving[id(first)] = first
            self.steps.append(ModuleStep(name, taken, held, dict(more), shape, first, made))
        elif made or (tensors and name not in _TURNED):
            self._made[id(first)] = first
        return out


class _Recorder(_Record, TorchDispatchMode):
    """Writes it down while it is entered.

    Its method is inherited: torch wraps one of the class itself, for which it loads its compiler.
    """


def _trace(model: nn.Module, points: Tensor | None) -> tuple[Tensor, list[ModuleStep], Tensor]:
    """Return a few points, the steps of the forward on them, and what it returns."""
    widths = list(dict.fromkeys(_widths(model)))[:TRIES]
    tries: list[tuple[int, ...]] = [] if points is None else [tuple(points.shape[1:])]
    tries.extend((d,) for d in widths)
    first: Exception | None = None
    for shape in tries:
        flat = torch.arange(POINTS * math.prod(shape), dtype=torch.float64).sin()
        given = _as_taken(model, flat.reshape(POINTS, *shape))
        recorder = _Recorder(given)
        try:
            with recorder:
                out = model(given)
        except Exception as error:  # whatever the forward raises
            first = first or error
            continue
        return given, recorder.steps, _only(out)
    said = "" if first is None else f": {str(first).strip().splitlines()[0][:160].rstrip('.')}"
    raise ModelError(
        f"the forward of {type(model).__name__} cannot be followed{said}. Pass its layers as "
        f"nn.Sequential, or its state_dict. {KNOWN}"
    ) from first


def _widths(model: nn.Module) -> Iterator[int]:
    """Yield what a model may take as coordinates: widths of Linear layers, then of parameters."""
    for module in model.modules():
        width = getattr(module, "in_features", getattr(module, "num_features", None))
        if isinstance(width, int):
            yield width
    for value in chain(model.parameters(), model.buffers()):
        yield from (size for size in reversed(value.shape) if value.ndim in (1, 2))


def _only(out: Any) -> Tensor:  # noqa: ANN401 - what a forward returns
    """Return the only tensor of what a forward returns."""
    held = [out]
    if isinstance(out, Mapping | tuple | list):
        held = list(out.values() if isinstance(out, Mapping) else out)
    if len(held) != 1 or not isinstance(held[0], Tensor):
        raise ModelError(
            f"the model returns {len(held)} things. Wrap it in a module that returns the outputs "
            "alone."
        )
    return held[0]


class _Layers:
    """The steps of a forward as layers, one after another."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = torch.promote_types(dtype, torch.float32)
        self._layers: list[tuple[Tensor, Tensor | None]] = []
        self._a: Tensor | None = None  # since the last ReLU: h -> a h + c, a diagonal if (k,)
        self._c: Tensor | None = None
        self._linear = self._ended = False  # whether a Linear layer came since, and the end
        self._frame: tuple[Tensor | None, Tensor | None] = (None, None)
        self._folded: list[str] = []

    def read(self, steps: list[ModuleStep], given: Tensor, out: Tensor) -> Reading:
        """Return the network, once all steps are gone through that lead to `out`."""
        used, needed = [], {id(out)}
        for step in reversed(steps):
            if id(step.out) in needed:
                used.append(step)
                needed.update(id(a) for a in step.taken)
        carrier = given
        for step in reversed(used):
            if len(step.taken) != 1 or step.taken[0] is not carrier:
                raise ModelError(f"the model branches at its step {step.name}. {KNOWN}")
            self._take(step)
            carrier = step.out
        if not used:
            raise ModelError("what the model returns does not depend on the points.")
        return self._reading()

    def _take(self, step: ModuleStep) -> None:
        name = step.name
        if name in _NOTHING and _same_numbers(step):
            return
        if self._ended:
            raise ModelError(f"the model has the step {name} after its sigmoid or softmax. {KNOWN}")
        if name in _LINEAR:
            self._join(step)
        elif name in _NORMS:
            self._normalise(step)
        elif name in _EACH:
            self._each(step)
        elif _is_relu(name, step.args):
            self._rectify()
        elif name == "select" and len(step.shape) == 2 and step.args[1] in (1, -1) and self._linear:
            row = step.args[2]
            self._a, self._c = (v if v is None else v[[row]] for v in (self._a, self._c))
        elif name in _LAST:
            self._ended = True
        else:
            raise ModelError(f"the model has the step {name.strip('_')}. {KNOWN}")

    def _join(self, step: ModuleStep) -> None:
        """Take a product with weights, and the bias before it."""
        at = 2 if step.name == "addmm" else 1
        if step.args[at] is None or step.args[at - 1] is not None or step.more:
            raise ModelError(f"the model has the step {step.name} of the points alone. {KNOWN}")
        if self._linear:
            self._fold(JOINED)
        elif not self._layers:
            self._frame, self._a, self._c = (self._a, self._c), None, None
        if step.made:
            self._fold(MADE)
        w = step.args[at].cpu().double()
        w = w[None] if step.name == "mv" else w.T
        self._c = None if self._c is None else w @ self._c
        self._a = w if self._a is None else w * self._a if self._a.ndim == 1 else w @ self._a
        self._linear = True
        if at == 2:
            self._shift(step.args[0].cpu().double().expand(len(w)))

    def _normalise(self, step: ModuleStep) -> None:
        """Take batch normalisation by what training has counted."""
        w, b, mean, variance = step.args[1:5]
        if not isinstance(mean, Tensor) or True in step.args[5:]:
            raise ModelError(f"the model normalises by the points of a batch. {KNOWN}")
        eps = next(a for a in reversed(step.args) if isinstance(a, float))
        scale = (variance.cpu().double() + eps).rsqrt()
        if w is not None:
            scale = scale * w.cpu().double()
        shift = -mean.cpu().double() * scale
        self._fold(NORMALISED)
        self._times(scale)
        self._shift(shift if b is None else shift + b.cpu().double())

    def _each(self, step: ModuleStep) -> None:
        """Take a number for each coordinate: added, taken off, multiplied, divided by."""
        name, first, alpha = step.name, step.args[0] is None, step.more.get("alpha", 1)
        if set(step.more) - {"alpha"}:
            raise ModelError(f"the model has the step {name} with {', '.join(step.more)}. {KNOWN}")
        number = step.args[1 if first else 0] if name != "neg" else -1
        # A Linear layer of points with more axes adds its bias in a step of its own.
        bias = name == "add" and self._linear and isinstance(number, Tensor)
        if (self._layers or self._linear) and not bias:
            self._fold(SCALED)
        held = _per_coordinate(number, step)
        one = torch.ones_like(held)
        if name == "rsub":  # number - alpha x
            first, name = not first, "sub"
        if name in ("mul", "neg"):
            self._times(held)
        elif name == "div" and first:
            self._times(1 / held)
        elif name in ("add", "sub"):  # of a and b, a + sign b
            sign = alpha if name == "add" else -alpha
            self._times(one if first else sign * one)
            self._shift(sign * held if first else held)
        else:
            raise ModelError(f"the model divides by what its points give. {KNOWN}")

    def _times(self, scale: Tensor) -> None:
        if bool((scale == 1).all()):
            return
        a = self._a
        self._a = scale if a is None else scale * a if a.ndim == 1 else scale[:, None] * a
        self._c = None if self._c is None else scale * self._c

    def _shift(self, shift: Tensor) -> None:
        self._c = shift if self._c is None else self._c + shift

    def _rectify(self) -> None:
        """Take a ReLU: the end of a layer. After another one it does nothing."""
        if self._linear:
            self._close()
        elif not self._layers or self._a is not None or self._c is not None:
            raise ModelError(f"the step relu of the model comes without a Linear layer. {KNOWN}")

    def _close(self) -> None:
        assert self._a is not None
        self._layers.append((self._a, self._c))
        self._a = self._c = None
        self._linear = False

    def _fold(self, what: str) -> None:
        if what not in self._folded:
            self._folded.append(what)

    def _reading(self) -> Reading:
        if not self._linear:
            raise ModelError(f"the model must end in a Linear layer. {KNOWN}")
        self._close()
        folded, (scale, shift) = tuple(self._folded), self._frame
        if scale is None and shift is None:
            return Reading(_network(self._layers, self._dtype), folded=folded)
        inner = _network(self._layers, torch.float64)
        one = torch.ones(inner.d, dtype=torch.float64)
        scale, shift = (one if scale is None else scale), (0 * one if shift is None else shift)
        if bool((scale == 0).any()):
            raise ModelError(f"the model multiplies a coordinate by 0. {KNOWN}")
        (w, b), *rest = self._layers
        moved = w @ shift
        b = moved if b is None else b + moved
        outer = [(w * scale, b if bool(b.any()) else None), *rest]
        frame = InputFrame(-shift / scale, 1 / scale, inner)
        return Reading(_network(outer, torch.float64), frame, folded)


def _network(layers: list[tuple[Tensor, Tensor | None]], dtype: torch.dtype) -> Network:
    return Network(
        tuple(w.to(dtype, copy=True).contiguous() for w, _ in layers),
        tuple(None if b is None else b.to(dtype, copy=True) for _, b in layers),
    )


def _per_coordinate(number: Any, step: ModuleStep) -> Tensor:  # noqa: ANN401
    """Return a number as one for each coordinate (k,), the same for all points."""
    held = torch.as_tensor(number).cpu().double()
    if step.out.shape != step.shape or (held.ndim == len(step.shape) and len(held) != 1):
        raise ModelError(
            f"the step {step.name} of the model treats points of a batch in different ways. {KNOWN}"
        )
    return held.expand(1, *step.shape[1:]).reshape(-1)


def _is_relu(name: str, args: tuple[Any, ...]) -> bool:
    """Return whether a step is max(0, .), however it is written."""
    zeros = [isinstance(a, int | float) and a == 0 for a in args]
    if name == "clamp":
        return zeros[1] and (len(args) < 3 or args[2] is None)
    if name == "maximum":
        other = args[1] if args[0] is None else args[0]
        return not bool(other.any())
    return (
        name == "relu" or (name == "clamp_min" and zeros[1])
        or (name == "threshold" and zeros[1] and zeros[2])
    )  # fmt: skip


def _same_numbers(step: ModuleStep) -> bool:
    """Return whether a step leaves each point its numbers, in their order."""
    out = step.out
    return (
        out.is_floating_point() and out.ndim > 0 and out.shape[0] == step.shape[0]
        and out.numel() == step.shape.numel()
    )  # fmt: skip


def _check(model: nn.Module, net: Network, points: Tensor) -> None:
    """Raise where the network does not compute what the model does."""
    x = points.detach().cpu().double().flatten(1)
    says = _only(model(points)).detach().cpu().double()
    own = phi_all(net.to(dtype=torch.float64, device="cpu"), x)
    apart = max(SAME, torch.finfo(points.dtype).eps ** 0.5) * (1 + float(own.abs().max()))
    ends = own, own.sigmoid(), own.softmax(1), own.log_softmax(1), nn.functional.logsigmoid(own)
    if all(float((says.reshape(made.shape) - made).abs().max()) > apart for made in ends):
        raise ModelError("the network read from the model does not compute what the model does.")

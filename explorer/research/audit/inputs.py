"""What an audit is given: points and classes of any kind, in the coordinates of a training.

Classes, columns and held-out points are brought into the order of the model and of the training
points, or refused in a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.engine.classes import class_labels, class_order, label_of
from explorer.engine.controls import COUNT, MOST, Controls, Origin, control_sets
from explorer.engine.data import Dataset
from explorer.engine.data.dataset import points_of
from explorer.engine.data.drawings import generator_of
from explorer.engine.data.files import Table
from explorer.engine.network import Network, phi_all
from explorer.engine.torch_models import ModelError, Reading

Given = Any  # arrays, lists or columns, of any library
SHOWN = 6  # columns that a message names; arbitrary


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates z of points x = centre + scale z.

    Attributes:
        name: of the coordinates, for the sentence.
        centre: (d,), in units of the data.
        scale: (d,), in units of the data.
        inner: the network of z where the model itself has one; None: it follows from that of x.
        compared: whether others were tried, and the points explain the weights best in these.
    """

    name: str
    centre: Tensor
    scale: Tensor
    inner: Network | None = None
    compared: bool = True

    def inside(self, x: Tensor) -> Tensor:
        """Return points (n, d) in these coordinates."""
        return (x - self.centre) / self.scale

    def outside(self, z: Tensor) -> Tensor:
        """Return points (n, d) in units of the data."""
        return self.centre + self.scale * z

    def net(self, net: Network) -> Network:
        """Return the same function of z."""
        if self.inner is not None:
            return self.inner
        w, b = net.weights[0], net.biases[0]
        moved = w @ self.centre
        first = (w * self.scale, *net.weights[1:])
        if b is None and not bool(moved.any()):
            return replace(net, weights=first)
        bias = moved if b is None else b + moved
        return replace(net, weights=first, biases=(bias, *net.biases[1:]))


def known_coordinates(read: Reading, x: Tensor) -> list[Coordinates]:
    """Return coordinates that a training may use: rescaled, as given, standardised, in [0, 1].

    Rescaled: training keeps the incoming weights of a layer as large as the outgoing ones (Du et
    al. 2018), so that the weights themselves say in which unit of length they were trained. A model
    that shifts and divides its input was trained in what it makes of it: those alone are known.
    """
    net = read.net
    if read.frame is not None:
        return [Coordinates("the model's own", *read.frame)]
    one, zero = torch.ones(net.d, dtype=x.dtype), torch.zeros(net.d, dtype=x.dtype)
    low, high, deviation = x.amin(0), x.amax(0), x.std(0, correction=0)
    made = []
    bias = 0.0 if net.biases[0] is None else float(net.biases[0].square().sum())
    square = (float(net.weights[1].square().sum()) - bias) / float(net.weights[0].square().sum())
    if square > 0:
        made.append(Coordinates("rescaled", zero, one * square**0.5))
    made.append(Coordinates("as given", zero, one))
    if net.biases[0] is not None:  # without, no other centre can have been
        flat = deviation == 0
        made.append(Coordinates("standardised", x.mean(0), torch.where(flat, one, deviation)))
        made.append(Coordinates("from 0 to 1", low, torch.where(flat, one, high - low)))
    return made


@dataclass(frozen=True, eq=False)
class AuditData:
    """Points and classes as the engine takes them.

    Attributes:
        data: the training points.
        classes: in the order of the model.
        names: of the coordinates; empty where nobody names them.
        unseen: held-out points; None without.
        shared: how many of these are training points as well.
        kept: numbers of the training points among those given; repeats count once.
        given: how many were given.
    """

    data: Dataset
    classes: tuple[Any, ...]
    names: tuple[str, ...]
    unseen: Dataset | None
    shared: int
    kept: tuple[int, ...]
    given: int


def audit_data(
    read: Reading, x: Given, y: Given, heldout: Given, classes: Sequence[Any] | None
) -> AuditData:
    """Return what is given to `audit`, in its order. ValueError where the parts do not fit."""
    net = read.net
    if net.depth < 2:
        raise ModelError("the model has no hidden layer; the attacks here need one of ReLU.")
    x, y, names, label = _columns(x, y)
    check_some(x.x if isinstance(x, Dataset) else x)
    points = x.x.detach().cpu().double() if isinstance(x, Dataset) else points_of(x)
    if points.shape[1] != net.d:
        named = f" ({', '.join(names[:SHOWN])})" if names else ""
        raise ValueError(
            f"the points have {points.shape[1]} coordinates{named}; the model takes {net.d}"
        )
    other, kinds = (None, None) if heldout is None else _heldout(heldout, names, label, net)
    if isinstance(x, Dataset):
        known = (-1, 1) if net.outputs == 1 else tuple(label_of(k) for k in range(net.outputs))
        data = x.to(dtype=torch.float64, device="cpu")
    elif y is None:
        raise ValueError("the classes of the training points are missing: audit(model, x, y)")
    else:
        known = _class_order(y, kinds, net.outputs) if classes is None else tuple(classes)
        data = Dataset(points, class_labels(y, net.outputs, known)[0])
    if data.outputs > max(net.outputs, 2):
        raise ValueError(f"the points have {data.outputs} classes; the model has {net.outputs}")
    unseen = other
    if other is not None and not isinstance(other, Dataset):
        try:
            unseen = Dataset(other, _labels(other, kinds, net, known))
        except ValueError as error:
            raise ValueError(f"held-out points: {error}") from error
    once: dict[tuple[float, ...], int] = {}
    for i, row in enumerate(torch.column_stack([data.x, data.y]).tolist()):
        once.setdefault(tuple(row), i)
    kept = tuple(once.values())
    if len(kept) < data.n:
        data = Dataset(data.x[list(kept)], data.y[list(kept)])
    return AuditData(data, known, names, unseen, _shared_count(data, unseen), kept, len(points))


def _class_order(y: Given, kinds: Given, outputs: int) -> tuple[Any, ...]:
    """Return the classes of training and held-out points, where the model tells so many apart."""
    if kinds is not None:
        both = class_order([y, kinds], outputs)
        if len(both) <= max(outputs, 2):
            return both
    return class_order([y], outputs)


def points_like(x: Given, y: Given) -> Tensor:
    """Return points in the shape in which they were given, such as images."""
    x = x.x if isinstance(x, Dataset) else _columns(x, y)[0]
    shape = np.shape(x)
    check_some(x)
    return points_of(x).reshape(shape if len(shape) > 1 else (-1, 1))


def shape_of(x: Given) -> tuple[int, int, int] | None:
    """Return (c, h, w) of points (n, c, h, w) or (n, h, w); None of others."""
    shape = np.shape(x) if hasattr(x, "ndim") else ()
    if len(shape) not in (3, 4):
        return None
    c, h, w = (1, *shape[1:]) if len(shape) == 3 else shape[1:]
    return c, h, w


def check_some(x: Given) -> None:
    """Refuse points of which there are none."""
    if not len(x):
        raise ValueError(
            "audit needs one training point or more; got none, in an array of "
            f"{tuple(np.shape(x))}. Give the points that the model was trained on."
        )


def _columns(x: Given, y: Given) -> tuple[Given, Given, tuple[str, ...], str | None]:
    """Return points, classes, the names of the columns, and that of the classes among them."""
    if isinstance(x, Table):
        return x.x, x.y if y is None else y, x.names, None
    names = getattr(x, "columns", ())
    label = None
    if isinstance(y, str):
        if y not in names:
            raise ValueError(f"no column {y!r}; the points have {list(map(str, names))[:SHOWN]}")
        label, x, y = y, x.drop(columns=y), x[y]
    return x, y, tuple(map(str, getattr(x, "columns", ()))), label


def _heldout(
    given: Given, names: tuple[str, ...], label: str | None, net: Network
) -> tuple[Given, Given]:
    """Return held-out points, with columns as in the training points; and their classes or None."""
    if isinstance(given, Dataset):
        return given.to(dtype=torch.float64, device="cpu"), None
    pair = isinstance(given, tuple) or (
        isinstance(given, list) and len(given) == 2 and np.ndim(given[0]) == 2
    )
    if pair and len(given) != 2:
        raise ValueError(f"held-out points are (x, y) or x; got {len(given)} things")
    x, y = given if pair else (given, None)
    x, y, own, _ = _columns(x, label if y is None and label in getattr(x, "columns", ()) else y)
    if names and own and own != names:
        missing = [name for name in names if name not in own]
        if missing:
            raise ValueError(
                f"held-out points have no column {', '.join(missing[:SHOWN])}; "
                f"they have {', '.join(own[:SHOWN])}"
            )
        order = [own.index(name) for name in names]
        x = x[:, order] if isinstance(x, np.ndarray) else x.iloc[:, order]
    points = points_of(x)
    if not len(points):
        raise ValueError("there are no held-out points; pass None for controls made of the points")
    if points.shape[1] != net.d:
        raise ValueError(f"held-out points have {points.shape[1]} coordinates, not {net.d}")
    return points, y


def _labels(points: Tensor, kinds: Given, net: Network, known: Sequence[Any]) -> Tensor:
    """Return labels of held-out points; those without classes get the model's own."""
    if kinds is not None:
        return class_labels(kinds, net.outputs, known)[0]
    if net.outputs == 1:
        return torch.where(net(points) > 0, 1.0, -1.0).double()
    best = phi_all(net, points).argmax(1).tolist()
    return torch.tensor([label_of(k) for k in best], dtype=torch.float64)


def _shared_count(data: Dataset, unseen: Dataset | None) -> int:
    """Return how many held-out points are training points."""
    if unseen is None:
        return 0
    held = set(map(tuple, data.x.tolist()))
    return sum(tuple(row) in held for row in unseen.x.tolist())


def controls_for(z: Dataset, others: Dataset | None, seed: int) -> Controls:
    """Sets as large as the training set, class by class, of training and held-out points together.

    If claims know nothing of the training points, each such set is as likely as these: the test is
    then exact, also where there are few held-out points. Without any, `control_sets`.
    """
    if others is None:
        return control_sets(z)
    both = Dataset(torch.cat([z.x, others.x]), torch.cat([z.y, others.y]))
    unseen = Controls(_random_sets(others, z, COUNT, seed, 7), Origin.HELD_OUT)
    return Controls(_random_sets(both, z, MOST, seed, 5), Origin.POOLED, unseen=unseen)


def _random_sets(
    pool: Dataset, like: Dataset, count: int, seed: int, stream: int
) -> tuple[Dataset, ...]:
    """Sets of a pool, each with as many points of a class as `like`, or all that there are."""
    generator = generator_of(seed, like.n, stream)
    members = [(pool.y == label, int((like.y == label).sum())) for label in like.y.unique()]
    sets = []
    for _ in range(count):
        order = torch.randperm(pool.n, generator=generator)
        kept = torch.cat([order[own[order]][:most] for own, most in members])
        sets.append(Dataset(pool.x[kept], pool.y[kept]))
    return tuple(sets)

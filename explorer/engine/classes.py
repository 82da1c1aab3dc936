r"""Labels and margins with two classes and with more.

Two classes are the labels +1 and -1 of one output, margin q_i = y_i Phi(x_i). Further classes carry
the labels 3, 4, ...: class 2 stays -1, so that a set of two classes is what it always was. With C
outputs, class k has the output Phi_k and

    q_i = Phi_{y_i}(x_i) - max_{c != y_i} Phi_c(x_i)

(Buzaglo et al. 2023, section 3, restated; see the paper for the original). Either way q_i is the
product of the outputs with a covector, <v_i, Phi(x_i)>: v_i = y_i, or e_{y_i} - e_c with the
runner-up c. grad q_i = sum_c v_ic grad Phi_c is then all that certificates and attacks need. Where
several classes tie as runner-up, each of their covectors gives a subgradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

MAX_CLASSES = 10  # the ten digits


def label_of(index: int) -> int:
    """Return the label of class `index`, counted from 0: 1, -1, 3, 4, ..."""
    return -1 if index == 1 else index + 1


def class_labels(
    y: Any,  # noqa: ANN401 - whatever numpy reads
    outputs: int | None = None,
    classes: Sequence[Any] | None = None,
) -> tuple[Tensor, tuple[Any, ...]]:
    """Return labels -1 and +1, or 1, -1, 3, 4, ..., for classes of any kind.

    Classes are numbered in their order: numbers by size, words by alphabet, False before True. With
    one output the first is -1 and the second +1: the sign of Phi. With C outputs class k is the one
    of output k; whole numbers from 0 to C - 1 are taken as they are.

    Args:
        y: classes (n,): numbers, bool or words, as a list, array, tensor or column.
        outputs: how many outputs the network has; None takes one for two classes, else one each.
        classes: all classes in their order, where `y` may lack some.

    Returns:
        The labels (n,) in float64, and the classes in their order.

    Raises:
        ValueError: where there are more classes than outputs tell apart, a class is missing or is
            not among `classes`, or there are too many.

    Example:
        >>> from explorer import class_labels
        >>> class_labels(["cat", "dog", "cat"])
        (tensor([-1.,  1., -1.], dtype=torch.float64), ('cat', 'dog'))
        >>> class_labels([0, 1, 2, 1])[0]  # three classes: labels 1, -1, 3
        tensor([ 1., -1.,  3., -1.], dtype=torch.float64)
    """
    given = _column(y)
    known = tuple(_plain(c) for c in (class_order([y], outputs) if classes is None else classes))
    count = outputs if outputs is not None else (1 if len(known) <= 2 else len(known))
    if len(known) > min(max(count, 2), MAX_CLASSES):
        told = "outputs tell" if count > 1 else "output tells"
        raise ValueError(
            f"{len(known)} classes; {count} {told} {max(count, 2)} apart, and at most "
            f"{MAX_CLASSES} are supported: {known[:12]}"
        )
    other = sorted({repr(v) for v in given if v not in known})
    if other:
        raise ValueError(f"expected classes among {known}; got {', '.join(other[:9])}")
    number = {value: k for k, value in enumerate(known)}
    made = [2 * number[v] - 1 if count == 1 else label_of(number[v]) for v in given]
    return torch.tensor(made, dtype=torch.float64), known


def class_order(columns: Sequence[Any], outputs: int | None = None) -> tuple[Any, ...]:
    """Return the classes in several columns, in their order or in a pandas categorical's own."""
    given = [value for column in columns for value in _column(column)]
    own = getattr(getattr(columns[0], "dtype", None), "categories", None)
    if own is None:
        return _classes(given, outputs)
    own = [_plain(value) for value in own]
    if set(given) <= set(own):
        return tuple(value for value in own if value in given)
    return _classes(given, outputs)


def _column(y: Any) -> list[Any]:  # noqa: ANN401 - whatever numpy reads
    """Return a column of classes as Python values."""
    held = np.asarray(y.tolist() if isinstance(y, Tensor) else y)  # numpy knows no bfloat16
    if held.ndim > 1 and held.shape[-1] > 1:
        raise ValueError(
            f"classes must be (n,), one for each point; got {held.shape}. Of one column for each "
            "class take the largest: y.argmax(1)."
        )
    return [_plain(value) for value in held.ravel()]


def _plain(value: Any) -> Any:  # noqa: ANN401 - a class
    """Return a class as a Python value: whole numbers as int, so that 1.0 and 1 are one class."""
    held = value.item() if isinstance(value, np.generic) else value
    if held is None or held != held:
        raise ValueError("a class is missing (nan or None); remove that point")
    return int(held) if isinstance(held, float) and held == round(held) else held


def _classes(given: list[Any], outputs: int | None) -> tuple[Any, ...]:
    """Return the classes in their order: usual pairs and 0 to C - 1 whole, if some are missing."""
    found = set(given)
    pairs: list[tuple[Any, ...]] = [(-1, 1), (0, 1)]
    usual = pairs if outputs in (None, 1) else [tuple(range(outputs or 0))]
    for row in usual:
        if found <= set(row) and not any(isinstance(v, bool) for v in found):
            return row
    if found <= {False, True} and outputs in (None, 1):
        return (False, True)
    return tuple(sorted(found, key=lambda v: (isinstance(v, str), v)))


def labels(outputs: int) -> tuple[int, ...]:
    """Return the labels that a network with so many outputs tells apart; one output tells two."""
    return tuple(label_of(index) for index in range(max(outputs, 2)))


def class_numbers(y: Tensor) -> Tensor:
    """Return class numbers 1, 2, 3, ... of labels 1, -1, 3, ... (n,) -> (n,) int64."""
    whole = y.to(torch.int64)
    return torch.where(whole == -1, 2, whole)


def from_numbers(numbers: Tensor) -> Tensor:
    """Return the labels of class numbers 1, 2, 3, ...: the inverse of `class_numbers`."""
    return torch.where(numbers == 2, -1.0, numbers.to(torch.float64))


def outputs_for(y: Tensor) -> int:
    """Return how many outputs tell these labels apart: 1 for two, else the largest class number."""
    return int(y.max()) if bool((y.abs() > 1).any()) else 1


def valid(y: Tensor) -> Tensor:
    """Return which labels are labels: -1, +1, 3, 4, ..., MAX_CLASSES. (n,) -> (n,) bool."""
    return (y.abs() == 1) | ((y >= 3) & (y <= MAX_CLASSES) & (y == y.round()))


def fair_labels(m: int, outputs: int) -> Tensor:
    """Return fixed labels of m candidates, as many of each class; the first classes get the rest.

    With one output the first half is +1 (Haim et al. 2022). -> (m,) float64
    """
    several = max(outputs, 2)
    sizes = torch.tensor([(m + several - 1 - k) // several for k in range(several)])
    return from_numbers(torch.repeat_interleave(torch.arange(1, several + 1), sizes))


def check_labels(y: Tensor, outputs: int) -> None:
    """Raise ValueError for a label that a network with this many outputs does not have."""
    known = torch.tensor(labels(outputs), dtype=y.dtype).to(y.device)
    if not bool(torch.isin(y, known).all()):
        got = sorted(set(y.tolist()))
        if outputs == 1:
            raise ValueError(f"labels must be -1 or 1 for a network with one output; got {got}")
        raise ValueError(f"labels must be among {labels(outputs)}; got {got}")


def _others(values: Tensor, y: Tensor, known: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Return class indices (n,), their own outputs (n,), and the outputs with -inf at their own.

    Labels that are `known` to be labels are not looked at again: on a device that reads them back.
    """
    if y.shape != values.shape[:1]:
        raise ValueError(f"y must be ({len(values)},), one label per point; got {tuple(y.shape)}")
    if not known:
        check_labels(y, values.shape[1])
    index = class_numbers(y) - 1
    own = values.gather(1, index[:, None]).squeeze(1)
    return index, own, values.scatter(1, index[:, None], -torch.inf)


def margins(values: Tensor, y: Tensor, known: bool = False) -> Tensor:
    """Return q_i (n,) of outputs (n, C) and labels (n,), `known` or checked; C = 1 for two."""
    if values.shape[1] == 1:
        return y.to(values.dtype) * values.squeeze(1)
    _, own, others = _others(values, y, known)
    return own - others.max(1).values


def contrast(values: Tensor, y: Tensor, known: bool = False) -> Tensor:
    """Return the covector of the margin (n, C), <v_i, Phi(x_i)> = q_i, of outputs (n, C)."""
    if values.shape[1] == 1:
        return y.to(values.dtype)[:, None]
    index, _, others = _others(values, y, known)
    return _pairs(index, others.argmax(1), values)


def rivals(values: Tensor, y: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Return all covectors e_{y_i} - e_c whose margin exceeds q_i by at most `share` |q_i|.

    Outputs (n, C), y (n,) -> the points' indices (r,) and the covectors (r, C). With share = inf
    every rival of every point; a negative share takes the runner-up alone.
    """
    if values.shape[1] == 1 or share < 0:
        return torch.arange(len(values), device=values.device), contrast(values, y)
    index, own, others = _others(values, y)
    best = others.max(1, keepdim=True).values
    near = torch.isfinite(others)
    if share < torch.inf:
        near &= best - others <= share * (own[:, None] - best).abs()
    owner, rival = near.nonzero(as_tuple=True)
    return owner, _pairs(index[owner], rival, values)


def all_rivals(y: Tensor, outputs: int) -> Tensor:
    """Return the covectors e_{y_i} - e_c (n, C - 1, C) of every rival class c, of labels (n,)."""
    index = class_numbers(y) - 1
    rival = torch.arange(outputs - 1, device=y.device)
    return _pairs(index[:, None], rival + (rival >= index[:, None]), y.new_empty(1, outputs))


def soft_contrast(
    values: Tensor, y: Tensor, gain: float | Tensor, known: bool = False
) -> tuple[Tensor, Tensor]:
    r"""Return smooth margins and their covectors, for the cross-entropy of gain * Phi.

    s_i = -(1/gain) log sum_{c != y_i} exp(-gain (Phi_{y_i} - Phi_c)); the cross-entropy of point i
    is log(1 + exp(-gain s_i)), and grad s_i has the covector e_{y_i} - sum_c w_ic e_c with the
    softmax w_i of gain Phi over the rivals. Outputs (n, C), y (n,) -> (n,), (n, C). For C = 1 they
    are q_i and y_i.
    """
    if values.shape[1] == 1:
        return margins(values, y), contrast(values, y)
    index, own, others = _others(values, y, known)
    best = others.max(1, keepdim=True).values
    scaled = (gain * (values - best)).scatter(1, index[:, None], -torch.inf)
    soft = own - best.squeeze(1) - torch.logsumexp(scaled, 1) / gain
    cover = -torch.softmax(scaled, 1)
    return soft, cover.scatter(1, index[:, None], 1.0)


def _pairs(index: Tensor, rival: Tensor, like: Tensor) -> Tensor:
    """Return rows e_index - e_rival."""
    eye = torch.eye(like.shape[1], dtype=like.dtype, device=like.device)
    return eye[index] - eye[rival]

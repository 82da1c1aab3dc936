"""Of the bilevel attack: the boundaries of the attacked model and of that on the candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from contourpy import contour_generator

from explorer.engine.attacks.bilevel import BilevelState
from explorer.parts.overlay import EMPTY, Array, Overlay

CELLS = 61  # arbitrary: across the plane; the boundary of a small network is smooth
HALF = 4.0  # arbitrary: twice the usual plane, so that a line reaches its edges after zooming


def overlay(target: Any, state: BilevelState) -> Overlay:  # noqa: ANN401 - the page's target
    """Thick: z = 0 of theta*; thin: z = 0 of theta(x), which the attack brings onto it."""
    shape = state.victim.lower.shape
    if shape.d != 2:
        return EMPTY
    return Overlay(
        lines=_zero(shape, state.theta), strong=_zero(shape, state.victim.theta)
    )  # fmt: skip


def _zero(shape: Any, theta: torch.Tensor) -> Array:  # noqa: ANN401
    """The paths on which the model is zero, (k, 2), a row of nan between them."""
    axis = np.linspace(-HALF, HALF, 2 * CELLS)
    x1, x2 = np.meshgrid(axis, axis)
    places = torch.from_numpy(np.column_stack([x1.ravel(), x2.ravel()]))
    z = shape.at(theta, places).z.numpy().reshape(x1.shape)
    paths = contour_generator(x1, x2, z).lines(0.0)
    gap = np.full((1, 2), np.nan)
    pieces = [piece for path in paths for piece in (np.asarray(path), gap)]
    return np.concatenate(pieces[:-1]) if pieces else np.zeros((0, 2))

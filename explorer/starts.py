"""Where the attack starts: the candidates' labels, and their partners in truth and control."""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.engine.classes import fair_labels
from explorer.engine.data import Dataset
from explorer.engine.landscape import mix_init


def half_and_half(m: int) -> Tensor:
    """Fixed labels of m candidates: first half +1, second half -1 (Haim et al. 2022). (m,)."""
    return fair_labels(m, 1)


def paired(dataset: Dataset, y: Tensor) -> Tensor:
    """One point of the set per candidate: the points of its class in turn. y (m,) -> (m, d).

    A class without points borrows from all: its candidates then start at points of the other.
    """
    out = torch.empty(len(y), dataset.d, dtype=dataset.x.dtype)
    for label in y.unique().tolist():
        wanted = (y == label).nonzero().squeeze(1)
        members = (dataset.y == label).nonzero().squeeze(1)
        pool = members if len(members) else torch.arange(dataset.n)
        out[wanted] = dataset.x[pool[torch.arange(len(wanted)) % len(pool)]]
    return out


def attack_start(
    truth: Dataset,
    control: Dataset,
    m: int,
    sigma_x: float,
    seed: int,
    mix: tuple[float, float],
    labels: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Candidates of Runkel's eq. (10): x (m, d), y (m,). mix = (mix_truth, mix_data).

    With `labels` (m',) there are as many as these say, whatever m.
    """
    y = fair_labels(m, truth.outputs) if labels is None else labels
    generator = torch.Generator().manual_seed(seed)
    noise = sigma_x * torch.randn(len(y), truth.d, generator=generator, dtype=truth.x.dtype)
    return mix_init(paired(truth, y), paired(control, y), noise, *mix), y

"""Random signals on a circle of samples: no place of it is special, as a convolution wants it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SIZE = 0.5  # root mean square of a signal; arbitrary: about that of the plane's points
REACH = 2.0  # no sample was beyond it in 10,000 signals of 16 to 64 samples; arbitrary beyond that


def signals(count: int, samples: int, generator: torch.Generator) -> Tensor:
    """Return independent signals of root mean square 1/2 around 0, of a law that no shift changes.

    Waves of 1, 2, ... up to samples/2 - 1 periods are added, of random phases and normal amplitudes
    whose variance falls as 1 over the periods.

    Args:
        count: how many.
        samples: of one, 4 or more.
        generator: draws them.

    Returns:
        The signals (count, samples).

    Raises:
        ValueError: for fewer than 4 samples, which hold no wave.

    Source: own.

    Example:
        >>> import torch
        >>> from explorer.engine.data.signals import signals
        >>> x = signals(3, 16, torch.Generator().manual_seed(0))
        >>> x.shape, x.square().mean(1)
        (torch.Size([3, 16]), tensor([0.2500, 0.2500, 0.2500], dtype=torch.float64))
    """
    if samples < 4:
        raise ValueError(f"a signal has 4 samples or more; got {samples}. Take 16.")
    periods = torch.arange(1, samples // 2, dtype=torch.float64)
    angle = 2 * math.pi * torch.arange(samples, dtype=torch.float64) / samples
    shape = count, len(periods), 1
    phase = 2 * math.pi * torch.rand(shape, generator=generator, dtype=torch.float64)
    size = torch.randn(shape, generator=generator, dtype=torch.float64) / periods[:, None].sqrt()
    x = (size * torch.cos(periods[:, None] * angle + phase)).sum(1)
    return x * (SIZE / x.square().mean(1, keepdim=True).sqrt())

"""The 8 x 8 digits of scikit-learn, odd (+1) against even (-1), with a disjoint held-out partition.

Pixels from 0 to 16 are divided by 16. The images come with the library (1797 of them, from the
UCI set of optical digits); nothing is fetched.
"""

from __future__ import annotations

from typing import Any

import torch

from explorer.engine.data.dataset import Dataset

IMAGE = (8, 8)


def parity_digits(n: int, seed: int) -> tuple[Dataset, Dataset]:
    """Draw n images and n others, half of each label (the larger half odd), by `seed`.

    Raises:
        ImportError: without scikit-learn.
        ValueError: where there are not so many images.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as missing:
        raise ImportError(
            "the digits come with scikit-learn: pip install margin-explorer[images]"
        ) from missing
    found: Any = load_digits()
    images = torch.from_numpy(found.data).to(torch.float64) / 16
    y = torch.from_numpy(found.target % 2 * 2.0 - 1.0).to(torch.float64)
    if not 2 <= n <= 800:  # 891 even ones are the smaller class; both partitions must be disjoint
        raise ValueError(f"n must be from 2 to 800 digits; got {n}")
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    odd, even = order[y[order] > 0], order[y[order] < 0]
    half, rest = (n + 1) // 2, n // 2
    parts = [
        torch.cat([odd[k * half : (k + 1) * half], even[k * rest : (k + 1) * rest]])
        for k in range(2)
    ]
    truth, heldout = (Dataset(images[part], y[part]) for part in parts)
    return truth, heldout

r"""Where a reconstruction starts, between the truth, held-out data and noise.

Runkel et al., eq. (10), with lambda_1 = `mix_truth` and lambda_2 = `mix_data`:

    x_init = lambda_2 (lambda_1 x_truth + (1 - lambda_1) x_heldout) + (1 - lambda_2) x_noise

The three weights are barycentric, so every start is one point of a triangle.
"""

from __future__ import annotations

import math

from torch import Tensor


def mix_weights(mix_truth: float, mix_data: float) -> tuple[float, float, float]:
    """Weights (truth, heldout, noise) of a start; they are non-negative and sum to 1.

    Raises:
        ValueError: where a mixing weight is not in [0, 1].
    """
    for name, value in (("mix_truth", mix_truth), ("mix_data", mix_data)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be between 0 and 1; got {value}")
    return mix_data * mix_truth, mix_data * (1 - mix_truth), 1 - mix_data


def mix_from_weights(truth: float, heldout: float, noise: float) -> tuple[float, float]:
    """(mix_truth, mix_data) of a point of the triangle: the inverse of `mix_weights`.

    At the noise corner mix_truth has no effect; it is then given as 1.

    Raises:
        ValueError: where a weight is negative or the three do not sum to 1.
    """
    weights = (truth, heldout, noise)
    # 1e-9: arbitrary, above the rounding of three additions and far below a pixel of the pad
    if not all(w >= -1e-9 for w in weights) or not math.isclose(sum(weights), 1, abs_tol=1e-9):
        raise ValueError(
            f"truth, heldout and noise must be non-negative and sum to 1; got {weights}. "
            "Divide them by their sum."
        )
    mix_data = min(max(truth + heldout, 0.0), 1.0)
    if mix_data == 0:
        return 1.0, 0.0
    return min(max(truth / mix_data, 0.0), 1.0), mix_data


def mix_init(
    truth: Tensor, heldout: Tensor, noise: Tensor, mix_truth: float, mix_data: float
) -> Tensor:
    """The start of Runkel et al., eq. (10). Three tensors (m, d), paired row by row -> (m, d).

    Every row moves on a straight line in each weight, so its distance to its true point is
    (1 - mix_truth) times that of its held-out partner along the edge mix_data = 1.

    Raises:
        ValueError: where shapes differ or a mixing weight is not in [0, 1].
    """
    if not truth.shape == heldout.shape == noise.shape:
        raise ValueError(
            "truth, heldout and noise are mixed row by row and need one shape; got "
            f"{tuple(truth.shape)}, {tuple(heldout.shape)} and {tuple(noise.shape)}"
        )
    w_truth, w_heldout, w_noise = mix_weights(mix_truth, mix_data)
    return w_truth * truth + w_heldout * heldout + w_noise * noise

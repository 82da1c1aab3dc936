"""The room of the truth: datasets, presets, the held-out partition, files.

One import for all of it; the parts live in `dataset`, `presets`, `drawings` and `files`.
"""

from __future__ import annotations

from collections.abc import Sequence

from explorer.engine.data.dataset import Dataset, Source, empty
from explorer.engine.data.drawings import bootstrap_copies, generator_of
from explorer.engine.data.files import DataError, read_csv, read_npz, write_csv, write_npz
from explorer.engine.data.presets import BOX, MAX_POINTS, PRESETS, Preset, fold
from explorer.engine.data.unit import in_unit, unit_of

__all__ = [
    "BOX",
    "MAX_POINTS",
    "PRESETS",
    "DataError",
    "Dataset",
    "Preset",
    "Source",
    "empty",
    "heldout",
    "heldouts",
    "in_unit",
    "preset",
    "read_csv",
    "read_npz",
    "unit_of",
    "write_csv",
    "write_npz",
]

PLANE = 2.0  # half width of the drawing plane
MAX_NOISE = 10.0  # arbitrary: beyond it the folded points are uniform in the box


def preset(name: str, n: int | None = None, noise: float | None = None, seed: int = 0) -> Dataset:
    """Draw the points of a preset.

    Args:
        name: a key of `PRESETS`.
        n: number of points; None takes the default of the preset.
        noise: standard deviation of the jitter, in units of the plane; None takes the default.
        seed: seed of the draw, at least 0. A seed gives the same points again.

    Returns:
        The set: x (n, d) in float64, each coordinate in [-1.6, 1.6], and its source.

    Raises:
        ValueError: where there is no such preset, or `n`, `noise` or `seed` is out of range.

    Example:
        >>> from explorer import preset
        >>> data = preset("moons", n=10)
        >>> data.x.shape, data.y.unique().tolist()
        (torch.Size([10, 2]), [-1.0, 1.0])
    """
    if name not in PRESETS:
        raise ValueError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
    row = PRESETS[name]
    n = row.n if n is None else n
    noise = row.noise if noise is None else noise
    if not row.n_min <= n <= row.n_max:
        raise ValueError(f"{name} takes n from {row.n_min} to {row.n_max}; got n={n}")
    if not 0 <= noise <= MAX_NOISE:
        raise ValueError(f"noise must be from 0 to {MAX_NOISE:g}; got {noise}")
    if seed < 0:
        raise ValueError(f"seed must be at least 0; got {seed}")
    x, y = row.draw(n, noise, generator_of(seed), False)
    return Dataset(x, y, Source(name, n, noise, seed))


def heldout(dataset: Dataset, seed: int = 0) -> Dataset:
    """Return a control: as many points per class from the same source, none of them in the set.

    A preset is drawn again with another seed, a regular one at another phase too. A set drawn by
    hand has no source: its classes are resampled with Gaussian noise (smoothed bootstrap) whose
    bandwidth is Silverman's (1986, eq. 4.14) or, where that is less, the distance of a point's
    nearest neighbour: Silverman's alone smears groups that stand close together, and nothing then
    looks like chance. What is drawn so is a stand-in for a source, not one (docs/science.md).

    Args:
        dataset: the truth.
        seed: seed of the draw; each gives another control.

    Returns:
        A set of the size, type and device of `dataset`, without a source.

    Source: Silverman 1986, eq. 4.14, for sets drawn by hand.

    Example:
        >>> from explorer import heldout, preset
        >>> data = preset("moons", n=10)
        >>> control = heldout(data)
        >>> control.n, bool((control.x == data.x).all(1).any())
        (10, False)
    """
    return heldouts(dataset, (seed,))[0]


def heldouts(dataset: Dataset, seeds: Sequence[int]) -> tuple[Dataset, ...]:
    """Return the controls of these seeds: `heldout` of each, for less."""
    source = dataset.source
    if source is None:
        return _bootstraps(dataset, seeds)
    draw, made = PRESETS[source.preset].draw, []
    for seed in seeds:
        x, y = draw(source.n, source.noise, generator_of(seed, source.seed, 2), True)
        made.append(Dataset(x, y).to(dtype=dataset.x.dtype, device=dataset.x.device))
    return tuple(made)


def _bootstraps(dataset: Dataset, seeds: Sequence[int]) -> tuple[Dataset, ...]:
    fresh = bootstrap_copies(dataset, seeds)
    if bool((dataset.x.abs() <= PLANE).all()):
        fresh = fold(fresh, PLANE)  # a set drawn on the plane keeps its control on the plane
    return tuple(Dataset(x, dataset.y) for x in fresh.to(dataset.x))

"""Sets that stand for chance, with where they came from, and how many of their points claims meet.

Whoever makes the sets gives their origin: a verdict repeats it and guesses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.spatial import cKDTree
from torch import Tensor

from explorer.engine.arrays import as_array
from explorer.engine.data import Dataset, heldouts
from explorer.engine.data.drawings import (
    followed_copies,
    rephased_copies,
    shifted_copies,
    slid_copies,
    turned_copies,
)
from explorer.engine.threads import few_threads

Array = np.ndarray[Any, Any]
COUNT = 99  # the smallest p-value is then 1/100; arbitrary
MOST = 999  # where there is time and the first do not suffice; arbitrary


class Origin(Enum):
    """Where control sets came from; the value is the key of rows of results.

    Example:
        >>> from explorer import Origin, control_sets, preset
        >>> control_sets(preset("moons", n=6), 3).origin is Origin.HELD_OUT
        True
    """

    HELD_OUT = "held-out"
    RESAMPLED = "resampled"
    TURNED = "turned"
    SHIFTED = "shifted"
    REPHASED = "re-phased"
    SLID = "slid"
    FOLLOWED = "followed"
    POOLED = "pooled"
    GIVEN = "control"


# Made from the points of the truth, which say no law.
SHAPED = (
    Origin.RESAMPLED, Origin.TURNED, Origin.SHIFTED, Origin.REPHASED, Origin.SLID, Origin.FOLLOWED,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Controls:
    """Sets that the network never saw, to score claims against.

    Attributes:
        sets: as many points each as the truth, best of all; of its dimension.
        origin: HELD_OUT for sets of the source that the truth came from; RESAMPLED, TURNED,
            SHIFTED, REPHASED, SLID and FOLLOWED for sets made from the points of the truth; POOLED
            for sets of training and held-out points together; GIVEN where nobody says.
        beside: controls made in other ways. Claims must beat each of them: a drawing does not say
            of which law it is, and where one of the ways follows that law, the largest p holds.
        truth: the points that all of these were made for, so that more can be; None for others.
        unseen: sets of held-out points alone, beside POOLED ones, which hold training points too.

    Example:
        >>> from explorer import Controls, preset
        >>> controls = Controls.of([preset("moons", n=6, seed=1), preset("moons", n=6, seed=2)])
        >>> len(controls), controls.origin
        (2, <Origin.GIVEN: 'control'>)
    """

    sets: tuple[Dataset, ...]
    origin: Origin = Origin.GIVEN
    beside: tuple[Controls, ...] = ()
    truth: Dataset | None = None
    unseen: Controls | None = None

    @staticmethod
    def of(given: Controls | Sequence[Dataset]) -> Controls:
        """Return controls as they are, and other sets as controls of the origin GIVEN.

        Args:
            given: controls, or sets without a word on where they came from.

        Returns:
            The controls.
        """
        return given if isinstance(given, Controls) else Controls(tuple(given))

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def ways(self) -> tuple[Controls, ...]:
        """Return these controls, then those beside them."""
        return (self, *self.beside)

    @cached_property
    def most(self) -> Controls:
        """Return the largest number of controls, made in the same ways.

        The first of them are these. Sets that were given stay as many as they are.
        """
        if self.truth is None or len(self) >= MOST:
            return self
        return control_sets(self.truth, MOST)

    def with_change(self, change: Callable[[Dataset, int], Dataset]) -> Controls:
        """Return controls with each set changed.

        No more can then be made.

        Args:
            change: returns another set for a set and its number, from 1.

        Returns:
            Controls of the same origin.
        """
        sets = tuple(change(one, k) for k, one in enumerate(self.sets, 1))
        beside = tuple(way.with_change(change) for way in self.beside)
        return replace(self, sets=sets, beside=beside, truth=None, unseen=None)

    def chance(self, x: Tensor, y: Tensor, n: int, radius: float) -> float:
        """Return how many of n points that stand for chance are met, on average.

        Args:
            x: places (c, d), in units of the data.
            y: their labels (c,).
            n: of how many points: of smaller sets the share is taken.
            radius: distance within which a point counts as met, in units of the data.

        Returns:
            The number; nan without controls.

        Raises:
            ValueError: where a set has points of another dimension.

        Source: own.

        Example:
            >>> from explorer import Controls, preset
            >>> other = preset("moons", n=6, seed=1)
            >>> Controls.of([other]).chance(other.x[:2], other.y[:2], 6, radius=0.01)
            2.0
        """
        sets = self if self.unseen is None else self.unseen
        size = sets.sets[0].n if len(sets) else 0
        if not size:
            return math.nan
        return float(meeting_counts(sets, x, y, (radius,)).double().mean()) * n / size

    @cached_property
    def together(self) -> tuple[cKDTree, Array, Array]:
        """Return a tree of all points (N, d), their labels (N,), and which set each is of (N,)."""
        x, y = (torch.cat([v.detach().cpu().double() for v in of]).numpy()
                for of in ([s.x for s in self.sets], [s.y for s in self.sets]))  # fmt: skip
        return cKDTree(x), y, np.repeat(np.arange(len(self)), [s.n for s in self.sets])


@few_threads()
def control_sets(truth: Dataset, count: int = COUNT) -> Controls:
    """Return control sets for a truth.

    A preset is drawn again by `heldout`, with a seed for each set. Points drawn by hand have no
    source: they are resampled by `heldout` and, beside that, turned about their centre, shifted,
    re-phased, slid and followed (`drawings`), because a ring, a star, a grid or a letter gives its
    points away to any other.

    Args:
        truth: the points that a network was trained on.
        count: how many sets of each kind; 99 let the p-value go down to 0.01.

    Returns:
        The controls, with their origin; on the CPU.

    Example:
        >>> from explorer import control_sets, preset
        >>> controls = control_sets(preset("moons", n=6), 3)
        >>> len(controls), controls.sets[0].n
        (3, 6)
    """
    truth = truth.to(device="cpu")
    sets = heldouts(truth, range(1, count + 1))
    if truth.source is not None:
        return Controls(sets, Origin.HELD_OUT, truth=truth)
    ways = {Origin.SHIFTED: shifted_copies, Origin.SLID: slid_copies}
    if truth.d == 2:
        ways |= {
            Origin.TURNED: turned_copies,
            Origin.REPHASED: rephased_copies,
            Origin.FOLLOWED: followed_copies,
        }
    beside = tuple(
        Controls(tuple(Dataset(x.to(truth.x), truth.y) for x in make(truth, count)), origin)
        for origin, make in ways.items()
        if truth.n
    )
    return Controls(sets, Origin.RESAMPLED, beside, truth)


def least_p(count: int) -> float:
    """Return the smallest p-value that so many controls can give."""
    return 1 / (count + 1)


def meeting_counts(controls: Controls, x: Tensor, y: Tensor, radii: Sequence[float]) -> Tensor:
    """Return how many points of each of K sets claims meet one to one within r radii.

    (K, r), int64.

    The counts of `scoring.score`, of all sets at once: of all pairs only the near ones are seen.

    Args:
        controls: sets of points of one dimension d.
        x: places of the claims (c, d).
        y: their labels (c,).
        radii: distances, in units of the data.

    Raises:
        ValueError: where a set has points of another dimension.
    """
    other = [s.d for s in controls.sets if s.d != x.shape[1]]
    if other:
        raise ValueError(f"controls need points of {x.shape[1]} coordinates; got {other[0]}")
    if not len(controls) or not len(x):
        return torch.zeros(len(controls), len(radii), dtype=torch.int64)
    tree, labels, owner = controls.together
    claims = cKDTree(as_array(x))
    near = claims.sparse_distance_matrix(tree, max(radii), output_type="ndarray")
    near = near[as_array(y)[near["i"]] == labels[near["j"]]]
    sizes = len(controls), len(x)
    counts = [_matching_sizes(near[near["v"] <= radius], owner, *sizes) for radius in radii]
    return torch.stack([torch.from_numpy(c) for c in counts], dim=1)


def _matching_sizes(near: Array, owner: Array, sets: int, claims: int) -> Array:
    """Return the largest one-to-one matching of pairs (claim i, point j) in each set. (K,).

    A claim has a column of its own for each set, so one matching serves all.
    """
    columns = owner[near["j"]] * claims + near["i"]
    shape = (len(owner), sets * claims)
    graph = csr_matrix((np.ones(len(near), dtype=bool), (near["j"], columns)), shape=shape)
    matched = maximum_bipartite_matching(graph, perm_type="column") >= 0
    counts: Array = np.bincount(owner[matched], minlength=sets).astype(np.int64)
    return counts

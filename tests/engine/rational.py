"""The two sides of the maximum-margin problem in rational numbers: nothing rounds.

For points in general position: no two equal, in the plane no three on a line.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

Vector = tuple[Fraction, ...]


def exactly(rows):
    return [tuple(Fraction(float(z)) for z in row) for row in rows]


def augmented(x):
    return [(*row, Fraction(1)) for row in exactly(x)]


def dot(a: Vector, b: Vector) -> Fraction:
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))


def normals(chosen: list[Vector]) -> Vector:
    """A vector orthogonal to the D - 1 given ones."""
    if len(chosen) == 1:
        ((a, b),) = chosen
        return (-b, a)
    a, b = chosen
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def corners(points: list[Vector]):
    """(v, held): the rays of the arrangement, and the points whose hyperplanes meet there."""
    for held in combinations(range(len(points)), len(points[0]) - 1):
        v = normals([points[i] for i in held])
        yield v, held
        yield tuple(-z for z in v), held


def cones(points: list[Vector]) -> set[tuple[bool, ...]]:
    """The side of every hyperplane, for each cone."""
    found = set()
    for v, held in corners(points):
        sides = [dot(v, p) for p in points]
        assert all(z != 0 for i, z in enumerate(sides) if i not in held), "not in general position"
        for free in product((False, True), repeat=len(held)):
            cone = [z > 0 for z in sides]
            for i, side in zip(held, free, strict=True):
                cone[i] = side
            found.add(tuple(cone))
    return found


def reach(g: Vector, cone: tuple[bool, ...], points: list[Vector]) -> Fraction:
    """The square of max g.u over |u| = 1 in the cone, 0 where that is negative."""
    walls = [p if on else tuple(-z for z in p) for p, on in zip(points, cone, strict=True)]

    def inside(u: Vector, held: tuple[int, ...] = ()) -> bool:
        return all(dot(w, u) >= 0 for i, w in enumerate(walls) if i not in held)

    if inside(g):
        return dot(g, g)
    best = Fraction(0)
    for i, w in enumerate(walls):
        share = dot(w, g) / dot(w, w)
        along = tuple(a - share * b for a, b in zip(g, w, strict=True))
        if share < 0 and inside(along, (i,)):
            best = max(best, dot(along, along))
    for v, held in corners(points):
        if dot(v, g) > 0 and inside(v, held):
            best = max(best, dot(v, g) ** 2 / dot(v, v))
    return best


def highest(x, y, lam) -> float:
    """max |h(u)| over |u| = 1, at least 1."""
    points = augmented(x)
    weight = [Fraction(float(m)) * int(label) for m, label in zip(lam, y, strict=True)]
    best = Fraction(1)
    for cone in cones(points):
        live = [(w, p) for w, p, on in zip(weight, points, cone, strict=True) if on]
        g = tuple(sum((w * p[k] for w, p in live), Fraction(0)) for k in range(len(points[0])))
        if dot(g, g) > best:
            best = max(best, reach(g, cone, points), reach(tuple(-z for z in g), cone, points))
    return 1.0 if best == 1 else 1 + float((best - 1) / (1 + Fraction(math.sqrt(best))))


def at_margin_one(x, y, net) -> float:
    """1/2 |theta|^2 of a two-layer network after rescaling to margin 1."""
    rows = exactly(
        [*w, b] for w, b in zip(net.weights[0].tolist(), net.biases[0].tolist(), strict=True)
    )
    (out,) = exactly(net.weights[1].tolist())
    q = min(
        int(label)
        * sum(a * max(Fraction(0), dot(row, p)) for a, row in zip(out, rows, strict=True))
        for p, label in zip(augmented(x), y, strict=True)
    )
    return float((sum(dot(row, row) for row in rows) + dot(out, out)) / 2 / q)

"""The marks over the points of a plane, and its legend: one glyph, one meaning.

A mark is a glyph of `plane.js`, at the place of its key in `MARKS`. What it means stands once, in
`page.plane.words`: the legend has a row of each glyph that is on the plane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.arrays import Array, Arrays, as_array
from explorer.engine.attacks.claims import Report
from explorer.engine.certificate import in_reach
from explorer.engine.data import Dataset
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.explanations.needed import Needed
from explorer.engine.number_words import percent
from explorer.engine.roster import by_key
from explorer.engine.scoring import Verdict, score
from explorer.page.frame import Frame, Proof
from explorer.page.plane.words import ROWS
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.fields import places_of
from explorer.research.runs import RADIUS, judged_places
from explorer.research.words import verdicts

# Keys by their number in the arrays `claims` and `marks`, as in `plane.js`.
MARKS = ("wrong", "found", "certified", "likely", "beside", "unknown", "fixed", "splits", "hit")
WRONG, FOUND, CERTIFIED, LIKELY, BESIDE, UNKNOWN, FIXED, SPLITS, HIT = map(float, range(len(MARKS)))
PLACED = {"other": "other", "dots": "cross", "rings": "ring", "diamonds": "diamond",
          "likely": "likely", "hands": "hand"}  # fmt: skip
PATHS = ("lines", "strong", "curve", "area", "spans")
BEHIND = ("links", "graph", "breakpoints", "neurons", "map")
FLAT = 0.08  # half height of a place on a line, of the half height of the plane; arbitrary
EDGE = 0.94  # of the plane's half width: there a claim beyond the plane is marked; arbitrary
ASIDE = 2.0  # times the radius of a match: a claim so near to a found point; arbitrary


def shares_of(x: Tensor, y: Tensor, axes: Axes) -> Array:
    """Return places (k, 2) on the plane; points of a line stand at the height of their label."""
    return axes.shares(places_of(x, y))


# --- claims -----------------------------------------------------------------------------------
def claim_marks(frame: Frame, axes: Axes, values: dict[str, Any]) -> Arrays:
    """Return a mark at each claim."""
    claims, truth = frame.attack.claims, frame.truth
    assert claims is not None  # a finished attack has some
    if truth is None or not truth.n:
        kinds = _untold(frame.attack.certainty, len(claims.x))
        return {"claims": _claim_rows(claims, kinds, axes, values)}
    match, verdict = matches(frame), frame.attack.verdict
    kinds = claim_kinds(claims, truth, match, None if verdict is None else verdict.radius)
    kinds[kinds == FOUND] = _met_kind(verdict)
    places = judged_places(frame.attack.state, truth, frame.certainty)
    if places is not None:  # certified by themselves
        holds, sure = (as_array(which) > 0 for which in places)
        kinds = np.where(holds, np.where(sure, CERTIFIED, LIKELY), WRONG)
    return truth_marks(claims, truth, kinds, match, None, axes, values)


def found_marks(frame: Frame, axes: Axes, values: dict[str, Any]) -> Arrays:
    """Return a mark at each point that an attack on its way has met, as its headline counts."""
    claims, match = frame.attack.claims, matches(frame)
    if claims is None:
        return {}
    met = claims.take(torch.from_numpy(match[match >= 0]))
    kind = _met_kind(frame.attack.verdict)
    return {"claims": _claim_rows(met, np.full(len(met.x), kind), axes, values)}


def _met_kind(made: Verdict | None) -> float:
    """Return the mark of a claim that recovers a point: another where chance may do as much."""
    return FOUND if verdicts.is_sure(made) else HIT


def shown_marks(
    claims: Report, truth: Dataset | None, axes: Axes, values: dict[str, Any]
) -> Arrays:
    """Return a mark at each claim of an attack of arena or landscape, and lines to its points."""
    if truth is None or not truth.n or not len(claims.x):
        return {}
    match: NDArray[np.int64] = score(truth, claims.x, claims.y, (RADIUS,)).matches[0].numpy()
    kinds = claim_kinds(claims, truth, match, RADIUS)
    return {
        **truth_marks(claims, truth, kinds, match, None, axes, values),
        **links_of(claims, truth, match, axes),
    }


def truth_marks(
    claims: Report, truth: Dataset, kinds: Array, match: NDArray[np.int64],
    made: Certainty | None, axes: Axes, values: dict[str, Any],
) -> Arrays:  # fmt: skip
    """Return a mark at each claim on a known truth, and at certified points that none met.

    Args:
        claims: the claims.
        truth: the points.
        kinds: of the claims (c,), numbers of `MARKS`.
        match: the claim of each point (n,), or -1.
        made: how certain the points are, or None.
        axes: of the plane.
        values: gets what is left at least without each certified one, in per cent.
    """
    rows = [_claim_rows(claims, kinds, axes, values)]
    said = [""] * len(kinds)
    if made is not None and len(match) == truth.n:
        sure = as_array(made.certain) > 0
        met = sure & (match >= 0)
        rows[0][match[met], 2] = CERTIFIED
        missed = sure & (match < 0)
        rows.append(_rows(truth.x[missed], truth.y[missed], CERTIFIED, axes))
        shares = [percent(radius) for radius in made.radius.tolist()]
        for i in np.flatnonzero(met):
            said[match[i]] = shares[i]
        said += [shares[i] for i in np.flatnonzero(missed)]
    values["certain"] = said
    return {"claims": np.concatenate(rows)}


def _untold(made: Certainty | None, count: int) -> Array:
    """Return the kinds of claims whose truth nobody told: likely by a threshold, or not known."""
    likely = np.zeros(count) if made is None else as_array(made.certain)
    return np.where(likely > 0, LIKELY, UNKNOWN)


def claim_kinds(
    claims: Report, truth: Dataset, match: NDArray[np.int64], radius: float | None
) -> Array:
    """Return the kinds of claims (c,) on a known truth; `radius` is that of a match."""
    count = len(claims.x)
    kinds = np.where(np.isin(np.arange(count), match), FOUND, WRONG)
    if radius is not None and len(match) == truth.n and count:
        x, y = as_array(claims.x), as_array(claims.y)
        apart = np.linalg.norm(x[:, None] - as_array(truth.x)[None], axis=2)
        near = (apart <= ASIDE * radius) & (y[:, None] == as_array(truth.y)[None])
        kinds[(kinds == WRONG) & (near & (match >= 0)).any(1)] = BESIDE
    return kinds


def traceless_points(frame: Frame, n: int) -> NDArray[np.bool_] | None:
    """Return which points (n,) leave no trace in the attacked weights; None where it is unknown."""
    own = by_key(frame.attack.name).own is not None  # weights of the attack's own training
    known = None if own or frame.aim is None else frame.aim.certificate
    reach = in_reach(known, n)
    return None if reach is None else ~reach.numpy()


def second_claims(frame: Frame) -> int:
    """Return how many claims of a judged attack are marked as second claims of a found point."""
    claims, truth, verdict = frame.attack.claims, frame.truth, frame.attack.verdict
    if claims is None or truth is None or verdict is None:
        return 0
    return count_again(claims, truth, matches(frame), verdict.radius)


def count_again(claims: Report, truth: Dataset, match: NDArray[np.int64], radius: float) -> int:
    """Return how many claims recover a point of the truth that another one recovered."""
    return int((claim_kinds(claims, truth, match, radius) == BESIDE).sum())


def matches(frame: Frame) -> NDArray[np.int64]:
    """Return the claim of each point (n,) within the radius of the verdict, or -1."""
    scores, verdict = frame.attack.scores, frame.attack.verdict
    if scores is None or verdict is None or verdict.radius not in scores[0].radii:
        return np.zeros(0, dtype=np.int64)
    found: NDArray[np.int64] = scores[0].matches[scores[0].radii.index(verdict.radius)].numpy()
    return found


def links(frame: Frame, axes: Axes) -> Arrays:
    """Return a line from each claim to the point that it met."""
    claims, truth = frame.attack.claims, frame.truth
    if claims is None or truth is None:
        return {}
    return links_of(claims, truth, matches(frame), axes)


def links_of(claims: Report, truth: Dataset, match: NDArray[np.int64], axes: Axes) -> Arrays:
    """Return a line from each claim to the point that it met, by the claim of each point (n,)."""
    met = np.flatnonzero(match >= 0)
    ends = shares_of(truth.x, truth.y, axes)[met]
    return {"links": np.column_stack([shares_of(claims.x, claims.y, axes)[match[met]], ends])}


# --- the explain stage ------------------------------------------------------------------------
def explain_marks(frame: Frame, axes: Axes, truth_shown: bool) -> Arrays:
    """Return what holds of points of the explain stage: which cannot be split, or are certified."""
    of_points = frame.question in ("split", "farthest", "certified")
    void = frame.certain is not None and frame.certain.is_void
    if not truth_shown or frame.explain is None or not (of_points or void):
        return {}
    state, truth = frame.explain.present, frame.truth
    if state.is_example:  # one mark a point: the dots beside the plane tell the rest
        return {}
    e, still = state.now, state.pinned
    rows = [_rows(e.x[~still], e.y[~still], SPLITS, axes)]
    if not still.all():  # else the headline speaks of all
        rows.append(_rows(e.x[still], e.y[still], FIXED, axes))
    if frame.certainty is not None and truth is not None and state.forced is not None:
        sure = frame.certainty.certain
        rows.append(_rows(truth.x[sure], truth.y[sure], CERTIFIED, axes))
    return {"marks": np.concatenate(rows)}


def proof_marks(frame: Frame, held: Proof, axes: Axes, values: dict[str, Any]) -> Arrays:
    """Return the places that must hold a point, and the disc."""
    made = held.needed
    arrays: Arrays = {}
    if made is not None and len(made.rows):
        arrays["places"] = place_rows(made, axes)
        values["placesAre"] = "place" if frame.is_told else "likely"
    if held.centre is not None:
        at = np.array([*held.centre, 0.0][:2])
        high = held.radius / axes.half
        if len(held.centre) == 1:
            high[1] = 1.0
        arrays["disc"] = np.array([[*axes.shares(at)[0], *high]])
    return arrays


def place_rows(made: Needed, axes: Axes) -> Array:
    """Return the places that must hold a point as `plane.js` takes them (p, 5)."""
    x, (half, y, _) = made.rows[:, :-3], made.rows[:, -3:].T
    at = shares_of(torch.from_numpy(x), torch.from_numpy(y), axes)
    wide = (half + made.reach)[:, None] / axes.half
    if x.shape[1] == 1:
        wide[:, 1] = FLAT
    return np.column_stack([at, wide, y])


def _claim_rows(claims: Report, kinds: Array, axes: Axes, values: dict[str, Any]) -> Array:
    """Return claims with their kinds (c, 3); one beyond the plane stands inside its edge.

    `values` gets the numbers of those: an arrow says that they are beyond.
    """
    at = shares_of(claims.x, claims.y, axes)
    beyond = np.abs(at) > 1
    values["beyond"] = np.flatnonzero(beyond.any(axis=1)).tolist()
    return np.column_stack([np.where(beyond, np.clip(at, -EDGE, EDGE), at), kinds])


def _rows(x: Tensor, y: Tensor, kind: float, axes: Axes) -> Array:
    return np.column_stack([shares_of(x, y, axes), np.full(len(x), kind)])


# --- the legend -------------------------------------------------------------------------------
def legend(
    arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any],
    names: Sequence[tuple[str, str]] = (),
) -> list[list[str]]:  # fmt: skip
    """Return a row for each glyph that these arrays draw: its key, its name, what it means.

    `names`: what shapes and candidates are here, of `Shapes`.
    """
    keys: list[str] = []
    if "points" in arrays:
        traceless = arrays["points"][:, 4] > 0
        plain = "weighted" if (arrays["points"][:, 3] >= 0).any() else "point"
        plain = "held" if (arrays["points"][:, 5] >= 0).any() else plain
        keys += ["truth" if values.get("hollow") else plain] * bool((~traceless).any())
        keys += ["traceless"] * bool(traceless.any())
    if "candidates" in arrays:
        used = arrays["candidates"][:, 4] > 0
        keys += ["candidate"] * bool(used.any()) + ["unused"] * bool((~used).any())
    kinds = {int(k) for name in ("claims", "marks") if name in arrays for k in arrays[name][:, 2]}
    keys += [key for i, key in enumerate(MARKS) if i in kinds]
    if "places" in arrays:
        keys.append(values["placesAre"])
    keys += ["disc"] * ("disc" in arrays)
    keys += [key for name, key in PLACED.items() if name in arrays and key not in keys]
    told = {PLACED.get(name, name): (words, f"{words[0].upper()}{words[1:]}.")
            for name, words in names if words}  # fmt: skip
    keys += [name for name in PATHS if name in arrays]
    rows = [[key, *told.get(key, ROWS[key])] for key in keys]
    hidden = {"map"} if "energy" in arrays else set()
    behind = [key for key in BEHIND if key in arrays and key not in hidden]
    behind += ["trail"] * ("trail" in values and "candidates" in arrays)
    if "map" in arrays and "energy" not in arrays:
        behind += ["boundary", *["margins"] * bool(values.get("margins"))]
    return rows + [[key, *ROWS[key]] for key in behind]

"""A frame of the page as the plane draws it: arrays and values, as `view/plane.js` takes them.

Pure numpy and torch; no widgets. Places are shares of the half sizes: see `research.pictures.axes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from explorer.engine.arrays import Array, Arrays, as_array
from explorer.engine.attacks.attack import OwnModel
from explorer.engine.attacks.claims import MERGE_RADIUS, Report
from explorer.engine.attacks.shapes import Shapes
from explorer.engine.certificate import holds_margin
from explorer.engine.data import Dataset
from explorer.engine.energy.starts import Parts
from explorer.engine.explanations.certainty import RadiusMap
from explorer.engine.network import Network
from explorer.engine.roster import AttackState, by_key
from explorer.page.frame import LAYERS, Frame
from explorer.page.plane import marks
from explorer.page.plane.marks import shares_of
from explorer.research.explained import Explained
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.fields import (
    FINE_SIZE,
    GRAPH,
    MAP_SIZE,
    breakpoints,
    graph,
    map_size,
    margin_map,
    neuron_lines,
    samples,
    shape_arrays,
    text_rows,
)
from explorer.research.pictures.shades import radius_shades, shades

EVEN = 0.6  # share of points that are drawn alike, to be seen from afar; arbitrary
PLAIN = -1.0  # in place of a share: a point without a multiplier, or of which none is told


@dataclass(frozen=True)
class Look:
    """What a visitor chose to see.

    Attributes:
        layers: what is drawn behind the points, of `LAYERS`.
        truth_shown: whether the points that an attack looks for are shown.
        running: whether the run goes on: the map is coarser, and there are no results yet.
    """

    layers: tuple[str, ...] = tuple(LAYERS)
    truth_shown: bool = True
    running: bool = False


def network(frame: Frame) -> tuple[Network | OwnModel | None, float]:
    """Return the network to draw and the value that counts as its margin.

    Where an attack attacks a model of its own training, that is the one to draw.
    """
    if frame.proof is not None:  # a white plane: nothing but what is proven
        return None, 1.0
    own = _own_model(frame)
    if own is not None:
        return own, 1.0
    if frame.is_aimed and frame.target is not None:
        return frame.target.net, 1.0
    if frame.training.state is None or frame.stage == "draw":
        return None, 1.0
    return frame.training.state.net, margin_unit(frame.training.state.q)


def margin_unit(q: Tensor) -> float:
    """Return the output that a map shows as one margin, from the margins of the points (n,).

    Before the classes are separated there is no margin: the median keeps the map readable.
    """
    if not len(q):
        return 1.0
    low = float(q.min())
    return max(low if low > 0 else float(q.abs().median()), 1e-300)


def _own_model(frame: Frame) -> OwnModel | None:
    """Return the attacked model where it is not the network of the page."""
    own, state = by_key(frame.attack.name).own, frame.attack.state
    if frame.stage == "attack" and own is not None and state is not None:
        return own.model(state)
    held = frame.handle
    if held is None or by_key(held.problem.of.attack).own is None:
        return None
    return cast(OwnModel, held.problem.target)


def backdrop(net: Network | OwnModel, unit: float, axes: Axes, look: Look) -> Arrays:
    """Return what stands behind the points: map and lines of neurons; on a line the graph."""
    made: Arrays = {}
    if not isinstance(net, Network):
        return _own_backdrop(net, axes, look)
    if net.d == 1:
        made["graph"] = graph(net, axes, unit)
        if "lines" in look.layers:
            made["breakpoints"] = breakpoints(net, axes)
        return made
    if "map" in look.layers:
        made["map"] = margin_map(net, axes, unit, map_size(net, look.running))
    if "lines" in look.layers:
        made["neurons"] = neuron_lines(net, axes)
    return made


class KeptBackdrop:
    """What stands behind the points: the same arrays while network and look are the same."""

    def __init__(self) -> None:
        """Nothing was drawn yet."""
        self._of: tuple[Any, ...] = (None,)
        self._made: Arrays = {}

    def of(self, net: Network | OwnModel | None, unit: float, axes: Axes, look: Look) -> Arrays:
        """Return it for a network, whose map shows `unit` as one margin; nothing for no network."""
        of = (net, unit, axes, look.layers, look.running)
        if self._of[0] is not net or self._of[1:] != of[1:]:
            self._of, self._made = of, {} if net is None else backdrop(net, unit, axes, look)
        return self._made


def _own_backdrop(model: OwnModel, axes: Axes, look: Look) -> Arrays:
    """Map or graph of a model without a margin: its usual output counts as one."""
    if model.d == 1:
        shares = np.linspace(-1, 1, GRAPH)
        x = torch.from_numpy(axes.x[0] + shares * axes.x[1])
        heights = _usual(model.outputs(x[:, None]).numpy())
        return {"graph": np.column_stack([shares, (heights - axes.y[0]) / axes.y[1]])}
    if "map" not in look.layers:
        return {}
    size = MAP_SIZE if look.running else FINE_SIZE
    values = model.outputs(samples(size, axes)).numpy().reshape(size, size)
    return {"map": _usual(values)}


def _usual(values: Array) -> Array:
    """Return values as shares of their median size."""
    return values / max(float(np.median(np.abs(values))), 1e-300)


def scene(
    frame: Frame, axes: Axes, look: Look, shapes: Shapes, behind: Arrays
) -> tuple[Arrays, dict[str, Any]]:
    """Return arrays and values of one frame of the plane, empty ones left out.

    Args:
        frame: the moment to show.
        axes: the part of the data's space that is shown.
        look: what the visitor chose to see.
        shapes: what the stage draws beside points and candidates (`plane.shapes`).
        behind: the arrays of `backdrop`.
    """
    arrays = dict(behind)
    shows_margins = "margins" in look.layers and frame.stage in LAYERS["margins"]
    values = ground(axes, frame.dataset.d == 1, hollow=frame.is_aimed, margins=shows_margins)
    if frame.proof is not None:
        arrays |= marks.proof_marks(frame, frame.proof, axes, values)
    shown = look.truth_shown if frame.proof is None else frame.proof.revealed
    if shown or not frame.is_aimed:
        arrays["points"] = _points(frame, axes, look)
    arrays |= _candidates(frame, axes, look, values)
    if look.truth_shown and _is_finished(frame, look):
        arrays |= marks.links(frame, axes)
    if frame.sketch is not None:
        values["corners"] = True
    if frame.other_set is not None and look.truth_shown:
        other = frame.other_set
        arrays["other"] = np.column_stack([shares_of(other.x, other.y, axes), as_array(other.y)])
    arrays |= _energy(frame, axes, values)
    arrays |= marks.explain_marks(frame, axes, look.truth_shown)
    if frame.question == "split" and frame.explain is not None:
        values |= _apart(frame.explain.present, axes)
    return whole(arrays, values, shapes, axes)


def _apart(state: Explained, axes: Axes) -> dict[str, Any]:
    """Return where a point stood that is shown as two, and where the two stand; {} for none."""
    if state.slide is None or not state.is_example:
        return {}
    e, i = state.slide.before, state.slide.i
    places = [shares_of(e.x[[i]], e.y[[i]], axes)]
    places.append(shares_of(state.now.x[state.halves], state.now.y[state.halves], axes))
    return {"apart": np.concatenate(places).ravel().tolist()}


def whole(
    arrays: Arrays, values: dict[str, Any], shapes: Shapes, axes: Axes
) -> tuple[Arrays, dict[str, Any]]:
    """Return a frame with its shapes, texts and legend; empty arrays are left out."""
    drawn = {**arrays, **shape_arrays(shapes, axes)}
    arrays = {name: array for name, array in drawn.items() if array.size}
    more = {"legend": marks.legend(arrays, values, shapes.names), "texts": text_rows(shapes, axes)}
    return arrays, {**values, **more}


def ground(axes: Axes, flat: bool, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return the values that each frame of the plane has."""
    return {"view": [axes.x[0], axes.y[0], axes.x[1], axes.y[1]], "flat": flat, **values}


def _energy(frame: Frame, axes: Axes, values: dict[str, Any]) -> Arrays:
    """Return a map under the points, in place of that of the network: of an energy, or of radii."""
    if frame.certain is not None and not frame.certain.is_void:
        return _radii(frame.certain.map, axes, values)
    drawn = frame.point_map if frame.stage == "landscape" else None
    if drawn is None or drawn.values is None:
        return {}
    left, right, bottom, top = drawn.box
    values["energyBox"] = axes.shares([[left, bottom], [right, top]]).ravel().tolist()
    return {"energy": shades(drawn.values, False, drawn.span)}


def _radii(drawn: RadiusMap, axes: Axes, values: dict[str, Any]) -> Arrays:
    """Return the larger radius of both labels; on a line that of each label in its own half."""
    flat = drawn.values.ndim == 2
    (left, *below), (right, *above) = drawn.low.tolist(), drawn.high.tolist()
    bottom, top = (-axes.y[1], axes.y[1]) if flat else (below[0], above[0])
    values["energyBox"] = axes.shares([[left, bottom], [right, top]]).ravel().tolist()
    return {"energy": radius_shades(drawn)}


# --- points and candidates --------------------------------------------------------------------
def _weights(lam: Array | None, n: int) -> Array:
    """Return the share of the largest multiplier, or PLAIN for all."""
    if lam is None or not n or lam.max() <= 0:
        return np.full(n, PLAIN)
    shares: Array = np.clip(lam / lam.max(), 0, 1)
    return shares


def _points(frame: Frame, axes: Axes, look: Look) -> Array:
    data = frame.truth if frame.is_aimed and frame.truth is not None else frame.dataset
    made = frame.training.certificate
    known = made is not None and frame.stage == "train" and len(made.lam) == data.n
    lam = as_array(made.lam) if known and made is not None else None
    return point_rows(
        data, axes, lam, _traceless(frame, look, data.n), _margin_holders(frame, data.n)
    )


def _margin_holders(frame: Frame, n: int) -> Array | None:
    """Which points (n,) hold the margin, by the count of the headline; None where none is told."""
    state = frame.training.state
    if frame.stage != "train" or state is None or len(state.q) != n:
        return None
    return holds_margin(state.q).numpy().astype(float)


def point_rows(
    data: Dataset, axes: Axes, lam: Array | None = None, traceless: Array | None = None,
    held: Array | None = None,
) -> Array:  # fmt: skip
    """Return the points as `plane.js` takes them (n, 6).

    They are larger where they hold the margin, by `held`; else where they have more of `lam`.
    """
    place, y = shares_of(data.x, data.y, axes), as_array(data.y)
    none = np.zeros(data.n) if traceless is None else traceless
    large = np.full(data.n, PLAIN) if held is None else held
    return np.column_stack([place, y, _weights(lam, data.n), none, large])


def _traceless(frame: Frame, look: Look, n: int) -> Array:
    """Which points (n,) are shown to leave no trace; while an attack is on its way none is."""
    told = frame.is_aimed and (frame.stage != "attack" or _is_finished(frame, look))
    gone = marks.traceless_points(frame, n) if told else None
    return np.zeros(n) if gone is None else gone.astype(float)


def _is_finished(frame: Frame, look: Look) -> bool:
    """Whether results are shown: an attack took steps, rests, and was judged as it stands."""
    attack = frame.attack
    return (
        frame.stage == "attack" and not look.running and attack.state is not None
        and attack.state.t > 0 and attack.claims is not None and attack.judged is attack.state
    )  # fmt: skip


OF_A_START = 4  # candidates of a start that are drawn in full size; more are smaller; arbitrary
PALE = 0.35  # of a candidate of a start, from 0 of no claim to 1; arbitrary, as in plane.js


def _candidates(frame: Frame, axes: Axes, look: Look, values: dict[str, Any]) -> Arrays:
    """Return candidates of the run, or points of the present explanation, or claims of the arena.

    The landscape shows those at the handle of its triangle.
    """
    shown: AttackState | Report | Any = frame.claims or frame.candidates
    if frame.proof is not None:
        rows = frame.proof.points
        if rows is None:
            return {}
        x, y, lam = (torch.from_numpy(v) for v in (rows[:, :-2], rows[:, -2], rows[:, -1]))
        shown = Report(x, y, lam)
    elif frame.stage == "explain" and frame.explain is not None:
        shown = frame.explain.present.now
    elif frame.stage == "attack" and frame.attack.state is not None:
        values["trail"] = frame.attack.state.t
    elif frame.rolled and frame.starts is not None:
        values["trail"] = len(frame.starts.trail)
    if "trails" not in look.layers:
        values.pop("trail", None)
    if shown is None:
        return {}
    used = np.ones(len(shown.y))
    claims = frame.attack.claims if _is_finished(frame, look) else None
    if claims is not None:
        used = _claimed_mask(frame.attack.state, claims)
    of_start = None if frame.handle is None or look.running else frame.handle.claims
    if of_start is not None:
        used = _claimed_mask(shown, of_start)
    made: Arrays = {"candidates": candidate_rows(shown, axes, used)}
    if frame.handle is not None and not frame.rolled and frame.handle.end < 0:
        made["candidates"][:, 3] = min(1.0, OF_A_START / len(used))
        made["candidates"][:, 4] = PALE  # they are many, and none claims a point
    if claims is not None and look.truth_shown and len(claims.x):
        made |= marks.claim_marks(frame, axes, values)
    elif look.running and look.truth_shown and frame.stage == "attack":
        made |= marks.found_marks(frame, axes, values)
    elif of_start is not None and look.truth_shown:
        made |= marks.shown_marks(of_start, frame.truth, axes, values)
    elif frame.proof is not None:
        made["candidates"][:, 3] = EVEN  # whether a point is needed is asked, not what it carries
    elif frame.claims is not None:
        made["candidates"][:, 3] = PLAIN  # of several attacks: no multiplier compares
        if look.truth_shown:
            made |= marks.shown_marks(frame.claims, frame.truth, axes, values)
    return made


def candidate_rows(shown: Any, axes: Axes, used: Array) -> Array:  # noqa: ANN401 - has x, y, lam
    """Return candidates as `plane.js` takes them (m, 5); `used` (m,): 0 of no claim to 1."""
    y, lam = as_array(shown.y), as_array(shown.lam)
    size = np.maximum(_weights(lam, len(y)), 0)
    return np.column_stack([shares_of(shown.x, shown.y, axes), y, size, used])


@lru_cache(maxsize=1)  # the same array, which is then not sent again, while a hand moves the start
def start_rows(parts: Parts, axes: Axes) -> Array:
    """Return where each candidate stands at truth, unseen points and noise (m, 6)."""
    corners = (parts.truth, parts.heldout, parts.noise)
    return np.column_stack([shares_of(x, parts.y, axes) for x in corners])


def _claimed_mask(
    state: Any,  # noqa: ANN401 - of the attack's own class
    claims: Report,
) -> Array:
    """Which candidates (m,) are part of a claim: of its label, and within the radius of merging."""
    x, places = as_array(state.x), as_array(claims.x)
    apart = np.linalg.norm(x[:, None] - places[None], axis=2)
    apart[as_array(state.y)[:, None] != as_array(claims.y)[None]] = np.inf
    near = (apart <= MERGE_RADIUS * (1 + 1e-9)).any(1)
    used: Array = (near & (as_array(state.lam) > 0)).astype(float)
    return used

"""One moment of a page: what each stage shows, and the stages there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.arrays import Array
from explorer.engine.attacks.claims import Report
from explorer.engine.attacks.target import Target
from explorer.engine.certificate import Certificate, Light, certify
from explorer.engine.controls import Controls
from explorer.engine.data import Dataset
from explorer.engine.energy.landscape import StartLandscape, Weights
from explorer.engine.energy.points import check_energy
from explorer.engine.exact.finish import Finished
from explorer.engine.explanations.certainty import Certainty, RadiusMap
from explorer.engine.explanations.cone import Bound, Cone
from explorer.engine.explanations.needed import Needed
from explorer.engine.known import Known
from explorer.engine.margin import Loss
from explorer.engine.network import Network
from explorer.engine.number_words import PLAIN
from explorer.engine.roster import DEFAULT, AttackState
from explorer.engine.scoring import Score, Verdict
from explorer.engine.status import Status
from explorer.engine.store import Run
from explorer.engine.training import TrainState
from explorer.page.history import History, Timeline
from explorer.research.census import Census
from explorer.research.explained import Explained
from explorer.research.grid import Problem
from explorer.research.grid.landscape import Arrivals, Runs


@dataclass(frozen=True, eq=False)
class Candidates:
    """Points of the landscape stage. At first they are the truth.

    Attributes:
        target: its weights are to be explained.
        truth: their first places; labels never change.
        x: where they are (n, d).
        mapped: the point whose map is shown.
    """

    target: Target
    truth: Dataset
    x: Tensor
    mapped: int = 0

    @property
    def y(self) -> Tensor:
        """Labels (n,), float64."""
        return self.truth.y.double()


def first_candidates(target: Target, truth: Dataset) -> Candidates:
    """Return candidates at the truth. ValueError for weights that have no energy."""
    x = truth.x.double()
    check_energy(target.net, x, truth.y, 0.0, several=target.net.d > 1)
    return Candidates(target, truth, x)


class Passed(NamedTuple):
    """Where a run was after t steps: place on the triangle, energy, points recovered.

    Its claims are known at the end of a run.
    """

    place: Weights
    energy: float
    t: int
    found: int = 0
    claims: Report | None = None


@dataclass(frozen=True, eq=False)
class Handle:
    """Where attacks start: a place of the triangle of truth, unseen points and noise.

    Attributes:
        problem: the grid whose starts these are, its target and the three sets that are mixed.
        landscape: the energy of every start.
        weights: the place of the handle: shares of truth, unseen points and noise.
        candidates: the points there, or where a run from there has brought them.
        energy: theirs.
        rough: whether that is read from the map, as where a drag passes.
        trail: of that run, the places so far, the start first.
        line: of that run, the states so far.
        shown: that on the plane; None where there is no run.
        usual: candidates that the attack stage takes.
        energies: of all starts on a lattice (side, side), row noise and column truth; None before
            they are known.
        finest: whether no finer lattice is computed.
        arrivals: where the runs from all places ended; None while none has.
        census: what was counted of the starts, where that was asked for after the runs.
        counting: of a census under way: its starts, and those that have ended.
        end: number of its end whose points are shown; -1 for none.
        runs: these runs.
        best: whether the run from here was shown as the best of them, and not chosen by hand.
    """

    problem: Problem
    landscape: StartLandscape
    weights: Weights
    candidates: Report
    energy: float
    rough: bool = field(default=False, kw_only=True)
    trail: tuple[Passed, ...] = ()
    line: Timeline[AttackState] = field(default_factory=Timeline)
    shown: AttackState | None = None
    usual: int = 0
    energies: NDArray[np.float64] | None = None
    finest: bool = True
    arrivals: Arrivals | None = None
    census: Census | None = None
    counting: tuple[int, int] | None = None
    end: int = -1
    runs: Runs | None = None
    best: bool = False

    @property
    def rests(self) -> bool:
        """Return whether the start or the end of a run is shown, and nothing on the way."""
        return not self.trail or self.t in (self.trail[0].t, self.trail[-1].t)

    @property
    def t(self) -> int:
        """Return the step of the run that is shown; 0 where there is none."""
        return 0 if self.shown is None else self.shown.t

    @property
    def claims(self) -> Report | None:
        """Return the claims of a run that has ended and whose end is shown."""
        return self.trail[-1].claims if self.t and self.t == self.trail[-1].t else None

    @property
    def trail_so_far(self) -> tuple[Passed, ...]:
        """Return the trail up to the step that is shown."""
        return tuple(one for one in self.trail if one.t <= self.t)


@dataclass(frozen=True, eq=False)
class PointMap:
    """What the plane shows under the points while one of them moves or splits.

    Attributes:
        values: energies (h, w), first row on top; None where the map is not one of the plane.
        box: (left, right, bottom, top) of these, in units of the data.
        span: lowest and highest energy of the colours.
        lowest: the place of the least one, or None.
        segment: ends (2, 2) of the line along which the halves of a point are free, or None.
        archetype: of the map of a point, by name, or "forced" where the margin alone keeps it in
            its place; of a split "one", "two", or "nothing" to be split. "" where it has none.
    """

    values: NDArray[np.float64] | None
    box: tuple[float, float, float, float]
    span: tuple[float, float]
    lowest: tuple[float, float] | None = None
    segment: NDArray[np.float64] | None = None
    archetype: str = ""


Stage = str
# Title and tooltip. All but the first two look at attacked weights.
STAGES: dict[Stage, tuple[str, str]] = {
    "draw": ("1 Draw", "Draw points of two classes, on the plane up to four"),
    "train": ("2 Train", "Train a network on them"),
    "attack": ("3 Attack", "Recover them from its weights"),
    "explain": ("4 Explain", "Which other points explain the same weights"),
    "landscape": ("5 Landscape", "Run an attack from all starts at once, and see where it ends"),
    "arena": ("6 Compare", "Set several attacks side by side on these weights"),
}
TRAINED: tuple[Stage, ...] = tuple(STAGES)[1:]  # those that look at a network
# What may be drawn behind the points, each with the stages that have it.
LAYERS: dict[str, tuple[Stage, ...]] = {
    "map": TRAINED,
    "margins": ("train", "explain"),
    "lines": TRAINED,
    "trails": ("attack", "landscape"),
}
BEFORE: tuple[Stage, ...] = ("draw", "train")


@dataclass(frozen=True, eq=False)
class Shown:
    """Points on the plane beside the truth, such as claims on `target`, with what is said of them.

    `title`: "" where the sentence stands below the question. `other`: whether they are another set
    that explains the weights, and claim nothing. `runs`: those that are compared. `fold`: numbers.
    """

    target: Target
    sentence: str
    claims: Report | None = None
    title: str = ""
    other: bool = False
    runs: tuple[dict[str, Any], ...] = ()
    fold: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Certain:
    """The certified radius around every place of the plane, so far.

    Attributes:
        target: the weights.
        map: the radii.
        done: whether the map is whole.
    """

    target: Target
    map: RadiusMap
    done: bool = False

    @property
    def most(self) -> float:
        """Return the largest radius that is known, a share of |theta|."""
        known = self.map.values[np.isfinite(self.map.values)]
        return float(known.max(initial=self.map.least))

    @property
    def is_void(self) -> bool:
        """Return whether the whole map has no colour."""
        return self.done and self.most < PLAIN


@dataclass(frozen=True, eq=False)
class Proof:
    """The last act: where a point must be, by the weights alone, and a region that is forbidden.

    Attributes:
        target: the weights.
        needed: the places so far; None before the first.
        cone: of all explanations, which a disc is asked of.
        revealed: whether the points of the weights are shown again.
        centre: of the disc (d,) in which no point may be; None for no disc.
        radius: of the disc, in units of the data; 0 before there was one.
        refit: the best explanation without points in the disc.
        points: of it (c, d + 2): places, labels, multipliers.
        exact: whether it is searched to the end.
        whole: whether the places are all, told before the cone by who kept them.
    """

    target: Target
    needed: Needed | None = None
    cone: Cone | None = None
    revealed: bool = False
    centre: tuple[float, ...] | None = None
    radius: float = 0.0
    refit: Bound | None = None
    points: Array | None = None
    exact: bool = True
    whole: bool = False

    @property
    def done(self) -> bool:
        """Return whether all places are known; where there is none, the best set is drawn then."""
        return self.cone is not None or (self.whole and self.places > 0)

    @property
    def places(self) -> int:
        """Return how many places are known to need a point."""
        return 0 if self.needed is None else len(self.needed.rows)

    @property
    def limit(self) -> float:
        """Return what an explanation may leave, a share of |theta|; 0 before it is known."""
        return 0.0 if self.needed is None else self.needed.limit

    @property
    def disc(self) -> tuple[float, ...]:
        """Return centre and radius of the disc; none for no disc."""
        return () if self.centre is None else (*self.centre, self.radius)


H = TypeVar("H", Shown, Certain, Proof)  # what is of some weights
# What Explain answers: which points split, how certain is a place, which set is farthest, which
# points are certified, where must a point be; "" in another stage.
Asked = Literal["", "split", "map", "farthest", "certified", "places"]


@dataclass(frozen=True, eq=False)
class Training:
    """The train stage: a run, and the newest certificate of it.

    Attributes:
        state: of the run.
        certificate: of the weights of `certified`; None where there is none yet.
        certified: the state that was certified, this one or an earlier one of the run.
        weight_decay: the setting of the run; training then ends at no KKT point.
        loss: likewise, that the decay stands beside.
        given: whether the run began at weights of a file, which came without their points.
        plan: the run that makes these weights again, without states; None where points or settings
            changed in between, or they came in a file.
        before: the state at which training on these points began: a second snapshot.
        kept: rows of points that the run was trained on and that are still among these, moved or
            not, since it took its last step; None where that step was on these.
        growth: share by which the normalised margin grew over the last nine tenths of the steps up
            to `certified`; None where they are few, or that is not known.
        ended: the state at which the run was trained to the end, and what is known of it.
    """

    state: TrainState | None = None
    certificate: Certificate | None = None
    certified: TrainState | None = None
    weight_decay: float = 0.0
    loss: Loss = "exponential"
    given: bool = False
    plan: Run | None = None
    before: TrainState | None = None
    kept: frozenset[int] | None = None
    growth: float | None = None
    ended: tuple[TrainState, Finished] | None = None

    @property
    def t(self) -> int:
        """Return the steps of the run; 0 where there is none."""
        return 0 if self.state is None else self.state.t

    @property
    def is_exact(self) -> bool:
        """Return whether the newest certificate says that the points explain all of the weights."""
        return self.certificate is not None and self.certificate.light is Light.EXACT


@dataclass(frozen=True, eq=False)
class Aim:
    """What all stages after training look at.

    Attributes:
        net: the attacked weights, as they were trained.
        target: the same at margin 1, and all that an attack may see.
        truth: the points that they were trained on; none where nobody told them.
        controls: sets that stand for chance; none without a truth.
        certificate: of the weights on the truth; None where no theorem speaks of them.
        certainty: of each point of the truth, whatever an attack claims, once it is computed.
        needed: where a point must be, once it was asked.
    """

    net: Network
    target: Target
    truth: Dataset
    controls: Controls
    certificate: Certificate | None = None
    certainty: Certainty | None = None
    needed: Needed | None = None

    @property
    def heldout(self) -> Dataset:
        """Return the control from which attacks may start."""
        return self.controls.sets[0] if len(self.controls) else self.truth


@dataclass(frozen=True, eq=False)
class Attacking:
    """The attack stage.

    Attributes:
        name: key of the attack in the roster.
        state: of its run.
        mix: of its start: mix_truth, mix_data.
        scores: of the truth, of the control.
        verdict: on its claims.
        claims: what it claimed when it was judged.
        judged: what scores, verdict and claims are of: this state or an earlier one of the run.
        other: another set that explains the weights.
        seed: from which the run was begun; None where it was made elsewhere.
        certainty: of the claims, where nobody told the truth, once it is computed.
        known: what the attacker was granted of the points when its claims were judged, or None.
        curves: the drawn curves that it was granted, the present one last: x and y of each corner.
        sketch: corners (x, y) of the curve that is being drawn; None while none is.
    """

    name: str = DEFAULT
    state: AttackState | None = None
    mix: tuple[float, float] = (0.0, 0.0)
    scores: tuple[Score, Score] | None = None
    verdict: Verdict | None = None
    claims: Report | None = None
    judged: AttackState | None = None
    other: Shown | None = None
    seed: int | None = None
    certainty: Certainty | None = None
    known: Known | None = None
    curves: History[tuple[float, ...]] = field(default_factory=lambda: History(()))
    sketch: tuple[tuple[float, float], ...] | None = None

    @property
    def t(self) -> int:
        """Return the steps of the run; 0 where there is none."""
        return 0 if self.state is None else self.state.t

    def without_run(self, name: str) -> Attacking:
        """Return the stage with an attack chosen that has not begun."""
        return Attacking(name, mix=self.mix, other=self.other, curves=self.curves)


@dataclass(frozen=True, eq=False)
class Frame:
    """All that is on screen at one moment, with a part for each stage; the parts agree."""

    stage: Stage
    drawing: History[Dataset]
    training: Training = Training()
    aim: Aim | None = None
    attack: Attacking = Attacking()
    explain: History[Explained] | None = None
    arena: Shown | None = None
    landscape: History[Candidates] | None = None
    starts: Handle | None = None
    no_starts: str = ""  # why there are none, where the attack itself refused
    map_kind: str = "starts"  # what moves in the landscape: a key of `questions.MAPS`
    point_map: PointMap | None = None
    radii: Certain | None = None  # what the explain stage says of every place
    asked: Proof | None = None  # the last act of the explain stage, while it is on
    status: Status = Status.RUNNING  # of the run of this stage

    @property
    def dataset(self) -> Dataset:
        """Return the drawn points."""
        return self.drawing.present

    @property
    def target(self) -> Target | None:
        """Return the attacked weights."""
        return None if self.aim is None else self.aim.target

    @property
    def truth(self) -> Dataset | None:
        """Return what the attacked weights were trained on."""
        return None if self.aim is None else self.aim.truth

    @property
    def heldout(self) -> Dataset | None:
        """Return the control from which attacks may start."""
        return None if self.aim is None else self.aim.heldout

    @property
    def certainty(self) -> Certainty | None:
        """Return how certain each point of the truth is, once that is known."""
        return None if self.aim is None else self.aim.certainty

    @property
    def is_told(self) -> bool:
        """Return whether somebody told the points of the attacked weights."""
        return self.truth is not None and self.truth.n > 0

    @property
    def is_aimed(self) -> bool:
        """Return whether this stage looks at the attacked weights rather than at training."""
        return self.stage not in BEFORE

    @property
    def handle(self) -> Handle | None:
        """Return the handle of the starts, where the landscape shows it."""
        return self.starts if self.stage == "landscape" and self.map_kind == "starts" else None

    @property
    def is_answered(self) -> bool:
        """Return whether the runs or the census of the landscape have come to their result."""
        held = self.starts if self.map_kind == "starts" else None
        if held is None:
            return False
        runs = held.arrivals
        ended = runs is not None and runs.ended == runs.total
        return len(held.trail) > 1 or ended or held.census is not None

    @property
    def rolled(self) -> bool:
        """Return whether the landscape shows a run from its handle."""
        return self.handle is not None and bool(self.handle.trail)

    @property
    def passing(self) -> bool:
        """Return whether a drag of the handle passes this place, and has not come to rest."""
        return self.handle is not None and self.handle.rough

    @property
    def newest(self) -> bool:
        """Return whether the attacked weights are those of the present network."""
        train = self.training.state
        return self.aim is not None and train is not None and self.aim.net is train.net

    @property
    def sketch(self) -> tuple[tuple[float, float], ...] | None:
        """Return the curve that is being drawn, in the stages of attacks; None while none is."""
        return self.attack.sketch if self.stage in ("attack", "landscape") else None

    def _of_weights(self, stage: Stage, held: H | None) -> H | None:
        """Return what this stage alone shows, if it is of the attacked weights."""
        shown = self.stage == stage and held is not None and held.target is self.target
        return held if shown else None

    @property
    def beside(self) -> Shown | None:
        """Return what attack and arena draw beside the truth, if it is of these weights."""
        shown = {"arena": self.arena, "attack": self.attack.other}.get(self.stage)
        return self._of_weights(self.stage, shown)

    @property
    def claims(self) -> Report | None:
        """Return the claims that the arena draws on the plane, if they are of these weights."""
        return None if self.beside is None or self.beside.other else self.beside.claims

    @property
    def candidates(self) -> Report | AttackState | None:
        """Return what the plane fills beside the truth in the stages with starts."""
        if self.stage == "landscape" and self.map_kind == "starts":
            return None if self.starts is None else self.starts.candidates
        if self.stage == "landscape" and self.landscape is not None:
            points = self.landscape.present
            return Report(points.x, points.y, torch.ones_like(points.y))
        return self.attack.state if self.stage == "attack" else None

    @property
    def other_set(self) -> Report | None:
        """Return another set that explains the attacked weights, if it is shown."""
        return self.beside.claims if self.beside is not None and self.beside.other else None

    @property
    def certain(self) -> Certain | None:
        """Return the map of radii, if the explain stage shows one of the attacked weights."""
        return self._of_weights("explain", self.radii)

    @property
    def proof(self) -> Proof | None:
        """Return the last act, if the explain stage shows it of the attacked weights."""
        return self._of_weights("explain", self.asked)

    @property
    def question(self) -> Asked:
        """Return what the explain stage answers: one question at a time."""
        if self.stage != "explain":
            return ""
        if self.proof is not None:
            return "places"
        if self.certain is not None:
            return "map"
        now = None if self.explain is None else self.explain.present
        if now is not None and now.far is not None:
            return "farthest"
        return "split" if now is None or now.forced is None else "certified"

    @property
    def state(self) -> TrainState | AttackState | None:
        """Return the state of the run on screen; stages after the landscape have none."""
        if self.stage in BEFORE:
            return self.training.state
        if self.handle is not None:
            return self.handle.shown
        return self.attack.state if self.stage == "attack" else None

    @property
    def t(self) -> int:
        """Return the steps of the present stage's run; 0 where there is none."""
        return 0 if self.state is None else self.state.t


@dataclass(frozen=True, eq=False)
class Moment:
    """What a page held at one moment: an undo, a branch, or the end of a lesson brings it back.

    Attributes:
        frame: what was on screen.
        settings: of the session, by name.
        train: states of the training, where an edit of its points ended a run.
        attack: states of the attack, likewise.
    """

    frame: Frame
    settings: dict[str, Any]
    train: Timeline[TrainState] = field(default_factory=Timeline)
    attack: Timeline[AttackState] = field(default_factory=Timeline)

    @property
    def bytes(self) -> int:
        """Return how much memory its states take."""
        return self.train.bytes + self.attack.bytes


@dataclass(eq=False)
class Branch:
    """One line of time: a training run, and the attack begun from it."""

    name: str
    train: Timeline[TrainState] = field(default_factory=Timeline)
    attack: Timeline[AttackState] = field(default_factory=Timeline)
    last: Moment | None = None  # where it was left, with settings of the attack and of its start
    left: list[Moment] = field(default_factory=list)  # runs that edits of the points left
    carried: tuple[Any, Any] = (None, None)  # states that the last edit made, or left as they were


def numbers(state: TrainState | AttackState) -> dict[str, float]:
    """Return what the curves show of a state."""
    if isinstance(state, TrainState):
        return {"gamma_bar": state.gamma_bar, "gamma_tilde": state.gamma_tilde}
    return state.numbers()


def certificate_of(state: TrainState | None, dataset: Dataset) -> Certificate | None:
    """Return the certificate of a state's network on these points, where it has one.

    A network that is not homogeneous has none: no theorem leads it to a KKT point.
    """
    if state is None or not dataset.n or not state.net.homogeneous:
        return None
    return certify(state.net, dataset.x, dataset.y)

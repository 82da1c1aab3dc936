"""Commands of training: begin, jump to the exact solution, train to the end, certify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch

from explorer.engine import data, training
from explorer.engine.certificate import Certificate
from explorer.engine.data import unit_of
from explorer.engine.exact import Exact, maximum_margin
from explorer.engine.exact.finish import Finished
from explorer.engine.files import safe_name
from explorer.engine.network import Network
from explorer.engine.status import Status
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig, TrainState
from explorer.page.frame import Attacking, Frame, Training, certificate_of, numbers
from explorer.page.history import LOG_STEPS, Timeline
from explorer.page.session import Note, Session
from explorer.research.pictures.axes import axes_for
from explorer.research.words import weights

# Of a network on a page, wherever it comes from. Arbitrary: the form offers so many layers and
# neurons, and with two layers of 1000 plane, merging and landscape stay below 1 GB.
MOST_LAYERS, MOST_WIDTH, MOST_WEIGHTS = 4, 2000, 2**20
LONG = 1000  # steps from which the growth of the margin is told; arbitrary
ENDED = "Trained to the end: no larger margin is near."
ENDED_NEARLY = "Trained to the end: a slightly larger margin may be near."
# Settings that only a new run can have.
BIRTH = {"widths", "bias", "all_biases", "init_scale", "init", "method"}


def begin(session: Session, net: Network | None = None, exact: bool = False) -> None:
    """Start training at t = 0 from the session's seed, or from `net`, the exact one if `exact`.

    Without `net` the points are first divided by their unit.

    Raises:
        ValueError: with no points drawn.
    """
    if net is None:
        _take_unit(session)
    dataset = session.frame.dataset
    if not dataset.n:
        raise ValueError("No points yet: click on the plane.")
    generator = torch.Generator().manual_seed(session.seed)
    state = training.init(dataset, session.train_config, generator, net)
    session.branch.train, session.branch.attack = Timeline(), Timeline()
    session.branch.train.append(state, numbers)
    held, config = session.frame.attack, session.train_config
    known = None
    if net is None or exact:
        known = Run(dataset, config, seed=session.seed, exact=exact, repeatable=True)
    session.show(stage="train", aim=None, status=Status.RUNNING,
                 training=Training(state, weight_decay=config.weight_decay, loss=config.loss,
                                   plan=known, before=state),
                 attack=Attacking(held.name, mix=held.mix))  # fmt: skip
    certify(session)


def _take_unit(session: Session) -> None:
    """Show the points divided by their unit, where that is not 1; one undo brings them back."""
    drawing = session.frame.drawing
    unit = unit_of(drawing.present)
    if unit == 1:
        return
    scaled = drawing.present.over(unit)
    session.axes = axes_for(session.axes, scaled, loaded=True)
    session.put(drawing=drawing.push(scaled))
    session.message = Note(weights.unit_note(unit))


def take_weights(session: Session, net: Network) -> None:
    """Take the weights of others: as the network of the drawn points, or without any points.

    Raises:
        ValueError: for weights on points that the plane cannot show.
    """
    check_shown(net)
    net, now = net.to(dtype=torch.float64), session.frame
    fits = (net.d, net.outputs) == (now.dataset.d, now.dataset.outputs)
    session.running = False
    if now.dataset.n and fits:
        begin(session, net)
        session.show(training=replace(session.frame.training, given=True))
        return
    none = data.empty(net.d)
    state = training.init(none, session.train_config, torch.Generator(), net)
    session.branch.train, session.branch.attack = Timeline(), Timeline()
    session.branch.train.append(state, numbers)
    drawing = now.drawing.push(none) if now.dataset.n or now.dataset.d != net.d else now.drawing
    session.axes = axes_for(session.axes, none, loaded=True)
    session.frame = Frame(
        "train", drawing, Training(state, given=True), attack=Attacking(now.attack.name)
    )
    session.show()


def check_shown(net: Network) -> None:
    """ValueError for weights on points that the plane cannot show."""
    if net.d not in (1, 2) or net.outputs > (4 if net.d == 2 else 1):
        raise ValueError(
            f"the plane shows points of 1 or 2 coordinates and up to 4 classes; these weights take "
            f"{net.d} coordinates and have {net.outputs} outputs. The command `attack` takes them."
        )
    check_room(net.widths, net.d, net.outputs)


def check_room(widths: Sequence[int], d: int, outputs: int) -> None:
    """ValueError for a network larger than a page can train, draw and merge."""
    sizes = (d, *widths, outputs)
    count = sum(a * b for a, b in pairwise(sizes))
    if len(widths) > MOST_LAYERS or max(sizes) > MOST_WIDTH or count > MOST_WEIGHTS:
        raise ValueError(
            f"widths must be of at most {MOST_LAYERS} layers of {MOST_WIDTH} neurons and "
            f"{MOST_WEIGHTS} weights on a page; got {safe_name(list(widths))}. "
            "The command line takes larger ones."
        )


def configure(session: Session, **changes: Any) -> None:  # noqa: ANN401 - fields of TrainConfig
    """Change settings of training, which goes on; those of BIRTH start it anew.

    Raises:
        ValueError: for a value that the setting does not take.
    """
    config, now = replace(session.train_config, **changes), session.frame
    check_room(config.widths, now.dataset.d, now.dataset.outputs)
    session.train_config = config
    if now.training.state is None:
        return
    if changes.keys() & BIRTH:
        session.running = False
        begin(session)
        return
    part = replace(now.training, plan=_plan_after(now.training, changes, config))
    if "loss" in changes:
        same = replace(config, revive=False)
        part = replace(part, state=training.refresh(now.dataset, now.training.state, same))
    session.show(training=part, status=Status.RUNNING)


def _plan_after(now: Training, changes: dict[str, Any], config: TrainConfig) -> Run | None:
    """Return the plan of a run whose settings changed: none, unless no step was taken by others.

    How many steps are planned, no step depends on.
    """
    free = now.state is None or not now.state.t or set(changes) <= {"steps"}
    return replace(now.plan, train_config=config) if now.plan is not None and free else None


def reach(session: Session, state: TrainState, status: Status) -> None:
    """Take over the state that the run has reached; the next `show` draws it."""
    now, config = session.frame.training, session.train_config
    begun, known = now.t, now.plan
    taken = state.t > begun
    if taken and known is not None and known.finish is not None:  # a finished one goes elsewhere
        known = replace(known, finish=None) if begun <= known.finish else None
    if taken:
        now = replace(now, weight_decay=config.weight_decay, loss=config.loss)
    part = replace(now, state=state, plan=known)
    session.put(training=part, status=status)


def jump_to_exact(session: Session, exact: Exact | None = None) -> None:
    """Take the exact maximum-margin network (two layers; 1-D and 2-D), solved here or given."""
    if exact is None:
        _take_unit(session)
    dataset = session.frame.dataset
    exact = exact or maximum_margin(dataset.x, dataset.y)
    session.running = False
    begin(session, exact.net, exact=True)
    if not exact.polished:
        session.message = Note(weights.optimum(exact))


def take(session: Session, state: TrainState, made: Finished | None = None) -> None:
    """Show a later state of the run; `made` is what is known of a finished one.

    What came before stays on the line of time.
    """
    session.branch.train.append(state, numbers, always=made is not None)
    status = training.terminate(state, session.train_config)
    now = session.frame.training
    known = now.plan
    if made is not None and known is not None and known.finish is None and now.state is not None:
        known = replace(known, finish=now.state.t)  # begun there or before, it comes to the same
    ended = None if made is None else (state, made)
    session.show(training=replace(now, state=state, plan=known, ended=ended), status=status)
    if made is not None:
        session.message = Note(ENDED if made.proved else ENDED_NEARLY)


def certify(session: Session) -> None:
    """Compute the certificate of the present network, and show it."""
    part = session.frame.training
    made = certificate_of(part.state, session.frame.dataset)
    if made is not None and part.state is not None:
        note(session, part.state, made)
        grown = margin_growth(session, part.state)
        part = replace(part, certificate=made, certified=part.state, growth=grown)
    session.show(training=part)


def margin_growth(session: Session, state: TrainState) -> float | None:
    """Return by what share the normalised margin grew over the last nine tenths of the steps.

    From a step that was kept, between a twentieth and a tenth of them; None where none was.
    """
    rows = zip(*session.branch.train.column("gamma_bar"), strict=True)
    known = [margin for t, margin in rows if state.t / 20 <= t <= state.t / 10]
    past = known[-1] if known and state.t >= LONG else 0.0
    return state.gamma_bar / past - 1 if past > 0 else None


def uncertified_states(session: Session) -> list[TrainState]:
    """Return the kept states at even log steps that have no certificate yet.

    Each halves a gap, the widest first: wherever one stops, a curve of them has even gaps.
    """
    line = session.branch.train
    known = set(line.column("unexplained")[0])
    due = [s for s in line.states if s.t in LOG_STEPS and s.net.homogeneous]
    order = sorted(range(len(due)), key=lambda i: f"{i:032b}"[::-1])
    return [due[i] for i in order if due[i].t not in known]


def note(session: Session, state: TrainState, made: Certificate) -> None:
    """Note the certificate of a kept state of this run for the curves."""
    session.branch.train.note(state.t, {"unexplained": made.residual})

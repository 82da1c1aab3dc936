"""What a page saves and opens: a run as one file, weights of others."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from explorer.engine import store
from explorer.engine.data import Dataset
from explorer.engine.files import FileError, reading, safe_name
from explorer.engine.network import Network
from explorer.engine.roster import by_key
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.page import branches, play
from explorer.page.frame import STAGES, Training, numbers
from explorer.page.keeping.words import NOT_KEPT, REFUSED
from explorer.page.session import Session, standing
from explorer.page.sharing.run import run_of_page
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train import commands as train
from explorer.research.devices import to_cpu
from explorer.research.runs import in_own_unit
from explorer.research.state import from_text, is_text, to_text, without_states
from explorer.research.words import weights

MOST_SAVED = 16 * 2**20  # arbitrary: what a browser takes as one link without trouble
# Characters: a browser keeps 5 million for all pages of a server. Weights of 100-100 take 282,000.
MOST_KEPT = 500_000
# Drawings before the present one that are kept for undo, and their characters; arbitrary.
EARLIER, MOST_EARLIER = 20, 100_000


def as_run(session: Session) -> Run:
    """Return this page's points, network, attack, and the history that fits a download."""
    now, run = session.frame, _present(session)
    whole = replace(
        run,
        train_states=_until(session.branch.train.states, now.training.state),
        attack_states=_until(session.branch.attack.states, now.attack.state)
        if run.attack_states
        else (),
    )
    return store.thinned_run(whole, MOST_SAVED)


def as_text(session: Session) -> tuple[str, bool]:
    """Return this page as text, as its browser keeps it, and whether it is whole.

    The first line holds the present moment; each further one a drawing before it, newest first.
    What needs too much room is left out: candidates of the attack, then the weights.
    """
    run = _present(session)
    for kept in (run, replace(run, attack_states=())):
        with contextlib.suppress(store.StoreError):
            return "\n".join([to_text(kept, MOST_KEPT), *_earlier(session)]), kept is run
    return "\n".join([to_text(without_states(run), MOST_KEPT), *_earlier(session)]), False


def _earlier(session: Session) -> list[str]:
    """Return the drawings that undo brings back, as lines, newest first."""
    lines: list[str] = []
    for dataset in reversed(session.frame.drawing.past[-EARLIER:]):
        lines.append(_line_of(dataset))
        if sum(map(len, lines)) > MOST_EARLIER:
            return lines[:-1]
    return lines


@lru_cache(maxsize=2 * EARLIER)  # a drawing never changes
def _line_of(dataset: Dataset) -> str:
    return to_text(Run(dataset, TrainConfig()))


def check_room(run: Run) -> None:
    """ValueError for a run that asks for more than the forms of the page offer.

    Files, links and lessons are held to it; the command line and Python are not.
    """
    data = run.dataset
    draw.check_shown(data)
    for config in (run.train_config, run.next_config or run.train_config):
        train.check_room(config.widths, data.d, data.outputs)
    for state in run.train_states:
        train.check_shown(state.net)
    attack.check_room(run.attack_config)


def _read_kept(text: str) -> tuple[Run, list[Dataset]]:
    """Return the page of a text, and the drawings before it, oldest first.

    An earlier drawing that cannot be read ends them: the page is worth more than its past.
    """
    first, *others = text.split(maxsplit=EARLIER + 1)[: EARLIER + 1] or [""]
    run, past = from_text(first), list[Dataset]()
    with contextlib.suppress(ValueError):
        for line in others:
            draw.check_shown(dataset := from_text(line).dataset)
            past.insert(0, dataset)
    return run, past


def _present(session: Session) -> Run:
    """Return this moment of the page."""
    now = session.frame
    attacked = now.attack.state is not None and now.newest and now.truth is now.dataset
    made, config, seed = run_of_page(session), session.train_config, session.seed
    return replace(
        made,
        next_config=None if config == made.train_config else config,
        next_seed=None if seed == made.seed else seed,
        train_states=() if now.training.state is None else (now.training.state,),
        attack_states=(now.attack.state,) if attacked and now.dataset.n else (),  # type: ignore[arg-type]
        stage=now.stage,
        steps=(0, 0),
    )


def _until(states: list[Any], present: Any) -> tuple[Any, ...]:  # noqa: ANN401 - of either engine
    """Return the kept states before the present one, and the present one."""
    if present is None:
        return ()
    return (*(s for s in states if s.t < present.t), present)


def open_file(session: Session, content: bytes) -> None:
    """Show a saved run or a kept page, or take the weights of others, of these points or of none.

    A run is first opened on a new page. If that fails, this page stays as it was. If the file does
    not name the activation, the message says that it is taken as ReLU.

    Raises:
        ValueError: for a file that is neither, or weights that do not fit the points.
    """
    text = content.decode("ascii", "replace") if is_text(content) else ""
    opened, past = _read_kept(text) if text else (store.open_bytes(content), None)
    if isinstance(opened, Network):
        train.take_weights(session, opened)
    else:
        _show(session, opened, past)
    _tell_relu(session, opened if isinstance(opened, Network) else opened.net)


def _tell_relu(session: Session, net: Network | None) -> None:
    if net is not None and net.assumed_relu:
        session.message = weights.note(net)


def take_up(session: Session, text: str) -> None:
    """Show what a browser kept.

    Raises:
        ValueError: in a sentence, where it cannot be read; the page stays as it was.
    """
    try:
        run, past = _read_kept(text)
        _show(session, run, past)
    except ValueError as error:
        raise FileError(REFUSED.format(error)) from error
    _tell_relu(session, run.net)


def _show(session: Session, run: Run, past: list[Dataset] | None) -> None:
    check_room(run)
    with reading("the run", "Save it again.", store.StoreError):
        # In one type: an attack never follows single precision.
        made = _open(in_own_unit(to_cpu(run)))
    session.running = False
    session.train_config = run.next_config or made.train_config
    session.seed = made.seed if run.next_seed is None else run.next_seed
    session.mix = made.mix
    session.branch.train, session.branch.attack = made.branch.train, made.branch.attack
    branches.adopt(session, made.frame)
    if past is not None:  # undo comes first by these, then by what was on this page
        drawing = session.frame.drawing
        before = (one for one in drawing.past if one.n)
        session.show(drawing=replace(drawing, past=(*before, *past)))
    session.attack_config = made.attack_config
    if run.steps[0] and not run.train_states:
        session.message = NOT_KEPT.format(run.steps[0])


def _open(run: Run) -> Session:
    """Return a page that shows the run."""
    session = Session(run.dataset, seed=run.seed, mix=run.mix or (0.0, 0.0))
    session.train_config = run.train_config
    if run.attack_name != session.frame.attack.name:
        attack.choose(session, run.attack_name)
    session.attack_config = run.attack_config or by_key(run.attack_name).config()
    for state in run.train_states:
        session.branch.train.append(state, numbers, always=True)
    if run.stage not in ("", *STAGES):
        raise store.StoreError(f"there is no stage {safe_name(run.stage)}")
    if not run.train_states:
        if run.steps[0]:
            play.go(session, "train")
        return session
    config, plan = run.train_config, None
    if run.repeatable:
        plan = Run(run.dataset, config, seed=run.seed, exact=run.exact, finish=run.finish,
                   repeatable=True)  # fmt: skip
    session.show(stage="train", training=Training(
        run.train_states[-1], weight_decay=config.weight_decay, given=not run.dataset.n,
        plan=plan, before=run.train_states[0]))  # fmt: skip
    play.assess(session)
    if run.attack_states:
        attack.take_target(session)
        if session.frame.attack.name != run.attack_name:
            raise store.StoreError(f"these weights cannot be attacked by {run.attack_name}")
        held = run.attack_states[-1]
        target, config = cast(Any, (session.frame.target, session.attack_config))
        if not session.entry.file.belongs(target, held, config):
            raise store.StoreError("the attack of this run is one on other weights than it holds")
        for candidates in run.attack_states:
            session.branch.attack.append(candidates, numbers, always=True)
        mix = session.mix if session.entry.takes_start else (0.0, 0.0)
        seed = run.seed if run.attack_seed is None else run.attack_seed
        part = replace(
            session.frame.attack, state=run.attack_states[-1], mix=mix,
            seed=seed if run.repeatable else None,
        )  # fmt: skip
        session.put(stage="attack", attack=part)
        session.show(status=standing(session, "attack"))
        play.assess(session)
        session.seed = seed
    if run.stage:
        with contextlib.suppress(ValueError):  # a stage that these weights do not have
            play.open_at(session, run.stage)
    return session

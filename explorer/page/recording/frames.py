"""The frames of a recording: what the page shows at the states that a run keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from explorer.engine import training
from explorer.engine.arrays import Arrays
from explorer.engine.data import Dataset
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.roster import by_key
from explorer.engine.store import Run, StoreError
from explorer.page.aim import aim_at, with_verdict
from explorer.page.frame import LAYERS, Attacking, Frame, Training, certificate_of
from explorer.page.history import History
from explorer.page.plane.scene import KeptBackdrop, Look, network, scene
from explorer.page.plane.shapes import shapes_of
from explorer.page.words.headline import headline
from explorer.page.words.screen import PLAYED
from explorer.research.pictures.axes import Axes, axes_for

DRAWN = 16  # frames in which points appear: a second; arbitrary
MOST = 60  # frames of the training, and as many of the attack: four seconds each; arbitrary
State = TypeVar("State")
Words = Mapping[str, tuple[str | None, str]]


@dataclass(frozen=True)
class RecordedFrame:
    """One frame: what the plane shows, and what stands beside it.

    Attributes:
        scene: "draw", "train", "attack" or "end".
        arrays: of the plane, as `view/plane.js` takes them.
        values: likewise.
        words: title, words and tone beside it, what is said while it stands `still`, and its step.
        t: the step as a number; -1 before training.
        fold: names and values of the numbers for experts.
    """

    scene: str
    arrays: Arrays
    values: dict[str, Any]
    words: dict[str, str]
    t: int = -1
    fold: tuple[tuple[str, str], ...] = ()


def frames_of(
    run: Run,
    drawn: int = DRAWN,
    most: int = MOST,
    certainty: Certainty | None = None,
    ends: int = 1,
) -> Iterator[tuple[str, Frame]]:
    """Yield each frame of a run with its scene: points appear, training, attack, its end.

    Args:
        run: with its states, points and weights in one unit (`runs.in_own_unit`).
        drawn: in how many frames the points appear.
        most: states of training, and of the attack, that are shown.
        certainty: of the training points, where it is known.
        ends: frames of the end.

    Raises:
        StoreError: where the run holds no states, or points that no plane shows.
    """
    data = run.dataset
    if data.d > 2 or not (data.n and run.train_states):
        raise StoreError(
            "a page that plays needs points on a plane or a line, and states of training; got "
            f"{data.n} points in {data.d}-D and {len(run.train_states)} states. Save a run with "
            "its history: `train --out`, `attack --out`, or the run file of a page."
        )
    for i in range(drawn):
        held_points = min(data.n, round(data.n * (i + 1) / (drawn / 2)))
        yield "draw", Frame("draw", History(Dataset(data.x[:held_points], data.y[:held_points])))
    frame = Frame("draw", History(data))
    for state in spread(run.train_states, most):
        made = certificate_of(state, data)
        status = training.terminate(state, run.train_config)
        part = Training(state, made, state, weight_decay=run.train_config.weight_decay,
                        before=run.train_states[0])  # fmt: skip
        frame = replace(frame, stage="train", training=part, status=status)
        yield "train", frame
    if run.attack_states:
        for shown in _attack_frames(run, frame, most):
            frame = shown
            yield "attack", frame
        assert frame.aim is not None
        aim = replace(frame.aim, certainty=certainty)
        frame = replace(
            frame, aim=aim, attack=with_verdict(frame.attack, aim, config_of(run), more=True)
        )
    for _ in range(ends):
        yield "end", frame


def _attack_frames(run: Run, trained: Frame, most: int) -> Iterator[Frame]:
    """Yield the attack, state by state, each judged by the first controls alone."""
    aim = aim_at(trained.training, run.dataset, trained.training.certificate)
    entry: Any = by_key(run.attack_name)
    if not entry.file.belongs(aim.target, run.attack_states[-1], config_of(run)):
        raise StoreError("the attack of this run is one on other weights than it holds")
    mix = (run.mix or (0.0, 0.0)) if entry.takes_start else (0.0, 0.0)
    for one in spread(run.attack_states, most):
        attack = Attacking(run.attack_name, one, mix=mix, seed=run.seed)
        attack = with_verdict(attack, aim, config_of(run), more=False)
        status = entry.terminate(one, config_of(run))
        yield replace(trained, stage="attack", aim=aim, attack=attack, status=status)


def config_of(run: Run) -> Any:  # noqa: ANN401 - settings of its attack
    """Return the settings of a run's attack."""
    return run.attack_config or by_key(run.attack_name).config()


def spread(states: Sequence[State], most: int) -> list[State]:
    """Return the first state, the last, and some between: near one another at first, then farther.

    >>> from types import SimpleNamespace
    >>> [state.t for state in spread([SimpleNamespace(t=t) for t in range(101)], 6)]
    [0, 4, 16, 36, 64, 100]
    """
    every: Any = states
    if len(every) <= most:
        return list(every)
    due = every[-1].t * np.linspace(0, 1, most) ** 2
    left, kept = list(every[:-1]), []
    for i, t in enumerate(due[:-1]):  # as many must be left as are still due
        ahead = left[: len(left) - (most - 2 - i)]
        at = min(range(len(ahead)), key=lambda k: abs(ahead[k].t - t))
        kept.append(left[at])
        left = left[at + 1 :]
    return [*kept, every[-1]]


def pictures(
    frames: Iterator[tuple[str, Frame]],
    axes: Axes,
    words: Words = PLAYED,
    layers: tuple[str, ...] = tuple(LAYERS),
) -> Iterator[RecordedFrame]:
    """Yield what the page shows of each frame.

    Args:
        frames: with their scenes, see `frames_of`.
        axes: of the plane, the same for all.
        words: what stands beside a whole scene while it plays: a title or None for the headline's.
        layers: what is drawn behind the points.
    """
    kept, shown, behind = KeptBackdrop(), None, {}
    for name, frame in frames:
        look = Look(layers, running=name in PLAYED)
        made = kept.of(*network(frame), axes, look)
        if made is not shown:
            shown, behind = made, made | ({"map": pale(made["map"])} if "map" in made else {})
        arrays, values = scene(frame, axes, look, shapes_of(frame, axes), behind)
        yield _picture(name, frame, arrays, values, words)


def pale(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return Phi over the margin as bytes: b for (b - 128) / 50, to 2 margins, the last shade."""
    return np.clip(np.round(128 + 50 * values), 28, 228).astype(np.uint8)


def _picture(
    name: str, frame: Frame, arrays: Arrays, values: dict[str, Any], words: Words
) -> RecordedFrame:
    """Return a frame with what stands beside it: a title that counts, and words of the scene."""
    running = name in PLAYED
    said = headline(frame, running)
    own = frame.stage == "attack" and by_key(frame.attack.name).own is not None
    title, told = (None, said.under_title) if own else words.get(name, (None, said.under_title))
    state = None if frame.stage == "draw" else frame.state
    step = "" if state is None else f"step {state.t:,}"
    beside = {
        "title": title or said.title,
        "words": told,
        "still": said.under_title,
        "tone": said.tone,
        "step": step,
    }
    return RecordedFrame(name, arrays, values, beside, -1 if state is None else state.t, said.fold)


def recorded_axes(run: Run) -> Axes:
    """Return the axes on which a page opens the points of a run."""
    return axes_for(Axes(), run.dataset, loaded=True)

"""The landscape of starts in a recording: energies that were computed, and runs with their trails.

Its frames are those of the page: with the handle at each place whose energy is known, and along
each run that keeps its states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.engine.energy.starts import lattice, mix_weights
from explorer.engine.progress import Progress, no_progress, part_progress
from explorer.engine.roster import by_key
from explorer.engine.status import Status
from explorer.engine.store import Run, StoreError
from explorer.page.aim import aim_at, at_state, first_handle, passed_by, starts_grid, with_place
from explorer.page.frame import Attacking, Frame, Handle
from explorer.page.recording.frames import RecordedFrame, config_of, pictures, spread
from explorer.page.recording.packing import recording_text
from explorer.page.stages.landscape import words
from explorer.page.stages.landscape.energy_words import ENDS, MARKS, unexplained_share
from explorer.research.grid.landscape import SIDES, Key, Runs
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.shades import start_shades

SIDE = 13  # places a side of the triangle where the handle may stand: 91 in all
STATES = 10  # of each run; arbitrary
DIGITS = 4  # of a place of a trail


@dataclass(frozen=True, eq=False)
class KnownStarts:
    """What a page knows of the landscape of starts.

    Attributes:
        held: the handle, with the energies of all starts.
        found: the runs.
    """

    held: Handle
    found: Runs


def starts_of(run: Run, end: Frame, progress: Progress = no_progress) -> KnownStarts:
    """Return the landscape of a run's weights: 91 energies, and runs of its attack from 21 places.

    Raises:
        StoreError: for an attack that takes no start, or weights without an energy.
    """
    aim, name = with_aim(end).aim, run.attack_name
    assert aim is not None
    if not by_key(name).takes_start:
        raise StoreError(f"{by_key(name).title} begins at no given start: it has no landscape.")
    try:
        of = starts_grid(aim, name, config_of(run), run.seed, SIDES[0])
        held = first_handle(of, config_of(run), (0.0, 0.0, 1.0))
    except ValueError as error:
        raise StoreError(f"these weights have no landscape of starts: {error}") from error
    energies = held.landscape
    values = energies.lattice(SIDE, part_progress(progress, 0.0, 0.2))
    found = Runs(of, measure=energies.measure)
    keys = found.todo(1)
    found.prepare(1)
    for _ in found.roll(keys, part_progress(progress, 0.2, 1.0)):
        pass
    arrivals = found.arrivals(1, going=False)
    return KnownStarts(replace(held, energies=values, arrivals=arrivals), found)


def with_aim(end: Frame) -> Frame:
    """Return the frame with its weights as those attacked."""
    part = end.training
    if end.aim is not None or part.state is None:
        return end
    return replace(end, aim=aim_at(part, end.dataset, part.certificate))


def starts_data(made: KnownStarts, end: Frame, axes: Axes) -> dict[str, Any]:
    """Return the landscape as a page that plays holds it.

    Args:
        made: what is known of it.
        end: the last frame of the run, on the same weights.
        axes: of the plane.
    """
    base = replace(with_aim(end), stage="landscape", map_kind="starts", status=Status.RUNNING,
                   attack=Attacking(made.found.of.attack))  # fmt: skip
    places = [(i / (SIDE - 1), j / (SIDE - 1), k / (SIDE - 1)) for i, j, k in lattice(SIDE)]
    bare = replace(made.held, census=None)  # of it nothing is said away from its end
    kept = [key for key, _, _ in made.found.trails() if made.found.states.get(key)]
    frames = [
        replace(base, starts=made.held),
        *(replace(base, starts=with_place(bare, at)) for at in places),
    ]
    spans = []
    for key in kept:
        along = list(_along(base, bare, made.found, key))
        spans.append({"at": list(mix_weights(*key[1:])), "first": len(frames), "count": len(along)})
        frames += along
    every = pictures((("landscape", frame) for frame in frames), axes)
    told = [_read(picture, frame) for picture, frame in zip(every, frames, strict=True)]
    trails, filled = made.found.trails(), made.held.energies
    shown = [next(i for i, (k, *_) in enumerate(trails) if k == key) for key in kept]
    ends = [end for _, _, end in trails]
    counts = [[mark, colour, name, ends.count(k)] for k, (name, (mark, colour)) in
              enumerate(zip(ENDS, MARKS, strict=True))]  # fmt: skip
    return {
        "recording": recording_text(told),
        "at": list(made.held.weights), "nodes": [list(at) for at in places],
        "runs": spans, "shown": shown,
        "fill": [] if filled is None else start_shades(filled, "log").ravel().tolist(),
        "trails": [np.round(places, DIGITS).tolist() for _, places, _ in trails],
        "ends": ends, "counts": counts, "label": words.LABEL,
        "title": f"{words.UNEXPLAINED} {words.AT_START}",
        "unit": words.unit(made.found.of.attack, "log"),
    }  # fmt: skip


def _along(base: Frame, held: Handle, found: Runs, key: Key) -> Iterator[Frame]:
    """Yield the page along a run: its candidates, their energy, its trail up to there."""
    held = with_place(held, mix_weights(*key[1:]))
    states = found.states[key]
    for state in spread(states, STATES):
        passed = passed_by(held, state, state is states[-1])
        held = replace(held, trail=(*held.trail, passed))
        yield replace(base, starts=at_state(held, state))


def _read(picture: RecordedFrame, frame: Frame) -> RecordedFrame:
    """Return a frame with what is read at its handle."""
    held = frame.starts
    assert held is not None
    shares = zip(words.SETS, words.percents(held.weights), strict=True)
    now = "unexplained now" if held.t else "unexplained here"
    fold = (
        (now, unexplained_share(held.energy)),
        *((f"start: {n}", f"{p}%") for n, p in shares),
    )
    return replace(picture, fold=fold)

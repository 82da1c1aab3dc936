"""Make the recordings of the story: nine scenes, from seeds.

    python scripts/story.py

Each scene trains, attacks and proves what it shows, and numbers in its words are taken from its
frames. Run it again after a change of training, attacks, certificates or headlines; the words alone
are read when a page of it is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from explorer.engine import training
from explorer.engine.arrays import Array, as_array
from explorer.engine.data import preset
from explorer.engine.data.images import Choice
from explorer.engine.explanations.cone import scope
from explorer.engine.multipliers import Fit
from explorer.engine.number_words import digits_above, percent, share
from explorer.engine.roster import by_key
from explorer.engine.store import Run, load_run
from explorer.engine.sums import sum_of
from explorer.engine.threads import limit_threads
from explorer.engine.training import TrainConfig
from explorer.page.frame import LAYERS, Frame, Proof
from explorer.page.opening import RECORDED, known_of_opening
from explorer.page.plane.weights import shown_of
from explorer.page.recording.band import band_arrays
from explorer.page.recording.frames import (
    RecordedFrame,
    config_of,
    frames_of,
    pictures,
    recorded_axes,
)
from explorer.page.recording.images import image_frames
from explorer.page.recording.landscape import starts_data, starts_of
from explorer.page.recording.packing import recording_text
from explorer.page.recording.story import KEPT
from explorer.page.stages.landscape import words as landscape_words
from explorer.page.stages.proof import words as proof_words
from explorer.research import image_runs, runs
from explorer.research.pictures.axes import Axes
from explorer.research.runs import cone_around, in_own_unit

DRAWN, TRAINED, ATTACKED = 10, 40, 48  # frames in which points appear, of training, of an attack
GROWN = 40  # of a sum that grows
STANDS = 8  # frames that a picture stands still
LETTERS = "ABCD"
ASIDE, APART = 0.17, 0.6  # least distance of a letter from a point that it is not, and from others


@dataclass(frozen=True, eq=False)
class Recorded:
    """A scene as it was recorded.

    Attributes:
        frames: all of it.
        asked: so many are shown before the prediction.
        facts: numbers of these frames, by the names that the words of the scene have for them.
        starts: the landscape of starts, which rolls at the reveal, or None.
    """

    frames: list[RecordedFrame]
    asked: int
    facts: dict[str, str]
    starts: dict[str, Any] | None = None


def record() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the key of each scene with what is kept of it, made from seeds."""
    for key, recorder in RECORDERS.items():
        made = recorder()
        yield key, {"asked": made.asked, "facts": made.facts, "starts": made.starts,
                    "recording": recording_text(made.frames)}  # fmt: skip


# --- runs ---------------------------------------------------------------------------------------
def _training_run(
    name: str, n: int, steps: int, noise: float = 0.0, drawn: int = 0, **more: Any
) -> Run:
    """Return a run of a preset, trained; states are near one another at first, then farther.

    `drawn` is the seed of the points.
    """
    run = Run(preset(name, n, noise, drawn), TrainConfig(steps=max(steps, 4000), **more), seed=0)
    return _longer(replace(run, train_states=(next(runs.training_states(run)),)), steps)


def _longer(run: Run, steps: int) -> Run:
    """Return the run trained on to a step."""
    state = run.train_states[-1]
    due = np.unique(np.geomspace(max(2, state.t + 1), steps, TRAINED).round().astype(int))
    kept = [state]
    for t in due.tolist():
        state = training.advance(run.dataset, state, run.train_config, t - state.t)
        kept.append(state)
    return replace(run, train_states=tuple(kept), steps=(state.t, 0))


def _with_attack(run: Run) -> Run:
    """Return the run with all steps of its attack."""
    made = runs.attack(
        runs.Trained(run, run.train_states).target, config_of(run), run.seed,
        truth=run.dataset, keep=2 * ATTACKED,
    )  # fmt: skip
    return replace(run, attack_states=made.states, stage="attack")


@cache
def _moons() -> Run:
    """Return a run whose points with a multiplier are those that hold the margin."""
    return in_own_unit(_with_attack(_training_run("moons", 12, 12_000, 0.12, drawn=4)))


def _frames(run: Run, drawn: int = DRAWN) -> list[tuple[str, Frame]]:
    return list(frames_of(run, drawn, ATTACKED))


def _pictures(
    run: Run, frames: list[tuple[str, Frame]], layers: tuple[str, ...] = tuple(LAYERS)
) -> list[RecordedFrame]:
    return list(pictures(iter(frames), recorded_axes(run), layers=layers))


def _first(frames: list[RecordedFrame], scene: str) -> int:
    return next(i for i, frame in enumerate(frames) if frame.scene == scene)


def _of(frame: RecordedFrame, name: str) -> list[str]:
    """Return the numbers of a row of the fold: of "7 of 20" both."""
    return dict(frame.fold)[name].split(" of ")


def _count_on_margin(trained: RecordedFrame) -> str:
    """Return how many points hold the margin, as the title of a trained network says it."""
    return trained.words["title"].split()[0]


def _unexplained(trained: RecordedFrame) -> str:
    """Return which share of the weights the points leave, as the words beside it say it."""
    return re.findall(r"[\d.]+%", trained.words["still"])[0]


# --- scenes -------------------------------------------------------------------------------------
def _margin() -> Recorded:
    run = replace(_moons(), attack_states=())
    frames = _frames(run)
    made = _pictures(run, frames, ("map", "margins"))  # kinks are told of in the next scene
    asked = next(i for i, (_, f) in enumerate(frames)
                 if f.training.state is not None and f.training.state.q_min > 0)  # fmt: skip
    first, last = made[asked], made[-1]
    facts = {
        "n": str(run.dataset.n), "separated": _of(first, "step")[0], "last": _of(last, "step")[0],
        "before": _of(first, "normalised margin")[0], "after": _of(last, "normalised margin")[0],
        "held": _count_on_margin(last),
    }  # fmt: skip
    lies = "lies" if _count_on_margin(first) == "1" else "lie"
    said = f"{_count_on_margin(first)} of them {lies} on the coloured lines."
    title = f"All {facts['n']} points are on their side"
    told = {**first.words, "title": title, "words": said, "still": said}
    made[asked] = replace(first, words=told)
    return Recorded(made + [last] * STANDS, asked + 1, facts)


def _sum() -> Recorded:
    run = replace(_moons(), attack_states=())
    axes, every = recorded_axes(run), _frames(run, 1)
    plain = [
        (name, replace(f, training=replace(f.training, certificate=None))) for name, f in every
    ]
    made = [replace(p, arrays={**p.arrays, **band_arrays(shown_of(f, None), axes)})
            for p, (_, f) in zip(_pictures(run, plain), plain, strict=True)]  # fmt: skip
    last, end = _pictures(run, every)[-1], every[-1][1]
    whole, asked = shown_of(end, None), len(made)
    assert whole is not None and end.training.certificate is not None
    fit = end.training.certificate.fit
    assert isinstance(fit, Fit)
    for size in np.linspace(0.0, 1.0, GROWN):
        part = sum_of(whole.net, whole.x, whole.y, replace(fit, weight=size * fit.weight))
        points = np.array(last.arrays["points"])
        points[:, 3] *= size
        left = share(part.left)
        said = f"At {percent(size)} of their size they leave {left} of the weights."
        words = {**last.words, "title": "The terms grow", "words": said, "still": said}
        arrays = {**last.arrays, **band_arrays(replace(whole, made=part), axes), "points": points}
        made.append(RecordedFrame("train", arrays, last.values, words, last.t))
    made += [replace(made[-1], words=last.words, fold=last.fold)] * STANDS
    support, n = _of(last, "points with a multiplier")
    assert support == _count_on_margin(last), "the words say so"
    return Recorded(made, asked, {"n": n, "support": support, "unexplained": _unexplained(last)})


def _theft() -> Recorded:
    run = load_run(RECORDED)  # that of the opening: who saw both sees one
    made = _pictures(run, _frames(run))
    last = made[-1]
    found, n = _of(last, "points recovered")
    claims = _of(last, "claims that are right")[1]
    facts = {
        "n": n, "found": found, "claims": claims, "radius": _of(last, "radius")[0],
        "chance": _of(last, "by chance")[0], "p": _of(last, "p")[0],
        "sets": _of(last, "chance")[0].split()[0],
    }  # fmt: skip
    return Recorded(made + [last] * STANDS, _first(made, "attack"), facts)


def _failure() -> Recorded:
    run = _moons()
    made = _pictures(run, _frames(run))
    last = made[-1]
    found, n = _of(last, "points recovered")
    reach = _of(last, "on the margin or with a multiplier")[0]
    assert found == "0", "the right answer says so"
    trained = made[_first(made, "attack") - 1]
    facts = {
        "n": n, "found": found, "held": _count_on_margin(trained), "reach": reach,
        "traceless": str(int(n) - int(reach)),
    }  # fmt: skip
    return Recorded(made + [last] * STANDS, _first(made, "attack"), facts)


def _landscape() -> Recorded:
    run = _moons()
    end = _frames(run)[-1][1]
    known = starts_of(run, end)
    starts = starts_data(known, end, recorded_axes(run))
    made = _pictures(run, _frames(replace(run, attack_states=()), 1))
    starts["at"] = [1.0, 0.0, 0.0]  # the run that is shown is that from the truth
    truth, equal, _ = (str(found) for *_, found in starts["counts"])  # as `ENDS`
    from_truth = next(i for i, at in zip(starts["shown"], starts["runs"], strict=True)
                      if at["at"][0] == 1.0)  # fmt: skip
    assert truth == "0" and starts["ends"][from_truth] == 1, "the words say so"
    said = landscape_words.headline(replace(end, starts=known.held))
    assert said is not None
    energies = known.held.energies
    assert energies is not None and energies[-1, 0] < energies[0, -1], "the words say so"
    facts = {"runs": str(len(starts["runs"])), "told": said[0], "equal": equal}  # fmt: skip
    return Recorded(made, len(made), facts, starts)


def _proof() -> Recorded:
    run, (certainty, needed) = load_run(RECORDED), known_of_opening()
    axes, end = recorded_axes(run), list(frames_of(run, certainty=certainty))[-1][1]
    assert end.truth is not None and end.target is not None
    asks = replace(end, stage="explain", asked=Proof(end.target))
    cone = cone_around(end.target, end.truth)
    whole = Proof(end.target, needed, cone)
    shown = [Proof(end.target, needed.until(k)) for k in range(0, len(needed.log), 2)]
    shown += [whole] * 16 + [replace(whole, revealed=True)] * STANDS
    frames = [("end", end)] * 12 + [("proof", asks)] * 4
    asked = len(frames)
    frames += [("proof", replace(asks, asked=held)) for held in shown]
    made = list(pictures(iter(frames), axes))
    right, places = needed.count_of(end.truth), len(needed.rows)
    still = proof_words.place_words(right, places)  # no more: there is no plane to press
    made[-STANDS:] = [replace(p, words={**p.words, "still": still}) for p in made[-STANDS:]]
    low, high = (digits_above(wide) for wide in proof_words.widths_of(needed)[[0, -1]])
    facts = {
        "n": str(end.truth.n), "right": str(needed.count_of(end.truth)),
        "rings": str(len(needed.rows)), "low": low, "high": high,
        "claim": proof_words.claim(asks, whole),
        "scope": scope(needed.box, needed.top),
    }  # fmt: skip
    return Recorded(made, asked, facts)


def _images() -> Recorded:
    several = next(key for key in image_runs.picture_attacks() if by_key(key).needs.several)
    frames, facts = image_frames(image_runs.ImageRun(choice=Choice(task="ten"), attack=several), 60)
    return Recorded(frames, 1, facts)


def _defence() -> Recorded:
    early = _training_run("alternating-circle", 10, 100)
    late = _longer(early, 400)
    one, two = in_own_unit(_with_attack(early)), in_own_unit(_with_attack(late))
    first = _pictures(one, _frames(one))
    then = [p for p in _pictures(two, _frames(two)) if p.scene != "draw"]
    low, high = (next(p for p in reversed(part) if p.scene == "train") for part in (first, then))
    few, n = _of(first[-1], "points recovered")
    facts = {
        "n": n, "few": few, "many": _of(then[-1], "points recovered")[0],
        "early": _of(low, "step")[0],
        "late": _of(high, "step")[0], "low": _of(low, "normalised margin")[0],
        "high": _of(high, "normalised margin")[0],
        "unexplained": _unexplained(first[-1]),
    }  # fmt: skip
    return Recorded([*first, *then, *[then[-1]] * STANDS], len(first), facts)


def _turn() -> Recorded:
    run = in_own_unit(
        _with_attack(_training_run("alternating-circle", 14, 12_000, init_scale=1e-3))
    )
    axes, frames = recorded_axes(run), _frames(run, 1)
    made = [p for p in _pictures(run, frames) if p.scene != "draw"]
    end = frames[-1][1]
    assert end.truth is not None and end.aim is not None
    unseen = np.concatenate([as_array(one.x) for one in end.aim.controls.sets])
    places, letter = _letters(axes, as_array(end.truth.x), unseen)
    named = zip(places.tolist(), LETTERS, strict=True)
    texts = [[x + 0.03, y + 0.07, name] for (x, y), name in named]
    asked = _first(made, "attack")
    for i, one in enumerate(made):
        arrays = {k: v for k, v in one.arrays.items() if k != "points" or one.scene == "end"}
        arrays |= {"hands": places} if i >= asked - 1 else {}
        values = {**one.values, "texts": texts if i >= asked - 1 else []}
        words = one.words if one.scene == "end" else {**one.words, "title": "The points are hidden"}
        made[i] = replace(one, arrays=arrays, values=values, words=words)
    found, n = _of(made[-1], "points recovered")
    facts = {"n": n, "found": found, "letter": letter}
    return Recorded(made + made[-1:] * STANDS, asked, facts)


def _letters(axes: Axes, truth: Array, unseen: Array) -> tuple[Array, str]:
    """Return four places (4, 2) in shares of the plane, one of them a training point; and which."""
    chosen = np.random.default_rng(0)
    kept = [truth[chosen.integers(len(truth))]]
    for place in unseen[chosen.permutation(len(unseen))]:
        far = np.linalg.norm(truth - place, axis=1).min() > ASIDE
        if far and np.linalg.norm(kept - place, axis=1).min() > APART:
            kept.append(place)
    kept = kept[: len(LETTERS)]
    order = chosen.permutation(len(LETTERS))
    return axes.shares(np.array(kept)[order]), LETTERS[int(np.flatnonzero(order == 0)[0])]


RECORDERS: dict[str, Callable[[], Recorded]] = {
    "margin": _margin, "sum": _sum, "theft": _theft, "failure": _failure,
    "landscape": _landscape, "proof": _proof, "images": _images, "defence": _defence,
    "turn": _turn,
}  # fmt: skip


def main() -> None:
    limit_threads()  # as a page does: sums of several threads end in other last bits
    kept, begun = {}, perf_counter()
    for key, made in record():
        kept[key] = made
        size = len(json.dumps(made).encode()) / 1000
        print(f"{key:10} {size:4.0f} kB  {perf_counter() - begun:3.0f} s  {made['facts']}")
    KEPT.write_text(json.dumps(kept, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{KEPT.name}  {KEPT.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

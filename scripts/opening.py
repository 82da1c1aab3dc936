"""Make the opening: a recording of a real run, and the run that the page goes on from.

    python scripts/opening.py

Twenty points on a circle are drawn, a network is trained on them and attacked, and each frame is
what the page would show at that step. `opening.bin` is played before a kernel is there, by the
code that draws the plane; `opening.safetensors` holds the states at its end, and those before that
the slider of time goes through, `opening.json` what takes seconds and no page has to ask: how
certain the points are, and which places need a point. Run it again after a change of training,
attack, certificates or of what a headline says.

The recording is one gzip file: a line of JSON, then the numbers of all arrays, one after the other.
An array stands for all frames after it, until it is given again or dropped. Places are int16, in
units of 1 / `UNIT` of the plane's half size; the map is uint8, as `plane.js` reads it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from explorer.engine import store
from explorer.engine.data import Dataset, empty, preset
from explorer.engine.explanations.certainty import Certainty, RadiusMap
from explorer.engine.threads import limit_threads
from explorer.page import play
from explorer.page.frame import Frame
from explorer.page.plane.scene import Arrays, Look, backdrop, network, scene
from explorer.page.plane.shapes import shapes_of
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain.panel import ExplainPanel
from explorer.page.words.headline import headline
from explorer.page.words.screen import RECORDED
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.fields import field
from explorer.research.runs import certified_points

HERE = Path(__file__).resolve().parents[1] / "explorer"
RECORDING = HERE / "serve/voila/nbconvert/templates/margin-explorer/static/opening.bin"
RUN = HERE / "page" / "opening.safetensors"
CERTAINTY = RUN.with_suffix(".json")

# Measured: 19 of 20 points hold the margin within 1%, and the attack finds all 20.
PRESET, TRAINED, ATTACKED = "alternating-circle", 20_000, 2000
RATE = 16  # frames a second
SCENES = {"draw": 36, "train": 54, "attack": 50, "end": 10}  # frames: nine seconds
MAP, UNIT = 61, 4096  # samples a side; of int16, so numbers below 8, and marks and classes exactly
KEPT = 60  # states of each run in the file of the run


@dataclass(frozen=True)
class Picture:
    """One frame: what the plane shows, and what stands beside it."""

    scene: str
    arrays: Arrays
    values: dict[str, Any]
    words: dict[str, str]


def steps(name: str) -> list[int]:
    """The steps that are shown: near one another at first, then ever farther apart."""
    if name == "train":
        return np.geomspace(8, TRAINED, SCENES[name]).round().astype(int).tolist()
    return (ATTACKED * np.linspace(0, 1, SCENES[name]) ** 2).round().astype(int).tolist()


def run(session: Session) -> Iterator[tuple[str, Frame]]:
    """Draw, train and attack; yield each frame with its scene."""
    points = preset(PRESET)
    for i in range(SCENES["draw"]):
        count = round(points.n * (i + 1) / (SCENES["draw"] / 2))
        held = min(count, points.n)
        session.frame = Frame(
            "draw", draw.history(session).amend(Dataset(points.x[:held], points.y[:held]))
        )
        yield "draw", session.frame
    draw.load(session, points)
    play.go(session, "train")
    for name in ("train", "attack"):
        play.go(session, name)
        for t in steps(name):
            state = session.frame.state
            assert state is not None
            play.advance(session, steps=t - state.t)
            play.assess(session)
            yield name, session.frame
    end = session.frame
    assert end.target is not None and end.truth is not None
    play.take_certainty(session, certified_points(end.target, end.truth))
    for _ in range(SCENES["end"]):
        yield "end", session.frame


def pictures(session: Session) -> Iterator[Picture]:
    """Yield the frames of the recording."""
    behind: tuple[Any, Arrays] = (None, {})
    for name, frame in run(session):
        look = Look(running=name != "end")
        net, unit = network(frame)
        if net is not None and behind[0] is not net:
            made = backdrop(net, unit, session.axes, Look(layers=("lines",)))
            behind = net, {**made, "map": pale(field(net, session.axes, MAP) / unit)}
        back = {} if net is None else behind[1]
        arrays, values = scene(frame, session.axes, look, shapes_of(frame, session.axes), back)
        yield Picture(name, arrays, values, words_of(name, frame))


def words_of(name: str, frame: Frame) -> dict[str, str]:
    """What stands beside the plane: a title that counts, and words that stand for a whole scene."""
    said = headline(frame, running=name != "end")
    title, words = RECORDED.get(name, (None, said.words))
    title = title or said.title
    return {"title": title, "words": words, "tone": said.tone, "step": step(frame)}


def step(frame: Frame) -> str:
    """The step of the run on screen, as the page writes it."""
    return "" if frame.state is None or frame.stage == "draw" else f"step {frame.state.t:,}"


def pale(values: np.ndarray) -> np.ndarray:
    """Phi over the margin as bytes: b for (b - 128) / 50."""
    return np.clip(np.round(128 + 50 * values), 0, 255).astype(np.uint8)


def packed_array(array: np.ndarray) -> np.ndarray:
    """An array as the recording holds it. ValueError: a number is not finite, or 8 or more."""
    if array.dtype == np.uint8:
        return array
    held = np.round(UNIT * array)
    if not (abs(held) < 2**15).all():
        raise ValueError(f"the recording holds numbers below {2**15 // UNIT}; got {array}")
    return held.astype("<i2")


def encoded(every: list[Picture]) -> bytes:
    """The recording."""
    frames, body, known = [], [], {}
    for one in every:
        rows = []
        for name, array in one.arrays.items():
            held = packed_array(array)
            data = held.tobytes()
            if known.get(name) != (held.shape, data):
                known[name] = (held.shape, data)
                rows.append([name, "u" if held.dtype == np.uint8 else "h", list(held.shape)])
                body.append(data)
        dropped = [name for name in known if name not in one.arrays]
        for name in dropped:
            del known[name]
        frames.append(
            {"scene": one.scene, "arrays": rows, "drop": dropped, "values": one.values, **one.words}
        )
    head = json.dumps({"rate": RATE, "unit": UNIT, "frames": frames}, ensure_ascii=False)
    return gzip.compress(f"{head}\n".encode() + b"".join(body), 9, mtime=0)


def thinned(states: list[Any]) -> list[Any]:
    """The first, the last, and some between: near one another at first, then ever farther apart."""
    due = states[-1].t * np.linspace(0, 1, KEPT) ** 2
    left, kept = states[:-1], []
    for i, t in enumerate(due[:-1]):  # as many must be left as are still due
        ahead = left[: len(left) - (KEPT - 2 - i)]
        at = min(range(len(ahead)), key=lambda k: abs(ahead[k].t - t))
        kept.append(left[at])
        left = left[at + 1 :]
    return [*kept, states[-1]]


def places(session: Session) -> RadiusMap:
    """How certain a point is at each place, as the explain stage draws it when it is asked."""
    play.go(session, "explain")
    ask = ExplainPanel(session).radii.box.items["ask"].call
    assert ask is not None
    ask(None)
    assert session.frame.certain is not None and session.frame.certain.done
    made = session.frame.certain.map
    play.go(session, "attack")
    return made


def plain(made: Certainty | RadiusMap) -> dict[str, Any]:
    """Its fields, arrays as lists."""
    return {k: v.tolist() if hasattr(v, "tolist") else v for k, v in vars(made).items()}


def opening() -> tuple[bytes, bytes, list[Picture], Session]:
    """The recording, the run at its end, the recorded frames, and the session that made them."""
    limit_threads()  # as a page does: sums of several threads end in other last bits
    session = Session(empty(2), axes=Axes())
    every = list(pictures(session))
    for line in (session.branch.train, session.branch.attack):
        line.states = thinned(line.states)
    return encoded(every), store.dump(files.as_run(session)), every, session


def certain(session: Session) -> bytes:
    """What is certain at the end of the recording, as JSON."""
    aim = session.frame.aim
    assert aim is not None and aim.certainty is not None
    made = aim.certainty
    return json.dumps({"certainty": plain(made), "places": plain(places(session))}).encode()


def main() -> None:
    recording, saved, every, session = opening()
    for path, data in ((RECORDING, recording), (RUN, saved), (CERTAINTY, certain(session))):
        path.write_bytes(data)
        print(f"{path.relative_to(HERE.parent)}  {len(data) / 1000:.0f} kB")
    print(f"{len(every)} frames, {len(every) / RATE:.1f} s; {every[-1].words['title']}")


if __name__ == "__main__":
    main()

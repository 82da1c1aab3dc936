"""The recording of the opening is of a real run, and the page goes on where it ends."""

from __future__ import annotations

import gzip
import json
import runpy
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer.engine import store
from explorer.engine.arrays import Arrays
from explorer.page import branches, play
from explorer.page.apps.explorer import App
from explorer.page.frame import Frame
from explorer.page.opening import RECORDED, open_recorded
from explorer.page.plane.scene import KeptBackdrop, Look, network, scene
from explorer.page.plane.shapes import shapes_of
from explorer.page.recording.frames import RecordedFrame, frames_of, pictures, recorded_axes
from explorer.page.recording.packing import (
    GAP,
    MOST,
    PLACES,
    RATE,
    SHARE,
    UNIT,
    packed_array,
    recording,
)
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.words.headline import headline
from explorer.research.pictures.axes import Axes
from tests.page.pages import send

LIMIT, MOST_KEPT = 100_000, 1_500_000  # bytes: of the recording, sent to browsers; of the run
WORDS_A_SECOND = 4  # that one reads; arbitrary
CLOSE = 0.015  # of the plane's half size, 2: the radius within which a claim counts


@pytest.fixture(scope="module")
def script(root: Path) -> dict[str, Any]:
    """The names of scripts/opening.py."""
    return runpy.run_path(str(root / "scripts" / "opening.py"))


def assert_held(name: str, held: np.ndarray, array: np.ndarray) -> None:
    """The recording holds this array: its places, then its shares and marks."""
    k = PLACES.get(name, array.shape[-1])
    np.testing.assert_allclose(held[..., :k], array[..., :k], atol=1 / UNIT)
    np.testing.assert_allclose(held[..., k:], array[..., k:], atol=1 / SHARE)


def at_rest(frame: Frame, axes: Axes, look: Look) -> tuple[Arrays, dict[str, Any]]:
    """Return arrays and values of a frame, its backdrop included, as the page draws it."""
    behind = KeptBackdrop().of(*network(frame), axes, look)
    return scene(frame, axes, look, shapes_of(frame, axes), behind)


def read(packed: bytes) -> list[dict[str, Any]]:
    """Every frame of a recording with all its arrays, as a browser reads them."""
    head, _, body = gzip.decompress(packed).partition(b"\n")
    told = json.loads(head)
    assert told["unit"] == UNIT
    sizes = [int(np.prod(row[2])) for frame in told["frames"] for row in frame["arrays"]]
    low, high = np.frombuffer(body, "u1"), np.frombuffer(body, "u1")[sum(sizes) :]
    ints, made = {}, []
    for frame in told["frames"]:
        for name, kind, shape, stride, lags, after in frame["arrays"]:
            size = int(np.prod(shape))
            left, low = low[:size].astype("i8"), low[size:]
            if kind == "h":
                left += 256 * high[:size].astype("i8")
                left, high = (left >> 1) ^ -(left & 1), high[size:]
            for lag in lags:
                for k in range(lag):
                    left[k::lag] = left[k::lag].cumsum()
            whole = np.empty(size, "i8")
            whole[np.concatenate([np.arange(k, size, stride) for k in range(stride)])] = left
            whole = whole.reshape(shape) + (ints[name] if after else 0)
            ints[name] = whole.astype("i2" if kind == "h" else "u1")
        for name in frame["drop"]:
            del ints[name]
        places = {name: np.where(held == GAP, np.nan, held / UNIT) if held.dtype == "i2" else held
                  for name, held in ints.items()}  # fmt: skip
        made.append({**frame, "arrays": places})
    assert not len(high)
    return made


def test_the_recording_is_small_and_has_all_scenes(script: dict[str, Any]) -> None:
    packed = script["RECORDING"].read_bytes()
    frames = read(packed)
    assert len(packed) < LIMIT
    assert 7 * RATE < len(frames) < 10 * RATE
    assert list(dict.fromkeys(f["scene"] for f in frames)) == ["draw", "train", "attack", "end"]
    counts = [len(f["arrays"]["points"]) for f in frames]
    assert counts == sorted(counts) and counts[-1] == 20
    assert {"points", "candidates", "claims", "links", "map", "neurons"} <= {*frames[-1]["arrays"]}


def test_marks_and_classes_come_back_exactly_and_what_is_far_away_stands_at_the_edge() -> None:
    kinds = np.array([[0.1, -1.0, kind] for kind in range(7)])
    line = np.array([[0.5, 19.0], [np.nan, np.nan], [-np.inf, -0.25]])
    words = dict.fromkeys(("title", "words", "still", "tone", "step"), "")
    (frame,) = read(recording([RecordedFrame("end", {"claims": kinds, "lines": line}, {}, words)]))
    assert frame["arrays"]["claims"][:, 2].tolist() == [0, 1, 2, 3, 4, 5, 6]
    edge = MOST / UNIT
    np.testing.assert_array_equal(
        frame["arrays"]["lines"], [[0.5, edge], [np.nan, np.nan], [-edge, -0.25]]
    )


def moving_frames() -> list[RecordedFrame]:
    """Pieces of a path, a picture and a row of numbers that change, grow, go and come back."""
    draws, words = np.random.default_rng(0), dict.fromkeys(("title", "words", "still", "tone"), "")
    rows, columns = np.mgrid[:9, :7]
    ends, gap, made = draws.uniform(-18, 18, (2, 4, 2)), np.full((4, 2), np.nan), []
    for k in range(6):
        ends = draws.uniform(-18, 18, (2, 4, 2)) if k == 4 else ends + 0.01 * k
        arrays = {"lines": np.stack([*ends, gap], 1).reshape(-1, 2)[:-1],
                  "map": (40 * k + rows * columns).astype(np.uint8)[: 9 - k],
                  "row": np.linspace(-1, k, 5 + k // 3)}  # fmt: skip
        if k == 3:
            del arrays["map"]
        made.append(RecordedFrame("train", arrays, {}, {**words, "step": ""}, k))
    return made


def test_what_is_left_of_a_prediction_gives_the_arrays_back() -> None:
    every = moving_frames()
    packed = recording(every)
    ways = {(row[0], row[3], len(row[4]), row[5]) for frame in
            json.loads(gzip.decompress(packed).partition(b"\n")[0])["frames"]
            for row in frame["arrays"]}  # fmt: skip
    assert {("lines", 6, 0, 1), ("map", 1, 2, 0)} <= ways, "each way is taken"
    for told, frame in zip(read(packed), every, strict=True):
        assert told["arrays"].keys() == frame.arrays.keys()
        for name, array in frame.arrays.items():
            held = packed_array(array)
            whole = held if held.dtype == np.uint8 else np.where(held == GAP, np.nan, held / UNIT)
            np.testing.assert_array_equal(told["arrays"][name], whole)


def test_every_frame_is_the_page_at_that_state() -> None:
    """Places, and what stands beside them, of a run that a page opens and scrubs through."""
    session = Session()
    open_recorded(session)
    run = replace(files.as_run(session), stage="attack")
    every = read(recording(pictures(frames_of(run, drawn=4, most=5), recorded_axes(run))))
    assert [f["scene"] for f in every] == ["draw"] * 4 + ["train"] * 5 + ["attack"] * 5 + ["end"]
    page = Session()
    files.open_file(page, store.dump(run))
    for name in ("train", "attack"):
        play.go(page, name)
        for told in (f for f in every if f["scene"] == name):
            line = page.timeline
            branches.seek(page, line.nearest(told["t"]))
            page.running = True
            play.assess(page)  # by the first controls, as while it plays
            frame = page.frame
            assert frame.t == told["t"]
            arrays, values = at_rest(frame, page.axes, Look(running=True))
            assert values == told["values"]
            for key in arrays.keys() - {"map"}:  # it is packed into bytes
                assert_held(key, told["arrays"][key], arrays[key])
            said = headline(frame, running=True)
            assert (said.title, said.under_title, said.tone) == (
                told["title"], told["still"], told["tone"]
            )  # fmt: skip


def test_a_run_of_today_ends_where_the_recording_ends(
    script: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few frames, which change no step, and with the points that are kept as certain."""
    session = Session()
    open_recorded(session)
    certain = session.frame.aim.certainty
    few = {"draw": 2, "train": 3, "attack": 3, "end": 1}
    names = script["opening"].__globals__
    for name, value in (
        ("SCENES", few), ("KEPT", 3), ("STANDS", 2), ("certified_points", lambda *_: certain)
    ):  # fmt: skip
        monkeypatch.setitem(names, name, value)
    packed, _, every, _ = script["opening"]()
    kept, made = read(script["RECORDING"].read_bytes()), read(packed)
    assert kept[-1]["title"] == made[-1]["title"]
    assert len(made) == len(every) == sum(few.values()) + 2
    for name in ("points", "links"):  # another arithmetic may add a wrong claim
        np.testing.assert_allclose(kept[-1]["arrays"][name], made[-1]["arrays"][name], atol=CLOSE)


def test_the_page_opens_on_the_last_frame(
    script: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session()
    open_recorded(session)
    last = read(script["RECORDING"].read_bytes())[-1]
    frame, axes = session.frame, session.axes
    arrays, values = at_rest(frame, axes, Look())
    for name in ("points", "candidates", "claims", "links"):
        assert_held(name, last["arrays"][name], arrays[name])
    assert values == last["values"]
    said = headline(frame)
    assert (said.title, said.words, said.tone) == (last["title"], last["words"], last["tone"])
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5")
    app = App()
    assert headline(app.session.frame).title == said.title
    send(app.welcome, kind="own")
    assert app.session.frame.dataset.n == 0 and app.session.frame.stage == "draw"
    app.close()
    monkeypatch.delenv("SERVER_SOFTWARE")
    assert App().session.frame.dataset.n == 0, "a notebook begins with an empty plane"


def test_the_ready_run_can_be_scrubbed_and_its_next_question_has_an_answer() -> None:
    session = Session()
    open_recorded(session)
    for line in (session.branch.train, session.branch.attack):
        times = [state.t for state in line.states]
        assert len(times) >= 60 and times[0] == 0 and times == sorted(set(times))
        assert max(b - a for a, b in pairwise(times)) < times[-1] / 20
    q = session.branch.train.states[-1].q
    assert int((q <= 1.01 * q.min()).sum()) >= 19
    said = headline(session.frame)
    assert said.tone == "good" and said.action is not None
    play.act(session, said.action.key)
    assert session.frame.proof is not None and len(session.frame.aim.needed.rows) > 10
    assert RECORDED.stat().st_size < MOST_KEPT


def test_what_is_said_beside_the_recording_stands_long_enough(script: dict[str, Any]) -> None:
    words = [frame["words"] for frame in read(script["RECORDING"].read_bytes())]
    for told, frames in groupby(words[: -script["SCENES"]["end"]]):  # the end stays on the page
        assert len(list(frames)) / RATE >= len(told.split()) / WORDS_A_SECOND, told

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
from explorer.page import branches, play
from explorer.page.apps.explorer import App
from explorer.page.frame import Frame
from explorer.page.opening import open_recorded
from explorer.page.plane.scene import Arrays, KeptBackdrop, Look, network, scene
from explorer.page.plane.shapes import shapes_of
from explorer.page.recording.frames import RecordedFrame, frames_of, pictures, recorded_axes
from explorer.page.recording.opening import RECORDED
from explorer.page.recording.packing import GAP, MOST, RATE, UNIT, recording
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.words.headline import headline
from explorer.research.pictures.axes import Axes
from tests.page.pages import send

LIMIT, MOST_KEPT = 300_000, 1_500_000  # bytes: of the recording, sent to browsers; of the run
WORDS_A_SECOND = 4  # that one reads; arbitrary
CLOSE = 0.015  # of the plane's half size, 2: the radius within which a claim counts


@pytest.fixture(scope="module")
def script(root: Path) -> dict[str, Any]:
    """The names of scripts/opening.py."""
    return runpy.run_path(str(root / "scripts" / "opening.py"))


def at_rest(frame: Frame, axes: Axes, look: Look) -> tuple[Arrays, dict[str, Any]]:
    """Return arrays and values of a frame, its backdrop included, as the page draws it."""
    behind = KeptBackdrop().of(*network(frame), axes, look)
    return scene(frame, axes, look, shapes_of(frame, axes), behind)


def read(packed: bytes) -> list[dict[str, Any]]:
    """Every frame of a recording with all its arrays, as a browser reads them."""
    head, _, body = gzip.decompress(packed).partition(b"\n")
    held, made, at = {}, [], 0
    told = json.loads(head)
    assert told["unit"] == UNIT
    for frame in told["frames"]:
        for name, kind, shape in frame["arrays"]:
            size = int(np.prod(shape)) * (2 if kind == "h" else 1)
            raw = np.frombuffer(body[at : at + size], "<i2" if kind == "h" else "u1")
            values = np.where(raw == GAP, np.nan, raw / UNIT) if kind == "h" else raw
            held[name] = values.reshape(shape)
            at += size
        for name in frame["drop"]:
            del held[name]
        made.append({**frame, "arrays": dict(held)})
    assert at == len(body)
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
    line = np.array([[0.5, 9.0], [np.nan, np.nan], [-np.inf, -0.25]])
    words = dict.fromkeys(("title", "words", "still", "tone", "step"), "")
    (frame,) = read(recording([RecordedFrame("end", {"claims": kinds, "lines": line}, {}, words)]))
    assert frame["arrays"]["claims"][:, 2].tolist() == [0, 1, 2, 3, 4, 5, 6]
    edge = MOST / UNIT
    np.testing.assert_array_equal(
        frame["arrays"]["lines"], [[0.5, edge], [np.nan, np.nan], [-edge, -0.25]]
    )


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
                np.testing.assert_allclose(told["arrays"][key], arrays[key], atol=1 / UNIT)
            said = headline(frame, running=True)
            assert (said.title, said.words, said.tone) == (
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
    for name, value in (("SCENES", few), ("KEPT", 3), ("certified_points", lambda *_: certain)):
        monkeypatch.setitem(names, name, value)
    packed, _, every, _ = script["opening"]()
    kept, made = read(script["RECORDING"].read_bytes()), read(packed)
    assert kept[-1]["title"] == made[-1]["title"]
    assert len(made) == len(every) == sum(few.values())
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
        np.testing.assert_allclose(arrays[name], last["arrays"][name], atol=1 / UNIT)
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

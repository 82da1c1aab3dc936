"""A page that plays is one file: data as data, its own scripts alone, no host."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from explorer import Run, TrainConfig, preset
from explorer.engine import store
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.data import Dataset
from explorer.engine.data.images import Choice
from explorer.engine.progress import Progress, no_progress
from explorer.engine.roster import ROSTER
from explorer.engine.store import StoreError
from explorer.page.lessons.file import Goal, Lesson, LessonError, State, Step, write
from explorer.page.lessons.file import read_link as read_lesson_link
from explorer.page.lessons.goals import ELSEWHERE
from explorer.page.recording import document
from explorer.page.recording.document import CUT, document_of, page_that_plays
from explorer.page.recording.frames import frames_of, recorded_axes
from explorer.page.recording.images import image_frames
from explorer.page.recording.landscape import SIDE, KnownStarts
from explorer.page.recording.lesson import TRAINED, lesson_that_plays, played_run
from explorer.page.recording.packing import UNIT
from explorer.page.recording.places import page_of
from explorer.page.sharing.words import ANEW
from explorer.page.stages.landscape import words
from explorer.research import runs
from explorer.research.image_runs import ImageRun
from explorer.research.repeat import with_states
from explorer.research.state import link_of, read_link
from tests.page.test_recording import read

MARKUP = "</script><img src=x onerror=alert(1)><!--"


@cache
def small_run() -> Run:
    """Eight points on a circle, 60 steps, 6 steps of an attack."""
    config = TrainConfig(widths=(20,), steps=400)
    plan = Run(preset("alternating-circle", n=8), config, seed=0, repeatable=True)
    trained = runs.train(plan)
    attack = KKTConfig(m=8, steps=6)
    made = runs.attack(trained.target, attack, 0, truth=plan.dataset)
    return replace(
        plan, train_states=trained.states, attack_config=attack, attack_states=made.states
    )


@cache
def with_starts() -> tuple[str, KnownStarts]:
    """The page of this run with its landscape of starts, and what that was made of."""
    run, made = small_run(), []
    with pytest.MonkeyPatch.context() as patch:
        compute = document.starts_of
        patch.setattr(document, "starts_of", lambda *a: made.append(compute(*a)) or made[0])
        return document.page_that_plays(run, starts=True), made[0]


def data_of(page: str) -> dict[str, Any]:
    """What the file holds."""
    (text,) = re.findall(r'<script type="application/json" id="mx-data">(.*?)</script>', page)
    return json.loads(text)


def test_the_file_holds_the_run_and_asks_no_host() -> None:
    run, page = small_run(), page_that_plays(small_run())
    data = data_of(page)
    frames = read(base64.b64decode(data["recording"]))
    assert frames[-1]["scene"] == "end" and frames[-1]["t"] == run.attack_states[-1].t
    assert set(data["charts"]) == {"train", "attack"}
    again = read_link(data["about"]["link"])
    assert again.steps == (run.train_states[-1].t, run.attack_states[-1].t)
    assert data["about"]["link"] in data["about"]["command"]
    assert "://" not in page, "nothing looks like an address"
    assert page == page_that_plays(run), "the same run, the same bytes"


def test_only_its_own_scripts_and_styles_may_run() -> None:
    page = page_that_plays(small_run())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'" and rules["img-src"] == "data:"
    (start,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (zipped,) = re.findall(r'id="mx-code">(.*?)</script>', page)
    css, script = json.loads(gzip.decompress(base64.b64decode(zipped)))
    for texts, rule in (((start, script), "script-src"), ((css,), "style-src")):
        digests = [hashlib.sha256(text.encode()).digest() for text in texts]
        hashes = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
        assert rules[rule] == " ".join(hashes)
    assert page.index(CUT) < page.index("mx-data") < page.index("mx-code") < page.rindex("<script>")
    outside = set(re.findall(r"https?://[\w.]+", css + script)) - {"http://www.w3.org"}
    assert not outside, "a name of the vocabulary of drawings is all that looks like an address"


def test_markup_in_names_stays_text() -> None:
    run = small_run()
    versions = {"margin-explorer": MARKUP, "other": MARKUP}
    page = page_that_plays(replace(run, versions=versions))
    assert page.count("<script") == 3 and page.count("<img") == page_that_plays(run).count("<img")
    held = data_of(page)
    assert (
        any(MARKUP in one for one in held["about"]["versions"]) and MARKUP in held["about"]["cite"]
    )
    titled = document_of({**held, "title": MARKUP})
    assert titled.count("<script") == 3 and data_of(titled)["title"] == MARKUP


def test_what_cannot_be_played_is_said() -> None:
    run = small_run()
    for bad in (
        replace(run, train_states=(), attack_states=()),
        Run(preset("moons"), TrainConfig()),
    ):
        with pytest.raises(StoreError, match="a page that plays needs"):
            page_that_plays(bad)
    later = replace(run.attack_states[-1], x=run.attack_states[-1].x[:, :1])
    with pytest.raises(ValueError):
        list(frames_of(replace(run, attack_states=(later,))))


def test_of_weights_that_nothing_makes_again_the_link_begins_anew() -> None:
    about = data_of(page_that_plays(replace(small_run(), repeatable=False)))["about"]
    assert read_link(about["link"]).steps == (0, 0)
    assert about["note"] == ANEW


def test_the_handle_stands_where_energies_are_known_and_runs_are_their_states() -> None:
    page, made = with_starts()
    held, found = made.held, made.found
    data = data_of(page)["landscape"]
    frames = read(base64.b64decode(data["recording"]))
    assert len(data["nodes"]) == SIDE * (SIDE + 1) // 2 and len(data["runs"]) == 21
    axes = recorded_axes(small_run())
    for at, frame in zip(data["nodes"], frames[1:], strict=False):
        x = held.landscape.candidates(tuple(at))
        placed = axes.shares(x.numpy())
        np.testing.assert_allclose(frame["arrays"]["candidates"][:, :2], placed, atol=1 / UNIT)
        left = words.unexplained_share(held.landscape.energy(tuple(at)))
        assert frame["fold"][0] == ["unexplained here", left]
    keys = list(found.rows)
    for key, run, number in zip(keys, data["runs"], data["shown"], strict=True):
        last = found.states[key][-1]
        frame = frames[run["first"] + run["count"] - 1]
        assert frame["t"] == last.t
        np.testing.assert_allclose(
            frame["arrays"]["candidates"][:, :2], axes.shares(last.x.numpy()), atol=1 / UNIT
        )
        end = found.trails()[number][1][-1]
        np.testing.assert_allclose(data["trails"][number][-1], end, atol=1e-4)
    said = words.headline(replace_starts(held))
    assert said is not None and frames[0]["title"] == said[0]


def replace_starts(held: Any) -> Any:
    """A frame of which the landscape's words need no more."""
    return SimpleNamespace(map_kind="starts", starts=held)


def test_an_attack_without_starts_has_no_landscape() -> None:
    name = next(key for key, entry in ROSTER.items() if not entry.takes_start)
    run = replace(small_run(), attack_name=name, attack_config=None, attack_states=())
    with pytest.raises(StoreError, match="begins at no given start"):
        page_that_plays(run, starts=True)


def small_lesson(caption: str = "Press Play.") -> Lesson:
    """Three steps: points that are trained on and attacked, only words, a question."""
    state = State(points=((-1.0, 0.0, -1.0), (1.0, 0.5, 1.0)), train={"widths": [6]},
                  network="trained", steps=300, stage="attack",
                  settings={"steps": 40, "m": 4})  # fmt: skip
    goal = Goal(name="attacked at least", value=10)
    first = Step(caption=caption, state=state, goal=goal)
    asked = Step(caption="Think.", question="Why?", answer="Because.")
    return Lesson(title="Mine", line="One.", steps=(first, Step(caption="Read."), asked))


def test_a_lesson_is_a_file_whose_steps_play_the_runs_they_name() -> None:
    lesson = small_lesson()
    page = lesson_that_plays(lesson)
    data = data_of(page)
    first, *others = data["steps"]
    frames = read(base64.b64decode(first["recording"]))
    assert [frame["t"] for frame in frames if frame["scene"] == "train"][-1] == 300
    assert frames[-1]["scene"] == "end" and frames[-1]["t"] == 40, "the whole attack"
    assert [step["recording"] for step in others] == ["", ""]
    assert first["goal"] == lesson.steps[0].goal.words and others[1]["answer"] == "Because."
    assert read_lesson_link(data["link"]) == lesson
    assert "default-src 'none'" in page and page == lesson_that_plays(lesson)
    marked = lesson_that_plays(small_lesson(f"{MARKUP}\n\nTwo."))
    assert marked.count("<script") == 3 and data_of(marked)["steps"][0]["caption"] == [
        MARKUP,
        "Two.",
    ]


def test_a_step_shows_its_weights_its_map_and_its_starts() -> None:
    band = State(preset="blobs", n=6, network="trained", steps=50, stage="train", weights=True)
    exact = State(preset="xor", n=8, network="exact", stage="landscape", map="point", point=3)
    starts = State(preset="blobs", n=4, train={"widths": [6]}, network="trained", steps=300,
                   stage="landscape", settings={"m": 4, "steps": 20}, mix=(1.0, 1.0))  # fmt: skip
    steps = tuple(Step(caption="A", state=state) for state in (band, exact, starts))
    told = data_of(lesson_that_plays(Lesson(title="Mine", steps=steps)))["steps"]
    assert [one["starts"] is None for one in told] == [True, True, False]
    assert told[2]["starts"]["at"] == [1.0, 0.0, 0.0] and len(told[2]["starts"]["runs"]) == 21
    first, second = (read(base64.b64decode(one["recording"])) for one in told[:2])
    needles, ends = (first[-1]["arrays"][f"band_{name}"] for name in ("needles", "ends"))
    assert np.linalg.norm(needles, axis=1).max() == pytest.approx(1.0, abs=1e-3)
    assert needles.shape == ends.shape and "band_needles" not in first[0]["arrays"]
    hand, points = (second[-1]["arrays"][name] for name in ("hands", "points"))
    assert "energy" in second[-1]["arrays"] and "energy" not in second[0]["arrays"]
    np.testing.assert_array_equal(hand[0], points[2, :2])


SQUARE = ((-1.0, -0.5, -1.0), (-1.0, 0.5, 1.0), (1.0, -0.5, 1.0), (1.0, 0.5, -1.0))


def recorded_step(state: State, goal: Goal | None = None, *cards: str) -> list[dict[str, Any]]:
    """The frames of a lesson of this one step."""
    step = Step(caption="A", state=state, goal=goal, cards=cards)
    (told,) = data_of(lesson_that_plays(Lesson(title="Mine", steps=(step,))))["steps"]
    return read(base64.b64decode(told["recording"]))


def test_a_step_of_explain_plays_what_its_goal_asks() -> None:
    line = State(preset="alternating-line", n=4, network="exact", stage="explain")
    plane = State(preset="moons", n=10, network="exact", stage="explain")
    split = [f for f in recorded_step(plane) if f["scene"] == "explain"]
    counts = [len(f["arrays"]["candidates"]) for f in split]
    assert counts == sorted(counts) and counts[-1] == counts[0] + 1, "one point became two"
    torn = recorded_step(plane, Goal(name="explains no longer"))[-1]
    assert torn["tone"] == "bad"
    last = recorded_step(line, Goal(name="region needed"))[-1]
    assert {"places", "disc"} <= {*last["arrays"]} and last["tone"] == "good"


def test_a_step_plays_on_to_the_stage_that_it_asks_for_and_shows_its_chart() -> None:
    state = State(points=SQUARE, train={"widths": [6]}, network="trained", steps=400,
                  stage="train", settings={"steps": 20, "m": 4})  # fmt: skip
    frames = recorded_step(state, Goal(name="stage on screen", value=3), "margins")
    assert frames[-1]["scene"] == "end" and frames[-1]["t"] == 20
    charts = {f["scene"] for f in frames if "chart" in f["values"]}
    assert charts == {"train"}
    stems = [len(f["values"]["chart"]["data"]) for f in frames if "chart" in f["values"]]
    assert min(stems) == 4 * len(SQUARE), "a stem of four numbers a point; one far off is broken"
    curve = [f for f in recorded_step(state, None, "curves") if "chart" in f["values"]]
    assert [f["values"]["chart"]["values"]["handle"]["at"] for f in curve[1:]] == [
        f["t"] for f in curve[1:]
    ]


def test_a_step_of_compare_shows_the_claims_of_each_attack() -> None:
    state = State(points=SQUARE, train={"widths": [6]}, network="trained", steps=400, stage="arena")
    titles = [f["title"] for f in recorded_step(state) if f["scene"] == "arena"]
    assert len(set(titles)) > 1 and all(titles)


def test_a_task_of_the_page_of_images_plays_candidates_beside_digits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = ImageRun(choice=Choice(n=4), widths=(40,), steps=6)
    made, facts = image_frames(small, 3)
    assert [f.scene for f in made[:5]] == ["attack"] * 4 + ["end"]
    n, side = int(facts["n"]), int(facts["side"])
    assert made[0].arrays["found"].shape == (n, side, side) == made[-1].arrays["truth"].shape
    assert made[-1].arrays["matched"].sum() == int(facts["found"])
    monkeypatch.setattr("explorer.page.recording.lesson.task_frames", lambda _: made)
    step = Step(caption="A", goal=Goal(name=ELSEWHERE))
    there, elsewhere = (Lesson(title="Mine", steps=(step,), pages=(page,))
                        for page in ("digits", "membership"))  # fmt: skip
    (told,) = data_of(lesson_that_plays(there))["steps"]
    frames = read(base64.b64decode(told["recording"]))
    assert frames[-1]["title"] == made[-1].words["title"] and frames[-1]["values"]["images"]
    assert data_of(lesson_that_plays(elsewhere))["steps"][0]["recording"] == ""


def test_play_comes_as_far_as_a_step_asks_for() -> None:
    begun = State(preset="blobs", network="trained", steps=0, stage="train")
    assert played_run(begun).steps == (TRAINED, 0)
    assert played_run(replace(begun, network="exact")).steps == (0, 0)
    assert played_run(replace(begun, steps=5_000)).steps == (5_000, 0)


@contextmanager
def unseen(_: str) -> Iterator[Progress]:
    yield no_progress


def test_a_lesson_is_exported_of_its_file(tmp_path: Path) -> None:
    given = tmp_path / "mine.json"
    given.write_bytes(write(Lesson(title="Mine", steps=(Step(caption="Read."),))))
    assert data_of(page_of(str(given), False, unseen))["title"] == "Mine"
    given.write_text('{"title": "x", "steps": [{"capton": "y"}]}')
    with pytest.raises(LessonError, match="capton"):
        page_of(str(given), False, unseen)


def test_a_link_plays_as_its_file_does_in_any_unit(tmp_path: Path) -> None:
    data = preset("blobs", n=6)
    asked = Run(
        Dataset(300 * data.x, data.y), TrainConfig(widths=(8,)), stage="train", steps=(30, 0)
    )
    link, file = link_of(asked), tmp_path / "far.safetensors"
    store.save_run(with_states(read_link(link)), file)
    of_link, of_file = (data_of(page_of(str(p), False, unseen)) for p in (link, file))
    assert of_link["recording"] == of_file["recording"]

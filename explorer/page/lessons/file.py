"""A lesson as a file: JSON whose parts are checked by the same classes that hold its settings.

A lesson has steps. A step may put the page into a `State` (points, network, attack, stage); it has
words, a question with a folded answer, the cards that are in sight, and a `Goal` that the page
checks. There is no code in a file, and nothing in it names another file or an address.

    >>> from explorer.page.lessons.file import packaged_lessons, read
    >>> first = packaged_lessons()[0]
    >>> first.title, len(first.steps) > 2
    ('What is a margin?', True)
    >>> read(b'{"title": "Mine", "line": "One.", "steps": [{"capton": "x"}]}')
    Traceback (most recent call last):
        ...
    explorer.page.lessons.file.LessonError: the lesson: step 1: Step has no setting 'capton'; it \
has: caption, question, answer, state, goal, cards
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import torch

from explorer.engine.data import Dataset, preset
from explorer.engine.data.presets import PRESETS
from explorer.engine.files import FileError, check_size, one_line, reading, safe_name
from explorer.engine.roster import DEFAULT, AttackConfig, by_key
from explorer.engine.settings import config_of, is_number, json_schema, setting, settings
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.page.cards import CARDS
from explorer.page.lessons.goals import FORMER, GOALS, Goal
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.train import commands as train
from explorer.research.state import bytes_of, letters_of

FOLDER = Path(__file__).parent / "texts"
MOST_BYTES = 2**20  # arbitrary: a hundred times the longest of ours
LINK = re.compile(r"mxl1\.([A-Za-z0-9_-]+)\s*$")  # of a lesson, behind the # of an address
MOST_STEPS = 30  # arbitrary: far above what one sits through
MOST_TRAINED = 50_000  # steps of training at the opening of a step; arbitrary: some ten seconds
MOST_ATTACKED = 5_000  # likewise of an attack
REMEDY = "Save it again on the page, or see docs/lessons.md for the format."
# What may be in sight beside the plane, by the name of a card. None named: all of the stage.
if TYPE_CHECKING:
    Card = str
else:
    Card = Literal[(*CARDS, "folds", "weights")]

T = TypeVar("T")


class LessonError(FileError):
    """A file that is no lesson: what is wrong, where, and what was expected."""


@settings
class State:
    """Where a step puts the page.

    Attributes:
        preset: a ready-made set; empty where `points` are given.
        n: its number of points; None for its usual one.
        noise: its noise; None for its usual one.
        points: rows [x, class] or [x, y, class], drawn by hand.
        seed: of the set, the first weights and the first candidates.
        train: settings of training that differ from the defaults, by name.
        network: none, trained for `steps`, or the exact maximum-margin network of the points.
        steps: of training.
        stage: the page's stage.
        attack: key of the attack.
        settings: of the attack, those that differ from its defaults.
        attack_steps: how far the attack has run.
        mix: shares mix_truth and mix_data of the attack's start.
        map: what moves in the landscape.
        point: whose map it is, from 1; in Explain, with the map "split", which one is in hand.
        truth: whether the plane shows the points that the attack looks for.
        weights: whether the weights stand under the plane, as needles.
        reach: how far the plane goes from 0 to each side; None for as far as the points need.
    """

    # fmt: off
    preset: Annotated[str, setting("Ready-made set of points")] = ""
    n: Annotated[int | None, setting("Number of points", ge=1, le=200)] = None
    noise: Annotated[float | None, setting("Noise of the set", ge=0)] = None
    points: Annotated[tuple[Annotated[tuple[float, ...], setting("Point", strict=False)], ...],
                      setting("Points drawn by hand", strict=False)] = ()
    seed: Annotated[int, setting("Seed", ge=0)] = 0
    train: Annotated[dict[str, Any] | None, setting("Settings of training")] = None
    network: Annotated[Literal["none", "trained", "exact"], setting("Network")] = "none"
    steps: Annotated[int, setting("Steps of training", ge=0, le=MOST_TRAINED)] = 0
    stage: Annotated[Literal["draw", "train", "attack", "explain", "landscape", "arena"],
                     setting("Stage of the page")] = "draw"
    attack: Annotated[str, setting("Key of the attack")] = DEFAULT
    settings: Annotated[dict[str, Any] | None, setting("Settings of the attack")] = None
    attack_steps: Annotated[int, setting("Steps of the attack", ge=0, le=MOST_ATTACKED)] = 0
    mix: Annotated[tuple[float, float], setting("Shares of the start", strict=False)] = (0.0, 0.0)
    map: Annotated[Literal["starts", "point", "split"], setting("What moves")] = "starts"
    point: Annotated[int, setting("Point of the map", ge=1, le=200)] = 1
    truth: Annotated[bool, setting("Whether the points are in sight")] = True
    weights: Annotated[bool, setting("Whether the weights are in sight, as needles")] = False
    reach: Annotated[float | None, setting("How far the plane goes from 0", gt=0, le=1000)] = None
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        if bool(self.preset) and bool(self.points):
            raise ValueError("a state has a preset or points, not both")
        if self.preset and self.preset not in PRESETS:
            raise ValueError(
                f"preset must be one of {', '.join(PRESETS)}; got {safe_name(repr(self.preset))}"
            )
        if self.stage not in ("draw", "train") and self.network == "none":
            raise ValueError(f"the stage {self.stage} needs a network, trained or exact; got none")
        if not all(0 <= share <= 1 for share in self.mix):
            raise ValueError(f"mix must be two shares from 0 to 1; got {list(self.mix)}")
        data = self.dataset()
        draw.check_shown(data)
        if data.n and self.point > data.n:
            raise ValueError(f"point must be one of the {data.n} points; got {self.point}")
        train.check_room(self.train_config().widths, data.d, data.outputs)
        attack.check_room(self.attack_config())

    def run(self) -> Run:
        """Return the run without states that it names; no attack before the stage of one."""
        run = Run(
            self.dataset(), self.train_config(), seed=self.seed, stage=self.stage,
            exact=self.network == "exact",
            steps=(self.steps if self.network == "trained" else 0, 0),
        )  # fmt: skip
        if self.stage in ("draw", "train"):
            return run
        return replace(
            run, attack_name=self.attack, mix=self.mix, steps=(run.steps[0], self.attack_steps),
            attack_config=by_key(self.attack).suit(self.attack_config(), self.mix[1]),
        )  # fmt: skip

    def dataset(self) -> Dataset:
        """Return the points. ValueError for points that the plane cannot show."""
        if self.preset:
            row = PRESETS[self.preset]
            n = row.n if self.n is None else self.n
            return preset(
                self.preset, n, row.noise if self.noise is None else self.noise, self.seed
            )
        rows = [list(row) for row in self.points]
        if any(len(row) != len(rows[0]) or len(row) not in (2, 3) for row in rows):
            raise ValueError("each of points must be [x, class] or [x, y, class], all alike")
        table = torch.tensor(rows, dtype=torch.float64).reshape(len(rows), -1 if rows else 3)
        return Dataset(table[:, :-1].contiguous(), table[:, -1].contiguous())

    def train_config(self) -> TrainConfig:
        """Return the settings of training. ValueError with the setting that is wrong."""
        return config_of(TrainConfig, self.train or {}, "training")

    def attack_config(self) -> AttackConfig:
        """Return the settings of the attack. ValueError with what is wrong."""
        entry = by_key(self.attack)
        made: AttackConfig = config_of(entry.config, self.settings or {}, entry.title)
        return made


@settings
class Step:
    """One step of a lesson.

    Attributes:
        caption: what is to be seen and done; an empty line begins a paragraph.
        question: to think about, or empty.
        answer: of it, folded.
        state: where the page is put; None to go on with what is there.
        goal: what the page waits for; None where reading is all.
        cards: what is in sight beside the plane; none named: all that the stage has.
    """

    caption: Annotated[str, setting("Words of the step", max_length=1200)] = ""
    question: Annotated[str, setting("A question", max_length=400)] = ""
    answer: Annotated[str, setting("Its answer, folded", max_length=1200)] = ""
    state: Annotated[State | None, setting("Where the page is put")] = None
    goal: Annotated[Goal | None, setting("What the page waits for")] = None
    cards: Annotated[tuple[Card, ...], setting("Cards in sight", strict=False)] = ()


@settings
class Lesson:
    """A lesson.

    Attributes:
        title: its name.
        line: what it shows, in one line.
        steps: in order.
        picture: the step whose state is its picture, from 1.
        pages: other pages that belong to it, of membership and digits.
    """

    title: Annotated[str, setting("Name of the lesson", min_length=1, max_length=80)]
    line: Annotated[str, setting("What it shows, in one line", max_length=160)] = ""
    steps: Annotated[tuple[Step, ...], setting("Steps in order")] = ()
    picture: Annotated[int, setting("Step that is its picture", ge=1)] = 1
    pages: Annotated[tuple[Literal["membership", "digits"], ...],
                     setting("Pages that belong to it", strict=False)] = ()  # fmt: skip

    def __post_init__(self) -> None:
        """Refuse a lesson without steps, and one with more than anyone sits through."""
        if not 1 <= len(self.steps) <= MOST_STEPS:
            raise ValueError(f"steps must be from 1 to {MOST_STEPS} of them; got {len(self.steps)}")
        if self.picture > len(self.steps):
            raise ValueError(f"picture must be a step, 1 to {len(self.steps)}; got {self.picture}")


def schema() -> dict[str, Any]:
    """Return the JSON schema of a lesson's file, as pydantic writes it."""
    return json_schema(Lesson)


def read(data: bytes) -> Lesson:
    """Return the lesson of a file.

    Raises:
        LessonError: where it holds no lesson, in one sentence: what is wrong, where, what was
            expected.
    """
    check_size(len(data), MOST_BYTES, LessonError)
    with reading("the lesson", REMEDY, LessonError):
        given = json.loads(data.decode("utf-8"))
    return _lesson(given)


def _lesson(given: Any) -> Lesson:  # noqa: ANN401 - from a file
    where = "the lesson"
    top = dict(_table(given, where))
    rows = top.pop("steps", [])
    if not isinstance(rows, list):
        raise LessonError(f"{where}: steps must be a list; got {_short(rows)}. {REMEDY}")
    if "title" not in top:
        raise LessonError(f"{where}: expected a title; got none. {REMEDY}")
    steps = [_step(row, f"{where}: step {k}") for k, row in enumerate(rows[: MOST_STEPS + 1], 1)]
    return _instance(Lesson, {**top, "steps": tuple(steps)}, where)


def _step(given: Any, where: str) -> Step:  # noqa: ANN401 - from a file
    row = dict(_table(given, where))
    parts: dict[str, Callable[..., Any]] = {"state": State, "goal": Goal}
    for name, kind in parts.items():
        if row.get(name) is not None:
            inner = f"{where}: {name}"
            table = _table(row[name], inner)
            table = _present_goal(table) if kind is Goal else table
            row[name] = _instance(kind, table, inner)
    return _instance(Step, row, where)


def _present_goal(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a goal of a file of before by its present name, with its present number."""
    if table.get("name") not in FORMER:
        return table
    name, number_of = FORMER[table["name"]]
    value = table.get("value")
    made = {"value": number_of(value)} if is_number(value) else {}
    return {**table, "name": name, **made}


def _table(given: Any, where: str) -> Mapping[str, Any]:  # noqa: ANN401 - from a file
    if not isinstance(given, dict):
        raise LessonError(f"{where}: expected settings by name, {{…}}; got {_short(given)}")
    return given


def _instance(kind: Callable[..., T], given: Mapping[str, Any], where: str) -> T:
    try:
        return config_of(kind, given)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise LessonError(f"{where}: {error}") from error


def _short(given: object) -> str:
    return safe_name(repr(given)[:200])


def write(lesson: Lesson) -> bytes:
    """Return the lesson as a file: what is as usual is left out, so that it can be read."""
    text = json.dumps(_plain(lesson), ensure_ascii=False, indent=1)
    return (text + "\n").encode()


def link_of(lesson: Lesson) -> str:
    """Return the lesson as one line of letters, to stand behind the # of an address."""
    return f"mxl1.{letters_of(write(lesson))}"


def is_link(text: str) -> bool:
    """Return whether a text ends in a lesson as a link."""
    return LINK.search(text) is not None


def read_link(text: str) -> Lesson:
    """Return the lesson of a link. LessonError, in one sentence, where there is none."""
    found = LINK.search(text)
    if found is None:
        raise LessonError("this is no link of a lesson, which begins with mxl1. Copy it again.")
    with reading("the link of the lesson", "Copy it again, the whole of it.", LessonError):
        content = bytes_of(found[1], MOST_BYTES)
    return read(content)


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON has no type
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {f.name: _plain(v) for f, v in pairs if v != f.default}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value


@cache
def contents() -> tuple[tuple[str, str], ...]:
    """Return titles and lines of the lessons of this package, without checking the rest."""
    found = [json.loads(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))]
    return tuple((one["title"], one.get("line", "")) for one in found)


@cache
def packaged_lessons() -> tuple[Lesson, ...]:
    """Return the lessons of this package, in their order."""
    return tuple(read(path.read_bytes()) for path in sorted(FOLDER.glob("*.json")))


def file_name(title: str) -> str:
    """Return a name for the file of a lesson of this title."""
    words = "".join(c if c.isalnum() else " " for c in one_line(title, 60).lower()).split()
    return f"{'-'.join(words) or 'lesson'}.json"


__all__ = [
    "GOALS", "Goal", "Lesson", "LessonError", "State", "Step", "contents", "file_name",
    "is_link", "link_of", "packaged_lessons", "read", "read_link", "schema", "write",
]  # fmt: skip

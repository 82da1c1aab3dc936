"""Every result as a figure of bqplot: its marks hold the numbers of the chart that paper draws."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import bqplot as bq
import numpy as np
import pytest
import torch

import explorer
from explorer.engine.attacks.kkt import KKTConfig
from explorer.engine.certificate import certify
from explorer.engine.charts import Axis, Chart, Guide, HeatMap, Series
from explorer.engine.confidence import Share
from explorer.engine.controls import control_sets
from explorer.engine.data import heldout, preset
from explorer.engine.energy.questions import Answers, MapConfig, MapQuestion
from explorer.engine.exact import maximum_margin
from explorer.engine.membership.experiment import MembershipTrial
from explorer.engine.scoring import RADII, recall_curve
from explorer.engine.store import Run
from explorer.engine.training import TrainConfig
from explorer.page.view.base import SHARED
from explorer.page.view.figure import colour_of
from explorer.research.grid import maps
from explorer.research.pictures.painting import chart_figure
from explorer.research.pictures.results import charts_of
from explorer.research.rates import roc
from explorer.research.repeat import repeat
from explorer.research.runs import train
from explorer.research.sweep import experiments, sweep, threads
from explorer.research.sweep.arena import ArenaLine
from explorer.research.tuning import Trial
from explorer.style import PAPER_INKS

LINE, CIRCLE = preset("alternating-line", n=4), preset("alternating-circle", n=6)
RUN = Run(CIRCLE, TrainConfig(widths=(20,), steps=400), seed=1, stage="train", steps=(400, 0))
SHARES = tuple(Share(k, k - 0.1, k + 0.2) for k in (0.2, 0.5, 0.7))


def picture(kind: str) -> Any:
    net = maximum_margin(LINE.x, LINE.y).net
    asked = MapQuestion(kind, net, LINE, heldout(LINE, 1), LINE.x.double(), 1, MapConfig())
    return Answers().answer(asked, 11)


def grid_rows() -> list[dict[str, Any]]:
    ends = {"truth": 0.1, "heldout": 0.4, "noise": 0.9}
    return [
        {"seed": 0, "mix_truth": a, "mix_data": b, "result": {**ends, "start": ends}}
        for a in (0.0, 0.5, 1.0) for b in (0.5, 1.0)
    ]  # fmt: skip


def swept() -> list[dict[str, Any]]:
    table = {"preset": "alternating-line", "n": [3, 4], "method": "exact", "attack": ""}
    return list(sweep(experiments(table), threads(1)))


def trials() -> list[MembershipTrial]:
    held = torch.linspace(0.5, 1.5, 8), torch.linspace(0.0, 1.2, 12)
    rest = (0.1, 1.0, 0.5, 0.4, 0.1, 0.2, 0.5, *held)
    return [MembershipTrial(d, k, 1.0, *rest) for d in (10, 100) for k in range(2)]


def searched() -> list[Trial]:
    numbers = ((0.1, 3.0), (0.01, 2.0), (math.inf, 0.0))
    return [
        Trial(k, {}, KKTConfig(), *pair, 4.0, "" if k < 2 else "why")
        for k, pair in enumerate(numbers)
    ]


# What is made, the charts that it has, and whether each axis is by logarithms.
KINDS: dict[str, tuple[Callable[[], Any], tuple[str, ...], tuple[bool, bool]]] = {
    "training": (lambda: train(RUN), ("steps", "points", "certificate"), (True, False)),
    "states": (lambda: train(RUN).states, ("steps",), (True, False)),
    "run": (lambda: repeat(RUN), ("points", "certificate"), (False, False)),
    "certificate": (
        lambda: certify(maximum_margin(CIRCLE.x, CIRCLE.y).net, CIRCLE.x, CIRCLE.y),
        ("certificate",), (False, False),
    ),
    "recall": (
        lambda: recall_curve(CIRCLE, control_sets(CIRCLE, 19), CIRCLE.x[:4], CIRCLE.y[:4], RADII),
        ("recall",), (True, False),
    ),
    "arena": (
        lambda: [ArenaLine("kkt", "KKT", 1, "", recall=SHARES, precision=SHARES,
                           control=(0.1,) * 3), ArenaLine("pooled", "Pooled", 0, "refused")],
        ("within 0.03", "within 0.01", "within 0.1"), (False, False),
    ),
    "sweep": (swept, ("sweep",), (False, False)),
    "roc": (lambda: roc(*torch.rand(2, 40)), ("roc",), (True, False)),
    "membership": (trials, ("roc", "shares"), (True, False)),
    "grid": (lambda: maps(3, grid_rows()), ("truth", "heldout", "noise", "data edge",
                                            "noise edge"), (False, False)),
    "search": (searched, ("front",), (True, False)),
    "energy of a line": (lambda: picture("point"), ("curve",), (False, True)),
    "energy of starts": (lambda: picture("starts"), ("edges",), (False, False)),
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> tuple[Any, tuple[str, ...], tuple[bool, bool]]:
    make, *rest = KINDS[request.param]
    return make(), *rest


def points_of(mark: bq.Mark) -> np.ndarray:
    """The places of a mark (n, 2), without the gaps of a line."""
    x, y = np.atleast_2d(mark.x), np.atleast_2d(mark.y)
    places = np.stack([np.broadcast_to(x, y.shape).ravel(), y.ravel()], 1)
    return places[~np.isnan(places).any(1)]


def series_points(one: Series) -> np.ndarray:
    """The places that a series is drawn through."""
    x, y = (np.asarray(v, dtype=float) for v in (one.x, one.y))
    z = np.zeros(len(x)) if one.z is None else np.asarray(one.z, dtype=float)
    if one.kind == "band":
        x, y = np.concatenate([x, x]), np.concatenate([z, y])
    elif one.kind == "stems":
        x, y = np.repeat(x, 2), np.stack([z, y], 1).ravel()
    places = np.stack([x, y], 1)
    return places[~np.isnan(places).any(1)]


def test_every_result_has_its_charts_and_each_the_numbers_of_paper(kind) -> None:
    result, parts, logs = kind
    assert tuple(charts_of(result)) == parts
    for part, chart in charts_of(result).items():
        made = explorer.figure(result, part)
        assert [axis.label for axis in made.axes] == [a.name or a.short for a in (chart.x, chart.y)]
        if isinstance(chart, HeatMap):
            (cells,) = made.marks
            np.testing.assert_array_equal(cells.color, chart.values)
            assert [len(cells.row), len(cells.column)] == [n + 1 for n in chart.values.shape]
            continue
        series = made.marks[len(chart.rules) :]
        drawn = [one for one in chart.series if len(series_points(one))]
        assert len(series) == len(drawn) > 0
        for mark, one in zip(series, drawn, strict=True):
            np.testing.assert_allclose(points_of(mark), series_points(one), rtol=1e-12)
        assert chart_figure(chart).axes[0].get_xscale() == ("log" if chart.x.log else "linear")
    first = explorer.figure(result)
    assert tuple(isinstance(axis.scale, bq.LogScale) for axis in first.axes) == logs
    assert [(a.scale.min, a.scale.max) for a in first.axes] == [
        (chart.low, chart.high) for chart in (charts_of(result)[parts[0]].x,
                                              charts_of(result)[parts[0]].y)
    ]  # fmt: skip


CHART = Chart(
    [
        Series([1, 10], [0.2, np.nan], "a line", look={"dashed": True, "steps": True}),
        Series([1, 10], [0.2, 0.4], "a band", "band", z=[0.1, 0.3]),
        Series([2.0, 3.0], [0.5, 0.6], "dots", "dots", ids=[1, 0], colour="good",
               look={"hollow": True, "shape": "diamond"}),
    ],
    Axis(1, 100, "step", log=True), Axis(0, 1, percent=True, ticks=((0, "none"), (0.5, "half"))),
    "Title", "note", rules=[Guide(0.5, "half"), Guide(2.0, axis="x")], tips=["first", "second"],
)  # fmt: skip


def test_looks_ticks_rules_and_tips_are_those_of_the_chart() -> None:
    made = explorer.figure(CHART)
    across, upright, line, band, dots = made.marks
    assert made.title == "Title (note)"
    assert (line.line_style, line.interpolation, line.labels) == (
        "dashed",
        "step-after",
        ["a line"],
    )
    assert (band.fill, band.display_legend) == ("between", False)
    assert (dots.marker, dots.fill, dots.names.tolist()) == ("diamond", False, ["second", "first"])
    assert dots.colors == [colour_of("good")] and line.colors == [colour_of("ink")]
    assert colour_of("good") == "var(--mx-good, #0a7d55)"  # that of the page around it, if any
    assert across.x.tolist() == [1, 100] and across.y.tolist() == [0.5, 0.5]
    assert upright.x.tolist() == [2, 2] and upright.y.tolist() == [0, 1]
    assert made.axes[1].tick_labels == {"0": "none", "0.5": "half"}
    assert made.axes[1].tick_values.tolist() == [0, 0.5]
    mine = bq.Lines(x=[1, 100], y=[0, 1], scales=line.scales)
    made.marks = [*made.marks, mine]  # a reader's own
    assert made.marks[-1] is mine and explorer.figure(CHART, title="mine").title == "mine"


def row(message: str = "", **trial: Any) -> dict[str, Any]:
    """A row of a sweep without an attack; its margin is a tenth of its seed."""
    result = {} if message else {"gamma_bar": trial["seed"] / 10}
    status = "failed" if message else "done"
    return {"status": status, "message": message, "trial": trial, "result": result}


SWEEPS = (  # the rows, the name of the axis, whether it is log, where values stand, names of lines
    ([row(n=n, seed=s) for n in (5, 10) for s in (1, 2)], "n", False, [5, 10], ["margin"]),
    ([row(n=n, seed=1) for n in (5, 500)], "n", True, [5, 500], ["margin"]),
    ([row(early_stop=e, seed=1) for e in (300, None)], "early stop", False, [0, 1], ["margin"]),
    ([row(n=n, train={"lr": r}, seed=1) for n in (5, 10) for r in (1, 2)], "n", False, [5, 10],
     ["lr 1", "lr 2"]),
    ([row(n=5, seed=s) for s in (1, 3)], "", False, [0], ["margin"]),
)  # fmt: skip


@pytest.mark.parametrize(("rows", "name", "log", "places", "lines"), SWEEPS)
def test_the_first_setting_that_varies_is_the_axis_and_seeds_are_pooled(
    rows, name: str, log: bool, places: list[float], lines: list[str]
) -> None:
    chart = charts_of(rows)["sweep"]
    assert (chart.x.name, chart.x.log) == (name, log)
    drawn = [one for one in chart.series if one.kind == "line"]
    assert [one.name for one in drawn] == lines
    mean = np.mean([r["trial"]["seed"] for r in rows]) / 10
    for one in drawn:
        np.testing.assert_allclose(one.x, places)
        np.testing.assert_allclose(one.y, mean)


def test_recall_and_its_control_are_pooled_by_attack() -> None:
    def attacked(attack: str, n: int, found: int) -> dict[str, Any]:
        counts = [found] * 3
        result = {"gamma_bar": 0.1, "n": 4, "reach": 4, "claims": 4, "found": counts,
                  "found_reach": counts, "chance": [[0, 1, 1]] * 9, "p_value": 0.1,
                  "distance": 0.1, "residual": 0.1}  # fmt: skip
        return {"status": "done", "message": "", "seconds": {"attack": 1.0}, "result": result,
                "trial": {"attack": attack, "n": n, "seed": 0}}  # fmt: skip

    rows = [attacked(key, n, k) for key in ("kkt", "pooled") for n, k in ((4, 1), (8, 3))]
    chart = charts_of(rows)["sweep"]
    lines = {one.name: one for one in chart.series if one.kind == "line"}
    assert list(lines) == ["kkt", "kkt, control sets", "pooled", "pooled, control sets"]
    assert np.asarray(lines["kkt"].y).tolist() == [0.25, 0.75]
    assert np.asarray(lines["kkt, control sets"].y).tolist() == [0.25, 0.25]


def test_two_settings_make_tables_with_the_line_p_equals_d_n() -> None:
    def phased(n: int, width: int, seed: int, **result: Any) -> dict[str, Any]:
        counts = [0, n // 4 * seed, n]
        found = {"gamma_bar": 0.1, "d": 2, "n": n, "found": counts, "found_reach": counts,
                 "reach": n, "claims": n, "chance": [[0, 1, 1]] * 9, "p_value": 0.1,
                 "residual": 0, "distance": 0.1, "matched": [True, True],
                 "parameters": 4 * width, "merged_parameters": 2 * width}  # fmt: skip
        return {"status": "done", "message": "", "seconds": {"attack": 1.0},
                "result": found | result,
                "trial": {"attack": "kkt", "n": n, "seed": seed, "widths": [width]}}  # fmt: skip

    known = {"determined": [True, False], "other": {"distance": 0.5}}
    rows = [phased(n, w, s) for n in (32, 8, 16) for w in (16, 4) for s in (1, 3)]
    rows[0]["result"] |= known
    rows = [row for row in rows if (row["trial"]["n"], row["trial"]["widths"]) != (8, [4])]
    parts = charts_of([*rows, row("refused", n=8, widths=[4], seed=1)])
    _, found, sure, far = parts.values()
    np.testing.assert_array_equal(found.values, [[np.nan, 0.5, 0.5], [0.5, 0.5, 0.5]])
    assert (sure.values[1, 2], far.values[1, 2], far.top) == (0.5, 0.5, 0.5)
    assert np.isnan(sure.values).sum() == np.isnan(far.values).sum() == 5
    assert [t for _, t in found.x.ticks] == ["8", "16", "32"] and found.y.name == "widths"
    # 4 k = 2 n: a width of n / 2, half way from 4 to 16 by ratios; merged neurons have half as many
    whole, merged = found.lines
    np.testing.assert_allclose(whole.y, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(merged.y, [np.nan, 1.0, 1.5])
    cells, *lines = explorer.figure(rows, "certified").marks
    assert len(lines) == 2 and cells.color.shape == (2, 3)


WRONG = (
    (3, TypeError, r"a figure shows a result: Trained, .*; got a int. Give what"),
    ([], TypeError, "got a list"),
    (["words"], TypeError, "got a list of str"),
    ([Trial(0, {}, KKTConfig(), 0.1, 1.0, 1.0), 3], TypeError, "got a list of Trial"),
    ([row("it broke", seed=1)], ValueError, r"got 0 done of 1\. it broke"),
    (Run(CIRCLE, TrainConfig()), TypeError, "got a Run"),
)


@pytest.mark.parametrize(("result", "kind", "words"), WRONG)
def test_what_is_no_result_is_named_with_what_is(result, kind, words: str) -> None:
    with pytest.raises(kind, match=words):
        explorer.figure(result)


def test_a_wrong_part_and_points_alone_are_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"the parts chart; got 'roc'\. Leave it away"):
        explorer.figure(CHART, "roc")
    with pytest.raises(ValueError, match="needs a network; got points alone"):
        explorer.figure(repeat(Run(CIRCLE, TrainConfig())))


def test_every_colour_of_the_page_is_one_on_paper() -> None:
    page = re.search(r"const COLOURS = \{(.*?)\};", SHARED, re.DOTALL)
    assert page is not None
    named = dict(re.findall(r'(\w+): "(#\w+)"', page[1]))
    assert {k: v.lower() for k, v in PAPER_INKS.items()} == {k: v.lower() for k, v in named.items()}
    with pytest.raises(KeyError):
        colour_of("no colour")

"""Pictures to take away: their files hold the numbers on screen, and paper shows the same."""

from __future__ import annotations

import csv
import io
import sys

import numpy as np
import pytest

from explorer.engine.charts import Axis, Chart, Guide, Series
from explorer.page import play
from explorer.page.apps.membership import MembershipApp
from explorer.page.apps.membership_scene import MembershipScene
from explorer.page.view.base import CanvasView
from explorer.page.view.canvases import PlaneView, StripView, TriangleView
from explorer.page.view.chart import ChartView
from explorer.page.view.export import of_chart
from explorer.research.pictures.painting import SETS, chart_figure
from tests.page.pages import send, trained

NAN = float("nan")
CHART = Chart(
    [
        Series([1.0, 10.0, 100.0], [0.1, NAN, 1 / 3], "share of $\\theta$", look={"dashed": True}),
        Series([1, 10], [0.2, 0.4], "sets", "band", z=[0.1, 0.3]),
        Series([2.0], [0.5], "found", "dots", ids=[0], look={"shape": "cross"}),
        Series([3.0], [0.9], "bar", "stems", look={"width": 30}),
    ],
    Axis(1, 100, "step", log=True), Axis(0, 1, short="share", percent=True),
    "What is shown", rules=[Guide(0.5, "half")], handle=10.0, handle_name="step",
    tips=["point 1: found"],
)  # fmt: skip


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def asked(view: CanvasView, kind: str, monkeypatch: pytest.MonkeyPatch) -> tuple[dict, list[bytes]]:
    """What a view answers to a browser that asks for a file."""
    sent: list[tuple[dict, list[bytes]]] = []
    with monkeypatch.context() as patched:
        patched.setattr(view, "send", lambda told, buffers=(): sent.append((told, list(buffers))))
        send(view, kind="save", view=0.25, **{"as": kind})
    ((told, buffers),) = sent
    assert told["view"] == 0.25
    return told, buffers


def arrays(content: bytes) -> dict[str, np.ndarray]:
    return dict(np.load(io.BytesIO(content), allow_pickle=False))


def test_files_of_a_chart_hold_its_numbers_to_the_last_bit(monkeypatch) -> None:
    view = ChartView()
    view.draw(CHART)
    told, (content,) = asked(view, "csv", monkeypatch)
    assert (told["kind"], told["name"]) == ("file", "what-is-shown.csv")
    rows = table(content)
    assert len(rows) == 7 and float(rows[2]["share"]) == 1 / 3
    assert [row["other end"] for row in rows[3:5]] == ["0.1", "0.3"]
    assert [row["says"] for row in rows] == ["", "", "", "", "", "point 1: found", ""]
    _, (content,) = asked(view, "npz", monkeypatch)
    held = arrays(content)
    assert held["sets"].tolist() == [[1, 0.2, 0.1], [10, 0.4, 0.3]]
    np.testing.assert_array_equal(held["share_of_theta"][:, 1], [0.1, NAN, 1 / 3])
    told, (content,) = asked(view, "pdf", monkeypatch)
    assert content.startswith(b"%PDF") and told["name"] == "what-is-shown.pdf"


def test_paper_shows_the_same_numbers_axes_and_names() -> None:
    (axes,) = chart_figure(CHART).axes
    np.testing.assert_array_equal(axes.lines[0].get_xydata()[:, 1], [0.1, NAN, 1 / 3])
    assert axes.get_xscale() == "log" and axes.get_xlim() == (1, 100) and axes.get_ylim() == (0, 1)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "share")
    assert axes.yaxis.get_major_formatter()(0.001, 0) == "0.1%"
    (key,) = axes.figure.legends
    assert {"sets", "found", "bar", "half", "step 10"} < {t.get_text() for t in key.get_texts()}


def test_a_browser_gets_no_other_file_and_a_reason_for_none(monkeypatch) -> None:
    view = ChartView()
    view.draw(CHART)
    answers: list[object] = []
    with monkeypatch.context() as patched:
        patched.setattr(view, "send", lambda *told: answers.append(told))
        for wanted in ("exe", None, 3):
            send(view, kind="save", **{"as": wanted})
    assert answers == []
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told, buffers = asked(view, "pdf", monkeypatch)
    assert told["kind"] == "unsaved" and "matplotlib" in told["words"] and not buffers


@pytest.fixture(scope="module")
def app():
    made = trained()
    play.go(made.session, "attack")
    play.step(made.session, 60)
    yield made
    made.close()


def test_the_plane_gives_its_points_in_units_of_the_data(app, monkeypatch) -> None:
    view = app.panel("PlanePanel").view
    assert isinstance(view, PlaneView)
    _, (content,) = asked(view, "csv", monkeypatch)
    rows = [row for row in table(content) if row["what"] == "point"]
    data = app.session.frame.dataset
    at = [[float(row["x1"]), float(row["x2"])] for row in rows]
    np.testing.assert_allclose(at, data.x.numpy(), atol=1e-12)
    assert [float(row["class"]) for row in rows] == data.y.tolist()
    _, (content,) = asked(view, "npz", monkeypatch)
    assert {"points", "candidates", "claims", "map", "view"} <= set(arrays(content))
    assert asked(view, "pdf", monkeypatch)[1][0].startswith(b"%PDF")


def test_a_line_its_classes_and_an_energy_come_on_paper() -> None:
    graph = np.column_stack([np.linspace(-1, 1, 9), np.zeros(9)])
    line = {"view": [0, 0, 2, 2], "flat": True, "graph": graph, "spans": np.array([[0.1, 0.4]]),
            "rings": np.array([[0.2, 0.5]]), "texts": [[0, 0, "$"]]}  # fmt: skip
    four = {"view": [0, 0, 1, 1], "map": np.random.default_rng(0).normal(size=(4, 9, 9))}
    energy = {"view": [5, 5, 1, 1], "energy": np.full((3, 3), 9, dtype=np.uint8),
              "energyBox": [-1, -1, 1, 1], "area": graph, "links": np.array([[0, 0, 1, 1.0]]),
              "other": np.array([[0.5, 0.5, 1]])}  # fmt: skip
    for frame in (line, four, energy):
        view = PlaneView()
        named = {k: v for k, v in frame.items() if isinstance(v, np.ndarray)}
        view.show(named, **{k: v for k, v in frame.items() if k not in named})
        made = view.export()
        assert made.as_bytes("pdf").startswith(b"%PDF") and made.as_bytes("csv")
    assert made.arrays["other"].tolist() == [[5.5, 5.5, 1]]


def test_the_triangle_gives_energies_by_their_shares_and_its_runs(app, monkeypatch) -> None:
    view = TriangleView()
    view.energies = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, NAN], [6.0, NAN, NAN]])
    trail = np.array([[[0, 0, 1], [0.5, 0.5, 0]]])
    view.show({"trails": trail, "ends": np.array([1], dtype=np.uint8)})
    _, (content,) = asked(view, "csv", monkeypatch)
    *energies, first, last = table(content)
    shares = [tuple(float(row[name]) for name in SETS[:3]) for row in energies]
    value = "energy, or nearest at the end"
    assert dict(zip(shares, (float(row[value]) for row in energies), strict=True)) == {
        (0, 1, 0): 1, (0.5, 0.5, 0): 2, (1, 0, 0): 3, (0, 0.5, 0.5): 4, (0.5, 0, 0.5): 5,
        (0, 0, 1): 6,
    }  # fmt: skip
    assert (first["noise"], last["truth"], last[value]) == ("1.0", "0.5", "unseen")
    assert asked(view, "pdf", monkeypatch)[1][0].startswith(b"%PDF")
    play.go(app.session, "landscape")
    on_page = app.panel("StartsPanel")
    assert on_page.view.energies is on_page.energies.values is not None
    strip: StripView = on_page.strip
    curve = strip.export().figure().axes[0].lines[0]
    np.testing.assert_array_equal(curve.get_xydata(), strip.originals["start"])
    held = arrays(asked(strip, "npz", monkeypatch)[1][0])
    np.testing.assert_array_equal(held["at_the_start"], strip.originals["start"])


def test_every_chart_of_the_pages_comes_on_paper(app) -> None:
    play.go(app.session, "attack")
    membership = MembershipApp(MembershipScene(d=60, n=6))
    views = [*membership.charts]
    for panel in app.panels.values():
        for held in vars(panel).values():
            views += [v for v in (held, *getattr(held, "children", ())) if isinstance(v, ChartView)]
    drawn = [view for view in views if view.shown.series]
    assert len(drawn) >= 8
    for view in drawn:
        made = view.export() if isinstance(view, ChartView) else of_chart(view.shown)
        assert made.file_name("csv") != "picture.csv"
        assert len(made.rows) == sum(len(s.rows) for s in view.shown.series)
        made.figure()
    membership.close()

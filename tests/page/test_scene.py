"""The plane of each stage holds the frame's own numbers, and results stand for the verdict."""

from __future__ import annotations

import gc
import re
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.engine.attacks.claims import MERGE_RADIUS, Report
from explorer.engine.attacks.shapes import EMPTY, Shapes
from explorer.engine.certificate import in_reach
from explorer.engine.data import Dataset, preset
from explorer.engine.explanations.certainty import Certainty
from explorer.engine.network import Network, init_network, phi, phi_all
from explorer.page import play, sight
from explorer.page.apps.explorer import App
from explorer.page.frame import Frame
from explorer.page.plane import marks
from explorer.page.plane.marks import FOUND, HIT
from explorer.page.plane.scene import Look, backdrop, network, scene
from explorer.page.plane.shapes import shapes_of
from explorer.page.plane.words import ROWS
from explorer.page.session import Session
from explorer.page.stages.attack import commands as attack
from explorer.page.stages.draw import commands as draw
from explorer.page.stages.explain import commands as explain
from explorer.page.stages.train import commands as train
from explorer.page.view import base
from explorer.page.words.headline import headline
from explorer.research.pictures import fields
from explorer.research.pictures.axes import Axes
from explorer.research.pictures.charts import margins_chart
from explorer.research.pictures.fields import samples
from explorer.research.runs import judgement
from explorer.research.words import verdicts
from tests.page.pages import on_plane, opened, reached, send

NEAR = 1e-6  # of a share of the plane: float32


def trained(name: str = "alternating-circle", steps: int = 4000, **given) -> Session:
    session = reached("train", preset(name, **given), steps)
    return session


def attacked(steps: int = 800, **given) -> Session:
    session = trained(**given)
    play.go(session, "attack")
    play.step(session, steps)
    return session


def shown(session: Session, **look) -> dict:
    """The scene of the present moment, as arrays and values together."""
    chosen = Look(session.layers, **look)
    net, unit = network(session.frame)
    behind = {} if net is None else backdrop(net, unit, session.axes, chosen)
    arrays, values = scene(session.frame, session.axes, chosen, EMPTY, behind)
    return {**values, **arrays}


def places(axes: Axes, rows: np.ndarray) -> np.ndarray:
    return axes.centre + rows[:, :2] * axes.half


def test_drawing_shows_the_points_and_nothing_else() -> None:
    session = Session(preset("moons", n=14))
    seen = shown(session)
    assert {"map", "neurons", "candidates", "claims"}.isdisjoint(seen) and not seen["hollow"]
    np.testing.assert_allclose(places(session.axes, seen["points"]), session.frame.dataset.x)
    np.testing.assert_array_equal(seen["points"][:, 2], session.frame.dataset.y)


def test_training_shows_phi_over_the_margin_and_multipliers() -> None:
    session = trained()
    seen, state = shown(session), session.frame.training.state
    unit = float(state.q.min())
    side = np.linspace(-1, 1, len(seen["map"]))
    at = torch.from_numpy(session.axes.centre + np.array([side[-1], side[0]]) * session.axes.half)
    exact = float(phi(state.net, at[None])) / unit
    assert seen["map"][-1, -1] == pytest.approx(exact, rel=1e-4, abs=1e-4), "last row at the bottom"
    assert seen["margins"] and len(seen["neurons"]) > 0
    lam = session.frame.training.certificate.lam
    np.testing.assert_allclose(seen["points"][:, 3], lam / lam.max())


@pytest.mark.parametrize(("name", "n"), [("blobs", 8), ("moons", 20), ("alternating-circle", 10)])
def test_large_points_solid_stems_and_the_headline_count_the_same_points(name: str, n: int) -> None:
    session, counts = reached("train", preset(name, n=n), 1), set()
    for steps in (1, 30, 170, 1800):
        play.advance(session, steps=steps)
        play.assess(session)
        seen, state = shown(session), session.frame.training.state
        large = set(np.flatnonzero(seen["points"][:, 5] == 1))
        stems = margins_chart(state.q, session.frame.dataset.y).series
        solid = {i for s in stems if s.look["opacity"] == 1 for i in s.ids}
        low = float(state.q.min())
        assert large == solid == {i for i in range(n) if low > 0 and state.q[i] <= 1.01 * low}
        said = re.match(r"(\d+) of \d+ points? holds? the margin", headline(session.frame).title)
        assert len(large) in {0, n} if said is None else len(large) == int(said[1])
        assert set(seen["points"][:, 5]) <= {0.0, 1.0}, "the others are of one size"
        assert ["held", *ROWS["held"]] in seen["legend"]
        counts.add(len(large))
    assert len(counts) > 1
    play.go(session, "draw")
    assert (shown(session)["points"][:, 5] == -1).all()


def test_bars_of_margins_have_their_one_unit_once_there_is_a_margin() -> None:
    q, y = torch.tensor([-0.5, 1.0, 9.0]), torch.tensor([1.0, -1.0, 1.0])
    wrong, right = margins_chart(q, y), margins_chart(q + 1, y)
    assert [at for at, _ in wrong.y.ticks] == [0] and [at for at, _ in right.y.ticks] == [
        0,
        1,
        2,
        3,
    ]
    assert len(set(wrong.tips)) == 3 and not any(re.search(r": [\d-]", tip) for tip in wrong.tips)


def test_an_attack_shows_its_candidates_and_the_hollow_truth() -> None:
    session = attacked()
    state, seen = session.frame.attack.state, shown(session, running=True)
    np.testing.assert_allclose(places(session.axes, seen["candidates"]), state.x, atol=1e-12)
    np.testing.assert_allclose(seen["candidates"][:, 3], (state.lam / state.lam.max()).clamp_min(0))
    assert seen["trail"] == state.t and seen["hollow"]
    assert (seen["candidates"][:, 4] == 1).all(), "none is said to be of no claim in a run"


def test_a_running_attack_marks_the_points_that_its_headline_counts_and_no_other() -> None:
    session = attacked()
    seen, verdict = shown(session, running=True), session.frame.attack.verdict
    assert seen["claims"][:, 2].tolist() == [FOUND] * verdict.found and verdict.found > 0
    assert "claims" not in shown(session, running=True, truth_shown=False)


@pytest.mark.parametrize("running", [False, True])
def test_a_ring_says_whether_chance_is_ruled_out(
    running: bool,
) -> None:
    session = attacked()
    part = session.frame.attack
    for p_value, kind in ((0.001, FOUND), (0.4, HIT)):
        made = replace(part.verdict, p_value=p_value)
        session.put(attack=replace(part, verdict=made))
        seen = shown(session, running=running)
        rings = {kind for kind in seen["claims"][:, 2] if kind in (FOUND, HIT)}
        assert verdicts.is_sure(made) == (kind == FOUND) and rings == {kind}


def test_results_are_the_claims_and_matches_of_the_verdict() -> None:
    session = attacked()
    frame, seen = session.frame, shown(session)
    claims, verdict = frame.attack.claims, frame.attack.verdict
    assert verdict.found > 0
    np.testing.assert_allclose(places(session.axes, seen["claims"]), claims.x, atol=1e-12)
    assert len(seen["claims"]) == verdict.claims
    assert (seen["claims"][:, 2] == FOUND).sum() == len(seen["links"]) == verdict.found
    claim, point = seen["links"][:, :2], seen["links"][:, 2:]
    away = np.linalg.norm((claim - point) * session.axes.half, axis=1)
    assert away.max() <= verdict.radius
    truth = (frame.truth.x.numpy() - session.axes.centre) / session.axes.half
    assert np.abs(point[:, None] - truth[None]).max(2).min(1).max() < NEAR
    used = seen["candidates"][:, 4] == 1
    apart = torch.cdist(frame.attack.state.x, claims.x)
    apart[frame.attack.state.y[:, None] != claims.y[None]] = torch.inf
    near = (apart.amin(1) <= MERGE_RADIUS).numpy() & (frame.attack.state.lam > 0).numpy()
    np.testing.assert_array_equal(used, near)
    assert 0 < used.sum() < len(used)


def test_points_off_the_margin_go_grey_at_the_end_alone() -> None:
    session = _clusters()
    frame = session.frame
    reach = in_reach(frame.aim.certificate, frame.truth.n)
    assert reach is not None and 0 < int(reach.sum()) < frame.truth.n
    np.testing.assert_array_equal(shown(session)["points"][:, 4] == 0, reach)
    assert not shown(session, running=True)["points"][:, 4].any()


def _clusters() -> Session:
    session = reached("attack", preset("blobs", n=20))
    play.step(session, 5)
    return session


def test_results_go_when_another_moment_is_shown() -> None:
    session = attacked(steps=60)
    assert "claims" in shown(session)
    state = session.frame.attack.state
    other = replace(session.frame.attack, state=replace(state, t=state.t + 1))
    session.put(attack=other)  # a state that was not judged
    assert "claims" not in shown(session) and not shown(session)["points"][:, 4].any()


def test_a_hidden_truth_takes_everything_with_it_that_would_tell_it() -> None:
    session = attacked()
    seen = shown(session, truth_shown=False)
    assert {"points", "claims", "links"}.isdisjoint(seen) and "candidates" in seen


def test_the_explain_stage_shows_its_explanation_and_the_landscape_its_handle() -> None:
    session = opened("explain", "moons", n=12, seed=1).session
    now = explain.explanation(session).now
    seen = shown(session)
    np.testing.assert_allclose(places(session.axes, seen["candidates"]), now.x, atol=1e-12)
    assert "trail" not in seen and seen["margins"]
    play.go(session, "landscape")
    seen, handle = shown(session), session.frame.starts.candidates
    np.testing.assert_allclose(places(session.axes, seen["candidates"]), handle.x, atol=1e-12)
    assert {"trail", "claims", "links"}.isdisjoint(seen)


def test_a_line_shows_the_graph_with_heights_in_margins() -> None:
    session = trained("alternating-line", steps=2000)
    seen, net = shown(session), session.frame.training.state.net
    assert seen["flat"] and {"map", "neurons"}.isdisjoint(seen)
    at = places(session.axes, seen["graph"])
    exact = phi(net, torch.from_numpy(at[:, :1])).numpy() / float(
        session.frame.training.state.q.min()
    )
    np.testing.assert_allclose(at[:, 1], exact, atol=1e-9)
    np.testing.assert_array_equal(
        places(session.axes, seen["points"])[:, 1], session.frame.dataset.y
    )


@pytest.mark.parametrize(("scale", "shift"), [(1e-3, 0.0), (1e3, 0.0), (1.0, 500.0), (1e-3, 5.0)])
def test_axes_hold_data_of_any_scale_and_stay_through_all_stages(
    scale: float, shift: float
) -> None:
    data = preset("moons", n=14)
    app = App(Dataset(data.x * scale + shift, data.y))
    session = app.session
    points = on_plane(app)["points"][:, :2]
    assert np.abs(points).max() <= 1 and np.ptp(points, axis=0).max() > 0.5, "they fill the plane"
    play.go(session, "train")  # which divides points of another size by their unit
    axes, points = session.axes, on_plane(app)["points"][:, :2]
    assert np.abs(points).max() <= 1 and np.ptp(points, axis=0).max() > 0.5, "they fill it as well"
    train.jump_to_exact(session)
    for stage in ("attack", "explain", "landscape", "arena", "train", "draw"):
        play.go(session, stage)
        assert session.axes is axes
        np.testing.assert_allclose(on_plane(app)["points"][:, :2], points, atol=NEAR)
        assert app.panels["PlanePanel"].failure.layout.display == "none"


def test_points_by_hand_leave_the_axes_and_undo_of_a_far_set_brings_them_back() -> None:
    session = Session()
    for x in (1.9, 1.9 + 1e-6, 0.3, -2.0):  # two of them as by a double click
        draw.add(session, [((x, -x), 1.0)])
        assert session.axes == Axes()
    draw.load(session, Dataset(preset("moons").x * 1e-3, preset("moons").y))
    assert session.axes.x[1] < 0.01
    play.undo(session)
    assert session.axes == Axes()


def test_each_layer_goes_and_comes_by_its_chip() -> None:
    app = opened("attack", "alternating-circle", n=8)
    session, tools = app.session, app.panels["Tools"].view

    def chips() -> dict[str, bool | None]:
        return {chip["key"]: chip["on"] for chip in tools.state["chips"]}

    assert chips() == {
        "map": True, "lines": True, "trails": True, "band": False, "truth": None
    }  # fmt: skip
    for key, field in (
        ("map", "map"),
        ("lines", "neurons"),
        ("trails", "trail"),
        ("truth", "points"),
    ):
        assert field in on_plane(app)
        send(tools, kind="layer", value=key)
        assert field not in on_plane(app) and not chips()[key]
        send(tools, kind="layer", value=key)
        assert field in on_plane(app)
    play.go(session, "train")
    send(tools, kind="layer", value="margins")
    assert not on_plane(app)["margins"] and "map" in on_plane(app)


def test_the_plane_offers_an_axis_to_draw_on_and_an_axis_the_plane() -> None:
    app = App()
    session, tools, sets = app.session, app.panels["Tools"].view, app.panels["Presets"].view
    for d, words in ((1, "the plane"), (2, "a line"), (1, "the plane")):
        send(sets, kind="axis")
        assert session.frame.dataset.d == d
        assert sets.state["axis"][0].endswith(words)
    draw.add(session, [((0.3,), 1.0), ((-0.3,), -1.0)])
    assert [row["sign"] for row in tools.state["classes"]][-1] == "↕"
    send(sets, kind="axis")
    assert session.frame.dataset.n == 0
    send(tools, kind="undo")
    assert session.frame.dataset.n == 2 and session.frame.dataset.d == 1  # no click loses a drawing


def test_a_chip_fits_the_axes_where_that_shows_more() -> None:
    app = App()
    tools = app.panels["Tools"].view
    for x in (1.7, 1.75, 1.8):
        draw.add(app.session, [((x, x), 1.0)])
    assert [chip["key"] for chip in tools.state["chips"]] == ["fit"]
    send(tools, kind="layer", value="fit")
    assert np.ptp(on_plane(app)["points"][:, 0]) > 1
    assert not tools.state["chips"]


def test_refit_shows_points_that_were_drawn_in_a_corner_large() -> None:
    session = Session()
    draw.add(session, [((1.7 + 0.1 * x, 1.8), 1.0 - 2 * x) for x in (0, 1)])
    sight.refit(session)
    assert session.axes.holds(session.frame.dataset) and session.axes.x[1] < 0.1


def test_shapes_of_an_attack_come_in_shares_of_the_plane() -> None:
    axes = Axes((10.0, 2.0), (-4.0, 4.0))
    shapes = Shapes(
        rings=np.array([[12.0, -4.0]]), spans=((8.0, 10.0),), texts=((10.0, 0.0, "here"),)
    )
    session = Session(preset("moons", n=6))
    arrays, values = scene(session.frame, axes, Look(), shapes, {})
    np.testing.assert_allclose(arrays["rings"], [[1.0, 0.0]])
    np.testing.assert_allclose(arrays["spans"], [[-1.0, 0.0]])
    assert values["texts"] == [[0.0, 1.0, "here"]] and values["view"] == [10.0, -4.0, 2.0, 4.0]


def test_an_attack_on_a_model_of_its_own_is_drawn_over_that_model() -> None:
    """In the attack and in the landscape; every place has the side that this model gives it."""
    session = reached("attack", preset("blobs", 8), 300)
    attack.choose(session, "bilevel")
    look = Look()
    for stage in ("attack", "landscape"):
        play.go(session, stage)
        model, unit = network(session.frame)
        victim = session.frame.attack.state.victim
        assert torch.equal(model.theta, victim.theta)
        made = backdrop(model, unit, session.axes, look)
        places = samples(len(made["map"]), session.axes)
        sides = torch.from_numpy(made["map"]).reshape(-1)
        assert torch.equal(sides.sign(), victim.outputs(places).sign())
        assert "neurons" not in made


def test_a_certified_place_that_holds_a_point_is_no_wrong_claim() -> None:
    session = reached("attack", preset("alternating-circle", 6), 3000)
    attack.choose(session, "certified_places")
    while play.advance(session, steps=50) and not session.frame.status.over:
        pass
    play.assess(session)
    state, truth = session.frame.attack.state, session.frame.truth
    arrays, _ = scene(session.frame, session.axes, Look(), EMPTY, {})
    wrong = arrays["claims"][:, 2] == 0
    assert len(state.x) and float(state.half.max()) > float(state.half.min())
    for at, half, label, crossed in zip(state.x, state.half, state.y, wrong, strict=True):
        mine = truth.x[truth.y == label]
        holds = bool(((mine - at).abs().amax(1) <= half + state.reach).any())
        assert crossed == (not holds)


# --- the marks on the plane: each has one row in the legend, and no two rows share a glyph --------

PLANE = Path(base.__file__).with_name("plane.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def session() -> Session:
    """At the end of an attack, with everything that a plane can show of it."""
    made = reached("attack", preset("alternating-circle", n=6))
    play.configure(made, steps=200)
    play.step(made, 200)
    return made


def plane_of(session: Session) -> dict:
    shapes = shapes_of(session.frame, session.axes)
    arrays, values = scene(session.frame, session.axes, Look(), shapes, {})
    return {**values, **arrays}


def glyphs(seen: dict) -> set[str]:
    """The glyphs that these arrays draw, as `plane.js` reads them."""
    found = set()
    if "points" in seen:
        traceless = seen["points"][:, 4] > 0
        found |= {"traceless"} if traceless.any() else set()
        plain = "weighted" if (seen["points"][:, 3] >= 0).any() else "point"
        plain = "held" if (seen["points"][:, 5] >= 0).any() else plain
        found |= set() if traceless.all() else {"truth" if seen["hollow"] else plain}
    if "candidates" in seen:
        found |= {"candidate" if used else "unused" for used in seen["candidates"][:, 4] > 0}
    for name in ("claims", "marks"):
        found |= {marks.MARKS[int(kind)] for kind in seen.get(name, np.zeros((0, 3)))[:, 2]}
    found |= {"trail"} if "trail" in seen and "candidates" in seen else set()
    found |= {key for key in (*marks.PATHS, *marks.BEHIND) if key in seen}
    if "map" in seen:
        found |= {"boundary", "margins"} if seen["margins"] else {"boundary"}
    return found | {key for name, key in marks.PLACED.items() if name in seen}


def check(seen: dict) -> set[str]:
    rows = [key for key, *_ in seen["legend"]]
    assert len(rows) == len(set(rows)) and set(rows) == glyphs(seen)
    for key, name, sentence in seen["legend"]:
        own = key in (*marks.PATHS, "candidate")  # whose names a stage may give
        assert ROWS[key] == (name, sentence) or (own and name[1:] in sentence)
    return set(rows)


def test_each_glyph_has_one_row_and_every_row_a_glyph_of_its_own() -> None:
    drawn = re.findall(r"^  (\w+): \(c, x, y", PLANE, flags=re.M)
    assert sorted(drawn) == sorted(ROWS) and len({words for words, _ in ROWS.values()}) >= 15
    numbered = re.search(r"const MARKS = \[(.*?)\]", PLANE)
    assert tuple(re.findall(r'"(\w+)"', numbered[1])) == marks.MARKS
    bodies = dict(
        re.findall(r"^  (\w+): (\(c, x, y.*?)(?=^  \w+: \(c, x, y|^\};)", PLANE, flags=re.M | re.S)
    )
    assert len(set(bodies.values())) == len(bodies) == len(ROWS)
    assert len({sentence for _, sentence in ROWS.values()}) == len(ROWS)


def test_the_legend_of_every_stage_has_the_glyphs_that_are_on_the_plane(session: Session) -> None:
    assert {"truth", "candidate"} <= check(plane_of(session))
    for stage in ("draw", "train", "explain", "landscape", "arena"):
        play.go(session, stage)
        check(plane_of(session))
    play.go(session, "explain")
    explain.choose(session, 0)
    assert "hand" in check(plane_of(session))
    play.go(session, "attack")


def test_points_without_trace_look_the_same_in_each_stage_that_knows_them() -> None:
    session = reached("attack", preset("moons", n=10))
    play.configure(session, steps=20)
    play.step(session, 20)
    gone = plane_of(session)["points"][:, 4]
    assert 0 < gone.sum() < len(gone)
    for stage in ("explain", "arena"):
        play.go(session, stage)
        assert plane_of(session)["points"][:, 4].tolist() == gone.tolist()
    play.go(session, "train")
    assert not plane_of(session)["points"][:, 4].any()


def claiming(session: Session, x: list, y: list, **changes) -> Frame:
    """The frame of an attack that claims these places."""
    frame, claims = session.frame, Report(torch.tensor(x), torch.tensor(y), torch.ones(len(y)))
    claims = replace(claims, x=claims.x.double(), y=claims.y.double())
    state = frame.attack.state
    made = judgement(claims, frame.truth, frame.aim.controls, None) if frame.truth.n else None
    part = replace(frame.attack, claims=claims, judged=state)
    if made is not None:
        part = replace(part, scores=made.scores, verdict=made.verdict)
    return replace(frame, attack=part, **changes)


def claimed(session: Session, x: list, y: list, **changes) -> dict:
    """What is shown where an attack claims these places."""
    return shown_of(session, claiming(session, x, y, **changes))


def shown_of(session: Session, frame) -> dict:
    arrays, values = scene(frame, session.axes, Look(), shapes_of(frame, session.axes), {})
    return {**values, **arrays}


def test_a_cross_is_a_wrong_claim_and_nothing_else(session: Session) -> None:
    play.go(session, "attack")
    truth = session.frame.truth
    at, label = truth.x[0].tolist(), float(truth.y[0])
    said = claiming(session, [at, [at[0] + 0.045, at[1]], [1.9, 1.9], [-9.0, 0.5]], [label] * 4)
    seen = shown_of(session, said)
    kinds = [marks.MARKS[int(k)] for k in seen["claims"][:, 2]]
    assert kinds == ["found", "beside", "wrong", "wrong"]
    inside = session.axes.shares(torch.tensor([[1.9, 1.9]]).double().numpy())[0]
    np.testing.assert_allclose(seen["claims"][2, :2], inside)
    beyond = session.axes.shares(np.array([[-9.0, 0.5]]))[0]
    assert beyond[0] < -1 < seen["claims"][3, 0] < -0.9  # at the edge, at its height
    assert seen["claims"][3, 1] == pytest.approx(beyond[1])
    assert seen["beyond"] == [3]  # where an arrow points out
    assert marks.second_claims(said) == 1  # what the headline counts
    check(seen)
    nobody = replace(session.frame.aim, truth=Dataset(truth.x[:0], truth.y[:0]))
    frame = replace(session.frame, aim=nobody)
    blind = replace(frame.attack, judged=frame.attack.state, verdict=None, scores=None)
    seen = shown_of(session, replace(frame, attack=blind))
    assert {marks.MARKS[int(k)] for k in seen["claims"][:, 2]} == {"unknown"}
    n = len(blind.claims.x)
    judged = Certainty(torch.linspace(0, 1, n), 0.03, 0.0, 0.01, None, 0.5, 2.0, 1.01)
    seen = shown_of(session, replace(frame, attack=replace(blind, certainty=judged)))
    assert {marks.MARKS[int(k)] for k in seen["claims"][:, 2]} == {"unknown", "likely"}
    check(seen)


# --- what the plane is made of against what it must show, at any scale of the data ----------------

PLANES = (Axes(), Axes((1000.0, 2.0), (-30.0, 0.5)), Axes((0.0, 1e-3), (2e-4, 1e-3)))


def line_net(w: list[list[float]], b: list[float], v: list[float]) -> Network:
    to = lambda a: torch.tensor(a, dtype=torch.float64)  # noqa: E731
    return Network((to(w), to([v])), (to(b), None))


def random_net(outputs: int = 1) -> Network:
    made = torch.Generator().manual_seed(3)
    return init_network(2, [9], generator=made, first_scale=1.0, outputs=outputs)


def test_a_page_does_not_grow_with_every_zoom() -> None:
    first = weakref.ref(fields.samples(4, Axes((0.0, 1.0))))
    for k in range(100):
        fields.samples(4, Axes((0.0, 2.0 + k)))
    gc.collect()
    assert first() is None


def of_data(axes: Axes, shares: np.ndarray) -> np.ndarray:
    return axes.centre + shares * axes.half


@pytest.mark.parametrize("axes", PLANES)
def test_field_is_phi_from_edge_to_edge_with_the_first_row_on_top(axes: Axes) -> None:
    net = random_net()
    values = fields.field(net, axes, size=5)
    for row, column, share in ((0, 0, (-1, 1)), (0, 4, (1, 1)), (2, 2, (0, 0)), (4, 0, (-1, -1))):
        place = torch.from_numpy(of_data(axes, np.array(share, dtype=float)))[None]
        exact = float(phi(net, place))
        assert values[row, column] == pytest.approx(exact, abs=1e-5 * (1 + abs(exact)))


def test_fields_of_all_classes_are_the_outputs() -> None:
    net = random_net(outputs=3)
    values = fields.class_field(net, Axes(), size=7)
    assert values.shape == (3, 7, 7)
    middle = phi_all_at(net, (0.0, 0.0))
    np.testing.assert_allclose(values[:, 3, 3], middle, atol=1e-5)
    lead = fields.leads(values)
    best = values.argmax(0)
    assert (lead.argmax(0) == best).all() and ((lead > 0).sum(0) == 1).all()


def phi_all_at(net: Network, place: tuple[float, float]) -> np.ndarray:
    return phi_all(net, torch.tensor([place], dtype=torch.float64))[0].numpy()


@pytest.mark.parametrize("axes", PLANES)
def test_neuron_lines_lie_on_their_neurons_and_inside_the_view(axes: Axes) -> None:
    net = random_net()
    w, b = net.weights[0].numpy(), net.biases[0].numpy()  # type: ignore[union-attr]
    b = b * axes.half.min() / 20 - w @ axes.centre  # the lines cross this part
    net = Network(net.weights, (torch.from_numpy(b), *net.biases[1:]))
    lines = fields.neuron_lines(net, axes)
    assert len(lines) > 4 and (np.abs(lines[:, :4]) <= 1 + 1e-9).all()
    for end in (lines[:, 0:2], lines[:, 2:4]):
        off = of_data(axes, end) @ w.T + b
        assert np.abs(off).min(1).max() < 1e-9 * (1 + np.abs(axes.centre).max())
    assert (np.diff(lines[:, 4]) >= 0).all() and lines[-1, 4] == 1, "strongest on top"


def test_bundled_weak_neurons_draw_one_strong_line() -> None:
    # ten weak copies of one line, of either orientation, against one neuron of medium weight
    w = [[0.3, 0.0]] * 5 + [[-0.3, 0.0]] * 5 + [[0.0, 1.0]]
    b = [-0.15] * 5 + [0.15] * 5 + [0.5]
    lines = fields.neuron_lines(line_net(w, b, [1.0] * 11), Axes())
    assert len(lines) == 2
    upright = lines[np.abs(lines[:, 0] - lines[:, 2]) < 1e-9]
    assert upright[0, 4] == 1 and upright[0, 0] == pytest.approx(0.25), "strong together, at 0.5"


def test_neuron_outside_the_view_is_not_drawn() -> None:
    net = line_net([[1.0, 0.0]], [5.0], [1.0])
    assert not len(fields.neuron_lines(net, Axes()))
    assert len(fields.neuron_lines(net, Axes((-5.0, 1.0), (0.0, 1.0)))) == 1


def test_breakpoints_and_graph_of_a_univariate_net() -> None:
    net = Network(
        (torch.tensor([[2.0], [1.0], [1.0]]).double(), torch.tensor([[1.0, 1.0, 1.0]]).double()),
        (torch.tensor([-1.0, 9.0, 0.0]).double(), None),
    )
    found = fields.breakpoints(net, Axes())
    assert sorted(2 * found[:, 0]) == [0.0, 0.5], "the one at -9 is out of view"
    assert (found[:, 1] > 0).all() and (found[:, 1] <= 1).all()
    x, heights = fields.graph(net, Axes(), unit=3.0).T
    x = 2 * x
    exact = (np.maximum(2 * x - 1, 0) + x + 9 + np.maximum(x, 0)) / 3
    np.testing.assert_allclose(2 * heights, exact)
    assert heights.max() > 1, "beyond the frame, not clamped to it"

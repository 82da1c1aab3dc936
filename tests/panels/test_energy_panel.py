"""The energy maps without a browser: choose, drag, undo, refine, refuse, and the hand's events."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from explorer.apps import App
from explorer.engine.data import preset
from explorer.panels.energy import LADDER, EnergyPanel
from explorer.parts.energy_charts import colour_bar, energy_png, span_of
from explorer.stages.energy_question import MAPS, STANDARD
from explorer.triangle import CORNERS
from tests.panels.pages import opened


@pytest.fixture
def app():
    made = opened("landscape", "moons", n=8)
    yield made
    made.close()


def panel(app: App) -> EnergyPanel:
    made = app.panels["EnergyPanel"]
    assert isinstance(made, EnergyPanel)
    return made


def share(app: App, at) -> dict[str, float]:
    e = app.session.extent
    return {"x": (float(at[0]) / e + 1) / 2, "y": (float(at[1]) / e + 1) / 2}


def test_the_map_is_there_with_its_words_and_reference(app: App) -> None:
    energy = panel(app)
    picture = energy.picture
    assert picture is not None and picture.values.shape == (STANDARD, STANDARD)
    assert (picture.values <= picture.reference + 1e-9).all()
    assert "This point is" in energy.said.value and "merged" in energy.said.value
    assert "without this point" in energy.bar.value
    assert energy._failure.layout.display == "none"
    low, top = span_of(picture)
    assert energy_png(picture.values, low, top)[:4] == b"\x89PNG"
    assert "linear-gradient" in colour_bar(picture, low, top)


def test_a_click_chooses_and_a_drag_moves_and_is_undone(app: App) -> None:
    energy, session = panel(app), app.session
    hand = app.panels["PlanePanel"]
    where = session.walk.x[3]
    down = {"kind": "down", "gesture": 1, **share(app, where)}
    hand._on_pad(None, {"events": [down, {**down, "kind": "up"}]}, None)
    assert session.walk.mapped == 3 and energy.point.value == 3
    before = energy.picture
    place = session.walk.x[0].tolist()
    events = [{"kind": "down", "gesture": 2, **share(app, place)}]
    to = [place[0] + 0.3, place[1]]
    events += [{"kind": "move", "gesture": 2, **share(app, t)} for t in (place, to)]
    hand._on_pad(None, {"events": [*events, {**events[-1], "kind": "up"}]}, None)
    assert session.walk.x[0].tolist() == pytest.approx(to)
    assert session.walk.mapped == 3
    assert not np.array_equal(energy.picture.values, before.values)
    assert len(session.frame.walk.past) == 1 and not energy.undo.disabled
    energy.undo.click()
    np.testing.assert_allclose(energy.picture.values, before.values, atol=1e-12)
    energy.redo.click()
    assert session.walk.x[0].tolist() == pytest.approx(to)
    energy.back.click()
    assert session.walk.x[0].tolist() == pytest.approx(place)


@pytest.mark.parametrize("kind", MAPS)
def test_every_map_is_drawn(app: App, kind: str) -> None:
    energy = panel(app)
    energy.kind.value = kind
    known = int(np.isfinite(energy.picture.values).sum())
    side = len(energy.picture.values)
    wanted = side * (side + 1) // 2 if kind == "starts" else energy.picture.values.size
    assert energy.picture.kind == kind and known == wanted
    assert energy.body.children and energy._failure.layout.display == "none"
    energy._on_pad(None, {"events": [{"kind": "hover", "x": 0.5, "y": 0.5}]}, None)
    assert "=" in energy.where.value


def test_the_starts_are_a_triangle_with_names_and_a_reading(app: App) -> None:
    energy = panel(app)
    axes, marks = energy.map.figure.axes, energy.map.triangle
    assert axes[0].visible and not len(marks.names.text)
    energy.kind.value = "starts"
    assert not axes[0].visible and list(marks.names.text) == ["truth", "held-out", "noise"]
    top = {"kind": "cursor", "x": float(CORNERS[0, 0]), "y": float(CORNERS[0, 1])}
    energy._on_pad(None, {"events": [top]}, None)
    assert energy.where.value.startswith("100% truth, 0% held-out data, 0% noise (λ₁ = 1.00")
    assert float(energy.where.value.split()[-1]) == pytest.approx(energy.picture.here, rel=0.01)
    energy._on_pad(None, {"events": [{"kind": "hover", "x": 0.02, "y": 0.97}]}, None)
    assert energy.where.value == "outside the triangle"
    assert energy.map.pad.stops == 0  # arrows move a cursor that reads
    energy.kind.value = "point"
    assert axes[0].visible and not len(marks.names.text) and energy.map.pad.stops == 8


def test_settings_ask_anew(app: App) -> None:
    energy = panel(app)
    first = energy.picture.values
    energy.others.value = True
    frozen = energy.picture.values
    assert (frozen >= first - 1e-9).all() and (frozen > first + 1e-6).any()
    energy.others.value = False
    energy.kappa.value = 1.0
    assert (energy.picture.values >= first - 1e-12).all()


def test_a_line_has_a_curve() -> None:
    app = opened("landscape", "alternating-line", n=6)
    energy = panel(app)
    assert energy.picture.curve is not None
    assert energy.curve.widget in energy.body.children
    assert len(energy.curve.breaks.x) > 2 and len(energy.curve.candidates.x) > 0
    energy.kind.value = "ridge"
    assert energy.picture.curve is not None
    app.close()


def test_it_refines_in_a_loop_and_a_stop_keeps_what_is_there(app: App) -> None:
    energy, session = panel(app), app.session

    async def go() -> list[int]:
        sizes = []
        session.map_point(2)
        while not energy._task.done():
            if energy.picture and energy.picture.size not in sizes[-1:]:
                sizes.append(energy.picture.size)
            await asyncio.sleep(0.001)
        sizes.append(energy.picture.size)
        energy.others.value = True
        energy.cancel()
        await energy._task
        return sizes

    sizes = asyncio.run(go())
    assert sizes[-1] == LADDER[-1]
    assert energy.picture.size in LADDER[:2]


def test_weights_without_an_energy_are_told() -> None:
    app = App(preset("moons", n=8))
    app.session.configure(all_biases=True)
    app.session.begin_training()
    app.session.advance(steps=300)
    app.session.assess()
    app.session.go("landscape")
    energy = panel(app)
    assert "No energy here" in energy.said.value and not energy.body.children
    app.close()

"""The plane in a browser: painted without a kernel, and by one, with pictures of the frame."""

from __future__ import annotations

import io
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from explorer.engine.attacks.shapes import EMPTY
from explorer.engine.data import preset
from explorer.page import play
from explorer.page.plane.scene import Look, backdrop, network, scene
from explorer.page.session import Session
from explorer.page.stages.train import commands as train
from explorer.page.view.base import packed_array, script
from tests.browser.steps import Explorer, saved, settled

SIZE = 400
BLUE, ORANGE, GREEN = (0, 114, 178), (213, 94, 0), (10, 125, 85)
# Fields as a kernel sends them become arrays of a browser; a frame is painted on a fresh canvas.
HELP = """
window.frameOf = fields => Object.fromEntries(Object.entries(fields).map(([name, value]) =>
  [name, value && value.shape
    ? {shape: value.shape, data: (value.bytes ? Uint8Array : Float32Array)
        .from(value.data.map(v => v === null ? NaN : v))}
    : value]));
window.painted = frame => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = SIZE;
  paintPlane(canvas.getContext("2d"), frame, {width: SIZE, height: SIZE}, COLOURS);
  return canvas;
};
""".replace("SIZE", str(SIZE))


class Painter:
    """The plane's own function, on a page that knows no kernel."""

    def __init__(self, page: Page) -> None:
        page.set_content("<!doctype html><title>plane</title>")
        page.add_script_tag(content=script("plane.js") + HELP)
        self.page = page

    def paint(self, fields: dict[str, Any]) -> np.ndarray:
        """The picture (SIZE, SIZE, 3) of a frame."""
        url = self.page.evaluate("f => painted(frameOf(f)).toDataURL()", _sent(fields))
        return _pixels(url)


def _sent(fields: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"view": [0, 0, 2, 2]}
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            array = packed_array(value)
            data = [None if v != v else v for v in array.reshape(-1).tolist()]
            out[name] = {"shape": array.shape, "data": data, "bytes": array.dtype == np.uint8}
        else:
            out[name] = value
    return out


def _pixels(url: str) -> np.ndarray:
    picture = Image.open(io.BytesIO(b64decode(url.partition(",")[2]))).convert("RGB")
    return np.asarray(picture).astype(int)


def at(picture: np.ndarray, x: float, y: float) -> tuple[int, int, int]:
    """The pixel at shares of the half sizes, as a frame counts them."""
    last = len(picture) - 1
    row, column = round((1 - y) / 2 * last), round((x + 1) / 2 * last)
    return tuple(picture[row, column])  # type: ignore[return-value]


def near(a: tuple[int, ...], b: tuple[int, ...], most: int = 12) -> bool:
    return max(abs(u - v) for u, v in zip(a, b, strict=True)) <= most


@pytest.fixture(scope="module")
def painter(browser: Browser) -> Iterator[Painter]:
    with browser.new_page() as page:
        yield Painter(page)


def points_stand_where_the_frame_says_in_the_colour_of_their_class(painter: Painter) -> None:
    points = np.array([[0.5, 0.5, 1, -1, 0], [-0.5, -0.25, -1, -1, 0], [0.5, -0.5, 1, -1, 1]])
    seen = painter.paint({"points": points})
    assert near(at(seen, 0.5, 0.5), BLUE) and near(at(seen, -0.5, -0.25), ORANGE)
    grey = at(seen, 0.5, -0.5)
    assert max(grey) - min(grey) < 25, "no trace, no colour"
    hollow = painter.paint({"points": points, "hollow": True})
    assert min(at(hollow, 0.5, 0.5)) > 200


def words_stand_whole_clear_of_the_pencil_and_in_their_interval(painter: Painter) -> None:
    wide, x, spans = 80, [-2.0, -0.99, 0.1, 0.99], [[-9, -0.97], [-1, -0.2], [0, 0.6], [0.5, 9]]
    given = {"texts": [[u, 0.9, "words"] for u in x], "spans": np.array(spans)}
    at = f"u => (u + 1) / 2 * {SIZE}, v => (1 - v) / 2 * {SIZE}"
    place = f"(f, i, y) => chipAt(f, i, y, {wide}, {at})"
    for y, least in ((20, 70), (200, 0)):
        lefts = [painter.page.evaluate(f"([f, i, y]) => ({place})(frameOf(f), i, y)",
                                       [_sent(given), i, y]) for i in range(len(x))]  # fmt: skip
        assert lefts[0] is None, "of its interval nothing is in sight"
        for left, (low, high) in zip(lefts[1:], spans[1:], strict=True):
            low, high = ((np.clip(v, -1, 1) + 1) / 2 * SIZE for v in (low, high))
            assert max(low, least) <= left and left + wide <= high


def unused_candidates_fade_and_claims_get_rings(painter: Painter) -> None:
    rows = np.array([[0.3, 0.3, 1, 1, 1], [-0.3, 0.3, 1, 1, 0]])  # on no line of the grid
    seen = painter.paint({"candidates": rows})
    used, unused = at(seen, 0.3, 0.3), at(seen, -0.3, 0.3)
    assert near(used, BLUE)
    assert near(unused, tuple(round(255 - 0.15 * (255 - v)) for v in BLUE))
    ring = painter.paint({"claims": np.array([[0.0, 0.0, 1.0]])})
    middle = ring[SIZE // 2 - 15 : SIZE // 2 + 15, SIZE // 2 - 15 : SIZE // 2 + 15]
    assert any(near(tuple(v), GREEN, 40) for v in middle.reshape(-1, 3)), "a ring round the claim"
    assert near(at(ring, 0, 0), (255, 255, 255), 40), "and nothing in its middle"
    cross = painter.paint({"claims": np.array([[0.0, 0.0, 0.0]])})
    assert max(cross[SIZE // 2, SIZE // 2]) < 80


# The same map enlarged by a cubic curve for every pixel, as by `paintPlane` but for its two steps.
CUBIC = """fields => {
  const two = painted(frameOf(fields)), one = painted(frameOf({view: fields.view}));
  const context = one.getContext("2d"), side = newestMap.small.width, rim = SIZE / (side - 1);
  context.imageSmoothingQuality = "high";
  context.drawImage(newestMap.small, -rim / 2, -rim / 2, SIZE + rim, SIZE + rim);
  return [two.toDataURL(), one.toDataURL()];
}""".replace("SIZE", str(SIZE))


def a_map_is_as_smooth_as_if_every_pixel_were_on_a_cubic_curve(painter: Painter) -> None:
    x, y = np.meshgrid(*[np.linspace(-24, 24, 60)] * 2)
    fields = _sent({"map": 1.1 + 0.5 * (np.sin(x) + np.cos(y + x / 2))})  # no line of a level
    two, one = (_pixels(url) for url in painter.page.evaluate(CUBIC, fields))
    inside = slice(50, -50)  # the words of the axes stand at the rim of one
    assert np.abs(two - one)[inside, inside].max() <= 4


def the_map_is_pale_blue_and_orange_clear_at_zero_and_the_same_from_bytes(
    painter: Painter,
) -> None:
    values = np.tile(np.linspace(-1, 1, 31), (31, 1)) * 2
    seen = painter.paint({"map": values})
    left, right = at(seen, -0.8, 0.3), at(seen, 0.8, 0.3)
    assert left[0] > left[2] and right[2] > right[0] and min(*left, *right) > 120
    dark = seen[SIZE // 3].sum(1).argmin()
    assert abs(dark - SIZE / 2) < 3, "a strong line where Phi is 0"
    margins = painter.paint({"map": values, "margins": True})
    assert not near(at(margins, 0.5, 0.3), at(seen, 0.5, 0.3)), "thin lines at the margin"
    small = np.clip(np.rint(values * 50) + 128, 0, 255).astype(np.uint8)
    again = painter.paint({"map": small})
    assert (
        np.abs(again - seen)[:, 10:150].mean() < 2 and np.abs(again - seen)[:, 250:390].mean() < 2
    )


def the_graph_of_a_line_leaves_the_frame_and_is_not_bent_to_it(painter: Painter) -> None:
    x = np.linspace(-1, 1, 101)
    seen = painter.paint({"flat": True, "graph": np.column_stack([x, 3 * x])})
    empty = painter.paint({"flat": True, "graph": np.column_stack([x, 0 * x - 5])})
    ink = np.abs(seen - empty).sum(2) > 100
    columns = np.flatnonzero(ink.any(0)) / (SIZE - 1) * 2 - 1
    assert abs(columns.max() - 1 / 3) < 0.03
    assert -1 / 3 < columns.min() < -0.2, "it fades out above the buttons at the foot"


def no_mark_that_says_nothing_of_a_point_lies_under_a_button(painter: Painter) -> None:
    under = [(0.5, -0.95), (-0.9, 0.9)]  # the layers along the foot, the pencil
    for x, y in under:
        empty = painter.paint({})
        rows = {kind: np.array([[x, y, kind]], dtype=float) for kind in (0, 1)}
        wrong, found = (
            np.abs(painter.paint({"claims": row}) - empty).sum(2) > 100 for row in rows.values()
        )
        assert not wrong[-36:].any() and not wrong[:54, :54].any() and wrong.any()
        assert found[-36:].any() or found[:54, :54].any(), "a ring stays at its point"


def samples_of_the_map_stand_from_edge_to_edge(painter: Painter) -> None:
    seen = painter.paint({"map": np.tile([-2.0, 0.0, 2.0], (3, 1))})
    edge, between = np.array(at(seen, -0.99, 0.3)), np.array(at(seen, -0.5, 0.3))
    assert np.abs(between - (edge + 255) / 2).max() < 10, "half way from the edge to clear zero"


SCALES = (
    (0, 2), (0, 1e-3), (0, 730), (5.0, 1.9e-3), (-3e6, 40), (1e-8, 3e-9), (12345.678, 0.02),
)  # fmt: skip


def ticks_are_few_and_read_apart_at_any_scale(painter: Painter) -> None:
    for centre, half in SCALES:
        ticks = painter.page.evaluate("([c, h]) => niceTicks(c, h, 5)", [centre, half])
        words = [word for _, word in ticks]
        assert 3 <= len(ticks) <= 8 and len(set(words)) == len(words)
        assert all(abs(v - centre) <= half * (1 + 1e-9) for v, _ in ticks)
        step = ticks[1][0] - ticks[0][0]
        for value, word in ticks:
            assert len(word) <= 12
            assert abs(float(word.replace("−", "-")) - value) < 0.01 * step, "word and number"


def trails_join_steps_of_one_run_and_begin_anew_with_another(painter: Painter) -> None:
    lengths = painter.page.evaluate(
        """() => {
             const memory = {}, out = [];
             const frame = (trail, n) => ({view: [0, 0, 2, 2], trail,
               candidates: {shape: [n, 5], data: new Float32Array(5 * n).fill(trail || 0)}});
             for (const [t, n] of [[0, 2], [1, 2], [1, 2], [5, 2], [0, 2], [1, 2], [2, 3]])
               out.push(remember(memory, frame(t, n)).trails.length);
             out.push(remember(memory, frame(undefined, 3)).trails);
             for (let t = 0; t < 100; t++) out.push(remember(memory, frame(t, 2)).trails.length);
             return out;
           }"""
    )
    assert lengths[:7] == [1, 2, 2, 3, 1, 2, 1] and lengths[7] is None
    assert max(lengths[8:]) == lengths[-1] == 24


def test_the_painter_draws_what_a_frame_says(painter: Painter, page: Page) -> None:
    for law in LAWS:
        law(painter)
    a_whole_scene_is_the_same_picture_on_canvas_and_as_svg(painter, page)


LAWS = (
    points_stand_where_the_frame_says_in_the_colour_of_their_class,
    words_stand_whole_clear_of_the_pencil_and_in_their_interval,
    unused_candidates_fade_and_claims_get_rings,
    a_map_is_as_smooth_as_if_every_pixel_were_on_a_cubic_curve,
    the_map_is_pale_blue_and_orange_clear_at_zero_and_the_same_from_bytes,
    the_graph_of_a_line_leaves_the_frame_and_is_not_bent_to_it,
    no_mark_that_says_nothing_of_a_point_lies_under_a_button,
    samples_of_the_map_stand_from_edge_to_edge,
    ticks_are_few_and_read_apart_at_any_scale,
    trails_join_steps_of_one_run_and_begin_anew_with_another,
)


def a_whole_scene_is_the_same_picture_on_canvas_and_as_svg(painter: Painter, page: Page) -> None:
    session = Session(preset("alternating-circle", n=8))
    play.go(session, "train")
    train.jump_to_exact(session)
    play.go(session, "attack")
    play.step(session, 20)
    net, unit = network(session.frame)
    look = Look()
    arrays, values = scene(
        session.frame, session.axes, look, EMPTY, backdrop(net, unit, session.axes, look)
    )
    drawn = painter.paint({**arrays, **values})
    text = painter.page.evaluate(
        """f => {
             const context = new SvgContext(400, 400);
             paintPlane(context, frameOf(f), {width: 400, height: 400}, COLOURS);
             return context.toString();
           }""",
        _sent({**arrays, **values}),
    )
    ElementTree.fromstring(text)
    page.set_viewport_size({"width": SIZE, "height": SIZE})
    page.set_content(f"<style>body{{margin:0}}svg{{display:block}}</style>{text}")
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    gap = np.abs(np.asarray(shot).astype(int) - drawn)
    assert gap.mean() < 4, gap.mean()


# --- by a kernel ------------------------------------------------------------------------------
def a_visitor_saves_the_very_frame(app: Explorer, tmp_path: Path) -> None:
    """From an empty plane: test_files.py."""
    page, plane = app.page, app.page.locator(".mx-plane")
    app.preset("Alternating circle")
    app.expect_points(20)
    page.mouse.move(5, 5)
    settled(plane)
    shown = plane.bounding_box()
    assert shown is not None and shown["width"] > 300
    assert saved(page, plane, "png", tmp_path).name == "plane.png"
    assert saved(page, plane, "svg", tmp_path).name == "plane.svg"
    picture = np.asarray(Image.open(tmp_path / "plane.png").convert("RGB"))
    assert picture.shape[1] == pytest.approx(2 * shown["width"], abs=1)
    assert {BLUE, ORANGE} <= {tuple(pixel) for pixel in picture.reshape(-1, 3)}
    root = ElementTree.fromstring((tmp_path / "plane.svg").read_text())
    assert float(root.get("width")) == pytest.approx(shown["width"], abs=0.5)
    fills = [e.get("fill") for e in root.iter() if e.tag.endswith("path")]
    assert fills.count("#0072B2") == fills.count("#D55E00") == 10

"""Charts by a real mouse: lines that drag, dots that point at the plane, a table behind each."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from explorer.page.view.base import script
from tests.browser.steps import Explorer, settled
from tests.serve.visits import within

# The picture, once it has stayed the same for 20 drawn frames.
AT_REST = """canvas => new Promise(done => {
  let last = "", kept = 0;
  const look = () => {
    const now = canvas.toDataURL();
    kept = now === last ? kept + 1 : 0; last = now;
    kept >= 20 ? done(now) : requestAnimationFrame(look);
  };
  look();
})"""


def train_twelve(app: Explorer) -> None:
    """Twelve points and a trained network."""
    app.draw_twelve()
    app.press("2 Train")
    at_speed(app, "as fast as it goes")
    app.press("Play")
    app.wait_for_step(2000)
    app.press("Pause")
    expect(app.button("Play")).to_be_visible()
    at_speed(app, "ever faster")


def at_speed(app: Explorer, name: str) -> None:
    """Choose how fast a run is played; few frames are drawn of a fast one."""
    app.page.get_by_label("Speed").select_option(name)


def card(app: Explorer, title: str) -> Locator:
    """The chart of this title."""
    head = app.page.get_by_text(title, exact=True)
    return app.page.locator(".mx-chart-view").filter(has=head)


def pull(app: Explorer, plot: Locator, start: float, end: float) -> None:
    """Drag from one share of a plot's width to another."""
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    app.page.mouse.move(box["x"] + start * box["width"], y)
    app.page.mouse.down()
    app.page.mouse.move(box["x"] + end * box["width"], y, steps=8)
    app.page.mouse.up()


def test_lines_drag_dots_point_and_a_table_stands_behind_each_chart(app: Explorer) -> None:
    train_twelve(app)
    a_run_writes_into_the_nodes_that_are_there(app)
    the_line_of_a_curve_is_the_time_slider(app)
    app.press("3 Attack")
    at_speed(app, "as fast as it goes")
    app.press("Play")
    app.wait_for_step(2000)
    the_line_of_recall_decides_what_counts(app)
    a_dot_is_marked_on_the_plane(app)
    for table in app.page.locator(".mx-chart-view:not(.mx-empty) table").all():
        expect(table.locator("tr").nth(1)).to_be_attached()
    its_numbers_are_saved_by_keys(app)
    at_speed(app, "ever faster")  # as other tests of this page begin


FRAMES = 30  # that a run draws while the nodes are counted
# Nodes that leave the tables and the numbers behind the headline while so many frames are drawn.
EXCHANGED = """frames => new Promise(done => {
  let gone = 0, drawn = 0;
  const count = rows => rows.forEach(row => { gone += row.removedNodes.length; });
  const watch = new MutationObserver(count);
  for (const e of document.querySelectorAll('.mx-chart-view table, .mx-numbers-list'))
    watch.observe(e, {childList: true, subtree: true});
  document.addEventListener('mx-drawn', e => {
    if (!e.target.closest('.mx-plane') || ++drawn !== frames) return;
    watch.disconnect();
    done(gone);
  });
})"""


def a_run_writes_into_the_nodes_that_are_there(app: Explorer) -> None:
    table = card(app, "Unexplained share of the weights").locator("table")
    cell = table.locator("td").first.element_handle()
    before = table.text_content()
    app.press("Play")
    gone = app.page.evaluate(EXCHANGED, FRAMES)
    assert gone < 5 * FRAMES, "few nodes a frame: rows of numbers may come or go, not whole tables"
    app.press("Pause")
    expect(table).not_to_have_text(before or "")
    assert cell.evaluate("e => e.isConnected"), "what is new stands in the same cells"


def the_line_of_a_curve_is_the_time_slider(app: Explorer) -> None:
    plot = card(app, "Unexplained share of the weights").locator(".mx-chart-plot")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^step [0-9,]+$"))
    settled(plot)
    # The last frame of a run comes a moment after its button has changed.
    last = app.page.wait_for_function(
        """plot => {
             const now = document.querySelector('.mx-where').innerText.match(/step ([\\d,]+)/);
             const step = now && Number(now[1].replaceAll(',', ''));
             return step === Number(plot.getAttribute('aria-valuenow')) && step;
           }""",
        arg=plot.element_handle(),
    ).json_value()
    pull(app, plot, 0.75, 0.4)
    expect(plot).not_to_have_attribute("aria-valuenow", str(last))
    app.page.wait_for_function(
        "last => Number(document.querySelector('.mx-where').innerText.match(/step ([\\d,]+)/)[1]"
        ".replaceAll(',', '')) < last / 4",
        arg=last,
    )
    plot.press("ArrowRight")  # and by keys
    pull(app, plot, 0.4, 0.98)
    app.wait_for_step(last // 2)


def the_line_of_recall_decides_what_counts(app: Explorer) -> None:
    chart = card(app, "Points recovered, by distance")
    plot, note = chart.locator(".mx-chart-plot"), chart.locator(".mx-chart-head span").first
    expect(plot).to_have_attribute("aria-valuenow", "0.03")
    pull(app, plot, 0.5, 0.02)
    expect(plot).to_have_attribute("aria-valuenow", re.compile(r"^0\.00"))
    near = plot.get_attribute("aria-valuenow")
    expect(note).to_contain_text("average")  # at 0.03 the headline says it
    few = _chance(note)
    pull(app, plot, 0.1, 0.8)
    met = re.compile(rf"average {few:g}( |$)")
    expect(note).not_to_contain_text(met)  # chance meets more at such a distance
    app.page.wait_for_function(  # answers to earlier places of the drag come first
        "([plot, least]) => Number(plot.getAttribute('aria-valuenow')) > least",
        arg=[plot.element_handle(), 10 * float(near or 1)],
    )
    expect(app.page.locator(".mx-dots .mx-chart-foot")).to_contain_text("●")
    assert within(30, lambda: _chance(note) > few)
    dots = app.page.locator(".mx-dots .mx-chart-plot")
    app.page.wait_for_function(  # also while answers to earlier places come
        "([note, dots]) => dots.ariaLabel.startsWith("
        "`${note.innerText.split(';')[0]} points recovered`)",
        arg=[note.element_handle(), dots.element_handle()],
    )


def _chance(note: Locator) -> float:
    """Unseen points that the line of recall says are recovered."""
    return float(note.inner_text().partition("average ")[2].split()[0])


def its_numbers_are_saved_by_keys(app: Explorer) -> None:
    chart = card(app, "Points recovered, by distance")
    note = chart.locator(".mx-chart-head span").first.inner_text()
    chart.locator(".mx-save").focus()
    app.page.keyboard.press("Enter")
    expect(chart.get_by_role("button", name="NPZ")).to_be_visible()
    for _ in ("PNG", "SVG", "PDF", "CSV"):
        app.page.keyboard.press("Tab")
    with app.page.expect_download() as waited:
        app.page.keyboard.press("Enter")
    assert waited.value.suggested_filename == "points-recovered-by-distance.csv"
    lines = Path(waited.value.path()).read_text().splitlines()
    assert lines[0] == "series,distance,points recovered,other end"
    counts = [float(line.split(",")[2]) for line in lines if line.startswith("training points")]
    assert len(counts) > 20 and float(note.split()[0]) in counts


def a_dot_is_marked_on_the_plane(app: Explorer) -> None:
    dots = app.page.locator(".mx-dots .mx-chart-plot")
    plane = app.page.locator(".mx-plane canvas").first
    app.page.mouse.move(5, 5)
    before = plane.evaluate(AT_REST)
    dots.focus()
    dots.press("ArrowRight")
    expect(dots).to_have_attribute("aria-valuetext", re.compile("^point 1: (not )?recovered"))
    app.page.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before", arg=[plane.element_handle(), before]
    )


# Where the words of a handle at the last of these points of a line stand, and the line, in px.
PLACED = """([source, line, wide]) => import(URL.createObjectURL(new Blob(
  [source + "\\nexport {placeWords, layOut};"], {type: "text/javascript"}))).then(chart => {
  const frame = {series: [{kind: "line"}], x: {low: 0, high: 1}, y: {low: 0, high: 1}};
  const context = document.createElement("canvas").getContext("2d");
  const at = chart.layOut(context, frame, {width: 300, height: 250});
  const rows = line.map(([x, y]) => ({x, y})), last = at.X(line.at(-1)[0]);
  const path = line.map(([x, y]) => [at.X(x), at.Y(y)]);
  return [chart.placeWords(frame, [rows], [], at, last, wide), path];
})"""
WIDE, TALL = 65, 8  # px: the width and half the height of the words


@pytest.mark.parametrize("curve", [
    lambda x: 1 - x, lambda x: x, lambda x: np.exp(-8 * x), lambda x: 1.0 * (x < 0.5),
    lambda x: 0.5 + 0.4 * np.sin(20 * x), lambda x: 0.6 + 0 * x,
])  # fmt: skip
def test_the_words_of_a_handle_stand_on_no_curve(curve, new_page) -> None:
    page: Page = new_page()
    page.goto("about:blank")
    x = np.linspace(0, 1, 9)
    line = np.column_stack([x, curve(x)]).tolist()
    (left, y), path = page.evaluate(PLACED, [script("chart.js"), line, WIDE])
    ends, knots = np.array(path), np.arange(len(path))
    fine = np.linspace(0, len(path) - 1, 2000)
    dense = np.column_stack([np.interp(fine, knots, ends[:, k]) for k in (0, 1)])
    across = (dense[:, 0] > left) & (dense[:, 0] < left + WIDE)
    assert not (across & (np.abs(dense[:, 1] - y) < TALL)).any()
    page.close()

"""A notebook in JupyterLab: the road in a cell, figures and widgets in others, and the lab's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from benchmarks.lab import NOTEBOOKS
from explorer.engine.store import load_run
from explorer.serve.server import Server
from tests.browser.steps import NEAR_KKT, STAGES, VERDICT, Explorer, barriers, know_the_marks
from tests.browser.test_screen import wrong_with
from tests.serve.visits import within

# How far training came before the pause decides whether a hundred steps find a claim.
JUDGED = re.compile(rf"{VERDICT.pattern}|No claim yet")
LAB = json.loads((NOTEBOOKS / "lab.ipynb").read_text())["cells"]


def test_the_page_figures_widgets_the_lab_and_a_recording_work_in_cells_of_one_notebook(
    page: Page, open_in_lab: Callable[..., Path], lab_server: Server, console_errors: list[str]
) -> None:
    """To load JupyterLab and to start a kernel there is most of what such a test costs."""
    know_the_marks(page)
    lab = ["".join(cell["source"]) for cell in LAB if cell["cell_type"] == "code"]
    work = open_in_lab(page, FIGURES, WIDGETS, THREE, AGAIN, PLAYED, *lab)
    the_road_is_walked_in_a_cell(page)
    figures_show_their_marks_and_the_readers_own(page, run_cell(page, 1))
    each_public_widget_stands_alone(page, run_cell(page, 2))
    pages_live_side_by_side_and_a_cell_replaces_its_own_alone(page)
    the_lab_is_a_notebook_that_a_mouse_works_on(page, work)
    run_cell(page, 5)
    a_recording_plays_on_when_the_kernel_is_gone(page, lab_server, work / "given.ipynb")
    page.goto("about:blank")
    # The pages in the other cells asked for the kernel that has ended.
    console_errors[:] = [said for said in console_errors if "404" not in said]


def the_road_is_walked_in_a_cell(page: Page) -> None:
    app = Explorer(page).ready()
    expect(page.locator(".mx-play")).to_have_css("border-radius", "50%")  # Lab rounds all alike
    assert wrong_with(page, "patches") == []
    app.draw_twelve()
    app.press("Play")
    app.wait_for_step(200)
    expect(app.verdict).to_contain_text(NEAR_KKT)
    app.press("Pause")
    expect(app.button("Play")).to_be_visible()

    app.press("3 Attack")
    expect(page.locator(".mx-found > .mx-dots")).to_have_count(1)  # what is made late has its look
    app.press("Step × n")
    expect(app.verdict).to_contain_text(JUDGED)
    page.keyboard.press("Escape")
    # The cell holds each stage whole: the notebook scrolls, and nothing in the page does.
    wide = page.viewport_size
    for stage in STAGES:
        app.press(stage)
        for size in (wide, {"width": 1280, "height": 720}):
            page.set_viewport_size(size)
            page.wait_for_function(WHOLE)
    questions_are_answered_in_the_cell(app)
    page.set_viewport_size(wide)


def questions_are_answered_in_the_cell(app: Explorer) -> None:
    """On two points, of which each question has an answer at once."""
    app.to_exact("Two points")
    app.press("4 Explain")
    rows = app.page.locator(".mx-question:visible")
    app.press("How certain is a point here?")
    expect(rows.locator(".mx-item-words:not(:empty)").first).to_be_visible()
    expect(rows.locator(".mx-bar:visible")).to_have_count(0)
    told = app.verdict.inner_text()
    app.press("Farthest other set")
    expect(app.verdict).not_to_have_text(told, use_inner_text=True)
    expect(rows.locator(".mx-bar:visible")).to_have_count(0)
    app.page.wait_for_function(WHOLE)


WHOLE = """() => [...document.querySelectorAll(".mx-cards, .mx-starts-box, .mx-lesson-body")]
    .every(e => e.scrollHeight <= e.clientHeight + 1)"""
FIGURES = """
import bqplot as bq, ipywidgets as w
from explorer import certify, figure, maximum_margin, preset
from explorer.engine.charts import Axis, Chart, Series
from explorer.research.grid import maps
data = preset("alternating-circle", n=6)
proof = figure(certify(maximum_margin(data.x, data.y).net, data.x, data.y))
own = bq.Scatter(x=[1.2, 1.3], y=[0.1, 0.2], scales=proof.marks[-1].scales, colors=["red"])
proof.marks = [*proof.marks, own]
ends = {"truth": 0.1, "heldout": 0.4, "noise": 0.9}
rows = [{"seed": 0, "mix_truth": a, "mix_data": b, "result": {**ends, "start": ends}}
        for a in (0.0, 0.5, 1.0) for b in (0.5, 1.0)]
grid, said = figure(maps(3, rows)), w.Label()
def tell(_, told):
    said.value = f"row {told['data']['rowNum']}, column {told['data']['columnNum']}"
grid.marks[0].on_element_click(tell)
gaps = Series([1, 2], [0.5, 1.0], "", "stems"), Series([1, 2], [float("nan")] * 2, "nothing")
stems = figure(Chart(gaps, Axis(0, 3), Axis(0, 1)))
display(w.VBox([proof, grid, figure(maps(3, rows), "data edge"), stems, said]))
"""


def figures_show_their_marks_and_the_readers_own(page: Page, output: Locator) -> None:
    proof, grid, edge, stems = (output.locator(".bqplot").nth(k) for k in range(4))
    expect(proof.locator("path.dot")).to_have_count(6 + 2)
    expect(proof).to_contain_text("Multiplier of each point (exact")
    proof.locator("path.dot").nth(5).hover()  # six at one place: the top one
    expect(page.locator(".bqplot_mark_tooltip:visible")).to_contain_text("point 6: mult")
    cells = grid.locator("rect.heatmapcell")
    expect(cells).to_have_count(9)
    assert len({cell.evaluate("e => e.style.fill") for cell in cells.all()}) == 2  # and unknown
    grid.locator(".heatmaprow").nth(2).locator("rect").nth(1).click()
    expect(output.locator(".widget-label").last).to_have_text("row 2, column 1")
    expect(edge.locator("path.line").first).to_have_attribute("d", re.compile("^M.*L"))
    expect(stems.locator("path.line")).to_have_count(1)
    expect(stems.locator("path.line")).to_have_attribute("d", re.compile("^M[^M]*M[^M]*$"))


WIDGETS = """
import ipywidgets as w
from explorer import Target, TrainConfig, maximum_margin, preset
from explorer.engine.store import Run
from explorer.page.widgets.mirror import Mirror
from explorer.research.runs import training_states
from explorer.widgets import DrawingPad, Landscape, Margins, Plane, Play, Recall
data = preset("alternating-circle", n=6)
net = maximum_margin(data.x, data.y).net
pad, plane, margins = DrawingPad(), Plane(data, network=net), Margins(data, network=net)
recall = Recall(data, claims=(data.x + 0.05, data.y))
triangle = Landscape(Target.of(net, 1.0), data)
play = Play(training_states(Run(data, TrainConfig(widths=(8,), steps=400))))
other = Plane(data)
w.dlink((play, "state"), (other, "state"))
def told(widget, *names):
    label = w.Label().add_class("told")
    say = lambda _: setattr(label, "value", " ".join(f"{n} {getattr(widget, n)}" for n in names))
    widget.observe(say, names)
    return label
display(pad, told(pad, "tool", "selected"), plane, told(plane, "selected"), margins,
        told(margins, "selected"), recall, told(recall, "found"), triangle, told(triangle, "start"),
        play, other, told(play, "t", "over"), Mirror(pad))
"""
# Numbers that a canvas on screen holds: see `plane.js`.
POINTS = "([e, n]) => (e.querySelector('canvas')?.mxFrame?.points?.shape[0] ?? 0) === n"
HAS_MAP = "([e]) => Boolean(e.querySelector('canvas')?.mxFrame?.map)"


def holds(plane: Locator, n: int) -> None:
    """Wait until a plane shows so many points."""
    expect(plane.locator(".mx-pad-surface")).to_have_attribute(
        "aria-label", re.compile(rf"^Plane with {n} points\.")
    )
    draws(plane, POINTS, n)


def draws(plane: Locator, what: str, *numbers: int) -> None:
    """Wait until the canvas of a plane draws what is asked, a frame after its words say so."""
    canvas = plane.locator(".mx-plane").element_handle()
    plane.page.wait_for_function(what, arg=[canvas, *numbers])


def press_at(surface: Locator, x: float, y: float) -> None:
    """Press a real mouse at shares of a surface, from its left and its top."""
    box = surface.bounding_box()
    surface.click(position={"x": x * box["width"], "y": y * box["height"]})


def each_public_widget_stands_alone(page: Page, output: Locator) -> None:
    alone = output.locator(".mx-alone")
    expect(alone).to_have_count(8)
    pad, plane, margins, recall, triangle, play, other, mirror = (alone.nth(k) for k in range(8))
    labels = output.locator(".told")
    surface = pad.locator(".mx-pad-surface")
    expect(surface).to_be_visible()
    press_at(surface, 0.5, 0.5)
    holds(pad, 1)
    press_at(mirror.locator(".mx-pad-surface"), 0.75, 0.25)  # as marimo shows the pad
    holds(mirror, 2)
    holds(pad, 2)
    pad.get_by_role("button", name="Erase").click()
    expect(labels.nth(0)).to_have_text("tool erase selected 1")

    draws(plane, HAS_MAP)
    press_at(plane.locator(".mx-pad-surface"), 0.75, 0.5)
    expect(labels.nth(1)).to_have_text("selected 0")

    margins.locator(".mx-chart-plot").scroll_into_view_if_needed()
    expect(margins).to_contain_text("6 of 6 on the margin")
    margins.locator(".mx-chart-plot").hover()
    expect(labels.nth(2)).to_have_text(re.compile(r"selected \d"))

    curve = recall.locator(".mx-chart-plot").first
    curve.scroll_into_view_if_needed()
    expect(recall).to_contain_text("0 of 6")
    curve.focus()
    for _ in range(4):
        page.keyboard.press("Shift+ArrowRight")
    expect(labels.nth(3)).to_have_text("found 6")

    triangle.scroll_into_view_if_needed()
    triangle.locator("[role=application]").focus()
    page.keyboard.press("t")
    expect(labels.nth(4)).to_have_text("start (1.0, 0.0, 0.0)")

    play.scroll_into_view_if_needed()
    play.get_by_role("button", name="Play").click()
    expect(labels.nth(5)).to_have_text("t 400 over True")
    expect(play.locator(".mx-where")).to_have_text("step 400 of 400")
    draws(other, HAS_MAP)
    assert barriers(page, ".jp-OutputArea .mx-alone") == []


def run_cell(page: Page, k: int) -> Locator:
    """Run a code cell of the notebook; its output."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(k)
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))
    return cell.locator(".jp-OutputArea").first


def the_lab_is_a_notebook_that_a_mouse_works_on(page: Page, work: Path) -> None:
    pad, table, pages, slider, moving, proof, files = range(6, 13)
    pad = run_cell(page, pad).locator(".mx-alone")
    holds(pad, 6)
    press_at(pad.locator(".mx-pad-surface"), 0.5, 0.93)
    holds(pad, 7)
    expect(run_cell(page, table).locator("tbody tr")).to_have_count(7)

    pair = run_cell(page, pages).locator(".mx-explorer")
    expect(pair).to_have_count(2)
    for one in pair.all():
        expect(one.locator(".mx-where")).to_contain_text("step 600")
        holds(one, 7)
    run_cell(page, slider).locator("[role=slider]").focus()
    page.keyboard.press("ArrowRight")
    expect(pair.first.locator(".mx-where")).to_contain_text("step 600")

    views = run_cell(page, moving)
    views.get_by_role("button", name="Play").click()
    expect(views.locator(".mx-where")).to_have_text("step 3,000 of 3,000")
    holds(views.locator(".mx-alone-plane"), 7)
    expect(run_cell(page, proof).locator(".bqplot path.line").last).to_have_attribute(
        "d", re.compile("^M.*L")
    )
    run_cell(page, files)
    press_at(pad.locator(".mx-pad-surface"), 0.3, 0.93)  # one drawing: both pages have it
    for one in (pad, *pair.all()):
        holds(one, 8)
    assert (work / "points.csv").read_text().splitlines()[0] == "x1,x2,y"
    assert load_run(work / "right.safetensors").net.widths == (200,)


THREE = """import ipywidgets as w
from explorer import app, link, preset
pages = [app(preset("alternating-circle", n=6), shown=False), *(app(shown=False) for _ in range(2))]
links = [link(pages[0], other, "dataset") for other in pages[1:]]
w.HBox([page.widget for page in pages])"""
AGAIN = """from explorer.page.apps.explorer import App
page = app()
print([one.widget.comm is not None for one in pages])"""


def pages_live_side_by_side_and_a_cell_replaces_its_own_alone(page: Page) -> None:
    three = run_cell(page, 3).locator(".mx-explorer")
    expect(three).to_have_count(3)
    for one in three.all():
        holds(one, 6)
        assert one.bounding_box()["width"] > 270
    press_at(three.nth(2).locator(".mx-pad-surface"), 0.5, 0.5)
    for one in three.all():
        holds(one, 7)
    for again in (False, True):
        if again:
            run_cell(page, 3)
            holds(three.first, 6)
        output = run_cell(page, 4)
        expect(output.locator(".mx-explorer")).to_have_count(1)
        expect(output).to_contain_text("[True, True, True]")


PLAYED = """from explorer import Run, TrainConfig, play, preset
play(Run(preset("blobs", n=6), TrainConfig(widths=(8,)), steps=(40, 0)))"""


def end_kernels(page: Page, server: Server) -> None:
    """End all kernels, as its server would after a while."""
    address = f"{server.url}api/kernels"
    token = next(c["value"] for c in page.context.cookies() if c["name"] == "_xsrf")
    for kernel in page.request.get(address).json():
        page.request.delete(f"{address}/{kernel['id']}", headers={"X-XSRFToken": token})
    assert page.request.get(address).json() == []


def a_recording_plays_on_when_the_kernel_is_gone(page: Page, server: Server, book: Path) -> None:
    frame = page.frame_locator("iframe[srcdoc]")
    where = frame.locator(".mx-where")
    expect(where).to_have_text("step 40")
    page.keyboard.press("Control+s")
    assert within(60, lambda: "srcdoc" in book.read_text()), "the notebook holds the page"
    end_kernels(page, server)
    frame.get_by_role("button", name="Reset").click()
    expect(where).to_have_text("")
    frame.get_by_role("button", name="Play", exact=True).click()
    expect(where).to_have_text("step 40")

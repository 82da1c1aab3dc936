"""The same road in a cell of JupyterLab, and figures to work with in others."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.steps import NEAR_KKT, VERDICT, Explorer, know_the_marks
from tests.browser.test_screen import wrong_with


def test_road_in_a_cell(page: Page, open_in_lab: Callable[..., None]) -> None:
    know_the_marks(page)
    open_in_lab(page)
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
    app.press("Play")
    app.wait_for_step(2000)
    expect(app.verdict).to_contain_text(VERDICT)


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


def test_figures_show_their_marks_and_the_readers_own(
    page: Page, open_in_lab: Callable[..., None]
) -> None:
    open_in_lab(page, FIGURES)
    proof, grid, edge, stems = (page.locator(".jp-OutputArea .bqplot").nth(k) for k in range(4))
    expect(proof.locator("path.dot")).to_have_count(6 + 2)
    expect(proof).to_contain_text("Multiplier of each point (exact")
    proof.locator("path.dot").nth(5).hover()  # six at one place: the top one
    expect(page.locator(".bqplot_mark_tooltip:visible")).to_contain_text("point 6: mult")
    cells = grid.locator("rect.heatmapcell")
    expect(cells).to_have_count(9)
    assert len({cell.evaluate("e => e.style.fill") for cell in cells.all()}) == 2  # and unknown
    grid.locator(".heatmaprow").nth(2).locator("rect").nth(1).click()
    expect(page.locator(".jp-OutputArea .widget-label").last).to_have_text("row 2, column 1")
    expect(edge.locator("path.line").first).to_have_attribute("d", re.compile("^M.*L"))
    expect(stems.locator("path.line")).to_have_count(1)
    expect(stems.locator("path.line")).to_have_attribute("d", re.compile("^M[^M]*M[^M]*$"))

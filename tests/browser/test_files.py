"""Files in and out: what is offered equals what is drawn, and a bad file changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.steps import POSITIVE, Explorer
from tests.browser.test_plane import a_visitor_saves_the_very_frame

GARBAGE = b"\x80\x04\x95 not a run at all" * 50

ECHO_IS_GONE = """() => {
  const c = document.querySelector(".mx-pad-surface canvas");
  if (!c.checkVisibility()) return true;
  return !c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some(v => v);
}"""


def test_points_leave_as_picture_and_csv_and_come_back_and_a_bad_file_changes_nothing(
    app: Explorer, tmp_path: Path
) -> None:
    page = app.page
    a_visitor_saves_the_very_frame(app, tmp_path)
    app.preset("Moons")
    app.expect_points(24)
    app.fold("Share")
    saved = tmp_path / "points.csv"
    saved.write_text(app.csv())
    app.fold("Points as a table")
    table = page.locator(".mx-app table tr")
    expect(table).to_have_count(25)
    rows = [line.split(",") for line in saved.read_text().splitlines()[1:]]
    for row, line in zip(rows, table.all_inner_texts()[1:], strict=True):
        x1, x2, y = line.split()[1:4]
        assert (float(x1), float(x2)) == pytest.approx([float(v) for v in row[:2]], abs=6e-4)
        assert int(y) == int(row[2])

    app.fold("Share")
    app.press("Clear")
    app.expect_points(0)
    app.fold("Share")
    choose(app, "Import CSV", saved)
    app.expect_points(24)
    assert app.csv() == saved.read_text()

    # A full plane takes no more points, and none stays drawn that was refused.
    full = tmp_path / "full.csv"
    rows = [f"{0.01 * k - 1:.2f},{k % 2 - 0.5},{2 * (k % 2) - 1}" for k in range(200)]
    full.write_text("\n".join(["x1,x2,y", *rows]))
    choose(app, "Import CSV", full)
    app.expect_points(200)
    expect(page.locator(".mx-item-file").first).to_have_text("Import CSV")
    app.fold("Share")
    app.press(POSITIVE)
    page.mouse.move(*app.at((0.3, 0.9)))
    page.mouse.down()
    expect(app.message).to_contain_text("200")  # the answer comes before a hand lets go
    page.mouse.up()
    page.wait_for_function(ECHO_IS_GONE)
    app.fold("Share")
    choose(app, "Import CSV", saved)
    app.expect_points(24)

    # Twice a file that is refused, and what was drawn stays.
    bad = tmp_path / "bad.csv"
    bad.write_text("x1,x2,y\n0.5,0.5,1\n0.1,oops,-1\n")
    choose(app, "Import CSV", bad)
    expect(app.message).to_contain_text("bad.csv: line 3: x2 must be a number")
    for name in ("weights.safetensors", "weights.pt"):
        garbage = tmp_path / name
        garbage.write_bytes(GARBAGE)
        choose(app, "Open a run or weights", garbage)
        expect(app.message).to_contain_text(f"{name}: ")
        expect(app.message).to_contain_text("What was on screen stays.")
    app.expect_points(24)
    assert app.csv() == saved.read_text()


def a_run_file_opens_elsewhere(app: Explorer, other: Explorer, tmp_path: Path) -> None:
    """A run is saved, and opened by another visitor; Share is open on both pages."""
    saved = tmp_path / "run.safetensors"
    app.fold("Share")
    app.press("1 Draw")
    app.preset("XOR")
    app.press("Step × n")
    expect(app.where).to_have_text("step 100")
    app.fold("Share")
    saved.write_bytes(app.saved("Run: Run file"))
    choose(other, "Open a run or weights", saved)
    expect(other.verdict).to_have_text(app.verdict.text_content() or "no headline")
    expect(other.where).to_have_text("step 100")
    assert other.csv() == app.csv()
    other.press("Step")
    expect(other.where).to_have_text("step 101")


def choose(app: Explorer, name: str, file: Path) -> None:
    """Press an upload button and choose a file, as in the system's own dialogue."""
    upload = app.page.locator(".mx-item-file button", has_text=name)
    with app.page.expect_file_chooser() as chooser:
        upload.click()
    chooser.value.set_files(file)

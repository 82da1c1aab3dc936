"""Files that a visitor opens: points, runs, weights of others; and the points as a table."""

from __future__ import annotations

import ipywidgets as w

from explorer.engine.data import read_csv
from explorer.engine.files import FileError, safe_name
from explorer.page import files
from explorer.page.controls.files import upload
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel, with_title
from explorer.page.stages.draw import commands as draw


class Files(Panel):
    """In a fold of the side; a refused file changes nothing on screen."""

    def build(self) -> None:
        """A row of what can be opened, and the table."""
        self.table = w.HTML().add_class("mx-note")
        tip = "Points from a file with the header x1,x2,y"
        csv = upload("Import CSV", ".csv", tip, self._read_points, self.command)
        tip = "A saved run, a kept drawing, or the state_dict of a ReLU network"
        kinds = ".safetensors,.pt,.pth,.mx"
        run = upload("Open a run or weights", kinds, tip, self._read_run, self.command)
        self.fold = w.Accordion(
            children=[self.table], selected_index=None, titles=("Points as a table",)
        )
        self.fold.observe(lambda _: self.render(self.session.frame), names=["selected_index"])
        row = w.HBox([csv, run]).add_class("mx-row")
        self.widget = w.VBox([with_title("Open", row), self.fold])

    def _read_points(self, name: str, content: bytes) -> None:
        try:
            draw.load(self.session, read_csv(content))
        except ValueError as error:
            raise FileError(f"{safe_name(name)}: {error} What was on screen stays.") from error

    def _read_run(self, name: str, content: bytes) -> None:
        try:
            files.open_file(self.session, content)
        except ValueError as error:
            raise FileError(f"{safe_name(name)}: {error} What was on screen stays.") from error

    def render(self, frame: Frame) -> None:
        """Update what is unfolded, and nothing else."""
        if self.fold.selected_index == 0 and self.table.value != (rows := _table(frame)):
            self.table.value = rows


def _table(frame: Frame) -> str:
    data = frame.dataset
    if not data.n:
        return "No points yet."
    head = "".join(f"<th>x{i + 1}</th>" for i in range(data.d))
    q = frame.training.state.q.tolist() if frame.training.state is not None else [None] * data.n
    rows = "".join(
        f"<tr><td>{i}</td>{''.join(f'<td>{v:.3f}</td>' for v in x)}"
        f"<td>{_class_of(int(y), data.outputs > 1)}</td>"
        f"<td>{'–' if m is None else f'{m:.4g}'}</td></tr>"
        for i, (x, y, m) in enumerate(zip(data.x.tolist(), data.y.tolist(), q, strict=True), 1)
    )
    return f"<table><tr><th>point</th>{head}<th>y</th><th>q</th></tr>{rows}</table>"


def _class_of(label: int, several: bool) -> str:
    """Return +1 or -1, or with more classes the number of the class."""
    return f"{2 if label == -1 else label}" if several else f"{label:+d}"

"""Files that a visitor opens: points, runs, weights of others; and the points as a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from explorer.engine.data import read_csv
from explorer.engine.files import FileError, safe_name
from explorer.page.controls.row import Item, Row
from explorer.page.frame import Frame
from explorer.page.panels.base import Panel
from explorer.page.session import Session
from explorer.page.sharing import files
from explorer.page.stages.draw import commands as draw

POINTS_TIP = "Points from a file with the header x1,x2,y"
RUN_TIP = "A saved run, a kept drawing, or the state_dict of a ReLU network"


class Files(Panel):
    """In a fold of the side; a refused file changes nothing on screen."""

    def build(self) -> None:
        """A row of what can be opened, and the table."""
        self.row = Row(
            points=Item("file", "Import CSV", POINTS_TIP, accept=".csv",
                        call=partial(self._open, _read_points)),
            run=Item("file", "Open a run or weights", RUN_TIP,
                     accept=".safetensors,.pt,.pth,.mx", call=partial(self._open, files.open_file)),
            fold=Item("button", "Points as a table", "Open or close the table", False,
                      call=lambda _: self.render(self.session.frame)),
            said=Item("words", value="", hidden=True),
        )  # fmt: skip
        self.widget = self.row

    def _open(self, read: Callable[[Session, bytes], None], given: tuple[str, bytes]) -> None:
        """Open a file; one that is refused changes nothing on screen."""
        name, content = given

        def opening() -> None:
            try:
                read(self.session, content)
            except ValueError as error:
                raise FileError(f"{safe_name(name)}: {error} What was on screen stays.") from error

        self.do(opening)

    def render(self, frame: Frame) -> None:
        """Update what is unfolded, and nothing else."""
        unfolded = self.row.value("fold")
        if unfolded:
            self.row.say(_table(frame))
        self.row.put("said", hidden=not unfolded)


def _read_points(session: Session, content: bytes) -> None:
    draw.load(session, read_csv(content))


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

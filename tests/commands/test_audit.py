"""The verb `audit`: weights and tables as other programs write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin

CIRCLE = preset("alternating-circle", n=8)
X, Y = CIRCLE.x.numpy(), CIRCLE.y.numpy()
WORDS = np.where(Y > 0, "yes", "no")


def lines(mark: str, head: str, y: object, point: str = ".") -> str:
    """A table with one line per point."""
    rows = [
        [*(f"{v:.17g}".replace(".", point) for v in x), str(k)] for x, k in zip(X, y, strict=True)
    ]  # type: ignore[call-overload]
    return "\n".join([head, *(mark.join(row) for row in rows)]) + "\n"


TABLES: dict[str, tuple[str | dict[str, np.ndarray], str]] = {
    "plain": (lines(",", "x1,x2,y", Y), ""),
    "words": (lines(",", "height,weight,kind", WORDS), ""),
    "semicolons": ("\ufeff" + lines(";", "height;weight;Class", WORDS, ","), ""),
    "tabs": (lines("\t", "height\tweight\tlabel", (Y > 0) * 1), ""),
    "quoted": (lines(",", '"height, cm",weight,"Target"', [f'"{k}"' for k in WORDS]), ""),
    "label": (lines(",", "a,b,group", Y > 0), "--label group"),
    "windows": (lines(",", "x1,x2,y", Y).replace("\n", "\r\n"), ""),
    "other way round": (lines(",", "x1,x2,y", np.where(Y > 0, "a", "b")), "--classes 'b, a'"),
    "arrays": ({"x": X, "y": Y}, ""),
    "arrays of words": ({"X": X.astype(np.float32), "Y": WORDS}, ""),
    "arrays of images": ({"x": X[:, :, None], "target": Y > 0, "more": Y}, ""),
    "named array": ({"x": X, "y": -Y, "group": Y}, "--label group"),
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The exact network of a circle as a plain model writes it."""
    net = maximum_margin(CIRCLE.x, CIRCLE.y).net
    first = nn.Linear(2, len(net.weights[0]))
    model = nn.Sequential(first, nn.ReLU(), nn.Linear(first.out_features, 1, bias=False)).double()
    with torch.no_grad():
        for p, value in zip(model.parameters(), net.parameters, strict=True):
            p.copy_(value)
    path = tmp_path_factory.mktemp("audit") / "model.pt"
    torch.save({"epoch": 3, "model_state_dict": model.state_dict()}, path)
    return path


@pytest.fixture
def audit(call, weights):
    """Audit these weights with a table: audit(table, more words) -> Answer."""

    def audited(held, more="", **code):
        path = Path("data.csv" if isinstance(held, str) else "data.npz")
        if isinstance(held, str):
            path.write_text(held, encoding="utf-8", newline="")
        else:
            np.savez(path, **held)
        return call(f"audit {weights} {path} --attack kkt --steps 20 {more}", **code)

    return audited


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_every_kind_are_read(kind, audit) -> None:
    held, more = TABLES[kind]
    made = audit(held, f"--json {more}").json
    assert made["points"] == 8 and made["attacks"][0]["verdict"] is not None
    if kind == "semicolons":
        assert list(made["table"][0])[3:5] == ["height", "weight"]


def test_held_out_columns_go_by_their_names(audit) -> None:
    data = lines(",", "height,weight,y", Y)
    Path("test.csv").write_text("y,weight,id,height\n-1,0.5,7,0.25\n1,2.5,8,0.75\n")
    assert "verdict" in audit(data, "--heldout test.csv --out a.csv").out
    assert Path("a.csv").read_text().startswith("point,class,margin,height,weight")
    Path("test.csv").write_text("mass,weight,y\n0.5,0.25,1\n")
    assert "height" in audit(data, "--heldout test.csv", code=2).line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1.0,2.0,1\n3.0,1.0,-1\n", "names of the columns"),
        ("x1,x2,y\n1.0,,1\n0.5,1.0,-1\n", "line 2"),
        ("x1,x2,y\n1.0,nan,1\n0.5,1.0,-1\n", "nan"),
        ("x1,x2,x3,y\n1.0,2.0,3.0,1\n0.5,1.0,0.5,-1\n", "3 coordinates"),
        ("x1,x2,y\n1.0,2.0\n", "line 2"),
        ("x1,x2,y\n", "header"),
    ],
)
def test_other_tables_are_refused_by_what_they_lack(text, words, audit) -> None:
    assert words in audit(text, code=2).line

"""Pictures of runs: what is drawn where an attack says little."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.attacks.claims import Report
from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.research.painting import new_figure
from explorer.research.planes import attack_picture, plot_claims


@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_claims_are_drawn_with_and_without_multipliers(tmp_path, lam: float) -> None:
    data = preset("blobs", n=6)
    net = maximum_margin(data.x, data.y).net
    claims = Report(data.x[:3], data.y[:3], torch.full((3,), lam, dtype=data.x.dtype))
    attack_picture(tmp_path / "with.png", data, net, claims, "claims")
    attack_picture(tmp_path / "without.png", data, net, None, "claims")
    assert (tmp_path / "with.png").read_bytes() != (tmp_path / "without.png").read_bytes()


FIRST = [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")]


@pytest.mark.parametrize(("ending", "first"), FIRST)
def test_a_picture_is_what_its_name_says_and_is_drawn_on_ones_own_axes(
    tmp_path, ending: str, first: bytes
) -> None:
    data = preset("alternating-line", n=4)
    net = maximum_margin(data.x, data.y).net
    path = tmp_path / f"picture.{ending}"
    attack_picture(path, data, net, None, "claims")
    assert path.read_bytes().startswith(first)
    ax = new_figure(4, 3).subplots()
    assert plot_claims(ax, data, net) is ax and ax.lines

"""Pictures of runs: what is drawn where an attack says little."""

from __future__ import annotations

import pytest
import torch
from matplotlib.collections import PathCollection

from explorer.engine.attacks.claims import Report
from explorer.engine.confidence import Share
from explorer.engine.data import preset
from explorer.engine.exact import maximum_margin
from explorer.research.pictures.charts import arena_charts
from explorer.research.pictures.painting import new_figure, paint_plane, save_figure
from explorer.research.pictures.planes import plane_frame, run_figure
from explorer.research.sweep.arena import ArenaLine


@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_claims_are_drawn_with_and_without_multipliers(tmp_path, lam: float) -> None:
    data = preset("blobs", n=6)
    net = maximum_margin(data.x, data.y).net
    claims = Report(data.x[:3], data.y[:3], torch.full((3,), lam, dtype=data.x.dtype))
    save_figure(tmp_path / "with.png", run_figure(data, net, claims, "claims"))
    save_figure(tmp_path / "without.png", run_figure(data, net, title="claims"))
    assert (tmp_path / "with.png").read_bytes() != (tmp_path / "without.png").read_bytes()


FIRST = [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")]


@pytest.mark.parametrize(("ending", "first"), FIRST)
def test_a_picture_is_what_its_name_says_and_is_drawn_on_ones_own_axes(
    tmp_path, ending: str, first: bytes
) -> None:
    data = preset("alternating-line", n=4)
    net = maximum_margin(data.x, data.y).net
    path = tmp_path / f"picture.{ending}"
    save_figure(path, run_figure(data, net, title="claims"))
    assert path.read_bytes().startswith(first)
    ax = new_figure(4, 3).subplots()
    paint_plane(ax, plane_frame(data, net))
    assert ax.lines


def test_a_plane_on_paper_has_a_mark_at_each_point_and_claim() -> None:
    data = preset("blobs", n=6)
    net = maximum_margin(data.x, data.y).net
    claims = Report(data.x[:3] + 0.1, data.y[:3], torch.tensor([1.0, 0.5, 0.0]).double())
    ax = new_figure(4, 3).subplots()
    paint_plane(ax, plane_frame(data, net, claims))
    drawn = []
    for marks in (m for m in ax.collections if isinstance(m, PathCollection)):
        to_data = marks.get_offset_transform() - ax.transData
        drawn += to_data.transform(marks.get_offsets()).round(6).tolist()
    assert sorted(drawn) == sorted(torch.cat([data.x, claims.x]).numpy().round(6).tolist())


def test_a_chart_of_an_arena_holds_shares_and_intervals() -> None:
    shares = tuple(Share(k, k - 0.1, k + 0.2) for k in (0.2, 0.5, 0.7))
    lines = [ArenaLine("kkt", "KKT", 1, "", recall=shares, precision=shares, control=(0.1,) * 3)]
    for chart, share in zip(arena_charts(lines), shares, strict=True):
        named = {one.name: one for one in chart.series if one.name}
        assert named["recall, 95% interval"].x == [share.value]
        assert named["recall of control sets"].x == [0.1]
        ends = [one.x[:2] for one in chart.series if one.kind == "line"]
        assert ends == [[share.low, share.high]] * 2

"""Another set in the attack stage: drawn and told, cancelled, refused, forgotten."""

from __future__ import annotations

import torch

from explorer.engine.data import Dataset, preset
from explorer.engine.explanations.splitting import explanation_of, margin_error, residual
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.stages.attack.other import OPEN, SURE, OtherPanel
from explorer.page.stages.train import commands as train
from tests.page.pages import on_plane, press


def opened(data: Dataset, exact: bool = True) -> App:
    made = App(data)
    play.go(made.session, "train")
    if exact:
        train.jump_to_exact(made.session)
    play.go(made.session, "attack")
    return made


def panel(app: App) -> OtherPanel:
    made = app.panel("OtherPanel")
    assert isinstance(made, OtherPanel) and made.box.children
    return made


def drawn(app: App) -> int:
    return len(on_plane(app).get("other", ()))


def test_the_set_that_is_drawn_explains_the_weights_and_is_another_one() -> None:
    app = opened(preset("moons", n=10))
    other, session = panel(app), app.session
    assert other.row.text in (OPEN, SURE) and not drawn(app)
    press(other.row, "shown")
    now = session.frame
    found = now.other_set
    assert found is not None and drawn(app) == len(found.x)
    net = now.target.net.to(dtype=torch.float64)
    made = explanation_of(net, found.x, found.y)  # an independent fit of the multipliers
    assert residual(net, made) < 1e-7 and margin_error(net, made) < 1e-6
    gaps = torch.cdist(found.x, now.truth.x.double()).amin(1)
    assert float((gaps * found.lam).sum() / found.lam.sum()) > 0.03
    assert "sets apart" in other.row.text
    assert f"{len(found.x)} other points" in other.row.text
    play.step(session, 2)  # the attack goes on, the set stays
    assert drawn(app) == len(found.x)
    play.go(session, "explain")
    assert not drawn(app)
    play.go(session, "attack")
    assert drawn(app) == len(found.x)
    press(other.row, "shown")
    assert not drawn(app) and session.frame.attack.other is None
    app.close()


def test_other_weights_have_other_sets() -> None:
    app = opened(preset("moons", n=10))
    other = panel(app)
    press(other.row, "shown")
    play.go(app.session, "train")
    play.step(app.session, 1)
    play.go(app.session, "attack")
    assert not other.row.value("shown") and other.found is None and not drawn(app)
    app.close()


def test_points_that_the_weights_tell_have_no_other_set() -> None:
    app = opened(preset("pairs-line", n=8))
    other = panel(app)
    press(other.row, "shown")
    assert other.found is not None and not other.found.other
    assert "No training" in other.row.text and not drawn(app)
    app.close()


def test_three_classes_and_biases_everywhere_are_refused_in_a_sentence() -> None:
    three = Dataset(
        torch.tensor([[-1.0, -1], [1, -1], [0, 1]]).double(), torch.tensor([1.0, -1, 3]).double()
    )
    app = App(three)
    play.go(app.session, "train")
    while not float(app.session.frame.training.state.q.min()) > 0:
        play.step(app.session, 200)
    play.go(app.session, "attack")
    other = panel(app)
    assert other.row.items["shown"].disabled and "one output" in other.row.text
    app.close()
    app = App(preset("moons", n=6))
    play.configure(app.session, all_biases=True)
    play.go(app.session, "train")
    while not float(app.session.frame.training.state.q.min()) > 0:
        play.step(app.session, 200)
    play.go(app.session, "attack")
    assert panel(app).row.items["shown"].disabled and "homogeneous" in panel(app).row.text
    app.close()

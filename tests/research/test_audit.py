"""One call on a model and its data: the same points at every scale, fair controls, one verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from explorer.engine import controls, training
from explorer.engine.attacks.target import Target
from explorer.engine.classes import class_numbers
from explorer.engine.controls import Origin
from explorer.engine.data import Dataset, preset
from explorer.engine.data.images import Choice, draw
from explorer.engine.exact import maximum_margin
from explorer.engine.images import ImageVerdict
from explorer.engine.network import Network
from explorer.engine.scoring import Unknowable, judge
from explorer.engine.store import Run
from explorer.engine.torch_models import ModelError, Reading
from explorer.engine.training import TrainConfig
from explorer.research import runs
from explorer.research.audit import audit
from explorer.research.audit import inputs as audit_given
from explorer.research.audit import report as audit_report
from explorer.research.audit.inputs import controls_for, known_coordinates
from explorer.research.audit.result import Audit
from explorer.research.image_runs import ImageRun
from explorer.research.words.audit import OPEN, UNKNOWN, assumptions

CIRCLE = preset("alternating-circle", n=12)
MOONS = preset("moons", n=16, seed=1)
STEPS = 600
FEW = 199  # controls: p goes down to 0.005, and an audit takes a fifth of the time of 999


@pytest.fixture(scope="module", autouse=True)
def few_controls() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (controls, audit_given):
            patch.setattr(module, "MOST", FEW)
        yield


@pytest.fixture(scope="module")
def trained() -> Network:
    return runs.train(Run(CIRCLE, TrainConfig(method="ascent"))).net


@pytest.fixture(scope="module")
def audited(trained: Network) -> Audit:
    return audit(trained, CIRCLE, attacks=("kkt",), steps=STEPS)


@pytest.fixture(scope="module")
def three() -> tuple[Dataset, Network]:
    data = preset("three-blobs", n=12, seed=2)
    return data, runs.train(Run(data, TrainConfig(widths=(40,)))).net


def module_of(net: Network) -> nn.Sequential:
    """The same weights as a plain PyTorch model."""
    k, d = net.weights[0].shape
    model = nn.Sequential(nn.Linear(d, k), nn.ReLU(), nn.Linear(k, 1, bias=False)).double()
    with torch.no_grad():
        for p, value in zip(model.parameters(), net.parameters, strict=True):
            p.copy_(value)
    return model


def in_units(net: Network, centre: torch.Tensor, scale: float) -> Network:
    """The same function of centre + scale x."""
    first = net.weights[0] / scale
    assert net.biases[0] is not None
    return replace(
        net, weights=(first, *net.weights[1:]),
        biases=(net.biases[0] - first @ centre, *net.biases[1:]),
    )  # fmt: skip


def found_of(made: Audit) -> list[bool]:
    return [row["KKT reconstruction: found"] for row in made.rows]


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_same_points_are_found_in_every_unit_of_length(
    trained: Network, audited: Audit, scale: float
) -> None:
    net = in_units(trained, torch.zeros(2).double(), scale)
    other = audit(net, CIRCLE.x * scale, CIRCLE.y, attacks=("kkt",), steps=STEPS)
    assert sum(found_of(audited)) >= 10
    assert found_of(audited) == found_of(other)
    assert other.best is not None and other.best.verdict is not None
    apart = torch.cdist(other.best.claims.x, CIRCLE.x * scale).amin(0) / scale
    assert float(apart.median()) < 0.03  # claims are in units of the data


def test_what_is_proven_is_the_same_in_every_unit_of_length() -> None:
    scale = 1e3
    line = preset("alternating-line", n=6)
    net = runs.train(Run(line, TrainConfig(steps=20_000, widths=(30,)))).net
    one = audit(net, line.x, line.y)
    other = audit(in_units(net, torch.zeros(1).double(), scale), line.x * scale, line.y)
    assert one.determined is not None and other.determined is not None
    ways = [row["standing"] for row in one.rows]
    assert ways == [row["standing"] for row in other.rows] and len(set(ways)) <= 3
    assert 0 < int(one.determined.certainty.certain.sum()) <= line.n
    told, far = one.determined, other.determined.farthest.at_most / other.spread
    assert far == pytest.approx(told.farthest.at_most / one.spread, rel=1e-6)
    assert other.sentence == one.sentence and "certified" in one.sentence
    json.loads(audit_report.summary(one).json)
    assert audit(net, line.x, line.y, attacks=("univariate",)).determined is None


def test_a_network_that_knows_its_unit_is_audited_as_its_bare_weights() -> None:
    circle = preset("alternating-circle", n=8)
    data = Dataset(128 * circle.x, circle.y)
    config = TrainConfig(steps=500, widths=(20,))
    net = runs.train(Run(data, config)).net
    assert net.unit == 128
    made, bare = (audit(n, data, attacks=("kkt",), steps=5) for n in (net, replace(net, unit=1.0)))
    assert made.coordinates.name == bare.coordinates.name and made.sentence == bare.sentence
    with pytest.raises(ValueError, match="divided by 128"):
        runs.certified_points(Target.of(net, 1.0), data)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1e-2, 0.1, 10.0, 100.0, 1e3])
def test_moons_are_found_alike_in_every_unit_of_length(scale: float) -> None:
    net = runs.train(Run(MOONS, TrainConfig())).net
    one = audit(net, MOONS.x, MOONS.y, attacks=("kkt",))
    moved = in_units(net, torch.zeros(2).double(), scale)
    other = audit(moved, MOONS.x * scale, MOONS.y, attacks=("kkt",))
    assert sum(found_of(one)) >= 1 and found_of(one) == found_of(other)


def test_every_frame_says_the_same_of_every_point(trained: Network) -> None:
    x = torch.tensor([50.0, -20.0]).double() + 7 * CIRCLE.x
    net = in_units(trained, torch.tensor([50.0, -20.0]).double(), 7.0)
    made = [
        coordinates for of in (trained, net) for coordinates in known_coordinates(Reading(of), x)
    ]
    assert {coordinates.name for coordinates in made} == {
        "rescaled", "as given", "standardised", "from 0 to 1"
    }  # fmt: skip
    for coordinates in made:
        z = coordinates.inside(x)
        assert torch.allclose(coordinates.outside(z), x)
        assert torch.allclose(coordinates.net(net)(z), net(x))


def test_standardised_points_are_seen_through_their_units(trained: Network) -> None:
    centre, scale = torch.tensor([50.0, -20.0]).double(), 7.0
    deviation = float(CIRCLE.x.std(0, correction=0).mean())  # the circle's, alike in both
    z = Dataset(CIRCLE.x / deviation, CIRCLE.y)
    net = in_units(maximum_margin(z.x, z.y).net, centre, scale)
    made = audit(net, centre + scale * z.x, z.y, attacks=("kkt",), steps=20)
    assert made.coordinates.name == "standardised" and made.certificate is not None
    assert made.certificate.light.value == "exact"


def test_arrays_of_every_library_and_kind_of_class_give_one_audit(trained: Network) -> None:
    x, y = CIRCLE.x.numpy(), CIRCLE.y.numpy()
    words = np.where(y > 0, "up", "down")
    kinds = [
        (trained, CIRCLE, None), (module_of(trained), x, y), (module_of(trained), x, y > 0),
        (trained, pd.DataFrame(x), pd.Series(words)), (trained, torch.tensor(x), (y > 0) * 1),
    ]  # fmt: skip
    made = [audit(model, p, c, attacks=("kkt",), steps=40) for model, p, c in kinds]
    for one in made:
        assert torch.equal(one.q, made[0].q)
        assert torch.equal(one.tried[0].claims.x, made[0].tried[0].claims.x)
    assert [one.classes for one in made[1:]] == [
        (-1, 1), (False, True), ("down", "up"), (0, 1)
    ]  # fmt: skip


def test_held_out_points_make_the_controls(trained: Network) -> None:
    other = preset("alternating-circle", n=60, noise=0.2, seed=5)
    labelled = audit(trained, CIRCLE, heldout=(other.x, other.y), attacks=("kkt",), steps=STEPS)
    alone = audit(trained, CIRCLE, heldout=other.x.numpy(), attacks=("kkt",), steps=STEPS)
    for made in (labelled, alone):
        assert made.controls.origin is Origin.POOLED and len(made.controls) == FEW
        assert made.controls.sets[0].n == CIRCLE.n
        assert made.p_value <= 0.05
    pool = labelled.coordinates.inside(torch.cat([CIRCLE.x, other.x]))
    assert all(bool((pool == row).all(1).any()) for row in labelled.controls.sets[0].x)
    none = audit(trained, CIRCLE, attacks=("kkt",), steps=40)
    assert none.controls.origin is Origin.RESAMPLED


def test_a_claim_that_knows_nothing_is_seldom_a_find() -> None:
    """Training and held-out points exchanged: p <= 0.05 in 5% of the cases, and sampling."""
    out = 0
    for seed in range(40):
        g = torch.Generator().manual_seed(seed)
        x = torch.rand(40, 2, generator=g, dtype=torch.float64)
        y = torch.where(torch.rand(40, generator=g) < 0.5, -1.0, 1.0).double()
        truth, other = Dataset(x[:15], y[:15]), Dataset(x[15:], y[15:])
        claims = x[torch.randperm(40, generator=g)[:10]]  # of the pool, whichever
        labels = torch.where(torch.rand(10, generator=g) < 0.5, -1.0, 1.0).double()
        out += judge(truth, controls_for(truth, other, seed), claims, labels, 0.03).p_value <= 0.05
    assert out <= 6  # binomial: more once in 300


def test_what_the_model_does_not_meet_is_said(trained: Network) -> None:
    made = audit(module_of(trained).state_dict(), CIRCLE, attacks=("kkt",), steps=20)
    assert {a.name: a.met for a in assumptions(made)}["ReLU"] is None
    biased = replace(trained, biases=(trained.biases[0], torch.zeros(1).double()))
    made = audit(biased, CIRCLE, attacks=("kkt",), steps=20)
    assert {a.name: a.met for a in assumptions(made)}["homogeneous"] is False
    assert made.certificate is None and made.best is not None
    with pytest.raises(ModelError, match="tanh"):
        audit(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), CIRCLE)
    with pytest.raises(ModelError, match="no hidden layer"):
        audit(nn.Linear(2, 1), CIRCLE)
    with pytest.raises(ValueError, match="2 coordinates; the model takes 3"):
        audit(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1)), CIRCLE)


def held(count: int, **kind: object) -> object:
    """So many points of the same source as the circle."""
    other = preset("alternating-circle", n=200, noise=0.2, seed=5)
    return other.x[:count], other.y[:count]


@pytest.mark.parametrize("count", [6, 12, 200])
def test_few_held_out_points_are_no_reason_to_know_nothing(count: int) -> None:
    """Half of a pooled set, or more, are training points: that says nothing of the radius."""
    x, y = held(count)  # type: ignore[misc]
    sets = controls_for(CIRCLE, Dataset(x, y), 0)
    assert sets.unseen is not None and sets.unseen.sets[0].n == min(count, CIRCLE.n)
    made = judge(CIRCLE, sets, CIRCLE.x, CIRCLE.y, 0.03)
    assert made.why_not is None and made.p_value <= 0.05 and made.chance < 1
    near = controls_for(CIRCLE, Dataset(CIRCLE.x + 0.01, CIRCLE.y), 0)
    crowded = judge(CIRCLE, near, CIRCLE.x, CIRCLE.y, 0.03)
    assert crowded.why_not is Unknowable.CROWDED and crowded.origin is Origin.HELD_OUT
    assert crowded.chance == CIRCLE.n


def test_too_few_held_out_points_are_said_to_be_too_few(trained: Network) -> None:
    made = audit(trained, CIRCLE, heldout=held(1), attacks=("kkt",), steps=STEPS)
    assert made.best is not None and made.best.verdict is not None
    assert made.p_value > 0.05 and made.best.verdict.found > 9 and not made.best.verdict.chance
    assert "too few" in made.sentence


FRAME = pd.DataFrame(CIRCLE.x.numpy(), columns=["height", "weight"])
SIGN = CIRCLE.y.numpy()
KIND = np.where(SIGN > 0, "a_high", "b_low")
OTHER = pd.DataFrame(held(9)[0].numpy(), columns=["height", "weight"])  # type: ignore[index]


def test_columns_go_by_their_names(trained: Network) -> None:
    turned, y = OTHER[["weight", "height"]].assign(name="x"), held(9)[1].numpy()  # type: ignore[index]
    frames = [
        (FRAME, SIGN, (OTHER, y)), (FRAME, SIGN, (turned, y)),
        (FRAME.assign(kind=SIGN), "kind", turned.assign(kind=y)),
    ]  # fmt: skip
    first, *rest = (audit(trained, *given, attacks=("kkt",), steps=20) for given in frames)
    for one in rest:
        assert torch.equal(one.controls.sets[0].x, first.controls.sets[0].x)
    assert list(first.rows[0])[3:5] == ["height", "weight"] == list(first.names)
    assert first.plot().get_xlabel() == "height"
    for given, words in (
        ((FRAME, SIGN, OTHER.rename(columns={"weight": "mass"})), "no column weight"),
        ((FRAME, "kind"), "no column 'kind'"),
        ((FRAME.assign(mass=1.0), SIGN), "3 coordinates .height, weight, mass.; the model takes 2"),
    ):
        with pytest.raises(ValueError, match=words):
            audit(trained, *given)


def test_classes_stand_in_the_order_that_is_asked_for(trained: Network) -> None:
    """By alphabet a_high would be where the output is negative."""
    ordered = pd.Series(pd.Categorical(KIND, categories=["b_low", "a_high", "unused"]))
    column = FRAME.assign(kind=ordered)
    for y, classes in ((KIND, ("b_low", "a_high")), (ordered, None)):
        made = audit(trained, FRAME, y, classes=classes, attacks=("kkt",), steps=20)
        assert made.classes == ("b_low", "a_high") and made.tried
    assert audit(trained, column, "kind", attacks=("kkt",), steps=20).tried
    assert not audit(trained, FRAME, KIND, attacks=("kkt",)).tried
    high = SIGN > 0  # one class alone: the held-out points say which numbers there are
    made = audit(
        trained, CIRCLE.x[high], high[high] * 1, (OTHER, [0, 1, 1] * 3), attacks=("kkt",), steps=20
    )
    assert made.classes == (0, 1) and made.tried


@pytest.mark.parametrize(
    ("given", "more", "words"),
    [
        ((CIRCLE.x, None), {}, "missing"),
        ((CIRCLE.x, np.eye(2)[(SIGN > 0) * 1]), {}, "argmax"),
        ((CIRCLE.x, SIGN[:-1]), {}, "got"),
        ((CIRCLE.x.where(CIRCLE.x < 0.5, torch.nan), SIGN), {}, "nan or inf in"),
        ((CIRCLE.x, SIGN, (OTHER * torch.nan, SIGN[:9])), {}, "held-out points: x holds nan"),
        ((CIRCLE.x, SIGN, (OTHER, [0, 1, 2] * 3)), {}, "held-out points: expected classes"),
        ((CIRCLE.x, SIGN, OTHER[:0]), {}, "no held-out points"),
        ((CIRCLE.x, SIGN, np.ones((4, 3))), {}, "3 coordinates, not 2"),
        ((CIRCLE.x, SIGN, (OTHER, SIGN[:9], 1)), {}, "3 things"),
        ((CIRCLE.x, SIGN), {"radius": -1.0}, "radius"),
        ((CIRCLE.x, SIGN), {"seed": -1}, "seed"),
        ((CIRCLE.x, SIGN), {"device": "gpu"}, "no device 'gpu'"),
        ((CIRCLE.x, SIGN), {"attacks": "kk"}, "no attack 'kk'"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(
    trained: Network, given: tuple[object, ...], more: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        audit(trained, *given, **more)  # type: ignore[arg-type]


def test_a_model_that_standardises_its_points_is_seen_behind_that() -> None:
    """Its own coordinates, though these are of other points than those at hand."""

    class Standardised(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward((x - centre) / scale)

    centre, scale = torch.tensor([50.0, -2000.0]).double(), torch.tensor([7.0, 0.01]).double()
    inner = module_of(maximum_margin(CIRCLE.x, CIRCLE.y).net)
    made = audit(Standardised(*inner), centre + scale * CIRCLE.x, SIGN, attacks="kkt", steps=20)
    assert made.coordinates.inner is not None and made.certificate is not None
    assert made.certificate.light.value == "exact"
    assert torch.allclose(made.coordinates.inside(made.data.x), CIRCLE.x)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_biases_everywhere_change_nothing_about_units(trained: Network, scale: float) -> None:
    net = replace(trained, biases=(trained.biases[0], torch.tensor([1e-3]).double()))
    one = audit(net, CIRCLE, attacks="kkt", steps=STEPS)
    moved = in_units(net, torch.zeros(2).double(), scale)
    other = audit(moved, CIRCLE.x * scale, CIRCLE.y, attacks="kkt", steps=STEPS)
    assert sum(found_of(one)) >= 9 and found_of(one) == found_of(other)
    claimed = [made.tried[0].claims.x for made in (one, other)]
    assert torch.allclose(claimed[0], claimed[1] / scale, rtol=0, atol=1e-12)


def test_several_classes_are_attacked_with_biases_everywhere_too(
    three: tuple[Dataset, Network],
) -> None:
    data, net = three
    biased = replace(net, biases=(net.biases[0], torch.zeros(3).double()))
    made = audit(biased, data, steps=20)
    assert made.best is not None and made.best.key == "decoreco" and made.certificate is None


def test_threads_are_as_they_were_after_an_audit_and_after_one_that_failed(
    trained: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before, seen = torch.get_num_threads(), []

    def watch(states, total, label):
        seen.append(torch.get_num_threads())
        raise KeyboardInterrupt

    try:
        torch.set_num_threads(3)
        audit(trained, CIRCLE, attacks="kkt", steps=20)
        assert torch.get_num_threads() == 3
        with pytest.raises(KeyboardInterrupt):
            audit(trained, CIRCLE, attacks="kkt", steps=20, watch=watch)
        with pytest.raises(ValueError, match="missing"):
            audit(trained, CIRCLE.x)
        assert torch.get_num_threads() == 3 and seen == [1]
    finally:
        torch.set_num_threads(before)


def test_points_on_the_wrong_side_end_the_audit(trained: Network) -> None:
    made = audit(trained, CIRCLE.x, -CIRCLE.y)
    assert not made.tried and made.best is None and made.p_value != made.p_value
    assert f"{CIRCLE.n} of {CIRCLE.n}" in made.sentence
    told = {a.name: a.met for a in assumptions(made)}
    assert told["separated"] is False and "coordinates" not in told  # none were compared


def test_weights_with_errors_are_attacked_and_certified_on_the_line() -> None:
    """The only decay at which they are stationary is found, and a place is certified or none."""
    x = torch.tensor([[-2.0], [-0.9], [0.1], [0.7], [1.6]], dtype=torch.float64)
    y = torch.tensor([1.0, -1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    data, state, steps = Dataset(x, y), None, 0
    for rate in (0.3, 0.03, 0.003):
        steps += 2000
        config = TrainConfig(
            steps=steps, widths=(20,), weight_decay=0.03, loss="logistic", momentum=0.9,
            step_rule="constant", lr=rate,
        )  # fmt: skip
        state = state or training.init(data, config, torch.Generator().manual_seed(1))
        for following in training.iterate(data, state, config):
            state = following
    made = audit(state.net, data, steps=40)
    wrong = int((made.q <= 0).sum())
    assert wrong and [one.key for one in made.tried] == ["kkt", "certified_places"]
    assert made.decay == pytest.approx(0.03, rel=0.05)
    assert made.determined is not None and made.determined.allowed < 0.01
    told = {a.name: a.met for a in assumptions(made)}
    assert told["separated"] is False and told["weight decay"] is True
    assert made.determined.certainty.top == float("inf")
    assert (made.table["margin"] * made.q.numpy() > 0).all()


def test_a_model_that_does_more_than_its_layers_is_refused() -> None:
    class Aside(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + float(x.numpy().max())

    model = Aside(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    with pytest.raises(ModelError, match="does not compute"):
        audit(model, CIRCLE)


def test_several_classes(three: tuple[Dataset, Network]) -> None:
    data, net = three
    words = ["abc"[k] for k in (class_numbers(data.y) - 1).tolist()]
    made = audit(net, data.x, words, steps=20)
    assert [one.key for one in made.tried] == ["decoreco", "certified_places"]
    assert made.classes == ("a", "b", "c") and made.determined is not None
    assert [row["class"] for row in made.rows] == words


def test_the_table_the_page_and_the_files(trained: Network, tmp_path) -> None:
    made = audit(trained, CIRCLE.x, CIRCLE.y > 0, attacks=("kkt",), steps=60)
    assert isinstance(made.table, pd.DataFrame) and len(made.table) == CIRCLE.n
    assert made.table["class"].tolist() == (CIRCLE.y > 0).tolist()
    assert made.table["margin"].min() == 1
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert made.plot(ax) is ax and ax.collections
    for ending in ("html", "json", "csv", "svg", "pdf", "png"):
        assert made.save(tmp_path / f"audit.{ending}").stat().st_size > 500
    page = (tmp_path / "audit.html").read_text()
    assert page.startswith("<!doctype html>") and "<svg" in page and made.sentence in page
    assert "<td>True</td>" in page and "<td>False</td>" in page  # classes as they are called
    assert "src=" not in page and "<link" not in page  # nothing is fetched
    held = json.loads((tmp_path / "audit.json").read_text())
    assert held["attacks"][0]["verdict"]["found"] == made.tried[0].verdict.found
    with pytest.raises(ValueError, match=r"audit\.docx"):
        made.save(tmp_path / "audit.docx")


def test_columns_may_have_any_names(trained: Network, tmp_path) -> None:
    """No name is taken for a formula, which a picture would fail at after all work."""
    made = audit(trained, CIRCLE.x, CIRCLE.y > 0, attacks=("kkt",), steps=20)
    named = replace(made, names=(r"$\frac{$", "price $ and $"))
    for ending in ("html", "png"):
        assert named.save(tmp_path / f"audit.{ending}").stat().st_size > 500


def test_what_is_not_proven_of_three_layers_is_not_said_to_be_replaceable() -> None:
    ways, one = torch.tensor([[1.0], [-1.0]]).double(), torch.eye(2).double()
    biases = (torch.zeros(2).double(), None, None)
    deep = audit(Network((ways, one, ways.T), biases), [[-1], [1], [2]], [0, 1, 1], steps=10)
    line = preset("alternating-line", n=4)
    x, y = [*line.x.tolist(), [4.0]], [*line.y.tolist(), -1.0]  # the last is off the margin
    flat = audit(maximum_margin(line.x, line.y).net, x, y, steps=10)
    for made, rest in ((deep, UNKNOWN), (flat, OPEN)):
        assert made.determined is not None
        assert made.determined.certainty.tight is (made is flat)
        assert not made.found[-1] and made.rows[-1]["standing"] == rest
        assert (OPEN in made.sentence) is (made is flat)


def test_what_is_certified_names_its_box_and_its_band() -> None:
    made = audit(maximum_margin(MOONS.x, MOONS.y).net, MOONS, attacks=None, steps=10)
    told = made.determined
    assert told is not None
    assert f"±{told.box / made.spread:.3g}" in made.sentence
    assert f"{told.certainty.top:.3g}." in made.sentence


@cache
def digits() -> tuple[Dataset, Dataset, Network]:
    """Twenty images, 400 others, and the network that learnt the first."""
    run = ImageRun(Choice(n=20))
    drawn = draw(run.choice)
    sets = (drawn.other, *drawn.controls)
    unseen = Dataset(torch.cat([s.x for s in sets]), torch.cat([s.y for s in sets]))
    return drawn.train, unseen, runs.train(run.run_on(drawn), keep=1).net


def test_a_leak_of_images_is_said() -> None:
    """Claims miss every image by a third of the distance between images, and yet know them."""
    data, unseen, net = digits()
    made = audit(net, data, heldout=unseen, steps=STEPS)
    assert "give away" in made.sentence and made.p_value <= 0.05
    assert sum(row["KKT reconstruction: found"] for row in made.rows) == sum(made.found) > 1


def test_of_images_that_were_not_learnt_no_leak_is_said() -> None:
    """Binomial: two of two at 5% once in 400 times."""
    _, unseen, net = digits()
    right = unseen.y * net(unseen.x) > 0
    said = 0
    for k in range(2):
        order = torch.cat([
            ((unseen.y == c) & right).nonzero().squeeze(1)[10 * k : 10 * k + 10] for c in (-1, 1)
        ])  # fmt: skip
        rest = torch.ones(unseen.n, dtype=torch.bool).index_fill(0, order, False)
        wrong = Dataset(unseen.x[order], unseen.y[order])
        others = Dataset(unseen.x[rest], unseen.y[rest])
        made = audit(net, wrong, heldout=others, steps=60)
        said += made.p_value <= 0.05
    images = audit(net, wrong, heldout=others, steps=60, pixels=(1, 8, 8))
    assert said <= 1 and images.p_value > 0.05


def test_a_leak_of_images_is_counted_where_columns_are_pixels() -> None:
    data, unseen, net = digits()
    x, other = (s.x.reshape(-1, 8, 8).numpy() for s in (data, unseen))  # the shape says it
    said = audit(net, x, data.y.numpy(), (other, unseen.y.numpy()), steps=STEPS, attacks=("kkt",))
    assert sum(said.found) >= 8 and said.p_value <= 1e-4
    verdict = said.tried[0].verdict
    assert isinstance(verdict, ImageVerdict) and verdict.which.tolist() == said.found
    assert [row["KKT reconstruction: found"] for row in said.rows] == said.found
    low, high = (float(f(torch.cat([data.x, unseen.x]))) for f in (torch.min, torch.max))
    x = said.tried[0].claims.x
    assert low - 1e-9 <= float(x.min()) and float(x.max()) <= high + 1e-9
    with pytest.raises(ValueError, match="the points have 64"):
        audit(net, data, heldout=unseen, pixels=(3, 8, 8), attacks=())


def test_held_out_points_that_are_few_none_or_of_another_source_leave_it_open() -> None:
    data, unseen, net = digits()
    g = torch.Generator().manual_seed(0)
    x = 10 * torch.randn(unseen.x.shape, generator=g, dtype=torch.float64)
    noise = Dataset(x, torch.where(net(x) > 0, 1.0, -1.0).double())
    first = Dataset(unseen.x[:20], unseen.y[:20])
    for given, why in (
        (None, "19 or more of each class"), (first, "19 held-out points or more"),
        (noise, "not of the source"),
    ):  # fmt: skip
        told = audit(net, data, heldout=given, steps=200).sentence
        assert told.startswith("Cannot know") and why in told


def test_points_given_twice_count_once_and_are_named(trained: Network, audited: Audit) -> None:
    x, y = torch.cat([CIRCLE.x[:1], CIRCLE.x]), torch.cat([CIRCLE.y[:1], CIRCLE.y])
    twice = audit(trained, x, y, attacks=("kkt",), steps=STEPS)
    assert twice.repeats == 1 and "1 of the 13" in twice.sentence
    assert twice.p_value == audited.p_value and twice.found == audited.found
    assert [row["point"] for row in twice.rows] == [0, *range(2, 13)]


def test_weights_that_diverged_are_refused_and_no_reason_is_made_up(trained: Network) -> None:
    broken = trained.with_theta(trained.theta * torch.nan)
    for model in (broken, module_of(broken)):
        with pytest.raises(ModelError, match="diverged"):
            audit(model, CIRCLE.x, CIRCLE.y)


@pytest.mark.parametrize("x", [torch.zeros(0, 2), np.zeros((0, 2)), FRAME[:0]], ids=type)
def test_no_points_at_all_are_refused_in_a_sentence(trained: Network, x: object) -> None:
    for model in (trained, module_of(trained)):
        with pytest.raises(ValueError, match=r"needs one training point or more; got none.*Give"):
            audit(model, x, torch.zeros(0))


def test_a_wrong_point_is_no_sign_of_other_targets(trained: Network) -> None:
    """Outputs that would be right if split at 0.5, and that are not near 0 and 1."""
    q = trained(CIRCLE.x) * CIRCLE.y
    least = float(q[CIRCLE.y < 0].min())
    net = Network(
        (*trained.weights[:-1], 3 * trained.weights[-1] / least),
        (*trained.biases[:-1], torch.tensor([3.3]).double()),
    )
    values = net(CIRCLE.x)
    assert ((values > 0.5) == (CIRCLE.y > 0)).all() and (values * CIRCLE.y <= 0).any()
    assert "targets" not in audit(net, CIRCLE).sentence


def test_points_in_many_coordinates() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(12, 20, generator=g, dtype=torch.float64)
    data = Dataset(x, preset("alternating-circle", n=12).y)
    net = runs.train(Run(data, TrainConfig(widths=(50,)))).net
    made = audit(net, data, steps=50)
    assert made.radius > 0.1 and "x1" not in made.rows[0]
    assert made.determined is None and made.undetermined in assumptions(made)[-1].words != ""
    assert made.plot().collections

"""The verbs `energy`, `digits` and `membership`: maps, images and rates, with their files."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import deque
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.image import imread

from explorer.commands.membership import dims_of
from explorer.engine.data.images import CIFAR, MNIST, Choice, draw
from explorer.engine.membership.experiment import MembershipConfig, membership_experiment
from explorer.research import image_runs, rates
from explorer.research.image_runs import ImageRun
from tests.engine.test_images import cifar, mnist

ENERGY = "energy --preset moons --n 6"
DIGITS = "digits --n 4 --widths 30 --steps 80 --attack-steps 3 --out pairs.png"
MEMBERS = "membership --width 40 --test 60 --trials 2"
TINY = f"{MEMBERS} --n 5 --d 8,30"


# --- energy -------------------------------------------------------------------------------------
def test_a_map_with_its_files(call) -> None:
    found = call(f"{ENERGY} --size 12 --all --json --out map.csv --picture map.png").json
    assert len(found["archetypes"]) == 6 and found["lowest"] <= found["without"] + 1e-9
    assert len(Path("map.csv").read_text().splitlines()) == 1 + 144
    assert Path("map.png").stat().st_size > 1000


@pytest.mark.parametrize("kind", ["split", "starts", "ridge", "last"])
def test_other_maps(call, kind: str) -> None:
    call(f"{ENERGY} --map {kind} --size 9 --out map.npz")
    with np.load("map.npz") as arrays:
        assert arrays["shape"].tolist() == [9, 9] and len(arrays["energy"]) == 81


# --- images -------------------------------------------------------------------------------------
@pytest.fixture
def images(call, tmp_path):
    """Small files of MNIST and CIFAR-10 in the standard format: images(line) -> Answer."""
    rng = np.random.default_rng(1)
    made = rng.integers(0, 256, (130, 28, 28), dtype=np.uint8)
    mnist(tmp_path, made, np.arange(130, dtype=np.uint8) % 10, packed=True)
    for count, *names in ((30,), (40, CIFAR[1])):
        cifar(tmp_path / "cifar-10-batches-py", count, *names)
    return lambda line, **more: call(f"{DIGITS} --images {line} --folder", tmp_path, **more)


@pytest.mark.parametrize("attack", ["kkt", "decoreco", "inversion"])
def test_mnist_is_read_attacked_and_drawn(images, attack) -> None:
    row = images(f"mnist --attack {attack} --json").json
    assert row["pixels"] == 4 * 784 and row["config"]["choice"]["kind"] == "mnist"
    assert 0 <= row["matched"] <= 1 and "4 training images" in row["verdict"]
    assert imread(row["picture"]).shape[0] >= 2 * 28


def test_the_truth_of_files_is_matched_at_the_first_step(images) -> None:
    row = images("mnist --attack-steps 1 --start truth --json").json
    assert row["matched"] == 1 and row["held_out"] == 0


def test_ten_classes_of_mnist(images) -> None:
    row = images("mnist --task ten --n 10 --attack decoreco --json").json
    assert row["config"]["choice"]["task"] == "ten" and "of 10 training" in row["verdict"]


def test_cifar_is_read_attacked_and_drawn_in_colour(images) -> None:
    row = images("cifar --json").json
    assert row["pixels"] == 4 * 3072
    picture = imread(row["picture"])[..., :3]
    assert float(np.ptp(picture, axis=2).max()) > 0.1


@pytest.mark.parametrize(("kind", "name"), [("mnist", MNIST[0]), ("cifar", CIFAR[0])])
def test_missing_files_are_named_in_one_sentence(call, tmp_path, kind, name) -> None:
    told = call(f"{DIGITS} --images {kind} --folder", tmp_path, code=2).line
    assert name in told and "https://" in told and not Path("pairs.png").exists()


def test_too_few_images_say_how_many_fit(images) -> None:
    assert "Take n=42" in images("mnist --n 80", code=2).line


def test_ten_digits_are_found_from_noise() -> None:
    run = ImageRun(Choice(task="ten", n=10), (300,), attack="decoreco", steps=300)
    assert run.config.multipliers == "joint"  # solving for nine per candidate takes ten times
    drawn = draw(run.choice)
    (trained,) = deque(image_runs.train(drawn, run), maxlen=1)
    aimed = image_runs.aim(drawn, run, trained)
    (state,) = deque(image_runs.attack(drawn, run, aimed), maxlen=1)
    found = image_runs.assess(drawn, aimed, [state])
    assert found.verdict.share >= 0.9 and found.chance < 0.2


def test_the_neurons_of_a_network_of_digits_are_numbers(call) -> None:
    small = "digits --n 4 --widths 9,7 --steps 300 --attack-steps 3"
    neurons = call(f"{small} --json").json["neurons"]
    assert len(neurons) == 2 and all(isinstance(n, int) for n in neurons)
    assert f"neurons {neurons[0]}-{neurons[1]} " in call(small).words


# --- membership ---------------------------------------------------------------------------------
def test_membership_prints_a_row_per_dimension_and_writes_its_files(call) -> None:
    told = call(f"{TINY} --out figures").out
    for word in ("|Φ| ≥ m/2", "TPR", "sphere", "on-margin.png"):
        assert word in told
    assert "networks leave" not in told
    with Path("figures/trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["d"], r["trial"]) for r in rows] == [(d, t) for d in ("8", "30") for t in "01"]
    assert 0 <= float(rows[0]["tpr_0.1%"]) <= 1
    for name in ("on-margin.png", "fresh-points.png", "roc.png"):
        assert Path("figures", name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("law", ["gaussian", "mixture"])
def test_membership_speaks_json_alone_and_repeats(call, law) -> None:
    one, two = (call(f"{TINY} --distribution {law} --json").out for _ in range(2))
    assert one == two
    out = json.loads(one)
    assert out["config"]["law"] == law and set(out["summary"]) == {"8", "30"}
    assert len(out["trials"]) == 4
    mean = sum(t["beyond"] for t in out["trials"][:2]) / 2
    assert out["summary"]["8"]["beyond"]["mean"] == pytest.approx(mean)


def test_networks_without_a_margin_are_counted(call) -> None:
    """Twenty points of a sphere in space with labels by parity: a narrow network fails."""
    trials = call(f"{MEMBERS} --d 3 --json").json["trials"]
    wrong = sum(trial["train_accuracy"] < 1 for trial in trials)
    assert wrong and f"{wrong} of 2 networks" in call(f"{MEMBERS} --d 3").out


def test_dimensions_are_lists_and_ranges_with_their_ends() -> None:
    assert dims_of("10,20") == (10, 20)
    assert dims_of("1:4,3,100:300:100") == (1, 2, 3, 4, 100, 200, 300)


def test_roc_by_hand() -> None:
    curve = rates.roc(torch.tensor([-4.0, 3.0]), torch.tensor([1.0, -3.5, 0.5, 0.1]))
    # above 3.5 one member and no fresh point; above 3 both and one fresh point
    assert curve.tpr_at(0.0) == 0.5 and curve.tpr_at(0.25) == 1.0
    assert curve.auc == pytest.approx(7 / 8)


def test_intervals_are_students_and_skip_what_did_not_separate() -> None:
    found = rates.interval([1.0, 2.0, 3.0, math.nan])
    assert found.mean == 2
    assert found.half == pytest.approx(4.302652729911275 / 3**0.5)  # t_0.975 with 2 degrees
    assert math.isnan(rates.interval([math.nan]).mean)
    assert math.isnan(rates.interval([5.0]).low) and rates.interval([5.0]).mean == 5


def test_rated_trials_have_rates() -> None:
    config = MembershipConfig(dims=(30,), trials=1, n=5, width=40, test=60)
    (trial,) = membership_experiment(config)
    row = rates.rates(trial)
    assert row["auc"] == rates.roc(trial.members, trial.fresh).auc
    assert {"tpr_0.1%", "tpr_1%"} <= set(row)


def test_without_scikit_learn_the_extra_is_named(call, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert "margin-explorer[rates]" in call(TINY, code=2).err
    with pytest.raises(ImportError, match="rates"):
        rates.roc(torch.ones(2), torch.ones(2))


@pytest.mark.parametrize(
    ("members", "fresh", "words"),
    [(0, torch.ones(2), "both kinds"), (2, torch.full((1,), math.nan), "finite")],
)
def test_rates_refuse_what_they_cannot_rate(members, fresh, words) -> None:
    with pytest.raises(ValueError, match=words):
        rates.roc(torch.ones(members), fresh)

"""MNIST and CIFAR-10 from the command line: small files in the standard format, end to end."""

from __future__ import annotations

import json
from collections import deque

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from explorer.cli import app as command
from explorer.engine.data.images import CIFAR, MNIST, Choice, draw
from explorer.research import image_runs
from explorer.research.image_runs import ImageRun
from tests.engine.test_images import cifar, mnist

SHORT = ("--n", "4", "--widths", "30", "--steps", "80", "--attack-steps", "3")


def digits(folder, *words):
    out = folder / "pairs.png"
    return CliRunner().invoke(
        command, ["digits", "--folder", str(folder), "--out", str(out), *words]
    )


def row_of(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def mnist_folder(tmp_path):
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (130, 28, 28), dtype=np.uint8)
    mnist(tmp_path, images, np.arange(130, dtype=np.uint8) % 10, packed=True)
    return tmp_path


@pytest.fixture
def cifar_folder(tmp_path):
    cifar(tmp_path / "cifar-10-batches-py", 30)
    cifar(tmp_path / "cifar-10-batches-py", 40, CIFAR[1])
    return tmp_path


@pytest.mark.parametrize("attack", ["kkt", "decoreco", "inversion"])
def test_mnist_is_read_attacked_and_drawn(mnist_folder, attack):
    row = row_of(digits(mnist_folder, "--images", "mnist", *SHORT, "--attack", attack, "--json"))
    assert row["pixels"] == 4 * 784 and row["config"]["choice"]["kind"] == "mnist"
    assert 0 <= row["matched"] <= 1 and "4 training images" in row["verdict"]
    assert imread(row["picture"]).shape[0] >= 2 * 28


def test_the_truth_of_files_is_matched_at_the_first_step(mnist_folder):
    words = ("--images", "mnist", *SHORT[:-1], "1", "--start", "truth")
    row = row_of(digits(mnist_folder, *words, "--json"))
    assert row["matched"] == 1 and row["held_out"] == 0


def test_ten_classes_of_mnist(mnist_folder):
    words = ("--images", "mnist", "--task", "ten", "--n", "10", *SHORT[2:], "--attack", "decoreco")
    row = row_of(digits(mnist_folder, *words, "--json"))
    assert row["config"]["choice"]["task"] == "ten" and "of 10 training" in row["verdict"]


def test_cifar_is_read_attacked_and_drawn_in_colour(cifar_folder):
    row = row_of(digits(cifar_folder, "--images", "cifar", *SHORT, "--json"))
    assert row["pixels"] == 4 * 3072
    picture = imread(row["picture"])[..., :3]
    assert float(np.ptp(picture, axis=2).max()) > 0.1


@pytest.mark.parametrize(("kind", "name"), [("mnist", MNIST[0]), ("cifar", CIFAR[0])])
def test_missing_files_are_named_in_one_sentence(tmp_path, kind, name):
    result = digits(tmp_path, "--images", kind)
    assert result.exit_code == 2 and "Traceback" not in result.output
    words = " ".join(result.output.replace("│", " ").split())
    assert name in words and "https://" in words
    assert not (tmp_path / "pairs.png").exists()


def test_a_folder_that_is_not_there_is_said(tmp_path):
    result = digits(tmp_path, "--images", "cifar", "--folder", str(tmp_path / "none"))
    assert result.exit_code == 2 and "no folder" in result.output


def test_a_folder_must_be_named(tmp_path):
    result = CliRunner().invoke(command, ["digits", "--images", "cifar"])
    assert result.exit_code == 2 and "folder" in result.output


def test_too_few_images_say_how_many_fit(mnist_folder):
    result = digits(mnist_folder, "--images", "mnist", "--n", "40")
    assert result.exit_code == 2 and "Take n=10" in " ".join(result.output.split())


def test_ten_digits_are_found_from_noise():
    run = ImageRun(Choice(task="ten", n=10), (300,), attack="decoreco", steps=300)
    assert (
        run.config.multipliers == "joint"
    )  # solving for nine per candidate takes ten times as long
    drawn = draw(run.choice)
    (trained,) = deque(image_runs.train(drawn, run), maxlen=1)
    aimed = image_runs.aim(drawn, run, trained)
    (state,) = deque(image_runs.attack(drawn, run, aimed), maxlen=1)
    found = image_runs.assess(drawn, aimed, state)
    assert found.truth.share >= 0.9 and found.chance < 0.2

"""The command line: the road headless, pure JSON, exit codes, one line for every mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from typer.testing import CliRunner

from explorer import __version__, cli
from explorer.engine.controls import Origin
from explorer.engine.data import Dataset, preset, read_csv, write_csv
from explorer.engine.exact import maximum_margin
from explorer.engine.store import load_run
from explorer.engine.training import TrainConfig
from explorer.research import runs as headless
from explorer.research.pictures import planes
from explorer.research.words import verdicts
from explorer.serve import server

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--widths", "20", "--steps", "400", "--preset", "two-points")
QUICK = ("--m", "6", "--attack-steps", "5")


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run a command in an empty folder: call(*arguments) -> result, its exit code checked."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
        assert result.exit_code == code, result.stdout + result.stderr
        return result

    return invoke


def answer(result):
    """The JSON on stdout, which must hold nothing else."""
    return json.loads(result.stdout)


def mistake(result):
    """The one line on stderr, with nothing on stdout."""
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("margin-explorer: ")
    assert len(line) > 40
    return line


@pytest.fixture
def weights(tmp_path):
    """The state_dict of an exact network of 9 moons, and the CSV of its points."""
    data = preset("moons", n=9)
    net = maximum_margin(data.x, data.y).net
    bias = net.biases[0]
    assert bias is not None
    state = {"0.weight": net.weights[0], "0.bias": bias, "2.weight": net.weights[1]}
    save_file({k: v.contiguous() for k, v in state.items()}, tmp_path / "w.safetensors")
    (tmp_path / "truth.csv").write_text(write_csv(data))
    return tmp_path / "w.safetensors", tmp_path / "truth.csv"


# -- the road -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two-points", "moons"])
def test_demo_prints_a_table_and_writes_a_picture(call, name):
    result = call("demo", "--preset", name, "--method", "exact", *QUICK, "--out", "p.png")
    for word in ("normalised margin", "certificate", "verdict", "found within 0.03", "p.png"):
        assert word in result.stdout
    picture = Path("p.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def test_demo_certifies_nothing_of_weight_decay(call):
    words = ("--preset", "alternating-line", "--n", 4, "--steps", 300, "--widths", 20)
    told = call(
        "demo", *words, "--train-set", "weight_decay=0.001", "--attack", "certified_places", code=2
    )
    assert "weight decay" in told.stderr and "Certified" not in told.stdout


def test_demo_speaks_json(call):
    out = answer(call("demo", *SMALL, *QUICK, "--json"))
    assert out["version"] == __version__
    assert out["dataset"]["n"] == 2
    assert out["network"]["widths"] == [20]
    assert out["training"]["t"] == 400
    assert out["training"]["q_min"] > 0
    assert len(out["training"]["lam"]) == 2
    assert out["attack"]["verdict"]["kind"] == "CANNOT_KNOW"  # two points may be met by luck
    assert out["attack"]["verdict"]["p_value"] is None  # nan is no JSON
    assert [row["radius"] for row in out["attack"]["scores"]] == [0.01, 0.03, 0.1]
    assert Path(out["picture"]).exists()


def test_demo_of_a_scenario_takes_its_row(call, monkeypatch):
    seen = []
    real = headless.train

    def watched(run, **more):
        config = run.train_config
        seen.append((run.dataset.source.preset, config.steps, config.widths, run.seed))
        return real(replace(run, train_config=TrainConfig(widths=(20,), steps=400)), **more)

    monkeypatch.setattr(headless, "train", watched)
    monkeypatch.setattr(headless, "attack", lambda *a, **k: pytest.skip("reached"))
    with pytest.raises(pytest.skip.Exception):
        CliRunner().invoke(
            cli.app, ["demo", "--scenario", "moons, too early"], catch_exceptions=False
        )
    assert seen == [("moons", 100, (100,), 0)]


def test_demo_of_an_exact_scenario_trains_nothing(call):
    out = answer(call("demo", "--scenario", "proof on the line", "--json"))
    assert out["training"]["t"] == 0
    assert out["attack"]["claims"] and out["attack"]["verdict"]["kind"] == "FOUND"


def test_attack_says_how_certain_each_claim_is(call):
    call("train", "--preset", "alternating-line", "--n", 5, "--method", "exact", "--out", "line")
    hit = answer(call("attack", "line", "--steps", 300, "--json"))["attack"]
    made = hit["certainty"]
    assert len(made["radius"]) == len(made["certified"]) == 5  # one a point
    sure = [r > made["truth"] for r in made["radius"]]
    assert sure == made["certified"] and any(sure)
    shown = call("attack", "line", "--steps", 300).stdout
    assert "certified points" in shown
    plain = answer(call("attack", "line", "--steps", 300, "--no-certified", "--json"))
    assert plain["attack"]["certainty"] is None
    call("train", "--preset", "blobs", "--n", 4, "--widths", "4,4", "--steps", 50, "--out", "deep")
    shown = call("attack", "deep", "--m", 4, "--steps", 2).stdout
    assert shown.count("certified") == 1  # that there is no certificate, once


def test_many_starts_are_attacked_at_one_call(call):
    call("train", "--preset", "alternating-line", "--n", 5, "--method", "exact", "--out", "line")
    words = ("attack", "line", "--m", 10, "--steps", 100)
    many = answer(call(*words, "--starts", 3, "--seed", 4, "--json"))
    alone = [answer(call(*words, "--seed", s, "--no-certified", "--json")) for s in (4, 5, 6)]
    each = many["starts"]["each"]
    assert [one["seed"] for one in each] == [4, 5, 6]
    assert [one["claims"] for one in each] == [len(one["attack"]["claims"]) for one in alone]
    assert [one["l_stationary"] for one in each] == [o["attack"]["l_stationary"] for o in alone]
    claims = many["attack"]["claims"]
    assert many["attack"]["candidates"] == 30 and many["attack"]["verdict"]["p_value"] <= 1
    assert {1, 2, 3} >= {claim["starts"] for claim in claims}
    assert len(many["attack"]["certainty"]["radius"]) == len(claims)
    best = max(one["attack"]["scores"][1]["found"] for one in alone)
    assert many["starts"]["most"]["found"] == best <= many["attack"]["scores"][1]["found"]
    shown = call(*words, "--starts", 3).stdout
    assert shown.count("starts") >= 3
    assert call(*words, "--starts", 2, "--out", "x", code=2).stderr.count("--out") == 1
    assert call(*words, "--starts", 0, code=2).stderr


def test_train_saves_a_run_that_show_and_attack_read(call):
    out = answer(call("train", *SMALL, "--seed", 3, "--out", "r.safetensors", "--json"))
    run = load_run("r.safetensors")
    assert out["run"] == "r.safetensors"
    assert run.seed == 3
    assert run.train_states[-1].t == 400
    assert run.train_states[0].t == 0
    steps = [state.t for state in run.train_states]
    assert all(b - a == 4 for a, b in pairwise(steps))  # a hundred states, evenly spaced
    assert run.train_states[-1].q.tolist() == out["training"]["q"]

    shown = answer(call("show", "r.safetensors", "--json"))
    assert shown["kind"] == "run"
    assert shown["train_steps"] == steps
    assert shown["train_config"]["widths"] == [20]
    assert "1-20-1" in call("show", "r.safetensors").stdout

    hit = answer(call("attack", "r.safetensors", "--m", 6, "--steps", 5, "--out", "s", "--json"))
    assert hit["attack"]["t"] == 5
    assert hit["attack"]["verdict"] is not None
    assert len(load_run("s").attack_states) == 6
    assert answer(call("show", "s", "--json"))["attack_steps"] == [0, 1, 2, 3, 4, 5]


def test_the_same_seed_gives_the_same_numbers(call):
    runs = [answer(call("demo", *SMALL, *QUICK, "--seed", s, "--json")) for s in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0]["training"]["q"] != runs[2]["training"]["q"]


def test_own_points_float32_and_several_layers(call):
    Path("mine.csv").write_text("x1,x2,y\n0.5,0.25,1\n-0.5,0,-1\n0,-1,-1\n")
    out = answer(
        call(
            "train",
            "--data",
            "mine.csv",
            "--widths",
            "30,20",
            "--steps",
            800,
            "--dtype",
            "float32",
            "--method",
            "ascent",
            "--json",
        )
    )
    assert out["dataset"]["positive"] == 1
    assert out["network"]["widths"] == [30, 20]
    run = load_run("run.safetensors")
    assert run.train_states[-1].net.dtype == torch.float32
    assert run.train_config.method == "ascent"
    torch.testing.assert_close(run.dataset.x, read_csv(Path("mine.csv").read_text()).x)


def test_weights_with_their_truth_are_judged(call, weights):
    file, truth = weights
    out = answer(call("attack", file, "--truth", truth, "--m", 6, "--steps", 5, "--json"))
    assert out["attack"]["verdict"]["sentence"]
    assert "as ReLU" in out["note"] and "taken as 1" not in out["note"]
    assert out["attack"]["verdict"]["controls"] == verdicts.sets(Origin.RESAMPLED, 99)
    shown = answer(call("show", file, "--json"))
    assert shown["kind"] == "weights" and "as ReLU" in shown["network"]["note"]
    assert "as ReLU" in " ".join(call("show", file).stdout.split())


def test_a_network_trained_here_has_no_note(call):
    call("train", "--preset", "moons", "--n", 8, "--widths", 20, "--steps", 2000)
    out = answer(call("attack", "run.safetensors", "--m", 6, "--steps", 5, "--json"))
    assert out["note"] == "" and out["network"]["note"] == ""


def test_weights_without_truth_cannot_be_judged(call, weights):
    out = answer(call("attack", weights[0], "--m", 6, "--steps", 5, "--json"))
    assert out["attack"]["verdict"] is None
    assert "taken as 1" in out["note"]
    text = call("attack", weights[0], "--margin", 1, "--m", 6, "--steps", 5).stdout
    assert "Cannot know" in text
    assert "taken as 1" not in text


def test_the_margin_is_divided_out():
    """A network of margin 3 and the same told "3" are one target."""
    data = preset("two-points")
    net = maximum_margin(data.x, data.y).net
    wide = net.with_parameters([p * 3**0.5 for p in net.parameters])
    known, made, _ = headless.aim(wide, data, None)
    told, none, _ = headless.aim(wide, None, 3.0)
    assert made is not None
    assert none is None
    for target in (known, told):
        torch.testing.assert_close(target.net.theta, net.theta)


# -- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "--preset", "nothing"), "no preset 'nothing'; there are"),
        (("train", "--widths", "ten"), "100,100"),
        (("train", "--widths", "0"), "at least 1"),
        (("train", "--data", "absent.csv"), "cannot read absent.csv"),
        (("train", *SMALL, "--out", "no/such/folder/run"), "no/such/folder"),
        (("train", "--device", "mps", "--preset", "moons"), "mps"),
        (("attack", "absent.safetensors", "--device", "mps"), "Take --device cpu"),
        (("demo", "--m", "7"), "Try 8"),
        (("demo", "--scenario", "nothing"), "alternating circle"),
        (
            ("demo", *SMALL, "--attack", "certified_places", "--train-set", "weight_decay=0.001"),
            "weight decay",
        ),
        (("attack", "absent.safetensors"), "cannot read"),
        (("show", "bad.csv"), "bad.csv: no PyTorch"),
        (("film", "absent.safetensors"), "cannot read"),
        (("film", "absent.safetensors", "--out", "a.mp4"), "ffmpeg -i a.gif a.mp4"),
        (("train", "--data", "bad.csv"), "bad.csv: line 2"),
        (("train", "--data", "empty.csv"), "no points"),
        (("train", "--data", "clash.csv", "--method", "exact"), "opposite labels"),
    ],
)
def test_a_wrong_option_or_file_exits_with_2(call, arguments, words):
    Path("bad.csv").write_text("x1,x2,y\n0,zero,1\n")
    Path("empty.csv").write_text("x1,x2,y\n")
    Path("clash.csv").write_text("x1,x2,y\n0,0,1\n0,0,-1\n")
    assert words in mistake(call(*arguments, code=2))


def test_a_film_of_a_saved_run_is_a_gif_and_needs_a_history(call, monkeypatch):
    monkeypatch.setattr(planes, "MOST_FRAMES", 5)
    call("train", *SMALL, "--out", "run.safetensors")
    told = json.loads(call("film", "run.safetensors", "--json").stdout)
    assert told["film"] == "training.gif" and told["shows"] == "training"
    with Image.open("training.gif") as made:
        assert made.format == "GIF" and 2 <= made.n_frames <= told["frames"] == 5
    assert "0 states" in mistake(call("film", "run.safetensors", "--of", "attack", code=2))
    assert not Path("attack.gif").exists()


@pytest.mark.parametrize(
    "arguments", [("train", "--n", "many"), ("fly",), ("train", "--dtype", "int8"), ("attack",)]
)
def test_usage_is_explained_with_2(call, arguments):
    result = call(*arguments, code=2)
    assert result.stdout == ""
    assert "Usage" in result.stderr


def test_a_run_that_fails_exits_with_1(call, weights):
    early = call("train", "--preset", "moons", "--steps", 0, code=1)
    assert "after 0" in mistake(early)
    assert not Path("run.safetensors").exists()
    Path("other.csv").write_text("x1,x2,y\n0.5,0.25,1\n0.4,0.2,-1\n")
    other = call("attack", weights[0], "--truth", "other.csv", code=1)
    assert "separate" in mistake(other)


def test_wrong_weights_for_the_points_exit_with_2(call, weights):
    Path("line.csv").write_text("x1,y\n0.5,1\n-1,-1\n")
    assert "1-D" in mistake(call("attack", weights[0], "--truth", "line.csv", code=2))
    assert "weights alone" in mistake(call("attack", weights[0], "--out", "x", code=2))
    deep = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    save_file(deep.state_dict(), "biased.safetensors")
    assert "no theorem" in answer(call("attack", "biased.safetensors", "--m", "4", "--steps", "2",
                                        "--json"))["note"]  # fmt: skip
    assert "several layers" in call("show", "biased.safetensors").stdout


def test_serve_hands_its_options_on(call, monkeypatch):
    given = {}
    monkeypatch.setattr(server, "serve", lambda **options: given.update(options))
    call("serve", "--port", 9000, "--no-open", "--theme", "dark", "--host", "::1",
         "--allow-host", "a.example", "--allow-host", "b.example", "--class", 30,
         "--per-address", 3, "--behind-proxy", "--base-path", "/m/")  # fmt: skip
    expected = {"port": 9000, "open_browser": False, "theme": "dark", "host": "::1",
                "allow_hosts": ("a.example", "b.example"), "class_size": 30,
                "per_address": 3, "behind_proxy": True, "base_path": "/m/"}  # fmt: skip
    assert given == expected

    def broken(**options):
        raise server.ServeError(
            "Voila is missing; install it with pip install margin-explorer[app]"
        )

    monkeypatch.setattr(server, "serve", broken)
    assert "Voila" in mistake(call("serve", code=1))


def test_a_port_that_is_none_is_refused_in_a_sentence(call):
    words = mistake(call("serve", "--port", 99999, "--no-open", code=2))
    assert "99999" in words and "65535" in words


def test_the_command_as_a_process(tmp_path):
    """Progress and mistakes on stderr, JSON alone on stdout, and no traceback."""

    def command(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "explorer.cli", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": ""},
        )  # fmt: skip

    done = command("demo", *SMALL, *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["training"]["t"] == 400
    failed = command("show", "absent")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "Traceback" not in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def test_version(call):
    assert call("--version").stdout.strip() == __version__


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_points_of_another_size_are_divided_by_their_unit_and_found(call, scale):
    circle = preset("alternating-circle", n=12)
    Path("far.csv").write_text(write_csv(Dataset(circle.x * scale, circle.y)))
    made = call("train", "--data", "far.csv", "--out", "run.safetensors", "--json")
    assert "divided by" in made.stderr
    words = ("attack", "run.safetensors", "--no-certified", "--json")
    for more in ((), ("--truth", "far.csv")):
        out = answer(call(*words, *more))
        assert out["attack"]["scores"][1]["found"] >= 10

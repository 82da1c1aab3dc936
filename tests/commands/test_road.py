"""The road from points to a verdict: demo, train, attack, show, film, serve, and the process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from explorer import __version__
from explorer.engine.controls import Origin
from explorer.engine.data import Dataset, preset, read_csv, write_csv
from explorer.engine.exact import maximum_margin
from explorer.engine.store import load_run
from explorer.engine.training import TrainConfig
from explorer.research import runs
from explorer.research.pictures import planes
from explorer.research.words import verdicts
from explorer.serve import server
from tests.verbs import NET

QUICK = "--m 6 --attack-steps 5"
FEW = "--m 6 --steps 5"
LINE = "train --preset alternating-line --n 5 --method exact --out line"


@pytest.fixture
def weights(call) -> str:
    """The state_dict of an exact network of 9 moons, and the CSV of its points."""
    data = preset("moons", n=9)
    net = maximum_margin(data.x, data.y).net
    bias = net.biases[0]
    assert bias is not None
    state = {"0.weight": net.weights[0], "0.bias": bias, "2.weight": net.weights[1]}
    save_file({k: v.contiguous() for k, v in state.items()}, "w.safetensors")
    Path("truth.csv").write_text(write_csv(data))
    return "w.safetensors"


# -- demo -----------------------------------------------------------------------------------------


def test_demo_prints_its_numbers_and_writes_a_picture(call) -> None:
    out = call(f"demo {NET} {QUICK} --out p.png --json").json
    assert out["version"] == __version__ and out["dataset"]["n"] == 2
    assert out["network"]["widths"] == [20] and len(out["training"]["lam"]) == 2
    assert out["training"]["t"] == 400 and out["training"]["q_min"] > 0
    assert out["attack"]["verdict"]["kind"] == "CANNOT_KNOW"  # two points may be met by luck
    assert out["attack"]["verdict"]["p_value"] is None  # nan is no JSON
    assert [row["radius"] for row in out["attack"]["scores"]] == [0.01, 0.03, 0.1]
    assert Path(out["picture"]).read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_gives_the_same_numbers(call) -> None:
    found = [call(f"demo {NET} {QUICK} --seed {seed} --json").json for seed in (1, 1, 2)]
    assert found[0] == found[1]
    assert found[0]["training"]["q"] != found[2]["training"]["q"]


def test_demo_of_a_scenario_takes_its_row(call, monkeypatch) -> None:
    seen, real = [], runs.train

    def watched(run, **more):
        config = run.train_config
        seen.append((run.dataset.source.preset, config.steps, config.widths, run.seed))
        return real(replace(run, train_config=TrainConfig(widths=(20,), steps=400)), **more)

    def reached(*_, **__):
        raise runs.RunFailed("the attack was reached, and that is enough here")

    monkeypatch.setattr(runs, "train", watched)
    monkeypatch.setattr(runs, "attack", reached)
    assert "reached" in call("demo --scenario 'moons, too early'", code=1).line
    assert seen == [("moons", 100, (100,), 0)]


def test_demo_of_an_exact_scenario_trains_nothing(call) -> None:
    out = call("demo --scenario 'proof on the line' --json").json
    assert out["training"]["t"] == 0
    assert out["attack"]["claims"] and out["attack"]["verdict"]["kind"] == "FOUND"


def test_demo_with_the_baseline_and_biases_everywhere(call) -> None:
    more = "--train-set all_biases=True --attack inversion --m 4 --attack-steps 5 --set goal=value"
    found = call(f"demo {NET} {more} --json").json
    assert found["network"]["homogeneous"] is False
    assert found["attack"]["candidates"] == 4 and "output" in found["attack"]


# -- train ----------------------------------------------------------------------------------------


def test_train_saves_a_run_that_show_and_attack_read(call, saved: Path) -> None:
    run = load_run(saved)
    steps = [state.t for state in run.train_states]
    assert run.seed == 3 and (steps[0], steps[-1]) == (0, 400)
    assert all(b - a == 4 for a, b in pairwise(steps))  # a hundred states, evenly spaced
    shown = call("show", saved, "--json").json
    assert (shown["kind"], shown["train_steps"]) == ("run", steps)
    assert shown["train_config"]["widths"] == [20] and "1-20-1" in call("show", saved).words

    hit = call(f"attack {FEW} --out s --json", saved).json
    assert hit["attack"]["t"] == 5 and hit["attack"]["verdict"] is not None
    assert hit["note"] == "" and hit["network"]["note"] == ""  # a network trained here has no note
    assert len(load_run("s").attack_states) == 6
    assert call("show s --json").json["attack_steps"] == [0, 1, 2, 3, 4, 5]


def test_train_keeps_the_runs_that_nobody_named(call) -> None:
    first, second, third = (call(f"train {NET} --seed {seed} --json").json for seed in (1, 2, 3))
    assert (first["run"], first["before"]) == ("run.safetensors", None)
    assert (second["before"], third["before"]) == ("run-1.safetensors", "run-2.safetensors")
    names = ("run-1.safetensors", "run-2.safetensors", "run.safetensors")
    assert [load_run(name).seed for name in names] == [1, 2, 3]
    assert load_run(names[2]).train_states[-1].q.tolist() == third["training"]["q"]
    assert "run-3.safetensors" in call(f"train {NET}").out
    assert call(f"train {NET} --out run.safetensors --json").json["before"] is None
    assert not Path("run-4.safetensors").exists()


def test_own_points_float32_and_several_layers(call) -> None:
    how = "--widths 30,20 --steps 400 --dtype float32 --method ascent"
    out = call(f"train --data mine.csv {how} --json").json
    assert out["dataset"]["positive"] == 1 and out["network"]["widths"] == [30, 20]
    run = load_run("run.safetensors")
    assert run.train_states[-1].net.dtype == torch.float32 and run.train_config.method == "ascent"
    torch.testing.assert_close(run.dataset.x, read_csv(Path("mine.csv").read_text()).x)


def test_settings_of_the_training_by_name(call) -> None:
    more = "--train-set all_biases=True --train-set init=standard --train-set batch=1"
    assert "no theorem" in call(f"train {NET} {more}").words
    config = load_run("run.safetensors").train_config
    assert (config.all_biases, config.init, config.batch) == (True, "standard", 1)


# -- attack ---------------------------------------------------------------------------------------


def test_attack_says_how_certain_each_claim_is(call) -> None:
    call(LINE)
    made = call("attack line --steps 300 --json").json["attack"]["certainty"]
    assert len(made["radius"]) == len(made["certified"]) == 5  # one a point
    sure = [r > made["truth"] for r in made["radius"]]
    assert sure == made["certified"] and any(sure)
    assert "certified points" in call(f"attack line {FEW}").out
    assert call(f"attack line {FEW} --no-certified --json").json["attack"]["certainty"] is None
    call("train --preset blobs --n 4 --widths 4,4 --steps 50 --out deep")
    told = call("attack deep --m 4 --steps 2").out
    assert told.count("certified") == 1  # that there is no certificate, once


def test_attack_says_how_many_points_it_read_out_of_two_snapshots(call) -> None:
    call("train --preset alternating-circle --n 6 --widths 300 --steps 20 --out early")
    line = "attack early --attack snapshots --steps 1"
    made = call(f"{line} --json").json["attack"]
    assert 6 >= made["read"] > 0 and made["rank"] == 3  # of a plane, with the biases
    assert re.search(rf"read exactly\D+{made['read']:.0f}\D", call(line).out)


def test_many_starts_are_attacked_at_one_call(call) -> None:
    call(LINE)
    line = "attack line --m 10 --steps 100"
    many = call(f"{line} --starts 3 --seed 4 --json").json
    alone = [call(f"{line} --seed {seed} --no-certified --json").json for seed in (4, 5, 6)]
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
    assert call(f"{line} --starts 3 --no-certified").out.count("starts") >= 3
    assert "--out" in call(f"{line} --starts 2 --out x", code=2).line


def test_weights_are_judged_where_their_truth_is_known(call, weights: str) -> None:
    out = call(f"attack {weights} --truth truth.csv {FEW} --json").json
    assert out["attack"]["verdict"]["sentence"]
    assert "as ReLU" in out["note"] and "taken as 1" not in out["note"]
    assert out["attack"]["verdict"]["controls"] == verdicts.sets(Origin.RESAMPLED, 99)
    shown = call(f"show {weights} --json").json
    assert shown["kind"] == "weights" and "as ReLU" in shown["network"]["note"]
    assert "as ReLU" in call(f"show {weights}").words

    blind = call(f"attack {weights} {FEW} --json").json
    assert blind["attack"]["verdict"] is None and "taken as 1" in blind["note"]
    told = call(f"attack {weights} {FEW} --margin 1").out
    assert "Cannot know" in told and "taken as 1" not in told


def test_weights_and_points_that_do_not_fit(call, weights: str) -> None:
    assert "1-D" in call(f"attack {weights} --truth line.csv", code=2).line
    assert "weights alone" in call(f"attack {weights} --out x", code=2).line
    Path("other.csv").write_text("x1,x2,y\n0.5,0.25,1\n0.4,0.2,-1\n")
    assert "separate" in call(f"attack {weights} --truth other.csv", code=1).line
    deep = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    save_file(deep.state_dict(), "biased.safetensors")
    out = call("attack biased.safetensors --m 4 --steps 2 --json").json
    assert "no theorem" in out["note"] and "several layers" in call("show biased.safetensors").words


def test_the_margin_is_divided_out() -> None:
    """A network of margin 3 and the same told "3" are one target."""
    data = preset("two-points")
    net = maximum_margin(data.x, data.y).net
    wide = net.with_parameters([p * 3**0.5 for p in net.parameters])
    known, made, _ = runs.aim(wide, data, None)
    told, none, _ = runs.aim(wide, None, 3.0)
    assert made is not None and none is None
    for target in (known, told):
        torch.testing.assert_close(target.net.theta, net.theta)


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_points_of_another_size_are_divided_by_their_unit_and_found(call, scale: float) -> None:
    circle = preset("alternating-circle", n=12)
    Path("far.csv").write_text(write_csv(Dataset(circle.x * scale, circle.y)))
    assert "divided by" in call("train --data far.csv --out run --json").err
    for more in ((), ("--truth", "far.csv")):
        out = call("attack run --no-certified --json", *more).json
        assert out["attack"]["scores"][1]["found"] >= 10


# -- film, serve, the process ---------------------------------------------------------------------


def test_a_film_of_a_saved_run_is_a_gif_and_needs_a_history(call, saved, monkeypatch) -> None:
    monkeypatch.setattr(planes, "MOST_FRAMES", 5)
    told = call("film --json", saved).json
    assert told["film"] == "training.gif" and told["shows"] == "training"
    with Image.open("training.gif") as made:
        assert made.format == "GIF" and 2 <= made.n_frames <= told["frames"] == 5
    assert "0 states" in call("film --of attack", saved, code=2).line
    assert not Path("attack.gif").exists()


def test_serve_hands_its_options_on(call, monkeypatch) -> None:
    given = {}
    monkeypatch.setattr(server, "serve", lambda **options: given.update(options))
    call("serve --port 9000 --no-open --theme dark --host ::1 --allow-host a.example --allow-host "
         "b.example --class 30 --per-address 3 --behind-proxy --base-path /m/")  # fmt: skip
    assert given == {"port": 9000, "open_browser": False, "theme": "dark", "host": "::1",
                     "allow_hosts": ("a.example", "b.example"), "class_size": 30,
                     "per_address": 3, "behind_proxy": True, "base_path": "/m/"}  # fmt: skip

    def broken(**options):
        raise server.ServeError(
            "Voila is missing; install it with pip install margin-explorer[app]"
        )

    monkeypatch.setattr(server, "serve", broken)
    assert "Voila" in call("serve", code=1).line


def test_an_interrupt_of_any_verb_is_one_line(call, monkeypatch) -> None:
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "train", stopped)
    assert call(f"train {NET}", code=130).err == "margin-explorer: stopped\n"


def test_the_command_as_a_process(tmp_path: Path, root: Path) -> None:
    """Progress and mistakes on stderr, JSON alone on stdout, and no traceback."""

    def command(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "explorer.cli", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(root), "PATH": ""},
        )  # fmt: skip

    done = command("train", *NET.split(), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["training"]["t"] == 400
    failed = command("show", "absent")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "Traceback" not in failed.stderr and len(failed.stderr.splitlines()) == 1


def test_version(call) -> None:
    assert call("--version").out.strip() == __version__

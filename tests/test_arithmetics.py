"""What a user reads is the same on every processor: nothing hangs on the last bits."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from explorer.engine.attacks.target import Target
from explorer.engine.certificate import certify
from explorer.engine.data import preset
from explorer.engine.energy.maps import grid, tau_of
from explorer.engine.energy.points import Archetype, Energies, energy, moving_point
from explorer.engine.exact import maximum_margin
from explorer.engine.explanations.masses import FORCED, forced_points
from explorer.engine.explanations.others import Rivals, farthest_set, forced_mass
from explorer.engine.number_words import digits
from explorer.engine.rounding import EDGE, NOTHING, at_edge
from explorer.engine.scoring import score
from explorer.page.stages.explain.commands import first_explained
from explorer.research import words
from explorer.research.explained import misfit

EXACT_SETS = ("moons", "circles", "xor", "blobs", "random-circle", "alternating-circle",
              "alternating-line", "pairs-line", "two-points")  # fmt: skip
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


def shaken(t, size, generator):
    return t * (1 + size * torch.randn(t.shape, generator=generator, dtype=t.dtype))


def bare(text):
    """A sentence without its digits, of which the last one may turn at a tie."""
    return NUMBER.sub("#", text)


def seen(net, data):
    """The words and verdicts of these weights, as users read them."""
    x, y = data.x, data.y
    made, loose = certify(net, x, y, 1e-6), certify(net, x, y)
    state = first_explained(Target.of(net, 1.0), data)
    rivals = [Rivals.of(net, x, y, 2.0, tau) for tau in (1e-6, 1e-2)]
    claims = score(data, x + 0.01, y, (0.03,))
    out = {
        "light": (made.light, loose.light, bare(words.sentence(loose)).split("(")[0]),
        "counts": (made.on_margin.tolist(), made.n_kinks, loose.n_kinks, int(claims.found)),
        "strict": (round(made.residual_strict, 6), round(loose.residual_strict, 6)),
        "explained": (misfit(state), state.exact),
        "pinned": (state.pinned.tolist(), [state.kinks(i) for i in range(state.now.n)]),
        "multipliers": [round(v, 5) for v in (state.now.lam / state.now.mass).tolist()],
        "forced": [forced_points(forced_mass(r), r.mass)[0].tolist() for r in rivals],
        "farthest": bare(words.sentence(farthest_set(rivals[0]))),
    }
    if net.d == 2:
        tau = tau_of(2.0, 61, 0.5)
        one = moving_point(net, x, y, 0, tau).energies_at(grid(2.0, 21))
        one = replace(one, home=energy(net, x, y, tau))
        out["energy"] = (one.archetype, words.sentence(one))
    return out


def same(first, other):
    """The same words, or words that say that they stand at the edge."""
    return first == other or "at the edge" in f"{first}{other}".lower()


@pytest.mark.parametrize("name", EXACT_SETS)
def test_the_last_bits_change_no_word_and_no_verdict(name):
    n = None if name == "two-points" else 8
    data = preset(name, n, seed=1)
    net = maximum_margin(data.x, data.y).net
    first = seen(net, data)
    for seed, size in enumerate((1e-16, 1e-15, 1e-14)):
        generator = torch.Generator().manual_seed(seed)
        moved = net.with_parameters([shaken(p, size, generator) for p in net.parameters])
        beside = replace(data, x=shaken(data.x, size, generator)) if seed else data
        other = seen(moved, beside)
        for what in first:
            assert same(first[what], other[what]), (name, what, first[what], other[what])


def test_rounding_is_shown_as_nothing():
    assert digits(8.9e-16) == digits(-3e-13) == digits(0.0) == "0"
    assert digits(NOTHING) == "10⁻¹²" and digits(0.0123, ".1e") == "0.012"


def test_a_verdict_within_a_millionth_of_its_limit_is_at_the_edge():
    for shift in (-0.9, 0.0, 0.9):
        assert at_edge(0.05 * (1 + shift * EDGE), 0.05)
    for shift in (-1.1, 1.1):
        assert not at_edge(0.05 * (1 + shift * EDGE), 0.05)


def test_a_forced_mass_near_its_limit_is_no_claim():
    mass = torch.tensor([0.0, 0.4, 0.6, 1.0, 1.9, 2.1, 50.0]).double() * FORCED * 7.0
    forced, edge = forced_points(mass, 7.0)
    assert forced.tolist() == [False] * 5 + [True] * 2
    assert edge.tolist() == [False, False, True, True, True, False, False]
    assert words.explanations.edge(forced & edge) == ""


def test_a_name_that_a_hair_would_change_says_so():
    values = torch.full((1000,), 0.5).double().numpy()
    gained = Energies(values, 0.0, 1e-6 * (1 + EDGE / 2), 0.03)
    assert gained.archetype is not Archetype.REDUNDANT and gained.at_edge
    clear = Energies(values, 0.0, 1e-3, 0.03)
    assert not clear.at_edge


def run(root, tmp_path, machine):
    """The script with a pytest that prints its arithmetic, on a machine of this name."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, text in {
        "uname": f"echo {machine}",
        "python": 'echo "FAILED one"; echo "$OPENBLAS_CORETYPE $OMP_NUM_THREADS $*"; exit 1',
        "grep": 'case "$*" in */proc/cpuinfo) exit 0;; *) exec /bin/grep "$@";; esac',
    }.items():
        (bin_ / name).write_text(f"#!/bin/bash\n{text}\n")
        (bin_ / name).chmod(0o755)
    return subprocess.run(
        [root / "scripts" / "arithmetics.sh", bin_ / "python", "tests/engine/test_others.py"],
        env={"PATH": f"{bin_}:/usr/bin:/bin", "OPENBLAS_CORETYPE": "Zen"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_three_arithmetics_run_with_one_thread_and_two(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "x86_64")
    assert done.returncode == 1, done.stderr
    for core in ("", "Haswell", "Nehalem"):
        for threads in (1, 2):
            assert f"\n{core} {threads} -m pytest" in done.stdout
    assert "tests/engine/test_others.py" in done.stdout
    assert done.stdout.count("    FAILED one") == 6


def test_elsewhere_the_core_types_are_skipped_and_it_says_so(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "aarch64")
    assert "skipped" in done.stdout and "aarch64" in done.stdout
    assert done.stdout.count("-m pytest") == 4 and "Haswell 1" not in done.stdout

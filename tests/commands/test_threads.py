"""One thread everywhere, unless OMP_NUM_THREADS or an option says otherwise."""

from __future__ import annotations

import sys

import pytest
import torch
from threadpoolctl import threadpool_info
from typer.testing import CliRunner

from explorer import (
    KKTConfig,
    Target,
    TrainConfig,
    certify,
    cli,
    control_sets,
    judge,
    kkt,
    maximum_margin,
    preset,
    training,
)
from explorer.engine.threads import few_threads, limit_threads


@pytest.fixture(autouse=True)
def as_before():
    """Other tests run on as many threads as before: one, unless OMP_NUM_THREADS says otherwise."""
    yield
    limit_threads()


def blas() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize(
    ("said", "count"), [(None, 1), ("2", 2), ("2,4", 2), ("", 1), ("0", 1), ("many", 1)]
)
def test_threads_are_one_or_those_of_the_environment(monkeypatch, said, count) -> None:
    torch.set_num_threads(3)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    limit_threads()
    assert torch.get_num_threads() == count
    assert all(n <= count for n in blas())


def test_blas_is_limited_too(monkeypatch) -> None:
    given = []
    monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda n, user_api: given.append(n))
    limit_threads(3)
    assert given == [3]


def test_without_threadpoolctl_torch_alone_is_limited(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    limit_threads(2)
    assert torch.get_num_threads() == 2


def test_every_verb_runs_on_one_thread(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(2)
    assert CliRunner().invoke(cli.app, ["show", str(tmp_path / "absent")]).exit_code == 2
    assert torch.get_num_threads() == 1


def test_digits_have_their_own_option(tmp_path) -> None:
    words = ["digits", "--threads", "2", "--images", "mnist", "--folder", str(tmp_path)]
    assert CliRunner().invoke(cli.app, words).exit_code == 2
    assert torch.get_num_threads() == 2


def test_a_call_of_the_library_takes_one_thread_and_puts_back_what_it_found(monkeypatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(3)
    counts: list[int] = []
    before = torch.set_num_threads
    monkeypatch.setattr(torch, "set_num_threads", lambda n: (counts.append(n), before(n)))
    data, generator = preset("alternating-line", n=4), torch.Generator().manual_seed(0)
    config, attack = TrainConfig(widths=(8,)), KKTConfig(m=4, steps=4)
    target = Target.of(maximum_margin(data.x, data.y).net, 1.0)
    state, found = training.init(data, config, generator), kkt.init(target, attack, generator)
    calls = (
        lambda: training.step(data, state, config), lambda: kkt.step(target, found, attack),
        lambda: list(kkt.iterate(target, found, attack)),
        lambda: kkt.advance(target, found, attack, 4),
        lambda: certify(target.net, data.x, data.y), lambda: maximum_margin(data.x, data.y),
        lambda: judge(data, control_sets(data), data.x, data.y, 0.03),
    )  # fmt: skip
    for call in calls:
        counts.clear()
        call()
        assert counts[0] == 1 and counts[-1] == 3 and torch.get_num_threads() == 3
    with pytest.raises(ValueError, match="stop"), few_threads():
        assert torch.get_num_threads() == 1
        raise ValueError("stop")
    assert torch.get_num_threads() == 3


def test_a_call_of_the_library_limits_blas_and_puts_back_what_it_found(monkeypatch) -> None:
    """The loops of deep networks call it: on a busy machine they took 60 times as long."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    limit_threads()
    before = blas()
    monkeypatch.delenv("OMP_NUM_THREADS")
    if before == {1}:
        pytest.skip("a BLAS of one thread")
    with pytest.raises(ValueError, match="stop"), few_threads():
        assert blas() == {1}
        with few_threads():
            assert blas() == {1}
        raise ValueError("stop")
    assert blas() == before

"""One thread everywhere, unless OMP_NUM_THREADS or an option says otherwise."""

from __future__ import annotations

import sys

import pytest
import torch
from threadpoolctl import threadpool_info
from typer.testing import CliRunner

from explorer import cli
from explorer.engine.threads import limit_threads


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
    words = ["digits", "--threads", "2", "--widths", "ten"]
    assert CliRunner().invoke(cli.app, words).exit_code == 2
    assert torch.get_num_threads() == 2

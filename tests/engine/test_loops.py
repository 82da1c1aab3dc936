"""Compiled loops take the steps that torch's calls take."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy.special import expit

from explorer.engine.attacks import kkt
from explorer.engine.attacks.kkt import KKTConfig, Start, blocks
from explorer.engine.attacks.kkt.blocks import Replay
from explorer.engine.attacks.target import Target
from explorer.engine.kernels import compiled
from explorer.engine.network import init_network

CONFIG = KKTConfig(m=6, steps=40, multipliers="joint", lr_x=0.01, lr_lam=0.01, lam_min=0.4)
Y = torch.tensor([1.0, 1, 1, -1, -1, -1]).double()


@njit(**compiled.FAST)
def _all(z, out):
    for i in range(len(z)):
        out[i] = compiled.sigmoid(z[i])


def sigmoid(z):
    z, out = np.asarray(z, dtype=np.float64), np.empty(len(z))
    _all(z, out)
    return out


@given(st.lists(st.floats(-800, 800), min_size=1, max_size=40))
def test_the_sigmoid_is_that_of_scipy(z):
    z = np.array(z)
    made, true = sigmoid(z), expit(np.clip(z, -708, 708))
    assert (abs(made - true) <= np.where(abs(z) < 40, 3e-15, 3e-14) * true).all()


def test_the_sigmoid_at_the_ends_and_of_what_is_no_number():
    assert sigmoid([np.inf, 40.0, 0.0]).tolist() == [1.0, 1.0, 0.5]
    assert 0 <= sigmoid([-np.inf])[0] < 1e-307
    assert np.isnan(sigmoid([np.nan])).all()


CASES = list(product(["adam", "sgd"], [0.0, 0.3], [None, 0.5], [False, True], [False, True]))


@pytest.mark.parametrize(("optimizer", "margin", "prior", "biased", "sloped"), CASES)
def test_they_descend_as_calls_do(optimizer, margin, prior, biased, sloped, monkeypatch):
    config = replace(
        CONFIG, optimizer=optimizer, weight_margin=margin, prior=prior, same_slopes=sloped,
        merge_angle=0.3,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(3)
    net = init_network(2, (14,), generator=generator, bias=biased, first_scale=0.7)
    target = Target(net)
    x = torch.randn(3, 6, 2, generator=generator, dtype=torch.float64)
    first = kkt.init(target, config, generator, Start(x, Y))
    monkeypatch.setattr(blocks, "PIECE", 1)  # every step a call of its own
    ends = []
    for plain in (False, True):
        if plain:
            monkeypatch.setattr(blocks, "compiled_module", lambda _: None)
        run = Replay(target, first, config)
        assert isinstance(run.packed[0], blocks.Compiled) != plain
        run.advance(9)
        ends.append(run.state())
    for name in ("x", "lam", "grad_x", "grad_lam", "loss"):
        ours, theirs = (getattr(state, name) for state in ends)
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-11)
    assert not torch.equal(ends[0].x, first.x)


def test_other_inputs_and_single_precision_take_calls():
    for d, dtype in ((1, torch.float64), (3, torch.float64), (2, torch.float32)):
        net = init_network(d, (5,), generator=torch.Generator().manual_seed(0), first_scale=0.7)
        target = Target(net.to(dtype=dtype))
        run = Replay(target, kkt.init(target, CONFIG, torch.Generator().manual_seed(1)), CONFIG)
        assert not isinstance(run.packed[0], blocks.Compiled)

"""Runs on images: which attacks they offer."""

from __future__ import annotations

from dataclasses import replace

import torch

from explorer.engine.attacks import kkt
from explorer.engine.data.images import Choice, draw
from explorer.engine.roster import ROSTER
from explorer.research import image_runs
from explorer.research.image_runs import ImageRun, picture_attacks


def test_an_attack_with_settings_for_images_is_offered_there(monkeypatch) -> None:
    monkeypatch.setitem(ROSTER, "mine", replace(kkt.ATTACK, key="mine"))
    assert picture_attacks()[-1] == "mine"
    run = ImageRun(Choice(n=4), (20,), 40, attack="mine", steps=5)
    found, _ = image_runs.train_and_attack(draw(run.choice), run)
    usual, _ = image_runs.train_and_attack(draw(run.choice), replace(run, attack="kkt"))
    assert found.truth.ssim.tolist() == usual.truth.ssim.tolist()


def test_the_type_of_an_attack_can_be_named() -> None:
    run = ImageRun(Choice(n=4), (20,), 40, steps=5)
    kinds = None, image_runs.ATTACK_TYPE, torch.float64
    made = [image_runs.train_and_attack(draw(run.choice), run, dtype=kind) for kind in kinds]
    usual, same, wide = (found.found for found, _ in made)
    assert torch.equal(usual, same) and not torch.equal(usual, wide)
    torch.testing.assert_close(usual, wide, rtol=0, atol=1e-4)
    assert all(torch.equal(net.theta, made[0][1].theta) for _, net in made)

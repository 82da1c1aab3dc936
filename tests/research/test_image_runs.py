"""Runs on images: which attacks they offer."""

from __future__ import annotations

from dataclasses import replace

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

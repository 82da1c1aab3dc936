"""Runs on images: which attacks they offer."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from explorer.engine.attacks import kkt
from explorer.engine.data.images import Choice, draw
from explorer.engine.known import span_of
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


def test_candidates_stay_near_the_components_of_public_images() -> None:
    given = {"knows": "components", "components": 6}
    run = ImageRun(Choice(n=4), (20,), 40, steps=60, attack_settings={**given, "prior": None})
    images = draw(run.choice)
    sets = [s.x + images.mean for s in (images.train, images.other, *images.controls)]
    public = images.public + images.mean
    assert len(public) > 1000
    assert float(torch.cdist(torch.cat(sets), public).amin()) > 1e-6  # none is in a set
    known = span_of(images.public, 6)

    def off(made: ImageRun) -> torch.Tensor:
        found, _ = image_runs.train_and_attack(images, made, dtype=torch.float64)
        away = found.found.flatten(1) - images.mean - known.x[0]
        return (away - away @ known.x[1:].T @ known.x[1:]).norm(dim=1)

    assert bool((off(run) <= known.reach * (1 + 1e-9)).all())
    free = off(replace(run, attack_settings={"prior": None, "sigma_x": 1.0}))
    assert bool((free > known.reach).any())


def test_images_grant_components_alone_and_no_more_than_there_are() -> None:
    for knows in ("curve", "others", "range", "public", "drawn"):
        with pytest.raises(ValueError, match="components"):
            ImageRun(attack_settings={"knows": knows})
    run = ImageRun(Choice(n=4), (20,), 40, attack_settings={"knows": "components",
                   "components": 65})  # fmt: skip
    with pytest.raises(ValueError, match="65 components"):
        image_runs.train_and_attack(draw(run.choice), run)

"""A run as one line of text: nothing is lost on the way, and nothing else is read."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from explorer.engine.data import Dataset
from explorer.engine.files import MOST_WORDS
from explorer.engine.roster import ROSTER
from explorer.engine.store import Run, StoreError
from explorer.engine.training import TrainConfig
from explorer.research.state import from_text, to_text, without_states
from tests.crafted import run_of
from tests.engine.test_store import same

# Texts of version 1, as it was first written. They open for ever.
OLD = {
    "moons": (
        "mx1.ePnLKPMgO8HKAAbV5FUwg7a4p7y2M8Fb2RnV1lKzNrEc3HUJ1SoTo0FZk3hk5qWn4oym5JzEzFx4RVGWmgcL"
        "aqzFYEl-TmpRYl4ycpgUFyQmA61ArgSKUhMhgWmkZ6EDjqxMsGPMwL4rSSxFVgwPeXASTCyAlvtQ04vyS_NSoIGD"
        "cBgo8kuLoaaYgtUhiUA0ItI22OlpOfmQHAUUgFZwoGomI7EI5hmiynNTpPIcllSGUkmeAUoNGGV5TiIwkJOBJSd6"
        "eW4IaVaQVKabmeAslU3wlOhmJjqWZrh1Al2gEFGe9nxL2bf9XFbTBTcGL9i_yKwhne_2rf0KLcdr1-"
        "2buL9AwXetgNKn_T7l2oeNd9yzvzllVk3HxGf2X6-wfRT2f7YfUht8sIfSGHwANyrstA"
    ),
    "drawn": (
        "mx1.ePnLKPMgs2BhAINq8iqY0eJ-sBT3VCvvjQZLYQ_zA2nFh5EpqPwwHRblR0pRYjmlxYeJBc4CwBhP4WFioWNu"
        "hFsn0AUKYDBrJgjstIfQJ-1DweCqPaRUubAfQv-w_7Py4yXfpACo-AcYDZXncAAAQa9kzA"
    ),
}


def by_hand(n: int) -> Dataset:
    """Points with all their digits, as a hand draws them."""
    x = torch.randn(n, 2, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    return Dataset(x, 1.0 - 2.0 * (torch.arange(n) % 2).double())


def test_a_run_comes_back_bit_for_bit() -> None:
    run = replace(run_of(), stage="explain", steps=(300, 2))
    same(from_text(to_text(run)), run)
    assert to_text(from_text(to_text(run))) == to_text(run)


@pytest.mark.parametrize("name", ROSTER)
def test_forty_points_with_any_settings_stay_under_2000_characters(name: str) -> None:
    config = TrainConfig(widths=(123, 7), momentum=0.91, init_scale=0.33, lr=0.017)
    run = Run(
        by_hand(40), config, seed=2**40, mix=(0.21, 0.34), stage="landscape", steps=(123_456, 2345),
        attack_config=ROSTER[name].config(), attack_name=name,
    )  # fmt: skip
    text = to_text(run)
    assert len(text) < 2000
    same(from_text(text), run)


def test_a_text_too_long_is_refused_and_without_states_it_says_how_far_they_came() -> None:
    run = run_of()
    text = to_text(run)
    assert to_text(run, len(text)) == text
    for most in (len(text) - 1, 10):
        with pytest.raises(StoreError, match="more than"):
            to_text(run, most)
    plain = from_text(to_text(without_states(run), 2000))
    assert not plain.train_states and not plain.attack_states
    assert plain.steps == (run.train_states[-1].t, run.attack_states[-1].t)
    same(plain.dataset, run.dataset)
    same(plain.attack_config, run.attack_config)
    assert from_text(text).steps == plain.steps and without_states(plain).steps == plain.steps


def test_texts_of_the_first_version_open() -> None:
    moons = from_text(OLD["moons"])
    assert (moons.dataset.n, moons.stage, moons.steps) == (4, "landscape", (12_000, 0))
    assert (moons.attack_name, moons.seed, moons.train_config.widths) == ("hinge", 5, (9,))
    drawn = from_text(OLD["drawn"] + "\n")
    assert drawn.dataset.x.tolist() == [[0.1, 0.2], [1 / 3, -0.25], [1.5, 1e-3]]
    assert drawn.dataset.y.tolist() == [1, -1, 3]
    assert (drawn.stage, drawn.mix) == ("draw", (0.25, 0.5))


def damaged() -> list[str]:
    text = OLD["moons"]
    changed = [text[:i] + ("A" if text[i] != "A" else "B") + text[i + 1 :] for i in range(5, 90, 4)]
    others = ["", "hello", "mx1.", "mx1.AAAA", "mx1.é", text.upper(), f"{text} {text}"]
    return [*others, *changed, text[:-9], text[:50], text.replace("mx1", "mx2"), f"{text}AAAA"]


@pytest.mark.parametrize("text", damaged())
def test_any_other_text_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(StoreError) as refused:
        from_text(text)
    words = str(refused.value)
    assert "\n" not in words and len(words) <= MOST_WORDS


def test_a_later_version_says_so() -> None:
    with pytest.raises(StoreError, match="version 2"):
        from_text(OLD["moons"].replace("mx1", "mx2"))

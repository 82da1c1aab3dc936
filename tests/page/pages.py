"""Pages as tests of the later stages begin with them."""

from __future__ import annotations

from explorer.engine.data import preset
from explorer.page import play
from explorer.page.apps.explorer import App
from explorer.page.stages import train


def opened(stage: str, name: str, **given) -> App:
    """A page on the exact network of a preset, turned to a stage; `given` as to `preset`."""
    made = App(preset(name, **given))
    play.go(made.session, "train")
    train.jump_to_exact(made.session)
    play.go(made.session, stage)
    return made

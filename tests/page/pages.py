"""Pages as tests of the later stages begin with them."""

from __future__ import annotations

from explorer.engine.data import preset
from explorer.page.apps.explorer import App


def opened(stage: str, name: str, **given) -> App:
    """A page on the exact network of a preset, turned to a stage; `given` as to `preset`."""
    made = App(preset(name, **given))
    made.session.go("train")
    made.session.jump_to_exact()
    made.session.go(stage)
    return made

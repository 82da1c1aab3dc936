"""The form of the draw stage."""

from __future__ import annotations

from explorer.engine.training import TrainConfig
from explorer.page.panels.base import WIDTHS, Form


class NetworkForm(Form):
    """How large the network is: the one choice to make while drawing."""

    look = ("mx-card", "mx-setting")
    stages = ("draw",)
    config_trait, kind, parts, fields = "train_config", TrainConfig, (), WIDTHS

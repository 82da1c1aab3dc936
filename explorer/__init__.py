"""Margin Explorer: draw points, train a ReLU network on them, attack its weights.

from explorer import app; app()                    # the page, in JupyterLab or Voila
from explorer import membership; membership()      # the page on membership inference
from explorer import digits; digits()              # the page on real images
from explorer import lessons; lessons()            # the index of the lessons
from explorer import figure; figure(result)        # a result as a figure of bqplot
from explorer import link; link(a, b, "dataset")   # two pages or widgets with one drawing
from explorer.widgets import DrawingPad; DrawingPad()  # widgets to build with
from explorer import play; play("run.safetensors")  # a run that plays without a kernel
from explorer import preset, maximum_margin        # the engine, without any widget
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.engine import training as training
    from explorer.engine.attacks import kkt as kkt
    from explorer.engine.attacks.kkt import KKTConfig as KKTConfig
    from explorer.engine.attacks.kkt import KKTState as KKTState
    from explorer.engine.attacks.kkt import Report as Report
    from explorer.engine.attacks.kkt import Start as Start
    from explorer.engine.attacks.target import Target as Target
    from explorer.engine.certificate import Certificate as Certificate
    from explorer.engine.certificate import Light as Light
    from explorer.engine.certificate import certify as certify
    from explorer.engine.classes import class_labels as class_labels
    from explorer.engine.controls import Controls as Controls
    from explorer.engine.controls import Origin as Origin
    from explorer.engine.controls import control_sets as control_sets
    from explorer.engine.data import PRESETS as PRESETS
    from explorer.engine.data import DataError as DataError
    from explorer.engine.data import Dataset as Dataset
    from explorer.engine.data import Source as Source
    from explorer.engine.data import empty as empty
    from explorer.engine.data import heldout as heldout
    from explorer.engine.data import preset as preset
    from explorer.engine.data import read_csv as read_csv
    from explorer.engine.data import unit_of as unit_of
    from explorer.engine.data import write_csv as write_csv
    from explorer.engine.energy.starts import mix_init as mix_init
    from explorer.engine.exact import Exact as Exact
    from explorer.engine.exact import maximum_margin as maximum_margin
    from explorer.engine.margin import normalise as normalise
    from explorer.engine.margin import q_of as q_of
    from explorer.engine.merging import merge_neurons as merge_neurons
    from explorer.engine.network import Network as Network
    from explorer.engine.network import phi as phi
    from explorer.engine.network import scaled_network as scaled_network
    from explorer.engine.roster import ROSTER as ROSTER
    from explorer.engine.roster import by_key as by_key
    from explorer.engine.scoring import RADII as RADII
    from explorer.engine.scoring import Kind as Kind
    from explorer.engine.scoring import Score as Score
    from explorer.engine.scoring import Verdict as Verdict
    from explorer.engine.scoring import judge as judge
    from explorer.engine.scoring import score as score
    from explorer.engine.status import Status as Status
    from explorer.engine.store import Run as Run
    from explorer.engine.store import StoreError as StoreError
    from explorer.engine.store import import_weights as import_weights
    from explorer.engine.store import load_run as load_run
    from explorer.engine.store import save_run as save_run
    from explorer.engine.torch_models import ModelError as ModelError
    from explorer.engine.torch_models import network_of as network_of
    from explorer.engine.training import TrainConfig as TrainConfig
    from explorer.engine.training import TrainState as TrainState
    from explorer.page.apps.digits import digits as digits
    from explorer.page.apps.explorer import app as app
    from explorer.page.apps.instrument import link as link
    from explorer.page.apps.lessons import lessons as lessons
    from explorer.page.apps.membership import membership as membership
    from explorer.page.recording.notebook import play as play
    from explorer.page.view.figure import figure as figure
    from explorer.research.audit import audit as audit
    from explorer.research.audit.result import Audit as Audit
    from explorer.research.repeat import Repeated as Repeated
    from explorer.research.repeat import repeat as repeat
    from explorer.research.starts import Starts as Starts
    from explorer.research.starts import attack_starts as attack_starts
    from explorer.research.state import link_of as link_of
    from explorer.research.state import read_link as read_link
    from explorer.research.words import sentence as sentence

__version__ = "0.1.0"

# The public names by the module that holds them. Each is imported at its first use, so that the
# command starts at once and the engine works without a widget library.
_NAMES = {
    "explorer.engine.attacks.kkt": "KKTConfig KKTState Report Start",
    "explorer.engine.attacks.target": "Target",
    "explorer.engine.certificate": "Certificate Light certify",
    "explorer.engine.classes": "class_labels",
    "explorer.engine.controls": "Controls Origin control_sets",
    "explorer.engine.data": (
        "PRESETS DataError Dataset Source empty heldout preset read_csv unit_of write_csv"
    ),
    "explorer.engine.energy.starts": "mix_init",
    "explorer.engine.exact": "Exact maximum_margin",
    "explorer.engine.margin": "normalise q_of",
    "explorer.engine.merging": "merge_neurons",
    "explorer.engine.torch_models": "ModelError network_of",
    "explorer.engine.network": "Network phi scaled_network",
    "explorer.engine.roster": "ROSTER by_key",
    "explorer.engine.scoring": "RADII Kind Score Verdict judge score",
    "explorer.engine.status": "Status",
    "explorer.engine.store": "Run StoreError import_weights load_run save_run",
    "explorer.engine.training": "TrainConfig TrainState",
    "explorer.page.recording.notebook": "play",
    "explorer.research.audit": "audit",
    "explorer.research.audit.result": "Audit",
    "explorer.research.repeat": "Repeated repeat",
    "explorer.research.starts": "Starts attack_starts",
    "explorer.research.state": "link_of read_link",
    "explorer.research.words": "sentence",
}
_MODULES = {"kkt": "explorer.engine.attacks.kkt", "training": "explorer.engine.training",
            "widgets": "explorer.widgets"}  # fmt: skip
_PAGES = {
    "app": "explorer.page.apps.explorer",
    "digits": "explorer.page.apps.digits",
    "figure": "explorer.page.view.figure",
    "lessons": "explorer.page.apps.lessons",
    "link": "explorer.page.apps.instrument",
    "membership": "explorer.page.apps.membership",
}
_OWN = {name: home for home, names in _NAMES.items() for name in names.split()}
_HOMES = _OWN | _PAGES

__all__ = sorted(["__version__", "kkt", "training", *_OWN])


def __getattr__(name: str) -> Any:  # noqa: ANN401 (the module's attributes have every type)
    """Return a public name, imported at its first use.

    Raises:
        AttributeError: for a name that is not public.
        ImportError: for a page without its libraries.
    """
    try:
        if name in _MODULES:
            found: Any = import_module(_MODULES[name])
        elif name in _HOMES:
            found = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'explorer' has no attribute {name!r}")
    except ImportError as error:
        if name not in (*_PAGES, "widgets"):
            raise
        raise ImportError(
            f"{name} needs the libraries of a page ({error}): pip install margin-explorer[app]"
        ) from error
    globals()[name] = found  # asked for once
    return found


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted({*globals(), *__all__, *_PAGES})

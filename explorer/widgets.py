"""Widgets to build with, each of which stands alone in a cell; the page is made of the same parts.

from explorer.widgets import DrawingPad; DrawingPad()      # draw points, read them in pandas
from explorer.widgets import Plane; Plane(data)            # points, network, what an attack found

Their traits are their interface: `observe`, `ipywidgets.link` and `dlink` take them.
"""

from explorer.page.widgets.pad import DrawingPad
from explorer.page.widgets.plane import Plane

__all__ = ["DrawingPad", "Plane"]

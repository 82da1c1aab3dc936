"""Widgets to build with, each of which stands alone in a cell; the page is made of the same parts.

from explorer.widgets import DrawingPad; DrawingPad()      # draw points, read them in pandas
from explorer.widgets import Plane; Plane(data)            # points, network, what an attack found
from explorer.widgets import Margins, Recall               # charts of points
from explorer.widgets import Needles                       # weights, and what adds up to them
from explorer.widgets import Landscape; Landscape(target, data)     # the triangle of starts
from explorer.widgets import Play; Play(training.iterate(...))      # plays states for all of them

Their traits are their interface: `observe`, `ipywidgets.link` and `dlink` take them.
"""

from explorer.page.widgets.charts import Margins, Recall
from explorer.page.widgets.landscape import Landscape
from explorer.page.widgets.needles import Needles
from explorer.page.widgets.pad import DrawingPad
from explorer.page.widgets.plane import Plane
from explorer.page.widgets.transport import Transport
from explorer.page.widgets.transport import Transport as Play

__all__ = ["DrawingPad", "Landscape", "Margins", "Needles", "Plane", "Play", "Recall", "Transport"]

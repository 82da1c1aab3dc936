"""A transparent surface of its own, over a figure: pointer, touch, pen and keyboard."""

from __future__ import annotations

import anywidget

from explorer.page.view import pad

RENDER = """
function render({ model, el }) {
  el.classList.add("mx-pad");
  return attachPad(model, el).close;
}
export default { render };
"""


class Pad(pad.PadTraits, anywidget.AnyWidget):
    """Sends {"events": [{kind, x, y, gesture}]}; x and y are shares of the surface, y upward."""

    _esm = pad.SCRIPT + RENDER

"""A recording of a run: frames of the page, made once and played without Python.

`frames` makes them of the states of a run, `packing` writes them as bytes, `document` puts them
into one file of HTML; `player.js` plays them, by the very function that draws the page's plane. The
opening of the page is one of them (scripts/opening.py). None of it needs a widget.
"""

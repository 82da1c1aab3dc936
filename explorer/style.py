"""Colour, size and words by meaning: the one place where the look is decided."""

from __future__ import annotations

# Okabe and Ito's palette: blue and vermilion stay apart for the common colour blindnesses.
POSITIVE = "#0072B2"
NEGATIVE = "#D55E00"
CONTROL = "#999999"
CURVES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
COLOURS = {1: POSITIVE, -1: NEGATIVE}
MARKERS = {1: "circle", -1: "triangle-up"}
NAMES = {1: "+1 (blue circle)", -1: "−1 (orange triangle)"}

POINT_AREA = 60  # px^2 of a point without a multiplier; arbitrary
LARGEST_AREA = 260  # px^2 of the largest multiplier; arbitrary
PLOT_MARGIN = {"top": 12, "bottom": 40, "left": 44, "right": 8}

CSS = """
<style>
.mx-app {max-width: 1500px; margin: 0 auto; padding: 4px 12px; font-size: 14px;
  color: var(--jp-ui-font-color1, #222); container-type: inline-size;}
.mx-app .widget-html-content, .mx-app .jupyter-widgets {font-variant-numeric: tabular-nums;}
.mx-app .widget-html > .widget-html-content {line-height: 1.4;}
.mx-app .widget-label {min-width: 0;}
.mx-header {flex-flow: row wrap !important; align-items: center; gap: 6px 10px;}
.mx-title .widget-html-content {font-size: 19px; font-weight: 600; white-space: nowrap;}
.mx-verdict {min-height: 44px; border-left: 5px solid var(--jp-border-color1, #999);
  padding: 4px 12px; background: var(--jp-layout-color2, #f5f5f5); margin: 6px 0;}
.mx-verdict .widget-html-content {font-size: 17px; line-height: 1.35;}
.mx-verdict.good {border-left-color: #009E73;} .mx-verdict.warn {border-left-color: #E69F00;}
.mx-verdict.bad {border-left-color: #D55E00;}
.mx-body {display: grid !important; overflow: visible;
  grid-template-columns: minmax(320px, 11fr) minmax(320px, 10fr); gap: 14px; align-items: start;}
.mx-left, .mx-right {min-width: 0; overflow: visible;}
@container (max-width: 660px) {.mx-body {grid-template-columns: minmax(0, 1fr);}}
.mx-plane {position: relative; width: 100%; overflow: visible; aspect-ratio: 1 / 1;
  max-width: min(100%, 78vh); margin: 0 auto;}
.mx-plane > .bqplot {width: 100%; height: 100% !important; position: absolute; inset: 0;
  min-width: 0 !important; min-height: 0 !important; margin: 0;}
.mx-plane > .mx-pad {position: absolute !important; inset: 12px 8px 40px 44px; margin: 0;
  overflow: visible; height: auto; width: auto;}
.mx-plane image {image-rendering: auto !important;}
.mx-pad-surface {position: absolute; inset: 0; touch-action: none; outline: none; cursor: crosshair;}
.mx-pad-surface:focus-visible {box-shadow: 0 0 0 3px #56B4E9;}
.mx-pad-surface canvas {position: absolute; inset: 0; width: 100%; height: 100%; pointer-events: none;}
.mx-pad-hint {position: absolute; inset: 0; display: flex; align-items: center; text-align: center;
  justify-content: center; padding: 12%; pointer-events: none; font-size: 17px;
  color: var(--jp-ui-font-color1, #222); opacity: .75;}
.mx-said {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);}
.mx-app .bqplot .axis text, .mx-app .bqplot .axislabel, .mx-app .bqplot text {
  fill: var(--jp-ui-font-color1, #222) !important;}
.mx-app .bqplot .axis path, .mx-app .bqplot .axis line {stroke: var(--jp-border-color1, #888) !important;}
.mx-app .bqplot .plotarea_background {fill: transparent !important;}
.mx-app .bqplot, .mx-app .bqplot > svg {background: transparent;}
.mx-chart {height: 190px; min-width: 0; width: 100%; overflow: visible;}
.mx-chart-title .widget-html-content {font-weight: 600; line-height: 1.3;}
.mx-row {flex-flow: row wrap !important; align-items: center; gap: 4px 8px; overflow: visible;}
.mx-row > .jupyter-widgets {margin: 2px 0;}
.mx-row .jupyter-button {width: auto; min-width: 34px; padding: 0 10px;}
.mx-row .widget-toggle-buttons .jupyter-button {width: auto; margin: 0 2px 0 0;}
.mx-app .jupyter-button.mod-active {box-shadow: inset 0 -3px 0 #0072B2;}
.mx-app button:focus-visible, .mx-app input:focus-visible, .mx-app select:focus-visible {
  outline: 3px solid #56B4E9; outline-offset: 1px;}
.mx-app .jupyter-widget-Collapse, .mx-app .lm-Accordion-child {background: transparent;}
.mx-charts {display: grid !important; gap: 4px 10px; overflow: visible;
  grid-template-columns: repeat(auto-fit, minmax(240px, 1fr));}
.mx-triangle {position: relative; width: 198px; height: 180px; overflow: visible;}
.mx-triangle > .bqplot {position: absolute; inset: 0; margin: 0; min-width: 0 !important;}
.mx-triangle > .mx-pad {position: absolute !important; inset: 0; margin: 0; overflow: visible;}
.mx-note .widget-html-content {font-size: 13px; color: var(--jp-ui-font-color2, #555);}
.mx-message .widget-html-content {font-size: 14px; color: var(--jp-ui-font-color1, #222);}
.mx-message {min-height: 30px; border-left: 5px solid transparent; padding-left: 12px;}
.mx-message.told {border-left-color: #E69F00;}
.mx-failed {border: 1px solid #D55E00; padding: 6px;}
.mx-transport {border-top: 1px solid var(--jp-border-color2, #ddd); padding: 4px 0;
  position: sticky; bottom: 0; z-index: 5; background: var(--jp-layout-color1, #fff);}
.mx-app .widget-vbox:empty {display: none;}
.mx-note span {white-space: nowrap;}
.mx-timeline {flex: 1 1 260px;}
.mx-app .slider-container {min-width: 70px;}
</style>
"""

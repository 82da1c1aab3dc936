// A box that opens over everything at its button, however the boxes around it clip and scroll. A
// press elsewhere, Escape and a second press close it.
const popup = (button, box) => {
  box.popover = "auto";
  button.popoverTargetElement = box;
  const place = () => {
    const b = button.getBoundingClientRect(), r = box.getBoundingClientRect(), zoom = box.currentCSSZoom || 1;
    const left = Math.max(8, Math.min(b.left + (b.width - r.width) / 2, innerWidth - r.width - 8));
    const below = b.bottom + 6 + r.height < innerHeight - 8;
    box.style.left = `${left / zoom}px`;
    box.style.top = `${(below ? b.bottom + 6 : Math.max(8, b.top - r.height - 6)) / zoom}px`;
  };
  box.addEventListener("toggle", (e) => { if (e.newState === "open") place(); });
};

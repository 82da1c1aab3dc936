// The settings of a page outlive its reload: this tab of the browser keeps them.
function render({ model }) {
  const key = `mx-settings:${location.pathname}`;
  const held = attempt(() => sessionStorage.getItem(key));
  if (held) model.send({ kind: "restore", text: held });
  return heed(model, "change:kept", () => attempt(() => sessionStorage.setItem(key, model.get("kept"))));
}
export default { render };

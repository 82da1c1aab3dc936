// The settings of a page outlive its reload: this tab of the browser keeps them.
function render({ model }) {
  const key = `mx-settings:${location.pathname}`;
  const attempt = (call) => { try { return call(); } catch { return null; } }; // a browser may refuse its storage
  const held = attempt(() => sessionStorage.getItem(key));
  if (held) model.send({ kind: "restore", text: held });
  const keep = () => attempt(() => sessionStorage.setItem(key, model.get("kept")));
  model.on("change:kept", keep);
  return () => model.off("change:kept", keep);
}
export default { render };

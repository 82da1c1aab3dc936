// The way of every control to and from the kernel. It defines `build(el, send, onClose, onMessage)`,
// which returns `update(state)`.
const render = ({ model, el }) => {
  const closers = [];
  const send = (kind, value = null, buffers = []) => model.send({ kind, value }, undefined, buffers);
  const update = build(el, send, (call) => closers.push(call),
    (call) => { model.on("msg:custom", call); closers.push(() => model.off("msg:custom", call)); });
  const show = () => update(model.get("state"));
  model.on("change:state", show);
  model.on("msg:custom", saveFile);
  show();
  return () => { model.off("change:state", show); model.off("msg:custom", saveFile); closers.forEach((call) => call()); };
};
export default { render };

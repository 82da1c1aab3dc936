// The way of every control to and from the kernel. It defines `build(el, send, onClose, onMessage)`,
// which returns `update(state)`.
const render = ({ model, el }) => {
  const closers = [];
  const send = (kind, value = null, buffers = []) => model.send({ kind, value }, undefined, buffers);
  const update = build(el, send, (call) => closers.push(call),
    (call) => closers.push(heed(model, "msg:custom", call)));
  const show = () => update(model.get("state"));
  const save = (message, buffers) => { if (message.kind === "file") saveFile(message.name, message.type, buffers[0]); };
  closers.push(heed(model, "change:state", show), heed(model, "msg:custom", save));
  show();
  return () => closers.forEach((call) => call());
};
export default { render };

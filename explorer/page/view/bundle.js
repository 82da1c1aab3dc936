// Hands each part of a bundle to the widget that it is for, as if it had come alone.
const initialize = ({ model }) => {
  const manager = model.widget_manager;
  let turn = Promise.resolve(); // one bundle after the other
  const deliver = async (parts, buffers) => {
    let from = 0;
    for (const [id, data, count] of parts) {
      const own = buffers.slice(from, (from += count));
      try {
        (await manager.get_model(id))._handle_comm_msg({ content: { comm_id: id, data }, buffers: own });
      } catch { /* closed meanwhile */ }
    }
  };
  const onMessage = ({ parts }, buffers) => { turn = turn.then(() => deliver(parts, buffers)); };
  model.on("msg:custom", onMessage);
  model.send({ kind: "ready" });
  return () => model.off("msg:custom", onMessage);
};
export default { initialize };

// A chart without a kernel behind it, whose line is dragged to seek. chart.js of the views and landscape.js
// stand before it.
const chartOf = (seek) => {
  const el = make("div", "mx-card"), view = make("div");
  const model = localModel({}, (content) => { if (content.kind === "handle") seek(content.at); });
  el.append(view);
  CHART.render({ model, el: view });
  let now = null, arrays = {};
  const show = (chart, handle = chart.values.handle) => {
    if (chart !== now) {
      const floats = Float32Array.from(chart.data, (v) => v ?? NaN);
      arrays = { data: { data: floats, shape: [floats.length / 4, 4] }, ends: { data: Int32Array.from(chart.ends), shape: [chart.ends.length] } };
      now = chart;
    }
    model.show(arrays, { ...chart.values, handle });
  };
  return { el, show };
};

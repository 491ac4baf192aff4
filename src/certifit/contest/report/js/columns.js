// A histogram.

function drawColumns(figure) {
  const { spec, host } = figure;
  const { edges, counts } = spec;
  const width = Math.max(200, host.clientWidth || Number(host.dataset.width) || 560);
  const high = Math.max(...counts) * 1.06;
  const margin = { left: leftRoom(0, high, "number"), right: 18, top: 32, bottom: 46 };
  const sheet = paper(host, clamp(Math.round(width * 0.56), 220, 340), host.dataset.alt, margin);
  const { drawing, inner } = sheet;
  const x = scale(edges[0], edges[edges.length - 1], inner.left, inner.right);
  const y = scale(0, high, inner.bottom, inner.top);
  drawAxes(sheet, x, y, spec.x, spec.y);
  const boxes = counts.map((value, k) => {
    const box = shape("rect", {
      class: "column",
      x: x(edges[k]) + 0.5,
      y: y(value),
      width: Math.max(1, x(edges[k + 1]) - x(edges[k]) - 1),
      height: Math.max(0, inner.bottom - y(value)),
    });
    drawing.append(box);
    return box;
  });
  drawReferences(sheet, spec.references, x, y);
  const hide = () => boxes.forEach((box) => box.classList.remove("read"));
  const show = (k) => {
    hide();
    boxes[k].classList.add("read");
    const range = `${shown(edges[k], spec.x.kind)} to ${shown(edges[k + 1], spec.x.kind)}`;
    showTip(sheet, (x(edges[k]) + x(edges[k + 1])) / 2, y(counts[k]), [{ name: range }, { text: `${whole(counts[k])} rows` }]);
    return `${range}: ${whole(counts[k])} rows`;
  };
  const at = (px) => {
    const value = x.back(px);
    const k = edges.findIndex((edge, i) => i < counts.length && value >= edge && value < edges[i + 1]);
    return k < 0 ? null : k;
  };
  readable(sheet, counts.length, at, show, hide);
}

// Curves, points with whiskers, and clouds over two axes.

function drawCurves(figure) {
  const { spec, host, hidden } = figure;
  const series = spec.series.map((part, index) => ({ ...part, index })).filter((part) => !hidden.has(part.index));
  const every = spec.series; // the axes stay when a curve is hidden
  const [xLow, xHigh] = spec.x.domain ?? extent(every.flatMap((s) => s.x));
  const ys = every.flatMap((s) => [...s.y, ...(s.low ?? []), ...(s.high ?? [])]);
  const [yLow, yHigh] = spec.y.domain ?? padded(extent(ys));
  const width = host.clientWidth || Number(host.dataset.width) || 560;
  const height = spec.square ? clamp(Math.round(width * 0.82), 260, 420) : clamp(Math.round(width * 0.56), 220, 340);
  const margin = { left: leftRoom(yLow, yHigh, spec.y.kind), right: 18, top: 32, bottom: 46 };
  const sheet = paper(host, height, host.dataset.alt, margin);
  const { drawing, inner } = sheet;
  const x = scale(xLow, xHigh, inner.left, inner.right);
  const y = scale(yLow, yHigh, inner.bottom, inner.top);
  drawAxes(sheet, x, y, spec.x, spec.y);
  drawReferences(sheet, spec.references, x, y);
  for (const part of series) drawSeries(drawing, part, x, y);

  const crosshair = shape("line", { class: "crosshair", y1: inner.top, y2: inner.bottom, visibility: "hidden" });
  const marks = shape("g", { class: "marks" });
  drawing.append(crosshair, marks);
  const hide = () => {
    crosshair.setAttribute("visibility", "hidden");
    marks.replaceChildren();
  };
  if (!series.length) return;
  if (series[0].style === "cloud") readCloud(sheet, spec, series, x, y, marks, hide);
  else readCurves(sheet, spec, series, x, y, crosshair, marks, hide);
}

function drawSeries(drawing, part, x, y) {
  const tone = `tone-${part.tone}`;
  const group = shape("g", { class: `series ${tone}` });
  const points = part.x.map((value, k) => [x(value), y(part.y[k])]);
  if (part.style === "cloud") {
    for (const [px, py] of points) group.append(shape("circle", { class: "speck", cx: px.toFixed(1), cy: py.toFixed(1), r: 2.5 }));
  } else {
    if (part.low && part.high && part.style === "line") {
      const upper = part.x.map((value, k) => `${x(value).toFixed(1)},${y(part.high[k]).toFixed(1)}`);
      const lower = part.x.map((value, k) => `${x(value).toFixed(1)},${y(part.low[k]).toFixed(1)}`).reverse();
      group.append(shape("polygon", { class: "band", points: [...upper, ...lower].join(" ") }));
    }
    const path = points.map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`).join(" ");
    group.append(shape("polyline", { class: `curve dash-${part.tone}`, points: path }));
    if (part.style === "points" || points.length < 12) {
      points.forEach(([px, py], k) => {
        if (part.style === "points" && part.low) {
          group.append(shape("line", { class: "whiskers", x1: px, x2: px, y1: y(part.low[k]), y2: y(part.high[k]) }));
        }
        group.append(shape("circle", { class: "point", cx: px, cy: py, r: 3.5 }));
      });
    }
  }
  drawing.append(group);
}

function readCurves(sheet, spec, series, x, y, crosshair, marks, hide) {
  const lead = series.reduce((a, b) => (b.x.length > a.x.length ? b : a));
  const order = lead.x.map((_, k) => k).sort((a, b) => lead.x[a] - lead.x[b] || a - b);
  const show = (position) => {
    const value = lead.x[order[position]];
    const px = x(value);
    crosshair.setAttribute("x1", px);
    crosshair.setAttribute("x2", px);
    crosshair.setAttribute("visibility", "visible");
    const lines = [{ name: spec.x.label, text: shown(value, spec.x.kind) }];
    marks.replaceChildren();
    let top = sheet.inner.bottom;
    for (const part of series) {
      const k = part === lead ? order[position] : nearest(part.x, value);
      const py = y(part.y[k]);
      top = Math.min(top, py);
      marks.append(shape("circle", { class: `mark tone-${part.tone}`, cx: x(part.x[k]), cy: py, r: 5 }));
      let text = shown(part.y[k], spec.y.kind);
      if (part.low && part.high) text += ` (${shown(part.low[k], spec.y.kind)} to ${shown(part.high[k], spec.y.kind)})`;
      if (part.size) text += `, ${whole(part.size[k])} rows`;
      lines.push({ name: part.name, text, tone: part.tone });
    }
    showTip(sheet, px, top, lines);
    return lines.map((line) => `${line.name}: ${line.text}`).join("; ");
  };
  const xs = order.map((k) => lead.x[k]);
  const at = (px) => (px < sheet.inner.left - 12 || px > sheet.inner.right + 12 ? null : nearest(xs, x.back(px)));
  readable(sheet, order.length, at, show, hide);
}

function readCloud(sheet, spec, series, x, y, marks, hide) {
  const points = series.flatMap((part) => part.x.map((value, k) => ({ part, x: value, y: part.y[k], row: part.size?.[k] })));
  points.sort((a, b) => a.x - b.x);
  const show = (position) => {
    const point = points[position];
    marks.replaceChildren(shape("circle", { class: `mark tone-${point.part.tone}`, cx: x(point.x), cy: y(point.y), r: 5 }));
    const lines = [
      { name: spec.x.label, text: shown(point.x, spec.x.kind) },
      { name: spec.y.label, text: shown(point.y, spec.y.kind) },
    ];
    if (spec.numbered) lines.unshift({ name: `row ${whole(point.row)}`, text: point.part.name, tone: point.part.tone });
    showTip(sheet, x(point.x), y(point.y), lines);
    return lines.map((line) => `${line.name}: ${line.text}`).join("; ");
  };
  const at = (px, py) => {
    let best = null;
    let least = 24 ** 2;
    points.forEach((point, position) => {
      const far = (x(point.x) - px) ** 2 + (y(point.y) - py) ** 2;
      if (far < least) [least, best] = [far, position];
    });
    return best;
  };
  readable(sheet, points.length, at, show, hide);
}

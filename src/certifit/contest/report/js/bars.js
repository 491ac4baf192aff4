// Named values one under the other: bars from zero, or dots, with whiskers.

function drawBars(figure) {
  const { spec, host } = figure;
  const { items, mark } = spec;
  const width = Math.max(200, host.clientWidth || Number(host.dataset.width) || 560);
  const letters = Math.max(...items.map((item) => item.label.length));
  const left = clamp(letters * LETTER + 16, 40, width * 0.42);
  const row = 28;
  const height = 12 + items.length * row + 44;
  const sheet = paper(host, height, host.dataset.alt, { left, right: 24, top: 6, bottom: 48 });
  const { drawing, inner } = sheet;
  const ends = items.flatMap((item) => [item.value, item.low ?? item.value, item.high ?? item.value]);
  const [low, high] = padded(extent(mark === "bar" ? [0, ...ends] : ends), 0.04);
  const from = mark === "bar" && Math.min(...ends) >= 0 ? 0 : low;
  const x = scale(from, mark === "bar" && Math.max(...ends) <= 0 ? 0 : high, inner.left, inner.right);
  const axes = shape("g", { class: "axes", "aria-hidden": true });
  const ticks = ticksOf(...x.domain, clamp(Math.floor((inner.right - inner.left) / 76), 2, 7));
  for (const tick of ticks) {
    axes.append(
      shape("line", { class: "grid", x1: x(tick), x2: x(tick), y1: inner.top, y2: inner.bottom }),
      shape("text", { x: x(tick), y: inner.bottom + 17, "text-anchor": "middle" }, tickText(tick, ticks.step, spec.x.kind)),
    );
  }
  axes.append(
    shape("text", { class: "label", x: inner.right + 20, y: height - 6, "text-anchor": "end" }, shorten(spec.x.label, width / LETTER - 2)),
  );
  drawing.append(axes);
  const rows = items.map((item, k) => {
    const middle = inner.top + 6 + (k + 0.5) * row;
    const tone = item.value < 0 && mark === "bar" ? 1 : 0;
    const group = shape("g", { class: `bar tone-${tone}` });
    group.append(
      shape("rect", { class: "strip", x: 0, y: middle - row / 2, width: sheet.width, height: row }),
      shape("text", { class: "name", x: inner.left - 8, y: middle + 4, "text-anchor": "end" }, shorten(item.label, (left - 12) / LETTER)),
    );
    if (mark === "bar") {
      const [a, b] = [x(0), x(item.value)].sort((p, q) => p - q);
      group.append(shape("rect", { class: "body", x: a, y: middle - 7, width: Math.max(1, b - a), height: 14, rx: 1.5 }));
    }
    if (Number.isFinite(item.low) && Number.isFinite(item.high)) {
      group.append(shape("line", { class: mark === "bar" ? "whiskers over" : "whiskers", x1: x(item.low), x2: x(item.high), y1: middle, y2: middle }));
    }
    if (mark === "dot") group.append(shape("circle", { class: "point", cx: x(item.value), cy: middle, r: 5 }));
    drawing.append(group);
    return { group, middle };
  });
  if (mark === "bar") drawing.append(shape("line", { class: "rule", x1: x(0), x2: x(0), y1: inner.top, y2: inner.bottom }));
  const hide = () => rows.forEach(({ group }) => group.classList.remove("read"));
  const show = (k) => {
    hide();
    rows[k].group.classList.add("read");
    const item = items[k];
    const between = Number.isFinite(item.low) && Number.isFinite(item.high) ? ` (${digits(item.low)} to ${digits(item.high)})` : "";
    showTip(sheet, x(item.value), rows[k].middle, [{ name: item.label }, { text: `${digits(item.value)}${between}` }]);
    return `${item.label}: ${digits(item.value)}${between}`;
  };
  const at = (px, py) => {
    const k = Math.floor((py - inner.top - 6) / row);
    return k >= 0 && k < items.length ? k : null;
  };
  readable(sheet, items.length, at, show, hide, ["ArrowUp", "ArrowDown"]);
}

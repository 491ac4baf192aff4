// The paper every chart is drawn on: a drawing with axes, a tooltip, and reading by pointer or by arrow keys.

const LETTER = 6.6; // width of a letter of the axis font, in pixels: enough to reserve room

function paper(host, height, alt, margin) {
  host.replaceChildren();
  const width = Math.max(200, Math.floor(host.clientWidth || Number(host.dataset.width) || 560));
  const drawing = shape("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": alt,
    tabindex: 0,
    class: "drawing",
  });
  const tip = element("div", { class: "tip", hidden: true, "aria-hidden": true });
  host.append(drawing, tip);
  const inner = { left: margin.left, right: width - margin.right, top: margin.top, bottom: height - margin.bottom };
  return { host, drawing, tip, width, height, inner };
}

function drawAxes(sheet, x, y, xSpec, ySpec) {
  const { drawing, inner, height } = sheet;
  const axes = shape("g", { class: "axes", "aria-hidden": true });
  const [xLow, xHigh] = x.domain;
  const [yLow, yHigh] = y.domain;
  const across = clamp(Math.floor((inner.right - inner.left) / 72), 2, 8);
  const up = clamp(Math.floor((inner.bottom - inner.top) / 44), 2, 7);
  const xTicks = xSpec.kind === "date" ? dateTicks(xLow, xHigh, across) : ticksOf(xLow, xHigh, across);
  const yTicks = ticksOf(yLow, yHigh, up);
  for (const tick of yTicks) {
    axes.append(
      shape("line", { class: "grid", x1: inner.left, x2: inner.right, y1: y(tick), y2: y(tick) }),
      shape("text", { x: inner.left - 8, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick, yTicks.step, ySpec.kind)),
    );
  }
  for (const tick of xTicks) {
    const text = tickText(tick, xTicks.step, xSpec.kind, xHigh - xLow);
    axes.append(
      shape("line", { class: "tick", x1: x(tick), x2: x(tick), y1: inner.bottom, y2: inner.bottom + 4 }),
      shape("text", { x: x(tick), y: inner.bottom + 18, "text-anchor": "middle" }, text),
    );
  }
  axes.append(shape("line", { class: "rule", x1: inner.left, x2: inner.right, y1: inner.bottom, y2: inner.bottom }));
  const room = (inner.right - inner.left + inner.left * 0.6) / LETTER;
  axes.append(
    shape("text", { class: "label", x: inner.right, y: height - 6, "text-anchor": "end" }, shorten(xSpec.label, room)),
    shape("text", { class: "label", x: 2, y: 13 }, shorten(ySpec.label, (sheet.width - 4) / LETTER)),
  );
  drawing.append(axes);
}

// Room on the left for the numbers of the vertical axis.
function leftRoom(low, high, kind, rows = 5) {
  const ticks = ticksOf(low, high, rows);
  return 14 + LETTER * Math.max(3, ...ticks.map((tick) => tickText(tick, ticks.step, kind).length));
}

function showTip(sheet, px, py, lines) {
  const { tip, width } = sheet;
  tip.replaceChildren(
    ...lines.map((line) =>
      element(
        "div",
        {},
        line.tone === undefined ? null : element("i", { class: `swatch tone-${line.tone}` }),
        line.name ? element("span", {}, `${line.name} `) : null,
        line.text ? element("b", {}, line.text) : null,
      ),
    ),
  );
  tip.hidden = false;
  const wide = tip.offsetWidth;
  const left = px + 14 + wide > width ? px - 14 - wide : px + 14;
  tip.style.left = `${clamp(left, 0, Math.max(0, width - wide))}px`;
  tip.style.top = `${Math.max(0, py - tip.offsetHeight - 10)}px`;
}

// Calls `show(k)` for the item under the pointer or the one the arrow keys reached, and `hide()` when reading ends.
function readable(sheet, total, at, show, hide, keys = ["ArrowLeft", "ArrowRight"]) {
  const { drawing } = sheet;
  let current = -1;
  const leave = () => {
    current = -1;
    sheet.tip.hidden = true;
    hide();
  };
  const reach = (k, spoken) => {
    current = clamp(k, 0, total - 1);
    const text = show(current);
    if (spoken && text) say(text);
  };
  const move = (event) => {
    const box = drawing.getBoundingClientRect();
    const k = at(((event.clientX - box.left) / box.width) * sheet.width, ((event.clientY - box.top) / box.height) * sheet.height);
    if (k === null || k < 0) leave();
    else reach(k, false);
  };
  drawing.addEventListener("pointermove", move);
  drawing.addEventListener("pointerdown", move);
  drawing.addEventListener("pointerleave", leave);
  drawing.addEventListener("blur", leave);
  drawing.addEventListener("keydown", (event) => {
    const far = Math.max(1, Math.round(total / 10));
    const [back, forth] = keys;
    const steps = { [back]: -1, [forth]: 1, PageUp: -far, PageDown: far, Home: -total, End: total };
    if (event.key === "Escape") leave();
    else if (event.key in steps) {
      event.preventDefault();
      reach(current < 0 ? (steps[event.key] > 1 ? total - 1 : 0) : current + steps[event.key], true);
    }
  });
}

function drawReferences(sheet, references, x, y) {
  const { inner, drawing } = sheet;
  for (const { kind, value, label, side } of references ?? []) {
    const line = { class: "reference" };
    const text = { class: "reference-label" };
    if (kind === "diagonal") {
      const low = Math.max(x.domain[0], y.domain[0]);
      const high = Math.min(x.domain[1], y.domain[1]);
      Object.assign(line, { x1: x(low), y1: y(low), x2: x(high), y2: y(high) });
      const place = low + (high - low) * 0.7;
      // Under the line where the text begins, the text is clear of it all along.
      const start = Math.min(x(place), inner.right - label.length * 6);
      Object.assign(text, { x: start + 6, y: y(x.back(start)) + 14 });
    } else if (kind === "horizontal") {
      if (value < y.domain[0] || value > y.domain[1]) continue;
      Object.assign(line, { x1: inner.left, x2: inner.right, y1: y(value), y2: y(value) });
      const left = side === "left";
      Object.assign(text, { x: left ? inner.left + 4 : inner.right - 2, y: y(value) - 5, "text-anchor": left ? "start" : "end" });
    } else {
      if (value < x.domain[0] || value > x.domain[1]) continue;
      Object.assign(line, { x1: x(value), x2: x(value), y1: inner.top, y2: inner.bottom });
      const late = x(value) > (inner.left + inner.right) / 2;
      Object.assign(text, { x: x(value) + (late ? -5 : 5), y: inner.top + 12, "text-anchor": late ? "end" : "start" });
    }
    drawing.append(shape("line", line), shape("text", text, label));
  }
}

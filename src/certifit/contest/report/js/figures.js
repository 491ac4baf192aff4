// The figures of the page: drawn when they come into sight, redrawn when their width changes.

const DRAWERS = { xy: drawCurves, bars: drawBars, matrix: drawMatrix, columns: drawColumns };

function prepareFigure(node, spec) {
  const figure = { spec, host: find(".plot", node), hidden: new Set(), drawn: 0 };
  figure.draw = () => DRAWERS[spec.kind](figure);
  const named = spec.series ?? [];
  if (named.length > 1) prepareLegend(find(".legend", node), figure);
  const details = find("details.numbers", node);
  details.addEventListener("toggle", () => {
    const box = find(".scroll", details);
    if (details.open && !box.firstChild) box.append(numbersOf(spec));
  });
  return figure;
}

function prepareLegend(box, figure) {
  box.hidden = false;
  figure.spec.series.forEach((part, k) => {
    const button = element(
      "button",
      { type: "button", class: "series-toggle", "aria-pressed": "true" },
      element("i", { class: `swatch tone-${part.tone}` }),
      part.name,
    );
    button.addEventListener("click", () => {
      if (figure.hidden.has(k)) figure.hidden.delete(k);
      else figure.hidden.add(k);
      button.setAttribute("aria-pressed", String(!figure.hidden.has(k)));
      figure.draw();
    });
    box.append(button);
  });
}

// The numbers behind a figure as a table.
function numbersOf(spec) {
  const make = {
    xy: () => {
      const head = ["curve", spec.x.label, spec.y.label, "low", "high", spec.numbered ? "row" : "rows"];
      const rows = spec.series.flatMap((part) =>
        part.x.map((value, k) => [
          part.name,
          spec.x.kind === "date" ? day(value) : digits(value, 5),
          digits(part.y[k], 5),
          part.low ? digits(part.low[k], 5) : "",
          part.high ? digits(part.high[k], 5) : "",
          part.size ? whole(part.size[k]) : "",
        ]),
      );
      return [head, rows];
    },
    bars: () => {
      const head = [spec.heading, spec.x.label, "low", "high"];
      return [head, spec.items.map((item) => [item.label, digits(item.value, 5), ...["low", "high"].map((end) => (Number.isFinite(item[end]) ? digits(item[end], 5) : ""))])];
    },
    matrix: () => [["is \\ said", ...spec.labels], spec.labels.map((label, i) => [label, ...spec.counts[i].map(whole)])],
    columns: () => [["from", "to", "rows"], spec.counts.map((value, k) => [digits(spec.edges[k]), digits(spec.edges[k + 1]), whole(value)])],
  };
  const [head, rows] = make[spec.kind]();
  const used = head.map((_, k) => rows.some((row) => row[k] !== ""));
  const cells = (row, tag) => row.filter((_, k) => used[k]).map((text, k) => element(tag, { class: k ? "number" : null, scope: tag === "th" ? "col" : null }, text));
  return element(
    "table",
    { class: "plain" },
    element("thead", {}, element("tr", {}, ...cells(head, "th"))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row, "td")))),
  );
}

function startFigures(specs) {
  const figures = new Map();
  for (const node of all("[data-figure]")) {
    const figure = prepareFigure(node, specs[node.dataset.figure]);
    figures.set(figure.host, figure);
  }
  // A hidden page has no width: the observer reports it when it opens, and again when it changes.
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const figure = figures.get(target);
      const width = target.clientWidth;
      if (width && width !== figure.drawn) {
        figure.drawn = width;
        figure.draw();
      }
    }
  });
  for (const host of figures.keys()) observer.observe(host);
  addEventListener("beforeprint", () => {
    for (const [host, figure] of figures) {
      if (figure.drawn) continue;
      host.dataset.width = 560;
      figure.draw();
    }
  });
}

// Costs to a decision. At each threshold the counts of the sealed rows are known; the rest is arithmetic.

// Expected cost per row at each threshold.
function costsOf(table, fp, fn) {
  return table.threshold.map((_, k) => {
    const rows = table.tp[k] + table.fp[k] + table.tn[k] + table.fn[k];
    return (table.fp[k] * fp + table.fn[k] * fn) / rows;
  });
}

// The threshold that the costs call for: from this probability on, saying yes costs less in expectation.
const calledFor = (fp, fn) => fp / (fp + fn);

const lowest = (values) => values.reduce((best, value, k) => (value < values[best] ? k : best), 0);

function startDecide(given) {
  const part = (name) => document.getElementById(`decide-${name}`);
  const state = { table: given.entrants[0], fp: given.fp, fn: given.fn, at: 0, own: 0, best: 0, costs: [] };
  const plot = part("plot");
  const slider = part("slider");
  let handle = null;

  const put = (name, value, text) => {
    const node = part(name);
    node.textContent = text;
    node.dataset.value = String(value);
  };

  const recompute = () => {
    state.costs = costsOf(state.table, state.fp, state.fn);
    state.best = lowest(state.costs);
    state.own = nearest(state.table.threshold, calledFor(state.fp, state.fn));
    state.at = state.own;
    slider.max = state.table.threshold.length - 1;
    drawPlot();
    showOutcome();
  };

  const move = (k) => {
    state.at = clamp(k, 0, state.costs.length - 1);
    handle();
    showOutcome();
  };

  const showOutcome = () => {
    const { table, at, own, best, costs, fp, fn } = state;
    const [tp, fps, tn, fns] = [table.tp[at], table.fp[at], table.tn[at], table.fn[at]];
    const rows = tp + fps + tn + fns;
    const yes = ((fps + tn) * fp) / rows;
    const no = ((tp + fns) * fn) / rows;
    put("threshold", table.threshold[at], digits(table.threshold[at], 3));
    const compared = { cost: costs[at], best: costs[best], "always-yes": yes, "always-no": no };
    const texts = alike(Object.values(compared));
    Object.entries(compared).forEach(([name, value], k) => put(name, value, texts[k]));
    for (const [name, value] of [["tp", tp], ["fp-count", fps], ["tn", tn], ["fn-count", fns]]) put(name, value, whole(value));
    const ratios = { accuracy: (tp + tn) / rows, precision: tp / (tp + fps), recall: tp / (tp + fns) };
    for (const [name, value] of Object.entries(ratios)) put(name, value, percentage(value));
    part("verdict").textContent = verdict(costs[at], costs[best], Math.min(yes, no), yes < no ? given.yes : given.no);
    slider.value = at;
    slider.setAttribute("aria-valuetext", `threshold ${digits(table.threshold[at], 3)}, cost ${digits(costs[at])} per row`);
    part("reset").disabled = at === own;
  };

  const verdict = (here, best, trivial, word) => {
    const saved = trivial > 0 ? (trivial - here) / trivial : 0;
    const against = `always saying “${word}”, the cheaper of the two rules without a model`;
    if (saved > 0.0005) return `That costs ${percentage(saved)} less than ${against}.`;
    if (saved < -0.0005) return `That costs ${percentage(-saved)} more than ${against}.`;
    return best < trivial ? `That saves nothing against ${against}.` : `No threshold saves anything against ${against}.`;
  };

  const drawPlot = () => {
    const { table, costs, best } = state;
    const width = Math.max(240, plot.clientWidth || 560);
    const chosen = table.chosen;
    const ends = extent([0, ...costs]);
    const margin = { left: leftRoom(0, ends[1] * 1.08, "number"), right: 18, top: 30, bottom: 46 };
    const focused = plot.contains(document.activeElement);
    const sheet = paper(plot, clamp(Math.round(width * 0.42), 220, 320), "", margin);
    const { drawing, inner } = sheet;
    const x = scale(...extent([0, 1, ...table.threshold.filter((t) => t <= 1.001)]), inner.left, inner.right);
    const y = scale(0, ends[1] * 1.08, inner.bottom, inner.top);
    const place = (k) => clamp(x(table.threshold[k]), inner.left, inner.right);
    drawAxes(sheet, x, y, { label: `threshold: say “${given.yes}” from this probability on`, kind: "number" }, { label: "expected cost per row, in your unit", kind: "number" });
    if (chosen !== null) drawReferences(sheet, [{ kind: "vertical", value: chosen, label: "the model’s own" }], x, y);
    const path = costs.map((cost, k) => `${place(k).toFixed(1)},${y(cost).toFixed(1)}`).join(" ");
    const line = shape("line", { class: "handle-line", y1: inner.top - 4, y2: inner.bottom });
    const dot = shape("circle", { class: "handle", r: 9 });
    drawing.append(
      shape("g", { class: "series tone-0" }, shape("polyline", { class: "curve", points: path })),
      shape("circle", { class: "best", cx: place(best), cy: y(costs[best]), r: 5 }),
      line,
      dot,
    );
    drawing.setAttribute("role", "slider");
    drawing.setAttribute("aria-label", "Threshold");
    drawing.setAttribute("aria-valuemin", digitsPlain(table.threshold[0]));
    drawing.setAttribute("aria-valuemax", digitsPlain(table.threshold[costs.length - 1]));
    drawing.classList.add("draggable");
    handle = () => {
      const px = place(state.at);
      line.setAttribute("x1", px);
      line.setAttribute("x2", px);
      dot.setAttribute("cx", px);
      dot.setAttribute("cy", y(costs[state.at]));
      drawing.setAttribute("aria-valuenow", digitsPlain(table.threshold[state.at]));
      drawing.setAttribute("aria-valuetext", `threshold ${digits(table.threshold[state.at], 3)}, cost ${digits(costs[state.at])} per row`);
    };
    handle();
    drag(sheet, (px) => move(nearest(costs.map((_, k) => place(k)), px)));
    drawing.addEventListener("keydown", (event) => {
      const far = Math.max(1, Math.round(costs.length / 10));
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -far, PageUp: far, Home: -costs.length, End: costs.length };
      if (!(event.key in steps)) return;
      event.preventDefault();
      move(state.at + steps[event.key]);
    });
    if (focused) drawing.focus({ preventScroll: true });
  };

  const digitsPlain = (value) => String(Number(value.toPrecision(6)));

  const drag = ({ drawing, width }, moved) => {
    const pixel = (event) => {
      const box = drawing.getBoundingClientRect();
      return ((event.clientX - box.left) / box.width) * width;
    };
    let held = false;
    drawing.addEventListener("pointerdown", (event) => {
      held = true;
      drawing.setPointerCapture(event.pointerId);
      moved(pixel(event));
    });
    drawing.addEventListener("pointermove", (event) => held && moved(pixel(event)));
    for (const end of ["pointerup", "pointercancel"]) drawing.addEventListener(end, () => { held = false; });
  };

  const showRatio = () => {
    const ratio = state.fn / state.fp;
    const words = ratio >= 1 ? [`A miss costs as much as ${digits(ratio, 3)} false alarm${ratio === 1 ? "" : "s"}`] : [`A false alarm costs as much as ${digits(1 / ratio, 3)} misses`];
    part("ratio-text").textContent = words[0];
    const slide = part("ratio");
    slide.value = clamp(Math.log10(ratio), -3, 3);
    slide.setAttribute("aria-valuetext", words[0]);
  };

  const typed = () => {
    const values = ["fp", "fn"].map((name) => {
      const value = part(name).valueAsNumber;
      part(name).setAttribute("aria-invalid", String(!(value > 0)));
      return value;
    });
    const fine = values.every((value) => value > 0 && Number.isFinite(value));
    part("problem").textContent = fine ? "" : "Both costs must be numbers above zero.";
    if (!fine) return;
    [state.fp, state.fn] = values;
    showRatio();
    recompute();
  };

  part("entrant").addEventListener("change", (event) => {
    state.table = given.entrants[Number(event.target.value)];
    recompute();
  });
  part("fp").addEventListener("input", typed);
  part("fn").addEventListener("input", typed);
  part("ratio").addEventListener("input", (event) => {
    const ratio = 10 ** Number(event.target.value);
    // Whichever mistake is cheaper keeps its price of 1, so that the numbers stay easy to read.
    part("fp").value = ratio >= 1 ? 1 : Number((1 / ratio).toPrecision(3));
    part("fn").value = ratio >= 1 ? Number(ratio.toPrecision(3)) : 1;
    const kept = event.target.value;
    typed();
    event.target.value = kept;
  });
  slider.addEventListener("input", () => move(Number(slider.value)));
  part("reset").addEventListener("click", () => move(state.own));
  part("form").addEventListener("submit", (event) => event.preventDefault());
  showRatio();
  recompute();
  let drawn = plot.clientWidth;
  new ResizeObserver(() => {
    if (!plot.clientWidth || plot.clientWidth === drawn) return;
    drawn = plot.clientWidth;
    drawPlot();
  }).observe(plot);
}

// A table of costs to decisions among several classes: costs[k][a] is what answer a costs when class k is true.

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// What the answer that is cheapest in expectation, the most probable class and the cheapest single answer cost a row.
function outcomeOf({ truth, probabilities }, costs) {
  const classes = costs.map((_, k) => k);
  const said = probabilities.map((p) => lowest(classes.map((a) => p.reduce((sum, share, k) => sum + share * costs[k][a], 0))));
  const likely = probabilities.map((p) => lowest(p.map((share) => -share)));
  const always = classes.map((a) => mean(truth.map((k) => costs[k][a])));
  const answer = lowest(always);
  const counts = classes.map(() => classes.map(() => 0));
  truth.forEach((k, row) => { counts[k][said[row]] += 1; });
  return {
    cost: mean(truth.map((k, row) => costs[k][said[row]])),
    likely: mean(truth.map((k, row) => costs[k][likely[row]])),
    always: always[answer],
    answer,
    changed: said.filter((a, row) => a !== likely[row]).length,
    counts,
  };
}

function startChoices(given) {
  const part = (name) => document.getElementById(`choices-${name}`);
  const fields = all("#choices-form input[data-cell]");
  const state = { entrant: given.entrants[0], costs: given.costs.map((row) => [...row]) };

  const show = () => {
    const found = outcomeOf(state.entrant, state.costs);
    const compared = [found.cost, found.likely, found.always];
    const texts = alike(compared);
    ["cost", "likely", "always"].forEach((name, k) => {
      part(name).textContent = texts[k];
      part(name).dataset.value = String(compared[k]);
    });
    part("answer").textContent = given.classes[found.answer];
    part("changed").textContent = whole(found.changed);
    part("rows").textContent = whole(state.entrant.truth.length);
    part("sealed").textContent = whole(state.entrant.rows);
    found.counts.forEach((row, k) => row.forEach((count, a) => { part(`count-${k}-${a}`).textContent = whole(count); }));
    part("back").disabled = state.costs.every((row, k) => row.every((cost, a) => cost === given.costs[k][a]));
  };

  const typed = () => {
    const fine = fields.map((field) => {
      const right = field.valueAsNumber >= 0 && Number.isFinite(field.valueAsNumber);
      field.setAttribute("aria-invalid", String(!right));
      return right;
    });
    const all = fine.every(Boolean);
    part("problem").textContent = all ? "" : "Every cost must be a number of zero or more.";
    if (!all) return;
    fields.forEach((field) => {
      const [k, a] = field.dataset.cell.split("-").map(Number);
      state.costs[k][a] = field.valueAsNumber;
    });
    show();
  };

  fields.forEach((field) => field.addEventListener("input", typed));
  part("entrant").addEventListener("change", (event) => {
    state.entrant = given.entrants[Number(event.target.value)];
    show();
  });
  part("back").addEventListener("click", () => {
    fields.forEach((field) => {
      const [k, a] = field.dataset.cell.split("-").map(Number);
      field.value = given.costs[k][a];
    });
    typed();
  });
  part("form").addEventListener("submit", (event) => event.preventDefault());
  show();
}

// Tables that sort by their headings, and one that is filtered by a word.

function startSorting(table) {
  const body = find("tbody", table);
  const heads = all("th[data-key]", table);
  const original = all("tr", body);
  for (const row of original) row.keys = JSON.parse(row.dataset.keys);
  for (const head of heads) {
    const button = find("button", head);
    button.disabled = false;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...sorted(original, head.dataset.key, down));
      say(`Sorted by ${button.textContent.trim()}, ${down ? "descending" : "ascending"}`);
    });
  }
}

// Rows without a value come last in both directions; equal rows keep the table's own order.
function sorted(rows, key, down) {
  const known = rows.filter((row) => row.keys[key] !== null && row.keys[key] !== undefined);
  const unknown = rows.filter((row) => !known.includes(row));
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  known.sort((a, b) => (down ? -1 : 1) * compare(a.keys[key], b.keys[key]));
  return [...known, ...unknown];
}

function startFilter(input) {
  const rows = all("tbody tr", document.getElementById(input.dataset.filters));
  const output = find("output", input.closest("p"));
  input.addEventListener("input", () => {
    const word = input.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const text = all("th, td:nth-child(2)", row).map((cell) => cell.textContent.toLowerCase()).join(" ");
      row.hidden = !text.includes(word);
      shown += row.hidden ? 0 : 1;
    }
    output.textContent = word ? `${shown} of ${rows.length}` : "";
  });
}

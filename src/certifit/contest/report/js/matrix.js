// A confusion matrix: rows are what is, columns what was said; the shade is the share of the row.

function drawMatrix(figure) {
  const { spec, host } = figure;
  const { labels, counts } = spec;
  const many = labels.length;
  const width = Math.max(200, host.clientWidth || Number(host.dataset.width) || 560);
  const letters = Math.max(...labels.map((label) => label.length));
  const left = clamp(letters * LETTER + 34, 60, width * 0.34);
  const cell = clamp(Math.floor((width - left - 8) / many), 10, many <= 4 ? 150 : 96);
  const tall = many <= 4 ? Math.min(cell, 72) : cell;
  const top = many <= 4 ? 44 : 30 + clamp(letters * LETTER * 0.75, 20, 80);
  const sheet = paper(host, top + tall * many + 10, host.dataset.alt, { left, right: 0, top, bottom: 0 });
  const { drawing } = sheet;
  drawing.append(
    shape("text", { class: "label", x: left, y: 13 }, "what the model says →"),
    shape("text", { class: "label", x: 12, y: top + (tall * many) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${top + (tall * many) / 2})` }, shorten("← what it is", (tall * many) / LETTER)),
  );
  const cells = [];
  labels.forEach((label, i) => {
    const middle = top + (i + 0.5) * tall;
    const across = left + (i + 0.5) * cell;
    const flat = { x: across, y: top - 8, "text-anchor": "middle" };
    const slanted = { x: across + 3, y: top - 6, transform: `rotate(-40 ${across + 3} ${top - 6})` };
    drawing.append(
      shape("text", { class: "name", x: left - 8, y: middle + 4, "text-anchor": "end" }, shorten(label, (left - 32) / LETTER)),
      shape("text", { class: "name", ...(many <= 4 ? flat : slanted) }, shorten(label, many <= 4 ? cell / LETTER : 16)),
    );
    const total = counts[i].reduce((sum, value) => sum + value, 0);
    labels.forEach((_, j) => {
      const share = total ? counts[i][j] / total : 0;
      const box = shape("rect", {
        class: `cell ${i === j ? "right" : "wrong"}`,
        x: left + j * cell + 1,
        y: top + i * tall + 1,
        width: cell - 2,
        height: tall - 2,
        rx: 2,
        "fill-opacity": (share === 0 ? 0.04 : 0.1 + 0.4 * share).toFixed(3),
      });
      drawing.append(box);
      const text = whole(counts[i][j]);
      if (cell > text.length * LETTER + 6 && tall > 16) {
        drawing.append(shape("text", { class: "inside", x: left + (j + 0.5) * cell, y: middle + (tall > 44 ? -1 : 4), "text-anchor": "middle" }, text));
        if (tall > 44 && cell > 52) {
          drawing.append(shape("text", { class: "inside small", x: left + (j + 0.5) * cell, y: middle + 15, "text-anchor": "middle" }, percentage(share)));
        }
      }
      cells.push({ box, share });
    });
  });
  const hide = () => cells.forEach(({ box }) => box.classList.remove("read"));
  const show = (k) => {
    hide();
    cells[k].box.classList.add("read");
    const [i, j] = [Math.floor(k / many), k % many];
    const text = `${whole(counts[i][j])} rows, ${percentage(cells[k].share)} of them`;
    showTip(sheet, left + (j + 0.5) * cell, top + i * tall, [{ name: `is “${labels[i]}”, said “${labels[j]}”:` }, { text }]);
    return `is ${labels[i]}, said ${labels[j]}: ${text}`;
  };
  const at = (px, py) => {
    const [i, j] = [Math.floor((py - top) / tall), Math.floor((px - left) / cell)];
    return i >= 0 && j >= 0 && i < many && j < many ? i * many + j : null;
  };
  readable(sheet, many * many, at, show, hide);
}

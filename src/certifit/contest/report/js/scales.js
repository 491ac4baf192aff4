// From data to places: ticks at round numbers, and a linear scale between two ends.

function roundStep(span, wanted) {
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = rough / power;
  return power * (factor < 1.5 ? 1 : factor < 3.5 ? 2 : factor < 7.5 ? 5 : 10);
}

function ticksOf(low, high, wanted) {
  const step = roundStep(high - low, wanted);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const found = Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => (first + k) * step);
  found.step = step;
  return found;
}

function dateTicks(low, high, wanted) {
  const years = (high - low) / 31557600000;
  const step = years > wanted ? Math.ceil(years / wanted) * 12 : [12, 6, 3, 1].find((m) => (years * 12) / m >= 2) ?? 1;
  const start = new Date(low);
  const found = [];
  const first = start.getUTCFullYear() * 12 + start.getUTCMonth();
  for (let month = Math.ceil(first / step) * step; found.length < 40; month += step) {
    const place = Date.UTC(Math.floor(month / 12), month % 12, 1);
    if (place > high) break;
    if (place >= low) found.push(place);
  }
  while (found.length > wanted + 1) found.splice(0, found.length, ...found.filter((_, k) => k % 2 === 0));
  return found.length > 1 ? found : [low, high];
}

function tickText(value, step, kind, span) {
  if (kind === "date") return span > 3 * 31557600000 ? day(value).slice(0, 4) : day(value).slice(0, 7);
  if (kind === "share") return `${minus((value * 100).toFixed(step < 0.01 ? 1 : 0))}\u00a0%`;
  if (Math.abs(value) < step / 1e6) return "0";
  if (step >= 1e6 || Math.abs(value) >= 1e7) return digits(value / 1e6, 4) + "\u00a0M";
  if (step >= 1e4 || Math.abs(value) >= 1e5) return digits(value / 1e3, 5) + "\u00a0k";
  const places = clamp(-Math.floor(Math.log10(step) + 1e-9), 0, 12);
  if (places > 6) return minus(value.toExponential(1));
  return minus(value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places, useGrouping: "min2" }));
}

function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  if (low === high) {
    const pad = Math.abs(low) * 0.1 || 1;
    return [low - pad, high + pad];
  }
  return [low, high];
}

const padded = ([low, high], share = 0.05) => [low - (high - low) * share, high + (high - low) * share];

function scale(low, high, from, to) {
  const place = (value) => from + ((value - low) / (high - low)) * (to - from);
  place.back = (pixel) => low + ((pixel - from) / (to - from)) * (high - low);
  place.domain = [low, high];
  return place;
}

// The position of the number nearest to a value.
function nearest(values, value) {
  let best = 0;
  for (let k = 1; k < values.length; k += 1) {
    if (Math.abs(values[k] - value) < Math.abs(values[best] - value)) best = k;
  }
  return best;
}

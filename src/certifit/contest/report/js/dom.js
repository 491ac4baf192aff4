// Building blocks: elements, text and numbers. Every string of the run reaches the page as text, never as markup.

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const shape = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const say = (text) => {
  find("#spoken").textContent = text;
};

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

const minus = (text) => text.replace(/-/g, "−");

// A number to so many significant digits, thousands apart.
function digits(value, significant = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9)) {
    return minus(value.toExponential(significant - 1).replace(/\.?0+e/, "e"));
  }
  const options = { maximumSignificantDigits: Math.max(significant, Math.ceil(Math.log10(Math.abs(value) + 1))), useGrouping: "min2" };
  return minus(value.toLocaleString("en-US", options));
}

// Numbers that stand under one another: as many decimals for all as four digits of the largest need.
function alike(values) {
  const top = Math.max(...values.map(Math.abs), 1e-9);
  const places = clamp(3 - Math.floor(Math.log10(top)), 0, 10);
  return values.map((value) => minus(value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places })));
}

const whole = (value) => minus(Math.round(value).toLocaleString("en-US"));

const percentage = (share, places = 1) =>
  share === null || !Number.isFinite(share) ? "–" : `${minus((share * 100).toFixed(places))}\u00a0%`;

const day = (milliseconds) => new Date(milliseconds).toISOString().slice(0, 10);

const shorten = (text, length) => (text.length <= length ? text : `${text.slice(0, Math.max(1, length - 1))}…`);

// A value as an axis or a tooltip shows it.
function shown(value, kind) {
  if (kind === "share") return percentage(value);
  return kind === "date" ? day(value) : digits(value);
}

// What the page holds, and the few things every part of it needs.
const DATA = JSON.parse(document.getElementById("data").textContent);
const TYPES = { float32: Float32Array, int8: Int8Array };

/** An element; text stays text, whatever is in it. */
function el(tag, given = {}, ...children) {
  const svg = ["svg", "path", "title"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(given)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "text") made.textContent = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const byId = (id) => document.getElementById(id);

/** The options of a select, by their place in a list. */
function fillSelect(select, names, chosen = 0) {
  select.replaceChildren(...names.map((name, place) => el("option", { value: place, text: name })));
  if (names.length) select.value = Math.min(chosen, names.length - 1);
}

/** An array that Python packed. */
async function unpacked({ shape, type, data }) {
  const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return { shape, values: new TYPES[type](await new Response(plain).arrayBuffer()) };
}

/** What a method scored on an image under a metric, once `ready` is there; NaN where it is undefined. */
let scores = null;
const ready = unpacked(DATA.values).then((found) => { scores = found; performance.mark("ready"); return found; });
const COUNT = DATA.samples.length;
function scoresOf(head, method) {
  const start = (head * DATA.methods.length + method) * COUNT;
  return scores.values.subarray(start, start + COUNT);
}
const scoreOf = (head, method, sample) => (scores ? scoresOf(head, method)[sample] : NaN);

/** A number as tables print it: fractions times 100, others with three digits, a dash where it is undefined. */
function shown(value, share) {
  if (value === null || Number.isNaN(value)) return "–";
  if (share) return (100 * value).toFixed(1).replace(/^-0\.0$/, "0.0");
  if (Math.abs(value) < 5e-4) return "0";
  return Math.abs(value) >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/** A metric's name with what tells it from others of the same name. */
function headName(head) {
  const same = DATA.heads.filter((other) => other.name === head.name);
  if (same.length < 2) return head.name;
  const stages = new Set(same.map((other) => other.definition.split("(")[0]));
  return `${head.name}, ${stages.size === same.length ? head.definition.split("(")[0] : head.definition}`;
}

/** What a sum over images means here: groups (buckets) weigh the same. */
const GROUPS = DATA.groups.map(() => []);
DATA.group.forEach((group, sample) => GROUPS[group].push(sample));

function download(name, url) {
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

function downloadText(name, text, kind) {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  download(name, url);
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Rows as CSV. A cell that a spreadsheet would take for a formula gets a quote before it. */
function csv(rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "";
    let text = String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map(cell), ...rows.map((row) => columns.map((name) => cell(row[name])))]
    .map((line) => line.join(",")).join("\n") + "\n";
}

/** Do something when an element first comes near the screen, or when the page is printed. */
const waiting = new Map();
const nearing = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) arrive(entry.target);
}, { rootMargin: "300px" });
function arrive(node) {
  const act = waiting.get(node);
  waiting.delete(node);
  nearing.unobserve(node);
  if (act) act();
}
function whenNear(node, act) {
  waiting.set(node, act);
  nearing.observe(node);
}

// Charts: ECharts options in plain JSON, in the page's colours, each with buttons to take it away.
const live = new Map(); // element -> { chart, option }

/** A line with two ends, from the third to the fourth value of an item, at the place its first value says. */
function interval(params, api, upright) {
  const at = api.value(0);
  const ends = [api.value(2), api.value(3)].map((value) => (upright ? api.coord([at, value]) : api.coord([value, at])));
  if (ends.flat().some(Number.isNaN)) return null;
  const cap = 4;
  const [[x1, y1], [x2, y2]] = ends;
  const style = { stroke: api.visual("color"), fill: "none", lineWidth: 1.5 };
  const line = (a, b, c, d) => ({ type: "line", shape: { x1: a, y1: b, x2: c, y2: d }, style });
  const caps = upright
    ? [line(x1 - cap, y1, x1 + cap, y1), line(x2 - cap, y2, x2 + cap, y2)]
    : [line(x1, y1 - cap, x1, y1 + cap), line(x2, y2 - cap, x2, y2 + cap)];
  return { type: "group", children: [line(x1, y1, x2, y2), ...caps] };
}
/** The outline of a distribution around a lane: its first value, then places along it and half widths in lanes. */
function violin(params, api) {
  const lane = api.value(0);
  const above = [];
  const below = [];
  for (let i = 1; !Number.isNaN(api.value(i)) && api.value(i) !== undefined; i += 2) {
    const [x, y] = api.coord([api.value(i), lane]);
    const half = api.value(i + 1) * Math.abs(api.size([0, 1])[1]);
    above.push([x, y - half]);
    below.unshift([x, y + half]);
  }
  const ink = api.visual("color");
  return { type: "polygon", shape: { points: [...above, ...below] }, style: { fill: ink, opacity: 0.22, stroke: ink, lineWidth: 1 } };
}
const ITEMS = {
  violin,
  whisker: (params, api) => interval(params, api, false),
  whisker_up: (params, api) => interval(params, api, true),
};

/** An option with colours and functions in the place of their names. */
function resolved(value, key = "") {
  if (typeof value === "string") {
    if (key === "renderItem") return ITEMS[value];
    if (["name", "value", "data"].includes(key)) return value; // a method may be called @ink
    return /^@[a-z-]+$/.test(value) ? colour(value.slice(1)) : value;
  }
  if (Array.isArray(value)) return value.map((one) => resolved(one, key));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, resolved(one, name)]));
}

function axis(given) {
  const rule = { lineStyle: { color: colour("rule") } };
  const one = (more) => ({
    nameTextStyle: { color: colour("soft") },
    ...more,
    axisLabel: { color: colour("ink"), hideOverlap: true, ...more.axisLabel },
    axisLine: { ...rule, ...more.axisLine },
    axisTick: { ...rule, ...more.axisTick },
    splitLine: { show: more.type !== "category", ...rule, ...more.splitLine },
  });
  return Array.isArray(given) ? given.map(one) : one(given);
}

function themed(option) {
  const found = resolved(option);
  const font = getComputedStyle(document.body).fontFamily;
  const legend = (given) => ({
    type: "scroll", icon: "roundRect", pageIconColor: colour("ink"), pageIconInactiveColor: colour("rule"),
    pageTextStyle: { color: colour("soft") }, inactiveColor: colour("rule"), ...given,
    textStyle: { color: colour("ink"), ...given.textStyle },
  });
  return {
    animation: false,
    backgroundColor: "transparent",
    ...found,
    textStyle: { fontFamily: font, color: colour("ink"), ...found.textStyle },
    aria: { enabled: false, ...found.aria }, // each chart has words of its own
    tooltip: {
      confine: true, backgroundColor: colour("card"), borderColor: colour("rule"),
      textStyle: { color: colour("ink"), fontSize: 13 }, ...found.tooltip,
    },
    ...(found.legend ? { legend: Array.isArray(found.legend) ? found.legend.map(legend) : legend(found.legend) } : {}),
    ...(found.xAxis ? { xAxis: axis(found.xAxis) } : {}),
    ...(found.yAxis ? { yAxis: axis(found.yAxis) } : {}),
    ...(found.title ? { title: [found.title].flat().map((one) => ({
      ...one, textStyle: { color: colour("ink"), fontSize: 13, fontWeight: 600, ...one.textStyle },
    })) } : {}),
  };
}

/** Draw into an element, or draw anew. */
function drawChart(node, option) {
  const chart = live.get(node)?.chart ?? echarts.init(node, null, { renderer: "svg" });
  live.set(node, { chart, option });
  chart.setOption(themed(option), { notMerge: true });
  return chart;
}

function dropChart(node) {
  live.get(node)?.chart.dispose();
  live.delete(node);
}

onTheme(() => { for (const [node, { option }] of live) drawChart(node, option); });
new ResizeObserver(() => {
  for (const { chart } of live.values()) chart.resize();
}).observe(document.querySelector("main"));

/** The chart as a picture of its own: what is light on screen is light in the file. */
function picture(node, option, kind) {
  const away = el("div", { style: `width:${Math.max(node.clientWidth, 900)}px;height:${node.clientHeight}px;position:absolute;left:-99999px` });
  document.body.append(away);
  const chart = echarts.init(away, null, kind === "svg" ? { renderer: "svg" } : { renderer: "canvas", devicePixelRatio: 2 });
  chart.setOption({ ...themed(option), backgroundColor: colour("card") });
  const url = chart.getDataURL({ type: kind, backgroundColor: colour("card") });
  chart.dispose();
  away.remove();
  return url;
}

/** A part of the page as a picture of its own: its HTML, with the page's style and colours, inside an SVG. */
async function pagePicture(node, kind) {
  const css = [...document.querySelectorAll("style")].map((one) => one.textContent).join("\n");
  const names = new Set(css.match(/--[a-z][a-z-]*(?=:)/g));
  const set = getComputedStyle(document.body);
  const inks = [...names].map((name) => `${name}:${set.getPropertyValue(name)}`).filter((one) => !one.includes("url(")).join(";");
  const [width, height] = [Math.ceil(node.scrollWidth), Math.ceil(node.scrollHeight)];
  const body = el("div", { style: `${inks};width:${width}px;background:var(--card);color:var(--ink);font:${set.font}` },
    el("style", { text: css }), node.cloneNode(true));
  const inside = new XMLSerializer().serializeToString(body);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><foreignObject width="100%" height="100%">${inside}</foreignObject></svg>`;
  const url = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  if (kind === "svg") return url;
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = el("canvas", { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
  return canvas.toDataURL("image/png");
}

/** Buttons beside a picture: `take` makes it in a kind of file, `rows` are its numbers. */
function takeaway(name, take, rows) {
  const made = (word, act) => el("button", { type: "button", class: "quiet", text: word, "aria-label": `Download ${name} as ${word}`, onclick: act });
  return el("div", { class: "takeaway" },
    ...["png", "svg"].map((kind) => made(kind.toUpperCase(), async () => download(`${name}.${kind}`, await take(kind)))),
    made("data", () => downloadText(`${name}.csv`, csv(rows()), "text/csv")));
}

for (const node of document.querySelectorAll("[data-chart]")) {
  const name = node.dataset.chart;
  const { option, rows } = DATA.charts[name];
  node.after(takeaway(name, (kind) => picture(node, option, kind), () => rows));
  whenNear(node, () => drawChart(node, option));
}
for (const node of document.querySelectorAll("[data-pictured]")) {
  const name = node.dataset.pictured;
  node.after(takeaway(name, (kind) => pagePicture(node, kind), () => DATA.pictured[name]));
}

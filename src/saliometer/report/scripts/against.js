// This run against another: two dots a method, and a table with the interval of the difference.
const AGAINST_ROW = 30;

function againstName(head, heads) {
  const same = heads.filter((other) => other.name === head.name);
  return same.length > 1 ? `${head.name}, ${head.definition}` : head.name;
}

/** Values as the page shows them: fractions times 100. */
const againstScaled = (value, head) => (value === null ? null : head.share ? 100 * value : value);

function againstOption(head, width) {
  const { name, this: here } = DATA.compared;
  const left = Math.min(190, 0.42 * width);
  const dots = (side, label, symbolSize, itemStyle) => ({
    type: "scatter", name: label, symbolSize, itemStyle: { opacity: 1, ...itemStyle }, encode: { x: 0, y: 1, tooltip: 0 },
    data: head.rows.map((row, place) => ({ name: row.method, value: [againstScaled(row[side][0], head), place] })),
  });
  const lines = head.rows.flatMap((row, place) => {
    const ends = [row.this[0], row.other[0]].map((value) => againstScaled(value, head));
    return ends.includes(null) ? [] : [[place, ends[0], Math.min(...ends), Math.max(...ends)]];
  });
  return {
    grid: { left, right: 24, top: 36, bottom: 44 },
    legend: { top: 0, icon: "circle", data: [here, name] },
    xAxis: { type: "value", scale: true, name: againstName(head, DATA.compared.heads), nameLocation: "middle", nameGap: 26 },
    yAxis: {
      type: "category", inverse: true, data: head.rows.map((row) => row.method),
      axisLabel: { width: left - 14, overflow: "truncate", interval: 0 },
    },
    series: [
      { type: "custom", renderItem: "whisker", encode: { x: [2, 3], y: 0 }, itemStyle: { color: "@soft" }, data: lines, silent: true },
      dots("other", name, 15, { color: "transparent", borderColor: "@secondary", borderWidth: 2.5 }),
      dots("this", here, 8, { color: "@method" }),
    ],
  };
}

function againstCell([value, low, high], head, print = shown, rank = "") {
  const cell = el("td", { class: "number", text: value === null ? "–" : print(value, head.share) });
  if (low !== null) cell.append(el("small", { text: `${print(low, head.share)} to ${print(high, head.share)}` }));
  if (rank) cell.append(el("small", { text: `rank ${rank}` }));
  return cell;
}

function againstRow(row, head) {
  const control = row.role === "control" || row.role === "ceiling";
  return el("tr", { class: row.role || false, "data-method": row.method },
    el("th", { scope: "row", class: "left name", text: row.method },
      control ? el("small", { text: row.role }) : null),
    againstCell(row.this, head, shown, row.ranks[0]),
    againstCell(row.other, head, shown, row.ranks[1]),
    againstCell(row.gap, head, signed),
    el("td", { class: "left", text: row.verdict }));
}

function againstRows(head) {
  return head.rows.map((row) => ({
    method: row.method, metric: head.metric, definition: head.definition, verdict: row.verdict,
    this: row.this[0], this_low: row.this[1], this_high: row.this[2],
    other: row.other[0], other_low: row.other[1], other_high: row.other[2],
    difference: row.gap[0], difference_low: row.gap[1], difference_high: row.gap[2],
  }));
}

function startAgainst() {
  const { heads, name } = DATA.compared;
  const select = byId("against-metric");
  const node = byId("against-chart");
  const head = () => heads[Number(select.value)];
  const show = () => {
    const one = head();
    const direction = one.better ? `${one.better[0].toUpperCase()}${one.better.slice(1)} is better. ` : "";
    byId("against-note").textContent = direction + (one.paired
      ? `Paired: both runs scored the same ${one.images[0]} images.`
      : `Not paired: ${one.images[0]} images here, ${one.images[1]} in ${name}, resampled each by itself.`);
    byId("against-table").tBodies[0].replaceChildren(...one.rows.map((row) => againstRow(row, one)));
    node.style.height = `${90 + AGAINST_ROW * one.rows.length}px`;
    drawChart(node, againstOption(one, node.clientWidth)).resize();
  };
  fillSelect(select, heads.map((one) => againstName(one, heads)));
  select.addEventListener("change", show);
  node.after(takeaway("against", (kind) => picture(node, againstOption(head(), node.clientWidth), kind), () => againstRows(head())));
  show();
}
if (DATA.compared) startAgainst();

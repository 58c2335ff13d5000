// Two methods on the same images, two metrics on the same methods.
const DISAGREE = 8; // images shown
const BINS = 25;

function signed(value, share) {
  if (value === 0) return "0";
  let text = shown(Math.abs(value), share);
  if (Number(text) === 0) text = String(Number((Math.abs(value) * (share ? 100 : 1)).toPrecision(1))); // rounding must not hide a sign
  return `${value < 0 ? "−" : "+"}${text}`;
}

function drawPaired() {
  const [one, other, by] = ["one", "other", "by"].map((id) => Number(byId(id).value));
  const head = DATA.heads[by];
  const [a, b] = [scoresOf(by, one), scoresOf(by, other)];
  const sign = head.better === "lower" ? -1 : 1;
  const gaps = Float64Array.from(a, (value, sample) => sign * (value - b[sample]));
  const found = meanInterval(gaps);
  const known = [...gaps].filter((gap) => !Number.isNaN(gap));
  const [names, others] = [METHODS[one], METHODS[other]];
  byId("paired").textContent = pairedWords(names, others, head, found, known);
  drawHistogram(byId("paired-chart"), known, head, names, others);
  drawDisagreement(one, other, gaps, head, by);
}

function pairedWords(one, other, head, found, known) {
  if (!known.length) return `No image has ${head.name} of both.`;
  if (one === other) return "Pick two different methods.";
  const apart = found.low > 0 || found.high < 0;
  const who = found.value > 0 ? one : other;
  const what = Number.isNaN(found.low)
    ? `No interval: some group has one image, or a value is not finite. The mean difference is ${signed(found.value, head.share)}.`
    : `Mean difference ${signed(found.value, head.share)} (95 % interval ${signed(found.low, head.share)} to ${signed(found.high, head.share)}), so ${apart ? `${who} is better` : "no difference can be told"}.`;
  const won = (known.filter((gap) => gap > 0).length + known.filter((gap) => gap === 0).length / 2) / known.length;
  return `By ${head.name}, ${one} against ${other} on ${known.length} images: ${what} ${one} is better on ${(100 * won).toFixed(0)} % of them (ties count half). Above 0 means ${one} is better.`;
}

function drawHistogram(node, gaps, head, one, other) {
  const most = Math.max(...gaps.map(Math.abs), 1e-9);
  const width = (2 * most) / BINS;
  const counts = new Array(BINS).fill(0);
  for (const gap of gaps) counts[Math.min(BINS - 1, Math.floor((gap + most) / width))] += 1;
  const factor = head.share ? 100 : 1;
  const middles = counts.map((_, bin) => factor * (-most + (bin + 0.5) * width));
  const ways = [`← ${other} better`, `difference of ${head.name}`, `${one} better →`];
  const narrow = node.clientWidth < 8 * ways.join(" · ").length; // a name wider than the chart would take its room
  drawChart(node, {
    grid: { left: 48, right: 16, top: 30, bottom: narrow ? 76 : 44 },
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" } },
    xAxis: { type: "category", data: middles.map((value) => Number((Math.abs(value) < 1e-9 * factor ? 0 : value).toPrecision(2))), name: ways.join(narrow ? "\n" : " · "), nameLocation: "middle", nameGap: 28, nameTextStyle: { color: "@soft", lineHeight: 15 } },
    yAxis: { type: "value", name: "images", minInterval: 1 },
    series: [{
      type: "bar", name: "images", barCategoryGap: "8%",
      data: counts.map((count, bin) => ({ value: count, itemStyle: { color: middles[bin] > 0 ? "@primary" : middles[bin] < -1e-12 ? "@secondary" : "@control" } })),
    }],
  });
}

/** The images with the largest differences; those the page has pictures of where there are any. */
function drawDisagreement(one, other, gaps, head, by) {
  const seen = new Map((DATA.pictures?.samples ?? []).map((sample, place) => [sample, place]));
  const order = [...gaps.keys()].filter((sample) => !Number.isNaN(gaps[sample]) && (!seen.size || seen.has(sample)))
    .sort((a, b) => Math.abs(gaps[b]) - Math.abs(gaps[a])).slice(0, DISAGREE);
  const line = (method, sample) => `${METHODS[method]} ${shown(scoreOf(by, method, sample), head.share)}`;
  const told = seen.size && seen.size < COUNT ? ` Of the ${seen.size} images with pictures; ${COUNT} were scored.` : "";
  byId("disagree-said").textContent = told;
  byId("disagree").replaceChildren(...order.map((sample) => {
    const place = seen.get(sample);
    const pictures = place === undefined ? [] : [one, other].map((method) => el("button", {
      type: "button", class: "open", "aria-label": `Open ${METHODS[method]} on ${DATA.samples[sample]}`,
      onclick: () => openViewer(method, place),
    }, tilePicture(place, METHODS[method])));
    return el("figure", { class: "tile" }, el("div", { class: "twin" }, ...pictures),
      el("figcaption", {}, el("b", { text: DATA.samples[sample] }), el("span", { text: line(one, sample) }), el("span", { text: line(other, sample) })));
  }));
}

/** The mean of one method by one metric, groups weighing the same. */
const meanOf = (head, method) => meanInterval(scoresOf(head, method), 0).value;

function agreement() {
  const [across, up] = ["across", "up"].map((id) => Number(byId(id).value));
  const images = byId("points").value === "images";
  const method = Number(byId("points-method").value);
  byId("points-of").hidden = !images;
  const factor = (head) => (DATA.heads[head].share ? 100 : 1);
  const points = images
    ? DATA.samples.map((name, sample) => ({ name, pair: [scoreOf(across, method, sample), scoreOf(up, method, sample)], role: "" }))
    : METHODS.map((name, place) => ({ name, pair: [meanOf(across, place), meanOf(up, place)], role: DATA.methods[place].role }));
  const known = points.filter(({ pair }) => !pair.some(Number.isNaN));
  return { across, up, images, method, known, scale: [factor(across), factor(up)] };
}

function drawAgreement() {
  const { across, up, images, method, known, scale } = agreement();
  const judged = images ? known : known.filter((point) => !["control", "ceiling"].includes(point.role));
  const rho = spearman(judged.map((point) => point.pair));
  const what = images ? `${judged.length} images of ${METHODS[method]}` : `${judged.length} methods, controls left out`;
  const words = Number.isNaN(rho) ? "no rank correlation can be told" : `rank correlation ${rho.toFixed(2)}`;
  const [a, b] = [DATA.heads[across], DATA.heads[up]];
  const turn = (a.better === "lower") !== (b.better === "lower") && a.better && b.better
    ? " Lower is better for one and higher for the other: where they agree, the correlation is negative." : "";
  byId("agree").textContent = `${headName(a)} and ${headName(b)} over ${what}: ${words} (Spearman).${turn}`;
  const looks = { control: "@control", ceiling: "@soft", own: "@own" };
  drawChart(byId("agree-chart"), {
    grid: { left: 60, right: images ? 24 : 110, top: 24, bottom: 52 },
    xAxis: { type: "value", scale: true, name: headName(a), nameLocation: "middle", nameGap: 32 },
    yAxis: { type: "value", scale: true, name: headName(b), nameLocation: "end", nameTextStyle: { align: "left" } },
    tooltip: { trigger: "item" },
    series: [{
      type: "scatter", symbolSize: images ? 7 : 11, name: "",
      data: known.map(({ name, pair, role }) => ({
        name, value: pair.map((value, side) => Number((scale[side] * value).toPrecision(4))), itemStyle: { color: looks[role] ?? "@method", opacity: images ? 0.6 : 1 },
      })),
      label: { show: !images, formatter: "{b}", position: "right", color: "@ink", fontSize: 11, width: 150, overflow: "truncate" },
      labelLayout: { hideOverlap: true, moveOverlap: "shiftY" },
    }],
  });
}

function startCompare() {
  const heads = DATA.heads.map(headName);
  for (const id of ["one", "other", "points-method"]) fillSelect(byId(id), METHODS);
  for (const id of ["by", "across", "up"]) fillSelect(byId(id), heads);
  const ours = METHODS.map((_, place) => place).filter((place) => !["control", "ceiling"].includes(DATA.methods[place].role));
  byId("one").value = byId("points-method").value = ours[0] ?? 0;
  byId("other").value = ours[1] ?? Math.min(1, METHODS.length - 1);
  byId("up").value = Math.min(1, heads.length - 1);
  for (const id of ["one", "other", "by"]) byId(id).addEventListener("change", drawPaired);
  for (const id of ["across", "up", "points", "points-method"]) byId(id).addEventListener("change", drawAgreement);
  byId("swap").addEventListener("click", () => {
    [byId("one").value, byId("other").value] = [byId("other").value, byId("one").value];
    drawPaired();
  });
  const pairRows = () => {
    const [one, other, by] = ["one", "other", "by"].map((id) => Number(byId(id).value));
    return DATA.samples.map((sample, place) => ({
      image: sample, by: heads[by], [`of ${METHODS[one]}`]: scoreOf(by, one, place), [`of ${METHODS[other]}`]: scoreOf(by, other, place),
    }));
  };
  const pointRows = () => {
    const { across, up, known } = agreement();
    return known.map(({ name, pair }) => ({ name, [`across: ${heads[across]}`]: pair[0], [`up: ${heads[up]}`]: pair[1] }));
  };
  const paired = byId("paired-chart"), agreed = byId("agree-chart");
  paired.after(takeaway("paired", (kind) => picture(paired, live.get(paired).option, kind), pairRows));
  agreed.after(takeaway("metrics", (kind) => picture(agreed, live.get(agreed).option, kind), pointRows));
  ready.then(() => {
    whenNear(paired, drawPaired);
    whenNear(agreed, drawAgreement);
  });
}

if (DATA.samples.length && DATA.heads.length) startCompare();

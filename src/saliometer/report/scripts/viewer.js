// One map large, with every score it got.
const viewer = byId("viewer");
let viewed = { method: 0, place: 0 };

function drawViewer() {
  const { method, place } = viewed;
  const sample = DATA.pictures.samples[place];
  byId("viewer-name").textContent = `${METHODS[method]} on ${DATA.samples[sample]}`;
  byId("viewer-caption").textContent = DATA.pictures.captions[place];
  byId("viewer-picture").replaceChildren(tilePicture(place, METHODS[method]));
  const rows = DATA.heads.map((head, number) => {
    const mine = scoreOf(number, method, sample);
    const all = METHODS.map((_, other) => scoreOf(number, other, sample)).filter((value) => !Number.isNaN(value));
    const sign = head.better === "lower" ? -1 : 1;
    const better = all.filter((value) => sign * value > sign * mine).length;
    const tied = all.filter((value) => value === mine).length > 1 ? "=" : "";
    const rank = Number.isNaN(mine) || !head.better ? "" : `${better + 1}${tied} of ${all.length}`;
    return el("tr", {}, el("th", { scope: "row", class: "left", text: headName(head) }),
      el("td", { class: "number", text: shown(mine, head.share) }), el("td", { text: rank }));
  });
  byId("viewer-scores").replaceChildren(
    el("thead", {}, el("tr", {}, el("th", { class: "left", text: "Metric" }), el("th", { text: "this map" }), el("th", { text: "place among maps of this image" }))),
    el("tbody", {}, ...rows));
}

function openViewer(method, place) {
  viewed = { method, place };
  drawViewer();
  if (!viewer.open) viewer.showModal();
}

function stepViewer(images, methods) {
  const count = DATA.pictures.samples.length;
  viewed.place = (viewed.place + images + count) % count;
  viewed.method = (viewed.method + methods + METHODS.length) % METHODS.length;
  drawViewer();
}

if (DATA.pictures) {
  const moves = { "viewer-previous": [-1, 0], "viewer-next": [1, 0], "viewer-up": [0, -1], "viewer-down": [0, 1] };
  for (const [id, by] of Object.entries(moves)) byId(id).addEventListener("click", () => stepViewer(...by));
  byId("viewer-alone").addEventListener("click", (event) => {
    event.target.setAttribute("aria-pressed", viewer.classList.toggle("alone"));
  });
  byId("viewer-close").addEventListener("click", () => viewer.close());
  viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });
  viewer.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!by || event.target.closest(".scroll")) return; // the table scrolls with the same keys
    event.preventDefault();
    stepViewer(...by);
  });
}

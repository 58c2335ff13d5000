// The gallery: one image under every method, or one method over every image, best or worst first.
const METHODS = DATA.methods.map((method) => method.name);
const gallery = byId("gallery");
const look = { mode: "image", place: 0, method: 0, head: 0, order: "" };
let lookAt = () => {};

/** Where the page's pictures stand in the chosen order: undefined scores last. */
function lookOrder() {
  const places = DATA.pictures.samples.map((_, place) => place);
  if (!look.order || look.mode !== "method") return places;
  const head = DATA.heads[look.head];
  const sign = (head.better === "lower" ? 1 : -1) * (look.order === "best" ? 1 : -1);
  const score = (place) => scoreOf(look.head, look.method, DATA.pictures.samples[place]);
  const known = places.filter((place) => !Number.isNaN(score(place))).sort((a, b) => sign * (score(a) - score(b)));
  return [...known, ...places.filter((place) => Number.isNaN(score(place)))];
}

/** The numbers under a map: the chosen score, and PAFL and SAFL beside each other where a truth is known. */
function tileScores(method, place) {
  const sample = DATA.pictures.samples[place];
  const chosen = DATA.heads[look.head];
  if (!chosen) return [];
  const found = [el("span", { text: `${chosen.name} ${shown(scoreOf(look.head, method, sample), chosen.share)}` })];
  if (chosen.metric === "pafl") {
    const safl = DATA.heads.findIndex((one) => one.metric === "safl" && one.definition === chosen.definition);
    if (safl >= 0) found.push(el("span", { class: "on-secondary", text: `safl ${shown(scoreOf(safl, method, sample), true)}` }));
  }
  return found;
}

function tile(method, place, title) {
  const made = el("figure", { class: `tile ${method === null ? "" : DATA.methods[method].role}` },
    el("button", {
      type: "button", class: "open", disabled: method === null,
      "aria-label": method === null ? title : `Open ${METHODS[method]} on ${DATA.samples[DATA.pictures.samples[place]]}`,
      onclick: () => openViewer(method, place),
    }, tilePicture(place, method === null ? null : METHODS[method])),
    el("figcaption", {}, el("b", { text: title }), ...(method === null ? [] : tileScores(method, place))));
  return made;
}

function drawGallery() {
  for (const node of document.querySelectorAll("#look [data-for]")) node.hidden = node.dataset.for !== look.mode;
  byId("look-mode").value = look.mode;
  byId("look-image").value = look.place;
  byId("look-method").value = look.method;
  byId("look-head").value = look.head;
  for (const order of ["best", "worst"]) byId(`look-${order}`).setAttribute("aria-pressed", look.order === order);
  const { samples, captions } = DATA.pictures;
  if (look.mode === "image") {
    byId("look-said").textContent = `${DATA.samples[samples[look.place]]}: ${captions[look.place]}. Image ${look.place + 1} of ${samples.length}.`;
    gallery.replaceChildren(tile(null, look.place, "the image"),
      ...METHODS.map((name, method) => tile(method, look.place, name)));
  } else {
    const head = DATA.heads[look.head];
    const how = look.order ? `${look.order} first by ${head.name}` : "as they came";
    const all = samples.length < COUNT ? ` These are the images with pictures; ${COUNT} were scored.` : "";
    byId("look-said").textContent = `${METHODS[look.method]} on ${samples.length} images, ${how}.${all}`;
    gallery.replaceChildren(...lookOrder().map((place) => tile(look.method, place, DATA.samples[samples[place]])));
  }
}

function stepImage(by) {
  const count = DATA.pictures.samples.length;
  look.place = (look.place + by + count) % count;
}
function stepMethod(by) {
  look.method = (look.method + by + METHODS.length) % METHODS.length;
}

function galleryKeys(event) {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = {
    ArrowLeft: () => stepImage(-1), ArrowRight: () => stepImage(1),
    ArrowUp: () => stepMethod(-1), ArrowDown: () => stepMethod(1),
  };
  const move = moves[event.key];
  if (!move) return;
  if (look.mode === "image" ? event.key.startsWith("ArrowU") || event.key.startsWith("ArrowD") : event.key.startsWith("ArrowL") || event.key.startsWith("ArrowR")) return;
  event.preventDefault();
  move();
  drawGallery();
  gallery.focus();
}

/** The picture that shows most: the one with the most objects. */
function richest() {
  const counts = DATA.pictures.samples.map((_, place) => DATA.pictures.outlines[place]?.length ?? 0);
  return counts.indexOf(Math.max(...counts));
}

function startGallery() {
  look.place = richest();
  look.method = Math.max(0, DATA.methods.findIndex((method) => !["control", "ceiling"].includes(method.role)));
  fillSelect(byId("look-image"), DATA.pictures.samples.map((sample, place) => `${DATA.samples[sample]} – ${DATA.pictures.captions[place]}`));
  fillSelect(byId("look-method"), METHODS);
  fillSelect(byId("look-head"), DATA.heads.map(headName));
  const bound = { "look-image": "place", "look-method": "method", "look-head": "head" };
  for (const [id, key] of Object.entries(bound)) {
    byId(id).addEventListener("change", (event) => { look[key] = Number(event.target.value); drawGallery(); });
  }
  byId("look-mode").addEventListener("change", (event) => { look.mode = event.target.value; drawGallery(); });
  byId("look-previous").addEventListener("click", () => { stepImage(-1); drawGallery(); });
  byId("look-next").addEventListener("click", () => { stepImage(1); drawGallery(); });
  for (const order of ["best", "worst"]) {
    byId(`look-${order}`).addEventListener("click", () => { look.order = look.order === order ? "" : order; drawGallery(); });
  }
  byId("look-blend").addEventListener("input", (event) => { blend = event.target.value / 100; repaint(); });
  byId("look-outlines")?.addEventListener("change", (event) => document.body.classList.toggle("bare", !event.target.checked));
  gallery.addEventListener("keydown", galleryKeys);
  lookAt = (method, head) => {
    Object.assign(look, { mode: "method", method: METHODS.indexOf(method), order: "worst" });
    if (head >= 0) look.head = head;
    drawGallery();
    byId("look").scrollIntoView();
    gallery.focus({ preventScroll: true });
  };
  ready.then(drawGallery);
}

if (DATA.pictures) startGallery();

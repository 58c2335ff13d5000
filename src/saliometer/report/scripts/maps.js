// Maps: one byte a pixel, coloured here, from blue (against the class) over white to red (for it).
const ANCHORS = [[33, 102, 172], [103, 169, 207], [209, 229, 240], [255, 255, 255], [253, 219, 199], [239, 138, 98], [178, 24, 43]];
const SHADES = Array.from({ length: 255 }, (_, place) => {
  const signed = (place - 127) / 127;
  const at = (Math.sign(signed) * Math.sqrt(Math.abs(signed)) + 1) / 2 * (ANCHORS.length - 1);
  const below = Math.min(Math.floor(at), ANCHORS.length - 2);
  return ANCHORS[below].map((value, channel) => Math.round(value + (at - below) * (ANCHORS[below + 1][channel] - value)));
});

const unpackedMaps = new Map(); // method -> promise of its maps, unpacked when first seen
function mapsOf(method) {
  if (!unpackedMaps.has(method)) {
    const kept = DATA.pictures.maps[method];
    unpackedMaps.set(method, kept ? unpacked(kept) : Promise.resolve(null));
  }
  return unpackedMaps.get(method);
}

let blend = Number(byId("look-blend")?.value ?? 100) / 100; // 0 the image, 1 the map alone

/** Colour one map; half way every pixel is as opaque as it is strong, then white comes in behind it. */
function paint(canvas, values) {
  const context = canvas.getContext("2d");
  const picture = context.createImageData(canvas.width, canvas.height);
  for (let pixel = 0; pixel < values.length; pixel += 1) {
    const strength = Math.sqrt(Math.abs(values[pixel]) / 127);
    const alpha = blend <= 0.5 ? strength * 2 * blend : 1 - (1 - strength) * (2 - 2 * blend);
    picture.data.set(SHADES[values[pixel] + 127], 4 * pixel);
    picture.data[4 * pixel + 3] = Math.round(255 * alpha);
  }
  context.putImageData(picture, 0, 0);
}

const painted = new Map(); // canvas -> its values, to paint anew when the slider moves
function repaint() {
  for (const [canvas, values] of painted) {
    if (canvas.isConnected) paint(canvas, values);
    else painted.delete(canvas);
  }
}

/** A picture with a method's map over it and outlines around objects; `place` is among the page's pictures. */
function tilePicture(place, method) {
  const { photos, outlines } = DATA.pictures;
  const rows = Math.ceil(DATA.pictures.samples.length / photos.columns);
  const share = (at, count) => (count > 1 ? (100 * at) / (count - 1) : 0);
  const column = place % photos.columns;
  const row = Math.floor(place / photos.columns);
  const photo = el("div", {
    class: "photo",
    style: `background-size:${photos.columns * 100}% ${rows * 100}%;background-position:${share(column, photos.columns)}% ${share(row, rows)}%`,
  });
  const frame = el("div", { class: "frame", style: `aspect-ratio:${photos.width}/${photos.height}` }, photo);
  if (method !== null) {
    const canvas = el("canvas", { width: 1, height: 1, "aria-hidden": "true" });
    frame.append(canvas);
    whenNear(frame, async () => {
      const maps = await mapsOf(method);
      const values = maps && mapAt(maps, place);
      if (!values) return frame.classList.add("none");
      [, canvas.height, canvas.width] = maps.shape;
      painted.set(canvas, values);
      paint(canvas, values);
    });
  }
  const drawn = outlines[place] ?? [];
  if (drawn.length) {
    frame.append(el("svg", { viewBox: `0 0 ${photos.width} ${photos.height}`, class: "outlines", "aria-hidden": "true" },
      ...drawn.map((one) => el("path", { d: one.path, class: one.role }))));
  }
  return frame;
}

/** One image's map, or nothing where the method has none. */
function mapAt(maps, place) {
  const size = maps.shape[1] * maps.shape[2];
  const values = maps.values.subarray(place * size, (place + 1) * size);
  return values[0] === -128 ? null : values;
}

if (DATA.pictures) document.documentElement.style.setProperty("--sheet", `url("${DATA.pictures.photos.sheet}")`);

// Results as numbers, as a heat map, or as an image.

/** How an output can be shown: an image has 1, 3 or 4 numbers for each pixel, 0 to 1. */
export function viewsOf({ shape, element }) {
  if ("fields" in element || shape.some((each) => each > 4096)) return ["numbers"];
  const views = ["numbers"];
  const lanes = element.shape.length === 1 ? element.shape[0] : 1;
  if (element.shape.length) return shape.length === 2 && lanes > 2 ? ["image", ...views] : views;
  if (shape.length === 1) views.push("heat map");
  if (shape.length === 2) views.unshift("heat map", "image");
  if (shape.length === 3 && [3, 4].includes(shape[2])) views.unshift("image");
  return views;
}

/** Draw data on a canvas. */
export function draw(canvas, data, { shape, element }, view) {
  const [rows, columns] = shape.length === 1 ? [1, shape[0]] : shape;
  const lanes = shape.length === 3 ? shape[2] : (element.shape[0] ?? 1);
  [canvas.height, canvas.width] = [rows, columns];
  if (!rows || !columns) return;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const { least, most } = rangeOf(data);
  for (let i = 0; i < rows * columns; i++) {
    if (view === "heat map") {
      const t = most > least ? (data[i] - least) / (most - least) : 0.5;
      image.data.set(heat(t), 4 * i);
    } else {
      const pixel = [0, 1, 2].map((lane) => 255 * data[i * lanes + (lanes < 3 ? 0 : lane)]);
      image.data.set([...pixel, lanes === 4 ? 255 * data[i * 4 + 3] : 255], 4 * i);
    }
  }
  context.putImageData(image, 0, 0);
}

const heat = (t) => [255 * t, 255 * t * t, 255 * (1 - t) * 0.6 + 60 * t, 255];

/** The least and the greatest number; of records, which have none, infinities. */
export function rangeOf(data) {
  let [least, most] = [Infinity, -Infinity];
  for (const x of data) {
    if (x < least) least = x;
    if (x > most) most = x;
  }
  return { least, most };
}

const MOST = 32;
export const show = (x) => (typeof x === "number" ? `${Number.isInteger(x) ? x : x.toPrecision(5)}` : JSON.stringify(x));

/** Write data by rows, the beginning of each. */
export function text(data, { shape, element }) {
  const lanes = "fields" in element ? 1 : element.shape.reduce((a, b) => a * b, 1);
  const width = shape.length < 2 ? MOST : shape.at(-1) * lanes;
  const rows = [];
  for (let at = 0; at < data.length && rows.length < MOST; at += width) {
    const row = [...data.slice(at, at + Math.min(width, MOST))].map(show);
    rows.push(row.join("  ") + (shape.length > 1 && width > MOST ? "  ..." : ""));
  }
  const shown = shape.length < 2 ? rows.slice(0, 8) : rows;
  const more = shown.length * width < data.length;
  return shown.join("\n") + (more ? "\n..." : "");
}

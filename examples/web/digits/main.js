// A drawing, scaled as the digits were that the network has seen, and what it says of it.
import { open } from "kerngen";
import { recognise, shrink } from "./kernels/digits.js";
import { readSafetensors } from "./safetensors.js";

const SIDE = 32; // scikit-learn's digits were pictures of 32 x 32, before they were shrunk
const PEN = 3.2; // as wide as a line is there
const $ = (id) => document.getElementById(id);
const canvas = $("drawing");
const pen = canvas.getContext("2d");
let strokes = [];

/** Draw all strokes, moved by `-left, -top` and scaled, so that they fill a picture. */
function draw(context, scale, left, top, width) {
  context.lineWidth = width;
  context.lineCap = context.lineJoin = "round";
  for (const stroke of strokes) {
    context.beginPath();
    stroke.forEach(([x, y]) => context.lineTo((x - left) * scale, (y - top) * scale));
    // A point is a line of no length.
    if (stroke.length === 1) context.lineTo((stroke[0][0] - left) * scale, (stroke[0][1] - top) * scale);
    context.stroke();
  }
}

/** Return the ink of the drawing, 1 or 0, in the middle of a square and as high as that. */
function ink() {
  const [xs, ys] = [0, 1].map((axis) => strokes.flat().map((point) => point[axis]));
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = (SIDE - PEN) / Math.max(bottom - top, right - left, 1);
  const margin = (length) => (SIDE / scale - length) / 2;
  const small = new OffscreenCanvas(SIDE, SIDE).getContext("2d");
  draw(small, scale, left - margin(right - left), top - margin(bottom - top), PEN);
  const { data } = small.getImageData(0, 0, SIDE, SIDE);
  return Float32Array.from({ length: SIDE * SIDE }, (_, i) => Number(data[4 * i + 3] > 127));
}

/** Show how probable each digit is. */
function show(probabilities) {
  const best = probabilities.indexOf(Math.max(...probabilities));
  $("guess").textContent = best;
  const rows = [...probabilities].flatMap((p, digit) => {
    const [name, bar, number] = ["span", "div", "span"].map((tag) => document.createElement(tag));
    name.textContent = digit;
    bar.style.width = `${100 * p}%`;
    number.textContent = `${(100 * p).toFixed(1)} %`;
    return [name, bar, number];
  });
  $("bars").replaceChildren(...rows);
}

async function main() {
  const ctx = await open();
  const weights = await readSafetensors(new URL("digits.safetensors", import.meta.url), ctx);
  const layers = ["hidden", "output"].flatMap((name) => [
    weights[`${name}.weight`],
    weights[`${name}.bias`],
  ]);
  let [asked, busy] = [false, false];

  // One look at a time: what is drawn meanwhile is looked at once, afterwards.
  const look = async () => {
    asked = true;
    if (busy) return;
    busy = true;
    try {
      while (asked && strokes.length) {
        asked = false;
        await lookOnce();
      }
    } finally {
      busy = false;
    }
  };
  const lookOnce = async () => {
    const drawn = strokes;
    const began = performance.now();
    const result = ctx.scope(() => recognise(shrink(ctx.tensor(ink(), [SIDE, SIDE])), ...layers));
    const probabilities = await result.read();
    result.free();
    if (strokes !== drawn) return; // it was cleared
    show(probabilities);
    $("status").textContent = `In ${(performance.now() - began).toFixed(1)} ms.`;
  };

  const point = ({ offsetX, offsetY }) => {
    const scale = canvas.width / canvas.clientWidth;
    strokes.at(-1).push([offsetX * scale, offsetY * scale]);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    draw(pen, 1, 0, 0, 24);
    look().catch(fail);
  };
  let down = false;
  canvas.onpointerdown = (event) => {
    down = true;
    strokes.push([]);
    point(event);
  };
  canvas.onpointermove = (event) => down && point(event);
  window.onpointerup = () => (down = false);
  $("clear").onclick = () => {
    strokes = [];
    pen.clearRect(0, 0, canvas.width, canvas.height);
    $("guess").textContent = "";
    $("bars").replaceChildren();
  };
  $("status").textContent = "Ready.";
}

function fail(error) {
  $("status").textContent = error.message;
  $("status").className = "error";
}

main().catch(fail);

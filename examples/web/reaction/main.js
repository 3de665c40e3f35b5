// Steps of the reaction, as many as a frame has time for, and their picture on a canvas.
import { open } from "kerngen";
import { paint, react, shade } from "./kernels/reaction.js";

const SIDE = 384;
const FRAME = 1000 / 60;
const PATTERNS = {
  Coral: [0.0545, 0.062],
  Fingerprints: [0.037, 0.06],
  Mitosis: [0.0367, 0.0649],
  Waves: [0.014, 0.045],
};

const $ = (id) => document.getElementById(id);
const canvas = $("picture");
const strokes = [];
let down = false;

/** Make the state: food everywhere, and a few spots of what eats it. */
function begin(ctx) {
  const cells = ctx.tensor(
    Float32Array.from({ length: 2 * SIDE * SIDE }, (_, i) => 1 - (i % 2)),
    [SIDE, SIDE],
    "vec2f",
  );
  for (let i = 0; i < 12; i++)
    paint(cells, { row: Math.random() * SIDE, column: Math.random() * SIDE });
  return cells;
}

async function main() {
  const ctx = await open();
  const context = canvas.getContext("2d");
  const rgba = ctx.empty([SIDE, SIDE], "u32");
  let [cells, next] = [begin(ctx), ctx.empty([SIDE, SIDE], "vec2f")];
  let [steps, frames, since] = [4, 0, performance.now()];
  $("clear").onclick = () => (cells = begin(ctx));

  const frame = async () => {
    const started = performance.now();
    const [feed, kill] = [$("feed").valueAsNumber, $("kill").valueAsNumber];
    for (const { row, column } of strokes.splice(0)) paint(cells, { row, column });
    for (let i = 0; i < steps; i++) {
      react(cells, { feed, kill, out: next });
      [cells, next] = [next, cells];
    }
    shade(cells, { out: rgba });
    const colours = new Uint8ClampedArray((await rgba.read()).buffer);
    context.putImageData(new ImageData(colours, SIDE), 0, 0);

    // Part of a frame is computed: the rest is the browser's.
    const took = performance.now() - started;
    if (took > FRAME * 0.7 && steps > 1) steps--;
    else if (took < FRAME * 0.5 && steps < 16) steps++;
    if (++frames === 30) {
      const rate = (30 * 1000) / (performance.now() - since);
      $("rate").textContent = `${rate.toFixed(0)} frames a second, of ${steps === 1 ? "one step" : `${steps} steps`}.`;
      [frames, since] = [0, performance.now()];
    }
    requestAnimationFrame(() => frame().catch(fail));
  };
  await frame();
}

function fail(error) {
  $("rate").textContent = error.message;
  $("rate").className = "error";
}

function choose() {
  [$("feed").value, $("kill").value] = PATTERNS[$("pattern").value];
  label();
}

function label() {
  for (const name of ["feed", "kill"]) $(name).nextElementSibling.value = $(name).value;
}

canvas.onpointerdown = canvas.onpointermove = (event) => {
  if (event.type === "pointerdown") down = true;
  if (!down) return;
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const column = ((event.clientX - left) / width) * SIDE;
  strokes.push({ row: ((event.clientY - top) / height) * SIDE, column });
};
window.onpointerup = () => (down = false);
$("pattern").append(...Object.keys(PATTERNS).map((name) => new Option(name)));
$("pattern").onchange = choose;
$("feed").oninput = $("kill").oninput = label;
choose();
main().catch(fail);

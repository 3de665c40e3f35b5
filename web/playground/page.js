// The playground: a source is compiled as it is typed, and its kernels run here.
import { open } from "kerngen";
import { EXAMPLES } from "./examples.js";
import { draw } from "./inputs.js";

const $ = (id) => document.getElementById(id);
const BASE = "https://page.invalid/";

let worker, timer, sent = 0, restarts = 0;
let files = {};
const context = open({ read: async (url) => files[url.pathname.slice(1)] });
context.catch((error) => ($("result").textContent = `${error.message} Compiling works.`));

function start() {
  worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    if (data.fatal) restart(data.fatal);
    else if (data.ready) $("status").textContent = "Ready.";
    else if (data.id === sent) show(data);
  };
}

// Python in a page ends for good where its stack does: another one takes its place.
function restart(why) {
  worker.terminate();
  if (++restarts > 3) return void ($("status").textContent = `The compiler failed: ${why}`);
  $("status").textContent = "The compiler failed on this text, and is loaded again.";
  $("found").textContent = why;
  start();
}

function compile() {
  clearTimeout(timer);
  timer = setTimeout(() => worker.postMessage({ id: ++sent, text: $("source").value }), 100);
}

function show(data) {
  restarts = 0;
  $("found").replaceChildren(...data.found.map(message));
  if (!data.found.length) $("found").textContent = "No errors.";
  if (!data.kernels.length) return;
  files = data.files;
  const pane = $("pane").value;
  const names = Object.keys(files).sort((a, b) => rank(a) - rank(b));
  $("pane").replaceChildren(...names.map((name) => new Option(name)));
  if (names.includes(pane)) $("pane").value = pane;
  $("output").textContent = files[$("pane").value];
  load().catch((error) => ($("result").textContent = error.message));
}

const rank = (name) =>
  [".plan", ".d.ts", ".js", ".py", ".wgsl"].findIndex((end) => name.endsWith(end));

function message({ severity, code, headline, line, column, hint }) {
  const item = document.createElement("div");
  item.className = severity;
  const place = line ? `${line}:${column} ` : "";
  item.textContent = `${place}${severity}${code ? `[${code}]` : ""}: ${headline}`;
  if (hint) item.textContent += `\n    ${hint}`;
  return item;
}

// The module that was generated, with the page in place of a server.
async function load() {
  const text = files["page.js"].replaceAll("import.meta.url", JSON.stringify(BASE));
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const module = await import(url);
  URL.revokeObjectURL(url);
  const kernels = Object.fromEntries(
    Object.entries(module).filter(([, value]) => value.kernel),
  );
  ask(kernels);
}

function field(label, value, step) {
  const input = Object.assign(document.createElement("input"), { type: "number", value, step });
  input.dataset.name = label;
  const element = document.createElement("label");
  element.append(`${label} `, input);
  return element;
}

// A form for lengths and scalars of a kernel.
function ask(kernels) {
  const before = Object.fromEntries(
    [...$("inputs").querySelectorAll("input")].map((each) => [each.dataset.name, each.value]),
  );
  const choice = document.createElement("select");
  choice.append(...Object.keys(kernels).map((name) => new Option(name)));
  const button = Object.assign(document.createElement("button"), { textContent: "Run" });
  const build = () => {
    const { plan, parts } = kernels[choice.value].kernel;
    const fields = plan.dims.map((dim) => field(dim, before[dim] ?? 64, 1));
    for (const [name, type] of plan.scalars)
      if (/^[fiu]32$/.test(type))
        fields.push(field(name, before[name] ?? parts.defaults?.[name] ?? 1, "any"));
    fields.push(field("seed", before.seed ?? 1, 1));
    $("inputs").replaceChildren(choice, ...fields, button);
  };
  choice.onchange = build;
  build();
  button.onclick = () =>
    run(kernels[choice.value]).catch((error) => {
      $("result").textContent = `${error.name}: ${error.message}`;
    });
}

async function run(kernel) {
  const ctx = await context;
  const values = Object.fromEntries(
    [...$("inputs").querySelectorAll("input")].map((each) => [
      each.dataset.name,
      each.valueAsNumber,
    ]),
  );
  const { seed, ...given } = values;
  const { plan } = kernel.kernel;
  const tensors = draw(ctx, plan, given, seed);
  const scalars = Object.fromEntries(plan.scalars.map(([name]) => [name, given[name]]));
  const call = () => kernel(...tensors, { ...scalars, ctx });
  call();
  await ctx.submit(); // pipelines are made
  const begin = performance.now();
  const made = call();
  const outputs = made ? (made.read ? [made] : Object.values(made)) : tensors;
  const data = await outputs[0].read();
  const took = performance.now() - begin;
  const shape = outputs[0].shape;
  $("result").textContent =
    `${plan.name}: ${outputs[0]} in ${took.toFixed(1)} ms, ` +
    `by ${ctx.choices(kernel, given).join(", ")}`;
  picture(data, shape);
  $("numbers").hidden = false;
  $("numbers").textContent =
    [...data.slice(0, 64)].map((each) => each.toPrecision?.(5) ?? JSON.stringify(each)).join("  ") +
    (data.length > 64 ? "  ..." : "");
  [...tensors, ...outputs].forEach((each) => each.free());
}

// A heat map of a matrix, from its least number to its greatest.
function picture(data, shape) {
  const canvas = $("picture");
  canvas.hidden = shape.length !== 2 || !data.length || data.length > 2 ** 22;
  if (canvas.hidden) return;
  [canvas.height, canvas.width] = shape;
  const [least, most] = data.reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [
    Infinity,
    -Infinity,
  ]);
  const image = canvas.getContext("2d").createImageData(canvas.width, canvas.height);
  data.forEach((x, i) => {
    const t = most > least ? (x - least) / (most - least) : 0.5;
    image.data.set([255 * t, 255 * t * t, 255 * (1 - t) * 0.6 + 60 * t, 255], 4 * i);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

const encode = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
const decode = (text) =>
  new TextDecoder().decode(Uint8Array.from(atob(text), (each) => each.charCodeAt(0)));

$("examples").append(...Object.keys(EXAMPLES).map((name) => new Option(name)));
$("examples").onchange = () => {
  $("source").value = EXAMPLES[$("examples").value];
  compile();
};
$("pane").onchange = () => ($("output").textContent = files[$("pane").value]);
$("share").onclick = () => {
  location.hash = encode($("source").value);
  void navigator.clipboard?.writeText(location.href);
};
$("source").oninput = compile;
$("source").value = location.hash ? decode(location.hash.slice(1)) : EXAMPLES.Softmax;
start();
compile();

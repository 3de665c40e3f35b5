// The compiler, in a worker: Python in WebAssembly, which never blocks the page.
import { loadPyodide } from "./pyodide/pyodide.mjs";
import { dropMemory, keepMemory, keptMemory, moduleFor } from "./snapshot.js";

const WARM = "/// Twice x.\nkernel twice(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i]; }\n";
/** Where Python imports the compiler from, as it is packed. */
const ARCHIVE = "/compiler.zip";
const here = (name) => new URL(name, import.meta.url).href;

/** Fetch an archive; each is compressed as a whole, which servers don't do for archives. */
async function unzipped(name) {
  const answer = await fetch(here(name));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  const stream = answer.body.pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** Start Python with its library. */
async function start(options) {
  const library = new Blob([await unzipped("./pyodide/python_stdlib.bin")]);
  const stdLibURL = URL.createObjectURL(library);
  const python = await loadPyodide({ indexURL: here("./pyodide/"), stdLibURL, ...options });
  URL.revokeObjectURL(stdLibURL);
  return python;
}

/** The compiler's functions by their names; the first text makes the parser's tables. */
function functions(python) {
  const page = python.pyimport("kerngen.report.page");
  page.check_page(WARM);
  return { check: page.check_page, compile: page.compile_page };
}

/** Load the compiler. */
async function load() {
  const archive = unzipped("./compiler.bin");
  const python = await start({ _makeSnapshot: true });
  python.FS.writeFile(ARCHIVE, new Uint8Array(await archive));
  python.runPython(`import sys; sys.path.insert(0, ${JSON.stringify(ARCHIVE)})`);
  keep = () => {
    // What JavaScript has of Python's can't be kept.
    Object.values(asked).forEach((each) => each.destroy());
    try {
      void keepMemory(python.makeMemorySnapshot());
    } catch (error) {
      console.warn(error);
    }
    Object.assign(asked, functions(python));
  };
  return functions(python);
}

/** Go on with the memory of an earlier visit; what may be imported later is fetched meanwhile. */
async function resume(memory) {
  const python = await start({ _loadSnapshot: memory, createPyodideModule: moduleFor(memory) });
  unzipped("./compiler.bin").then(
    (archive) => python.FS.writeFile(ARCHIVE, new Uint8Array(archive)),
    () => undefined,
  );
  return functions(python);
}

async function begin() {
  const memory = await keptMemory();
  if (!memory) return load();
  return resume(memory).catch(async (error) => {
    console.warn(error);
    await dropMemory();
    return load();
  });
}

let keep; // keeps Python's memory for the next visit, once
let asked;
const started = performance.now();
const compiler = begin();
compiler.then(
  (made) => {
    asked = made;
    postMessage({ ready: true, took: performance.now() - started });
  },
  (error) => postMessage({ fatal: String(error) }),
);

onmessage = async ({ data: { what, text } }) => {
  try {
    await compiler;
    const began = performance.now();
    const result = JSON.parse(asked[what](text));
    postMessage({ what, text, result, took: performance.now() - began });
    // The first text has loaded all that compiles.
    if (what === "compile" && keep) setTimeout(keep, 1000);
    if (what === "compile") keep = undefined;
  } catch (error) {
    // Python has no diagnostic for it: it may be at its end, and is begun anew.
    postMessage({ fatal: String(error) });
  }
};

// The compiler, in a worker: Python in WebAssembly, which never blocks the page.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const WARM = "/// Twice x.\nkernel twice(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i]; }\n";

async function begin() {
  const archive = fetch(new URL("./compiler.zip", import.meta.url)).then((it) => it.arrayBuffer());
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  python.unpackArchive(new Uint8Array(await archive), "zip", { extractDir: "/compiler" });
  python.runPython('import sys; sys.path.insert(0, "/compiler")');
  const page = python.pyimport("kerngen.report.page");
  page.check_page(WARM); // the parser's tables are made once
  return { check: page.check_page, compile: page.compile_page };
}

const started = performance.now();
const compiler = begin();
compiler.then(
  () => postMessage({ ready: true, took: performance.now() - started }),
  (error) => postMessage({ fatal: String(error) }),
);

onmessage = async ({ data: { what, text } }) => {
  try {
    const ask = (await compiler)[what];
    const began = performance.now();
    const result = JSON.parse(ask(text));
    postMessage({ what, text, result, took: performance.now() - began });
  } catch (error) {
    // Python has no diagnostic for it: it may be at its end, and is begun anew.
    postMessage({ fatal: String(error) });
  }
};

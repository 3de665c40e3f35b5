// The compiler, in a worker: Python in WebAssembly, which never blocks the page.
import { loadPyodide } from "./pyodide/pyodide.mjs";

async function begin() {
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  const archive = await (await fetch(new URL("./compiler.zip", import.meta.url))).arrayBuffer();
  python.unpackArchive(new Uint8Array(archive), "zip", { extractDir: "/compiler" });
  python.runPython('import sys; sys.path.insert(0, "/compiler")');
  return python.pyimport("kerngen.report.page").compile_page;
}

const compiler = begin();
compiler.then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ fatal: String(error) }),
);

onmessage = async ({ data: { id, text } }) => {
  try {
    const compile = await compiler;
    postMessage({ id, ...JSON.parse(compile(text)) });
  } catch (error) {
    // Python has no diagnostic for it: it may be at its end, and is begun anew.
    postMessage({ id, fatal: String(error) });
  }
};

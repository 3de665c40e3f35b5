// Python's memory with the compiler loaded, kept by the browser: later visits begin with it.
//
// It is made in the page, so that nobody downloads its 40 MB.  Pyodide reads it by options
// that it does not document, of the very build that made it: where that fails, all is loaded.

// tools/playground fills it in; it changes with any file.
const VERSION = "@VERSION@";
const PLACE = new URL("./memory", import.meta.url);
const CHUNK = 4 << 20;

const store = () => globalThis.caches?.open(VERSION);

/** Return the memory that was kept, if it was. */
export async function keptMemory() {
  const kept = await (await store())?.match(PLACE);
  return kept && new Uint8Array(await kept.arrayBuffer());
}

/** Keep memory for the next visit; a browser without room for it keeps none. */
export async function keepMemory(bytes) {
  await (await store())?.put(PLACE, new Response(bytes)).catch(() => undefined);
}

export async function dropMemory() {
  await (await store())?.delete(PLACE);
}

/** Make what Pyodide runs with room for a memory: it begins with 30 MB, and does not grow itself. */
export const moduleFor = (memory) => async (settings) => {
  const { default: create } = await import("./pyodide/pyodide.asm.mjs");
  const module = await create(settings);
  while (module.HEAP8.length < memory.length) module._malloc(CHUNK);
  return module;
};

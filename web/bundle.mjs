// Make `dist/min`, which production loads: `kerngen.js`, and two files that few pages need.
//
// esbuild bundles and shortens the names of properties that are the runtime's own; SWC, whose
// names of variables compress better, minifies.
import { minify } from "@swc/core";
import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";

/** What `dist/min/kerngen.js` loads when it needs it, in the words of the package. */
const LATE = ["messages", "dots"];

/**
 * The properties that are shortened: neither users, generated modules nor the texts of errors
 * read them, and WebGPU has none of these names.  No `in` may test for one.
 */
const INTERNAL = [
  ...["args", "array", "bindings", "bits", "dispatches", "inner", "kind", "lanes"],
  ...["shader", "slots", "steps", "stride", "strides"], // kernels, plans, types
  ...["block", "bound", "capacity", "check", "direct", "key", "shared", "tensors", "uid", "used"],
  ...["alignment", "made", "make", "memory", "recorder"], // contexts
  "storageBuffers",
  ...["acquire", "doomed", "drop", "fault", "freed", "keep", "release"], // memory
  ...["copy", "download", "ended", "flush", "group", "room", "step", "upload", "wipe"],
  ...["error", "groups", "launch", "pipeline", "uniformBytes", "view"], // calls
];

async function write(name, text) {
  const { code } = await minify(text, {
    module: true,
    compress: {
      // With these two, gzip makes more of it.
      booleans: false,
      evaluate: false,
      ecma: 2022,
      passes: 4,
      pure_getters: true,
      sequences: false,
      toplevel: true,
      unsafe_arrows: true,
      unsafe_methods: true,
    },
    mangle: { toplevel: true },
  });
  await writeFile(`dist/min/${name}.js`, code);
}

const { outputFiles } = await build({
  entryPoints: ["dist/core.js"],
  bundle: true,
  external: LATE.map((name) => `./${name}.js`),
  format: "esm",
  mangleProps: new RegExp(`^(${INTERNAL.join("|")})$`),
  minifySyntax: true,
  write: false,
});
await mkdir("dist/min", { recursive: true });
await write("kerngen", outputFiles[0].text);
for (const name of LATE) await write(name, await readFile(`dist/${name}.js`, "utf-8"));

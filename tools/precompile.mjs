// Make the two archives that the page loads: the compiler's bytecode, and Python's library.
//
//     node tools/precompile.mjs SOURCES LIBRARY
//
// Bytecode is that of one version of Python, so that Pyodide itself makes it.  Archives are
// compressed as a whole, which takes 15 % less than each file by itself: X.zip becomes X.bin.
import fs from "node:fs";
import zlib from "node:zlib";
import { loadPyodide } from "../web/node_modules/pyodide/pyodide.mjs";

const COMPILE = `
import compileall, pathlib, py_compile, zipfile

root = pathlib.Path("/packed")
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
assert compileall.compile_dir(
    root, quiet=1, legacy=True, stripdir="/packed", invalidation_mode=unchecked
)
with zipfile.ZipFile("/sources.zip", "w") as archive:
    for file in sorted(root.rglob("*")):
        if file.is_file() and file.suffix != ".py":
            # The same bytes for the same sources: no times.
            name = zipfile.ZipInfo(str(file.relative_to(root)))
            archive.writestr(name, file.read_bytes())
with zipfile.ZipFile("/packed_library.zip") as old, zipfile.ZipFile("/library.zip", "w") as archive:
    for name in old.namelist():
        archive.writestr(zipfile.ZipInfo(name), old.read(name))
`;

const [sources, library] = process.argv.slice(2);
const python = await loadPyodide();
python.unpackArchive(new Uint8Array(fs.readFileSync(sources)), "zip", { extractDir: "/packed" });
python.FS.writeFile("/packed_library.zip", new Uint8Array(fs.readFileSync(library)));
python.runPython(COMPILE);
for (const [file, made] of [[sources, "/sources.zip"], [library, "/library.zip"]]) {
  const bytes = zlib.gzipSync(python.FS.readFile(made), { level: 9 });
  fs.writeFileSync(file.replace(/zip$/, "bin"), bytes);
  fs.rmSync(file);
}

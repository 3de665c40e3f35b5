// Replace the sources in an archive by bytecode, which the Python of the page loads faster.
//
//     node tools/precompile.mjs ARCHIVE
//
// Bytecode is that of one version of Python, so that Pyodide itself makes it.
import fs from "node:fs";
import { loadPyodide } from "../web/node_modules/pyodide/pyodide.mjs";

const COMPILE = `
import compileall, pathlib, py_compile, zipfile

root = pathlib.Path("/packed")
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
assert compileall.compile_dir(
    root, quiet=1, legacy=True, stripdir="/packed", invalidation_mode=unchecked
)
with zipfile.ZipFile("/packed.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for file in sorted(root.rglob("*")):
        if file.is_file() and file.suffix != ".py":
            # The same bytes for the same sources: no times.
            name = zipfile.ZipInfo(str(file.relative_to(root)))
            archive.writestr(name, file.read_bytes(), zipfile.ZIP_DEFLATED)
`;

const [archive] = process.argv.slice(2);
const python = await loadPyodide();
python.unpackArchive(new Uint8Array(fs.readFileSync(archive)), "zip", { extractDir: "/packed" });
python.runPython(COMPILE);
fs.writeFileSync(archive, python.FS.readFile("/packed.zip"));

// Make the two archives that the page loads: bytecode of the compiler, and of Python's library.
//
//     node tools/precompile.mjs SOURCES LIBRARY
//
// Bytecode is that of one version of Python, so that Pyodide itself makes it.  Pyodide's own
// library is sources, of which it compiles 190 at each start: 3.2 s of a processor, 1.2 as
// bytecode.  Archives are compressed as a whole, which takes 15 % less than each file by
// itself: X.zip becomes X.bin.
import fs from "node:fs";
import zlib from "node:zlib";
import { loadPyodide } from "../web/node_modules/pyodide/pyodide.mjs";

// Of the library, what neither the compiler nor Pyodide imports: 1.4 MB.
const UNUSED = `
_pyrepl bdb configparser ctypes curses dbm doctest email ensurepip ftplib html http imaplib
mailbox mimetypes multiprocessing optparse pdb pickletools plistlib poplib profile pstats pydoc
pydoc_data smtplib sqlite3 statistics tkinter trace turtle unittest venv wsgiref xml xmlrpc
`;
const CODECS = "__init__ aliases ascii cp437 idna latin_1 utf_8";

const COMPILE = `
import compileall, pathlib, py_compile, shutil, sys, zipfile

def compiled(folder, archive, optimize=-1):
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    assert compileall.compile_dir(
        folder, quiet=1, legacy=True, stripdir=folder, invalidation_mode=unchecked,
        optimize=optimize,
    )
    with zipfile.ZipFile(archive, "w") as packed:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix != ".py":
                # The same bytes for the same sources: no times.
                name = zipfile.ZipInfo(str(file.relative_to(folder)))
                packed.writestr(name, file.read_bytes())

library = pathlib.Path("/packed_library")
for name in unused.split():
    shutil.rmtree(library / name, ignore_errors=True)
    (library / f"{name}.py").unlink(missing_ok=True)
for file in (library / "encodings").iterdir():
    if file.stem not in codecs.split():
        file.unlink()
# Without docstrings, a third of it.
compiled(library, "/library.zip", optimize=2)

# With the parser's tables, which take 0.3 s to make.
sys.dont_write_bytecode = True
sys.path.insert(0, "/packed")
from kerngen.syntax.parser import build_parser, grammar_text
with open("/packed/kerngen/syntax/grammar.tables", "wb") as file:
    build_parser(grammar_text()).save(file)
compiled(pathlib.Path("/packed"), "/sources.zip")
`;

const [sources, library] = process.argv.slice(2);
const python = await loadPyodide();
const given = { [sources]: "/packed", [library]: "/packed_library" };
for (const file in given)
  python.unpackArchive(new Uint8Array(fs.readFileSync(file)), "zip", { extractDir: given[file] });
python.globals.set("unused", UNUSED);
python.globals.set("codecs", CODECS);
python.runPython(COMPILE);
for (const [file, made] of [[sources, "/sources.zip"], [library, "/library.zip"]]) {
  const bytes = zlib.gzipSync(python.FS.readFile(made), { level: 9 });
  fs.writeFileSync(file.replace(/zip$/, "bin"), bytes);
  fs.rmSync(file);
}

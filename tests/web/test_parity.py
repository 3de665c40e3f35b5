"""Python in WebAssembly against the Python of the tests: the same files, to the byte.

All standard kernels, all accepted programs, and what is wrong with all rejected ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web.browser import ROOT

pytestmark = [pytest.mark.web, pytest.mark.nightly]

PROGRAM = ROOT / "tests" / "web" / "parity.py"
IN_NODE = """
import fs from "node:fs";
import zlib from "node:zlib";
const [pyodide, playground, root, program, out] = process.argv.slice(1);
const { loadPyodide } = await import(pyodide);
const unzipped = (name) => zlib.gunzipSync(fs.readFileSync(`${playground}/${name}`));
const library = `${playground}/library.zip`;
fs.writeFileSync(library, unzipped("pyodide/python_stdlib.bin"));
const python = await loadPyodide({ stdLibURL: library });
python.FS.writeFile("/compiler.zip", unzipped("compiler.bin"));
python.mountNodeFS("/root", root);
python.mountNodeFS("/program", program);
python.runPython(`
import sys
sys.path[:0] = ["/compiler.zip", "/program"]
import parity
parity.main("/root", "/found.json")
`);
fs.writeFileSync(out, python.FS.readFile("/found.json"));
"""


def test_the_page_has_what_python_has_here(package: Path, tmp_path: Path) -> None:
    assert package.is_dir()
    playground = tmp_path / "playground"
    subprocess.run([ROOT / "tools" / "playground", playground], check=True)
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    subprocess.run([sys.executable, PROGRAM, ROOT, here], check=True, cwd=ROOT)
    pyodide = (ROOT / "web" / "node_modules" / "pyodide" / "pyodide.mjs").as_uri()
    given = [pyodide, playground, ROOT, PROGRAM.parent, there]
    node = ["node", "--input-type=module", "--eval", IN_NODE, *map(str, given)]
    subprocess.run(node, check=True)
    wanted = json.loads(here.read_text("utf-8"))
    found = json.loads(there.read_text("utf-8"))
    assert len(wanted) > 200
    assert {*found} == {*wanted}
    assert [name for name in wanted if found[name] != wanted[name]] == []

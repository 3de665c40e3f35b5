"""What compiling imports: a page in a browser compiles without NumPy, wgpu, click and black."""

from __future__ import annotations

import json
import subprocess
import sys

SOURCE = """
struct Wide { a: f32, b: vec3f, c: f32 }
kernel twice(x: f32[n], unused: f32) -> y: f32[n] { y[i] = 2.0 * x[i]; }
"""

PROGRAM = """
import json, sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"black", "blib2to3", "click", "numpy", "wgpu"}:
            raise ImportError(name)

sys.meta_path.insert(0, Refused())
source = sys.stdin.read()

from kerngen.compiler import Compiler
from kerngen.emit.targets import Target
from kerngen.report.findings import check_text
from kerngen.report.kernel import kernel_data
from kerngen.syntax.library import Library

compiler = Compiler(Library.of_text(source, "a.kern"), formatted=False, targets=Target)
files = compiler.compile("a.kern").files
print(json.dumps({
    "files": sorted(path for path in files if not path.endswith(".wgsl")),
    "right": check_text(source, "a.kern"),
    "wrong": check_text("kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[j]; }", "b.kern"),
    "kernel": kernel_data(compiler, "a.kern", "twice", "a"),
}))
"""


def test_what_a_page_needs_is_imported_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=SOURCE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert found["files"] == ["a.d.ts", "a.js", "a.py", "wgsl/a/a.plan"]
    assert {each["severity"] for each in found["right"]} == {"hint"}
    assert "unused" in str(found["right"])
    assert [each["code"] for each in found["wrong"]] == ["KG0401"]
    assert found["kernel"]["python"] == "a.twice"
    assert found["kernel"]["stages"]

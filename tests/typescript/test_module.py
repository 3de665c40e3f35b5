"""The texts of ES modules: what they hold, and that no source can break out of a comment."""

from __future__ import annotations

import re

import pytest

from kerngen.compiler import CompiledModule, Compiler
from kerngen.emit.targets import Target
from kerngen.output.errors import OutputError
from tests.compile import library_of

PATH = "dsl/sample.kern"
SOURCE = """
/// Ends */ here, `there` and ${now}.
kernel delete(new: f32[n], a: f32 = 0.5, k: i32) -> y: f32[n], z: f32[n] {
    require n % 4 == 0;
    host rest = (1 - a) / sqrt(k);
    y[i] = new[i] * rest;
    z[i] = new[i] * a;
}
"""


def compiled(text: str, *targets: Target) -> CompiledModule:
    return Compiler(library_of({PATH: text}), formatted=False, targets=targets).compile(
        PATH
    )


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    found = compiled(SOURCE, Target.TYPESCRIPT).files
    return {path: data.decode() for path, data in found.items()}


def test_a_target_has_its_files_alone(files: dict[str, str]) -> None:
    shaders = {path for path in files if path.endswith((".wgsl", ".plan"))}
    assert set(files) - shaders == {"sample.js", "sample.d.ts"}
    both = compiled(SOURCE, Target.PYTHON, Target.TYPESCRIPT)
    assert set(both.files) == {*files, "sample.py"}
    assert both.files["sample.js"].decode() == files["sample.js"]
    assert both.binding == both.files["sample.py"].decode()


def test_hosts_are_of_numbers_and_exact_integers(files: dict[str, str]) -> None:
    host = "((1 - d.a) / (Math.sqrt(Number(BigInt(d.k)))))"
    assert f"hosts: (d) => [{host}]," in files["sample.js"]


def test_the_types_of_a_call(files: dict[str, str]) -> None:
    text = files["sample.d.ts"]
    _, _, declared = text.partition("export declare function ")
    assert declared == (
        "delete$(\n"
        '  new$: $.Vector<"f32">,\n'
        "  options: {\n"
        "    readonly a?: number;\n"
        "    readonly k: number;\n"
        '  } & $.Call<{ readonly y: $.Vector<"f32">; readonly z: $.Vector<"f32"> }>,\n'
        '): { readonly y: $.Vector<"f32">; readonly z: $.Vector<"f32"> };\n'
    )


def test_docs_have_defaults_as_javascript_writes_them() -> None:
    text = compiled(
        "kernel k(x: f32[n], v: vec2f = vec2f(0.0, 1.5), top: f32 = inf) -> y: f32[n] {\n"
        "    y[i] = min(x[i] * v.x + v.y, top);\n}\n",
        Target.TYPESCRIPT,
    ).files["sample.d.ts"]
    assert b"options.v - vec2f, [0.0, 1.5] by default." in text
    assert b"options.top - f32, Infinity by default." in text


def test_docs_end_no_comment(files: dict[str, str]) -> None:
    comments = re.findall(r"/\*\*.*?\*/", files["sample.d.ts"], re.DOTALL)
    assert len(comments) == 2
    assert "Ends *\\/ here, `there` and ${now}." in comments[1]
    assert "require n % 4 == 0;" in comments[1]


def test_docs_show_a_copy_of_a_struct_once() -> None:
    """It is a statement for each member; what is written twice is shown twice."""
    found = compiled(
        "struct P { a: f32, b: vec3f, c: u32 }\n"
        "kernel k(p: P[n], x: f32[n]) -> q: P[n], y: f32[n] {\n"
        "    q[i] = p[i];\n    y[i] = x[i];\n    y[i] += 1.0;\n    y[i] += 1.0;\n}\n",
        *Target,
    )
    texts = [
        found.binding,
        *(found.files[f"sample.{x}"].decode() for x in ("js", "d.ts")),
    ]
    for text in texts:
        _, _, head = text.rpartition("kernel k(p: P[n]")
        lines = [line.strip(" */") for line in head.splitlines()[1:5]]
        wanted = ["q[i] = p[i];", "y[i] = x[i];", "y[i] += 1.0;", "y[i] += 1.0;"]
        assert lines == wanted


@pytest.mark.parametrize("name", ["erf", "quantizeToF16"])
def test_what_javascript_cannot_compute_is_refused(name: str) -> None:
    text = (
        "kernel k(x: f32[n], a: f32) -> y: f32[n] {"
        f" host e = {name}(a); y[i] = x[i] * e; }}"
    )
    fault = rf"k \(dsl/sample.kern:1\): .* '{name}' on the host. Compute it in the page"
    with pytest.raises(OutputError, match=fault):
        compiled(text, Target.TYPESCRIPT)
    assert compiled(text, Target.PYTHON).binding

"""The import law: data flows one way through the house, and imports follow it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tests.project.tree import ROOT, imports, python_files, statements

ORDER = [
    "origin",
    "parts",
    "plan",
    "source",
    "ir",
    "layout",
    "syntax",
    "format",
    "check",
    "gradient",
    "shader",
    "schedule",
    "emit",
    "output",
    "bind",
    "catalogue",
    "typescript",
    "compiler",
    "report",
    "jit",
    "bench",
    "verify",
    "tune",
    "explain",
    "scaffold",
    "doctor",
    "lsp",
    "cli",
    "__main__",
]
"""A part may import itself and those before it."""

SYSTEMS = {
    "batch": {"parts", "runtime"},
    "matmul_cache": {"plan", "parts", "runtime"},
    "sort": {"parts", "runtime"},
    "nn": {"parts", "runtime"},
    "train": {"parts", "runtime", "nn", "matmul_cache"},
}
"""What is built on the generated kernels, and what of ours it may import."""

BESIDES = {
    "jit": {"runtime"},
    "bench": {"runtime", "sort", "train"},
    "tune": {"runtime"},
    "verify": {"runtime"},
    "doctor": {"runtime"},
    "cli": {"runtime"},
}
"""What parts that run kernels may import in addition."""

NARROWER = {
    "format": {"source", "syntax"},
    "shader": {"source", "ir", "layout"},
    "output": {"source"},
    "explain": set[str](),
    "plan": set[str](),
    "runtime": {"plan"},
    "scaffold": {"source"},
    **SYSTEMS,
}
"""Parts that may import these only, and themselves."""

THIRD_PARTY = {
    "source": {"rich"},
    "syntax": {"lark", "platformdirs", "pygments"},
    "format": {"lark"},
    "emit": {"black"},
    "bind": {"lark"},
    "bench": {"kerngen_kernels", "matplotlib", "numpy", "rich"},
    "tune": {"numpy"},
    "verify": {"hypothesis", "numpy", "rich"},
    "doctor": {"numpy"},
    "lsp": {"lsprotocol", "pygls"},
    "cli": {"click", "rich", "watchfiles"},
    "runtime": {"numpy", "wgpu"},
    "batch": {"numpy", "kerngen_kernels"},
    "matmul_cache": {"numpy", "kerngen_kernels"},
    "sort": {"kerngen_kernels"},
    "nn": {"numpy", "kerngen_kernels"},
    "train": {"numpy", "kerngen_kernels", "safetensors"},
}
"""The only packages of others that a part may import."""


def part_of(file: Path, package: Path = ROOT / "kerngen") -> str:
    """The part of the house that a file is in: a folder's name, or a module's."""
    return file.relative_to(package).with_suffix("").parts[0]


def allowed(part: str) -> set[str]:
    if part in NARROWER:
        return {part, *NARROWER[part]}
    return {*ORDER[: ORDER.index(part) + 1], *BESIDES.get(part, ())}


def faults(file: Path, package: Path = ROOT / "kerngen") -> list[str]:
    """What a file imports that it may not."""
    part = part_of(file, package)
    found: list[str] = []
    for name in imports(file):
        root, *rest = name.split(".")
        if root == "kerngen":
            fine = rest[0] in allowed(part) or rest == ["__version__"]
        else:
            fine = root in sys.stdlib_module_names
            fine = fine or root in THIRD_PARTY.get(part, set())
        if not fine:
            found.append(f"{file.relative_to(package)}: {name}")
    return found


def test_imports_only_go_forward() -> None:
    files = [file for file in python_files("kerngen") if part_of(file) != "__init__"]
    assert {part_of(file) for file in files} == {*ORDER, "runtime", *SYSTEMS}
    assert [fault for file in files for fault in faults(file)] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ir/x.py", "import kerngen.syntax.ast"),
        ("ir/x.py", "from kerngen import check"),
        ("shader/x.py", "def f():\n    from kerngen.schedule.task import Task"),
        ("runtime/x.py", "from kerngen.source.text import Span"),
        ("output/x.py", "if TYPE_CHECKING:\n    from kerngen.compiler import x"),
        ("check/x.py", "import numpy as np"),
        ("emit/x.py", "from lark import Lark"),
        ("nn/x.py", "from kerngen.train import Trainer"),
        ("train/x.py", "from kerngen.ir.nodes import Expr"),
        ("compiler.py", "from kerngen_kernels import matmul"),
        ("bench/x.py", "from kerngen.cli.build import build"),
        ("emit/x.py", "from kerngen.bench.case import Case"),
    ],
)
def test_a_wrong_import_is_found(path: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    assert len(faults(file, tmp_path)) == 1


def test_generated_modules_import_only_the_runtime() -> None:
    for file in python_files("generated"):
        for name in imports(file):
            root, *rest = name.split(".")
            assert root in {"kerngen", "numpy"} or root in sys.stdlib_module_names
            assert root != "kerngen" or rest[0] in {"plan", "runtime"}


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that an import of a module runs, without those for checkers."""
    for statement in body:
        match statement:
            case ast.If(test=ast.Name("TYPE_CHECKING"), orelse=rest):
                yield from top_level(rest)
            case ast.If(body=inner, orelse=rest) | ast.Try(body=inner, orelse=rest):
                yield from top_level([*inner, *rest])
            case ast.With(body=inner):
                yield from top_level(inner)
            case _:
                yield statement


def loaded_by(file: Path, known: Collection[str]) -> set[str]:
    """Return the modules among the known ones that an import of a file imports."""
    found: set[str] = set()
    for statement in top_level(ast.parse(file.read_text("utf-8")).body):
        match statement:
            case ast.Import(names=names):
                found.update(alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                inner = {f"{module}.{alias.name}" for alias in names}
                found |= inner & {*known} or {module}
            case _:
                pass
    return found & {*known}


def circles(package: Path) -> list[str]:
    """Return the modules of a package that are in circles, or between two of them."""
    files = {
        ".".join(file.relative_to(package.parent).with_suffix("").parts): file
        for file in sorted(package.rglob("*.py"))
    }
    graph = {name: loaded_by(file, files) for name, file in files.items()}
    left = {name for name, others in graph.items() if others}
    while True:
        imported = {other for name in left for other in graph[name]}
        inside = {name for name in left & imported if graph[name] & left}
        if inside == left:
            return sorted(left)
        left = inside


def test_no_import_goes_round_in_a_circle() -> None:
    assert circles(ROOT / "kerngen") == []


def test_a_circle_of_imports_is_found(tmp_path: Path) -> None:
    texts = {
        "a": "from p import b",
        "b": "from p.c import x\nif TYPE_CHECKING:\n    from p.d import y",
        "c": "def f():\n    import p.a",
        "d": "import p.b",
    }
    (tmp_path / "p").mkdir()
    for name, text in texts.items():
        (tmp_path / "p" / f"{name}.py").write_text(text, encoding="utf-8")
    assert circles(tmp_path / "p") == []
    (tmp_path / "p" / "c.py").write_text("import p.a", encoding="utf-8")
    assert circles(tmp_path / "p") == ["p.a", "p.b", "p.c"]


def borrowed(file: Path) -> list[str]:
    """What a file imports of modules that pytest collects."""
    found: list[str] = []
    for node in statements(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.ImportFrom(module=module, names=names):
                paths = [f"{module or ''}.{alias.name}" for alias in names]
            case ast.Import(names=names):
                paths = [alias.name for alias in names]
            case _:
                continue
        found += [p for p in paths if any(x[:5] == "test_" for x in p.split("."))]
    return found


def test_what_tests_share_is_in_helper_modules() -> None:
    assert {str(f): borrowed(f) for f in python_files("tests") if borrowed(f)} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from tests.syntax.test_parse import EXAMPLE",
        "from .test_parse import EXAMPLE",
        "from tests.language import test_meaning",
        "def f():\n    import tests.check.test_structs as structs",
    ],
)
def test_a_borrowed_name_is_found(text: str, tmp_path: Path) -> None:
    file = tmp_path / "test_x.py"
    file.write_text(text, encoding="utf-8")
    assert len(borrowed(file)) == 1


def run(program: str) -> None:
    """Run a program outside of the repository, with nothing on the path but the package.

    It is this tree's package, whichever is installed.
    """
    own = [str(ROOT), str(ROOT / "generated")]
    program = f"import sys; sys.path[:0] = {own!r}\n{program}"
    subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", program], check=True, cwd="/"
    )


def test_importing_generated_modules_pulls_in_nothing_of_the_compiler() -> None:
    modules = [
        file.relative_to(ROOT / "generated").with_suffix("").as_posix()
        for file in python_files("generated")
        if file.name != "__init__.py"
    ]
    run(f"""
import importlib, sys
for module in {modules!r}:
    importlib.import_module(module.replace("/", "."))
for name in sys.modules:
    root, *rest = name.split(".")
    assert root not in {{"lark", "black", "click", "rich", "wgpu"}}, name
    assert root != "kerngen" or not rest or rest[0] in {{"plan", "runtime"}}, name
""")


def test_importing_the_package_imports_nothing() -> None:
    run("""
import sys, typing
before = {*sys.modules}
import kerngen
assert {"compile", "load", "CompileError"} <= {*dir(kerngen)}
assert {*sys.modules} - before <= {"kerngen", "__future__"}
""")


def test_importing_the_runtime_imports_no_wgpu() -> None:
    run("import sys, kerngen.runtime; assert 'wgpu' not in sys.modules")


def test_the_command_line_imports_no_compiler() -> None:
    """A build that changes nothing is short: most of its time is its start."""
    run("""
import sys, kerngen.cli
for name in sys.modules:
    root, *rest = name.split(".")
    assert root not in {"lark", "black", "numpy", "wgpu", "rich"}, name
    assert root != "kerngen" or not rest or rest[0] not in {"check", "ir", "schedule"}, name
""")

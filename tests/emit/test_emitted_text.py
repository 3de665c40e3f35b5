"""Emitted text: clean under every tool, and safe whatever the documentation says."""

from __future__ import annotations

import ast
import inspect
import json
import keyword
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import black
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerngen.compiler import compile_text
from kerngen.emit.docs import paragraphs, write_comment, write_docstring
from kerngen.emit.python_names import PythonNamer
from kerngen.emit.reference.reduce import letters_for
from kerngen.emit.writer import Writer
from tests.budget import examples
from tests.compile import emitted, loaded
from tests.emit.sources import (
    ADAMW,
    ATTACKS,
    GATHER,
    HARMLESS,
    INTEGERS,
    LITERALS,
    LOOPS,
    NAMES,
    REDUCE,
    SOURCE,
    STATE,
)
from tests.emit.struct_source import SOURCE as STRUCTS

ROOT = Path(__file__).parents[2]
GENERATED = sorted((ROOT / "generated" / "kerngen_kernels").glob("*.py"))
SOURCES = [
    SOURCE,
    ADAMW,
    GATHER,
    INTEGERS,
    LITERALS,
    LOOPS,
    NAMES,
    REDUCE,
    STATE,
    STRUCTS,
]


@pytest.mark.parametrize("source", SOURCES)
def test_black_changes_nothing(source: str) -> None:
    text = emitted(source)
    assert black.format_str(text, mode=black.Mode(line_length=88)) == text


def run(*command: str, text: str | None = None) -> None:
    """Run a Python tool, which must find nothing."""
    result = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("source", SOURCES)
def test_ruff_finds_nothing_by_the_projects_rules(source: str) -> None:
    file = "generated/kerngen_kernels/sample.py"
    run("ruff", "check", "--stdin-filename", file, "-", text=emitted(source))


@pytest.fixture
def samples(tmp_path: Path) -> list[str]:
    """The files of the emitted sources, each in a file of its own."""
    files = [tmp_path / f"sample_{number}.py" for number in range(len(SOURCES))]
    for file, source in zip(files, SOURCES, strict=True):
        file.write_text(emitted(source))
    return [str(file) for file in files]


@pytest.mark.nightly
def test_mypy_finds_nothing(samples: list[str]) -> None:
    """By day it reads generated/, as pyright does."""
    run("mypy", "--strict", *samples)


@pytest.mark.nightly
def test_pyright_finds_nothing(samples: list[str], tmp_path: Path) -> None:
    """By default it reads generated/, whose kernels have most of what is emitted."""
    project = tmp_path / "pyrightconfig.json"
    project.write_text(
        json.dumps(
            {
                "typeCheckingMode": "strict",
                "include": samples,
                "extraPaths": [str(ROOT)],
                "venvPath": str(Path(sys.prefix).parent),
                "venv": Path(sys.prefix).name,
            }
        )
    )
    run("basedpyright", "--level", "error", "-p", str(project))


FULL = (
    "An example of a paragraph whose lines are as wide as those of sources may be, all"
)
"""A line that is too long where a docstring is indented."""


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_paragraph_that_is_too_wide_is_wrapped_anew(depth: int) -> None:
    doc = f"{FULL} of\n{FULL} of\nit.\n\n- {FULL} of it."
    lines = paragraphs(doc, depth)
    assert " ".join(" ".join(lines).split()) == " ".join(doc.split())
    assert not broken(lines)
    assert max(map(len, lines)) <= 88 - 4 * depth


def broken(lines: Sequence[str]) -> list[str]:
    """Return the lines that end early though both the one before and the text go on."""
    return [
        line
        for before, line, after in zip(lines, lines[1:], lines[2:], strict=False)
        if len(before) > 70 and line.strip() and len(line) < 40 and after[:1].isalnum()
    ]


@pytest.mark.parametrize("file", GENERATED, ids=lambda file: file.stem)
def test_paragraphs_of_docstrings_are_whole(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            doc = ast.get_docstring(node) or ""
            assert not broken(doc.splitlines())


def test_the_standard_kernels_take_few_lines_and_files() -> None:
    folder = ROOT / "generated" / "kerngen_kernels" / "wgsl"
    plans = (plan.read_text("utf-8") for plan in folder.glob("*/*.plan"))
    kernels = sum(len(re.findall("^kernel ", text, re.MULTILINE)) for text in plans)
    assert len([*folder.glob("*/*.wgsl")]) <= 5.2 * kernels
    lines = sum(file.read_text("utf-8").count("\n") for file in GENERATED)
    assert lines <= 95 * kernels


# Documentation can't become code


def skeleton(text: str) -> str:
    """Return the module's code without its docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.FunctionDef() | ast.ClassDef():
                documented = ast.get_docstring(node) is not None
                node.body = node.body[1:] if documented else node.body
            case _:
                pass
    return ast.dump(tree)


@pytest.mark.parametrize("doc", ATTACKS)
def test_documentation_stays_text(doc: str) -> None:
    text = emitted(HARMLESS.format(doc=doc))
    assert skeleton(text) == skeleton(emitted(HARMLESS.format(doc="Harmless.")))
    assert all(c.isprintable() or c == "\n" for c in text)


def test_documentation_is_kept_word_for_word() -> None:
    doc = "A \\ and \"quotes\" and 'more'; é."
    tree = ast.parse(emitted(HARMLESS.format(doc=doc)))
    assert (ast.get_docstring(tree) or "").splitlines()[0] == doc


@given(st.lists(st.text(), max_size=4))
@settings(max_examples=examples(300))
def test_any_docstring_is_one_string_and_nothing_else(lines: list[str]) -> None:
    writer = Writer()
    with writer.block("def f() -> None:"):
        write_docstring(writer, lines)
    (function,) = ast.parse(writer.text).body
    assert isinstance(function, ast.FunctionDef)
    (statement,) = function.body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Constant)


@given(st.text())
@settings(max_examples=examples(300))
def test_any_comment_is_no_code(text: str) -> None:
    writer = Writer()
    write_comment(writer, text)
    assert ast.parse(writer.text).body == []


# Names


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (["x", "lambda"], ["x", "lambda_"]),
        (["lambda", "lambda_"], ["lambda__", "lambda_"]),
        (["_x", "__x__", "x"], ["x_", "x___", "x"]),
        (["_", "_1", "__"], ["v_", "v1_", "v__"]),
        (["None", "match", "self"], ["None_", "match", "self"]),
    ],
)
def test_names(wanted: list[str], names: list[str]) -> None:
    claimed = PythonNamer(keyword.kwlist).claim_all(wanted)
    assert [claimed[name] for name in wanted] == names


words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,3}", fullmatch=True)


@given(st.lists(words, unique=True))
def test_names_are_public_and_distinct(wanted: list[str]) -> None:
    claimed = PythonNamer(keyword.kwlist).claim_all(wanted)
    assert len(set(claimed.values())) == len(wanted)
    for name in claimed.values():
        assert name.isidentifier()
        assert not keyword.iskeyword(name)
        assert not name.startswith("_")


@given(st.lists(words, unique=True, max_size=26))
def test_letters_are_distinct(names: list[str]) -> None:
    letters = letters_for(names)
    assert len(set(letters.values())) == len(names)
    for name, letter in letters.items():
        assert len(letter) == 1
        assert letter.isascii()
        assert letter.isalpha()
        if len(name) == 1 and name.isalpha():
            assert letter == name


NAMED = """
    kernel class(lambda: f32[def], import: f32[def], __init__: f32 = 1.0, ctx: f32 = 2.0,
                 pack: f32 = 3.0, FIELDS: u32 = 4, float: u32 = 5)
        -> out: f32[def], count: f32[def], real: f32[] {
        host None = pack + FIELDS;
        let np[for] = lambda[for] * __init__ + None;
        out[for] = np[for] + import[for] * ctx + f32(float);
        count[while] = np[while] * pack;
        real = sum[for] lambda[for] * import[for];
    }
    schedule class when float > 3 and def > 1 { generic }
"""


def test_a_kernels_values_may_have_any_name() -> None:
    module = loaded(NAMED)
    x = np.array([1, 2], np.float32)
    found = module.class__reference(x, x + 1)
    assert found.out.tolist() == [1 + 7 + 4 + 5, 2 + 7 + 6 + 5]
    assert found.count_.tolist() == [24, 27]
    assert float(found.real) == 8
    assert module._CLASS_.hosts(2, 1.0, 2.0, 3.0, 4, 5)[-1] == 7
    assert module.ClassOutput._fields == ("out", "count_", "real")
    assert module.ClassArrays._fields == ("out", "count_", "real")
    fields = [field.name for field in module.ClassUniform.FIELDS]
    assert fields[1:5] == ["init___", "ctx", "pack_", "FIELDS_"]


def test_a_value_does_not_hide_the_tuple_that_is_returned() -> None:
    module = loaded("""
        kernel k(KOutput: f32[n], KArrays: f32[n]) -> y: f32[n], z: f32[n] {
            y[i] = KOutput[i];
            z[i] = KArrays[i];
        }
    """)
    assert [*inspect.signature(module.k).parameters][:2] == ["KOutput_", "KArrays_"]
    found = module.k_reference(np.ones(2), np.zeros(2))
    assert (found.y.tolist(), found.z.tolist()) == ([1, 1], [0, 0])


def test_a_field_of_a_tuple_does_not_hide_the_type_of_another() -> None:
    module = loaded("""
        struct Body { mass: f32 }
        kernel k(x: Body[n]) -> Vector: f32[n], Any: f32[n], Body: Body[n] {
            Vector[i] = x[i].mass;
            Any[i] = x[i].mass;
            Body[i] = x[i];
        }
        kernel elements(x: f32[n]) -> f32: f32[n], vec2f: f32[n] {
            f32[i] = x[i];
            vec2f[i] = x[i];
        }
    """)
    assert module.KOutput._fields == ("Vector_", "Any_", "Body_")
    assert module.KArrays._fields == module.KOutput._fields
    assert module.ElementsOutput._fields == ("f32_", "vec2f_")


def test_output_is_the_same_every_time() -> None:
    again = compile_text(SOURCE, "a.kern").binding
    assert compile_text(SOURCE, "a.kern").binding == again

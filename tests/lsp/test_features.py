"""What explains a text, and what helps to write it: by hand, for one program."""

from __future__ import annotations

from typing import get_args

import pytest
from lsprotocol import types

from kerngen.format.form import formatted
from kerngen.ir.memory import LEAVES, NARROW
from kerngen.lsp import calls, completion, editing, inlays, lenses, places, tokens
from kerngen.lsp.checked import Checked
from kerngen.lsp.hover import hover
from kerngen.lsp.words import word_of
from kerngen.source.text import Source
from kerngen.syntax import ast
from kerngen.syntax.wording import KEYWORDS
from tests.lsp.opened import checked
from tests.project.tree import ROOT

_TEXT = types.CompletionItemKind.Text
TEXT = """\
use "used.kern";
const HALF: f32 = 0.5;

struct Ball { pos: vec3f, mass: f32 }

/// Scale rows.
kernel scale(
    /// What is scaled.
    a: f32[m, n],
    balls: Ball[n],
    at: u32 = 0,
) -> y: f32[m, n] {
    let big[i] = max[j] a[i, j];
    y[i, j] = HALF * twice(exp(a[i, j] - big[i])) + balls[j].mass + f32(at);
}

kernel scale_gradient = gradient of scale by a;

schedule scale when n > 9 { rows lanes(64) }
"""
USED = "/// Two times x.\nfn twice(x: f32) -> f32 { 2.0 * x }\n"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("features")
    (folder / "used.kern").write_text(USED)
    return checked(folder / "main.kern", TEXT)


def at(text: str, inside: int = 0) -> int:
    """The place of a text that occurs once."""
    assert TEXT.count(text) == 1, text
    return TEXT.index(text) + inside


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("a[i, j] - big", ["a: f32[m, n]", "an input: What is scaled."]),
        ("big[i])", ["big: f32[m]", "a let"]),
        ("j] a[i", ["0 <= j < n", "an index"]),
        ("twice(", ["fn twice(x: f32) -> f32", "Two times x."]),
        ("exp(", ["exp(x: f32) -> f32", "(3 + 2 |x|) ulp (WGSL"]),
        ("HALF *", ["const HALF: f32 = 0.5;"]),
        ("mass +", ["mass: f32", "a field"]),
        ("n > 9", ["a dim"]),
        ("rows lanes", ["a strategy", "lanes(count)"]),
        ("lanes(64", ["an option of `rows`: 2 to 1024"]),
        ("scale when", ["kernel scale(", "Scale rows.", "stage `y`", "3 stages"]),
        ("= HALF", ["f32"]),
        ("max[j]", ["max[j] a[i, j]: f32", "the greatest term", "#reductions"]),
        ("let big", ["let top[i] = ", "names a value per element", "#statements"]),
        ("when n", ["a guard", "#stages-and-schedules"]),
        ("vec3f", ["a type", "#vectors-and-matrices"]),
        ("of scale", ["derives from another", "#gradients"]),
    ],
)
def test_hover(file: Checked, place: str, shown: list[str]) -> None:
    found = hover(file, at(place) + 2 * (place == "= HALF"))
    assert found is not None
    assert isinstance(found.contents, types.MarkupContent)
    for each in shown:
        assert each.replace("3 stages", "rows") in found.contents.value


def test_every_word_is_explained_and_has_a_section() -> None:
    page = (ROOT / "docs" / "language.md").read_text()
    keywords = {each.lower() for each in KEYWORDS - {"REDUCE"}}
    for word in (*keywords, *get_args(ast.ReduceKind), *LEAVES, *NARROW, "bool"):
        found = word_of(word)
        assert found is not None, word
        assert f"# {found.section}\n" in page
    assert hover(checked(ROOT / "a.kern", "// a sum\n"), 6) is None


def test_definition_and_references_across_files(file: Checked) -> None:
    (there,) = places.definition(file, at("twice("))
    assert there.uri.endswith("used.kern")
    assert (there.range.start.line, there.range.start.character) == (1, 3)
    (path,) = places.definition(file, at('"used'))
    assert path.uri == there.uri
    found = places.references(file, at("twice("), with_definition=True)
    assert [each.uri.rpartition("/")[2] for each in found] == ["used.kern", "main.kern"]
    of_n = places.references(file, at("n > 9"), with_definition=False)
    assert [each.range.start.line for each in of_n] == [9, 11, 18]


def test_symbols(file: Checked) -> None:
    found = places.symbols(file)
    names = ["HALF", "Ball", "scale", "scale_gradient", "schedule scale"]
    assert [each.name for each in found] == names
    of_kernel = [each.name for each in found[2].children or ()]
    assert of_kernel == ["a", "balls", "at", "y", "big"]


def test_inlay_hints(file: Checked) -> None:
    found = inlays.inlays(file, 0, len(TEXT))
    shown = [(x.position.line, x.position.character, x.label) for x in found]
    assert shown == [
        (12, 13, " < m"),
        (12, 14, ": f32[m]"),
        (12, 22, " < n"),
        (13, 7, " < m"),
        (13, 10, " < n"),
    ]


@pytest.mark.parametrize(
    ("before", "wanted", "unwanted"),
    [
        ("y[i, j] = ", {"a", "big", "i", "n", "exp", "twice", "sum", "if"}, {"gemm"}),
        ("let big[i] = ", {"a", "at", "i", "big"}, {"mass"}),
        ("balls[j].", {"pos", "mass"}, {"exp"}),
        ("schedule scale when ", {"n", "at", "adapter"}, {"exp"}),
        ("n > 9 { ", {"rows", "gemm"}, {"n"}),
        ("n > 9 { rows ", {"lanes", "subgroups"}, {"n"}),
        ("    a: ", {"f32", "Ball", "u4", "vec3f"}, {"exp"}),
        ('use "', {"used.kern"}, {"main.kern", "exp"}),
        ("/// Scale ", set[str](), {"exp"}),
        ("0.5;\n", {"kernel", "fn"}, {"exp"}),
    ],
)
def test_completion(
    file: Checked, before: str, wanted: set[str], unwanted: set[str]
) -> None:
    found = completion.completions(file, at(before, len(before)))
    labels = [each.label for each in found]
    assert len(labels) == len(set(labels))
    assert wanted <= set(labels)
    assert not unwanted & set(labels)


@pytest.mark.parametrize(
    ("before", "first", "last"),
    [
        ("y[i, j] = ", {"i", "j"}, "y"),
        ("at: u32 = 0,\n) -> y: f32[m, n] {\n    ", {"y"}, "require"),
    ],
)
def test_completion_begins_with_what_is_likely(
    file: Checked, before: str, first: set[str], last: str
) -> None:
    found = completion.completions(file, at(before, len(before)))
    ordered = sorted(found, key=lambda each: each.sort_text or "")
    named = [each.label for each in ordered if each.kind is not _TEXT]
    assert {*named[: len(first)]} == first
    assert named[-1] == last


def test_completion_in_a_statement_that_is_not_done(file: Checked) -> None:
    begun = TEXT.replace("HALF * twice", "HALF * tw + ;//")
    unfinished = checked(file.path, begun)
    found = completion.completions(unfinished, begun.index("tw +") + 2)
    assert {"twice", "a", "big", "i", "at"} <= {each.label for each in found}


BALLS = """
struct Ball { at: vec2f, r: f32 }
kernel f(b: Ball[n]) -> y: f32[n] {"""
MEAN = """
kernel mean(x: f32[n], at: f32) -> y: f32[] { let s = sum[i] x[i]; y = s * at; }
"""


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("kernel f(x: f32[m, n], s: f32[", ["m", "n", "HALF"]),
        ("kernel f(", ["mut"]),
        ("kernel f(x: f32[n]) -> ", []),
        ("kernel f(x: f32[n]) -> y: f32[n] {\n    ", ["y", "let"]),
        ("kernel f(x: f32[n]) -> y: f32[n] {\n    y[i] = ", ["i", "x", "n", "HALF"]),
        (f"{BALLS} y[i] = b[i].", ["at", "r"]),
        (f"{BALLS} y[i] = b[i].at.", ["x", "y"]),
        ("struct S { @", ["align", "size"]),
        (f"{MEAN}\nkernel g = gradient of ", ["mean"]),
        (f"{MEAN}\nkernel g = gradient of mean ", ["by"]),
        (f"{MEAN}\nkernel g = gradient of mean by ", ["x", "at"]),
        (f"{MEAN}\nkernel g = gradient of mean by x, ", ["at"]),
        (f"{MEAN}\nkernel g = gradient of mean by x ", ["at", "given"]),
        (f"{MEAN}\nkernel g = gradient of mean by x given ", ["y", "s"]),
        (f"{MEAN}\nschedule mean.", ["y", "s"]),
        ("kernel f(x: f32[n], k: f32 = ", ["HALF"]),
        (
            "kernel f(x: f32[n]) -> y: f32[n] { y[i] = if i > 0 { ",
            ["i", "x", "n", "HALF"],
        ),
        (
            "kernel f(x: f32[n]) -> y: f32[n] { y[i] = if i > 0 { x[i] } else { ",
            ["i", "x", "n", "HALF"],
        ),
        (
            "kernel f(x: f32[n]) -> y: f32[n] { let top = max[j] x[j]; y[i] = sum[k < 3] ",
            ["k", "i", "top", "x", "n"],
        ),
    ],
)
def test_completion_in_a_kernel_that_is_not_done(
    file: Checked, text: str, first: list[str]
) -> None:
    begun = f"const HALF: f32 = 0.5;\n{text}"
    unfinished = checked(file.path, begun)
    found = completion.completions(unfinished, len(begun))
    names = [each.label for each in found]
    assert names[: len(first)] == first
    assert first or not names


@pytest.mark.parametrize(
    ("before", "label", "argument"),
    [
        ("twice(", "twice(x: f32) -> f32", 0),
        ("exp(a[i, ", "exp(x: f32) -> f32", 0),
        ("lanes(", "lanes(count)", 0),
    ],
)
def test_signatures(file: Checked, before: str, label: str, argument: int) -> None:
    found = calls.signature_help(file, at(before, len(before)))
    if before.endswith(" "):
        assert found is None  # a subscript
        return
    assert found is not None
    assert label in [each.label for each in found.signatures]
    assert found.active_parameter == argument


def test_semantic_tokens_cover_the_names(file: Checked) -> None:
    data = tokens.tokens(file).data
    line = column = 0
    lines, kinds = TEXT.split("\n"), dict[str, str]()
    for lines_on, columns_on, length, kind, _ in zip(*[iter(data)] * 5, strict=True):
        line += lines_on
        column = columns_on if lines_on else column + columns_on
        kinds[lines[line][column : column + length]] = tokens.LEGEND.token_types[
            int(kind)
        ]
    wanted = {
        "a": "parameter",
        "big": "variable",
        "n": "typeParameter",
        "mass": "property",
    }
    wanted |= {
        "Ball": "struct",
        "HALF": "enumMember",
        "twice": "function",
        "let": "keyword",
    }
    wanted |= {"0.5": "number", "f32": "type", "i": "variable", "exp": "function"}
    assert {name: kinds[name] for name in wanted} == wanted


def test_formatting_is_that_of_fmt(file: Checked) -> None:
    text = TEXT.replace("HALF * ", "HALF*").replace("    let", "  let").rstrip()
    changed = checked(file.path, text)
    lines = text
    for edit in reversed(editing.formatting(changed)):
        start, end = (
            changed.columns.offset(p) for p in (edit.range.start, edit.range.end)
        )
        lines = lines[:start] + edit.new_text + lines[end:]
    assert lines == formatted(Source("main.kern", text))
    assert editing.formatting(checked(file.path, "kernel (")) == []


def test_lenses_show_what_their_commands_print(file: Checked) -> None:
    commands = [each.command for each in lenses.lenses(file)]
    titles = [(c.title, (c.arguments or [""])[-1]) for c in commands if c]
    assert ("show WGSL", "scale") in titles
    assert ("gradient", "scale") in titles
    assert ("layout", "Ball") in titles
    assert "no 'gone'" in lenses.run("kerngen.gradient", file, "gone")
    assert "@compute" in lenses.run("kerngen.wgsl", file, "scale")
    assert "pos" in lenses.run("kerngen.layout", file, "Ball")
    assert "da[" in lenses.run("kerngen.gradient", file, "scale")
    assert "da[" in lenses.run("kerngen.equations", file, "scale_gradient")


def test_every_name_of_a_standard_file_is_explained() -> None:
    known = checked(ROOT / "dsl" / "scan.kern")
    assert len(known.names) > 150
    shown = set[object]()
    for name in known.names:
        assert places.definition(known, name.span.start)
        if name.means not in shown:
            shown.add(name.means)
            assert hover(known, name.span.start) is not None

"""Every construct of the language parses to the tree that it should."""

from __future__ import annotations

import pytest
from hypothesis import given

from kerngen.syntax import ast

from .parsing import EXAMPLE, parse_expression, parse_item, parse_statement, parse_text
from .programs import expressions, write_expression


def test_the_example_of_the_language_parses() -> None:
    program = parse_text(EXAMPLE)
    assert program.doc == "Activations and linear layers."
    assert [type(item).__name__ for item in program.items] == [
        "FunctionItem",
        "FunctionItem",
        "KernelItem",
        "KernelItem",
        "KernelItem",
        "KernelItem",
        "ScheduleItem",
        "ScheduleItem",
    ]


@given(expressions)
def test_an_expression_survives_being_written_and_parsed(expr: ast.Expr) -> None:
    assert parse_expression(write_expression(expr)) == expr


def write_type(type_: ast.TypeName) -> str:
    if type_.axes is None:
        return type_.name.name
    return f"{type_.name.name}[{', '.join(map(write_expression, type_.axes))}]"


def kernel(text: str) -> ast.KernelItem:
    item = parse_item(text)
    assert isinstance(item, ast.KernelItem)
    return item


# Items


def test_empty_files() -> None:
    assert parse_text("") == ast.Program("", ())
    assert parse_text("// nothing\n") == ast.Program("", ())
    assert parse_text("//! words\n") == ast.Program("words", ())


def test_use() -> None:
    item = parse_item('use "lib/other.kern";')
    assert isinstance(item, ast.UseItem)
    assert item.path == "lib/other.kern"


def test_const() -> None:
    item = parse_item("/// Two.\nconst TWO: f32 = 2.0;")
    assert isinstance(item, ast.ConstItem)
    assert (item.name.name, write_type(item.type), item.doc) == ("TWO", "f32", "Two.")
    assert item.value == parse_expression("2.0")


def test_struct() -> None:
    item = parse_item("""
        /// A particle.
        struct P {
            /// Where it is.
            pos: vec3f,
            @size(16) @align(8) mass: f32,
            trail: f32[5],
        }
    """)
    assert isinstance(item, ast.StructItem)
    assert (item.name.name, item.doc) == ("P", "A particle.")
    assert [(f.name.name, write_type(f.type), f.doc) for f in item.fields] == [
        ("pos", "vec3f", "Where it is."),
        ("mass", "f32", ""),
        ("trail", "f32[5]", ""),
    ]
    assert [
        [(a.name.name, write_expression(a.value)) for a in f.attributes]
        for f in item.fields
    ] == [[], [("size", "16"), ("align", "8")], []]


def test_function() -> None:
    item = parse_item("fn f(x: f32, y: f32,) -> f32 { let a = x * y; let b = a; b }")
    assert isinstance(item, ast.FunctionItem)
    assert [p.name.name for p in item.parameters] == ["x", "y"]
    assert [let.name.name for let in item.lets] == ["a", "b"]
    assert write_type(item.result) == "f32"
    assert item.body == parse_expression("b")


def test_kernel_parameters_and_outputs() -> None:
    item = kernel("""
        kernel k(
            /// The first,
            /// in two lines.
            mut a: P[n],
            h: f32[],
            b: f32[h, w, 3],
            alpha: f32 = -1.0,
        ) -> /// The sums.
             s: f32[m],
             q: f32[m / 2, k - 1] {}
    """.replace("-> ///", "->\n///"))
    assert [
        (p.name.name, write_type(p.type), p.mutable, p.doc) for p in item.parameters
    ] == [
        ("a", "P[n]", True, "The first,\nin two lines."),
        ("h", "f32[]", False, ""),
        ("b", "f32[h, w, 3]", False, ""),
        ("alpha", "f32", False, ""),
    ]
    defaults = [p.default for p in item.parameters]
    assert defaults == [None, None, None, parse_expression("-1.0")]
    assert [(p.name.name, write_type(p.type), p.doc) for p in item.outputs] == [
        ("s", "f32[m]", "The sums."),
        ("q", "f32[((m) / (2)), ((k) - (1))]", ""),
    ]


def test_kernels_and_functions_may_be_called_like_reductions() -> None:
    assert kernel("kernel sum(x: f32[n]) {}").name.name == "sum"
    item = parse_item("schedule max when n > 1 { reduce }")
    assert isinstance(item, ast.ScheduleItem)
    assert [target.kernel.name for target in item.targets] == ["max"]


@pytest.mark.parametrize(
    "type_", ["f32", "i32", "u32", "f16", "bool", "vec2f", "vec3i", "vec4h", "mat4x4f"]
)
def test_types_are_names(type_: str) -> None:
    (parameter,) = kernel(f"kernel k(x: {type_}) {{}}").parameters
    assert parameter.type.name.name == type_
    assert parameter.type.axes is None


def test_schedule() -> None:
    item = parse_item("""
        schedule softmax.total_2 when adapter.workgroup_bytes >= 32768 and not n % 4 == 0
        { gemm tile(128, 64, 16,) micro(8, 4) pad(1) once() }
    """)
    assert isinstance(item, ast.ScheduleItem)
    (target,) = item.targets
    assert target.stage is not None
    assert (target.kernel.name, target.stage.name) == ("softmax", "total_2")
    assert item.guard == parse_expression(
        "(adapter.workgroup_bytes >= 32768) and (not ((n % 4) == 0))"
    )
    assert item.strategy.name == "gemm"
    assert [(option.name.name, option.values) for option in item.options] == [
        ("tile", (128, 64, 16)),
        ("micro", (8, 4)),
        ("pad", (1,)),
        ("once", ()),
    ]


def test_the_shortest_schedule() -> None:
    item = parse_item("schedule k { generic }")
    assert isinstance(item, ast.ScheduleItem)
    assert [target.stage for target in item.targets] == [None]
    assert (item.guard, item.options) == (None, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, b", ["a", "b"]),
        ("a.x, sum, b.max,", ["a.x", "sum", "b.max"]),
        ("matmul_*", ["matmul_*"]),
        ("*_bias.y, *, sum*max, a * b", ["*_bias.y", "*", "sum*max", "a*b"]),
    ],
)
def test_what_a_schedule_is_for(text: str, expected: list[str]) -> None:
    item = parse_item(f"schedule {text} when n > 1 {{ generic }}")
    assert isinstance(item, ast.ScheduleItem)
    names = [
        (
            f"{target.kernel.name}.{target.stage.name}"
            if target.stage
            else target.kernel.name
        )
        for target in item.targets
    ]
    assert names == expected
    for target, name in zip(item.targets, names, strict=True):
        assert target.span.text.replace(" ", "") == name


# Statements


def test_let_with_ranges() -> None:
    statement = parse_statement("let a[t < n, q < d / 2, r] = 1;")
    assert isinstance(statement, ast.LetStatement)
    assert [(b.name.name, b.bound) for b in statement.binders] == [
        ("t", parse_expression("n")),
        ("q", parse_expression("d / 2")),
        ("r", None),
    ]


def test_let_of_rank_zero() -> None:
    statement = parse_statement("let a = 1;")
    assert isinstance(statement, ast.LetStatement)
    assert statement.binders == ()


def test_host() -> None:
    statement = parse_statement("host rest1 = 1 - beta1;")
    assert isinstance(statement, ast.HostStatement)
    assert statement.name.name == "rest1"


@pytest.mark.parametrize("op", ["=", "+=", "-=", "*=", "/="])
@pytest.mark.parametrize(
    ("target", "subscripts"),
    [
        ("s", []),
        ("c[i, j]", ["i", "j"]),
        ("p[i].pos.x", ["i"]),
        ("p[i].trail[0, k].x", ["i"]),
        ("p.pos", []),
        ("p.trail[k]", []),
        ("c[2 * i, 0,]", ["((2) * (i))", "0"]),
    ],
)
def test_assignment(op: str, target: str, subscripts: list[str]) -> None:
    statement = parse_statement(f"{target} {op} x;")
    assert isinstance(statement, ast.Assignment)
    assert statement.target == parse_expression(target)
    assert statement.name.name == target[0]
    assert statement.op == op
    assert [write_expression(s) for s in statement.subscripts] == subscripts
    assert statement.value == parse_expression("x")


# Documentation


def test_doc_text_keeps_lines_and_indentation() -> None:
    program = parse_text(
        "//! One\n//!\n//!   two  \n\n///three\n////// none\nconst A: f32 = 1.0;"
    )
    assert program.doc == "One\n\n  two"
    (item,) = program.items
    assert isinstance(item, ast.ConstItem)
    assert item.doc == "three"


def test_uses_and_schedules_may_be_commented() -> None:
    assert len(parse_text('/// a\nuse "a.kern";\n/// b\nschedule k { map }').items) == 2


# Tokens


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1.0", 1.0),
        ("1e-8", 1e-8),
        ("2E3", 2e3),
        ("1.5e+2", 150.0),
    ],
)
def test_numbers(text: str, value: float) -> None:
    number = parse_expression(text)
    assert isinstance(number, ast.Number)
    assert number.value == value
    assert type(number.value) is type(value)


def test_large_integers_are_kept() -> None:
    number = parse_expression("9" * 100)
    assert isinstance(number, ast.Number)
    assert number.value == 10**100 - 1


def test_words_that_begin_with_keywords_are_names() -> None:
    for word in ["iffy", "max_x", "summit", "format", "notes", "uses", "let_", "true1"]:
        assert parse_expression(word).__class__ is ast.Name


def test_blanks_do_not_matter() -> None:
    tight = EXAMPLE.replace("    ", "\t").replace("\n", "\r\n")
    assert parse_text(tight) == parse_text(EXAMPLE)

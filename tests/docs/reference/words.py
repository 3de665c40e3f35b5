"""The page of words, operators, types and the grammar, made of the compiler's tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from kerngen.ir.memory import LEAVES
from kerngen.shader import names as wgsl
from tests.docs.reference.table import listed, table

GRAMMAR: Final = (files("kerngen.syntax") / "grammar.lark").read_text("utf-8")

PRECEDENCE: Final = (
    ("or", "bool", ""),
    ("and", "bool", ""),
    ("not", "bool", ""),
    ("== != < <= > >=", "scalars of one type", "Not chained: `a < b < c` is an error."),
    ("|", "integers", ""),
    ("^", "integers", "Exclusive or. Powers are `pow(x, y)`."),
    ("&", "integers", ""),
    ("<< >>", "integers; the count is a u32", "The count is taken modulo 32."),
    ("+ -", "numbers, vectors, matrices", "Integers wrap."),
    (
        "* / %",
        "numbers, vectors; `*` also matrices",
        "Integers truncate toward 0; `x / 0` is `x`, `x % 0` is 0. `%` has the sign of x.",
    ),
    ("- ~", "numbers; integers", "In front of a value."),
    ("x[i] x.y f(x)", "", "Subscripts, members, calls and casts."),
)
"""The operators from loosest to tightest; a test parses each pair of neighbours."""


def page() -> str:
    """Return the page in Markdown."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    yield "# Words, operators, types, grammar\n"
    yield "Made from the compiler's own tables.\n"
    yield "## Keywords\n"
    yield f"{listed(keywords())}\n"
    yield (
        f"{listed(reductions())} are the reductions. A keyword names nothing else. A "
        "reduction's word may also name a kernel, a function or a field, but no value.\n"
    )
    yield (
        "There are three name spaces, which never conflict: functions with built-ins and "
        "casts; kernels; and the values of one kernel (parameters, dims, `let`s, `host`s "
        "and indices).\n"
    )
    yield from _reserved()
    yield "## Operators\n"
    yield "From loosest to tightest:\n"
    yield table(
        ("operators", "of", ""),
        [(listed(row[0].split()), *row[1:]) for row in PRECEDENCE],
    )
    yield (
        "`if c { a } else { b }` is an expression, and can be used wherever a value can. A "
        "reduction takes the factors behind it, joined by `*`. Assignments are statements: "
        "`=`, `+=`, `-=`, `*=` and `/=`.\n"
    )
    yield from _types()
    yield "## Grammar\n"
    yield (
        "The parser is generated from this file, `kerngen/syntax/grammar.lark`, in the "
        "notation of [Lark](https://lark-parser.readthedocs.io/en/stable/grammar.html).\n"
    )
    yield f"<!-- docs: picture -->\n```text\n{GRAMMAR}```\n"


def _reserved() -> Iterator[str]:
    yield "## Names that are reserved elsewhere\n"
    yield (
        "No other name is refused. What WGSL or Python reserve is yours to use: in the "
        "generated text such a name gets a `_` behind it. So `lambda` is a parameter of "
        "the language, and `lambda_` in Python's signature.\n"
    )
    yield f"WGSL's keywords: {listed(sorted(wgsl.KEYWORDS))}.\n"
    yield f"WGSL's reserved words: {listed(sorted(wgsl.RESERVED_WORDS))}.\n"


def _types() -> Iterator[str]:
    yield "## Types\n"
    yield (
        "Of values: `f32`, `i32`, `u32`, `bool` (of expressions only), vectors, matrices "
        "and structs. Of the elements of tensors and the fields of structs:\n"
    )
    yield f"{listed(LEAVES)}\n"
    yield (
        "Those with `h`, and `f16`, are kept in 16 bits; they are read as f32, and "
        "rounded once where they are written. `f32[m, k]` is a tensor, `f32[]` one of rank "
        "0; in a struct, `f32[5]` is an array. `P[n]` is a tensor of structs.\n"
    )


def keywords() -> list[str]:
    """Return the grammar's keywords, in its order."""
    found = re.findall(r'^[A-Z]+: "([a-z]+)"$', GRAMMAR, re.MULTILINE)
    assert len(found) > 15
    return found


def reductions() -> list[str]:
    """Return the names of the reductions."""
    found = re.search(r"^REDUCE\.1: /\(\?:([a-z|]+)\)", GRAMMAR, re.MULTILINE)
    assert found is not None
    return found[1].split("|")

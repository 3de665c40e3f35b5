"""The page of built-in functions, made of the compiler's tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.ir.builtin import Accuracy, Builtin, Overload
from kerngen.ir.builtins_float import FLOAT_ROWS
from kerngen.ir.builtins_shared import EXACT, INTEGER_ROWS, SHARED_ROWS
from kerngen.ir.geometry import GEOMETRY, Geometry
from kerngen.ir.types import CASTS, COMPOSITES
from tests.docs.reference.table import listed, table

_LETTERS: Final = "xyzw"

_INTRODUCTION: Final = f"""\
# Built-in functions

Made from the tables in `kerngen/ir`, which the compiler reads, too.

Names are WGSL's. A function of scalars takes vectors of one width, and works on each component, unless the table says *scalars only*. Types never mix: an integer literal takes the type of its place, all else needs a cast.

**WGSL** is the call in the shader; a function that WGSL lacks is added to the shader by kerngen. **NumPy** is what the reference computes in float64; `ref` and `geometry` are modules of `kerngen.runtime`. **Error** is the largest difference from the exact result: in units of the last place (ulp) of the result, as a number, or as their sum, with the chapter of WGSL's specification that allows it. Exact results are exact by chapter 15.7.4. Most adapters are much better than WGSL demands.

Casts: {listed(CASTS)}. An f32 that becomes an integer is truncated, and kept inside the integer's range. Constructors: {listed(COMPOSITES)}.

Functions of a whole axis are reductions, `sum`, `prod`, `max` and `min`: see [the language](../language.md#reductions).
"""


def page() -> str:
    """Return the page in Markdown."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    heads = ("function", "types", "meaning", "WGSL", "NumPy", "error")
    yield _INTRODUCTION
    yield "## Of numbers of any type\n"
    yield table(heads, map(_row, SHARED_ROWS))
    yield "## Of f32\n"
    yield table(heads, map(_row, FLOAT_ROWS))
    yield "## Of integers\n"
    yield table(heads, map(_row, INTEGER_ROWS))
    yield "## Of vectors and matrices as a whole\n"
    yield (
        "`vecNf` is a vector of f32. The errors are those of the formulas; WGSL promises "
        "nothing of its own.\n"
    )
    yield table(
        ("function", "takes", "meaning", "NumPy"), map(_geometry, GEOMETRY.values())
    )


def _row(builtin: Builtin) -> tuple[str, ...]:
    letters = _LETTERS[: builtin.arity]
    wgsl = builtin.wgsl.format(*letters, T="f32")
    doc = builtin.doc if builtin.wide else f"{builtin.doc} *Scalars only.*"
    return (
        f"`{builtin.name}({', '.join(letters)})`",
        "; ".join(map(_types, builtin.overloads)),
        doc,
        f"`{wgsl}`",
        f"`{builtin.numpy.format(*letters)}`",
        _error(builtin.accuracy),
    )


def _types(overload: Overload) -> str:
    types = [scalar.spelling for scalar in overload.parameters]
    result = overload.result.spelling
    if set(types) == {result}:
        return result
    return f"{', '.join(types)} → {result}"


def _error(accuracy: Accuracy) -> str:
    terms: list[str] = []
    if accuracy.ulps or accuracy.ulps_per_argument:
        factor = f"{accuracy.ulps:g}"
        if accuracy.ulps_per_argument:
            factor = f"({factor} + {accuracy.ulps_per_argument:g} |x|)"
        terms.append(f"{factor} ulp")
    if accuracy.absolute:
        terms.append(f"{accuracy.absolute:.3g}")
    if accuracy == EXACT:
        return "exact"
    if not terms:
        return accuracy.source
    return f"{' + '.join(terms)} ({accuracy.source})"


def _geometry(row: Geometry) -> tuple[str, ...]:
    letters = _LETTERS[: row.arity]
    call = f"`{row.name}({', '.join(letters)})`"
    return call, row.accepted, row.doc, f"`{row.numpy.format(*letters)}`"

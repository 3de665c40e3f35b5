"""The page of built-in functions, made of the compiler's tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.ir.builtins.row import Builtin, Overload
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY, Geometry
from kerngen.ir.types import CASTS, COMPOSITES, Matrix, Scalar
from tests.docs.reference.table import listed, table

_LETTERS: Final = "xyzw"

_INTRODUCTION: Final = f"""\
# Built-in functions

Made from the tables in `kerngen/ir`, which the compiler reads, too.

Names are WGSL's. A function of scalars takes vectors of one width, and works on each component, unless the table says *scalars only*. Types never mix: an integer literal takes the type of its place, all else needs a cast.

**WGSL** is the call in the shader; a function that WGSL lacks is added to the shader by kerngen. **NumPy** is what the reference computes in float64; `ref` and `geometry` are modules of `kerngen.runtime`. **Error** is the largest difference from the exact result: in units of the last place (ulp) of the result, as a number, or as their sum, with the chapter of WGSL's specification that allows it. Exact results are exact by chapter 15.7.4. Most adapters are much better than WGSL demands. **Derivatives** are the partial ones, by each argument in turn, `f` being the result; at a kink they are the mean of both sides.

Casts: {listed(CASTS)}. An f32 that becomes an integer is truncated, and kept inside the integer's range. Constructors: {listed(COMPOSITES)}.

Functions of a whole axis are reductions, `sum`, `prod`, `max`, `min`, `argmax` and `argmin`: see [the language](../language.md#reductions).
"""


def page() -> str:
    """Return the page in Markdown."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    heads = ("function", "types", "meaning", "WGSL", "NumPy", "error", "derivatives")
    yield _INTRODUCTION
    for title, rows in _groups().items():
        yield f"## {title}\n"
        has_partials = any(row.partials for row in rows)
        cells = (_row(row)[: None if has_partials else -1] for row in rows)
        yield table(heads[: None if has_partials else -1], cells)
    yield "## Of vectors and matrices as a whole\n"
    yield (
        "`vecNf` is a vector of f32. The errors are those of the formulas; WGSL promises "
        "nothing of its own. The derivatives are those of a scalar by each argument, if `d` "
        "is its derivative by the result `f`.\n"
    )
    yield table(
        ("function", "takes", "meaning", "NumPy", "derivatives"),
        map(_geometry, GEOMETRY.values()),
    )


def _groups() -> dict[str, list[Builtin]]:
    """Return the rows by what their overloads compute with."""
    groups: dict[str, list[Builtin]] = {
        name: [] for name in ("Of numbers of any type", "Of f32", "Of integers")
    }
    for row in BUILTINS.values():
        floats = [Scalar.F32 in overload.parameters for overload in row.overloads]
        some = "Of numbers of any type" if any(floats) else "Of integers"
        groups["Of f32" if all(floats) else some].append(row)
    return groups


def _row(builtin: Builtin) -> tuple[str, ...]:
    letters = _LETTERS[: builtin.arity]
    wgsl = builtin.template.format(*letters, T="f32")
    doc = builtin.doc if builtin.wide else f"{builtin.doc} *Scalars only.*"
    return (
        f"`{builtin.name}({', '.join(letters)})`",
        "; ".join(map(_types, builtin.overloads)),
        doc,
        f"`{wgsl}`",
        f"`{builtin.numpy.format(*letters)}`",
        builtin.accuracy.text,
        "; ".join(f"`{partial}`" for partial in builtin.partials or ()),
    )


def _types(overload: Overload) -> str:
    types = [scalar.spelling for scalar in overload.parameters]
    result = overload.result.spelling
    if set(types) == {result}:
        return result
    return f"{', '.join(types)} → {result}"


def _geometry(row: Geometry) -> tuple[str, ...]:
    letters = _LETTERS[: row.arity]
    call = f"`{row.name}({', '.join(letters)})`"
    small = Matrix(2, 2)
    own = row.adjoints_of((small,)) if callable(row.adjoints) else row.adjoints
    derivatives = "; ".join(f"`{adjoint}`" for adjoint in own)
    if callable(row.adjoints):
        derivatives = f"of `{small.spelling}` {derivatives}"
    numpy = f"`{row.numpy.format(*letters)}`"
    return call, row.accepted, row.doc, numpy, derivatives

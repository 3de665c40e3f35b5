"""Recording of a product's kernels, by its plan.

A weight that is in parts along n gives some columns of the result for each part.  Columns
are not contiguous, so each part's are transposed into rows of the result's transpose, which
is transposed at the end: two small copies.  For one row of x there is no need for that.

    y [m, n] = │ x w0 │ x w1 │        yT [n, m] = ─ (x w0)T ─
                                                  ─ (x w1)T ─

Along k, each part is multiplied by the columns of x that belong to it, and gives one term
of the result: y = x0 w0 + x1 w1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never, cast

from kerngen.matmul_cache.layouts import LAYOUTS
from kerngen.matmul_cache.plan import MatmulPlan
from kerngen.runtime import Matrix, Tensor, Vector, f32
from kerngen.runtime.tensor import R
from kerngen_kernels import elementwise, layout


def multiply(
    plan: MatmulPlan,
    weight: Sequence[Matrix[f32]],
    x: Tensor[f32, R],
    y: Tensor[f32, R],
) -> None:
    """Write x times a weight to y; both are of rank 2, or of rank 1 for one row."""
    if plan.m == 1:
        _multiply_vector(plan, weight, _flat(x), _flat(y))
    else:
        rows, result = cast("Matrix[f32]", x), cast("Matrix[f32]", y)
        _multiply_rows(plan, weight, rows, result)


def _multiply_vector(
    plan: MatmulPlan,
    weight: Sequence[Matrix[f32]],
    x: Vector[f32],
    y: Vector[f32],
) -> None:
    kernel = LAYOUTS[plan.layout].vector
    match plan.axis:
        case None:
            kernel(weight[0], x, out=y)
        case "n":
            for part, matrix in zip(plan.parts, weight, strict=True):
                kernel(matrix, x, out=y.rows(part.start, part.stop))
        case "k":
            spans = [x.rows(part.start, part.stop) for part in plan.parts]
            kernel(weight[0], spans[0], out=y)
            others = zip(weight[1:], spans[1:], strict=True)
            _add(y, (kernel(matrix, span) for matrix, span in others))
        case _:
            assert_never(plan.axis)


def _multiply_rows(
    plan: MatmulPlan,
    weight: Sequence[Matrix[f32]],
    x: Matrix[f32],
    y: Matrix[f32],
) -> None:
    kernel = LAYOUTS[plan.layout].matrix
    match plan.axis:
        case None:
            kernel(x, weight[0], out=y)
        case "n":
            columns = x.ctx.empty((plan.n, plan.m), f32)  # the result's transpose
            for part, matrix in zip(plan.parts, weight, strict=True):
                layout.transpose(
                    kernel(x, matrix), out=columns.rows(part.start, part.stop)
                )
            layout.transpose(columns, out=y)
        case "k":
            spans = (
                layout.slice_columns(x, start=part.start, count=part.stop - part.start)
                for part in plan.parts
            )
            kernel(next(spans), weight[0], out=y)
            others = zip(spans, weight[1:], strict=True)
            terms = (kernel(span, matrix) for span, matrix in others)
            _add(_flat(y), map(_flat, terms))
        case _:
            assert_never(plan.axis)


def _flat(tensor: Tensor[f32, R]) -> Vector[f32]:
    """Return a tensor as a vector: itself, if it is one."""
    return cast("Vector[f32]", tensor) if tensor.ndim == 1 else tensor.reshape(-1)


def _add(total: Vector[f32], terms: Iterator[Vector[f32]]) -> None:
    """Add terms to `total`; each is made when its turn comes, so few exist at a time."""
    for term in terms:
        elementwise.axpy(term, total, alpha=1.0)

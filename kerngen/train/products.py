"""Matrix products and their gradients, with transposed factors read in place.

The right factor may be larger than the adapter can bind: then it is read in ranges of rows,
one product for each, as in `MatmulCache`.  Nothing leaves the device.
"""

from __future__ import annotations

from kerngen.matmul_cache.layouts import Layout
from kerngen.matmul_cache.plan import make_plan
from kerngen.matmul_cache.products import multiply
from kerngen.runtime import Matrix, f32
from kerngen.runtime.tensor import is_tensor
from kerngen_kernels import layout, matmul


class Products:
    """Matrix products on plain tensors, as methods of a trainer."""

    def matmul_forward(
        self, a: Matrix[f32], b: Matrix[f32], *, out: Matrix[f32] | None = None
    ) -> Matrix[f32]:
        """Return c = a b, of a [m, k] and b [k, n].

        `b` may be larger than the adapter can bind.
        """
        return product(a, b, out)

    def matmul_backward(
        self,
        a: Matrix[f32],
        b: Matrix[f32],
        grad_c: Matrix[f32],
        *,
        out: tuple[Matrix[f32] | None, Matrix[f32] | None] = (None, None),
    ) -> tuple[Matrix[f32], Matrix[f32]]:
        """Return the gradients by a [m, k] and b [k, n], from that by c = a b [m, n].

        They are grad_c b^T and a^T grad_c; the transposed factors are read where they
        lie.  `out` may name a gradient: `out=(None, trainer.gradients["weight"])`.
        """
        return left_gradient(b, grad_c, out[0]), right_gradient(a, grad_c, out[1])


def product(a: Matrix[f32], b: Matrix[f32], out: Matrix[f32] | None) -> Matrix[f32]:
    """Return a b, of a [m, k] and b [k, n]."""
    if _fits(b):
        return matmul.matmul_nn(a, b, out=out)
    return _by_rows(a, b, "kn", out)


def left_gradient(
    b: Matrix[f32], grad_c: Matrix[f32], out: Matrix[f32] | None
) -> Matrix[f32]:
    """Return grad_c b^T, of b [k, n] and grad_c [m, n]."""
    if _fits(b):
        return matmul.matmul_nt(grad_c, b, out=out)
    return _by_rows(grad_c, b, "nk", out)


def right_gradient(
    a: Matrix[f32], grad_c: Matrix[f32], out: Matrix[f32] | None
) -> Matrix[f32]:
    """Return a^T grad_c, of a [m, k] and grad_c [m, n]."""
    k, n = a.shape[1], grad_c.shape[1]
    ctx = a.ctx
    if out is None:
        out = ctx.empty((k, n), f32)
    if _fits(out):
        return matmul.matmul_tn(a, grad_c, out=out)
    for part in make_plan(ctx, a.shape[0], k, n, "kn").parts:
        columns = layout.slice_columns(
            a, start=part.start, count=part.stop - part.start
        )
        matmul.matmul_tn(columns, grad_c, out=out.rows(part.start, part.stop))
    return out


def _fits(matrix: Matrix[f32]) -> bool:
    """Return whether a matrix can be bound whole; true of what a kernel refuses anyway."""
    return not is_tensor(matrix) or matrix.nbytes <= matrix.ctx.max_tensor_bytes


def _by_rows(
    x: Matrix[f32], weight: Matrix[f32], order: Layout, out: Matrix[f32] | None
) -> Matrix[f32]:
    """Return x times a weight of a layout, by ranges of the weight's rows."""
    rows, columns = weight.shape
    k, n = (rows, columns) if order == "kn" else (columns, rows)
    plan = make_plan(x.ctx, x.shape[0], k, n, order)
    if out is None:
        out = x.ctx.empty((x.shape[0], n), f32)
    parts = [weight.rows(part.start, part.stop) for part in plan.parts]
    multiply(plan, parts, x, out)
    return out

"""Products of matrices: `linear` and `matmul`.

The gradients are products with a transposed factor, of which kernels read the factor as it
is stored: nothing is copied.
"""

from __future__ import annotations

from kerngen.nn.shapes import check_features, check_rank, rows, view
from kerngen.nn.variable import AnyTensor, Value, Variable, as_variable, computed, edge
from kerngen.runtime import ShapeError
from kerngen_kernels import matmul as kernels
from kerngen_kernels import nn


def linear(x: Value, weight: Value, bias: Value | None = None) -> Variable:
    """Return x weight^T + bias, of shape [..., n].

    Args:
        x: [..., k]. The input.
        weight: [n, k], as torch's Linear stores it.
        bias: [n]. Without one, nothing is added.

    Raises:
        ShapeError: If a rank or a length does not fit.
    """
    given, w = as_variable(x), as_variable(weight)
    check_rank("linear", "the weight", w, 2, "[n, k]")
    n, k = w.shape
    check_features("linear", given, k, f"the weight of shape {w.shape}")
    x2, shape = rows(given.tensor), (*given.shape[:-1], n)

    # y = x w^T of x [m, k] and w [n, k]: dx = dy w, dw = dy^T x, db = the sum of dy's rows.
    def by_x(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        place = view(out, x2.shape)
        return kernels.matmul_nn(rows(dy), w.tensor, out=place).reshape(given.shape)

    def by_weight(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return kernels.matmul_tn(rows(dy), x2, out=out)

    edges = (edge(given, by_x, w.tensor), edge(w, by_weight, x2))
    if bias is None:
        return computed(kernels.matmul_nt(x2, w.tensor).reshape(shape), *edges)
    b = as_variable(bias)
    if b.shape != (n,):
        raise ShapeError(
            f"linear: the bias has shape {b.shape}; expected ({n},), from the weight "
            f"of shape {w.shape}."
        )

    def by_bias(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return nn.column_sum(rows(dy), out=out)

    y = kernels.matmul_nt_bias(x2, w.tensor, b.tensor)
    return computed(y.reshape(shape), *edges, edge(b, by_bias))


def matmul(a: Value, b: Value) -> Variable:
    """Return a b, of matrices [m, k] and [k, n].

    Raises:
        ShapeError: If a rank or a length does not fit.
    """
    left, right = as_variable(a), as_variable(b)
    check_rank("matmul", "the left factor", left, 2, "[m, k]")
    check_rank("matmul", "the right factor", right, 2, "[k, n]")
    check_features("matmul", left, right.shape[0], f"the other, {right.shape},")

    # c = a b: da = dc b^T, db = a^T dc.
    def by_left(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return kernels.matmul_nt(dy, right.tensor, out=out)

    def by_right(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return kernels.matmul_tn(left.tensor, dy, out=out)

    y = kernels.matmul_nn(left.tensor, right.tensor)
    return computed(
        y, edge(left, by_left, right.tensor), edge(right, by_right, left.tensor)
    )

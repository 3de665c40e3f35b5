"""The two layouts of weights: the kernels for each, and how parts are cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, cast, final

from kerngen.runtime import ArgumentError, Matrix, Vector, f32
from kerngen_kernels import gemv, matmul

Layout: TypeAlias = Literal["nk", "kn"]
"""'nk': one row per output, as PyTorch's Linear stores it; 'kn': one column per output."""

Axis: TypeAlias = Literal["n", "k"]


class VectorKernel(Protocol):
    """A kernel that multiplies a weight by a vector."""

    def __call__(
        self, w: Matrix[f32], x: Vector[f32], *, out: Vector[f32] | None = None
    ) -> Vector[f32]:
        """Return the product, or write it to `out`."""
        ...


class MatrixKernel(Protocol):
    """A kernel that multiplies rows by a weight."""

    def __call__(
        self, a: Matrix[f32], b: Matrix[f32], *, out: Matrix[f32] | None = None
    ) -> Matrix[f32]:
        """Return the product, or write it to `out`."""
        ...


@final
@dataclass(frozen=True, slots=True)
class LayoutKernels:
    """The kernels for weights of a layout; `axis` is that of their rows.

    `vector_name` and `matrix_name` are `module.kernel`, as in `kerngen_kernels`.
    """

    axis: Axis
    vector: VectorKernel
    vector_name: str
    matrix: MatrixKernel
    matrix_name: str


LAYOUTS: Mapping[Layout, LayoutKernels] = {
    "nk": LayoutKernels(
        axis="n",
        vector=gemv.gemv,
        vector_name="gemv.gemv",
        matrix=matmul.matmul_nt,
        matrix_name="matmul.matmul_nt",
    ),
    "kn": LayoutKernels(
        axis="k",
        vector=gemv.gemv_t,
        vector_name="gemv.gemv_t",
        matrix=matmul.matmul_nn,
        matrix_name="matmul.matmul_nn",
    ),
}


def check_layout(layout: object) -> Layout:
    """Return the layout if it is valid; else raise ArgumentError."""
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise ArgumentError(
            f"MatmulCache: the layout of a weight is 'nk' (one row per output, as "
            f"PyTorch's Linear stores it) or 'kn', got {layout!r}."
        )
    return cast("Layout", layout)


def weight_shape(layout: Layout, k: int, n: int) -> tuple[int, int]:
    """Return the rows and columns of a weight with k inputs and n outputs."""
    return (n, k) if layout == "nk" else (k, n)

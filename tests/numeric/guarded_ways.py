"""Ways to run kernels, sizes for them, and faults of shaders that touch what is outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TypeAlias, final

import numpy as np

from kerngen.runtime import Context
from kerngen.runtime.calls.kernel import Kernel
from tests.language.cases import Array
from tests.planting import file_of, planted

from .cases import Case
from .domains import Dims

Run: TypeAlias = Callable[[Context], Iterable[Array]]

Lengths: TypeAlias = tuple[tuple[int, ...], ...]

AWKWARD: Lengths = ((131, 37, 5), (3, 67, 130))
"""Off vectors and tiles, each in its own way; a kernel's dims take them in turn."""

SINGLE: Lengths = ((1,),)
"""One element: `test_subscripts` sees every access there, others the results."""

LONG = 10_007
"""For the only dim of a kernel: more than one workgroup's part of a sum."""

FAULTY = """\
kernel copy(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }
kernel halve(mut x: f32[n]) { x[i] *= 0.5; }
kernel total(x: f32[n]) -> s: f32[] { s = sum[i] x[i]; }
kernel scaled(x: f32[m, n]) -> y: f32[m] {
    let t[j] = sum[i] x[i, j];
    y[i] = sum[j] x[i, j] * t[j];
}
kernel narrow(x: f32[n]) -> y: f16[n] { y[i] = x[i]; }
kernel few_nt(a: f32[m, k], b: f32[n, k]) -> c: f32[m, n] {
    c[i, j] = sum[p] a[i, p] * b[j, p];
}
kernel few_nn(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {
    c[i, j] = sum[p] a[i, p] * b[p, j];
}
schedule few_nt { gemv rows(2) }
schedule few_nn { gemv rows(2) }
"""
STORE, LOAD = "wrote", "other bits"
"""How a fault shows."""


@final
@dataclass(frozen=True)
class Fault:
    """One shader of a kernel with `right` replaced by `wrong`."""

    name: str
    shader: str
    right: str
    wrong: str
    shows: str

    def __str__(self) -> str:
        """What is wrong."""
        return self.name

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self.shader.partition(".")[0]

    def seed(self, kernel: Kernel) -> None:
        """Change the shader."""
        folder = kernel.folder
        assert isinstance(folder, Path)
        file = folder / file_of(self.shader)
        text = planted(file.read_text("utf-8"), self.shader, self.right, self.wrong)
        file.write_text(text, "utf-8")


FAULTS = (
    Fault("a store past the end", "copy.map:edge", "< u.n", "<= u.n", STORE),
    Fault("four of them", "copy.map", ">= (u.n >> 2u)", "> (u.n >> 2u)", STORE),
    Fault(
        "a store far off",
        "copy.map:edge",
        "y_edge[element]",
        "y_edge[element+999u]",
        STORE,
    ),
    Fault("four past the end", "copy.map:edge", "group < w", "group <= w", STORE),
    Fault("an element left out", "copy.map:edge", "< u.n", "< u.n - 1u", LOAD),
    Fault(
        "a load past the end",
        "copy.map:edge",
        "x_edge[number]",
        "x_edge[number+1u]",
        LOAD,
    ),
    Fault("one more in place", "halve.map:edge", "< u.n", "<= u.n", STORE),
    Fault("half a word more", "narrow.map:edge", "< u.n", "<= u.n", STORE),
    Fault("a term too many", "total.reduce:edge", "i < u.n", "i <= u.n", LOAD),
    Fault(
        "a part too many", "total.reduce:finish", "part < count", "part <= count", LOAD
    ),
    Fault("a misplaced part", "total.reduce", "parts[g", "parts[1u+g", STORE),
    Fault("past a temporary", "scaled.t.reduce:edge", "&& j <", "&& j <=", STORE),
    Fault("a row too many", "scaled.t.reduce:edge", "i < u.m", "i <= u.m", LOAD),
    Fault(
        "beyond a temporary",
        "scaled.y.gemv:edge",
        "t_edge[j] * right;",
        "t_edge[j+1u] * right;",
        LOAD,
    ),
    Fault("a row not there", "few_nt.gemv_rows2:edge", "&& i < u.m", "", STORE),
    Fault(
        "a column too many", "few_nn.gemv_rows2:edge", "2u && j <", "2u && j <=", STORE
    ),
    Fault("parts of no row", "few_nn.gemv_rows2:edge", "i < u.m)", "i <= u.m)", STORE),
)


def sizes(case: Case, given: Lengths) -> Iterator[Dims]:
    """Lengths for every dim of a kernel; a long one with awkward ones."""
    for lengths in given:
        yield dict(zip(case.kernel.dims, cycle(lengths)))
    if len(case.kernel.dims) == 1 and given != SINGLE:
        yield dict.fromkeys(case.kernel.dims, LONG)


def faulty(kernel: Kernel) -> Case:
    """A kernel of `FAULTY`; its oracle is its own result without the fault."""
    return Case("faulty", kernel, np.asarray)

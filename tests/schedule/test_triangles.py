"""Products of a part of the terms, as those of triangles and bands, in tiles.

The results are compared with float64 sums of what NumPy selects.  What is left out is NaN
or infinite, and must not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.source.diagnostic import CompileError
from tests.budget import examples, sampled, several
from tests.compile import built_module

pytestmark = pytest.mark.usefixtures("always_shared")

Array: TypeAlias = NDArray[Any]

WAYS: Final = (
    "",
    "gemm tile(16, 32, 8) micro(4, 4)",
    "gemm tile(32, 16, 8) micro(4, 4) stream(3)",
    "gemm tile(16, 32, 16) micro(4, 4) buffers(2)",
)
SLICED: Final = "gemm tile(32, 32, 32) micro(4, 4) slices(2)"


@final
@dataclass(frozen=True)
class At:
    """Where a term is: its row, column and number, of so many rows; and a shift."""

    i: Array
    j: Array
    p: Array
    n: int
    s: int


CONDITIONS: Final[dict[str, Callable[[At], Array]]] = {
    "p <= i": lambda x: x.p <= x.i,
    "i > p": lambda x: x.p < x.i,
    "p >= i": lambda x: x.p >= x.i,
    "p > j": lambda x: x.p > x.j,
    "p <= i and p >= j": lambda x: (x.p <= x.i) & (x.p >= x.j),
    "p <= i + shift and p > i - 9": lambda x: (x.p <= x.i + x.s) & (x.p > x.i - 9),
    "p <= i + shift": lambda x: x.p <= (x.i + x.s).astype(np.int32),
    "not (p >= j - shift)": lambda x: x.p < x.j - x.s,
    "p <= at[] + i": lambda x: x.p <= x.s + x.i,
    "p < at[]": lambda x: x.p < x.s,
    "p <= n - 1 - i": lambda x: x.p + x.i <= x.n - 1,
}
TERMS: Final = {
    "sum": "sum[p when {}] a[i, p] * b[p, j]",
    "sum of sums": "sum[p when {}] (a[i, p] + b[p, j])",
    "min": "min[p when {}] (a[i, p] + b[p, j])",
}
"""Reductions by kind; `{}` is the condition."""

SIZES: Final = ((1, 1, 1), (33, 65, 37), (32, 64, 48), (36, 20, 28), (40, 8, 5))


def source(condition: str, way: str, kind: str = "sum", tensors: str = "") -> str:
    schedule = f"schedule f {{ {way} }}" if way else ""
    number = ", at: i32[]" if "at[]" in condition else ""
    shift = ", shift: i32" if "shift" in condition else ""
    own = tensors or "a: f32[n, k], b: f32[k, m]"
    return f"""
    kernel f({own}{number}{shift}) -> y: f32[n, m] {{
        y[i, j] = {TERMS[kind].format(condition.replace("at[]", "at"))};
    }}
    {schedule}
    """


def check(ctx: gpu.Context, module: Any, sizes: tuple[int, int, int], **of: Any) -> str:
    """Compare one call with NumPy; return the name of its shader."""
    condition, kind, shift = of["condition"], of.get("kind", "sum"), of.get("shift", 2)
    n, m, k = sizes
    rng = np.random.default_rng(n * m + k)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((n, k), (k, m)))
    if "n - 1" not in condition:
        a[:, k // 2] = (
            np.nan
        )  # where it is a term, the results are NaN; else they aren't
        b[k // 3] = np.inf
    i, j, p = np.ogrid[:n, :m, :k]
    kept = CONDITIONS[condition](At(i, j, p, n, shift)) & np.ones((n, m, k), bool)
    a[~kept.any(1)] = np.nan
    b[~kept.any(0).T] = -np.inf
    left, right = (x.astype(np.float64) for x in (a[:, None, :], b.T[None]))
    with np.errstate(invalid="ignore"):
        if kind == "sum":
            wanted = np.where(kept, left * right, 0).sum(-1)
        elif kind == "sum of sums":
            wanted = np.where(kept, left + right, 0).sum(-1)
        else:
            wanted = np.where(kept, left + right, np.inf).min(-1)
    numbers = {"shift": shift} if "shift" in condition else {}
    held = (ctx.tensor(np.array(shift, np.int32)),) if "at[]" in condition else ()
    y = module.f(ctx.tensor(a), ctx.tensor(b), *held, **numbers)
    np.testing.assert_allclose(
        y.numpy(), wanted, rtol=1e-4, atol=1e-4, err_msg=f"{condition} {sizes}"
    )
    (chosen,) = ctx.choices(module.f, n=n, m=m, k=k)
    shader, *_ = chosen.shaders
    return str(shader)


@pytest.mark.parametrize("condition", sampled(CONDITIONS, 5))
def test_triangles_and_bands(ctx: gpu.Context, condition: str) -> None:
    """Whole vectors, turns that are not whole, and neither; n = 1, and triangles that end."""
    for way in several(WAYS[1:3], by_day=1):
        with built_module(source(condition, way)) as module:
            found = {check(ctx, module, size, condition=condition) for size in SIZES}
        assert len(found) == 2, found


@pytest.mark.parametrize(
    ("condition", "backwards"),
    [
        ("p <= i", ["row"]),
        ("p > j", []),
        ("p >= n - j", ["column"]),
        ("p <= i and p < j", ["row", "column"]),
        ("p <= i + shift and p > i - 9", ["row"]),
        ("p <= n - 1 - i", []),
    ],
)
def test_tiles_of_most_terms_begin_first(condition: str, backwards: list[str]) -> None:
    """Later rows of a lower triangle are longer: the first workgroups have the last ones."""
    text = source(condition, "gemm", tensors="a: f32[n, n], b: f32[n, m]")
    (program,) = compile_text(text, "f.kern").programs
    variant = program.choices[0].cases[0].schedule.variants[0]
    code = variant.shaders[0].code
    found = [
        x for x in ("row", "column") if f"let tile_{x} = (tile_{x}s - 1u - " in code
    ]
    assert found == backwards


def test_bounds_that_wrap(ctx: gpu.Context) -> None:
    """Integers wrap: of the rows after the third, no term is left."""
    condition = "p <= i + shift"
    with built_module(source(condition, WAYS[1])) as module:
        check(ctx, module, SIZES[1], condition=condition, shift=2**31 - 3)


def test_other_reductions_than_sums(ctx: gpu.Context) -> None:
    """What is left out of a minimum is infinite."""
    for condition in several(("p <= n - 1 - i", "p > j"), by_day=1):
        with built_module(source(condition, WAYS[1], "min")) as module:
            for size in SIZES:
                check(ctx, module, size, condition=condition, kind="min")


@pytest.mark.parametrize("kind", ["sum", "sum of sums"])
def test_slices_have_terms_of_their_own(ctx: gpu.Context, kind: str) -> None:
    for condition in ("p <= i", "p > j"):
        with built_module(source(condition, SLICED, kind)) as module:
            for size in SIZES:
                check(ctx, module, size, condition=condition, kind=kind)


def test_default_of_a_triangle(ctx: gpu.Context) -> None:
    """Tiles are chosen where they would be without the condition, but not for windows."""
    condition = "p <= i"
    with built_module(source(condition, "")) as module:
        shader = check(ctx, module, (70, 70, 70), condition=condition)
        assert shader.startswith("f.gemm_tile32x32x32")
    windows = "p <= i + shift and p > i - 9"
    with built_module(source(windows, "")) as module:
        shader = check(ctx, module, (70, 70, 70), condition=windows)
        assert shader.startswith("f.generic")


@pytest.mark.parametrize(
    ("condition", "fault"),
    [("p <= i + j", "does more than bound p"), ("p != i", "does more than bound p")],
)
def test_conditions_that_are_no_bounds(condition: str, fault: str) -> None:
    with (
        pytest.raises(CompileError, match=fault),
        built_module(source(condition, "gemm")),
    ):
        pass


@pytest.mark.nightly
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_random_bands(ctx: gpu.Context, data: st.DataObject) -> None:
    condition = data.draw(st.sampled_from(sorted(CONDITIONS)))
    kind = data.draw(st.sampled_from(sorted(TERMS)))
    way = data.draw(st.sampled_from(WAYS if kind == "min" else (*WAYS, SLICED)))
    with built_module(source(condition, way, kind)) as module:
        for _ in range(4):
            size = st.tuples(*(st.integers(1, 80),) * 3)
            shift = data.draw(st.integers(-90, 90))
            of = {"condition": condition, "kind": kind, "shift": shift}
            check(ctx, module, data.draw(size), **of)

"""Kernels written by hand, as the compiler would describe them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.plan.size import ONE, Size, Symbol, ceil_div
from kerngen.plan.tree import (
    Access,
    AffineTerm,
    Binding,
    Case,
    Choice,
    Dispatch,
    RangeCheck,
)
from kerngen.runtime import Context, Element, Error, f16, f32, u32, vec3f
from kerngen.runtime.calls.kernel import Kernel, ScalarSpec, Temporary, TensorSpec
from kerngen.runtime.struct import Field, UniformStruct
from kerngen.runtime.values.elements import i32

FOLDER = Path(__file__).with_name("wgsl")


def uniform(*fields: Field, size: int) -> type[UniformStruct]:
    """Return a uniform struct of these fields."""
    dtype = np.dtype(
        {
            "names": [field.name for field in fields],
            "formats": [field.dtype for field in fields],
            "offsets": [field.offset for field in fields],
            "itemsize": size,
        }
    )
    body = {"FIELDS": fields, "SIZE": size, "DTYPE": dtype}
    return type("HandWrittenUniform", (UniformStruct,), body)


def tensor(
    name: str, *axes: str | int, access: Access = "read", element: type[Element] = f32
) -> TensorSpec:
    return TensorSpec(name, element, axes, access)


def one(
    stage: str,
    wgsl: str,
    *bindings: Binding,
    groups: Size,
    uses_uniform: bool = True,
) -> Choice:
    """Return the choice of a stage that is always run by one dispatch."""
    dispatch = Dispatch(wgsl, bindings, groups, uses_uniform)
    return Choice((Case("map", (dispatch,)),), (stage,))


def as_given(*values: float) -> tuple[float, ...]:
    """Return dims and scalars as the uniform struct holds them."""
    return values


PER_64 = ceil_div(Symbol("n"), 64)


def axpy_reference(x: NDArray[Any], y: NDArray[Any], *, alpha: float) -> NDArray[Any]:
    return np.asarray(np.float32(alpha) * x + y)


AXPY = Kernel(
    name="axpy",
    origin="hand.kern:1",
    folder=FOLDER,
    dims=("n",),
    tensors=(tensor("x", "n"), tensor("y", "n"), tensor("z", "n", access="write")),
    scalars=(ScalarSpec("alpha", f32),),
    uniform=uniform(Field("n", u32, 0), Field("alpha", f32, 4), size=8),
    hosts=as_given,
    reference=axpy_reference,
    read_body=lambda: (
        one(
            "z",
            "axpy",
            Binding("x"),
            Binding("y"),
            Binding("z", writes=True),
            groups=PER_64,
        ),
    ),
)
"""z = alpha x + y."""


def accumulate_reference(
    total: NDArray[Any], x: NDArray[Any], *, factor: float
) -> None:
    total += np.float32(factor) * x


ACCUMULATE = Kernel(
    name="accumulate",
    origin="hand.kern:2",
    folder=FOLDER,
    dims=("n",),
    tensors=(tensor("total", "n", access="update"), tensor("x", "n")),
    scalars=(ScalarSpec("factor", f32),),
    uniform=uniform(Field("n", u32, 0), Field("factor", f32, 4), size=8),
    hosts=as_given,
    reference=accumulate_reference,
    read_body=lambda: (
        one(
            "total",
            "accumulate",
            Binding("total", writes=True),
            Binding("x"),
            groups=PER_64,
        ),
    ),
)
"""total += factor x, in place."""


def swap_reference(a: NDArray[Any], b: NDArray[Any]) -> None:
    a[...], b[...] = b.copy(), a.copy()


SWAP = Kernel(
    name="swap",
    origin="hand.kern:3",
    folder=FOLDER,
    dims=("n",),
    tensors=(tensor("a", "n", access="update"), tensor("b", "n", access="update")),
    scalars=(),
    uniform=uniform(Field("n", u32, 0), size=4),
    hosts=as_given,
    reference=swap_reference,
    read_body=lambda: (
        one(
            "b",
            "swap",
            Binding("a", writes=True),
            Binding("b", writes=True),
            groups=PER_64,
        ),
    ),
)
"""Exchange two vectors, in place."""


def centre_reference(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x - x.mean())


CENTRE = Kernel(
    name="centre",
    origin="hand.kern:4",
    folder=FOLDER,
    dims=("n",),
    tensors=(tensor("x", "n"), tensor("y", "n", access="write")),
    scalars=(),
    uniform=uniform(Field("n", u32, 0), size=4),
    hosts=as_given,
    reference=centre_reference,
    temporaries=(Temporary("total", f32, ()),),
    read_body=lambda: (
        one(
            "total",
            "centre.sum",
            Binding("x"),
            Binding("total", writes=True),
            groups=ONE,
        ),
        one(
            "y",
            "centre.shift",
            Binding("x"),
            Binding("total"),
            Binding("y", writes=True),
            groups=PER_64,
        ),
    ),
)
"""y = x - mean(x): two stages and a temporary between them."""


def count_reference(x: NDArray[Any]) -> None:
    x += np.arange(x.size, dtype=np.uint32)


COUNT = Kernel(
    name="count",
    origin="hand.kern:5",
    folder=FOLDER,
    dims=("n",),
    tensors=(tensor("x", "n", access="update", element=u32),),
    scalars=(),
    uniform=uniform(Field("n", u32, 0), size=4),
    hosts=as_given,
    reference=count_reference,
    read_body=lambda: (
        one("x", "count", Binding("x", writes=True), groups=Symbol("n")),
    ),
)
"""x[i] += i, with a workgroup for each element."""


def matmul_reference(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(a @ b)


MATMUL = Kernel(
    name="matmul",
    origin="hand.kern:6",
    folder=FOLDER,
    dims=("m", "k", "n"),
    tensors=(
        tensor("a", "m", "k"),
        tensor("b", "k", "n"),
        tensor("c", "m", "n", access="write"),
    ),
    scalars=(),
    uniform=uniform(
        Field("m", u32, 0), Field("k", u32, 4), Field("n", u32, 8), size=12
    ),
    hosts=as_given,
    reference=matmul_reference,
    read_body=lambda: (
        one(
            "c",
            "matmul",
            Binding("a"),
            Binding("b"),
            Binding("c", writes=True),
            groups=Symbol("m") * Symbol("n"),
        ),
    ),
)
"""c = a b."""


def doubled_reference(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(2 * x.astype(np.float32))


DOUBLED = Kernel(
    name="doubled",
    origin="hand.kern:7",
    folder=FOLDER,
    dims=("n",),
    tensors=(tensor("x", "n", element=f16), tensor("y", "n", access="write")),
    scalars=(),
    uniform=uniform(Field("n", u32, 0), size=4),
    hosts=as_given,
    reference=doubled_reference,
    read_body=lambda: (
        one("y", "halves", Binding("x"), Binding("y", writes=True), groups=PER_64),
    ),
)
"""y = 2 x, from f16 elements."""


def stamp_reference(
    *, step: int, offset: int, scale: tuple[float, ...]
) -> NDArray[Any]:
    return np.array([step, offset, sum(scale), 1 / (step - 1)], np.float32)


def stamp_hosts(step: int, offset: int, scale: tuple[float, ...]) -> tuple[float, ...]:
    return (step, offset, *scale, 1 / (step - 1))


STAMP = Kernel(
    name="stamp",
    origin="hand.kern:8",
    folder=FOLDER,
    dims=(),
    tensors=(tensor("y", 4, access="write"),),
    scalars=(
        ScalarSpec("step", u32),
        ScalarSpec("offset", i32),
        ScalarSpec("scale", vec3f),
    ),
    uniform=uniform(
        Field("step", u32, 0),
        Field("offset", i32, 4),
        Field("scale", vec3f, 16),
        Field("rest", f32, 28),
        size=32,
    ),
    hosts=stamp_hosts,
    reference=stamp_reference,
    read_body=lambda: (one("y", "stamp", Binding("y", writes=True), groups=ONE),),
)
"""Write scalars of every type, and a host value that fails for step 1."""

BROKEN = replace(
    COUNT,
    name="broken",
    read_body=lambda: (
        one("x", "broken", Binding("x", writes=True), groups=Symbol("n")),
    ),
)
"""A kernel whose shader is no WGSL."""


def first_of(*dims: float) -> tuple[float, ...]:
    return dims[:1]


def do_nothing(*_arrays: NDArray[Any]) -> None:
    pass


LOOKUP = replace(
    COUNT,
    name="lookup",
    dims=("n", "k"),
    tensors=(
        tensor("x", "n", access="update", element=u32),
        tensor("table", "k"),
        tensor("rows", 3, "k"),
    ),
    hosts=first_of,
    checks=(
        RangeCheck("i", "table", 0, "k", (AffineTerm(ONE, "n"),), ("n",)),
        RangeCheck("j", "rows", 1, "k", (AffineTerm(ONE, 2),), ("n", 2)),
    ),
    reference=do_nothing,
)
"""A kernel whose index ranges the host must check."""


def launch(
    kernel: Kernel,
    *tensors: Any,
    out: tuple[Any, ...] | None = None,
    ctx: Any = None,
    **scalars: Any,
) -> tuple[Any, ...]:
    """Launch as a generated binding would, whose arguments no type checker saw."""
    ordered = tuple(scalars[spec.name] for spec in kernel.scalars)
    return kernel.launch(ctx, tensors, ordered, out)


def internals(ctx: Context) -> Any:
    """Return a context's backend, to look inside."""
    return ctx.backend


def refuse(
    ctx: Context,
    error: type[Error],
    message: str,
    kernel: Kernel,
    /,
    *tensors: Any,
    **rest: Any,
) -> None:
    """Launch, expect the error with this text, and that nothing was recorded."""
    ctx.submit()
    before = ctx.counters.snapshot()
    with pytest.raises(error) as caught:
        launch(kernel, *tensors, **rest)
    assert message in str(caught.value)
    ctx.submit()
    after = ctx.counters - before
    assert (after.calls, after.dispatches, after.encoders) == (0, 0, 0)

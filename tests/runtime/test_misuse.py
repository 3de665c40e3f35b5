"""What beginners pass by mistake gets an error in their own words."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen_kernels import elementwise, indexing, optim

NO_TENSOR: Any = np.ones(3, np.float32)
NO_DEVICE: Any = "gpu"
NO_CONTEXT: Any = 3
NO_ELEMENT: Any = np.float32


def test_an_array_is_no_tensor() -> None:
    with pytest.raises(
        gpu.DtypeError, match=r"'x' is a numpy.ndarray.*ctx\.vector\(x, f32"
    ):
        elementwise.relu(NO_TENSOR)


def test_a_number_is_no_context(ctx: gpu.Context) -> None:
    with pytest.raises(
        gpu.ContextError, match=r"relu \(dsl/elementwise.kern:\d+\): ctx is an int"
    ):
        elementwise.relu(ctx.zeros(3, f32), ctx=NO_CONTEXT)


def test_a_wrong_calls_traceback_ends_at_the_call(ctx: gpu.Context) -> None:
    with pytest.raises(gpu.ShapeError) as caught:
        elementwise.add(ctx.zeros(3, f32), ctx.zeros(2, f32))
    assert [entry.name for entry in caught.traceback][1:] == ["add", "launch"]


def test_the_name_of_an_adapter_is_no_device() -> None:
    with pytest.raises(
        gpu.ArgumentError, match=r"got 'gpu'; .* open\(adapter=\.\.\.\)"
    ):
        gpu.open(NO_DEVICE)


def test_a_numpy_dtype_is_no_element_type(ctx: gpu.Context) -> None:
    for make in (ctx.zeros, ctx.empty):
        with pytest.raises(gpu.DtypeError, match="got float32"):
            make(3, NO_ELEMENT)
    with pytest.raises(gpu.DtypeError, match=r"element type of kerngen\.runtime"):
        ctx.vector([1.0], NO_ELEMENT)


def test_contexts_that_look_alike_are_told_apart() -> None:
    """The text that names both would say the same twice."""
    with gpu.open(adapter="reference") as one, gpu.open(adapter="reference") as other:
        x, y = one.zeros(4, f32), other.zeros(4, gpu.f32)
        with pytest.raises(gpu.ContextError) as caught:
            elementwise.add(x, y)
    text = str(caught.value)
    assert text.startswith("add (dsl/elementwise.kern:")
    assert "'b' belongs to another Context(reference: NumPy" in text
    assert text.count("Context(") == 1


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_a_device_holds_is_not_copied(
    how: Callable[[object], object], ctx: gpu.Context
) -> None:
    for value in (ctx.zeros(3, f32), ctx):
        with pytest.raises(gpu.DtypeError, match="is on its device: it can't be"):
            how(value)


def test_functions_of_kernels_are_sent_by_name() -> None:
    assert pickle.loads(pickle.dumps(elementwise.relu)) is elementwise.relu


def test_a_list_that_holds_itself(ctx: gpu.Context) -> None:
    values: list[Any] = []
    values.append(values)
    with pytest.raises(gpu.ShapeError, match="it holds itself"):
        ctx.vector(values, f32)


def test_no_host_has_so_much_memory() -> None:
    with gpu.open(adapter="reference") as reference:
        for length in (2**50, 2**70):
            with pytest.raises(gpu.OutOfMemoryError, match="no memory for"):
                reference.zeros(length, f32)


def test_a_number_too_large_is_told_by_the_name_of_its_argument(
    ctx: gpu.Context,
) -> None:
    x = ctx.zeros(3, f32)
    with pytest.raises(
        gpu.UniformRangeError,
        match=r"^scale \(dsl/.*:\d+\): scalar argument 'alpha' is 1e\+300; f32 holds",
    ):
        elementwise.scale(x, alpha=1e300)


def test_a_tensor_of_another_library_is_told_apart() -> None:
    foreign: Any = type("Tensor", (), {"__module__": "torch"})()
    with pytest.raises(gpu.DtypeError, match=r"is a torch\.Tensor; expected a tensor"):
        elementwise.relu(foreign)


@pytest.mark.parametrize(
    ("out", "kind"), [(5, "an int"), (0, "an int"), ([], "a list"), ("xy", "a str")]
)
def test_what_is_no_tuple_is_no_out_of_several(
    out: Any, kind: str, ctx: gpu.Context
) -> None:
    x = ctx.zeros(3, f32)
    message = (
        rf"^swish_mul \(.*: out is {kind}; expected a tuple of 2 .* \(activated, y\)"
    )
    with pytest.raises(gpu.DtypeError, match=message):
        elementwise.swish_mul(x, x, out=out)


def test_one_tensor_is_no_out_of_several(ctx: gpu.Context) -> None:
    x: Any = ctx.zeros(3, f32)
    with pytest.raises(
        gpu.DtypeError, match="out is one tensor; expected a tuple of 2"
    ):
        elementwise.swish_mul(x, x, out=x)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_out_of_several_has_one_tensor_for_each(count: int, ctx: gpu.Context) -> None:
    x = ctx.zeros(3, f32)
    out: Any = (x,) * count
    with pytest.raises(gpu.ShapeError, match=f"expected 2 out tensors, got {count}"):
        elementwise.swish_mul(x, x, out=out)


def test_a_tensor_is_neither_true_nor_false(ctx: gpu.Context) -> None:
    for tensor in (ctx.zeros(3, f32), ctx.zeros(1, f32), ctx.zeros(0, f32)):
        with pytest.raises(gpu.ArgumentError, match="'tensor is not None'"):
            bool(tensor)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0, 2.0], "is a list; expected an array, which is changed in place"),
        (np.broadcast_to(1.0, 2), "is read-only"),
        (np.ones(2, np.int64), "has dtype int64, and is changed in place"),
    ],
)
def test_a_reference_changes_arrays_alone(given: Any, message: str) -> None:
    with pytest.raises(gpu.DtypeError, match=f"sgd .*argument 'param' {message}"):
        optim.sgd_reference(given, np.ones(2), lr=0.1)


@pytest.mark.parametrize("ids", [np.ones(3), None, ["a"]])
def test_a_reference_takes_integers_for_integers(ids: Any) -> None:
    with pytest.raises(gpu.DtypeError, match=r"argument 'ids' has dtype .*; expected"):
        indexing.one_hot_reference(ids, columns=3)

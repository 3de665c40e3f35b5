"""What beginners pass by mistake gets an error in their own words."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import f32, vec3f
from kerngen.runtime.calling import kernel_function
from kerngen.runtime.calls.habits import ADVICE, CONTEXT_ADVICE, KERNELS
from kerngen_kernels import elementwise, indexing, optim
from tests.compile import built_module

from .structs import Particle

NO_TENSOR: Any = np.ones(3, np.float32)
NO_DEVICE: Any = "gpu"
NO_CONTEXT: Any = 3


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
    assert [entry.name for entry in caught.traceback][1:] == ["call", "add", "launch"]


def test_the_name_of_an_adapter_is_no_device() -> None:
    with pytest.raises(
        gpu.ArgumentError, match=r"got 'gpu'; .* open\(adapter=\.\.\.\)"
    ):
        gpu.open(NO_DEVICE)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            "axpy(x, x, 3.0)",
            "given by name: alpha=3.0. Call it as axpy(x, y, alpha=...).",
        ),
        ("clamp(x, 0.0, 1.0)", "given by name: low=0.0, high=1.0."),
        ("clamp(x, 0.0, high=1.0)", "given by name: low=0.0."),
        ("axpy(x, x)", "no 'alpha' is given. Call it as axpy(x, y, alpha=...)."),
        ("axpy(x, x, alhpa=3.0)", "no argument 'alhpa'; did you mean 'alpha'?"),
        ("axpy(x, x, y=x, alpha=1.0)", "'y' is given in order and by name."),
        ("add(x)", "no 'b' is given."),
        ("add(x, x, x)", "the tensor to write is given by name: out=..."),
        ("add(x, x, x, x)", "it takes 2 arguments in order, got 4."),
        ("relu(x, 1.0)", "it takes 1 argument in order, got 2. Call it as relu(x)."),
        (
            "axpy_reference(a, a, 3.0)",
            "axpy_reference: numbers and structs are given by",
        ),
    ],
)
def test_a_call_that_does_not_fit_is_answered_by_one_that_does(
    call: str, told: str, ctx: gpu.Context
) -> None:
    names = {"x": ctx.zeros(3, f32), "a": np.ones(3), **vars(elementwise)}
    with pytest.raises(gpu.DtypeError) as caught:
        eval(call, names)
    assert told in str(caught.value)


def test_what_a_function_raises_within_is_no_wrong_call() -> None:
    @kernel_function
    def broken() -> None:
        raise TypeError("within")

    with pytest.raises(TypeError, match=r"^within$") as caught:
        broken()
    assert not isinstance(caught.value, gpu.Error)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("zeros(3, 4, f32)", "write ctx.zeros((3, 4), f32)."),
        ("zeros((3, 4))", "write ctx.zeros((3, 4), f32)."),
        ("empty([5], dtype=vec3f)", "write ctx.empty((5,), vec3f)."),
        ("zeros()", "write ctx.zeros((m, n), f32)."),
    ],
)
def test_a_shape_is_one_argument(call: str, told: str, ctx: gpu.Context) -> None:
    with pytest.raises(gpu.DtypeError) as caught:
        eval(f"ctx.{call}", {"ctx": ctx, "f32": f32, "vec3f": vec3f})
    assert told in str(caught.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint32])
def test_numpys_types_are_taken_for_the_elements_that_hold_them(
    dtype: Any, ctx: gpu.Context
) -> None:
    array = np.array([[1, 2]], dtype)
    makers = (ctx.zeros, ctx.empty)
    for given in (dtype, np.dtype(dtype), np.dtype(dtype).newbyteorder(">")):
        made = [ctx.tensor(array, given), ctx.matrix(array, given)]
        made += [make((1, 2), given) for make in makers]
        made += [ctx.wrap(made[0].buffer, (1, 2), given)]
        for tensor in made:
            assert tensor.element is ctx.tensor(array).element
            assert tensor.dtype == dtype
            assert tensor.dtype == tensor.element
        assert made[0].numpy().tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (np.float64, "got float64. Write f32."),
        (np.dtype("u2"), "got dtype('uint16'). Write u32."),
        (float, "got float. Write f32."),
        (int, "got int. Write i32."),
        ("float32", "got 'float32'. Write f32."),
        (np.floating, "got floating."),
        ("f33", "got 'f33'."),
        (None, "got None."),
        (f32(), "got <kerngen.runtime.values.elements.f32 object"),
    ],
)
def test_other_types_are_no_elements(wrong: Any, told: str, ctx: gpu.Context) -> None:
    for make in (ctx.zeros, ctx.empty):
        with pytest.raises(gpu.DtypeError) as caught:
            make(3, wrong)
        assert told in str(caught.value)


def test_a_tensor_has_the_dtype_of_its_array(ctx: gpu.Context) -> None:
    for element in (f32, vec3f, Particle):
        tensor = ctx.zeros((2, 3), element)
        assert tensor.dtype == tensor.numpy().dtype
    assert [len(ctx.zeros(shape, f32)) for shape in (0, 5, (2, 3))] == [0, 5, 2]
    with pytest.raises(gpu.DtypeError, match="rank 0 has no length: its size is 1"):
        len(ctx.scalar(1.0, f32))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "t + 1",
            r"call kerngen_kernels\.elementwise\.add, or a kernel of your own, ins",
        ),
        (
            "1 - t",
            r"call kerngen_kernels\.elementwise\.sub, or a kernel of your own, ins",
        ),
        ("t @ t", r"matmul_nn, or .* instead of '@'\. NumPy computes 't\.numpy\(\) @"),
        ("t ** 2", r"call a kernel of your own instead of '\*\*'"),
        ("t < 0", r"instead of '<'\."),
        ("-t", r"call kerngen_kernels\.elementwise\.neg, or .* instead of '-t'"),
        ("abs(t)", r"NumPy computes 'abs\(t\.numpy\(\)\)', which reads"),
    ],
)
def test_tensors_have_no_operators(text: str, told: str, ctx: gpu.Context) -> None:
    with pytest.raises(gpu.DtypeError, match=told):
        eval(text, {"t": ctx.zeros((2, 2), f32)})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a + t", r"^np\.add, or an array's operator"),
        ("t + a", r"call .* instead of '\+'"),
        ("a == t", r"^np\.equal,"),
        ("np.float32(1) * t", r"np\.multiply,|instead of '\*'"),
        ("np.exp(t)", r"^np\.exp,.*read it first by t\.numpy\(\)"),
        ("np.matmul(a, t)", r"^np\.matmul,"),
        ("np.add(a, a, out=t)", r"^np\.add,"),
        ("np.sum(t)", r"^np\.add,"),
        ("np.maximum.reduce(t)", r"^np\.maximum,"),
    ],
)
def test_numpy_does_not_compute_with_tensors_unseen(
    text: str, told: str, ctx: gpu.Context
) -> None:
    names = {"np": np, "t": ctx.zeros((2, 2), f32), "a": np.ones((2, 2), np.float32)}
    with pytest.raises(gpu.DtypeError, match=told):
        eval(text, names)


def test_numpy_reads_a_tensor_that_is_made_an_array(ctx: gpu.Context) -> None:
    tensor = ctx.vector([1, 2], f32)
    assert np.asarray(tensor).tolist() == [1, 2]
    assert np.array(tensor, np.float64).dtype == np.float64
    assert np.array_equal(tensor, [1, 2])
    np.testing.assert_array_equal(tensor, [1, 2])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("float(t)", r"'float\(t\.item\(\)\)' reads the only element"),
        ("int(t)", r"'int\(t\.item\(\)\)'"),
        ("complex(t)", r"'complex\(t\.item\(\)\)'"),
        ("t[0] = 1", r"write rows by t\[2:5\]\.copy_from\(array\)"),
        ("del t[0]", r"neither assigned nor deleted"),
        (
            "ctx.zeros(3, 4)",
            r"got 4\. A shape .* is a tuple: ctx\.zeros\(\(3, 4\), f32",
        ),
        ("ctx.vector([1, 2])", r"write ctx\.vector\(array, f32\)\."),
        ("ctx.matrix(f32)", r"write ctx\.matrix\(array, f32\)\."),
        ("ctx.scalar()", r"write ctx\.scalar\(value, f32\)\."),
        ("ctx.tensor4(1, u32, 2)", r"write ctx\.tensor4\(array, u32\)\."),
        ("ctx.tensor()", r"write ctx\.tensor\(array, f32\)\."),
        ("ctx.tensor3()", r"write ctx\.tensor3\(array, f32\)\."),
    ],
)
def test_pythons_own_words_are_replaced(text: str, told: str, ctx: gpu.Context) -> None:
    names = {"t": ctx.zeros(1, f32), "ctx": ctx, "f32": f32, "u32": gpu.u32}
    with pytest.raises(gpu.DtypeError, match=told):
        exec(text, names)


def test_tensors_are_not_compared_unseen(ctx: gpu.Context) -> None:
    a, b = ctx.zeros(2, f32), ctx.zeros(2, f32)
    arrays = np.zeros(2, np.float32), np.float32(0)
    others: tuple[Any, ...] = (b, 0, 1.0, [0, 0], (0, 0), *arrays)
    for other in others:
        with pytest.raises(
            gpu.ArgumentError, match=r"np\.array_equal\(a\.numpy\(\), b"
        ):
            _ = a == other
        with pytest.raises(gpu.ArgumentError, match="'a is b'"):
            _ = a != other
    nothing: Any = None
    assert a != nothing
    assert a != "a"
    assert a in [a, b]
    assert {a: 1, b: 2}[b] == 2
    assert len({a, b, a}) == 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("T", r"kerngen_kernels\.layout\.transpose\(t\)"),
        ("astype", r"kerngen_kernels\.cast"),
        ("sum", r"kerngen_kernels\.reduction"),
        ("device", r"t\.ctx"),
        ("shapes", r"has no attribute 'shapes'$"),
    ],
)
def test_attributes_of_arrays_are_answered(
    name: str, told: str, ctx: gpu.Context
) -> None:
    tensor = ctx.zeros((2, 2), f32)
    assert not hasattr(tensor, name)
    with pytest.raises(AttributeError, match=told):
        getattr(tensor, name)


def test_attributes_that_a_context_lacks_are_answered(ctx: gpu.Context) -> None:
    assert not hasattr(ctx, "ones")
    with pytest.raises(
        AttributeError, match=r"'ones'\. Upload .*np\.ones\(shape\), f32"
    ):
        _ = getattr(ctx, "ones")  # noqa: B009 - type checkers know that there is none
    with pytest.raises(AttributeError, match=r"has no attribute 'closes'$"):
        getattr(ctx, "closes")  # noqa: B009 - the same


def test_advice_names_what_there_is(ctx: gpu.Context) -> None:
    texts = [*ADVICE.values()]
    texts += [f"kerngen_kernels.{name}" for name in KERNELS.values()]
    for text in texts:
        for path in re.findall(r"kerngen_kernels((?:\.\w+)+)", text):
            module, *names = path[1:].split(".")
            made = import_module(f"kerngen_kernels.{module}")
            assert all(hasattr(made, name) for name in names), path
    for text in CONTEXT_ADVICE.values():
        for owner, prefix in ((ctx, "ctx"), (np, "np")):
            for path in re.findall(rf"\b{prefix}((?:\.\w+)+)", text):
                assert attrgetter(path[1:])(owner), path
    assert not set(ADVICE) & set(dir(ctx.zeros(1, f32)))
    assert not set(CONTEXT_ADVICE) & set(dir(ctx))


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


PAIRS = "struct Pair { a: f32, b: f32 } kernel f(x: Pair[n]) -> y: f32[n] { y[i] = x[i].a; }"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("ctx.vector([Pair(1, 2), (1, 2)], Pair)", r"got a tuple at \[1\]: write Pair"),
        ("ctx.vector([1, 2], 'f32')", "got 'f32'. Write f32, without quotes."),
        (
            "Pair.pack_array(5)",
            r"several instances of Pair, as \[Pair\(...\)\], got an int",
        ),
        (
            "f_reference([Pair(1, 2)])",
            "'x' is a list; expected an array of Pair.DTYPE, as",
        ),
    ],
)
def test_structs_that_are_no_array(ctx: gpu.Context, wrong: str, message: str) -> None:
    with (
        built_module(PAIRS) as module,
        pytest.raises(gpu.DtypeError, match=message),
    ):
        eval(wrong, {**vars(module), "ctx": ctx})

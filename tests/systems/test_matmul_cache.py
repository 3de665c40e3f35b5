"""Products with resident weights: values, names, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any, assert_type, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.matmul_cache import Layout, MatmulCache, MemoryUse
from kerngen.matmul_cache.weights import Weight
from kerngen.runtime import Context, Matrix, Vector, f16, f32
from tests.systems.products import check_product

RNG = np.random.default_rng(5)


@pytest.fixture
def cache(ctx: Context) -> MatmulCache:
    return MatmulCache(ctx)


@pytest.fixture(scope="module")
def reference() -> Iterator[Context]:
    with gpu.open(adapter="reference") as ctx:
        yield ctx


def normal(*shape: int) -> NDArray[np.float32]:
    return RNG.normal(size=shape).astype(np.float32)


def as_stored(weight: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """A weight [n, k] as a layout has it."""
    return weight if layout == "nk" else weight.T


# ---- values


@given(
    m=st.integers(1, 20),
    k=st.integers(1, 70),
    n=st.integers(1, 70),
    layout=st.sampled_from(get_args(Layout)),
)
def test_results_agree_with_float64(
    ctx: Context, m: int, k: int, n: int, layout: Layout
) -> None:
    cache, weight, x = MatmulCache(ctx), normal(n, k), normal(m, k)
    cache.upload_weight("w", as_stored(weight, layout), layout)
    check_product(cache.matmul("w", x), x, weight, f"{(m, k, n, layout)}")


@pytest.mark.parametrize("layout", get_args(Layout))
@pytest.mark.parametrize(("k", "n"), [(64, 48), (65, 63), (127, 5)])
def test_rows_do_not_depend_on_how_many_there_are(
    cache: MatmulCache, k: int, n: int, layout: Layout
) -> None:
    weight, x = normal(n, k), normal(130, k)
    cache.upload_weight("w", as_stored(weight, layout), layout)
    for m in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 64, 65, 128, 130):
        check_product(cache.matmul("w", x[:m]), x[:m], weight, f"m = {m}")


@pytest.mark.parametrize("layout", get_args(Layout))
def test_the_reference_agrees(reference: Context, layout: Layout) -> None:
    cache, weight, x = MatmulCache(reference), normal(33, 17), normal(4, 17)
    cache.upload_weight("w", as_stored(weight, layout), layout)
    check_product(cache.matmul("w", x), x, weight, "matrix")
    row: NDArray[np.float32] = x[0]
    check_product(cache.matmul("w", row), row, weight, "vector")


@pytest.mark.parametrize("layout", get_args(Layout))
@pytest.mark.parametrize(("m", "k", "n"), [(0, 5, 7), (2, 0, 7), (1, 0, 7), (3, 5, 0)])
def test_empty_products(
    cache: MatmulCache, m: int, k: int, n: int, layout: Layout
) -> None:
    cache.upload_weight("w", as_stored(np.ones((n, k)), layout), layout)
    cache.matmul("w", np.ones((9, k)))  # buffers that hold something
    np.testing.assert_array_equal(cache.matmul("w", np.ones((m, k))), np.zeros((m, n)))


def test_arrays_give_arrays_and_tensors_tensors(
    ctx: Context, cache: MatmulCache
) -> None:
    weight, x = normal(6, 4), normal(3, 4)
    cache.upload_weight("w", weight)
    row: NDArray[np.float32] = x[1]
    matrix = assert_type(cache.matmul("w", ctx.matrix(x, f32)), Matrix[f32])
    vector = assert_type(cache.matmul("w", ctx.vector(row, f32)), Vector[f32])
    array = assert_type(cache.matmul("w", row), NDArray[np.float32])
    assert (matrix.shape, vector.shape) == ((3, 6), (6,))
    check_product(matrix.numpy(), x, weight, "matrix")
    check_product(vector.numpy(), row, weight, "vector")
    check_product(array, row, weight, "array of rank 1")
    check_product(cache.matmul("w", x[:1]), x[:1], weight, "one row")
    assert cache.matmul("w", [[1.0, 2.0, 3.0, 4.0]] * 3).shape == (3, 6)


def test_a_view_that_the_adapter_cannot_bind(ctx: Context, cache: MatmulCache) -> None:
    weight, x = normal(6, 5), normal(4, 5)
    cache.upload_weight("w", weight)
    view = ctx.matrix(x, f32).rows(1, 4)
    check_product(cache.matmul("w", view).numpy(), x[1:], weight, "view")
    check_product(cache.matmul("w", view[0:1]).numpy(), x[1:2], weight, "one row")


def test_results_of_earlier_calls_stay(ctx: Context, cache: MatmulCache) -> None:
    cache.upload_weight("w", np.eye(3))
    arrays = [cache.matmul("w", np.full(3, value)) for value in range(3)]
    tensors = [cache.matmul("w", ctx.vector(np.full(3, v), f32)) for v in range(3)]
    for value in range(3):
        np.testing.assert_array_equal(arrays[value], np.full(3, value))
        np.testing.assert_array_equal(tensors[value].numpy(), np.full(3, value))


def test_layers_follow_each_other_without_a_read(
    ctx: Context, cache: MatmulCache
) -> None:
    up, down, x = normal(9, 5), normal(5, 9), normal(2, 5)
    cache.upload_weight("up", up)
    cache.upload_weight("down", down)
    before = ctx.counters.snapshot()
    tensor = ctx.matrix(x, f32)
    for _ in range(3):
        tensor = cache.matmul("down", cache.matmul("up", tensor))
    done = ctx.counters - before
    assert (done.readbacks, done.submits, done.uploads) == (0, 0, 1)
    expected = x @ np.linalg.matrix_power((down @ up).T.astype(np.float64), 3)
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u4", "i8", ">f4"])
def test_numbers_are_converted(cache: MatmulCache, dtype: str) -> None:
    weight, x = np.arange(12).reshape(3, 4), np.arange(8).reshape(2, 4)
    cache.upload_weight("w", weight.astype(dtype))
    np.testing.assert_array_equal(cache.matmul("w", x.astype(dtype)), x @ weight.T)


def test_strided_arrays(cache: MatmulCache) -> None:
    weight, x = normal(12, 10)[::2, ::-1], normal(6, 20)[::3, ::2]
    cache.upload_weight("w", weight)
    check_product(cache.matmul("w", x), x, weight, "strided")


# ---- names and memory


def test_weights_come_and_go(cache: MatmulCache) -> None:
    cache.upload_weight("up", np.ones((3, 4)))
    cache.upload_weight("down", np.ones((5, 2)), layout="kn")
    assert list(cache.weight_names) == ["up", "down"]
    assert (cache.weight_count, cache.weight_bytes) == (2, 4 * (12 + 10))
    cache.upload_weight("up", np.full((1, 6), 2.0))
    np.testing.assert_array_equal(cache.matmul("up", np.ones(6)), [12.0])
    assert (cache.weight_count, cache.weight_bytes) == (2, 4 * (6 + 10))
    cache.remove_weight("up")
    assert list(cache.weight_names) == ["down"]
    cache.upload_weight("up", np.ones((3, 4)))
    assert cache.memory.weights == cache.weight_bytes == 4 * (12 + 10)


def test_a_refused_upload_leaves_the_old_weight(cache: MatmulCache) -> None:
    cache.upload_weight("w", np.full((1, 1), 3.0))
    with pytest.raises(gpu.DtypeError, match="beyond the range of f32"):
        cache.upload_weight("w", np.full((1, 1), 1e300))
    np.testing.assert_array_equal(cache.matmul("w", [2.0]), [6.0])


def test_an_upload_while_the_bytes_are_counted(
    cache: MatmulCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"late {number}" for number in range(3)]

    def count(weight: Weight) -> int:
        """Return the bytes of a weight, once another thread has uploaded one."""
        if names:
            upload = Thread(target=cache.upload_weight, args=(names.pop(), [[1.0]]))
            upload.start()
            upload.join()
        return 4 * weight.k * weight.n

    for number in range(3):
        cache.upload_weight(f"early {number}", np.ones((2, 2)))
    monkeypatch.setattr(Weight, "nbytes", property(count))
    assert cache.memory.weights == 3 * 16
    assert cache.weight_bytes == 3 * (16 + 4)


def test_a_removal_between_look_up_and_removal(cache: MatmulCache) -> None:
    class Name(str):
        """A name at whose second look-up another thread removes the weight."""

        __slots__ = ("looks",)
        looks: int

        def __hash__(self) -> int:
            self.looks += 1
            if self.looks == 2:
                thread = Thread(target=cache.remove_weight, args=(str(self),))
                thread.start()
                thread.join()
            return hash(str(self))

    name = Name("w")
    name.looks = 0
    cache.upload_weight("w", [[1.0]])
    cache.remove_weight(name)
    assert cache.weight_count == 0
    with pytest.raises(gpu.UnknownNameError):
        cache.remove_weight("w")


def test_memory_is_reported_and_released(cache: MatmulCache) -> None:
    cache.upload_weight("w", np.ones((6, 4)))
    assert cache.memory == MemoryUse(weights=96, inputs=0, outputs=0)
    cache.matmul("w", np.ones((5, 4)))
    cache.matmul("w", np.ones((2, 4)))
    assert cache.memory == MemoryUse(weights=96, inputs=80, outputs=120)
    assert cache.memory.total == 96 + 80 + 120
    cache.release_buffers()
    assert cache.memory == MemoryUse(weights=96, inputs=0, outputs=0)
    np.testing.assert_array_equal(cache.matmul("w", np.ones(4)), np.full(6, 4.0))


# ---- what is refused


def test_unknown_names(cache: MatmulCache) -> None:
    with pytest.raises(
        gpu.UnknownNameError, match=r"called 'up'\. There are: none yet"
    ):
        cache.matmul("up", np.ones(4))
    for name in ("gate", "down"):
        cache.upload_weight(name, np.ones((2, 2)))
    message = r"no weight is called 'gaet'\. Did you mean 'gate'\? There are: 'gate', 'down'\."
    with pytest.raises(gpu.UnknownNameError, match=message):
        cache.matmul("gaet", np.ones(4))
    with pytest.raises(LookupError, match=r"'x'\. There are"):
        cache.remove_weight("x")
    for number in range(30):
        cache.upload_weight(f"layer.{number}", np.ones((1, 1)))
    with pytest.raises(gpu.UnknownNameError, match=r"'layer\.17' and 12 more\."):
        cache.matmul("", np.ones(4))


Refused = Callable[[Any], object]

REFUSED: list[tuple[Refused, type[Exception], str]] = [
    (lambda c: c.upload_weight("", np.ones((1, 1))), gpu.ArgumentError, "got ''"),
    (lambda c: c.upload_weight(" ", np.ones((1, 1))), gpu.ArgumentError, "blank"),
    (lambda c: c.upload_weight(3, np.ones((1, 1))), gpu.ArgumentError, "got 3"),
    (
        lambda c: c.upload_weight("v", np.ones((1, 1)), layout="mk"),
        gpu.ArgumentError,
        "'nk' .* or 'kn', got 'mk'",
    ),
    (
        lambda c: c.upload_weight("v", np.ones(3)),
        gpu.ShapeError,
        r"'v' has shape \(3,\) \(rank 1\); expected a matrix \[n, k\]",
    ),
    (
        lambda c: c.upload_weight("v", np.ones((1, 2, 3)), layout="kn"),
        gpu.ShapeError,
        r"expected a matrix \[k, n\]",
    ),
    (
        lambda c: c.upload_weight("v", np.ones((1, 1), complex)),
        gpu.DtypeError,
        "weight 'v': An array of complex128",
    ),
    (
        lambda c: c.upload_weight("v", [["a"]]),
        gpu.DtypeError,
        "weight 'v': An array of <U1",
    ),
    (
        lambda c: c.matmul("w", np.ones((2, 5))),
        gpu.ShapeError,
        r"x has shape \(2, 5\); weight 'w' \(nk, n = 3\) expects \(4,\) or \(m, 4\)",
    ),
    (lambda c: c.matmul("w", np.ones((1, 2, 4))), gpu.ShapeError, r"\(1, 2, 4\)"),
    (lambda c: c.matmul("w", 1.0), gpu.ShapeError, r"x has shape \(\)"),
    (lambda c: c.matmul("w", np.ones(4, complex)), gpu.DtypeError, "x: An array"),
    (lambda c: c.matmul("w", np.full(4, 1e39)), gpu.DtypeError, "x: The array"),
    (lambda c: c.plan(-1, 2, 3), gpu.ShapeError, "negative"),
    (lambda c: c.plan(1, 2, 3, "km"), gpu.ArgumentError, "got 'km'"),
    (lambda c: c.plan(1, 2, 3, ["nk"]), gpu.ArgumentError, r"got \['nk'\]"),
    (
        lambda c: c.upload_weight("w", np.ones((1, 1)), layout=["nk"]),
        gpu.ArgumentError,
        r"got \['nk'\]",
    ),
    (lambda c: c.matmul(["w"], np.ones(4)), gpu.ArgumentError, r"string, got \['w'\]"),
    (lambda c: c.remove_weight(["w"]), gpu.ArgumentError, r"string, got \['w'\]"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_bad_arguments(
    cache: MatmulCache, call: Refused, error: type[Exception], message: str
) -> None:
    cache.upload_weight("w", np.ones((3, 4)))
    with pytest.raises(error, match=message):
        call(cache)
    np.testing.assert_array_equal(cache.matmul("w", np.ones(4)), np.full(3, 4.0))


def test_bad_tensors(ctx: Context, cache: MatmulCache, reference: Context) -> None:
    cache.upload_weight("w", np.ones((3, 4)))
    half: Any = ctx.vector(np.ones(4), f16)
    with pytest.raises(gpu.DtypeError, match="x has f16 elements; expected f32"):
        cache.matmul("w", half)
    with pytest.raises(
        gpu.ContextError, match=r"MatmulCache: x belongs to Context\(reference"
    ):
        cache.matmul("w", reference.vector(np.ones(4), f32))
    with pytest.raises(gpu.ShapeError, match="'w'"):
        cache.matmul("w", ctx.vector(np.ones(5), f32))
    context: Any = "gpu"
    with pytest.raises(gpu.ContextError, match=r"expected a context.* got a str"):
        MatmulCache(context)

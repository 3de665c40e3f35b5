"""Tensors of vectors, matrices and structs: bit by bit there and back, and as views."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.ir.memory import LEAVES
from kerngen.layout.rules import Space, leaf_footprint
from kerngen.layout.types import lay_out
from kerngen.runtime import (
    Context,
    DtypeError,
    ShapeError,
    f32,
    mat3x3f,
    vec2h,
    vec3f,
    vec3h,
    vec3u,
    vec4f,
)
from kerngen.runtime.values import vector_types as leaves
from kerngen.runtime.values.elements import ELEMENTS, Leaf
from tests.budget import examples
from tests.runtime.usages import COPY, STORAGE

from .structs import AXES, Cluster, Particle, particle

EVERY = {
    **{element.__name__: element for element in ELEMENTS},
    **{name: getattr(leaves, name) for name in LEAVES if hasattr(leaves, name)},
}


@pytest.fixture(params=["software", "reference"])
def any_ctx(ctx: Context, request: pytest.FixtureRequest) -> Iterator[Context]:
    if request.param == "software":
        yield ctx
        return
    with gpu.open(adapter="reference") as reference:
        yield reference


def bits(element: type[Leaf], shape: tuple[int, ...], seed: int) -> NDArray[Any]:
    """Return elements of random bits."""
    number = element.number.dtype
    count = math.prod((*shape, *element.shape))
    random = np.random.default_rng(seed).bytes(count * number.itemsize)
    return np.frombuffer(random, number).reshape((*shape, *element.shape))


def records(shape: tuple[int, ...], seed: int = 0) -> NDArray[np.void]:
    """Return particles of random bits, zero between the fields."""
    rng = np.random.default_rng(seed)
    made = np.zeros(shape, Particle.DTYPE)
    for name in Particle.DTYPE.names or ():
        field = made[name]
        random = rng.bytes(field.size * field.dtype.itemsize)
        field[...] = np.frombuffer(random, field.dtype).reshape(field.shape)
    return made


def test_every_type_of_the_language_has_its_element() -> None:
    assert EVERY.keys() == LEAVES.keys()
    for name, element in EVERY.items():
        leaf = LEAVES[name]
        laid = lay_out(leaf, Space.STORAGE)
        assert element.DTYPE.itemsize == leaf_footprint(leaf).stride, name
        assert math.prod(element.shape) * element.number.size <= laid.size
        assert getattr(gpu, name) is element
        assert element.number.name == leaf.storage.value


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=examples(8), deadline=None)
@given(
    shape=st.lists(st.integers(0, 3), max_size=3).map(tuple),
    seed=st.integers(0, 2**32 - 1),
)
def test_numbers_come_back_bit_by_bit(
    ctx: Context, name: str, shape: tuple[int, ...], seed: int
) -> None:
    element = EVERY[name]
    array = bits(element, shape, seed)
    tensor = ctx.tensor(array, element)
    assert tensor.shape == shape
    assert tensor.nbytes == math.prod(shape) * element.DTYPE.itemsize
    back = tensor.numpy()
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.flags.c_contiguous
    assert back.tobytes() == array.tobytes()


@settings(max_examples=examples(30), deadline=None)
@given(
    shape=st.lists(st.integers(0, 3), max_size=3).map(tuple),
    seed=st.integers(0, 2**32 - 1),
)
def test_records_come_back_bit_by_bit(
    ctx: Context, shape: tuple[int, ...], seed: int
) -> None:
    array = records(shape, seed)
    tensor = ctx.tensor(array, Particle)
    assert tensor.shape == shape
    back = tensor.numpy()
    assert back.dtype == Particle.DTYPE
    assert back.tobytes() == array.tobytes()
    instances = Particle.unpack_array(back)
    again = ctx.vector(instances, Particle)
    assert again.numpy().tobytes() == array.tobytes()


def test_instances_become_records(any_ctx: Context) -> None:
    listed = [particle(n) for n in range(5)]
    x = any_ctx.vector(listed, Particle)
    assert x.numpy().tobytes() == b"".join(item.pack() for item in listed)
    assert Particle.unpack_array(x.numpy()) == listed
    assert any_ctx.scalar(listed[3], Particle).item() == listed[3]
    assert any_ctx.matrix([listed[:2], listed[2:4]], Particle).shape == (2, 2)
    assert any_ctx.vector([], Particle).shape == (0,)
    assert any_ctx.vector(tuple(listed), Particle)[1:3].numpy()["id"].tolist() == [1, 2]
    clusters = [Cluster((a, a), AXES, a) for a in listed]
    assert Cluster.unpack_array(any_ctx.vector(clusters, Cluster).numpy()) == clusters


def test_views_and_copies(any_ctx: Context) -> None:
    array = records((6,))
    x = any_ctx.vector(array, Particle)
    assert x[2:5].numpy().tobytes() == array[2:5].tobytes()
    assert x.reshape((2, 3)).rows(1, 2).numpy().tobytes() == array[3:].tobytes()
    x[0:2].copy_from(x[4:6])
    array[0:2] = array[4:6]
    x[2:3].copy_from([particle(9)])
    array[2:3] = Particle.pack_array([particle(9)])
    assert x.numpy().tobytes() == array.tobytes()
    y = any_ctx.empty(6, Particle)
    y.copy_from(x)
    assert y.numpy().tobytes() == array.tobytes()
    assert any_ctx.zeros((2, 2), Cluster).numpy().tobytes() == bytes(4 * Cluster.SIZE)


@pytest.mark.parametrize("element", [vec3f, vec2h, vec3h, mat3x3f])
def test_views_of_vectors(any_ctx: Context, element: type[Leaf]) -> None:
    array = bits(element, (7,), 3)
    x: Any = any_ctx.vector(array, element)
    for start in range(7):
        assert x[start:6].numpy().tobytes() == array[start:6].tobytes()
    x[1:3].copy_from(x[4:6])
    assert x[1:3].numpy().tobytes() == array[4:6].tobytes()
    x[6:7].copy_from(array[:1])
    assert x[6:7].numpy().tobytes() == array[:1].tobytes()


def test_what_numpy_takes_is_converted(any_ctx: Context) -> None:
    x = any_ctx.vector([(1, 2, 3), [4, 5, 6]], vec3f)
    assert x.numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    turned = any_ctx.vector(np.arange(6).reshape(3, 2).T, vec3u)
    assert turned.numpy().tolist() == [[0, 2, 4], [1, 3, 5]]
    assert any_ctx.scalar(np.eye(3), mat3x3f).item()[1] == (0.0, 1.0, 0.0)
    assert any_ctx.scalar((1, 2, 3), vec3u).item() == (1, 2, 3)
    assert repr(x) == f"Tensor(vec3f[2], {any_ctx.kind})"
    assert np.asarray(x).shape == (2, 3)


@pytest.mark.parametrize(
    ("array", "element", "error", "message"),
    [
        (np.zeros((2, 4)), vec3f, ShapeError, "vec3f elements ends in the axes (3,)"),
        (np.zeros(()), vec3f, ShapeError, "got shape ()"),
        (np.zeros((2, 3)), mat3x3f, ShapeError, "ends in the axes (3, 3), got shape"),
        (np.zeros((2, 2, 3)), vec3f, ShapeError, "rank 1, followed by the (3,)"),
        ([[1e39, 0, 0]], vec3f, DtypeError, "beyond the range of f32"),
        ([[-1, 0, 0]], vec3u, DtypeError, "-1, which no u32 can"),
        ([[1.5, 0, 0]], vec3u, DtypeError, "does not convert to u32"),
    ],
)
def test_arrays_that_do_not_fit(
    any_ctx: Context, array: Any, element: type[Leaf], error: Any, message: str
) -> None:
    with pytest.raises(error) as caught:
        any_ctx.vector(array, element)
    assert message in str(caught.value)


def with_fields(**formats: Any) -> np.dtype[Any]:
    """Return Particle's dtype with some fields changed, added or (None) left out."""
    own = {name: Particle.DTYPE[name] for name in Particle.DTYPE.names or ()} | formats
    return np.dtype([(name, dtype) for name, dtype in own.items() if dtype is not None])


def test_records_at_other_offsets_are_converted(any_ctx: Context) -> None:
    array = records((4,))
    names = Particle.DTYPE.names or ()
    for dtype in (
        with_fields(),
        np.dtype([(name, Particle.DTYPE[name]) for name in reversed(names)]),
        with_fields(mass=">f4", pos=(">f4", (3,)), id=">u4"),
    ):
        other = np.zeros(4, dtype)
        for name in names:
            other[name] = array[name]
        assert any_ctx.vector(other, Particle).numpy().tobytes() == array.tobytes()
        assert Particle.unpack_array(other)[1].pack() == array[1].tobytes()
    every_other = np.zeros(8, Particle.DTYPE)
    every_other[::2] = array
    x = any_ctx.vector(every_other[::2], Particle)
    assert x.numpy().tobytes() == array.tobytes()


def test_records_in_records_are_converted(any_ctx: Context) -> None:
    plain = np.dtype(
        [
            ("first", with_fields()),
            ("axes", "<f4", (3, 3)),
            ("members", with_fields(), (2,)),
        ]
    )
    made = np.zeros(2, plain)
    made["axes"] = np.arange(18).reshape(2, 3, 3)
    made["members"]["id"] = [[1, 2], [3, 4]]
    made["first"]["heat"] = 0.5
    back = any_ctx.vector(made, Cluster).numpy()
    assert back["axes"]["value"].tolist() == made["axes"].tolist()
    assert back["members"]["id"].tolist() == [[1, 2], [3, 4]]
    assert back["first"]["heat"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (with_fields(mass=None), "The records lack the field 'mass' of Particle."),
        (
            with_fields(age="<f4"),
            "The records have a field 'age', which Particle lacks.",
        ),
        (
            with_fields(mass="<f8"),
            "'Particle.mass' of the records is float64; expected ",
        ),
        (
            with_fields(id="<i4"),
            "'Particle.id' of the records is int32; expected uint32",
        ),
        (
            with_fields(pos=("<f4", (4,))),
            "'Particle.pos' of the records is float32 of shape (4,); expected float32 of",
        ),
        (
            with_fields(mass=("<f4", (1,))),
            "is float32 of shape (1,); expected float32.",
        ),
        (
            with_fields(mass=[("x", "<f4")]),
            "'Particle.mass' of the records is a record",
        ),
        (
            np.dtype("<f4"),
            "made of instances of Particle or of records, got an array of",
        ),
        (np.dtype("<f8"), "[Particle(*values) for values in ...]"),
    ],
)
def test_records_that_differ_are_refused(
    any_ctx: Context, dtype: np.dtype[Any], message: str
) -> None:
    with pytest.raises(DtypeError) as caught:
        any_ctx.vector(np.zeros(2, dtype), Particle)
    assert message in str(caught.value)


def test_instances_of_another_struct_are_refused(any_ctx: Context) -> None:
    wrong: Any = any_ctx
    for items, message in (
        ([particle(), 3], r"Expected instances of Particle, got an int at \[1\]\."),
        ([particle(), None], "got None"),
        ([Cluster((particle(),) * 2, AXES, particle())], "got a runtime.Cluster"),
        ([[particle()] * 2, [particle(), 3]], r"got an int at \[1\]\[1\]"),
        ([(1.0, 2, 3)], r"instances of Particle .* got an array of float64.*\*values"),
        ([((1, 2, 3), 0.5, 7)], r"made of instances of Particle .* got nested values"),
        ([(1, None)], r"got an int at \[0\]\[0\]"),
    ):
        with pytest.raises(DtypeError, match=message):
            wrong.tensor(items, Particle)
    with pytest.raises(ShapeError, match="expected rows of one length"):
        wrong.tensor([[particle()], [particle()] * 2], Particle)
    with pytest.raises(DtypeError, match=r"got an int\.$"):
        wrong.scalar(np.array(3, object), Particle)
    pack: Any = Particle.pack_array
    with pytest.raises(
        DtypeError, match=r"got a tuple at \[2\]: write Particle\(\*val"
    ):
        pack(iter([particle(), particle(), (1, 2)]))
    with pytest.raises(
        DtypeError, match=r"an array of Particle\.DTYPE, got one of int"
    ):
        Particle.unpack_array(pack([]).view("<i4"))
    with pytest.raises(DtypeError, match=r"ctx.tensor\(a, Particle\)"):
        wrong.tensor(records((2,)))
    with pytest.raises(DtypeError, match=r"ctx.tensor\(a, Particle\)"):
        wrong.tensor([particle()])
    with pytest.raises(DtypeError, match="Expected an element type"):
        wrong.tensor(records((2,)), Particle.DTYPE)
    with pytest.raises(DtypeError, match="Expected an element type"):
        wrong.zeros(2, gpu.Struct)
    with pytest.raises(DtypeError, match="expected Particle elements, got vec4f"):
        wrong.zeros(3, Particle).copy_from(wrong.zeros(3, vec4f))


def test_the_callers_buffer_holds_structs(ctx: Context) -> None:
    array = records((3,))
    buffer = ctx.device.create_buffer(size=Particle.SIZE * 4, usage=STORAGE | COPY)
    x = ctx.wrap(buffer, 3, Particle, offset=Particle.SIZE)
    x.copy_from(array)
    assert x.numpy().tobytes() == array.tobytes()
    with pytest.raises(ShapeError, match="not a multiple of the 48 bytes of Particle"):
        ctx.wrap(buffer, 1, Particle, offset=16)
    with pytest.raises(ShapeError, match="ends at byte 192"):
        ctx.wrap(ctx.device.create_buffer(size=176, usage=STORAGE), 4, Particle)


def test_an_empty_tensor_has_room_for_an_element(ctx: Context) -> None:
    for element, least in ((Cluster, 192), (Particle, 48), (vec3f, 16), (f32, 16)):
        x: Any = ctx.zeros(0, element)
        assert x.binding[2] == least
        assert x.lease.block.capacity >= least

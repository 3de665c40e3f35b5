"""Structs as Python classes: every value there and back, judged by NumPy's records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kerngen.check.items.structs import LARGEST
from kerngen.compiler import compile_text
from kerngen.emit.binding import emit_binding
from kerngen.ir.memory import LEAVES, FixedArray, Leaf, MemoryType, Struct, structs_in
from kerngen.ir.module import Module
from kerngen.layout.rules import Space
from kerngen.layout.struct import struct_layout
from kerngen.runtime import Struct as RuntimeStruct
from tests.budget import examples
from tests.compile import imported_binding
from tests.layout.drawn import Drawing

from .declared import (
    array,
    declared,
    distinct,
    emitted,
    public_classes,
    struct,
    uniform_class,
)

DRAWING = Drawing(halves=True, uniform=False)
SEEDS = st.integers(0, 2**32 - 1)
SPECIAL = {
    "f4": (0x80000000, 0x7F800001, 0xFF812345, 0x7FC00000, 0xFFFFFFFF, 0x7F800000, 1),
    "f2": (0x8000, 0x7C01, 0xFD55, 0x7E00, 0xFFFF, 0xFC00, 1),
}
"""Negative zero, NaNs that signal or carry a payload, infinity, the least subnormal."""


def numbers_of(record: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield views of the numbers in a record, which NumPy finds by its dtype alone."""
    names = record.dtype.names
    if names is None:
        yield record
        return
    for name in names:
        yield from numbers_of(record[name])


def random_record(dtype: np.dtype[np.void], seed: int) -> NDArray[np.void]:
    """Return a record of random bits, some of them special, zero between the numbers."""
    rng = np.random.default_rng(seed)
    record = np.zeros((), dtype)
    for view in numbers_of(record):
        code = view.dtype.str[1:]
        unsigned = np.dtype(f"u{view.dtype.itemsize}")
        bits = rng.integers(0, 2 ** (8 * unsigned.itemsize), view.shape, unsigned)
        if code in SPECIAL:
            chosen = rng.choice(np.array(SPECIAL[code], unsigned), view.shape)
            bits = np.where(rng.random(view.shape) < 0.5, chosen, bits)
        view[...] = bits.astype(unsigned).view(view.dtype)
    return record


def check_there_and_back(cls: type[RuntimeStruct], seed: int) -> None:
    record = random_record(cls.DTYPE, seed)
    data = record.tobytes()
    value = cls.unpack(data)
    assert value.pack() == data
    buffer = bytearray(b"\xff" * (cls.SIZE + 24))
    value.pack_into(buffer, 8)
    assert buffer == b"\xff" * 8 + data + b"\xff" * 16
    other = random_record(cls.DTYPE, seed + 1)
    records = np.zeros(2, cls.DTYPE)
    records[0], records[1] = record, other
    items = cls.unpack_array(records)
    assert [item.pack() for item in items] == [data, other.tobytes()]
    assert cls.pack_array(items).tobytes() == records.tobytes()
    assert cls.pack_array(items).dtype == cls.DTYPE
    assert hash(value) == hash(cls.unpack(data)) or np.isnan(flat(value)).any()


def flat(value: object) -> list[float]:
    """Return the numbers in a value."""
    if isinstance(value, float | int):
        return [float(value)]
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return [number for item in items for number in flat(item)]
    fields = getattr(type(value), "FIELDS")  # noqa: B009 - of any struct
    return [number for f in fields for number in flat(getattr(value, f.name))]


@settings(max_examples=examples(100), deadline=None)
@given(drawn=DRAWING.structs(), seed=SEEDS)
def test_every_bit_of_random_structs_there_and_back(drawn: Struct, seed: int) -> None:
    one = distinct(drawn)
    assert isinstance(one, Struct)
    with declared(one) as module:
        for inner in structs_in(one):
            cls = getattr(module, inner.name)
            for space, made in (
                (Space.STORAGE, cls),
                (Space.UNIFORM, uniform_class(module, cls)),
            ):
                layout = struct_layout(inner, space)
                assert made.SIZE == made.DTYPE.itemsize == layout.size
                assert made.__name__ == layout.name
                check_there_and_back(made, seed)


@pytest.mark.parametrize("name", LEAVES)
@pytest.mark.parametrize("lengths", [(), (3,), (2, 5)])
@settings(max_examples=examples(5), deadline=None)
@given(seed=SEEDS)
def test_every_bit_of_every_type(
    name: str, lengths: tuple[int, ...], seed: int
) -> None:
    type_ = array(name, *lengths)
    with declared(struct("Sample", before="f32", value=type_, after="f16")) as module:
        check_there_and_back(module.Sample, seed)
        check_there_and_back(uniform_class(module, module.Sample), seed)


@settings(max_examples=examples(60), deadline=None)
@given(drawn=DRAWING.structs(2), data=st.data())
def test_values_stay_what_they_are(drawn: Struct, data: st.DataObject) -> None:
    """What a type holds comes back as it was, and other reals as NumPy rounds them."""
    one = distinct(drawn)
    assert isinstance(one, Struct)
    with declared(one) as module:
        cls = getattr(module, one.name)
        value = data.draw(values(module, one, exact=True))
        for made in (cls, uniform_class(module, cls)):
            again = made(*(getattr(value, f.name) for f in cls.FIELDS))
            assert made.unpack(again.pack()) == again
            assert flat(again) == flat(value)
        real = data.draw(values(module, one, exact=False))
        record = np.frombuffer(real.pack(), cls.DTYPE)[0]
        assert flat(cls.unpack(real.pack())) == [
            float(number)
            for view in numbers_of(np.asarray(record))
            for number in view.reshape(-1)
        ]


def values(module: Any, type_: MemoryType, *, exact: bool) -> st.SearchStrategy[Any]:
    """Draw a value of a type, of reals that it holds exactly or of any."""
    match type_:
        case Leaf():
            return of_leaf(type_, exact=exact)
        case FixedArray(element=element, length=length):
            return st.tuples(*[values(module, element, exact=exact)] * length)
        case Struct(name=name, members=members):
            parts = (values(module, member.type, exact=exact) for member in members)
            return st.builds(getattr(module, name), *parts)
        case _:
            assert_never(type_)


def of_leaf(leaf: Leaf, *, exact: bool) -> st.SearchStrategy[Any]:
    match leaf.storage.value:
        case "i32":
            number: st.SearchStrategy[Any] = st.integers(-(2**31), 2**31 - 1)
        case "u32":
            number = st.integers(0, 2**32 - 1)
        case "f16" if exact:
            number = st.floats(width=16, allow_nan=False)
        case "f16":
            number = st.floats(-65519.9, 65519.9)
        case _ if exact:
            number = st.floats(width=32, allow_nan=False)
        case _:
            number = st.floats(-3.4e38, 3.4e38)
    for length in reversed(np.shape(sample(leaf))):
        number = st.tuples(*[number] * length)
    return number


def sample(leaf: Leaf) -> NDArray[np.int64]:
    """Return zeros of a leaf's shape, which its name says."""
    digits = [int(c) for c in leaf.spelling[:-1] if c.isdigit()]
    return np.zeros(digits if leaf.spelling[0] in "vm" else [], np.int64)


def test_fields_state_what_numpy_finds() -> None:
    one = struct("Light", color="vec3f", falloff=array("f32", 5), view="mat3x3f")
    with declared(one) as module:
        cls, uniform = module.Light, module.LightUniform
        assert uniform.value_class is cls.value_class is cls
        shown = [(f.name, f.type.__name__, f.lengths, f.stride) for f in cls.FIELDS]
        assert shown == [
            ("color", "vec3f", (), 0),
            ("falloff", "f32", (5,), 4),
            ("view", "mat3x3f", (), 0),
        ]
        for made in (cls, uniform):
            for field in made.FIELDS:
                dtype, offset = made.DTYPE.fields[field.name][:2]
                assert (dtype.itemsize, offset) == (field.size, field.offset)
        assert [f.stride for f in uniform.FIELDS] == [0, 16, 0]
        assert [f.column_stride for f in uniform.FIELDS] == [0, 0, 16]


def test_a_layout_that_is_edited_fails_at_import() -> None:
    text = emitted(struct("Light", color="vec3f", size="f32", falloff=array("f32", 5)))
    for old, new in (
        ('Field("size", f32, 12)', 'Field("size", f32, 8)'),
        ('Field("size", f32, 12)', 'Field("size", u32, 12)'),
        ("lengths=(5,), stride=4", "lengths=(5,), stride=8"),
        ("lengths=(5,), stride=4", "lengths=(4,), stride=4"),
        ("SIZE: ClassVar[int] = 48", "SIZE: ClassVar[int] = 64"),
        ('"offsets": [0, 12, 16]', '"offsets": [0, 12, 20]'),
        ('"itemsize": 48', '"itemsize": 64'),
    ):
        assert old in text
        edited = text.replace(old, new).replace("f32, spaced", "f32, u32, spaced")
        edited = edited.replace("check_abi, f32", "check_abi, u32, f32")
        with pytest.raises(AssertionError, match="Light"):
            from_text(edited)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('("a", f32, 4)', '("a", f32, 8)'),
        ('("a", f32, 4)', '("a", u32, 4)'),
        ('("a", f32, 4)', '("b", f32, 4)'),
        ('("a", "<f4")', '("a", "<u4")'),
        ("SIZE = 8", "SIZE = 12"),
    ],
)
def test_a_uniform_struct_that_is_edited_fails_at_import(old: str, new: str) -> None:
    made = compile_text(
        "kernel k(x: f32[n], a: f32) -> y: f32[n] { y[i] = a * x[i]; }", "k.kern"
    )
    text = made.binding.replace("\n_FILES = ModuleFiles.of(__name__, __file__)\n", "")
    assert old in text
    with pytest.raises(AssertionError, match="KUniform"):
        from_text(text.replace(old, new))


def from_text(text: str) -> None:
    exec(compile(text, "edited.py", "exec"), {"__name__": "edited", "__file__": "e.py"})


def test_the_largest_structs_are_imported() -> None:
    """In a uniform buffer they would take 4 GiB, which is more than NumPy's records."""
    one = struct("One", a="f32")
    large = struct("Large", a=array("f32", 2**28))
    many = struct("Many", a=array(one, 2**28))
    for size in (large, many):
        assert struct_layout(size).size == LARGEST
    every = dict.fromkeys((one, large, many))
    module = Module("dsl/declared.kern", "", (), (), structs=tuple(every))
    text = emit_binding(module, (), "0" * 64, formatted=False)
    with imported_binding(text, "declared_sample") as made:
        assert made.__all__ == ["Large", "Many", "One"]
        assert made.Large.DTYPE.itemsize == made.Many.DTYPE.itemsize == LARGEST
        assert made.Many.DTYPE["a"].shape == (2**28,)


def test_names_that_python_or_the_class_has_get_an_underscore() -> None:
    one = struct(
        "Vector", pack="u32", FIELDS="f32", lambda_="f32", unpack_array="i32", x="f32"
    )
    keyword = struct("None", float="f32", self="u32", values=array(one, 2))
    with declared(one, keyword) as module:
        assert public_classes(module) == [
            "NoneUniform",
            "None_",
            "VectorUniform",
            "Vector_",
        ]
        inner = module.Vector_(1, 2, 3, 4, 5)
        assert (inner.pack_, inner.FIELDS_, inner.lambda_) == (1, 2, 3)
        outer = module.None_(float_=1, self=2, values=[inner, inner])
        assert module.None_.unpack(outer.pack()) == outer


def test_structs_are_declared_inner_ones_first() -> None:
    inner = struct("Zed", x="f32")
    outer = struct("Alpha", z=inner, zs=array(inner, 2, 3))
    with declared(outer) as module:
        z = module.Zed(1.5)
        made = module.Alpha(z, [[z] * 3] * 2)
        assert made.zs == ((z, z, z), (z, z, z))
        assert module.AlphaUniform.unpack(
            module.AlphaUniform(z, made.zs).pack()
        ).zs == ((z, z, z), (z, z, z))


def test_a_uniform_class_makes_way_for_a_struct_of_its_name() -> None:
    light = struct("Light", falloff=array("f32", 5))
    other = struct("LightUniform", light=light)
    with declared(light, other) as module:
        assert module.LightUniform.FIELDS[0].type is module.Light
        assert module.LightUniform_.value_class is module.Light
        assert module.LightUniformUniform.value_class is module.LightUniform


def test_every_name_has_a_class_of_its_own() -> None:
    names = [
        f"{a}{core}{b}"
        for core in ("A", "None")
        for a in ("", "_", "__")
        for b in ("", "_", "__")
    ]
    with declared(*(struct(name, x="f32") for name in names)) as module:
        classes = [n for n in public_classes(module) if "Uniform" not in n]
        assert len(classes) == len(names)
        assert {"A", "None_"} < set(module.__all__)

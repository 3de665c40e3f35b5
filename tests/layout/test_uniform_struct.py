"""Uniform structs in Python: bytes against hand-made ones, and there and back again."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerngen.runtime import DtypeError, ShapeError, UniformRangeError, f32, i32, u32
from kerngen.runtime.struct import Field, UniformStruct
from kerngen.runtime.values.elements import Leaf
from kerngen.runtime.values.vector_types import vec2f, vec2i, vec3f, vec3u, vec4f


@dataclass(frozen=True, slots=True)
class Sample(UniformStruct):
    """u32, gap of 12, vec3f, f32, i32, gap of 12."""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("n", u32, offset=0),
        Field("origin", vec3f, offset=16),
        Field("alpha", f32, offset=28),
        Field("shift", i32, offset=32),
    )
    SIZE: ClassVar[int] = 48
    DTYPE: ClassVar[np.dtype[np.void]] = np.dtype(
        {
            "names": ["n", "origin", "alpha", "shift"],
            "formats": ["<u4", ("<f4", (3,)), "<f4", "<i4"],
            "offsets": [0, 16, 28, 32],
            "itemsize": 48,
        }
    )

    n: int
    origin: tuple[float, float, float]
    alpha: float
    shift: int


GOOD = Sample(7, (1.0, -0.0, 2.5), math.inf, -3)


def test_bytes_are_those_of_the_layout() -> None:
    by_hand = struct.pack("<I12x3ffi12x", 7, 1.0, -0.0, 2.5, math.inf, -3)
    assert GOOD.pack() == by_hand


def test_dtype_reads_what_pack_wrote() -> None:
    record = np.frombuffer(GOOD.pack(), Sample.DTYPE)[0]
    assert record["n"] == 7
    assert record["origin"].tolist() == [1.0, -0.0, 2.5]
    assert record["alpha"] == math.inf
    assert record["shift"] == -3


def test_unpack_returns_what_was_packed() -> None:
    assert Sample.unpack(GOOD.pack()) == GOOD


def test_pack_into_touches_its_own_bytes_alone() -> None:
    buffer = bytearray(b"\xff" * 80)
    GOOD.pack_into(buffer, 16)
    assert buffer[:16] == b"\xff" * 16
    assert buffer[64:] == b"\xff" * 16
    assert bytes(buffer[16:64]) == GOOD.pack()


def test_values_are_packed_in_field_order_with_vectors_flattened() -> None:
    buffer = bytearray(48)
    Sample.pack_values_into(buffer, 0, (7, 1.0, -0.0, 2.5, math.inf, -3))
    assert bytes(buffer) == GOOD.pack()


@pytest.mark.parametrize(
    ("field", "wrong", "error", "place"),
    [
        ("n", -1, UniformRangeError, "n"),
        ("n", 2**32, UniformRangeError, "n"),
        ("n", 1.0, DtypeError, "n"),
        ("n", "7", DtypeError, "n"),
        ("shift", 2**31, UniformRangeError, "shift"),
        ("shift", -(2**31) - 1, UniformRangeError, "shift"),
        ("shift", math.nan, DtypeError, "shift"),
        ("alpha", 3.5e38, UniformRangeError, "alpha"),
        ("alpha", -1e39, UniformRangeError, "alpha"),
        ("alpha", None, DtypeError, "alpha"),
        ("origin", (1.0, 2.0), ShapeError, "origin"),
        ("origin", (1.0, 2.0, 3.0, 4.0), ShapeError, "origin"),
        ("origin", (1.0, 2.0, 1e40), UniformRangeError, "origin[2]"),
        ("origin", 1.0, ShapeError, "origin"),
    ],
)
def test_what_does_not_fit_names_struct_and_field(
    field: str, wrong: Any, error: type[Exception], place: str
) -> None:
    values: dict[str, Any] = {"n": 7, "origin": (1, 2, 3), "alpha": 1.0, "shift": 0}
    with pytest.raises(error, match=re.escape(f"'Sample.{place}' is ")):
        Sample(**{**values, field: wrong})


def test_a_value_out_of_range_is_named_on_the_dispatch_path_too() -> None:
    with pytest.raises(UniformRangeError, match=r"'Sample\.origin': .*'vec3f'.*1e\+40"):
        Sample.pack_values_into(bytearray(48), 0, (7, 1.0, 1e40, 2.5, 1.0, -3))


def test_a_buffer_that_is_too_small_is_no_range_error() -> None:
    with pytest.raises(ShapeError):
        GOOD.pack_into(bytearray(47))


def test_unpack_wants_exactly_the_size() -> None:
    with pytest.raises(ShapeError):
        Sample.unpack(bytes(47))


f32_or_more = st.one_of(
    st.floats(width=32),
    st.integers(0, 2**64 - 1).map(
        lambda bits: struct.unpack("<d", bits.to_bytes(8))[0]
    ),
).filter(lambda x: not math.isfinite(x) or abs(x) < 3.4e38)


@given(
    st.integers(0, 2**32 - 1),
    st.tuples(f32_or_more, f32_or_more, f32_or_more),
    f32_or_more,
    st.integers(-(2**31), 2**31 - 1),
)
def test_a_round_trip_keeps_every_bit(
    n: int, origin: tuple[float, float, float], alpha: float, shift: int
) -> None:
    packed = Sample(n, origin, alpha, shift).pack()
    assert Sample.unpack(packed).pack() == packed


TYPES = (f32, i32, u32, vec2f, vec2i, vec3f, vec3u, vec4f)


@given(st.lists(st.sampled_from(TYPES)))
def test_any_struct_packs_at_its_offsets(types: list[type[Leaf]]) -> None:
    fields: list[Field] = []
    end = 0
    for at, type_ in enumerate(types):
        fields.append(Field(f"f{at}", type_, end))
        end += 4 * fields[-1].count + 4 * (at % 3)
    values = [at + 1 for at in range(sum(field.count for field in fields))]
    struct_type = make_struct(tuple(fields), end)
    buffer = bytearray(end)
    struct_type.pack_values_into(buffer, 0, tuple(values))
    remaining = iter(values)
    for field, type_ in zip(fields, types, strict=True):
        dtype = {"f": "<f4", "i": "<i4", "u": "<u4"}[type_.number.name[0]]
        part = np.frombuffer(buffer, dtype, field.count, field.offset)
        assert part.tolist() == [next(remaining) for _ in range(field.count)]


def make_struct(
    fields: tuple[Field, ...], size: int, dtype: object = None, name: str = "Made"
) -> type[UniformStruct]:
    described: Any = {
        "names": [field.name for field in fields],
        "formats": [field.dtype for field in fields],
        "offsets": [field.offset for field in fields],
        "itemsize": size,
    }
    body = {"FIELDS": fields, "SIZE": size, "DTYPE": dtype or np.dtype(described)}
    return type(name, (UniformStruct,), body)


def test_a_struct_may_be_empty() -> None:
    assert UniformStruct().pack() == b""
    assert make_struct((), 0).SIZE == 0


ONE = (Field("x", f32, 0),)


@pytest.mark.parametrize(
    ("size", "dtype"),
    [
        (8, np.dtype([("x", "<f4")])),
        (4, np.dtype([("x", "<i4")])),
        (4, np.dtype([("y", "<f4")])),
        (
            8,
            np.dtype(
                {"names": ["x"], "formats": ["<f4"], "offsets": [4], "itemsize": 8}
            ),
        ),
    ],
)
def test_a_layout_that_contradicts_itself_fails_at_import(
    size: int, dtype: np.dtype[np.void]
) -> None:
    with pytest.raises(AssertionError, match="disagree"):
        make_struct(ONE, size, dtype)


def test_overlapping_fields_fail_at_import() -> None:
    fields = (Field("v", vec3f, 0), Field("x", f32, 8))
    with pytest.raises(AssertionError, match=r"'Made\.x' overlaps"):
        make_struct(fields, 16)

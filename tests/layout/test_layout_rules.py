"""WGSL's layout rules, against offsets worked out by hand from the specification."""

from __future__ import annotations

import pytest

from kerngen.ir.types import VECTORS, Scalar, ValueType
from kerngen.layout.rules import FOOTPRINTS, round_up, struct_footprint
from kerngen.layout.struct import StructLayout, pascal_case, struct_layout

TYPES: dict[str, ValueType] = {
    "f32": Scalar.F32,
    "i32": Scalar.I32,
    "u32": Scalar.U32,
    **VECTORS,
}


@pytest.mark.parametrize(
    ("spelling", "align", "size", "stride"),
    [
        ("f32", 4, 4, 4),
        ("i32", 4, 4, 4),
        ("u32", 4, 4, 4),
        ("vec2f", 8, 8, 8),
        ("vec3f", 16, 12, 16),
        ("vec4f", 16, 16, 16),
        ("vec2i", 8, 8, 8),
        ("vec3i", 16, 12, 16),
        ("vec4i", 16, 16, 16),
        ("vec2u", 8, 8, 8),
        ("vec3u", 16, 12, 16),
        ("vec4u", 16, 16, 16),
    ],
)
def test_table_of_types(spelling: str, align: int, size: int, stride: int) -> None:
    footprint = FOOTPRINTS[TYPES[spelling]]
    assert (footprint.align, footprint.size, footprint.stride) == (align, size, stride)


def test_bool_is_not_host_shareable() -> None:
    assert Scalar.BOOL not in FOOTPRINTS


def test_every_host_shareable_type_is_in_the_table() -> None:
    assert set(FOOTPRINTS) == set(TYPES.values())


def lay(*spellings: str) -> StructLayout:
    named = ((f"f{i}", TYPES[spelling]) for i, spelling in enumerate(spellings))
    return struct_layout("S", named)


@pytest.mark.parametrize(
    ("spellings", "offsets", "size", "align"),
    [
        (("vec3f", "f32"), (0, 12), 16, 16),
        (("f32", "vec3f"), (0, 16), 32, 16),
        (("vec3f", "vec3f"), (0, 16), 32, 16),
        (("f32", "vec2f"), (0, 8), 16, 8),
        (("f32", "f32", "vec2f"), (0, 4, 8), 16, 8),
        (("u32", "u32", "u32", "vec4f", "f32"), (0, 4, 8, 16, 32), 48, 16),
        (("vec2f", "vec3f", "vec2f"), (0, 16, 32), 48, 16),
        (("u32",), (0,), 4, 4),
        (("u32", "f32", "i32"), (0, 4, 8), 12, 4),
        (("vec3u",), (0,), 16, 16),
        (("vec2i", "f32"), (0, 8), 16, 8),
    ],
)
def test_offsets_and_size(
    spellings: tuple[str, ...], offsets: tuple[int, ...], size: int, align: int
) -> None:
    layout = lay(*spellings)
    assert tuple(field.offset for field in layout.fields) == offsets
    assert (layout.size, layout.align) == (size, align)


def test_a_struct_may_be_empty() -> None:
    layout = lay()
    assert (layout.fields, layout.members, layout.size) == ((), (), 0)
    assert struct_footprint(()).size == 0


def test_padding_before_a_field() -> None:
    layout = lay("f32", "vec3f", "vec2f")
    assert [field.padding_before for field in layout.fields] == [0, 12, 4]


@pytest.mark.parametrize(
    "spellings", [("f32", "vec3f"), ("vec2f", "f32"), ("u32", "vec4i", "vec2f", "f32")]
)
def test_members_leave_no_gap(spellings: tuple[str, ...]) -> None:
    layout = lay(*spellings)
    end = 0
    for member in layout.members:
        assert member.offset == end
        end = member.end
    assert end == layout.size
    assert [m for m in layout.members if not m.is_padding] == list(layout.fields)


def test_padding_never_takes_a_users_name() -> None:
    layout = struct_layout("S", (("pad_0", Scalar.F32), ("pad_2", VECTORS["vec3f"])))
    names = [member.name for member in layout.members]
    assert names == ["pad_0", "pad_1", "pad_3", "pad_4", "pad_2", "pad_5"]


@pytest.mark.parametrize(
    ("align", "size", "rounded"), [(4, 0, 0), (4, 1, 4), (16, 16, 16), (16, 17, 32)]
)
def test_round_up(align: int, size: int, rounded: int) -> None:
    assert round_up(align, size) == rounded


@pytest.mark.parametrize(
    ("name", "pascal"),
    [
        ("linear_gelu", "LinearGelu"),
        ("adamw", "Adamw"),
        ("axpy2d", "Axpy2d"),
        ("myKernel", "MyKernel"),
        ("_", "Kernel"),
    ],
)
def test_pascal_case(name: str, pascal: str) -> None:
    assert pascal_case(name) == pascal

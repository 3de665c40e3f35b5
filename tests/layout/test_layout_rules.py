"""WGSL's layout rules, against offsets worked out by hand from the specification."""

from __future__ import annotations

import pytest

from kerngen.ir.memory import LEAVES, FixedArray, Member
from kerngen.layout.rules import RULES, Space, leaf_footprint, round_up
from kerngen.layout.struct import pascal_case, struct_layout
from kerngen.layout.types import (
    ArrayLayout,
    ColumnsLayout,
    LeafLayout,
    StructLayout,
    lay_out,
    nesting,
    place,
    structs_of,
)

from . import spec
from .made import struct_of


def test_the_table_is_that_of_the_specification() -> None:
    ours = {name: leaf_footprint(leaf) for name, leaf in LEAVES.items()}
    assert {name: (f.align, f.size) for name, f in ours.items()} == spec.TABLE


def lay(*spellings: str, space: Space = Space.UNIFORM) -> StructLayout:
    types = enumerate(LEAVES[spelling] for spelling in spellings)
    return place("S", (Member(f"f{n}", type_) for n, type_ in types), space)


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
        (("f16", "f32", "f16", "f16"), (0, 4, 8, 10), 12, 4),
        (("vec3h", "f16", "mat4x4f"), (0, 6, 16), 80, 16),
    ],
)
@pytest.mark.parametrize("space", Space)
def test_offsets_and_size(
    spellings: tuple[str, ...],
    offsets: tuple[int, ...],
    size: int,
    align: int,
    space: Space,
) -> None:
    layout = lay(*spellings, space=space)
    assert tuple(field.offset for field in layout.fields) == offsets
    assert (layout.size, layout.align) == (size, align)


def test_a_struct_may_be_empty() -> None:
    layout = lay()
    assert (layout.fields, layout.size) == ((), 0)


def test_padding_is_behind_a_field() -> None:
    layout = lay("f32", "vec3f", "vec2f")
    assert [field.padding for field in layout.fields] == [12, 4, 8]


@pytest.mark.parametrize(
    "spellings", [("f32", "vec3f"), ("vec2f", "f32"), ("u32", "vec4i", "vec2f", "f32")]
)
def test_spans_leave_no_gap(spellings: tuple[str, ...]) -> None:
    layout = lay(*spellings)
    end = 0
    for field in layout.fields:
        assert field.offset == end
        end += field.span
    assert end == layout.size


@pytest.mark.parametrize(
    ("align", "size", "rounded"), [(4, 0, 0), (4, 1, 4), (16, 16, 16), (16, 17, 32)]
)
def test_round_up(align: int, size: int, rounded: int) -> None:
    assert round_up(align, size) == rounded


@pytest.mark.parametrize(
    ("element", "carrier", "part"),
    [
        ("f32", "vec4f", "x"),
        ("vec2u", "vec4u", "xy"),
        ("vec3i", "vec3i", ""),
        ("f16", "vec4u", ""),
        ("vec3h", "vec4u", ""),
    ],
)
def test_elements_in_uniform_buffers_are_carried_in_16_bytes(
    element: str, carrier: str, part: str
) -> None:
    laid = lay_out(FixedArray(LEAVES[element], 3), Space.UNIFORM)
    assert isinstance(laid, ArrayLayout)
    assert isinstance(laid.carrier, LeafLayout)
    name = laid.carrier.leaf.spelling
    assert laid.in_words is (name == "vec4u" and not part)
    assert (name, laid.part, laid.stride, laid.size) == (carrier, part, 16, 48)


@pytest.mark.parametrize("name", [n for n in LEAVES if n.startswith("mat")])
def test_matrices_that_adapters_misread_are_columns(name: str) -> None:
    misread = name.endswith("h") or name[-2] == "2"
    assert isinstance(lay_out(LEAVES[name], Space.UNIFORM), ColumnsLayout) is misread
    assert isinstance(lay_out(LEAVES[name], Space.STORAGE), LeafLayout)


def test_a_struct_that_differs_in_a_uniform_buffer_has_another_name() -> None:
    same = struct_of("a: vec4f, b: vec2f, c: vec2f")
    assert struct_layout(same, Space.UNIFORM).name == "S"
    other = struct_of("a: vec2f")
    assert struct_layout(other, Space.UNIFORM).name == "SUniform"
    around = struct_of("i: Inner, b: vec4f[1]", "struct Inner { x: f32[1] }")
    laid = struct_layout(around, Space.UNIFORM)
    assert [s.name for s in structs_of(laid)] == ["InnerUniform", "SUniform"]


def test_types_in_types_are_counted_as_wgsl_does() -> None:
    struct = struct_of("a: f32, m: mat2x2f[3], i: Inner[2]", "struct Inner { x: f32 }")
    assert nesting(struct_layout(struct)) == 4
    assert nesting(lay_out(LEAVES["f32"], Space.STORAGE)) == 0
    halves = lay_out(FixedArray(LEAVES["f16"], 3), Space.UNIFORM)
    assert nesting(halves) == 2  # an array of vectors


def test_every_rule_is_said_in_a_sentence_and_has_its_section() -> None:
    for rule in RULES.values():
        assert rule.text[0].isupper() or rule.text[0] == "'"
        assert rule.text.endswith(".")
        assert rule.section.startswith(("WGSL 1", "kerngen"))


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

"""Orders of fields: the best one of few against all there are, and hints that hold."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings

from kerngen.ir.memory import Struct
from kerngen.layout.order import better_order
from kerngen.layout.rules import Space
from tests.budget import examples

from . import spec
from .drawn import Drawing
from .made import struct_of

FEW = 6


def least(struct: Struct, space: Space) -> int:
    """The size in the best of all orders."""
    return min(
        size(replace(struct, members=m), space) for m in permutations(struct.members)
    )


def size(struct: Struct, space: Space) -> int:
    return spec.align_and_size(struct, uniform=space is Space.UNIFORM)[1]


@pytest.mark.parametrize("space", Space)
@settings(max_examples=examples(60))
@given(struct=Drawing(halves=True, uniform=True).structs())
def test_the_order_is_the_best_there_is(struct: Struct, space: Space) -> None:
    struct = replace(struct, members=struct.members[:FEW])
    found = better_order(struct, space)
    wanted = least(struct, space)
    if found is None:
        assert size(struct, space) == wanted
        return
    in_order = [m for name in found.names if (m := struct.member(name))]
    again = replace(struct, members=tuple(in_order))
    assert sorted(found.names) == sorted(m.name for m in struct.members)
    assert (found.size, found.better) == (size(struct, space), wanted)
    assert size(again, space) == wanted


def test_the_order_is_like_the_declared_one() -> None:
    struct = struct_of("a: f32, b: vec3f, c: f32, d: f32, e: vec2f")
    found = better_order(struct, Space.STORAGE)
    assert found is not None
    assert (found.size, found.better) == (48, 32)
    assert found.names == ("a", "c", "e", "b", "d")


def test_there_is_no_order_for_what_is_tight() -> None:
    assert better_order(struct_of("a: vec3f, b: f32"), Space.STORAGE) is None
    assert better_order(struct_of("a: f32, b: vec3f"), Space.STORAGE) is not None
    # The bytes saved are lost again behind the end.
    assert better_order(struct_of("a: f32, b: vec4f"), Space.STORAGE) is None


@pytest.mark.parametrize("pairs", [20, 50, 500])
def test_many_fields_have_a_good_order(pairs: int) -> None:
    fields = ", ".join(
        f"a{n}: vec2f, b{n}: vec3f, c{n}: f32" for n in range(pairs // 2)
    )
    found = better_order(struct_of(f"{fields}, d: vec2f, e: f16"), Space.STORAGE)
    assert found is not None
    # At most what rounds the end up is lost.
    assert found.better - (pairs // 2 * 24 + 10) < 16


def test_hundreds_of_kinds_take_no_time() -> None:
    fields = (f"@size({4 * n + 4}) a{n}: f32, b{n}: vec2h[{n + 1}]" for n in range(200))
    text = ", ".join((*fields, "c: f16, d: f32, e: f16"))
    found = better_order(struct_of(text), Space.STORAGE)
    assert found is not None
    assert found.size - found.better == 4

"""Faults planted in the layout: the GPU finds each, as does the specification.

Tint alone finds those of offsets and sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from kerngen.ir.memory import Struct
from kerngen.layout import rules, types
from kerngen.layout.rules import Footprint, Space

from .bench import LayoutMismatchError
from .judged import Judges, agree_with_specification, lay_out_for
from .made import struct_of
from .probe import Probe


def as_it_is(_align: int, size: int) -> int:
    """Round nothing."""
    return size


Planted: TypeAlias = tuple[dict[Any, Any], object, object]
"""A table, its key, and a wrong value for it."""

FAULTS: dict[str, tuple[Planted, str]] = {
    "a vec3 aligned like a scalar": (
        (rules.VECTOR_LANES, 3, Footprint(1, 3)),
        "a: f32, b: vec3f",
    ),
    "a vec3 that is a vec4": (
        (rules.VECTOR_LANES, 3, Footprint(4, 4)),
        "a: vec3f, b: f32",
    ),
    "columns without padding": (
        (rules.VECTOR_LANES, 3, Footprint(1, 3)),
        "m: mat3x3f",
    ),
    "vec2 aligned to 4 bytes": (
        (rules.VECTOR_LANES, 2, Footprint(1, 2)),
        "a: f32, b: vec2f, c: f32",
    ),
    "arrays in uniform buffers by the rules of storage": (
        (types.__dict__, "UNIFORM_UNIT", 4),
        "a: f32[5], b: f32",
    ),
    "structs in uniform buffers by the rules of storage": (
        (types.__dict__, "UNIFORM_UNIT", 4),
        "a: f32, b: Inner, c: f32",
    ),
    "elements beside each other": (
        (rules.__dict__, "round_up", as_it_is),
        "a: vec3f[2]",
    ),
}


@pytest.fixture(params=FAULTS)
def planted(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Struct]:
    """Plant a fault, and return a struct that it is in."""
    (table, key, value), fields = FAULTS[request.param]
    monkeypatch.setitem(table, key, value)
    types.lay_out_leaf.cache_clear()
    # A struct keeps how it lies: one that was made before would lie right.
    yield struct_of(fields, "struct Inner { x: f32 }")
    monkeypatch.undo()
    types.lay_out_leaf.cache_clear()


def test_the_judges_of_shaders_find_it(planted: Struct, judges: Judges) -> None:
    layouts = tuple(lay_out_for(space, planted) for space in Space)
    with pytest.raises(LayoutMismatchError):
        judges.ask(layouts, is_half=False)


# How far elements of an array lie apart shows in its size, where that is not padded.
SIZES = [fault for fault in FAULTS if fault != "elements beside each other"]


@pytest.mark.parametrize("planted", SIZES, indirect=True)
def test_tint_alone_finds_it(planted: Struct, judges: Judges) -> None:
    # Of each layout another field is judged, by its number.
    layouts = [lay_out_for(space, planted) for space in Space for _ in range(3)]
    with pytest.raises(LayoutMismatchError, match="Tint"):
        judges.ask_tint(Probe(tuple(layouts), is_half=False))


def test_the_specification_finds_it(planted: Struct) -> None:
    with pytest.raises(LayoutMismatchError):
        agree_with_specification(planted)

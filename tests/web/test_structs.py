"""Bytes of structs in JavaScript, against the specification's offsets."""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from kerngen.emit.python_names import module_names
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct, structs_in
from kerngen.ir.module import Module
from kerngen.ir.nodes import Kernel, Parameter
from kerngen.ir.types import Matrix, Scalar, Vector
from kerngen.source.text import Source, Span
from kerngen.typescript import emit_module
from tests.emit.declared import distinct
from tests.layout import spec
from tests.layout.drawn import Drawing
from tests.web import node

pytestmark = pytest.mark.web

FEW, MANY = 100, 500
"""How many structs are drawn, by default and in nightly runs."""
CODES = {"f32": "f", "f16": "e", "i32": "i", "u32": "I"}

JOB = """
import * as sample from "./sample.js";
const text = (bytes) => Buffer.from(bytes).toString("base64");
export default (given) => given.map(([name, value]) => {
  const bytes = sample[name].pack(value);
  const [again] = sample[name].unpack(bytes);
  return [text(bytes), JSON.stringify(again) === JSON.stringify(value)];
});
"""


def drawn(number: int, *, uniform: bool) -> list[Struct]:
    found: list[Struct] = []

    @settings(
        max_examples=number,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(Drawing(halves=True, uniform=uniform).structs())
    def collect(each: Struct) -> None:
        own = distinct(each)
        assert isinstance(own, Struct)
        found.append(own)

    collect()
    return found


def value_of(type_: MemoryType, numbers: Iterator[int]) -> Any:
    """A value with a number of its own in each place, in the order of the places."""
    match type_:
        case Leaf(type=Scalar()):
            return next(numbers)
        case Leaf(type=Vector(width=width)):
            return [next(numbers) for _ in range(width)]
        case Leaf(type=Matrix(columns=columns, rows=rows)):
            return [[next(numbers) for _ in range(rows)] for _ in range(columns)]
        case FixedArray(element=element, length=length):
            return [value_of(element, numbers) for _ in range(length)]
        case Struct(members=members):
            return {member.name: value_of(member.type, numbers) for member in members}
        case _:
            raise AssertionError(type_)


def codes_of(type_: MemoryType) -> Iterator[str]:
    match type_:
        case Leaf(storage=storage):
            yield from CODES[storage.value] * len(
                [*spec.scalars(type_, 0, uniform=False)]
            )
        case FixedArray(element=element, length=length):
            for _ in range(length):
                yield from codes_of(element)
        case Struct(members=members):
            for member in members:
                yield from codes_of(member.type)


def expected(type_: Struct, *, uniform: bool) -> bytes:
    _, size = spec.align_and_size(type_, uniform=uniform)
    data = bytearray(size)
    places = [*spec.scalars(type_, 0, uniform=uniform)]
    for number, ((at, _), code) in enumerate(
        zip(places, codes_of(type_), strict=True), 1
    ):
        struct.pack_into(f"<{code}", data, at, number)
    return bytes(data)


@pytest.mark.parametrize("number", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("uniform", [False, True])
def test_bytes(package: Path, tmp_path: Path, number: int, uniform: bool) -> None:
    assert package.is_dir()
    structs = drawn(number, uniform=uniform)
    every = dict.fromkeys(inner for each in structs for inner in structs_in(each))
    parameters = tuple(Parameter(s.name.lower(), s, None) for s in structs)
    span = Span(Source("dsl/sample.kern", ""), 0, 0)
    taken = parameters if uniform else ()
    kernel = Kernel("take", (), (), taken, (), (), (), "", "", span)
    module = Module("dsl/sample.kern", "", (), (kernel,), structs=tuple(every))
    names = module_names(module)
    text = emit_module(module, (), "0" * 64)
    text += f"export {{ {', '.join(names.uniforms.values())} }};\n"
    (tmp_path / "sample.js").write_text(text, "utf-8")
    job = [
        (
            names.uniforms.get(each, names.structs[each]),
            value_of(each, count(1)),
        )
        for each in structs
    ]
    result = node.run(tmp_path, JOB, job)
    assert len(result) == number
    for each, (data, same) in zip(structs, result, strict=True):
        assert same, each
        want, got = expected(each, uniform=uniform), b64decode(data)
        assert np.array_equal(np.frombuffer(want, "u1"), np.frombuffer(got, "u1")), each

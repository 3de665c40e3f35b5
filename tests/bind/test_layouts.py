"""Layouts of bound structs before their judges: the GPU, naga and Tint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from numpy.typing import NDArray

from kerngen.bind.naga import misread
from kerngen.ir.memory import LEAVES, WIDE, FixedArray, Member, MemoryType, Struct
from kerngen.runtime import Context
from kerngen.source.diagnostic import CompileError
from tests.budget import examples
from tests.judges.tint import Tint
from tests.layout.drawn import Drawing

from .bound import files_of, module_of
from .written import text_of, writing_shader


def numbers(value: Any) -> Iterator[float]:
    """Yield the scalars of a record, as NumPy finds them by a generated dtype."""
    array: NDArray[Any] = np.asarray(value)
    if array.dtype.names is None:
        yield from array.reshape(-1).tolist()
        return
    for record in array.reshape(-1):
        for name in array.dtype.names:
            yield from numbers(record[name])


def check(struct: Struct, folder: Path, ctx: Context, *, in_array: bool) -> None:
    """Let a shader write each scalar, and read all of them by the generated class."""
    text = writing_shader(struct, in_array=in_array)
    module = module_of(text, folder)
    cls = module.Group0.BINDINGS[0].element
    b = ctx.zeros(2 if in_array else (), cls)
    module.Main().bind(module.Group0(b=b)).dispatch_workgroups(1)
    record = b.numpy()[1] if in_array else b.numpy()
    found = [*numbers(record)]
    assert found == [*range(1, len(found) + 1)], text


def judge(ctx: Context, folder: Path, count: int, start: int = 0) -> None:
    """Draw structs and check each; those that naga misreads are refused."""
    refused = 0

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(Drawing(halves=True, uniform=False).structs(depth=3))
    def one(struct: Struct) -> None:
        nonlocal refused
        if next(misread(struct), None) is None:
            check(struct, folder, ctx, in_array=True)
            check(struct, folder, ctx, in_array=False)
        else:
            refused += 1
            with pytest.raises(CompileError, match="KG1416"):
                files_of(writing_shader(struct, in_array=False))

    one()
    assert refused < count / 2


def test_a_shader_writes_where_python_reads(ctx: Context, tmp_path: Path) -> None:
    judge(ctx, tmp_path, examples(50))


@pytest.mark.nightly
def test_a_shader_writes_where_python_reads_500_structs(
    ctx: Context, tmp_path: Path
) -> None:
    judge(ctx, tmp_path, 500, start=1)


def test_a_shader_writes_numbers_of_64_bits_where_python_reads(
    ctx: Context, tmp_path: Path
) -> None:
    inner = Struct("Inner", (Member("a", WIDE["u64"]), Member("b", LEAVES["f32"])))
    listed: list[MemoryType] = [FixedArray(WIDE["vec3u64"], 2), FixedArray(inner, 2)]
    for leaf in WIDE.values():
        listed += [leaf, LEAVES["f32"]]
    members = [Member(f"m{number}", type_) for number, type_ in enumerate(listed)]
    whole = Struct("Whole", (*members, Member("end", LEAVES["u32"], size=12)))
    check(whole, tmp_path, ctx, in_array=True)
    check(whole, tmp_path, ctx, in_array=False)


TIGHT = """
struct Inner { a: vec3f, b: f32, c: mat3x3f }
struct Whole { @size(20) x: u32, y: array<Inner, 2>, @align(32) z: vec2f }
struct Tail { n: u32, items: array<Inner> }
struct Odd { n: vec4f, items: array<f32> }
@group(0) @binding(0) var<uniform> whole: Whole;
@group(0) @binding(1) var<storage, read> tail: Tail;
@group(0) @binding(2) var<storage, read> odd: Odd;
@group(0) @binding(3) var<storage, read_write> plain: array<vec3f>;
@group(0) @binding(4) var<storage, read_write> fixed: array<atomic<u32>, 5>;
@group(0) @binding(5) var<uniform> one: mat4x3f;
@compute @workgroup_size(1) fn main() {
    plain[0] = whole.y[1].a + tail.items[0].a + odd.items[0] + one[0];
    atomicAdd(&fixed[0], 1u);
}
"""


def test_least_sizes_are_tight_to_the_byte_for_naga(
    ctx: Context, tmp_path: Path
) -> None:
    module = module_of(TIGHT, tmp_path)
    entries = [binding.layout() for binding in module.Group0.BINDINGS]
    compile_with(ctx.device, entries)
    for number, entry in enumerate(entries):
        size = entry["buffer"]["min_binding_size"]
        less = {**entry, "buffer": {**entry["buffer"], "min_binding_size": size - 1}}
        with pytest.raises(Exception, match=r"smaller|too small|size"):
            compile_with(ctx.device, [*entries[:number], less, *entries[number + 1 :]])


def compile_with(device: Any, entries: list[Any]) -> None:
    """Compile the shader for a layout."""
    group = device.create_bind_group_layout(entries=entries)
    device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[group]),
        compute={
            "module": device.create_shader_module(code=TIGHT),
            "entry_point": "main",
        },
    )


@pytest.fixture(scope="module")
def tint() -> Iterator[Tint]:
    judge = Tint()
    yield judge
    judge.close()


def test_sizes_are_tight_to_the_byte_for_tint(tint: Tint, tmp_path: Path) -> None:
    @seed(2)
    @settings(max_examples=examples(50), database=None, phases=(Phase.generate,))
    @given(Drawing(halves=False, uniform=False).structs(depth=3))
    def one(struct: Struct) -> None:
        names: dict[Struct, str] = {}
        text = text_of(struct, names)
        if next(misread(struct), None) is not None:
            return
        size = getattr(module_of(text, tmp_path), names[struct]).SIZE
        exact = f"{text}\nstruct Exact {{ @size({size}) x: {names[struct]} }}"
        assert tint.refuses(exact) == ""
        smaller = exact.replace(f"@size({size}) x:", f"@size({size - 1}) x:")
        assert "at least as big" in tint.refuses(smaller)

    one()

"""What is read of declarations, by what Python becomes of it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from black import format_str
from black.mode import Mode, TargetVersion

from kerngen.bind.resolve import read
from kerngen.runtime import f32, i32, u32, vec3f, vec4f
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source

from .bound import files_of, module_of

USED = "@compute @workgroup_size(1) fn main() {{ _ = {name}; }}"


def fields_of(members: str, folder: Path, before: str = "") -> Any:
    """Return where the members of a struct lie, and its size."""
    module = module_of(f"{before} struct S {{ {members} }}", folder)
    return {field.name: field.offset for field in module.S.FIELDS} | {"": module.S.SIZE}


@pytest.mark.parametrize(
    ("members", "offsets"),
    [
        ("a: vec3f, b: f32", {"a": 0, "b": 12, "": 16}),
        ("a: f32, b: vec3<f32>,", {"a": 0, "b": 16, "": 32}),
        ("a: array<vec3<f32>,2>, b: f32", {"a": 0, "b": 32, "": 48}),
        ("a: array<array<f32, N>, 1 << 1>, b: u32", {"a": 0, "b": 24, "": 28}),
        ("a: array<f32, (N * 2u - 1u) / 2>, b: u32", {"a": 0, "b": 8, "": 12}),
        ("@size(20) a: u32, b: vec2f", {"a": 0, "b": 24, "": 32}),
        ("a: u32, @align(16) b: u32", {"a": 0, "b": 16, "": 32}),
        ("@size(4 * N) @align(N + 1) a: u32, b: Word", {"a": 0, "b": 12, "": 16}),
        ("a: mat3x3<f32>, b: mat2x2f", {"a": 0, "b": 48, "": 64}),
        ("a: Inner, b: f32", {"a": 0, "b": 16, "": 32}),
        ("a: atomic<u32>, b: array<atomic<i32>, 3>", {"a": 0, "b": 4, "": 16}),
        ("a: array<f32, select(2, 5, N < 4)>, b: f32", {"a": 0, "b": 20, "": 24}),
        ("a: array<f32, min(7, i32(N))>, b: f32", {"a": 0, "b": 12, "": 16}),
        ("a: array<f32, u32(M)>, b: f32", {"a": 0, "b": 16, "": 20}),
        ("/* x: f32, /* y */ */ a: f32, // b: f32\n c: f32", {"a": 0, "c": 4, "": 8}),
    ],
)
def test_structs_have_the_offsets_of_wgsl(
    members: str, offsets: dict[str, int], tmp_path: Path
) -> None:
    before = """const N: u32 = 0x3u; const M = 4.0; alias Word = u32;
        struct Inner { v: vec3f }"""
    assert fields_of(members, tmp_path, before) == offsets


def test_directives_and_what_is_the_shaders_own_are_passed_over(tmp_path: Path) -> None:
    module = module_of(
        """
        enable f16; requires readonly_and_readwrite_storage_textures;
        diagnostic(off, derivative_uniformity);
        const_assert 3 < 4;
        const table = array(1, 2, 3);
        var<private> state = vec2<f32>(1.0, 2.0);
        var<workgroup> shared_: array<array<f32, 4>, 8>;
        struct Varying { @builtin(position) clip: vec4f, @location(0) uv: vec2f };
        fn helper(p: ptr<function, array<f32, 4>>, b: bool) -> bool { return b && 1 < 2; }
        """,
        tmp_path,
    )
    assert module.__all__ == []


def test_a_bindings_element_is_that_of_the_tensor(tmp_path: Path) -> None:
    module = module_of(
        """
        struct S { a: f32 }
        @group(0) @binding(0) var<storage> a: array<array<vec3<f32>, 2>, 3>;
        @group(0) @binding(1) var<storage, read> b: vec4f;
        @group(0) @binding(2) var<storage, read_write> c: array<S, 7>;
        @group(0) @binding(3) var<storage, read_write> d: array<atomic<u32>>;
        fn use_all() { _ = a[0][0] + b.xyz * c[0].a; atomicAdd(&d[0], 1); }
        @compute @workgroup_size(1) fn main() { use_all(); }
        """,
        tmp_path,
    )
    found = {b.name: (b.element, b.least, b.writes) for b in module.Group0.BINDINGS}
    assert found == {
        "a": (vec3f, 96, False),
        "b": (vec4f, 16, False),
        "c": (module.S, 28, True),
        "d": (u32, 4, True),
    }


def test_overrides_are_typed_and_sized(tmp_path: Path) -> None:
    module = module_of(
        """
        const TWO = 2;
        override wide: u32 = 4 * TWO;
        override high = wide / 2u;
        @id(12) override on = true;
        override scale = 1.5;
        override needed: i32;
        override unused: f32;
        var<workgroup> line: array<f32, wide>;
        @compute @workgroup_size(wide, high - (1u + 1u), 3 << 1)
        fn main() { if on { line[0] = scale * f32(needed); } }
        """,
        tmp_path,
    )
    pipeline = module.Main(needed=-1)
    assert pipeline.workgroup_size == (8, 2, 6)
    assert module.Main(needed=1, wide=20).workgroup_size == (20, 8, 6)
    assert module.Main(needed=1, high=7).workgroup_size == (8, 5, 6)
    assert pipeline.constants == {"wide": 8, "12": True, "scale": 1.5, "needed": -1}


def test_overrides_have_the_types_of_their_values(tmp_path: Path) -> None:
    module = module_of(
        """
        override half = scale * 0.5;
        override scale = 1.5;
        override rows = TILE / 2;
        override TILE = 8u;
        override flip = half < scale && !quiet;
        override quiet = false;
        override plain = 3;
        @compute @workgroup_size(TILE, rows)
        fn main() { if flip { _ = half * f32(plain); } }
        """,
        tmp_path,
    )
    kinds = {each.name: each.element for each in module.Main.OVERRIDES}
    assert kinds == {
        "half": f32,
        "scale": f32,
        "rows": u32,
        "TILE": u32,
        "flip": None,
        "quiet": None,
        "plain": i32,
    }
    assert module.Main(half=0.25, flip=True).constants["half"] == 0.25


def test_names_that_python_or_the_module_need_are_changed(tmp_path: Path) -> None:
    module = module_of(
        """
        struct Tensor { SIZE: u32, class: f32, pack: f32, f32: f32 }
        struct Main { bound: u32 }
        struct Group0 { x: u32 }
        struct bound { x: u32 }
        override lambda: u32 = 3;
        override workgroup_size: u32 = 4;
        @group(0) @binding(0) var<uniform> from: Tensor;
        @group(0) @binding(1) var<uniform> GROUP: Main;
        @group(0) @binding(2) var<storage, read_write> self: array<Group0>;
        @group(0) @binding(3) var<storage, read_write> Any: array<f32>;
        @compute @workgroup_size(lambda, workgroup_size)
        fn main() { self[0].x = from.SIZE + GROUP.bound + u32(Any[0]); }
        """,
        tmp_path,
    )
    assert {"Tensor_", "bound_", "Main", "Group0", "Main_", "Group0_"} == {
        *module.__all__
    }
    assert module.Main_().workgroup_size == (3, 4, 1)
    names = [binding.name for binding in module.Group0_.BINDINGS]
    assert names == ["from_", "GROUP_", "self", "Any_"]
    assert [field.name for field in module.Tensor_.FIELDS][:3] == [
        "SIZE_",
        "class_",
        "pack_",
    ]


def test_user_names_hide_those_of_the_language(tmp_path: Path) -> None:
    module = module_of(
        "alias vec3f = f32; const min = 3; struct S { a: vec3f, b: array<vec3f, min> }",
        tmp_path,
    )
    assert [field.type for field in module.S.FIELDS] == [f32, f32]
    assert module.S.SIZE == 16


def test_modules_are_as_black_has_them() -> None:
    for file in Path(__file__).with_name("shaders").iterdir():
        text = files_of(file.read_text("utf-8"))["shader.py"].decode()
        mode = Mode(target_versions={TargetVersion.PY311})
        assert format_str(text, mode=mode) == text
        assert len(text.splitlines()) < 40 + 40 * text.count("\nclass ")
        ast.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("struct S { a: f32 b: u32 }", "Expected ',' or '}', found 'b'"),
        ("struct S { a: vec5f }", "no type 'vec5f'"),
        ("struct S { a: array<f32, 0> }", "The length of an array can't be 0"),
        ("struct S { a: array<f32, 1 / 0> }", "it divides by zero"),
        ("struct S { a: array<f32, 3u - 4u> }", "-1 is no u32"),
        ("struct S { a: array<f32, 1u + 1i> }", "'+' mixes u32 and i32"),
        ("struct S { @size(3) a: f32 }", "'@size' of 'a' can't be 3"),
        ("struct S { a: array<f32>, b: f32 }", "An array without a length"),
        ("struct S { a: S }", "'S' is declared by itself"),
        ("@group(0) @binding(0) var<uniform> a: array<f32>;", "without a length"),
        ("@group(0) @binding(0) var<uniform> a: sampler;", "'uniform' is for data"),
        ("@group(0) @binding(0) var a: f32;", "its address space is missing"),
        (
            "@group(0) @binding(-1) var<uniform> a: f32;",
            "'@binding' of 'a' can't be -1",
        ),
        ("override a: vec2u;", "The type of 'a' can't be 'vec2u'"),
        ("struct S { a: f32 } override a: S;", "The type of 'a' can't be 'S'"),
        ("@id(-3) override a: bool;", "'@id' of 'a' can't be -3"),
        ("struct S { a: f32, a: u32 }", "'a' is declared twice"),
        ("const a = 1\n@compute fn f() {}", "Expected ';', found '@'"),
        ("const a = b[1;", "Expected ']', found ';'"),
        ("override a;", "Expected a type or a value behind 'a', found none"),
        ("override a = b; override b = a;", "'a' is declared by itself"),
        ("override a: i32; override b = sign(a);", "The type of 'b' is not known"),
        ("fn f() { {{ x }} }", "'{{ x }}' is not WGSL"),
        ("import package::a;", "'import' is not WGSL: the file is one of WESL"),
        ("@if(DEBUG) const x = 1;", "'@if' is not WGSL: the file is one of WESL"),
        ("const path = `${x}`;", "JavaScript, whose template string"),
        ("#import config\nstruct S { a: f32 }", "naga_oil (Bevy) or vello_shaders"),
        ("#import a::b\nstruct S { a: f32 }", "one of naga_oil, as Bevy has it"),
        ("alias T = texture_storage_2d<{FORMAT}, write>;", "'{FORMAT}' is not WGSL"),
        ("override a: u64;", "'u64' is not a type of WGSL"),
        ("override a = 1lf;", "'f64' is not a type of WGSL"),
        (
            "@vertex fn f(@location(0) a: vec2<f64>) {}",
            "'vec2<f64>' is not a type of WGSL",
        ),
        (
            "@group(0) @binding(0) var a: binding_array<sampler>;",
            "'binding_array' is not a type of WGSL",
        ),
        (
            "var<immediate> a: f32; @compute @workgroup_size(1) fn c() { _ = a; }",
            "'a' can't be bound: 'c' would be dispatched without it",
        ),
        ("struct S { a: vec2u64 }", "no type 'vec2u64'"),
        ("struct S { a: array<f32, sizes::N> }", "'::N' is not WGSL: the file is one"),
        ("@compute fn main() {}", "'main' has no '@workgroup_size'"),
        ("$$ if x\nstruct S { a: f32 }", "Jinja, as pygfx"),
    ],
)
def test_what_is_wrong_has_a_message(text: str, message: str) -> None:
    with pytest.raises(CompileError) as found:
        read(Source("a.wgsl", text))
    assert message in str(found.value)


PART = """
struct Ray { start: vec3f, along: vec3f }
@group(0) @binding(0) var<storage, read_write> lit: array<f32>;
fn hit(ray: Ray, at: ptr<function, Place>) -> f32 {
    @diagnostic(off, derivative_uniformity) if ray.missing > far { return (*at).far; }
    return light(ray);
}
fn unused() -> f32 { return elsewhere; }
@compute @workgroup_size(1) fn main() {
    let first = 1; var<function> second = vec2<f32>(); const third = array<i32, 2>();
    for (var i: u32 = 0; i < count; i++) {
        switch i { case FIRST: { lit[i] = hit(ray_of(i), &place); } default: { continue; } }
    }
    lit[first] = second.x + f32(third[0]) + bitcast<f32>(count);
    _ = far;
}
"""


def test_a_part_of_a_program_has_no_pipelines() -> None:
    with pytest.raises(CompileError) as found:
        read(Source("a.wgsl", PART))
    names = [each.span.text for each in found.value.diagnostics]
    assert names == ["far", "count", "FIRST", "place"]
    assert "no declaration of 'far' in this file" in str(found.value)
    parts, _, _ = PART.partition("@compute")
    assert not read(Source("a.wgsl", parts)).entries
    enabled = f"enable wgpu_ray_query; {PART}"  # naga's extensions have own names
    assert read(Source("a.wgsl", enabled)).entries


@pytest.mark.parametrize(
    ("body", "used"),
    [
        (
            """let a = hidden(1.0); _ = a.b;
            for (var b = 0u; b < c; b++) { let c = b; _ = c; }
            { var d = d; d += 1u; }""",
            ["c", "d"],
        ),
        (
            """{ let a = 1; let b = 2; _ = a + b; }
            for (var c = 0u; c < 3u; c++) {}
            a[0] = f32(c);""",
            ["a", "c"],
        ),
    ],
)
def test_local_names_hide_those_of_the_module(
    body: str, used: list[str], tmp_path: Path
) -> None:
    module = module_of(
        f"""
        @group(0) @binding(0) var<storage, read_write> a: array<f32>;
        @group(0) @binding(1) var<storage, read_write> b: array<f32>;
        @group(0) @binding(2) var<uniform> c: u32;
        @group(0) @binding(3) var<uniform> d: u32;
        fn hidden(a: f32) -> f32 {{ let b = a; {{ let c = b; return c; }} }}
        @compute @workgroup_size(1) fn main() {{ {body} }}
        """,
        tmp_path,
    )
    assert [each.name for each in module.Group0.BINDINGS] == used


def test_every_fault_is_found_at_once() -> None:
    text = """
    struct A { a: b }
    @group(0) var<uniform> c: f32;
    const A = 1;
    """
    with pytest.raises(CompileError) as found:
        read(Source("a.wgsl", text))
    assert [each.span.line for each in found.value.diagnostics] == [2, 3, 4]

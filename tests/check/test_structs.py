"""Structs from their text: order, constants, other files, and what is left unsaid."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kerngen.ir.memory import LEAVES, FixedArray, Struct
from kerngen.source.diagnostic import CompileError
from tests.compile import checked

PARTICLE = """
/// What moves.
struct Particle {
    /// Where it is.
    pos: vec3f,
    @size(4 * COUNT) @align(COUNT * 4) mass: f16,
    trail: Point[COUNT, max(2, 3)],
}

struct Point { x: f32 }

const COUNT: u32 = 4;
"""


def codes_of(text: str, **others: str) -> list[str]:
    try:
        checked(text, **others)
    except CompileError as error:
        return [fault.code for fault in error.diagnostics]
    return []


def by_name(structs: Iterable[Struct]) -> dict[str, Struct]:
    return {struct.name: struct for struct in structs}


def test_order_does_not_matter_and_all_that_is_said_is_kept() -> None:
    structs = checked(PARTICLE).structs
    assert [struct.name for struct in structs] == ["Particle", "Point"]
    particle, point = structs
    pos, mass, trail = particle.members
    assert (particle.doc, pos.doc, mass.doc) == ("What moves.", "Where it is.", "")
    assert (particle.path, point.path) == ("a.kern", "a.kern")
    assert (pos.type, pos.align, pos.size) == (LEAVES["vec3f"], None, None)
    assert (mass.type, mass.align, mass.size) == (LEAVES["f16"], 16, 16)
    assert trail.type == FixedArray(FixedArray(point, 3), 4)
    assert trail.type.spelling == "Point[4, 3]"


def test_structs_of_other_files() -> None:
    own = 'use "b.kern";\nstruct Own { ray: Ray, time: f32[DEPTH] }\n'
    used = 'use "c.kern";\nconst DEPTH: u32 = 3;\nstruct Ray { from: Point }\n'
    last = "struct Point { x: f32 }\n"
    (struct,) = checked(own, b=used, c=last).structs
    ray, time = struct.members
    assert isinstance(ray.type, Struct)
    assert (ray.type.name, ray.type.path) == ("Ray", "b.kern")
    assert time.type == FixedArray(LEAVES["f32"], 3)
    inner = ray.type.member("from")
    assert inner is not None
    assert isinstance(inner.type, Struct)
    assert (inner.type.name, inner.type.path) == ("Point", "c.kern")


def test_what_is_used_of_other_files_is_not_seen_beyond() -> None:
    own = 'use "b.kern";\nstruct Own { at: Point }\n'
    used = 'use "c.kern";\nstruct Ray { from: Point }\n'
    last = "struct Point { x: f32 }\n"
    assert codes_of(own, b=used, c=last) == ["KG0203"]
    # So that both may have one of that name.
    assert codes_of(f"{own}\nstruct Point {{ y: f32 }}\n", b=used, c=last) == []


def test_one_fault_is_told_once() -> None:
    kernel = "kernel k(p: P[n], q: Q) -> y: f32[n] { y[i] = p[i].x + q.p.x; }\n"
    assert codes_of(f"struct P {{ x: flat }}\nstruct Q {{ p: P }}\n{kernel}") == [
        "KG0203"
    ]
    assert codes_of(f"struct P {{ q: Q, x: f32 }}\nstruct Q {{ p: P }}\n{kernel}") == [
        "KG0804"
    ]
    assert codes_of("const N: u32 = 1.5;\nstruct P { x: f32[N] }\n") == ["KG0301"]


def chain(length: int, last: str) -> str:
    """`length` structs, each of which holds the next one."""
    steps = (f"struct D{n} {{ d: D{n + 1} }}\n" for n in range(length - 1))
    return "".join(steps) + f"struct D{length - 1} {{ d: {last} }}\n"


@pytest.mark.parametrize(
    ("length", "last", "codes"),
    [
        (13, "vec2f", []),
        (14, "f32", []),
        (14, "vec2f", ["KG0813"]),
        (13, "mat2x2f", ["KG0813"]),
        (12, "f32[2, 2]", []),
        (2000, "f32", ["KG0813"]),
        (2000, "D0", ["KG0804"]),
    ],
)
def test_structs_in_structs_are_one_fault_however_deep(
    length: int, last: str, codes: list[str]
) -> None:
    assert codes_of(chain(length, last)) == codes


def test_structs_that_multiply_are_refused_before_they_take_long() -> None:
    wide = "struct E0 { x: f32 }\n" + "".join(
        f"struct E{n + 1} {{ {', '.join(f'f{m}: E{n}' for m in range(60))} }}\n"
        for n in range(8)
    )
    assert codes_of(wide) == ["KG0814"]
    large = "struct F0 { x: f32[100000] }\n" + "".join(
        f"struct F{n + 1} {{ x: F{n}[100000] }}\n" for n in range(8)
    )
    assert codes_of(large) == ["KG0815"]


def copies(fields: str, number: int, kernels: int = 1) -> list[str]:
    """What is said of kernels that copy a struct so many times each."""
    kernel = "kernel k# (x: S[n], mut y: S[n]) { " + "y[i] = x[i]; " * number + "}\n"
    text = "".join(kernel.replace("# ", str(n)) for n in range(kernels))
    return codes_of(f"struct T {{ v: f32[9] }} struct S {{ {fields} }}\n{text}")


def test_copies_are_limited_by_what_they_move() -> None:
    fields = ", ".join(f"a{n}: f32" for n in range(1022)) + ", t: T"
    assert copies(fields, 8) == []
    assert copies(fields, 9) == ["KG0819"]
    assert copies(fields, 5000) == ["KG0819"]
    assert copies(fields, 2, kernels=5) == ["KG0819"]
    assert copies("a: f32[1000], t: T[1000]", 1000) == []


def test_beyond_the_limit_copies_are_still_checked() -> None:
    fields = ", ".join(f"a{n}: f32" for n in range(1000))
    assert copies(fields, 9) == ["KG0819"]
    wrong = "kernel w(x: T[n], mut y: S[n]) { y[i] = x[i]; }"
    text = "y[i] = x[i]; " * 20
    kernel = f"kernel k(x: S[n], mut y: S[n]) {{ {text} }}"
    structs = f"struct T {{ a: f32 }} struct S {{ {fields} }}"
    assert codes_of(f"{structs} {kernel} {wrong}") == ["KG0819", "KG1107"]


def test_a_let_ranges_over_the_array_that_it_is_written_to() -> None:
    structs = "struct T { v: f32[3] } struct S { t: T[4] }"
    body = "let z[a, b] = f32(a * b); y[i].t[a].v[b] = z[a, b];"
    assert codes_of(f"{structs} kernel k(mut y: S[n]) {{ {body} }}") == []
    swapped = body.replace("= z[a, b]", "= z[b, a]")
    text = f"{structs} kernel k(mut y: S[n]) {{ {swapped} y[i].t[a].v[b] = z[a, b]; }}"
    assert codes_of(text) == ["KG0403"]

"""What passes find out about an object is its own, and goes with it."""

from __future__ import annotations

import gc
from weakref import ref

from kerngen.compiler import compile_text

PROGRAM = """
/// former struct
struct Body {
    /// former member
    mass: f32,
    pos: vec3f,
}

/// former kernel
kernel weigh(
    /// former tensor
    x: Body[n],
    /// former parameter
    p: f32,
    /// former struct as a parameter
    q: Body,
) -> y: f32[n] {
    y[i] = x[i].mass * p * q.mass;
}
"""


def test_a_program_has_its_own_docs_after_one_that_is_equal() -> None:
    first = compile_text(PROGRAM, "bodies.kern", formatted=False)
    other = PROGRAM.replace("former", "later")
    second = compile_text(other, "bodies.kern", formatted=False)
    assert second.module == first.module
    assert "former member" in first.files["bodies.py"].decode()
    for text in second.files.values():
        assert "former" not in text.decode()


def test_what_was_compiled_is_let_go_of() -> None:
    made = compile_text(
        PROGRAM.replace("weigh", "measure"), "other.kern", formatted=False
    )
    kernel, struct = ref(made.module.kernels[0]), ref(made.module.structs[0])
    del made
    gc.collect()
    assert kernel() is None
    assert struct() is None

"""Faults in generated shaders: what an entry point of a file uses, changed once."""

from __future__ import annotations

from kerngen.plan.wgsl import MAIN, Declarations


def file_of(shader: str) -> str:
    """The name of a shader's file, of `copy.map:edge` that of `copy.map.wgsl`."""
    return f"{shader.partition(':')[0]}.wgsl"


def planted(text: str, shader: str, right: str, wrong: str) -> str:
    """The text of a file, with `right` replaced where the shader has it."""
    code = Declarations(text)
    found = code.texts
    kept = code.reached(shader.partition(":")[2] or MAIN)
    assert sum(found[name].count(right) for name in kept) == 1, (shader, right)
    (faulty,) = (found[name] for name in kept if right in found[name])
    return text.replace(faulty, faulty.replace(right, wrong))

"""The compiler: the whole way from a source to its generated files, on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from kerngen.check import check
from kerngen.emit import emit_binding
from kerngen.ir.nodes import Module
from kerngen.ir.stages import StagedKernel
from kerngen.ir.staging import form_stages
from kerngen.output.manifest import digest
from kerngen.output.naming import module_name
from kerngen.schedule.lower import lower
from kerngen.schedule.program import KernelProgram
from kerngen.source.diagnostic import Faults
from kerngen.source.text import Source
from kerngen.syntax.parser import parse


@final
@dataclass(frozen=True, slots=True)
class CompiledModule:
    """What became of one source.

    `files` are the generated files by path, relative to the folder of the module.
    """

    module: Module
    programs: tuple[KernelProgram, ...]
    binding: str
    files: Mapping[str, bytes]


def compile_text(text: str, path: str) -> CompiledModule:
    """Compile a source's text; `path` is the name that diagnostics and headers show.

    Raises `CompileError` with every diagnostic that the first failing stage found.
    """
    source = Source(path, text)
    source_sha = digest(text.encode())

    # Text to syntax tree.
    program = parse(source)
    # Syntax tree to typed kernels.
    module = check(program, source)
    # Each kernel to stages: what is computed together, and what must wait for it.
    staged = tuple(form_stages(kernel) for kernel in module.kernels)
    # Each stage to shaders: one for every schedule and variant.
    programs = _lower_all(staged, module, source_sha)
    # All kernels to Python: bindings and NumPy references.
    binding = emit_binding(module, programs, source_sha)
    # Texts to files.
    files = _files(path, programs, binding)
    return CompiledModule(module, programs, binding, files)


def _lower_all(
    staged: Iterable[StagedKernel], module: Module, source_sha: str
) -> tuple[KernelProgram, ...]:
    """Lower every kernel, so that one that can't be hides no fault of another."""
    stem = module_name(module.path)
    origin = f"{module.path} (sha256 {source_sha[:16]})"
    programs: list[KernelProgram] = []
    faults = Faults()
    for kernel in staged:
        with faults.collect():
            programs.append(lower(kernel, module, stem=stem, origin=origin))
    faults.raise_if_any()
    return tuple(programs)


def _files(
    path: str, programs: Iterable[KernelProgram], binding: str
) -> dict[str, bytes]:
    """The generated files by path, relative to the folder of the module."""
    shaders = (
        shader
        for program in programs
        for stage in program.stages
        for schedule in stage.schedules
        for variant in schedule.variants
        for shader in variant.shaders
    )
    return {
        f"{module_name(path)}.py": binding.encode(),
        **{f"wgsl/{shader.stem}.wgsl": shader.text.encode() for shader in shaders},
    }

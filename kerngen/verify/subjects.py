"""The kernels to verify, compiled and imported."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from kerngen.check.items.gradients import kept_name
from kerngen.compiler import CompiledModule, Compiler
from kerngen.jit.memory import KernelModule, functions, installed
from kerngen.runtime.calls.choices import kernel_of
from kerngen.source.diagnostic import Faults
from kerngen.syntax.library import Library
from kerngen.verify.meaning.programs import Subject


@contextmanager
def subjects(
    library: Library, names: Sequence[str]
) -> Generator[dict[str, list[Subject]]]:
    """Yield the kernels by file, callable for the duration of a block."""
    compiler = Compiler(library, formatted=False)
    faults = Faults()
    made: dict[str, CompiledModule] = {}
    for name in names:
        with faults.collect():
            every = compiler.compile_with_used(name)
            made |= {each.module.path: each for each in every}
            used = library.closure(name)[:-1] if _is_of_others(every[-1]) else ()
            missing = (other for other in used if other not in made)
            made |= {other: compiler.compile(other) for other in missing}
    faults.raise_if_any()
    with installed(made.values()) as modules:
        found: dict[str, list[Subject]] = {}
        by_file = {path: _subjects(made[path], modules[path]) for path in made}
        for name in names:
            others = [
                each for path in by_file for each in by_file[path] if path != name
            ]
            known = {each.kernel.name: each for each in (*others, *by_file[name])}
            found[name] = [_with_forward(each, known) for each in by_file[name]]
        yield found


def _is_of_others(source: CompiledModule) -> bool:
    """Whether a module has gradients of kernels of other files."""
    kernels = source.module.kernels
    of = {each.gradient.kernel for each in kernels if each.gradient}
    return not of.issubset(each.name for each in kernels)


def _subjects(source: CompiledModule, module: KernelModule) -> list[Subject]:
    callables = functions(source, module)
    known = {each.name: each for each in source.module.functions}
    return [
        Subject(kernel, known, kernel_of(callables[kernel.name]))
        for kernel in source.module.kernels
    ]


def _with_forward(subject: Subject, known: Mapping[str, Subject]) -> Subject:
    """Return a gradient with the kernel that it is of; any other kernel as it is."""
    gradient = subject.runtime.gradient
    if gradient is None:
        return subject
    forward = known[gradient.kernel]
    kept = known.get(kept_name(forward.kernel.name))
    return replace(subject, forward=forward, kept=kept and kept.runtime)

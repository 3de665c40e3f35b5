"""The compiler: all passes from a source to its generated files, on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from kerngen.check.files.checker import Checker
from kerngen.emit.binding import emit_binding
from kerngen.emit.kernel_plan import plan_kernels
from kerngen.emit.module_name import module_name
from kerngen.emit.python_names import imported_structs
from kerngen.emit.targets import SUFFIXES, Target
from kerngen.gradient.item import derive_item
from kerngen.ir.memory import Struct
from kerngen.ir.module import Module
from kerngen.ir.nodes import Kernel, Schedule
from kerngen.ir.staging.passes import form_stages
from kerngen.ir.staging.stages import StagedKernel
from kerngen.plan.tree import ModulePlan
from kerngen.plan.write import plan_text
from kerngen.schedule.program import KernelProgram
from kerngen.schedule.schedule_kernel import check_fit, lower
from kerngen.schedule.sharing import shared
from kerngen.source.diagnostic import Faults
from kerngen.syntax.depth import deep_recursion
from kerngen.syntax.library import Library
from kerngen.typescript import emit_declarations, emit_module


@final
@dataclass(frozen=True, slots=True)
class CompiledModule:
    """The generated files of one source.

    `files` are the generated files by path, relative to the folder of the module.
    """

    module: Module
    programs: tuple[KernelProgram, ...]
    binding: str
    files: Mapping[str, bytes]

    @property
    def used(self) -> tuple[Struct, ...]:
        """The structs of other files, whose modules this one imports."""
        return imported_structs(self.module)


def compile_text(text: str, path: str, *, formatted: bool = True) -> CompiledModule:
    """Compile a text that uses no other file; `path` is what diagnostics call it."""
    return Compiler(Library.of_text(text, path), formatted=formatted).compile(path)


@final
class Compiler:
    """Compiles the files of a library, each shared file only once.

    `formatted` may be False for modules that are run and not read. `targets` are the
    output languages.
    """

    def __init__(
        self,
        library: Library,
        *,
        formatted: bool = True,
        targets: Iterable[Target] = (Target.PYTHON,),
    ) -> None:
        self._library = library
        self._formatted = formatted
        self._targets = frozenset(targets)
        self.checker = Checker(library, derive_item)

    def _lowered(self, name: str) -> tuple[Module, tuple[KernelProgram, ...]]:
        # Texts to syntax trees, and these to typed kernels: with the functions that the
        # file uses of others, and the schedules that others give to its kernels.
        module = self.checker.module(name)
        # Each kernel to stages: what is computed together, and what must wait for it.
        staged = tuple(form_stages(kernel) for kernel in module.kernels)
        # Each stage to shaders: one for every schedule and variant.
        return module, _lower_all(staged, module, self._library.digest(name))

    def module(self, name: str) -> Module:
        """Return a file's typed module; raise as `compile` does."""
        with deep_recursion():
            return self.checker.module(name)

    def check(self, name: str) -> tuple[str, ...]:
        """Return the paths that `compile` would generate; raise as it does.

        Shaders are only generated, and listed, if some names differ in case alone.
        """
        with deep_recursion():
            module = self.checker.module(name)
            staged = tuple(form_stages(kernel) for kernel in module.kernels)
            faults = Faults()
            for kernel in staged:
                with faults.collect():
                    check_fit(kernel, module)
            faults.raise_if_any()
            stages = {(k.kernel.name, stage.name) for k in staged for stage in k.stages}
            unlike = {(k.casefold(), stage.casefold()) for k, stage in stages}
            programs = self._lowered(name)[1] if len(unlike) < len(stages) else ()
            suffixes = (suffix for t in self._targets for suffix in SUFFIXES[t])
            return tuple(_files(module, programs, dict.fromkeys(suffixes, ""), ""))

    def compile(self, name: str) -> CompiledModule:
        """Compile a file.

        Raises `CompileError` with every diagnostic that the first failing stage found.
        """
        with deep_recursion():
            module, programs = self._lowered(name)
            return self._emitted(module, programs, self._library.digest(name))

    def _emitted(
        self, module: Module, programs: tuple[KernelProgram, ...], sha: str
    ) -> CompiledModule:
        # All kernels to plans: what the host does for a call.
        planned = plan_kernels(module, programs)
        plan = ModulePlan(module.path, sha[:16], tuple(each.plan for each in planned))
        text, texts = plan_text(plan), dict[str, str]()
        if Target.PYTHON in self._targets:
            # All kernels to Python: bindings and NumPy references.
            texts[".py"] = emit_binding(module, planned, sha, formatted=self._formatted)
        if Target.TYPESCRIPT in self._targets:
            # All kernels to an ES module, and its types.
            texts[".js"] = emit_module(module, planned, sha)
            texts[".d.ts"] = emit_declarations(module, planned, sha)
        # Texts to files.
        files = _files(module, programs, texts, text)
        return CompiledModule(module, programs, texts.get(".py", ""), files)

    def compile_with_used(self, name: str) -> tuple[CompiledModule, ...]:
        """Compile a file, after those whose classes it imports."""
        own = self.compile(name)
        others = self._library.closure(name)[:-1] if own.used else ()
        return (*map(self.compile, others), own)

    def with_schedules(
        self, name: str, kernel: Kernel, schedules: tuple[Schedule, ...]
    ) -> CompiledModule:
        """Compile one kernel of a file with other schedules.

        Raises `CompileError` where one does not fit it.
        """
        with deep_recursion():
            module = self.checker.module(name)
            alone = replace(
                module,
                kernels=(replace(kernel, schedules=schedules),),
                # A gradient needs the names of the kernel that it is of.
                origins=(*module.origins, module),
            )
            staged = tuple(form_stages(each) for each in alone.kernels)
            sha = self._library.digest(name)
            return self._emitted(alone, _lower_all(staged, alone, sha), sha)

    def program(self, name: str, kernel: str) -> KernelProgram:
        """Return the shaders of one kernel alone; raise as `compile` does."""
        with deep_recursion():
            module = self.checker.module(name)
            found = next(each for each in module.kernels if each.name == kernel)
            return lower(form_stages(found), module)

    def programs(self, name: str) -> tuple[KernelProgram, ...]:
        """Return the shaders of a file's kernels alone; raise as `compile` does."""
        with deep_recursion():
            return self._lowered(name)[1]


def _lower_all(
    staged: Iterable[StagedKernel], module: Module, source_sha: str
) -> tuple[KernelProgram, ...]:
    """Lower every kernel, so that one that can't be hides no fault of another."""
    origin = f"{module.path} (sha256 {source_sha[:16]})"
    programs: list[KernelProgram] = []
    faults = Faults()
    for kernel in staged:
        with faults.collect():
            programs.append(lower(kernel, module))
    faults.raise_if_any()
    # Equal shaders to one file.
    return shared(programs, origin)


def _files(
    module: Module,
    programs: Sequence[KernelProgram],
    texts: Mapping[str, str],
    plan: str,
) -> dict[str, bytes]:
    """The generated files by path, relative to the folder of the module.

    `texts` are those of the module in each language, by how their names end.
    """
    stem = module_name(module.path)
    folder = f"wgsl/{stem}"
    return {
        **{f"{stem}{suffix}": text.encode() for suffix, text in texts.items()},
        **({f"{folder}/{stem}.plan": plan.encode()} if programs else {}),
        **{
            f"{folder}/{file.name}.wgsl": file.text.encode()
            for program in programs
            for file in program.files
        },
    }

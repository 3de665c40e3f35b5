"""Print the `Kernel` object that describes a kernel to the runtime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import final

from kerngen.emit.functions import FunctionInfo
from kerngen.emit.host_expr import HostPrinter
from kerngen.emit.host_text import host_lambda
from kerngen.emit.python_code import tuple_text
from kerngen.emit.python_names import ModuleNames
from kerngen.emit.writer import Writer
from kerngen.ir.gathers import gathers_of
from kerngen.ir.nodes import DimValue, Extent, Role, Tensor, UniformValue
from kerngen.ir.types import Vector
from kerngen.ir.walk import walk
from kerngen.layout.struct import uniform_layout
from kerngen.schedule.program import (
    KernelProgram,
    ScheduledStage,
    Scratch,
    Shader,
    Variant,
)

_ACCESS = {Role.INPUT: "read", Role.UPDATE: "update", Role.OUTPUT: "write"}
ADAPTER = "adapter."
"""What the name of a guard's question to the adapter begins with."""


@final
class KernelPrinter:
    """Prints the description of one kernel."""

    def __init__(
        self,
        writer: Writer,
        program: KernelProgram,
        names: ModuleNames,
        functions: Mapping[str, FunctionInfo],
    ) -> None:
        self._writer = writer
        self._program = program
        self._kernel = program.staged.kernel
        self._names = names.kernels[self._kernel.name]
        self._guards = HostPrinter(self._guard_value, names.constants, functions)

    def write(self) -> None:
        """Write the whole description."""
        kernel, names, writer = self._kernel, self._names, self._writer
        has_fields = bool(uniform_layout(kernel).fields)
        with writer.block(f"{names.description} = Kernel(", ")"):
            writer.line(f'name="{kernel.name}",')
            origin = f"{kernel.span.source.path}:{kernel.span.line}"
            writer.line(f"origin={origin!r},")
            writer.line("folder=_WGSL,")
            writer.line(f"dims={self._strings(kernel.dims)},")
            self._list("tensors", self._tensors())
            self._list("scalars", self._scalars())
            writer.line(f"uniform={names.uniform if has_fields else 'UniformStruct'},")
            writer.line(f"hosts={names.hosts},")
            writer.line(f"reference={names.reference},")
            self._write_stages()
            self._optional("temporaries", self._temporaries())
            self._optional("checks", self._checks())
            self._optional("gathers", self._gathers())
            self._write_guard_scalars()

    # Facts

    def _tensors(self) -> Iterator[str]:
        for tensor in self._kernel.tensors:
            yield f'{self._described("TensorSpec", tensor)}, "{_ACCESS[tensor.role]}")'

    def _temporaries(self) -> Iterator[str]:
        for tensor in self._program.temporaries:
            yield f'{self._described("Temporary", tensor)})'

    def _described(self, kind: str, tensor: Tensor) -> str:
        axes = tuple_text(map(self._extent, tensor.extents))
        return f'{kind}("{self._name(tensor.name)}", {tensor.element.spelling}, {axes}'

    def _scalars(self) -> Iterator[str]:
        for parameter in self._kernel.parameters:
            name, type_ = self._name(parameter.name), parameter.type
            if isinstance(type_, Vector):
                scalar, width = type_.scalar.spelling, type_.width
                yield f'ScalarSpec("{name}", {scalar}, width={width})'
            else:
                yield f'ScalarSpec("{name}", {type_.spelling})'

    def _checks(self) -> Iterator[str]:
        for check in self._kernel.checks:
            extent = self._extent(check.index.extent)
            tensor = self._name(check.tensor)
            index = check.index.name
            yield f'RangeCheck("{index}", {extent}, "{tensor}", {check.axis})'

    def _gathers(self) -> Iterator[str]:
        for gather in gathers_of(self._program.staged):
            around = tuple_text(map(self._extent, gather.around))
            tensor = self._name(gather.tensor)
            extent = self._extent(gather.extent)
            yield f'Gather("{tensor}", {gather.axis}, {extent}, {around})'

    @staticmethod
    def _extent(extent: Extent) -> str:
        return f'"{extent}"' if isinstance(extent, str) else str(extent)

    # Stages

    def _write_stages(self) -> None:
        with self._writer.block("stages=(", "),"):
            for stage in self._program.stages:
                with self._writer.block("Stage(", "),"):
                    self._writer.line(f'"{stage.name}",')
                    with self._writer.block("schedules=(", "),"):
                        for schedule in stage.schedules:
                            self._write_schedule(schedule)

    def _write_schedule(self, schedule: ScheduledStage) -> None:
        shaders = [shader for v in schedule.variants for shader in v.shaders]
        with self._writer.block("Schedule(", "),"):
            self._writer.line(f'"{schedule.label}",')
            if schedule.guard is not None:
                guard = self._guards.print(schedule.guard).text
                arguments = "d, adapter" if "adapter." in guard else "d, _"
                self._writer.line(f"when=lambda {arguments}: {guard},")
            with self._writer.block("variants=(", "),"):
                for variant in schedule.variants:
                    self._write_variant(variant)
            size = max(shader.workgroup_bytes for shader in shaders)
            self._writer.line(f"workgroup_bytes={size},")
            invocations = max(shader.workgroup_size for shader in shaders)
            self._writer.line(f"invocations={invocations},")

    def _write_variant(self, variant: Variant) -> None:
        with self._writer.block("Variant(", "),"):
            self._writer.line(f'"{variant.name}",')
            if variant.when:
                self._writer.line(f"when={host_lambda(variant.when)},")
            with self._writer.block("dispatches=(", "),"):
                for shader in variant.shaders:
                    self._write_dispatch(shader)
            self._optional("scratch", map(_scratch, variant.scratch))

    def _write_dispatch(self, shader: Shader) -> None:
        bindings = tuple_text(
            f'Binding("{self._name(binding.name)}"{", writes=True" * binding.writes})'
            for binding in shader.bindings
        )
        with self._writer.block("Dispatch(", "),"):
            self._writer.line(f'"{shader.stem}",')
            self._writer.line(f"{bindings},")
            self._writer.line(f"groups={host_lambda(shader.groups)},")
            if shader.turns:
                self._writer.line(f"turns={host_lambda(shader.turns)},")
            if shader.terms:
                self._writer.line(f"terms={host_lambda(shader.terms)},")
            if not shader.uses_uniform:
                self._writer.line("uses_uniform=False,")

    # Guards

    def _guard_value(self, node: DimValue | UniformValue) -> str:
        if isinstance(node, DimValue):
            return f'd["{node.name}"]'
        if node.name.startswith(ADAPTER):
            return node.name
        return f'd["{self._name(node.name)}"]'

    def _write_guard_scalars(self) -> None:
        guards = [s.guard for stage in self._program.stages for s in stage.schedules]
        read = dict.fromkeys(
            self._name(node.name)
            for guard in guards
            if guard is not None
            for node in walk(guard)
            if isinstance(node, UniformValue) and not node.name.startswith(ADAPTER)
        )
        if read:
            self._writer.line(f"guard_scalars={self._strings(read)},")

    # Pieces

    def _name(self, name: str) -> str:
        return self._names.values.get(name, name)

    def _strings(self, names: Iterable[str]) -> str:
        return tuple_text(f'"{name}"' for name in names)

    def _list(self, name: str, items: Iterable[str]) -> None:
        self._writer.line(f"{name}={tuple_text(items)},")

    def _optional(self, name: str, items: Iterable[str]) -> None:
        listed = list(items)
        if listed:
            self._list(name, listed)


def _scratch(scratch: Scratch) -> str:
    return f'Scratch("{scratch.name}", {host_lambda(scratch.length)})'

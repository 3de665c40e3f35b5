"""Print the `Kernel` object that describes a kernel to the runtime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import final

from kerngen.emit.functions import FunctionInfo
from kerngen.emit.host_expr import HostPrinter
from kerngen.emit.host_text import host_lambda
from kerngen.emit.python_code import quoted, tuple_text
from kerngen.emit.python_names import ModuleNames
from kerngen.emit.signature import element_name, parameter_element
from kerngen.emit.writer import Writer
from kerngen.ir.affine import as_literal
from kerngen.ir.nodes import DimValue, Expr, Extent, Role, Tensor, UniformValue
from kerngen.ir.subscript_checks import Gather, RangeCheck, checks_of
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
        self._integers = replace(self._guards, wraps=True)
        self._hosts = {host.name: host.value for host in self._kernel.hosts}
        self._checked = checks_of(self._kernel)
        self._read: dict[str, None] = {}

    def write(self) -> None:
        """Write the whole description."""
        kernel, names, writer = self._kernel, self._names, self._writer
        has_fields = bool(uniform_layout(kernel).fields)
        with writer.block(f"{names.description} = Kernel(", ")"):
            writer.line(f'name="{kernel.name}",')
            origin = f"{kernel.span.source.name}:{kernel.span.line}"
            writer.line(f"origin={quoted(origin)},")
            writer.line("folder=_WGSL,")
            writer.line(f"dims={self._strings(kernel.dims)},")
            self._list("tensors", self._tensors())
            self._list("scalars", self._scalars())
            writer.line(f"uniform={names.uniform if has_fields else 'UniformStruct'},")
            writer.line(f"hosts={names.hosts},")
            writer.line(f"reference={names.reference},")
            self._write_stages()
            self._optional("temporaries", self._temporaries())
            self._optional("derived", self._derived())
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
        element = element_name(tensor)
        return f'{kind}("{self._name(tensor.name)}", {element}, {axes}'

    def _scalars(self) -> Iterator[str]:
        for parameter in self._kernel.parameters:
            name = self._name(parameter.name)
            yield f'ScalarSpec("{name}", {parameter_element(parameter)})'

    def _derived(self) -> Iterator[str]:
        for dim in self._kernel.derived:
            value = self._guards.print(dim.value).text
            yield f'DerivedDim("{dim.name}", "{dim.text}", lambda d: {value})'

    def _checks(self) -> Iterator[str]:
        for check in self._checked:
            if isinstance(check, RangeCheck):
                yield self._range_check(check)

    def _range_check(self, check: RangeCheck) -> str:
        terms = tuple_text(
            f"Term({self._integer(coefficient)}, {self._extent(extent)})"
            for extent, coefficient in check.terms
        )
        offset = ""
        if as_literal(check.offset) != 0:
            offset = f", offset={self._integer(check.offset)}"
        guarded = ", is_guarded=True" * check.is_guarded
        place, around = self._place(check), self._around(check)
        text = f'"{check.text}", {place}, {terms}, {around}{offset}{guarded}'
        return f"RangeCheck({text})"

    def _integer(self, expr: Expr) -> str:
        """Return a literal, or a function of the dims."""
        value = as_literal(expr)
        if value is not None:
            return str(value)
        return f"lambda d: {self._integers.print(expr).text}"

    def _gathers(self) -> Iterator[str]:
        for gather in self._checked:
            if isinstance(gather, Gather):
                yield f"Gather({self._place(gather)}, {self._around(gather)})"

    def _place(self, check: Gather | RangeCheck) -> str:
        extent = self._extent(check.extent)
        return f'"{self._name(check.tensor)}", {check.axis}, {extent}'

    def _around(self, check: Gather | RangeCheck) -> str:
        return tuple_text(map(self._extent, check.around))

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
            if any(shader.subgroups for shader in shaders):
                self._writer.line("subgroups=True,")
            if schedule.covers > 1:
                self._writer.line(f"covers={schedule.covers},")

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
        if node.name in self._hosts:
            return f"({self._guards.print(self._hosts[node.name]).text})"
        name = self._name(node.name)
        self._read[name] = None
        return f'd["{name}"]'

    def _write_guard_scalars(self) -> None:
        """Name the scalars that everything printed before has read."""
        if self._read:
            self._writer.line(f"guard_scalars={self._strings(self._read)},")

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

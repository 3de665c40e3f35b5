"""A whole file: from its syntax tree to typed kernels, or every fault found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from kerngen.check import faults_statements, faults_unsupported
from kerngen.check.constants import check_constants
from kerngen.check.environment import Environment
from kerngen.check.faults_names import DuplicateItem
from kerngen.check.faults_schedules import UnknownKernel
from kerngen.check.functions import check_functions, check_signatures
from kerngen.check.parameters import Header
from kerngen.check.schedules import check_schedule
from kerngen.check.scope import Scope, closest
from kerngen.check.statements import Body
from kerngen.check.subscripts import example_read
from kerngen.check.text import signature_text
from kerngen.ir.nodes import Kernel, Module, Role
from kerngen.source.diagnostic import Faults
from kerngen.source.text import Source
from kerngen.syntax import ast


class _Named(Protocol):
    @property
    def name(self) -> ast.Identifier: ...


_Kind = TypeVar("_Kind")
_Item = TypeVar("_Item", bound=_Named)


def check(program: ast.Program, source: Source) -> Module:
    """Return the typed module; raise `CompileError` with every fault found."""
    faults = Faults()
    outer = Scope(faults)
    _report_unsupported(faults, program)
    functions = _distinct(faults, "functions", _all(program.items, ast.FunctionItem))
    constants = _distinct(faults, "constants", _all(program.items, ast.ConstItem))
    kernels = _distinct(faults, "kernels", _all(program.items, ast.KernelItem))

    # What functions take and return, so that their order does not matter.
    signatures = check_signatures(faults, functions)
    # Constants into the scope that functions and kernels share.
    check_constants(faults, constants, signatures, outer)
    # Functions, callees before callers.
    checked_functions = check_functions(faults, functions, signatures, outer)
    # Kernels, each in a scope of its own, with their schedules.
    _check_scheduled(faults, program, kernels)
    checked_kernels = tuple(
        _check_kernel(
            item,
            Environment(faults, signatures, "kernel"),
            Scope(faults, outer),
            program,
        )
        for item in kernels
    )
    faults.raise_if_any()
    _expect_complete(checked_kernels, kernels)
    return Module(source.path, program.doc, checked_functions, checked_kernels)


def _all(items: Iterable[object], kind: type[_Kind]) -> list[_Kind]:
    return [item for item in items if isinstance(item, kind)]


def _report_unsupported(faults: Faults, program: ast.Program) -> None:
    for use in _all(program.items, ast.UseItem):
        faults.add(faults_unsupported.UseUnsupported(span=use.span, path=use.path))
    for struct in _all(program.items, ast.StructItem):
        faults.add(faults_unsupported.StructUnsupported(span=struct.name.span))


def _distinct(faults: Faults, kind: str, items: list[_Item]) -> list[_Item]:
    """Leave out items whose name was there before; each is a fault."""
    first: dict[str, _Item] = {}
    for item in items:
        name = item.name
        if name.name in first:
            faults.add(
                DuplicateItem(
                    span=name.span,
                    other=first[name.name].name.span,
                    kind=kind,
                    name=name.name,
                )
            )
        first.setdefault(name.name, item)
    return list(first.values())


def _check_scheduled(
    faults: Faults, program: ast.Program, kernels: list[ast.KernelItem]
) -> None:
    """Check that every schedule has its kernel."""
    known = [item.name.name for item in kernels]
    for schedule in _all(program.items, ast.ScheduleItem):
        name = schedule.kernel
        if name.name not in known:
            faults.add(
                UnknownKernel(
                    span=name.span,
                    name=name.name,
                    suggestion=closest(name.name, known),
                )
            )


def _check_kernel(
    item: ast.KernelItem,
    env: Environment,
    scope: Scope,
    program: ast.Program,
) -> Kernel:
    """Return a kernel; where it has faults, it is incomplete and goes no further."""
    structs = frozenset(s.name.name for s in _all(program.items, ast.StructItem))
    header = Header(env, scope, structs)
    header.check(item)
    body = Body(env, scope)
    body.check(item.body)
    schedules = [
        check_schedule(schedule, env, scope)
        for schedule in _all(program.items, ast.ScheduleItem)
        if schedule.kernel.name == item.name.name
    ]
    _check_written(env, item)
    return Kernel(
        name=item.name.name,
        dims=tuple(header.dims),
        tensors=tuple(env.tensors),
        parameters=tuple(header.parameters),
        hosts=tuple(body.hosts),
        body=tuple(body.statements),
        checks=tuple(env.checks),
        schedules=tuple(s for s in schedules if s is not None),
        signature=signature_text(item),
        doc=item.doc,
        span=item.span,
        order=tuple(parameter.name.name for parameter in item.parameters),
    )


def _check_written(env: Environment, item: ast.KernelItem) -> None:
    """Check that every output is written, and anything at all."""
    outputs = [tensor for tensor in env.tensors if tensor.role is Role.OUTPUT]
    for tensor in outputs:
        if tensor.name not in env.written and tensor.span is not None:
            env.faults.add(
                faults_statements.NeverWritten(
                    span=tensor.span, name=tensor.name, example=example_read(tensor)
                )
            )
    updates = any(parameter.mutable for parameter in item.parameters)
    if updates and not item.outputs and not _assigns(item):
        env.faults.add(
            faults_statements.NothingWritten(span=item.name.span, name=item.name.name)
        )


def _assigns(item: ast.KernelItem) -> bool:
    return any(isinstance(statement, ast.Assignment) for statement in item.body)


def _expect_complete(kernels: tuple[Kernel, ...], items: list[ast.KernelItem]) -> None:
    """Hold that what has no fault was understood: nothing is left out in silence."""
    for kernel, item in zip(kernels, items, strict=True):
        understood = len(kernel.body) + len(kernel.hosts)
        assert understood == len(item.body), f"{kernel.name}: a statement was left out"

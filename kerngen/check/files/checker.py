"""Checking files together with those that they use: from texts to typed modules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment, all_parts
from kerngen.check.files.checked_file import (
    CheckedFile,
    ItemKind,
    KernelHead,
    UsedModule,
    import_items,
    link,
    structs_of,
)
from kerngen.check.files.followups import find_skipped, suggest_use
from kerngen.check.hints.subscripts import example_read
from kerngen.check.items.constants import check_constants
from kerngen.check.items.functions import (
    check_derivatives,
    check_functions,
    check_signatures,
)
from kerngen.check.items.gradients import Derive, with_gradients
from kerngen.check.items.header import Header, check_requires
from kerngen.check.items.structs import check_structs, uniform_size_fault
from kerngen.check.model import Model
from kerngen.check.schedules import (
    Scheduled,
    by_kernel,
    check_cross_file_schedules,
    check_schedule,
    find_scheduled,
    report_dead,
    report_faults,
    with_cross_file_schedules,
)
from kerngen.check.scope import Scope
from kerngen.check.statements.body import Body
from kerngen.ir.module import Module
from kerngen.ir.nodes import Kernel, Role
from kerngen.source.diagnostic import CompileError, Faults
from kerngen.source.text import Source, collapse
from kerngen.syntax import ast
from kerngen.syntax.library import Library
from kerngen.syntax.parser import read

_Kind = TypeVar("_Kind")
_NamedItem: TypeAlias = (
    ast.FunctionItem
    | ast.ConstItem
    | ast.StructItem
    | ast.KernelItem
    | ast.GradientItem
)
_KINDS: Final[Mapping[type[_NamedItem], ItemKind]] = {
    ast.FunctionItem: "function",
    ast.ConstItem: "constant",
    ast.StructItem: "struct",
    ast.KernelItem: "kernel",
    ast.GradientItem: "kernel",
}


def check(program: ast.Program, source: Source, derive: Derive | None = None) -> Module:
    """Return the typed module of a file that uses no other files.

    Raises `CompileError` with every fault found.
    """
    return check_file(program, source, (), derive).module


def check_file(
    program: ast.Program,
    source: Source,
    uses: tuple[UsedModule, ...],
    derive: Derive | None,
    model: Model | None = None,
) -> CheckedFile:
    """Check a file, given those it uses; raise `CompileError` with every fault found.

    Syntax errors are reported, too, but not names that are missing because of them. A
    `model` that is passed is filled even if there are errors.
    """
    model = Model() if model is None else model
    faults = Faults()
    for fault in program.faults:
        faults.add(fault)
    skipped = find_skipped(program)
    # Without a `use`, every unknown name could be one of that file.
    if skipped.may_hold_anything:
        faults.raise_if_any()
    used = _all(program.items, ast.UseItem)
    assert faults or len(used) == len(uses), "the files used must be given"
    file, scheduled = _check_items(faults, program, source.name, uses, model)
    faults.drop(skipped.explains)
    kernels = {*file.kernels, *(name for use in uses for name in use.file.kernels)}
    if faults:
        faults.amend(suggest_use(file, kernels))
    faults.raise_if_any()
    _expect_complete(file.module.kernels, _all(program.items, ast.KernelItem))
    return with_gradients(file, program, scheduled, derive)


def _check_items(
    faults: Faults,
    program: ast.Program,
    path: str,
    uses: tuple[UsedModule, ...],
    model: Model,
) -> tuple[CheckedFile, Mapping[str, Sequence[Scheduled]]]:
    """Return a file, without its faulty items, and the schedules of its kernels."""
    outer, distinct = Scope(faults), _distinct(faults, program)
    items = [*distinct.values()]
    places = {key: item.name.span for key, item in distinct.items()}
    # The items of used files, declared as if they came before this file's.
    imported = import_items(faults, places, uses, outer)
    # Signatures before bodies, so that functions may be in any order.
    structs, signed = _all(items, ast.StructItem), _all(items, ast.FunctionItem)
    structs_seen = {*structs_of(uses), *(item.name.name for item in structs)}
    signatures = check_signatures(faults, signed, structs_seen)
    env = Environment(faults, {**imported, **signatures}, model=model)
    # Constants, in the scope that functions and kernels share.
    constants = check_constants(env, _all(items, ast.ConstItem), outer)
    # Structs, with lengths that may be constants.
    known = check_structs(env.begin(), structs, outer, structs_of(uses), path)
    # Functions, callees before callers.
    functions = check_functions(env, signed, outer)
    derivatives = _all(program.items, ast.DerivativeItem)
    functions = check_derivatives(env, derivatives, functions, signatures, outer)
    bodies = {function.name: function for function in functions}
    # Kernels, each in a scope of its own, with this file's schedules of them.
    env = replace(env, structs=known, bodies=bodies)
    names = [name for kind, name in places if kind == "kernel"]
    heads = {n: KernelHead(Scope(faults, outer), places["kernel", n]) for n in names}
    scheduled = find_scheduled(faults, program, names, uses)
    of_kernels = by_kernel(scheduled)
    kernels = tuple(
        _check_kernel(item, env, heads[name].scope, of_kernels[name])
        for item in _all(items, ast.KernelItem)
        if (name := item.name.name)
    )
    # Schedules of other files' kernels.
    report_dead(faults, scheduled)
    schedules = check_cross_file_schedules(scheduled, heads, uses, outer)
    report_faults(faults, scheduled)
    own = {i.name.name: s for i in structs if (s := known[i.name.name])}
    module = Module(path, program.doc, functions, kernels, structs=(*own.values(),))
    file = CheckedFile(
        module=replace(module, warnings=env.warnings.in_order()),
        functions=bodies,
        signatures=signatures,
        constants=constants,
        structs=own,
        kernels=heads,
        uses=uses,
        derived_from={},
        schedules=schedules,
        model=model,
    )
    return file, of_kernels


def _all(items: Iterable[object], kind: type[_Kind]) -> list[_Kind]:
    return [item for item in items if isinstance(item, kind)]


def _distinct(
    faults: Faults, program: ast.Program
) -> dict[tuple[ItemKind, str], _NamedItem]:
    """Return a file's items by kind and name; report those whose name is taken."""
    first: dict[tuple[ItemKind, str], _NamedItem] = {}
    for item in program.items:
        if not isinstance(item, _NamedItem):
            continue
        kind, name = _KINDS[type(item)], item.name.name
        before = first.setdefault((kind, name), item)
        if before is not item:
            span, other = item.name.span, before.name.span
            faults.add(
                diag.DuplicateItem(span=span, other=other, kind=f"{kind}s", name=name)
            )
    return first


def _check_kernel(
    item: ast.KernelItem,
    of_file: Environment,
    scope: Scope,
    scheduled: Iterable[Scheduled],
) -> Kernel:
    """Return a kernel; where it has faults, it is incomplete and goes no further."""
    identifiers = frozenset(re.findall(r"\w+", item.span.collapsed))
    env = of_file.begin(identifiers=identifiers)
    header = Header(env, scope)
    header.check(item)
    # Before the body, whose subscripts are proved by them, wherever they are in the text.
    known = check_requires(env, scope, item, [*header.dims], header.parameters)
    body = Body(replace(env, known=known), scope)
    body.check(item.equations)
    schedules = [check_schedule(schedule, env, scope) for schedule in scheduled]
    _check_written(env, scope, item)
    kernel = Kernel(
        name=item.name.name,
        dims=tuple(header.dims),
        tensors=tuple(env.tensors),
        parameters=tuple(header.parameters),
        hosts=tuple(body.hosts),
        body=tuple(body.statements),
        schedules=tuple(s for s in schedules if s is not None),
        signature=_signature(item),
        doc=item.doc,
        span=item.span,
        order=tuple(parameter.name.name for parameter in item.parameters),
        derived=tuple(env.derived),
        requires=tuple(known.requires),
    )
    if fault := uniform_size_fault(kernel):
        env.faults.add(fault)
    return kernel


def _signature(item: ast.KernelItem) -> str:
    """Return a kernel's text up to its body, on one line."""
    last = (item.name, *item.parameters, *item.outputs)[-1].span
    text = item.span.text
    end = text.index("{", last.end - item.span.start)
    return collapse(text[text.index("kernel") : end]).removesuffix(",")


def _check_written(env: Environment, scope: Scope, item: ast.KernelItem) -> None:
    """Check that every output is written, and anything at all."""
    for tensor in env.tensors:
        if tensor.role is not Role.OUTPUT or tensor.span is None:
            continue
        if tensor.name not in env.written:
            example = example_read(env, scope, tensor)
            env.faults.add(diag.NeverWritten(span=tensor.span, example=example))
        elif missing := env.unwritten(tensor, tensor.memory):
            parts = tuple(part for part in all_parts(tensor.memory) if part in missing)
            env.faults.add(diag.MembersNeverWritten(span=tensor.span, missing=parts))
    updates = any(parameter.mutable for parameter in item.parameters)
    assigns = any(isinstance(statement, ast.Assignment) for statement in item.body)
    if updates and not item.outputs and not assigns:
        env.faults.add(diag.NothingWritten(span=item.name.span))


def _expect_complete(kernels: tuple[Kernel, ...], items: list[ast.KernelItem]) -> None:
    """Assert that a file without faults has all its statements in the typed kernels."""
    for kernel, item in zip(kernels, items, strict=True):
        # Of a struct that is copied, each member has a statement of its own.
        written = {statement.span for statement in kernel.body}
        understood = len(written) + len(kernel.hosts)
        assert understood == len(
            item.equations
        ), f"{kernel.name}: a statement was left out"


@final
class Checker:
    """Checks the files of a library, each only once.

    `derive` makes the kernels of gradient items. `programs` and `models` have the
    syntax trees and models of all files checked so far, faulty ones included.
    """

    def __init__(self, library: Library, derive: Derive | None = None) -> None:
        self._library = library
        self._derive = derive
        self._checked: dict[str, CheckedFile] = {}
        self.programs: dict[str, ast.Program] = {}
        self.models: dict[str, Model] = {}

    @property
    def right(self) -> Mapping[str, CheckedFile]:
        """The files that were checked and have no faults."""
        return self._checked

    def adopt(self, files: Mapping[str, CheckedFile]) -> None:
        """Take over files that were checked before, and have not changed since."""
        self._checked |= files

    def module(self, name: str) -> Module:
        """Return a file's typed module with its kernels' schedules, for the build.

        Raises `CompileError` with every fault of the file, of those that it uses, and
        of those that schedule its kernels.
        """
        tuners = self._library.tuners(name)
        faults = Faults()
        for each in (name, *tuners):
            with faults.collect():
                self._check(self._needed(each))
        faults.raise_if_any()
        givers = tuple(self._checked[tuner] for tuner in tuners)
        # Functions and constants of other files, callees before callers.
        return with_cross_file_schedules(link(self._checked[name]), givers)

    def _needed(self, name: str) -> tuple[str, ...]:
        """Return a file and all that it uses; a faulty `use` hides no syntax errors."""
        try:
            return self._library.closure(name)
        except CompileError as error:
            of_syntax = self._read(name).faults
            raise CompileError((*error.diagnostics, *of_syntax)) from None

    def _check(self, names: tuple[str, ...]) -> None:
        """Check files, each of which comes after those that it uses.

        A file that uses a faulty one is not checked, as names would be missing there.
        """
        faults = Faults()
        for name in names:
            if name not in self._checked:
                with faults.collect():
                    self._check_one(name)
        faults.raise_if_any()

    def _check_one(self, name: str) -> None:
        source = self._library.source(name)
        # Text to syntax tree, as far as it can be read.
        program = self._read(name)
        used = self._library.uses(name)
        if all(use.name in self._checked for use in used):
            uses = tuple(UsedModule(self._checked[use.name], use.span) for use in used)
            # Syntax tree to typed kernels; a fault of either stage ends here.
            model = self.models[name] = Model()
            self._checked[name] = check_file(program, source, uses, self._derive, model)
        else:
            raise CompileError(program.faults)

    def _read(self, name: str) -> ast.Program:
        self.programs[name] = read(self._library.source(name))
        return self.programs[name]

"""Read plan files; a damaged one is refused, with the line.

`read_facts` parses what an import needs, the declarations of each kernel; `KernelLines.body`
parses the steps of a kernel at its first call; `read_plan` reads all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

from kerngen.plan import tree
from kerngen.plan.expand import Expander, ParsedForm, read_form
from kerngen.plan.lines import HEAD, PlanLine, PlanSyntaxError, blocks, lines_of
from kerngen.plan.read_facts import FactReader
from kerngen.plan.read_steps import STEPS, StepReader
from kerngen.plan.scope import PlanNames

_HEADER: Final = re.compile(r'kerngen plan (\d+) \| (".*") \| sha256 (\w*)')
"""The first line: the version, the source's name in quotes, and the source's hash."""


class PlanVersionError(Exception):
    """Raised for a plan file with another version of the format."""


@final
@dataclass(frozen=True, eq=False)
class KernelLines:
    """A kernel in a plan file: its facts, and its steps as lines not yet parsed.

    A program imports the kernels of a module, and calls few of them: three quarters of
    the time to read a plan are its sizes and steps.
    """

    facts: tree.KernelPlan
    """The plan without its steps."""
    _head: PlanLine
    _steps: Sequence[PlanLine]
    _scope: PlanNames
    _forms: Mapping[str, ParsedForm]

    @cached_property
    def body(self) -> tree.Sequence:
        """The steps, parsed when first asked for.

        Raises:
            PlanSyntaxError: If anything in them is not as `plan_text` writes it.
        """
        try:
            return self._read()
        except RecursionError:
            raise _too_deep() from None

    def _read(self) -> tree.Sequence:
        """Return the steps: names of sizes first, then lines, in which forms are expanded."""
        lines, scope = self._steps, self._scope.copy()
        start = next((at for at, x in enumerate(lines) if _is_step(x)), len(lines))
        _declare(FactReader(scope), lines[:start])
        steps = Expander(self._forms, scope).expand(lines[start:])
        body = StepReader(scope).steps(self._head, steps)
        stages = tree.stages_of(body)
        if len(set(stages)) < len(stages):
            self._head.refuse(f"a stage of {', '.join(stages)} is computed twice")
        return body


@final
@dataclass(frozen=True, eq=False)
class PlanLines:
    """A module's plan file: facts are parsed, steps are not."""

    source: str
    stamp: str
    kernels: tuple[KernelLines, ...]


def read_facts(text: str) -> PlanLines:
    """Parse the text of a plan file, but leave the steps of kernels unparsed.

    Raises:
        PlanVersionError: If it is a plan of another version, or no plan.
        PlanSyntaxError: If the text is not the one that was written, or anything in the
            facts is not as `plan_text` writes it.
    """
    first, _, _ = text.partition("\n")
    header = _HEADER.fullmatch(first)
    if header is None or not first.startswith(f"{HEAD} |"):
        raise PlanVersionError(f"expected '{HEAD}', got '{first[:60]}'")
    source = PlanLine(1, 0, ()).string(header[2])
    try:
        kernels = tuple(_kernels(lines_of(text)))
    except RecursionError:
        raise _too_deep() from None
    return PlanLines(source, header[3], kernels)


def read_plan(text: str) -> tree.ModulePlan:
    """Parse the text of a plan file, the steps of kernels included.

    Raises:
        PlanVersionError: If it is a plan of another version, or no plan.
        PlanSyntaxError: If anything in it is not as `plan_text` writes it.
    """
    plan = read_facts(text)
    kernels = (replace(each.facts, body=each.body) for each in plan.kernels)
    return tree.ModulePlan(plan.source, plan.stamp, tuple(kernels))


def _too_deep() -> PlanSyntaxError:
    return PlanSyntaxError(1, "a size nests too deep")


def _kernels(lines: Sequence[PlanLine]) -> Iterator[KernelLines]:
    """Yield the kernels of a file, each with the forms above it."""
    names: set[str] = set()
    forms: dict[str, ParsedForm] = {}
    for head, inner in blocks(lines, 0):
        word, _, name = head.fields[0].partition(" ")
        if word == "form":
            if name in forms or not name.isidentifier():
                head.refuse(f"expected a new name of a form, got '{name}'")
            forms[name] = read_form(head, inner, forms)
            continue
        kernel = _kernel(head, inner, {**forms})
        if kernel.facts.name in names:
            head.refuse(f"'{kernel.facts.name}' is declared twice")
        names.add(kernel.facts.name)
        yield kernel


def _kernel(
    head: PlanLine, inner: Sequence[PlanLine], forms: Mapping[str, ParsedForm]
) -> KernelLines:
    """Return a kernel: its declarations are parsed, its `let`s and steps are kept as lines."""
    name, origin = _name_and_origin(head)
    facts = FactReader(PlanNames())
    ends = (at for at, line in enumerate(inner) if _is_step(line) or _is_let(line))
    start = next(ends, len(inner))
    _declare(facts, inner[:start])
    facts.scope.check_lengths()
    plan = tree.KernelPlan(
        name=name,
        origin=origin,
        dims=tuple(facts.dims),
        tensors=tuple(facts.tensors),
        scalars=tuple(facts.scalars),
        body=(),
        temporaries=tuple(facts.temporaries),
        derived=tuple(facts.derived),
        requires=tuple(facts.requires),
        checks=tuple(facts.checks),
        gathers=tuple(facts.gathers),
        guards=tuple(facts.guards),
        computed=tuple(facts.computed),
        gradient=facts.gradient,
    )
    return KernelLines(plan, head, inner[start:], facts.scope, forms)


def _declare(facts: FactReader, lines: Sequence[PlanLine]) -> None:
    """Read declarations; after the first `let`, only others may follow."""
    for line, deeper in blocks(lines, 1):
        if deeper:
            deeper[0].refuse("unexpected indentation")
        if _is_let(lines[0]) and not _is_let(line):
            line.refuse("expected 'let NAME = SIZE'")
        facts.read(line)


def _name_and_origin(head: PlanLine) -> tuple[str, str]:
    first, *rest = head.fields
    given, _, name = first.partition(" ")
    if given != "kernel" or len(rest) != 1 or not name.isidentifier():
        head.refuse("expected 'kernel NAME | \"FILE:LINE\"'")
    return name, head.string(rest[0])


def _is_step(line: PlanLine) -> bool:
    return line.fields[0].partition(" ")[0] in STEPS


def _is_let(line: PlanLine) -> bool:
    return line.fields[0].startswith("let ")

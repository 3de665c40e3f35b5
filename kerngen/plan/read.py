"""The way back from a plan file to plans; a damaged one is refused, with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kerngen.plan import tree
from kerngen.plan.lines import Line, PlanSyntaxError, blocks, lines_of
from kerngen.plan.read_facts import FactReader
from kerngen.plan.read_steps import STEPS, StepReader
from kerngen.plan.scope import Scope
from kerngen.plan.tree import KernelPlan, ModulePlan, stages_of
from kerngen.plan.write import HEAD

_HEADER: Final = re.compile(r'kerngen plan (\d+) \| (".*") \| sha256 (\w*)')


class PlanVersionError(Exception):
    """A plan file is of another version of the format."""


def read_plan(text: str) -> ModulePlan:
    """Return the plans of a file's text.

    Raises:
        PlanVersionError: If it is a plan of another version, or no plan.
        PlanSyntaxError: If anything in it is not as `plan_text` writes it.
    """
    first, _, _ = text.partition("\n")
    header = _HEADER.fullmatch(first)
    if header is None or not first.startswith(f"{HEAD} |"):
        raise PlanVersionError(f"expected '{HEAD}', got '{first[:60]}'")
    source = Line(1, 0, ()).string(header[2])
    try:
        kernels = tuple(_kernels(lines_of(text)))
    except RecursionError:
        raise PlanSyntaxError(1, "a size nests too deep") from None
    return ModulePlan(source, header[3], kernels)


def _kernels(lines: Sequence[Line]) -> Iterator[KernelPlan]:
    names: set[str] = set()
    for head, inner in blocks(lines, 0):
        kernel = _kernel(head, inner)
        if kernel.name in names:
            head.refuse(f"'{kernel.name}' is declared twice")
        names.add(kernel.name)
        yield kernel


def _kernel(head: Line, inner: Sequence[Line]) -> KernelPlan:
    """Return the plan of a kernel: lines that declare, then lines of steps."""
    name, origin = _name_and_origin(head)
    scope = Scope()
    facts = FactReader(scope)
    start = next((at for at, line in enumerate(inner) if _is_step(line)), len(inner))
    for line, deeper in blocks(inner[:start], 1):
        if deeper:
            deeper[0].refuse("unexpected indentation")
        facts.read(line)
    scope.check_lengths()
    return KernelPlan(
        name=name,
        origin=origin,
        dims=tuple(facts.dims),
        tensors=tuple(facts.tensors),
        scalars=tuple(facts.scalars),
        body=_body(head, inner[start:], scope),
        temporaries=tuple(facts.temporaries),
        derived=tuple(facts.derived),
        requires=tuple(facts.requires),
        checks=tuple(facts.checks),
        gathers=tuple(facts.gathers),
        guards=tuple(facts.guards),
        computed=tuple(facts.computed),
        gradient=facts.gradient,
    )


def _name_and_origin(head: Line) -> tuple[str, str]:
    first, *rest = head.fields
    given, _, name = first.partition(" ")
    if given != "kernel" or len(rest) != 1 or not name.isidentifier():
        head.refuse("expected 'kernel NAME | \"FILE:LINE\"'")
    return name, head.string(rest[0])


def _is_step(line: Line) -> bool:
    return line.fields[0].partition(" ")[0] in STEPS


def _body(head: Line, lines: Sequence[Line], scope: Scope) -> tree.Sequence:
    body = StepReader(scope).steps(head, lines)
    stages = stages_of(body)
    if len(set(stages)) < len(stages):
        head.refuse(f"a stage of {', '.join(stages)} is computed twice")
    return body

"""Write plans as text that people can read and compare.

    kernel softmax | "dsl/softmax.kern:7"
      dims m, n
      read x f32[m, n]
      write y f32[m, n]
      let s1 = min(max(ceil_div(n, 4096), 1), 1024)
      stage top, total, y
        reduce | when m < 64 and n > 65536 | bytes 1024 | invocations 256
          aligned | when n % 4 == 0 | scratch parts[m * s1] | run softmax.top(x, parts*) | ...
            run softmax.top.finish(top*, parts) | groups m
          edge | ...
          stage total
            reduce | bytes 1024 | invocations 256
              ...
          stage y
            ...
        rows | bytes 1024 | invocations 256 | run softmax.rows(x, y*) | groups m

Indented lines are a sequence of steps.  A `run` is a dispatch, and a `repeat` runs the
lines in it this many times.  A `stage` is a choice, and
the lines in it are its cases; what a case runs is in the case's own line and those in it.
Cases without a `stage` above them are a choice, too, that ends with the one without `when`.

Fields are set apart by ` | `, which no name, size or guard contains.  A `*` marks what a
dispatch writes.  A size that occurs more than once is a `let`.  The last line is the CRC-32
of those above: a plan that was cut off, or changed by hand, is not run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final, assert_never, final
from zlib import crc32

from kerngen.plan.adapter import FACTS
from kerngen.plan.size import (
    ALWAYS,
    MOST,
    ZERO,
    Apply,
    Guard,
    Literal,
    Select,
    Size,
    Symbol,
    children,
)
from kerngen.plan.text import Printer
from kerngen.plan.tree import (
    Axes,
    Case,
    Choice,
    Dispatch,
    Gather,
    GradientOf,
    KernelPlan,
    ModulePlan,
    Needs,
    RangeCheck,
    Repeat,
    Sequence,
    sizes_in,
    sizes_of,
)

VERSION: Final = 5
HEAD: Final = f"kerngen plan {VERSION}"
NAMELESS: Final = "-"
"""The name of a case that has none."""

_LONG: Final = 28
"""A size that occurs again is named if its text, with names in it, is so long."""


def plan_text(plan: ModulePlan) -> str:
    """Return the text of a plan file.

    Raises:
        PlanValueError: If a kernel has what no reader would take.
    """
    lines = [f"{HEAD} | {_quoted(plan.source)} | sha256 {plan.stamp}"]
    for kernel in plan.kernels:
        lines += ("", *kernel_lines(kernel))
    text = "\n".join(lines) + "\n"
    return f"{text}\n{checksum_line(text)}\n"


class PlanValueError(ValueError):
    """Raised for a plan with a number or name that no reader accepts."""

    def __init__(self, kernel: str, fault: str) -> None:
        """Name the kernel, and what is wrong."""
        super().__init__(f"the plan of '{kernel}' can't be written: {fault}")


def checksum_line(text: str) -> str:
    """Return the last line of a plan file: the CRC-32 of all lines before."""
    return f"end {crc32(text.encode()):08x}"


def kernel_lines(kernel: KernelPlan) -> Iterator[str]:
    """Yield the lines of one kernel.

    Raises:
        PlanValueError: If it has a number beyond 2^53, or an unknown fact of the adapter.
    """
    for size in sizes_of(kernel):
        _check(size, kernel.name)
    names = named_sizes(kernel)
    yield f"kernel {kernel.name} | {_quoted(kernel.origin)}"
    yield from (f"  {line}" for line in _facts(kernel))
    printer = Printer()
    for size, name in names.items():
        yield f"  let {name} = {printer.size(size)}"
        printer = Printer({**printer.names, size: name})
    yield from (f"  {line}" for line in _Lines(printer).steps(kernel.body))


def _check(part: Size | Guard, kernel: str) -> None:
    """Refuse what the reader does: what is written can be read again."""
    match part:
        case Literal(value) if abs(value) > MOST:
            raise PlanValueError(kernel, f"{value} is beyond 2^53")
        case Symbol(name) if name.startswith("adapter.") and name not in FACTS:
            known = ", ".join(sorted(FACTS))
            raise PlanValueError(kernel, f"'{name}' is none of {known}")
        case _:
            for each in children(part):
                _check(each, kernel)


def _facts(kernel: KernelPlan) -> Iterator[str]:
    plain = Printer()
    if kernel.dims:
        yield f"dims {', '.join(kernel.dims)}"
    for tensor in kernel.tensors:
        yield f"{tensor.access} {tensor.name} {tensor.element}{_axes(tensor.axes)}"
    for scalar in kernel.scalars:
        yield f"scalar {scalar.name} {scalar.element}"
    if kernel.gradient:
        yield " | ".join(_gradient_fields(kernel.gradient))
    if kernel.guards:
        yield f"guards {', '.join(kernel.guards)}"
    if kernel.computed:
        yield f"computed {', '.join(kernel.computed)}"
    for each in kernel.requires:
        yield f"require {plain.guard(each.condition)} | {_quoted(each.text)}"
    for dim in kernel.derived:
        yield f"length {dim.name} | {plain.size(dim.value)} | {_quoted(dim.text)}"
    for check in kernel.checks:
        yield " | ".join(_range_fields(check, plain))
    for gather in kernel.gathers:
        yield f"gather {_place(gather)} | around {_axes(gather.around)}"
    for item in kernel.temporaries:
        yield f"temporary {item.name} {item.element}{_axes(item.axes)}"


def _gradient_fields(gradient: GradientOf) -> Iterator[str]:
    yield f"gradient {gradient.kernel}"
    yield from (f"by {name}: {output}" for name, output in gradient.by)
    yield from (f"from {name}: {tensor}" for name, tensor in gradient.from_)
    yield from (f"argument {name}: {own}" for name, own in gradient.arguments)
    yield from (f"given {name}" for name in gradient.given)
    yield from (f"length {dim}: {scalar}" for dim, scalar in gradient.lengths)


def _range_fields(check: RangeCheck, plain: Printer) -> Iterator[str]:
    yield f"range {_place(check)}"
    yield _quoted(check.text)
    yield f"around {_axes(check.around)}"
    if check.is_guarded:
        yield "guarded"
    if check.offset != ZERO:
        yield f"offset {plain.size(check.offset)}"
    for term in check.terms:
        yield f"term {term.extent} by {plain.size(term.coefficient)}"


def _place(check: RangeCheck | Gather) -> str:
    # What holds a subscript may be a member: 'the vector or matrix', 'body.trail'.
    return f"{_quoted(check.tensor)} {check.axis} {check.extent}"


def _axes(axes: Axes) -> str:
    return f"[{', '.join(map(str, axes))}]"


def _quoted(text: str) -> str:
    """Return a text in quotes, without the bar that sets fields apart."""
    return json.dumps(text).replace("|", "\\u007c")


@final
@dataclass(frozen=True, slots=True)
class _Lines:
    """Prints the tree of a plan, with sizes by their names."""

    printer: Printer

    def steps(self, body: Sequence) -> Iterator[str]:
        """Yield the lines of a sequence."""
        for step in body:
            match step:
                case Dispatch():
                    yield " | ".join(self._dispatch(step))
                case Repeat(count, repeated):
                    yield f"repeat {self.printer.size(count)}"
                    yield from (f"  {line}" for line in self.steps(repeated))
                case Choice(cases, ()):
                    yield from self._cases(cases)
                case Choice(cases, stages):
                    yield f"stage {', '.join(stages)}"
                    yield from (f"  {line}" for line in self._cases(cases))
                case _:
                    assert_never(step)

    def _cases(self, cases: Iterable[Case]) -> Iterator[str]:
        for case in cases:
            fields = [case.name or NAMELESS, *self._when(case.when)]
            fields += _needs(case.needs)
            fields += (
                f"scratch {item.name}[{self.printer.size(item.length)}]"
                for item in case.scratch
            )
            match case.body:
                case (Dispatch() as first, *others):
                    fields += self._dispatch(first)
                case others:
                    pass
            yield " | ".join(fields)
            yield from (f"  {line}" for line in self.steps(tuple(others)))

    def _when(self, guard: Guard) -> Iterator[str]:
        if guard != ALWAYS:
            yield f"when {self.printer.guard(guard)}"

    def _dispatch(self, dispatch: Dispatch) -> Iterator[str]:
        bound = (f"{b.name}*" if b.writes else b.name for b in dispatch.bindings)
        yield f"run {dispatch.wgsl}({', '.join(bound)})"
        if dispatch.constants:
            given = (f"{name} = {value}" for name, value in dispatch.constants)
            yield f"with {', '.join(given)}"
        yield f"groups {self.printer.size(dispatch.groups)}"
        if dispatch.trips != ZERO:
            yield f"trips {self.printer.size(dispatch.trips)}"
        if dispatch.terms != ZERO:
            yield f"terms {self.printer.size(dispatch.terms)}"
        if not dispatch.uses_uniform:
            yield "no uniform"


def _needs(needs: Needs) -> Iterator[str]:
    if needs.workgroup_bytes:
        yield f"bytes {needs.workgroup_bytes}"
    if needs.invocations:
        yield f"invocations {needs.invocations}"
    if needs.subgroups:
        yield "subgroups"


# Names of sizes that occur more than once


def named_sizes(kernel: KernelPlan) -> dict[Size, str]:
    """Return names for the sizes that lines would repeat, inner ones first."""
    counts: Counter[Size] = Counter()
    for size in sizes_in(kernel.body):
        _count(size, counts)
    again = [size for size, number in counts.items() if number > 1]
    plain = Printer()
    again.sort(key=lambda size: len(plain.size(size)))
    taken = {
        *kernel.dims,
        *kernel.guards,
        *kernel.computed,
        *(dim.name for dim in kernel.derived),
    }
    free = (name for name in map("s{}".format, count(1)) if name not in taken)
    names: dict[Size, str] = {}
    for size in again:
        if len(Printer(names).size(size)) >= _LONG:
            names[size] = next(free)
    return names


def _count(part: Size | Guard, counts: Counter[Size]) -> None:
    """Count the sizes in a part that have a name to gain.

    The parts of a size that was met before are not counted again.
    """
    if isinstance(part, Apply | Select):
        counts[part] += 1
        if counts[part] > 1:
            return
    for each in children(part):
        _count(each, counts)

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

Indented lines are a sequence of steps.  A `run` is a dispatch, and a `repeat` runs the lines
in it a number of times.  A `stage` is a choice, and the lines in it are its cases; what a
case runs is in the case's own line and those in it.  Cases without a `stage` above them are
a choice, too, that ends with the one without `when`.

Fields are set apart by ` | `, which no name, size or guard contains.  A `*` marks what a
dispatch writes.  A size that occurs more than once is a `let`.  The last line is the CRC-32
of those above: a plan that was cut off, or changed by hand, is not run.

Lines that recur with other names and sizes are a form (`forms.py`), which is above what uses
it.  Its parameters are marked by `$`, and a `use` is read as its lines, with an argument for
each: as a call of a function, or as a row of a table.

    form reduce | $top, $reduce, $x, $m, $n
      aligned | when $n % 4 == 0 | run $reduce($x, $top*) | groups $m | trips ...
      edge | run $reduce:edge($x, $top*) | groups $m | trips ...
    kernel ...
        use reduce | top | softmax.top.reduce | x | b * h * s | t
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, TypeAlias

from kerngen.plan import size as host
from kerngen.plan import tree
from kerngen.plan.adapter import FACTS
from kerngen.plan.forms import Form, used_in, with_forms
from kerngen.plan.lines import HEAD, PlanSyntaxError, checksum_line
from kerngen.plan.read import read_plan
from kerngen.plan.rows import Row, row_text, rows_of
from kerngen.plan.text import SizePrinter

Rows: TypeAlias = Sequence[Row]

_LONG: Final = 28
"""The least length of the text of a size, with names in it, that gets a name by `let`."""


def plan_text(plan: tree.ModulePlan) -> str:
    """Return the text of a plan file.

    Raises:
        PlanValueError: If a reader would refuse the text, or read another plan.
    """
    head = f"{HEAD} | {_quoted(plan.source)} | sha256 {plan.stamp}"
    blocks = _blocks(plan.kernels, {kernel.name for kernel in plan.kernels})
    body = "\n".join((head, *blocks, ""))
    text = f"{body}\n{checksum_line(body)}\n"
    # The text is read again: a fault in how forms are made can't become another dispatch.
    if not _is_read_back(text, plan):
        for kernel in plan.kernels:
            for size in tree.sizes_of(kernel):
                _check(size, kernel.name)
        raise PlanValueError(plan.source, "it would be read otherwise")
    return text


def _is_read_back(text: str, plan: tree.ModulePlan) -> bool:
    try:
        return read_plan(text) == plan
    except PlanSyntaxError:
        return False


class PlanValueError(ValueError):
    """Raised for a plan with a number or name that no reader accepts."""

    def __init__(self, kernel: str, fault: str) -> None:
        """Name the kernel, and what is wrong."""
        super().__init__(f"the plan of '{kernel}' can't be written: {fault}")


def lines_of_kernel(kernels: Sequence[tree.KernelPlan], name: str) -> list[str]:
    """Return the lines of the kernel `name` in a plan file of `kernels`.

    The lines of the forms that it uses come first.
    """
    return [*_blocks(kernels, {name})][1:]


def _blocks(
    kernels: Sequence[tree.KernelPlan], wanted: Collection[str]
) -> Iterator[str]:
    """Yield the lines of kernels, with forms before their first user, after blank lines."""
    forms, bodies = with_forms([[*rows_of(kernel.body, 1)] for kernel in kernels])
    shown: set[str] = set()
    for kernel, rows in zip(kernels, bodies, strict=True):
        if kernel.name in wanted:
            for name in dict.fromkeys(form.name for form in used_in(rows, forms)):
                if name not in shown:
                    shown.add(name)
                    yield from ("", *_form_lines(forms[name]))
            yield from ("", *_kernel_lines(kernel, rows))


def _kernel_lines(kernel: tree.KernelPlan, rows: Rows) -> Iterator[str]:
    yield f"kernel {kernel.name} | {_quoted(kernel.origin)}"
    yield from (f"  {line}" for line in _facts(kernel))
    yield from _step_lines(rows, named_sizes(_sizes_in(rows), taken_names(kernel)))


def _form_lines(form: Form) -> Iterator[str]:
    yield f"form {form.name} | {', '.join(form.parameters)}"
    taken = {name[1:] for name in form.parameters}
    names = named_sizes(_sizes_in(form.rows), taken)
    yield from _step_lines(
        form.rows, {size: f"${name}" for size, name in names.items()}
    )


def _step_lines(rows: Rows, names: Mapping[host.Size, str]) -> Iterator[str]:
    printer = SizePrinter()
    for size, name in names.items():
        yield f"  let {name} = {printer.size(size)}"
        printer = SizePrinter({**printer.names, size: name})
    for row in rows:
        yield "  " * row.depth + row_text(row, printer)


def _sizes_in(rows: Rows) -> Iterator[host.Size | host.Guard]:
    pieces = (piece for row in rows for piece in row.pieces)
    return (piece for piece in pieces if isinstance(piece, host.Size | host.Guard))


def _check(part: host.Size | host.Guard, kernel: str) -> None:
    """Raise PlanValueError for a number or name that the reader would refuse."""
    match part:
        case host.Literal(value) if abs(value) > host.MOST:
            raise PlanValueError(kernel, f"{value} is beyond 2^53")
        case host.Symbol(name) if name.startswith("adapter.") and name not in FACTS:
            known = ", ".join(sorted(FACTS))
            raise PlanValueError(kernel, f"'{name}' is none of {known}")
        case _:
            for each in host.children(part):
                _check(each, kernel)


def _facts(kernel: tree.KernelPlan) -> Iterator[str]:
    """Yield the lines of declarations: each name before the lines that use it."""
    plain = SizePrinter()
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


def _gradient_fields(gradient: tree.GradientOf) -> Iterator[str]:
    yield f"gradient {gradient.kernel}"
    yield from (f"by {name}: {output}" for name, output in gradient.by)
    yield from (f"from {name}: {tensor}" for name, tensor in gradient.from_)
    yield from (f"argument {name}: {own}" for name, own in gradient.arguments)
    yield from (f"given {name}" for name in gradient.given)
    yield from (f"length {dim}: {scalar}" for dim, scalar in gradient.lengths)


def _range_fields(check: tree.RangeCheck, plain: SizePrinter) -> Iterator[str]:
    yield f"range {_place(check)}"
    yield _quoted(check.text)
    yield f"around {_axes(check.around)}"
    if check.is_guarded:
        yield "guarded"
    if check.offset != host.ZERO:
        yield f"offset {plain.size(check.offset)}"
    for term in check.terms:
        yield f"term {term.extent} by {plain.size(term.coefficient)}"


def _place(check: tree.RangeCheck | tree.Gather) -> str:
    # In quotes, as it may be no name: 'the vector or matrix', or 'body.trail' for a member.
    return f"{_quoted(check.tensor)} {check.axis} {check.extent}"


def _axes(axes: tree.Axes) -> str:
    return f"[{', '.join(map(str, axes))}]"


def _quoted(text: str) -> str:
    """Return a text in quotes, without the bar that sets fields apart."""
    return json.dumps(text).replace("|", "\\u007c")


# Names of sizes that occur more than once


def named_sizes(
    sizes: Iterable[host.Size | host.Guard], taken: Collection[str]
) -> dict[host.Size, str]:
    """Return names for the sizes that lines would repeat, inner sizes first.

    No name is one of `taken`.  Sizes with a short text get no name.
    """
    # By length: a size is longer than those in it, whose names it may then use.
    counts: Counter[host.Size] = Counter()
    for size in sizes:
        _count(size, counts)
    again = [size for size, number in counts.items() if number > 1]
    plain = SizePrinter()
    again.sort(key=lambda size: len(plain.size(size)))
    free = (name for name in map("s{}".format, count(1)) if name not in taken)
    names: dict[host.Size, str] = {}
    for size in again:
        if len(SizePrinter(names).size(size)) >= _LONG:
            names[size] = next(free)
    return names


def taken_names(kernel: tree.KernelPlan) -> set[str]:
    """Return the names in a kernel's sizes, which a `let` must not have."""
    return {
        *kernel.dims,
        *kernel.guards,
        *kernel.computed,
        *(dim.name for dim in kernel.derived),
    }


def _count(part: host.Size | host.Guard, counts: Counter[host.Size]) -> None:
    """Count the functions and choices in a size or condition, which may get a name.

    The parts of a size that was met before are not counted again: its name replaces them.
    """
    if isinstance(part, host.Apply | host.Select):
        counts[part] += 1
        if counts[part] > 1:
            return
    for each in host.children(part):
        _count(each, counts)

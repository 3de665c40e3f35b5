"""Elements that are written in parts: vectors become whole, others are refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from kerngen.gradient.composites import LETTERS
from kerngen.gradient.fault import GradientError, Kind
from kerngen.gradient.members import key_of
from kerngen.gradient.terms import substituted
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import tensors_read
from kerngen.ir.types import Vector


def with_whole_vectors(kernel: ir.Kernel) -> ir.Kernel:
    """Return a kernel in which each vector is written by one statement.

    Before:  y[i].x = cos(a[i]);    y[j].y = sin(a[j]);
    After:   y[j] = vec2f(cos(a[j]), sin(a[j]));

    Raises `GradientError` for other elements that are written in parts, or in place.
    """
    _refuse_updates(kernel)
    body: list[ir.Statement] = []
    for statement in kernel.body:
        if not statement.component:
            body.append(statement)
            continue
        own = [s for s in kernel.body if s.component and _place(s) == _place(statement)]
        if statement is own[-1]:
            body.append(_whole(kernel, own))
    whole = replace(kernel, body=tuple(body))
    _refuse_parts(whole)
    return whole


def _place(statement: ir.Statement) -> str:
    return key_of(statement.target.name, statement.path)


def _whole(kernel: ir.Kernel, parts: list[ir.Statement]) -> ir.Statement:
    """Return the statement of a vector, in the place of the last one of its components."""
    last = parts[-1]
    before = takewhile(lambda s: s is not last, kernel.body)
    early = any(last.target in tensors_read(s.value) for s in (*before, last))
    if early or any(s.path != last.path for s in parts):
        raise _fault(kernel, last)
    values: dict[str, ir.Expr] = {}
    for part in parts:
        own = map(ir.IndexValue, last.indices)
        by = dict(zip(part.indices, own, strict=True))
        values[part.component] = substituted(part.value, by)
    whole = replace(last, component="")
    assert isinstance(whole.written, Vector)
    in_order = sorted(values, key=LETTERS.index)
    value = ir.Construct(whole.written, tuple(values[letter] for letter in in_order))
    return replace(whole, value=value)


def _refuse_updates(kernel: ir.Kernel) -> None:
    for statement in kernel.body:
        if statement.target.role is ir.Role.UPDATE:
            fields = {"kernel": kernel.name, "tensor": statement.target.name}
            raise GradientError(Kind.IN_PLACE, fields, statement.span)


def _refuse_parts(kernel: ir.Kernel) -> None:
    written: set[str] = set()
    for statement in kernel.body:
        is_read = any(statement.target in tensors_read(s.value) for s in kernel.body)
        if _place(statement) in written or (statement.path and is_read):
            raise _fault(kernel, statement)
        written.add(_place(statement))


def _fault(kernel: ir.Kernel, statement: ir.Statement) -> GradientError:
    reason = f"'{statement.target.name}' is written in parts"
    fields = {"kernel": kernel.name, "reason": reason}
    return GradientError(Kind.NO_DERIVATIVE, fields, statement.span, lacking="parts")

"""Elements that are written by several statements: by one each, or refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from kerngen.gradient.composites import LETTERS
from kerngen.gradient.fault import GradientError, Kind
from kerngen.gradient.members import key_of
from kerngen.gradient.terms import substituted
from kerngen.ir import nodes as ir
from kerngen.ir.staging.hoisting import Fresh
from kerngen.ir.types import Vector
from kerngen.ir.walk import map_children, walk


def written_once(kernel: ir.Kernel, fresh: Fresh) -> ir.Kernel:
    """Return a kernel in which one statement writes each element.

    Before:  y[i].x = cos(a[i]);    y[j].y = sin(a[j]);    y[i] += b[i];
    After:   let y_2[j] = vec2f(cos(a[j]), sin(a[j]));    y[i] = y_2[i] + b[i];

    Raises `GradientError` for elements that are written in parts, or in place.
    """
    _refuse_updates(kernel)
    kernel = _with_versions(_with_whole_vectors(kernel), fresh)
    _refuse_parts(kernel)
    return kernel


def _with_versions(kernel: ir.Kernel, fresh: Fresh) -> ir.Kernel:
    """Return a kernel with lets for elements before they are written again, or read."""
    now: dict[str, ir.Tensor] = {}

    def visit(expr: ir.Expr) -> ir.Expr:
        expr = map_children(expr, visit)
        if not isinstance(expr, ir.Load):
            return expr
        version = now.get(key_of(expr.tensor.name, expr.path))
        at = (*expr.subscripts, *(place for place, _ in _places(expr.path)))
        return ir.Load(version, at) if version else expr

    body: list[ir.Statement] = []
    for place, each in enumerate(kernel.body):
        later = kernel.body[place + 1 :]
        statement = replace(each, value=visit(each.value))
        key, target = _place(each), each.target
        now.pop(key, None)
        is_last = all(_place(s) != key for s in later)
        is_read = bool(each.path) and any(_reads(s, key) for s in later)
        if _is_whole(each) and (is_read or not is_last):
            extents = (*target.extents, *(length for _, length in _places(each.path)))
            fields = (
                f"_{step.name}" for step in each.path if isinstance(step, ir.Field)
            )
            name = fresh.name("".join((target.name, *fields)))
            now[key] = ir.Tensor(name, each.written, extents, ir.Role.LET)
            body.append(replace(statement, target=now[key], path=()))
            own = tuple(map(ir.IndexValue, each.indices))
            statement = replace(statement, value=ir.Load(now[key], own))
        if is_last or not _is_whole(each):
            body.append(statement)
    return replace(kernel, body=tuple(body))


def _places(path: ir.Path) -> list[tuple[ir.Subscript, ir.Extent]]:
    return [(step.place, step.length) for step in path if isinstance(step, ir.At)]


def _is_whole(statement: ir.Statement) -> bool:
    """Whether all elements of a tensor, or of a member of it, are written."""
    own = (place for place, _ in _places(statement.path))
    return all(isinstance(place, ir.IndexValue) for place in own)


def _with_whole_vectors(kernel: ir.Kernel) -> ir.Kernel:
    body: list[ir.Statement] = []
    for statement in kernel.body:
        if not statement.component:
            body.append(statement)
            continue
        own = [s for s in kernel.body if s.component and _place(s) == _place(statement)]
        if statement is own[-1]:
            body.append(_whole(kernel, own))
    return replace(kernel, body=tuple(body))


def _place(statement: ir.Statement) -> str:
    return key_of(statement.target.name, statement.path)


def _reads(statement: ir.Statement, place: str) -> bool:
    return any(
        isinstance(node, ir.Load) and key_of(node.tensor.name, node.path) == place
        for node in walk(statement.value)
    )


def _whole(kernel: ir.Kernel, parts: list[ir.Statement]) -> ir.Statement:
    """Return the statement of a vector, in the place of the last one of its components."""
    last = parts[-1]
    before = takewhile(lambda s: s is not last, kernel.body)
    early = any(_reads(s, _place(last)) for s in (*before, last))
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
        place = _place(statement)
        is_read = any(_reads(s, place) for s in kernel.body)
        if place in written or (statement.path and is_read):
            raise _fault(kernel, statement)
        written.add(place)


def _fault(kernel: ir.Kernel, statement: ir.Statement) -> GradientError:
    reason = f"'{statement.target.name}' is written in parts"
    fields = {"kernel": kernel.name, "reason": reason}
    return GradientError(Kind.NO_DERIVATIVE, fields, statement.span, lacking="parts")

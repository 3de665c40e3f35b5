"""Elements that several statements write: rewritten so that one does, or refused."""

from __future__ import annotations

from dataclasses import replace

from kerngen.gradient.composites import LETTERS, parts_of, zero_of
from kerngen.gradient.fault import GradientError, Kind
from kerngen.gradient.members import key_of
from kerngen.gradient.terms import substituted
from kerngen.ir import nodes as ir
from kerngen.ir.staging.hoisting import Fresh
from kerngen.ir.types import Vector
from kerngen.ir.walk import map_children, walk


def written_once(kernel: ir.Kernel, fresh: Fresh) -> ir.Kernel:
    """Return a kernel in which one statement writes each element.

    Before:  y[i].x = a[i];    y[i].y = b[i];         y[i] *= c[i];
    After:   let y_2[i] = vec2f(a[i], b[i]);          y[i] = y_2[i] * c[i];

    Raises `GradientError` for elements that are written in parts, or in place.
    """
    _refuse_updates(kernel)
    kernel = _with_versions(kernel, fresh)
    _refuse_parts(kernel)
    return kernel


def _with_versions(kernel: ir.Kernel, fresh: Fresh) -> ir.Kernel:
    """Return a kernel with a let for each version of elements but the last.

    - `now`: the let of the present version, by the key of a tensor or member
    - `vectors`: the last value of a vector that is written component by component, which
      the next component is put into; dropped as soon as the version is read
    """
    now: dict[str, ir.Tensor] = {}
    vectors: dict[str, tuple[tuple[ir.Index, ...], ir.Expr]] = {}

    def visit(expr: ir.Expr) -> ir.Expr:
        expr = map_children(expr, visit)
        if not isinstance(expr, ir.Load):
            return expr
        key = key_of(expr.tensor.name, expr.path)
        if key not in now:
            return expr
        vectors.pop(key, None)  # The version is needed: the next goes on with it.
        at = (*expr.subscripts, *(place for place, _ in _places(expr.path)))
        return ir.Load(now[key], at)

    body: list[ir.Statement] = []
    by_elements = {_place(s) for s in kernel.body if not _is_whole(s)}
    for place, each in enumerate(kernel.body):
        if _place(each) in by_elements:
            body.append(replace(each, value=visit(each.value)))
            continue
        later = kernel.body[place + 1 :]
        statement = replace(each, value=visit(each.value))
        key, target = _place(each), each.target
        own = tuple(map(ir.IndexValue, each.indices))
        if each.component:
            old = zero_of(replace(each, component="").written)
            if key in now:
                old = ir.Load(now[key], own)
            if key in vectors:
                indices, value = vectors[key]
                old = substituted(value, dict(zip(indices, own, strict=True)))
            statement = _with_component(statement, old)
            vectors[key] = each.indices, statement.value
        else:
            vectors.pop(key, None)
        now.pop(key, None)
        # The last statement writes the output; each one before, or one that is read as a
        # member, writes a let of a new version.
        is_last = all(_place(s) != key for s in later)
        is_read = bool(each.path) and any(_reads(s, key) for s in later)
        if is_read or not is_last:
            extents = (*target.extents, *(length for _, length in _places(each.path)))
            fields = (
                f"_{step.name}" for step in each.path if isinstance(step, ir.Field)
            )
            name = fresh.name("".join((target.name, *fields)))
            now[key] = ir.Tensor(name, statement.written, extents, ir.Role.LET)
            body.append(replace(statement, target=now[key], path=()))
            statement = replace(statement, value=ir.Load(now[key], own))
        if is_last:
            body.append(statement)
    return replace(kernel, body=tuple(body))


def _places(path: ir.Path) -> list[tuple[ir.Subscript, ir.Extent]]:
    return [(step.place, step.length) for step in path if isinstance(step, ir.At)]


def _is_whole(statement: ir.Statement) -> bool:
    """Whether all elements of a tensor, or of a member of it, are written."""
    own = (place for place, _ in _places(statement.path))
    return all(isinstance(place, ir.IndexValue) for place in own)


def _with_component(statement: ir.Statement, old: ir.Expr) -> ir.Statement:
    """Return the statement of a whole vector, with the other components taken from `old`."""
    whole = replace(statement, component="")
    parts = dict(zip(LETTERS, parts_of(old), strict=False))
    value = parts | {statement.component: statement.value}
    assert isinstance(whole.written, Vector)
    return replace(whole, value=ir.Construct(whole.written, tuple(value.values())))


def _place(statement: ir.Statement) -> str:
    return key_of(statement.target.name, statement.path)


def _reads(statement: ir.Statement, place: str) -> bool:
    return any(
        isinstance(node, ir.Load) and key_of(node.tensor.name, node.path) == place
        for node in walk(statement.value)
    )


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

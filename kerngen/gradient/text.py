"""Print typed kernels as source text, which compiles to the same kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, assert_never

from kerngen.ir import nodes as ir
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.ir.walk import subscript_value, walk

_LEVELS: Final = (
    ("or",), ("and",), ("==", "!=", "<", "<=", ">", ">="), ("|",), ("^",), ("&",),
    ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
"""Binary operators by precedence, the loosest first."""
_LEVEL: Final = {op: level for level, ops in enumerate(_LEVELS) for op in ops}
_PRODUCT: Final = _LEVEL["*"]
_UNARY: Final = len(_LEVELS)
_ATOM: Final = _UNARY + 1


def kernel_text(kernel: ir.Kernel) -> str:
    """Return a kernel as source text."""
    lines = [*_doc(kernel.doc, ""), *_head(kernel)]
    extents = {dim.name: dim.value for dim in kernel.derived}
    for requirement in kernel.requires:
        own = f"require {expr_text(requirement.condition)};"
        lines.append(f"    {own}")
    for host in kernel.hosts:
        own = f"host {host.name} = {expr_text(host.value)};"
        lines.append(f"    {host.text or own}")
    lines += [f"    {statement_text(s, extents)}" for s in kernel.body]
    return "\n".join([*lines, "}", ""])


def signature_text(kernel: ir.Kernel) -> str:
    """Return a kernel's signature on one line."""
    inputs = ", ".join(text for _, text in _parameters(kernel))
    outputs = ", ".join(text for _, text in _outputs(kernel))
    arrow = f" -> {outputs}" if outputs else ""
    return f"kernel {kernel.name}({inputs}){arrow}"


def statement_text(statement: ir.Statement, extents: dict[str, ir.Expr]) -> str:
    """Return a statement on one line; `extents` are the lengths that are computed."""
    word = "let " if statement.target.role is ir.Role.LET else ""
    names = [i.name for i in statement.indices[: statement.target.rank]]
    if word:
        names = [*_binders(statement.indices, (statement.value,), extents)]
    places = f"[{', '.join(names)}]" if names else ""
    value = _text(statement.value, extents)[0]
    path = _path(statement.path, expr_text)
    return f"{word}{statement.target.name}{places}{path} = {value};"


def expr_text(expr: ir.Expr) -> str:
    """Return an expression with no more parentheses than it needs."""
    return _text(expr, {})[0]


def _doc(doc: str, indent: str) -> Iterator[str]:
    for line in doc.splitlines():
        yield f"{indent}/// {line}".rstrip()


def _head(kernel: ir.Kernel) -> Iterator[str]:
    yield f"kernel {kernel.name}("
    for doc, text in _parameters(kernel):
        yield from _doc(doc, "    ")
        yield f"    {text},"
    outputs = ", ".join(text for _, text in _outputs(kernel))
    yield f"){f' -> {outputs}' if outputs else ''} {{"


def _parameters(kernel: ir.Kernel) -> Iterator[tuple[str, str]]:
    extents = {dim.name: dim.value for dim in kernel.derived}
    tensors = {t.name: t for t in kernel.tensors if t.role is not ir.Role.OUTPUT}
    scalars = {p.name: p for p in kernel.parameters}
    for name in kernel.order:
        if name in tensors:
            yield tensors[name].doc, _tensor(tensors[name], extents)
        else:
            yield scalars[name].doc, _scalar(scalars[name])


def _outputs(kernel: ir.Kernel) -> Iterator[tuple[str, str]]:
    extents = {dim.name: dim.value for dim in kernel.derived}
    for tensor in kernel.tensors:
        if tensor.role is ir.Role.OUTPUT:
            yield tensor.doc, _tensor(tensor, extents)


def _tensor(tensor: ir.Tensor, extents: dict[str, ir.Expr]) -> str:
    mut = "mut " if tensor.role is ir.Role.UPDATE else ""
    axes = ", ".join(_extent(extent, extents) for extent in tensor.extents)
    return f"{mut}{tensor.name}: {tensor.memory.spelling}[{axes}]"


def _scalar(parameter: ir.Parameter) -> str:
    default = "" if parameter.default is None else f" = {_number(parameter.default)}"
    return f"{parameter.name}: {parameter.memory.spelling}{default}"


def _number(value: object) -> str:
    return repr(value).replace("e-0", "e-").replace("e+", "e")


def _extent(extent: ir.Extent, extents: dict[str, ir.Expr]) -> str:
    if isinstance(extent, str) and extent in extents:
        return _text(extents[extent], extents)[0]
    return str(extent)


def _text(expr: ir.Expr, extents: dict[str, ir.Expr]) -> tuple[str, int]:
    """Return an expression, and its level of precedence: `_ATOM` never needs parentheses."""

    def inner(part: ir.Expr, least: int) -> str:
        text, level = _text(part, extents)
        return text if level >= least else f"({text})"

    def plain(part: ir.Expr) -> str:
        return inner(part, 0)

    match expr:
        case ir.Unary(op=op, operand=operand):
            space = " " if op == "not" else ""
            return f"{op}{space}{inner(operand, _UNARY)}", _UNARY
        case ir.Binary(op=op, left=left, right=right):
            level = _LEVEL[op]
            is_comparison = level == _LEVEL["=="]
            first = inner(left, level + 1 if is_comparison else level)
            return f"{_closed(left, first)} {op} {inner(right, level + 1)}", level
        case ir.Select(condition=condition, then=then, otherwise=otherwise):
            other = plain(otherwise)
            if not isinstance(otherwise, ir.Select):
                other = f"{{ {other} }}"
            return f"if {plain(condition)} {{ {plain(then)} }} else {other}", 0
        case ir.Reduce(kind=kind, indices=indices, body=body, condition=condition):
            when = f" when {plain(condition)}" if condition else ""
            within = (body,) if condition is None else (condition, body)
            binders = ", ".join(_binders(indices, within, extents))
            text = inner(body, _PRODUCT)
            # A reduction takes factors joined by `*`, and ends at any other operator.
            text = f"({text})" if _is_divided(body) else text
            return f"{kind}[{binders}{when}] {text}", _PRODUCT - 1
        case ir.Constant(value=value, type=scalar):
            return _constant(value, scalar)
        case ir.Swizzle(operand=operand, components=components):
            return f"{inner(operand, _ATOM)}.{components}", _ATOM
        case ir.Part(operand=operand, at=at):
            return inner(operand, _ATOM) + _path((at,), plain), _ATOM
        case StoreAt():
            raise AssertionError("a derived kernel writes no 'mut' tensor")
        case _:
            return _named(expr, plain), _ATOM


_Named: TypeAlias = (
    ir.ConstRef
    | ir.LocalValue
    | ir.DimValue
    | ir.IndexValue
    | ir.UniformValue
    | ir.Load
    | ir.Construct
    | ir.Cast
    | ir.BuiltinCall
    | ir.FunctionCall
)


def _named(expr: _Named, plain: Callable[[ir.Expr], str]) -> str:
    """Return the text of a value, read or call, all of which begin with a name."""
    match expr:
        case ir.ConstRef(name=name) | ir.LocalValue(name=name) | ir.DimValue(name=name):
            return name
        case ir.IndexValue(index=index):
            return index.name
        case ir.UniformValue(name=name, path=path):
            return name + _path(path, plain)
        case ir.Load(tensor=tensor, subscripts=subscripts, path=path):
            places = ", ".join(plain(subscript_value(s)) for s in subscripts)
            brackets = f"[{places}]" if subscripts else ""
            return tensor.name + brackets + _path(path, plain)
        case ir.Construct(type=type_, parts=parts):
            return f"{type_.spelling}({', '.join(map(plain, parts))})"
        case ir.Cast(operand=operand, type=type_):
            return f"{type_.spelling}({plain(operand)})"
        case ir.BuiltinCall(builtin=name, arguments=arguments):
            return f"{name}({', '.join(map(plain, arguments))})"
        case ir.FunctionCall(function=name, arguments=arguments):
            return f"{name}({', '.join(map(plain, arguments))})"
        case _:
            assert_never(expr)


def _binders(
    indices: tuple[ir.Index, ...],
    values: tuple[ir.Expr, ...],
    extents: dict[str, ir.Expr],
) -> Iterator[str]:
    """Yield indices, with their ranges unless the checker would infer these.

    It takes the range of the first axis that an index subscripts alone: `j`, but `u < 3`.
    """
    nodes = [node for value in values for node in walk(value)]
    for index in indices:
        ranges = (
            extent
            for node in nodes
            if isinstance(node, ir.Load)
            for s, extent in zip(node.subscripts, node.tensor.extents, strict=True)
            if s == ir.IndexValue(index)
        )
        is_known = next(ranges, None) == index.extent
        bound = "" if is_known else f" < {_extent(index.extent, extents)}"
        yield f"{index.name}{bound}"


def _is_divided(body: ir.Expr) -> bool:
    """Whether a chain of factors has a `/` or `%`, at which a reduction would end."""
    while isinstance(body, ir.Binary):
        if body.op in {"/", "%"}:
            return True
        if body.op != "*":
            return False
        body = body.left
    return False


def _closed(left: ir.Expr, text: str) -> str:
    """Return a left operand, in parentheses if it ends in a reduction.

    They show that the right operand is not reduced: `(sum[j] x[j]) + y`.
    """
    ends = left
    while isinstance(ends, ir.Binary):
        ends = ends.right
    return f"({text})" if isinstance(ends, ir.Reduce) and text[-1] != ")" else text


def _path(path: ir.Path, plain: Callable[[ir.Expr], str]) -> str:
    return "".join(
        (
            f".{step.name}"
            if isinstance(step, ir.Field)
            else f"[{plain(subscript_value(step.place))}]"
        )
        for step in path
    )


def _constant(value: float, scalar: Scalar) -> tuple[str, int]:
    if scalar is Scalar.BOOL:
        return ("true" if value else "false"), _ATOM
    if abs(value) == float("inf"):
        text = "inf" if value > 0 else "-inf"
    else:
        text = _number(value)
    return text, _UNARY if text.startswith("-") else _ATOM

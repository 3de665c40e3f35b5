"""Print a shader's syntax tree as WGSL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, TypeAlias, assert_never

from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t
from kerngen.source.cells import clean

_INDENT = "    "
_MULTIPLICATIVE = frozenset({"*", "/", "%"})
_ARITHMETIC = _MULTIPLICATIVE | {"+", "-"}
_COMPARISON = frozenset({"==", "!=", "<", "<=", ">", ">="})

# Which binary operators may be the left and the right operand without
# parentheses.  WGSL has no precedence between most families, so these are few.
_BARE: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    **{op: (_MULTIPLICATIVE, frozenset()) for op in _MULTIPLICATIVE},
    "+": (_ARITHMETIC, _MULTIPLICATIVE),
    "-": (_ARITHMETIC, _MULTIPLICATIVE),
    **dict.fromkeys(_COMPARISON, (_ARITHMETIC, _ARITHMETIC)),
    **{op: (frozenset({op}), frozenset()) for op in ("&", "|", "^")},
    **{op: (_COMPARISON | {op}, _COMPARISON) for op in ("&&", "||")},
    **{op: (frozenset(), frozenset()) for op in ("<<", ">>")},
}


_ANGLES: Final = frozenset(op for op in _BARE if "<" in op or ">" in op)
_COMPOUND: Final = (t.Binary, t.Unary)
_OneLiner: TypeAlias = wgsl.Const | wgsl.Override | wgsl.Buffer | wgsl.WorkgroupVar


def print_module(module: wgsl.Module) -> str:
    """Return the WGSL text of a module, ending in one newline."""
    parts = ["\n".join(f"enable {name};" for name in module.enables)]
    for _, run in groupby(module.declarations, key=_stands_alone):
        parts.extend(_print_run(list(run)))
    return "\n\n".join(part for part in parts if part) + "\n"


def comments(lines: Iterable[str]) -> str:
    """Return lines as WGSL comments."""
    return "".join(f"{_comment(line)}\n" for line in lines)


def _comment(text: str) -> str:
    """Return a comment: whatever its text, such as the name of a file, it is one line."""
    return f"// {clean(text)}".rstrip()


def _stands_alone(declaration: wgsl.Declaration) -> bool:
    return not isinstance(declaration, _OneLiner)


def _print_run(run: list[wgsl.Declaration]) -> list[str]:
    """Functions and structs are set apart by blank lines; one-liners are not."""
    printed = ["\n".join(_declaration(declaration)) for declaration in run]
    return printed if _stands_alone(run[0]) else ["\n".join(printed)]


def _declaration(declaration: wgsl.Declaration) -> Iterator[str]:
    match declaration:
        case wgsl.Struct(name, members):
            yield f"struct {name} {{"
            yield from (_INDENT + _member(member) for member in members)
            yield "}"
        case wgsl.Const(name, type_, value):
            yield f"const {name}: {type_} = {expression(value)};"
        case wgsl.Override(name):
            yield f"override {name}: u32;"
        case wgsl.Buffer(binding, space, name, type_):
            yield f"@group(0) @binding({binding}) var<{space}> {name}: {type_};"
        case wgsl.WorkgroupVar(name, type_):
            yield f"var<workgroup> {name}: {type_};"
        case wgsl.Verbatim(text):
            yield text
        case wgsl.Function(name, parameters, result, body, comment):
            if comment:
                yield _comment(comment)
            listed = ", ".join(f"{name}: {type_}" for name, type_ in parameters)
            arrow = f" -> {result}" if result else ""
            yield f"fn {name}({listed}){arrow} {{"
            yield from _block(body, _INDENT, {})
            yield "}"
        case wgsl.EntryPoint(size, builtins, body):
            yield f"@compute @workgroup_size({size})"
            yield "fn main("
            yield from (f"{_INDENT}@builtin({b}) {n}: {ty}," for b, n, ty in builtins)
            yield ") {"
            yield from _block(body, _INDENT, {})
            yield "}"
        case _:
            assert_never(declaration)


def _member(member: wgsl.StructMember) -> str:
    comment = f"  {_comment(member.comment)}" if member.comment else ""
    size = "" if member.size is None else f"@size({member.size}) "
    return f"{size}{member.name}: {member.type},{comment}"


def _block(body: Iterable[t.Stmt], indent: str, known: dict[int, str]) -> Iterator[str]:
    """Yield the lines of statements; `known` has the texts of assignments, by identity.

    Half of those of large shaders are repeated: a loop that is unrolled has them.
    """
    for statement in body:
        yield from _statement(statement, indent, known)


def _statement(statement: t.Stmt, indent: str, known: dict[int, str]) -> Iterator[str]:
    match statement:
        case t.Let(name, value):
            yield f"{indent}let {name} = {expression(value)};"
        case t.Var(name, value, type_):
            typed = f"{name}: {type_}" if type_ else name
            yield f"{indent}var {typed}{_initial(value)};"
        case t.Assign():
            if id(statement) not in known:
                known[id(statement)] = _assignment(statement)
            yield f"{indent}{known[id(statement)]};"
        case t.If(condition, then):
            yield f"{indent}if ({expression(condition)}) {{"
            yield from _block(then, indent + _INDENT, known)
            yield f"{indent}}}"
        case t.For(name, start, condition, update, body):
            head = f"var {name} = {expression(start)}; {expression(condition)}"
            yield f"{indent}for ({head}; {_assignment(update)}) {{"
            yield from _block(body, indent + _INDENT, known)
            yield f"{indent}}}"
        case t.Block(comment, body):
            yield f"{indent}{{  {_comment(comment)}"
            yield from _block(body, indent + _INDENT, known)
            yield f"{indent}}}"
        case t.Evaluate(call):
            yield f"{indent}{expression(call)};"
        case t.Return(value):
            end = "" if value is None else f" {expression(value)}"
            yield f"{indent}return{end};"
        case t.Break():
            yield f"{indent}break;"
        case t.Blank():
            yield ""
        case _:
            assert_never(statement)


def _initial(value: t.Expr | None) -> str:
    return "" if value is None else f" = {expression(value)}"


def _assignment(assign: t.Assign) -> str:
    return f"{expression(assign.target)} {assign.op} {expression(assign.value)}"


def expression(expr: t.Expr) -> str:
    """Return the text of an expression, with as few parentheses as possible."""
    match expr:
        case t.Ident(name):
            return name
        case t.Literal(text):
            return text
        case t.Unary(op, operand):
            return f"{op}{_operand(operand)}"
        case t.Binary(op, left, right):
            bare_left, bare_right = _BARE[op]
            return f"{_side(left, bare_left)} {op} {_side(right, bare_right)}"
        case t.Call(function, arguments):
            return f"{function}({', '.join(_arguments(arguments))})"
        case t.Template(template, arguments, type_):
            return template.format(*_arguments(arguments), T=type_)
        case t.Element(base, index):
            return f"{_operand(base)}[{expression(index)}]"
        case t.Member(base, name):
            return f"{_operand(base)}.{name}"
        case _:
            message = f"not a shader expression: {expr!r}"
            raise TypeError(message)


def _arguments(arguments: tuple[t.Expr, ...]) -> Iterator[str]:
    """Print arguments; WGSL takes `f(a < b, c > d)` for a template `a<b, c>`."""
    are_angled = [isinstance(a, t.Binary) and a.op in _ANGLES for a in arguments]
    are_several = are_angled.count(True) > 1
    for argument, is_angled in zip(arguments, are_angled, strict=True):
        text = expression(argument)
        yield f"({text})" if are_several and is_angled else text


def _side(expr: t.Expr, bare: frozenset[str]) -> str:
    text = expression(expr)
    return f"({text})" if type(expr) is t.Binary and expr.op not in bare else text


def _operand(expr: t.Expr) -> str:
    if isinstance(expr, t.Ident):  # most are
        return expr.name
    text = expression(expr)
    compound = isinstance(expr, _COMPOUND) or text.startswith("-")
    return f"({text})" if compound else text

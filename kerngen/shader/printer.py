"""Print a shader's syntax tree as WGSL, with as few parentheses as possible."""

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

# Of each binary operator, those that need no parentheses as its left and its right operand.
# They are few: WGSL has no precedence between most families of operators, so that
# `a & b == c` and `a << b + c` are errors.
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
"""Operators with a `<` or `>`, which WGSL may take for those of a template."""

_COMPOUND: Final = (t.Binary, t.Unary)
"""Expressions that need parentheses before `.x`, before `[i]` and behind a sign."""
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
    """Return a comment of one line, whatever its text has: a file's name may have breaks."""
    return f"// {clean(text)}".rstrip()


def _stands_alone(declaration: wgsl.Declaration) -> bool:
    return not isinstance(declaration, _OneLiner)


def _print_run(run: list[wgsl.Declaration]) -> list[str]:
    """Return the texts between which a blank line is: one for all one-liners of a run."""
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
            yield from _block(body)
            yield "}"
        case wgsl.EntryPoint(size, builtins, body):
            yield f"@compute @workgroup_size({size})"
            yield "fn main("
            yield from (f"{_INDENT}@builtin({b}) {n}: {ty}," for b, n, ty in builtins)
            yield ") {"
            yield from _block(body)
            yield "}"
        case _:
            assert_never(declaration)


def _member(member: wgsl.StructMember) -> str:
    comment = f"  {_comment(member.comment)}" if member.comment else ""
    size = "" if member.size is None else f"@size({member.size}) "
    return f"{size}{member.name}: {member.type},{comment}"


def _block(body: Iterable[t.Stmt]) -> list[str]:
    """Return the lines of the statements of a function."""
    lines: list[str] = []
    _write(body, _INDENT, lines, {})
    return lines


def _write(
    body: Iterable[t.Stmt], indent: str, lines: list[str], known: dict[int, str]
) -> None:
    """Add the lines of statements to `lines`.

    `known` has the texts of assignments, by the identity of their nodes: in large shaders,
    half of them are repeated, as an unrolled loop has the same node in each turn.
    """
    for statement in body:
        match statement:
            case t.Assign():
                if id(statement) not in known:
                    known[id(statement)] = _assignment(statement)
                lines.append(f"{indent}{known[id(statement)]};")
            case t.If(condition, then):
                lines.append(f"{indent}if ({expression(condition)}) {{")
                _write(then, indent + _INDENT, lines, known)
                lines.append(f"{indent}}}")
            case t.Switch(target, selector, values):
                lines.append(f"{indent}switch {expression(selector)} {{")
                for number, value in enumerate(values):
                    label = f"case {number}u" if number < len(values) - 1 else "default"
                    case = _assignment(t.Assign(target, value))
                    lines.append(f"{indent}{_INDENT}{label}: {{ {case}; }}")
                lines.append(f"{indent}}}")
            case t.For(name, start, condition, update, inner):
                head = f"var {name} = {expression(start)}; {expression(condition)}"
                lines.append(f"{indent}for ({head}; {_assignment(update)}) {{")
                _write(inner, indent + _INDENT, lines, known)
                lines.append(f"{indent}}}")
            case t.Block(comment, inner):
                lines.append(f"{indent}{{  {_comment(comment)}")
                _write(inner, indent + _INDENT, lines, known)
                lines.append(f"{indent}}}")
            case t.Blank():
                lines.append("")
            case _:
                lines.append(f"{indent}{_simple(statement)};")


def _simple(statement: t.Let | t.Var | t.Evaluate | t.Return | t.Break) -> str:
    match statement:
        case t.Let(name, value):
            return f"let {name} = {expression(value)}"
        case t.Var(name, value, type_):
            typed = f"{name}: {type_}" if type_ else name
            return f"var {typed}{_initial(value)}"
        case t.Evaluate(call):
            return expression(call)
        case t.Return(value):
            return "return" if value is None else f"return {expression(value)}"
        case t.Break():
            return "break"
        case _:
            assert_never(statement)


def _initial(value: t.Expr | None) -> str:
    return "" if value is None else f" = {expression(value)}"


def _assignment(assign: t.Assign) -> str:
    return f"{expression(assign.target)} {assign.op} {expression(assign.value)}"


def expression(expr: t.Expr) -> str:
    """Return the text of an expression, with as few parentheses as possible."""
    # The most frequent types first, and no `match`: that takes 0.2 us for each case.
    if isinstance(expr, t.Ident):
        return expr.name
    if isinstance(expr, t.Binary):
        op, (left, right) = expr.op, _BARE[expr.op]
        return f"{_side(expr.left, left)} {op} {_side(expr.right, right)}"
    if isinstance(expr, t.Literal):
        return expr.text
    if isinstance(expr, t.Element):
        return f"{_operand(expr.base)}[{expression(expr.index)}]"
    if isinstance(expr, t.Member):
        return f"{_operand(expr.base)}.{expr.name}"
    if isinstance(expr, t.Call):
        return f"{expr.function}({', '.join(_arguments(expr.arguments))})"
    if isinstance(expr, t.Template):
        return expr.template.format(*_arguments(expr.arguments), T=expr.type)
    if isinstance(expr, t.Unary):
        return f"{expr.op}{_operand(expr.operand)}"
    message = f"not a shader expression: {expr!r}"
    raise TypeError(message)


def _arguments(arguments: tuple[t.Expr, ...]) -> list[str]:
    """Return the texts of arguments.

    WGSL takes `f(a < b, c > d)` for a template `a<b, c>`, so that such arguments are in
    parentheses if there are two or more.
    """
    if len(arguments) == 1:
        return [expression(arguments[0])]
    angled = [isinstance(a, t.Binary) and a.op in _ANGLES for a in arguments]
    if angled.count(True) < 2:
        return [*map(expression, arguments)]
    pairs = zip(map(expression, arguments), angled, strict=True)
    return [f"({text})" if is_angled else text for text, is_angled in pairs]


def _side(expr: t.Expr, bare: frozenset[str]) -> str:
    """Return an operand of a binary operator, in parentheses unless `bare` has its own."""
    if isinstance(expr, t.Ident):
        return expr.name
    if isinstance(expr, t.Literal):
        return expr.text
    text = expression(expr)
    return f"({text})" if isinstance(expr, t.Binary) and expr.op not in bare else text


def _operand(expr: t.Expr) -> str:
    """Return the operand of a sign, member or subscript, in parentheses if needed."""
    if isinstance(expr, t.Ident):  # most are
        return expr.name
    text = expression(expr)
    # `--x` would be a decrement, so that a negative literal counts as compound.
    compound = isinstance(expr, _COMPOUND) or text.startswith("-")
    return f"({text})" if compound else text

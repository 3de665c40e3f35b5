"""From the grammar's rules to nodes of the syntax tree.

Lists of the grammar become tuples; `[x]` becomes None where it is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias, cast, final

from lark import Token

from kerngen.source.diagnostic import Faults
from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.faults import MisplacedDoc, NumberTooLong
from kerngen.syntax.numbers import whole

Described: TypeAlias = ast.UseItem | ast.ScheduleItem | ast.DerivativeItem
Documented: TypeAlias = (
    ast.ConstItem
    | ast.StructItem
    | ast.FunctionItem
    | ast.KernelItem
    | ast.GradientItem
    | ast.StructField
    | ast.Parameter
)

_MOST_DIGITS = 100
"""Python itself refuses to convert more than some thousands."""


LISTS: Final = frozenset(
    "attributes locals names targets options parameters members binders expressions".split()
)
"""Rules that are lists of their parts."""

NODES: Final[Mapping[str, Callable[..., object]]] = {
    "const": ast.ConstItem,
    "plain_field": ast.StructField,
    "attribute": ast.Attribute,
    "function": ast.FunctionItem,
    "derivative": ast.DerivativeItem,
    "schedule": ast.ScheduleItem,
    "target": ast.ScheduleTarget,
    "type": ast.TypeName,
    "host": ast.HostStatement,
    "require": ast.RequireStatement,
    "conditional": ast.Conditional,
    "subscript": ast.Subscript,
    "member": ast.Member,
    "call": ast.Call,
}
"""Rules whose parts are the fields of a node, in their order; its place follows."""


@final
class Rules:
    """The functions that make nodes: one for each rule of the grammar."""

    def __init__(self, source: Source, faults: Faults) -> None:
        self._source = source
        self._faults = faults

    def make(self, rule: str, parts: list[object], start: int, end: int) -> object:
        """Return the node that a rule makes of its parts."""
        known = [self._token(part) if type(part) is Token else part for part in parts]
        if rule in LISTS:
            return tuple(known)
        span = Span(self._source, start, end)
        if rule in NODES:
            return NODES[rule](*known, span)
        return getattr(self, rule)(span, *known)

    def _token(self, token: Token) -> ast.Identifier | Token:
        if token.type in {"NAME", "REDUCE"}:
            return ast.Identifier(str(token), self._place(token))
        return token

    def _place(self, token: Token) -> Span:
        assert token.start_pos is not None
        assert token.end_pos is not None
        return Span(self._source, token.start_pos, token.end_pos)

    def _whole(self, token: Token) -> int:
        if len(token) > _MOST_DIGITS:
            span = self._place(token)
            self._faults.add(NumberTooLong(span=span, digits=len(token)))
            return 0
        return whole(token)

    # Documentation

    def file_docs(self, _span: Span, *lines: Token) -> str:
        return _doc_text(lines)

    def docs(self, _span: Span, *lines: Token) -> str:
        for line in lines:
            span = self._place(line)
            _, column = self._source.position(span.start)
            if self._source.text[span.start - column + 1 : span.start].strip():
                self._faults.add(MisplacedDoc(span=span))
        return _doc_text(lines)

    def documented(self, _span: Span, doc: str | None, node: Documented) -> Documented:
        return replace(node, doc=doc or "")

    def described(self, _span: Span, _doc: str | None, node: Described) -> Described:
        """Return the node without its doc comment, which no output needs."""
        return node

    # Items

    def program(self, _span: Span, doc: str | None, *items: ast.Item) -> ast.Program:
        return ast.Program(doc or "", items)

    def use(self, span: Span, path: Token) -> ast.UseItem:
        return ast.UseItem(path[1:-1], span)

    def struct(
        self, span: Span, name: ast.Identifier, *fields: ast.StructField
    ) -> ast.StructItem:
        return ast.StructItem(name, fields, span)

    def local(
        self, span: Span, name: ast.Identifier, value: ast.Expr
    ) -> ast.LetStatement:
        return ast.LetStatement(name, (), value, span)

    def kernel(
        self,
        span: Span,
        name: ast.Identifier,
        parameters: tuple[ast.Parameter, ...],
        outputs: tuple[ast.Parameter, ...] | None,
        *body: ast.Statement,
    ) -> ast.KernelItem:
        return ast.KernelItem(name, parameters, outputs or (), body, span)

    def gradient(
        self,
        span: Span,
        name: ast.Identifier,
        kernel: ast.Identifier,
        by: tuple[ast.Identifier, ...],
        given: tuple[ast.Identifier, ...] | None,
    ) -> ast.GradientItem:
        return ast.GradientItem(name, kernel, by, given or (), span)

    def pattern(self, span: Span, *parts: ast.Identifier | Token) -> ast.Identifier:
        names = (p.name if isinstance(p, ast.Identifier) else str(p) for p in parts)
        return ast.Identifier("".join(names), span)

    def option(self, span: Span, name: ast.Identifier, *values: Token) -> ast.Option:
        return ast.Option(name, tuple(map(self._whole, values)), span)

    # Parameters and types

    def plain_parameter(
        self,
        span: Span,
        mut: Token | None,
        name: ast.Identifier,
        type_: ast.TypeName,
        default: ast.Expr | None,
    ) -> ast.Parameter:
        return ast.Parameter(name, type_, mut is not None, default, span)

    def plain_output(
        self, span: Span, name: ast.Identifier, type_: ast.TypeName
    ) -> ast.Parameter:
        return ast.Parameter(name, type_, False, None, span)

    # Statements

    def let(
        self,
        span: Span,
        name: ast.Identifier,
        binders: tuple[ast.Binder, ...] | None,
        value: ast.Expr,
    ) -> ast.LetStatement:
        return ast.LetStatement(name, binders or (), value, span)

    def assignment(
        self,
        span: Span,
        name: ast.Identifier,
        subscripts: tuple[ast.Expr, ...] | None,
        members: tuple[ast.TargetMember, ...],
        op: Token,
        value: ast.Expr,
    ) -> ast.Assignment:
        op_ = cast("ast.AssignOp", str(op))
        return ast.Assignment(name, subscripts or (), members, op_, value, span)

    def target_member(
        self, span: Span, name: ast.Identifier, subscripts: tuple[ast.Expr, ...] | None
    ) -> ast.TargetMember:
        return ast.TargetMember(name, subscripts or (), span)

    def binder(
        self, _span: Span, name: ast.Identifier, bound: ast.Expr | None
    ) -> ast.Binder:
        return ast.Binder(name, bound)

    # Expressions

    def binary(
        self, span: Span, left: ast.Expr, op: Token, right: ast.Expr
    ) -> ast.Binary:
        return ast.Binary(cast("ast.BinaryOp", str(op)), left, right, span)

    def unary(self, span: Span, op: Token, operand: ast.Expr) -> ast.Unary:
        return ast.Unary(cast("ast.UnaryOp", str(op)), operand, span)

    def reduction(
        self,
        span: Span,
        kind: ast.Identifier,
        binders: tuple[ast.Binder, ...],
        condition: ast.Expr | None,
        body: ast.Expr,
    ) -> ast.Reduction:
        name = cast("ast.ReduceKind", kind.name)
        return ast.Reduction(name, binders, condition, body, span)

    def number(self, span: Span, token: Token) -> ast.Number:
        value = self._whole(token) if token.type == "INT" else float(token)
        return ast.Number(value, span)

    def boolean(self, span: Span, token: Token) -> ast.Boolean:
        return ast.Boolean(token == "true", span)

    def name(self, span: Span, name: ast.Identifier) -> ast.Name:
        return ast.Name(name.name, span)


def _doc_text(lines: tuple[Token, ...]) -> str:
    """The text of doc comments, without their marks and one blank after each."""
    return "\n".join(line[3:].removeprefix(" ").rstrip() for line in lines)

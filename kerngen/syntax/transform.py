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
"""Longer numbers are refused; Python converts none of more than some thousands."""


LISTS: Final = frozenset(
    "attributes locals names targets options parameters binders expressions".split()
)
"""Rules that become a tuple of their parts."""

_Nodes: TypeAlias = Mapping[str, Callable[..., object]]

NODES: Final = cast(
    "_Nodes",
    {
        "use": ast.UseItem,
        "const": ast.ConstItem,
        "plain_field": ast.StructField,
        "attribute": ast.Attribute,
        "function": ast.FunctionItem,
        "derivative": ast.DerivativeItem,
        "schedule": ast.ScheduleItem,
        "target": ast.ScheduleTarget,
        "gradient": ast.GradientItem,
        "type": ast.TypeName,
        "let": ast.LetStatement,
        "host": ast.HostStatement,
        "require": ast.RequireStatement,
        "assignment": ast.Assignment,
        "number": ast.Number,
        "boolean": ast.Boolean,
        "binder": ast.Binder,
        "unary": ast.Unary,
        "binary": ast.Binary,
        "conditional": ast.Conditional,
        "subscript": ast.Subscript,
        "member": ast.Member,
        "call": ast.Call,
    },
)
"""Rules whose parts are the fields of a node, in that order, with the span as a keyword."""

OPTIONAL_LISTS: Final = frozenset("kernel gradient let".split())
"""Rules in which an optional part is a list: left out, it becomes an empty tuple."""


@final
class GrammarActions:
    """Makes the nodes of rules: by `LISTS` and `NODES`, else by the method of that name."""

    def __init__(self, source: Source, faults: Faults) -> None:
        self._source = source
        self._faults = faults

    def make(self, rule: str, parts: list[object], start: int, end: int) -> object:
        """Return the node that a rule makes of its parts."""
        known = [self._value(part) if type(part) is Token else part for part in parts]
        if rule in LISTS:
            return tuple(known)
        if rule in OPTIONAL_LISTS:
            known = [() if part is None else part for part in known]
        span = Span(self._source, start, end)
        if rule in NODES:
            return NODES[rule](*known, span=span)
        return getattr(self, rule)(span, *known)

    def _value(self, token: Token) -> object:
        """Return the value of a token: a name or number, else its text."""
        match token.type:
            case "NAME" | "REDUCE":
                return ast.Identifier(str(token), span=self._place(token))
            case "INT":
                return self._whole(token)
            case "FLOAT":
                return float(token)
            case "TRUE" | "FALSE":
                return token == "true"
            case "STRING":
                return token[1:-1]
            case "DOC":
                return token
            case _:
                return str(token)

    def _place(self, token: Token) -> Span:
        assert token.start_pos is not None
        assert token.end_pos is not None
        return Span(self._source, token.start_pos, token.end_pos)

    def _whole(self, token: Token) -> int:
        if len(token) > _MOST_DIGITS:
            span = self._place(token)
            self._faults.add(NumberTooLong(span=span, digits=len(token)))
            return 0
        return int(token, 16 if token[:2] in {"0x", "0X"} else 10)

    # Documentation

    def file_docs(self, _span: Span, *lines: str) -> str:
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

    def struct(
        self, span: Span, name: ast.Identifier, *fields: ast.StructField
    ) -> ast.StructItem:
        return ast.StructItem(name, fields, span=span)

    def local(
        self, span: Span, name: ast.Identifier, value: ast.Expr
    ) -> ast.LetStatement:
        return ast.LetStatement(name, (), value, span=span)

    def kernel(
        self,
        span: Span,
        name: ast.Identifier,
        parameters: tuple[ast.Parameter, ...],
        outputs: tuple[ast.Parameter, ...],
        *body: ast.Statement,
    ) -> ast.KernelItem:
        return ast.KernelItem(name, parameters, outputs, body, span=span)

    def pattern(self, span: Span, *parts: ast.Identifier | str) -> ast.Identifier:
        names = (p if isinstance(p, str) else p.name for p in parts)
        return ast.Identifier("".join(names), span=span)

    def option(self, span: Span, name: ast.Identifier, *values: int) -> ast.Option:
        return ast.Option(name, values, span=span)

    # Parameters and types

    def plain_parameter(
        self,
        span: Span,
        mut: str | None,
        name: ast.Identifier,
        type_: ast.TypeName,
        default: ast.Expr | None,
    ) -> ast.Parameter:
        return ast.Parameter(name, type_, mut is not None, default, span=span)

    def plain_output(
        self, span: Span, name: ast.Identifier, type_: ast.TypeName
    ) -> ast.Parameter:
        return ast.Parameter(name, type_, False, None, span=span)

    # Indices and expressions

    def reduction(
        self,
        span: Span,
        kind: ast.Identifier,
        binders: tuple[ast.Binder, ...],
        condition: ast.Expr | None,
        body: ast.Expr,
    ) -> ast.Reduction:
        name = cast("ast.ReduceKind", kind.name)
        return ast.Reduction(name, binders, condition, body, span=span)

    def name(self, span: Span, name: ast.Identifier) -> ast.Name:
        return ast.Name(name.name, span=span)


def _doc_text(lines: tuple[str, ...]) -> str:
    """The text of doc comments, without their marks and one blank after each."""
    return "\n".join(line[3:].removeprefix(" ").rstrip() for line in lines)

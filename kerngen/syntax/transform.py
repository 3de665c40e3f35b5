"""Lark's parse tree to the abstract syntax tree, one method per rule of the grammar.

Lists of the grammar become tuples; `[x]` becomes None where it is left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, cast, final

from lark import Token, Tree
from lark.tree import Meta

from kerngen.source.diagnostic import Faults
from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.faults import MisplacedDoc, NumberTooLong
from kerngen.syntax.numbers import whole

Described: TypeAlias = ast.UseItem | ast.ScheduleItem
Documented: TypeAlias = (
    ast.ConstItem
    | ast.StructItem
    | ast.FunctionItem
    | ast.KernelItem
    | ast.StructField
    | ast.Parameter
)

_MOST_DIGITS = 100
"""Python itself refuses to convert more than some thousands."""


def tree_to_ast(tree: Tree[Token], source: Source, faults: Faults) -> ast.Program:
    """Turn the tree of `source` into a `Program`; `faults` gets what is wrong."""
    rules = Rules(source, faults)
    # Without recursion, so that deep input can't exhaust Python's stack: a node waits
    # until its children have left their results on `done`.
    todo: list[tuple[Tree[Token] | Token | None, bool]] = [(tree, False)]
    done: list[object] = []
    while todo:
        node, children_done = todo.pop()
        if not isinstance(node, Tree):
            done.append(node if node is None else rules.token(node))
        elif not children_done:
            todo.append((node, True))
            todo.extend((child, False) for child in reversed(node.children))
        else:
            first = len(done) - len(node.children)
            result = getattr(rules, node.data)(node.meta, *done[first:])
            done[first:] = [result]
    return cast("ast.Program", done.pop())


@final
class Rules:
    """What each rule of the grammar, or alias in it, becomes."""

    def __init__(self, source: Source, faults: Faults) -> None:
        self._source = source
        self._faults = faults

    def _span(self, place: Meta | Token) -> Span:
        start, end = place.start_pos, place.end_pos
        assert start is not None
        assert end is not None
        return Span(self._source, start, end)

    def token(self, token: Token) -> ast.Identifier | Token:
        """Make names identifiers; other tokens stay as they are."""
        if token.type in {"NAME", "REDUCE"}:
            return ast.Identifier(str(token), self._span(token))
        return token

    def _whole(self, token: Token) -> int:
        if len(token) > _MOST_DIGITS:
            span = self._span(token)
            self._faults.add(NumberTooLong(span=span, digits=len(token)))
            return 0
        return whole(token)

    # Documentation

    def file_docs(self, _meta: Meta, *lines: Token) -> str:
        return _doc_text(lines)

    def docs(self, _meta: Meta, *lines: Token) -> str:
        for line in lines:
            span = self._span(line)
            _, column = self._source.position(span.start)
            if self._source.text[span.start - column + 1 : span.start].strip():
                self._faults.add(MisplacedDoc(span=span))
        return _doc_text(lines)

    def documented(self, _meta: Meta, doc: str | None, node: Documented) -> Documented:
        return replace(node, doc=doc or "")

    def described(self, _meta: Meta, _doc: str | None, node: Described) -> Described:
        """Leave out the doc: what no output shows is a note to the reader alone."""
        return node

    # Items

    def program(self, _meta: Meta, doc: str | None, *items: ast.Item) -> ast.Program:
        return ast.Program(doc or "", items)

    def use(self, meta: Meta, path: Token) -> ast.UseItem:
        return ast.UseItem(path[1:-1], self._span(meta))

    def const(
        self, meta: Meta, name: ast.Identifier, type_: ast.TypeName, value: ast.Expr
    ) -> ast.ConstItem:
        return ast.ConstItem(name, type_, value, "", self._span(meta))

    def struct(
        self, meta: Meta, name: ast.Identifier, *fields: ast.StructField
    ) -> ast.StructItem:
        return ast.StructItem(name, fields, "", self._span(meta))

    def plain_field(
        self,
        meta: Meta,
        attributes: tuple[ast.Attribute, ...],
        name: ast.Identifier,
        type_: ast.TypeName,
    ) -> ast.StructField:
        return ast.StructField(name, type_, attributes, "", self._span(meta))

    def attributes(
        self, _meta: Meta, *attributes: ast.Attribute
    ) -> tuple[ast.Attribute, ...]:
        return attributes

    def attribute(
        self, meta: Meta, name: ast.Identifier, value: ast.Expr
    ) -> ast.Attribute:
        return ast.Attribute(name, value, self._span(meta))

    def function(
        self,
        meta: Meta,
        name: ast.Identifier,
        parameters: tuple[ast.Parameter, ...],
        result: ast.TypeName,
        lets: tuple[ast.LetStatement, ...],
        body: ast.Expr,
    ) -> ast.FunctionItem:
        return ast.FunctionItem(
            name, parameters, result, lets, body, "", self._span(meta)
        )

    def locals(
        self, _meta: Meta, *lets: ast.LetStatement
    ) -> tuple[ast.LetStatement, ...]:
        return lets

    def local(
        self, meta: Meta, name: ast.Identifier, value: ast.Expr
    ) -> ast.LetStatement:
        return ast.LetStatement(name, (), value, self._span(meta))

    def kernel(
        self,
        meta: Meta,
        name: ast.Identifier,
        parameters: tuple[ast.Parameter, ...],
        outputs: tuple[ast.Parameter, ...] | None,
        *body: ast.Statement,
    ) -> ast.KernelItem:
        return ast.KernelItem(
            name, parameters, outputs or (), body, "", self._span(meta)
        )

    def schedule(
        self,
        meta: Meta,
        kernel: ast.Identifier,
        stage: ast.Identifier | None,
        guard: ast.Expr | None,
        strategy: ast.Identifier,
        options: tuple[ast.Option, ...],
    ) -> ast.ScheduleItem:
        return ast.ScheduleItem(
            kernel, stage, guard, strategy, options, self._span(meta)
        )

    def options(self, _meta: Meta, *options: ast.Option) -> tuple[ast.Option, ...]:
        return options

    def option(self, meta: Meta, name: ast.Identifier, *values: Token) -> ast.Option:
        return ast.Option(name, tuple(map(self._whole, values)), self._span(meta))

    # Parameters and types

    def parameters(
        self, _meta: Meta, *parameters: ast.Parameter
    ) -> tuple[ast.Parameter, ...]:
        return parameters

    def plain_parameter(
        self,
        meta: Meta,
        mut: Token | None,
        name: ast.Identifier,
        type_: ast.TypeName,
        default: ast.Expr | None,
    ) -> ast.Parameter:
        return ast.Parameter(
            name, type_, mut is not None, default, "", self._span(meta)
        )

    def plain_output(
        self, meta: Meta, name: ast.Identifier, type_: ast.TypeName
    ) -> ast.Parameter:
        return ast.Parameter(name, type_, False, None, "", self._span(meta))

    def type(
        self, meta: Meta, name: ast.Identifier, axes: tuple[ast.Expr, ...] | None
    ) -> ast.TypeName:
        return ast.TypeName(name, axes, self._span(meta))

    # Statements

    def let(
        self,
        meta: Meta,
        name: ast.Identifier,
        binders: tuple[ast.Binder, ...] | None,
        value: ast.Expr,
    ) -> ast.LetStatement:
        return ast.LetStatement(name, binders or (), value, self._span(meta))

    def host(
        self, meta: Meta, name: ast.Identifier, value: ast.Expr
    ) -> ast.HostStatement:
        return ast.HostStatement(name, value, self._span(meta))

    def assignment(
        self,
        meta: Meta,
        name: ast.Identifier,
        subscripts: tuple[ast.Expr, ...] | None,
        members: tuple[ast.TargetMember, ...],
        op: Token,
        value: ast.Expr,
    ) -> ast.Assignment:
        return ast.Assignment(
            name,
            subscripts or (),
            members,
            cast("ast.AssignOp", str(op)),
            value,
            self._span(meta),
        )

    def members(
        self, _meta: Meta, *members: ast.TargetMember
    ) -> tuple[ast.TargetMember, ...]:
        return members

    def target_member(
        self, meta: Meta, name: ast.Identifier, subscripts: tuple[ast.Expr, ...] | None
    ) -> ast.TargetMember:
        return ast.TargetMember(name, subscripts or (), self._span(meta))

    def binders(self, _meta: Meta, *binders: ast.Binder) -> tuple[ast.Binder, ...]:
        return binders

    def binder(
        self, _meta: Meta, name: ast.Identifier, bound: ast.Expr | None
    ) -> ast.Binder:
        return ast.Binder(name, bound)

    # Expressions

    def expressions(self, _meta: Meta, *expressions: ast.Expr) -> tuple[ast.Expr, ...]:
        return expressions

    def binary(
        self, meta: Meta, left: ast.Expr, op: Token, right: ast.Expr
    ) -> ast.Binary:
        return ast.Binary(cast("ast.BinaryOp", str(op)), left, right, self._span(meta))

    def unary(self, meta: Meta, op: Token, operand: ast.Expr) -> ast.Unary:
        return ast.Unary(cast("ast.UnaryOp", str(op)), operand, self._span(meta))

    def reduction(
        self,
        meta: Meta,
        kind: ast.Identifier,
        binders: tuple[ast.Binder, ...],
        body: ast.Expr,
    ) -> ast.Reduction:
        return ast.Reduction(
            cast("ast.ReduceKind", kind.name), binders, body, self._span(meta)
        )

    def conditional(
        self, meta: Meta, condition: ast.Expr, then: ast.Expr, otherwise: ast.Expr
    ) -> ast.Conditional:
        return ast.Conditional(condition, then, otherwise, self._span(meta))

    def subscript(
        self, meta: Meta, base: ast.Expr, subscripts: tuple[ast.Expr, ...]
    ) -> ast.Subscript:
        return ast.Subscript(base, subscripts, self._span(meta))

    def member(self, meta: Meta, base: ast.Expr, member: ast.Identifier) -> ast.Member:
        return ast.Member(base, member, self._span(meta))

    def call(
        self, meta: Meta, function: ast.Identifier, arguments: tuple[ast.Expr, ...]
    ) -> ast.Call:
        return ast.Call(function, arguments, self._span(meta))

    def number(self, meta: Meta, token: Token) -> ast.Number:
        value = self._whole(token) if token.type == "INT" else float(token)
        return ast.Number(value, self._span(meta))

    def boolean(self, meta: Meta, token: Token) -> ast.Boolean:
        return ast.Boolean(token == "true", self._span(meta))

    def name(self, meta: Meta, name: ast.Identifier) -> ast.Name:
        return ast.Name(name.name, self._span(meta))


def _doc_text(lines: tuple[Token, ...]) -> str:
    """The text of doc comments, without their marks and one blank after each."""
    return "\n".join(line[3:].removeprefix(" ").rstrip() for line in lines)

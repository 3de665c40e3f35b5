"""Parser: from the text of a WGSL module to its declarations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast, final

from lark import Lark, Token, UnexpectedToken
from lark.lexer import Lexer

from kerngen.bind import tree
from kerngen.bind.faults import FileOfAnotherTool, WgslSyntax
from kerngen.bind.foreign import foreign_tool
from kerngen.bind.scanner import scan
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source, Span

_LEVELS: Final = {
    operator: level
    for level, operators in enumerate(
        (
            ("||",),
            ("&&",),
            ("|",),
            ("^",),
            ("&",),
            ("==", "!="),
            ("<", ">", "<=", ">="),
            ("<<", ">>"),
            ("+", "-"),
            ("*", "/", "%"),
        )
    )
    for operator in operators
}
"""The precedence of each operator: the greater it is, the tighter it binds."""

_WORDS: Final = {
    "NAME": "a name",
    "NUMBER": "a number",
    "ATTRIBUTE": "an attribute's name",
    "OPERATOR": "an operator",
    "BODY": "a body in braces",
    "OPEN": "'<'",
    "CLOSE": "'>'",
    "$END": "the end of the file",
    "_SEMICOLON": "';'",
    "_COMMA": "','",
    "_COLON": "':'",
    "_EQUALS": "'='",
    "_ARROW": "'->'",
    "_AT": "'@'",
    "LEFT_BRACKET": "'['",
    "RIGHT_BRACKET": "']'",
    "_LEFT_PAREN": "'('",
    "_RIGHT_PAREN": "')'",
    "_LEFT_BRACE": "'{'",
    "_RIGHT_BRACE": "'}'",
}
"""The names of terminals in messages."""
_AFTER_ANY_VALUE: Final = frozenset(
    ("OPEN", "OPERATOR", "MINUS", "STAR", "AMPERSAND", "DOT", "LEFT_BRACKET")
)
"""Terminals that may follow any value: a message names the others, such as ';'."""
_EXPRESSION: Final = frozenset(("NUMBER", "TRUE", "NAME", "MINUS", "_LEFT_PAREN"))
"""Terminals that begin an expression: if all may follow, one is expected."""


@final
class _Tokens(Lexer):
    """Hands the scanner's lexemes to lark."""

    def __init__(self, _conf: object) -> None: ...

    def lex(self, data: Any) -> Iterator[Token]:  # type: ignore[override]
        """Yield the lexemes of a source."""
        for each in scan(cast("Source", data)):
            yield Token(each.kind, each.text, start_pos=each.start, end_pos=each.end)


@cache
def _lark() -> Lark:
    grammar = files("kerngen.bind").joinpath("grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", lexer=_Tokens, maybe_placeholders=True)


def parse(source: Source) -> tree.Module:
    """Return the declarations of a file; raise `CompileError` where it is not WGSL."""
    lark: Any = _lark()
    try:
        parsed = lark.parse(source)
    except UnexpectedToken as error:
        raise CompileError([_fault(source, error)]) from None
    module: tree.Module = _Rules(source).made(parsed)
    return module


def _fault(source: Source, error: UnexpectedToken) -> WgslSyntax | FileOfAnotherTool:
    lexeme: Any = error.token
    at_end = lexeme.type == "$END"
    start = len(source.text) if at_end else lexeme.start_pos
    span = Span(source, start, start if at_end else lexeme.end_pos)
    if source.text[start : start + 2] == "<{":  # no list of template arguments
        start += 1
    if tool := foreign_tool(source.text[start:]):
        span = Span(source, start, start + len(tool.found))
        return FileOfAnotherTool(span=span, found=tool.found, tool=tool.name)
    found = "the end of the file" if at_end else f"'{span.text.partition(chr(10))[0]}'"
    return WgslSyntax(
        span=span, expected=_expected(error.accepts or set()), found=found
    )


def _expected(kinds: set[str]) -> str:
    if kinds >= _EXPRESSION:
        return "an expression"
    if "STRUCT" in kinds:
        return "a declaration"
    kinds = kinds - _AFTER_ANY_VALUE or kinds
    shown = sorted(_WORDS.get(kind, f"'{kind.lower()}'") for kind in kinds)
    return " or ".join(shown[:4])


@final
@dataclass(frozen=True, slots=True)
class _Directive:
    """A directive, with the extensions that it enables."""

    enabled: tuple[str, ...]


@final
class _Rules:
    """Makes the syntax tree from lark's tree; each method is named after its rule."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def made(self, node: Any) -> Any:
        """Return the node that a rule makes; a token stays as it is."""
        if node is None or isinstance(node, Token):
            return node
        make = getattr(self, str(node.data))  # lark compares its own names in Python
        return make(*[self.made(child) for child in node.children])

    def _at(self, first: Token | Span, last: Token | Span | None = None) -> Span:
        last = last or first
        start = first.start if isinstance(first, Span) else first.start_pos
        end = last.end if isinstance(last, Span) else last.end_pos
        return Span(self._source, cast("int", start), cast("int", end))

    # ---- expressions

    def number(self, lexeme: Token) -> tree.Number:
        return tree.Number(self._at(lexeme), str(lexeme))

    def truth(self, lexeme: Token) -> tree.Truth:
        return tree.Truth(self._at(lexeme), lexeme == "true")

    def name(self, lexeme: Token, template: tuple[Span, Any] | None) -> tree.Name:
        span, arguments = template or (None, ())
        return tree.Name(self._at(lexeme, span), str(lexeme), arguments)

    def template(self, opened: Token, *rest: Any) -> tuple[Span, tuple[Any, ...]]:
        return self._at(opened, rest[-1]), rest[:-1]

    def arguments(self, *values: Any) -> tuple[Any, ...]:
        return tuple(value for value in values if value is not None)

    def call(self, callee: tree.Name, arguments: Any) -> tree.Call:
        end = arguments[-1].span if arguments else callee.span
        return tree.Call(self._at(callee.span, end), callee, arguments)

    def element(self, whole: Any, _left: Token, index: Any, right: Token) -> tree.Part:
        return tree.Part(self._at(whole.span, right), whole, index)

    def part(self, whole: Any, _dot: Token, name: Token) -> tree.Part:
        return tree.Part(self._at(whole.span, name), whole, str(name))

    def prefixed(self, operator: Token, operand: Any) -> tree.Prefixed:
        span = self._at(operator, operand.span)
        return tree.Prefixed(span, str(operator), operand)

    def operator(self, lexeme: Token) -> str:
        return str(lexeme)

    def terms(self, *parts: Any) -> tree.Expression:
        """Return `a + b * c`, which is flat in the grammar, as a tree by precedence."""
        values, operators = [parts[0]], list[str]()
        for operator, value in zip(parts[1::2], parts[2::2], strict=True):
            self._fold(values, operators, _LEVELS.get(operator, -1))
            operators.append(operator)
            values.append(value)
        self._fold(values, operators, -1)
        return cast("tree.Expression", values[0])

    def _fold(self, values: list[Any], operators: list[str], level: int) -> None:
        """Join the last values by their operators, while these bind as tightly as `level`.

        Of `a + b * c` before a '-', `b * c` is joined first, then `a + (b * c)`.
        """
        while operators and _LEVELS.get(operators[-1], -1) >= level:
            right, left = values.pop(), values.pop()
            span = self._at(left.span, right.span)
            values.append(tree.Binary(span, operators.pop(), left, right))

    # ---- declarations

    def attribute(self, name: Token, arguments: Any) -> tree.Attribute:
        return tree.Attribute(self._at(name), str(name), arguments or ())

    def attributes(self, *found: tree.Attribute) -> tree.Attributes:
        return found

    def _name(self, lexeme: Token) -> tree.Name:
        return tree.Name(self._at(lexeme), str(lexeme))

    def member(self, attributes: Any, name: Token, type_: tree.Name) -> tree.Member:
        return tree.Member(self._name(name), type_, attributes)

    def struct(self, _struct: Token, name: Token, *members: Any) -> tree.Struct:
        return tree.Struct(self._name(name), members)

    def result(self, attributes: Any, type_: tree.Name) -> tree.Member:
        return tree.Member(type_, type_, attributes)

    def function(
        self, attributes: Any, _fn: Token, name: Token, *rest: Any
    ) -> tree.Function:
        *parameters, result, body = rest
        given = tuple(each for each in parameters if each is not None)
        # `body` is the scanner's text of names: "let:9 radius:17 store".
        hidden = {each.name.text for each in given}
        words = (each.partition(":") for each in str(body).split())
        found = [each for each in words if each[0] not in hidden]
        free = tuple(
            tree.Name(Span(self._source, int(at), int(at) + len(word)), word)
            for word, _, at in found
            if at
        )
        names = frozenset(word for word, _, _ in found)
        return tree.Function(self._name(name), given, attributes, result, names, free)

    def variable(
        self,
        attributes: Any,
        _var: Token,
        template: Any,
        name: Token,
        type_: Any,
        value: Any,
    ) -> tree.Variable:
        arguments = template[1] if template else ()
        return tree.Variable(self._name(name), arguments, type_, value, attributes)

    def constant(self, _const: Token, name: Token, type_: Any, value: Any) -> Any:
        return tree.Constant(self._name(name), type_, value)

    def override(
        self, attributes: Any, _override: Token, name: Token, type_: Any, value: Any
    ) -> tree.Override:
        return tree.Override(self._name(name), type_, value, attributes)

    def alias(self, _alias: Token, name: Token, type_: tree.Name) -> tree.Alias:
        return tree.Alias(self._name(name), type_)

    def assertion(self, *_: object) -> None:
        return None

    def directive(self, word: Token, *names: Any) -> _Directive:
        return _Directive(tuple(map(str, names)) if word == "enable" else ())

    def start(self, *items: Any) -> tree.Module:
        declarations: list[tree.Declaration] = []
        enabled: list[str] = []
        for item in items:
            if isinstance(item, _Directive):
                enabled += item.enabled
            elif item is not None:
                declarations.append(item)
        return tree.Module(tuple(declarations), tuple(enabled))

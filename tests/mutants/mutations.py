"""The small changes that can be made to a module: of operators, constants, calls, ...

Each is a `Mutant`: the bytes of the module from `start` to `end`, and what replaces them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import Enum, auto
from itertools import accumulate, pairwise
from typing import Final, cast, final

_OPERATORS: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: (r"\*\*", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: (r"\|", "&"),
    ast.BitXor: (r"\^", "|"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
"""What an operator is in the source, and what it becomes."""

_TWINS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
"""Functions that are called alike."""

_SYMMETRIC: Final = frozenset(
    {"min", "max", "minimum", "maximum", "add", "multiply", "gcd", "lcm"}
)
"""Functions to which the order of their arguments is nothing."""

_TYPES: Final = frozenset({"annotation", "returns", "decorator_list", "bases"})
"""Fields of nodes that hold types."""

_IDLE_KEYWORDS: Final = frozenset({"strict", "slots", "frozen", "repr", "kw_only"})
"""Arguments that promise something, and change nothing where the promise is kept."""


_DRAWS: Final = frozenset(
    (
        "default_rng uniform integers standard_normal choice permutation "
        "floats sampled_from"
    ).split()
)
"""Functions that draw random numbers: with other arguments they draw others, as good as these."""

_CONTINUOUS: Final = frozenset({"monotonic", "perf_counter", "random"})
"""Functions whose results are never equal to anything: `<` of them is as good as `<=`."""


@final
class Kind(Enum):
    """What a change is made to; a sample has as many of each as there are."""

    OPERATOR = auto()
    CONDITION = auto()
    CONSTANT = auto()
    CALL = auto()
    STATEMENT = auto()


@final
@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one small change."""

    kind: Kind
    path: str
    source: bytes
    start: int
    end: int
    replacement: bytes

    @property
    def changed(self) -> bytes:
        """The module's source with the change."""
        return self.source[: self.start] + self.replacement + self.source[self.end :]

    @property
    def place(self) -> str:
        """The file and the line where the change begins."""
        line = self.source.count(b"\n", 0, self.start) + 1
        return f"{self.path}:{line}"

    @property
    def is_program(self) -> bool:
        """Whether the change leaves a module, and another one."""
        try:
            return ast.dump(ast.parse(self.changed)) != ast.dump(ast.parse(self.source))
        except SyntaxError:
            return False

    @property
    def diff(self) -> str:
        """The change, as a unified diff without context."""
        before, after = (text.decode() for text in (self.source, self.changed))
        lines = unified_diff(
            before.splitlines(),
            after.splitlines(),
            self.path,
            self.path,
            n=0,
            lineterm="",
        )
        return "\n".join([*lines][1:])


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a module; a few are no programs, or the same one."""
    return [*_Module(path, source).mutants(ast.parse(source))]


@final
class _Module:
    """The source of a module, and the places of its nodes."""

    def __init__(self, path: str, source: bytes) -> None:
        self._path = path
        self._source = source
        lengths = [len(line) for line in source.splitlines(keepends=True)]
        self._lines = [0, *accumulate(lengths)]

    def mutants(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants of a node, and of the nodes in it."""
        if _is_chance(node):
            return
        yield from self._of_expression(node)
        yield from self._of_statement(node)
        for child in _material(node):
            yield from self.mutants(child)

    def _of_expression(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.BinOp(left, op, right) if not _is_type(left):
                yield from self._operator(left, op, right)
            case ast.BoolOp(op, values):
                for left, right in pairwise(values):
                    yield from self._operator(left, op, right)
            case ast.Compare(left, ops, rights):
                pairs = pairwise([left, *rights])
                for (before, after), comparison in zip(pairs, ops, strict=True):
                    if _CONTINUOUS.isdisjoint(map(_called, (before, after))):
                        yield from self._operator(before, comparison, after)
            case ast.UnaryOp(ast.USub() | ast.Invert(), operand):
                yield self._replaced(Kind.OPERATOR, node, self._text(operand))
            case ast.UnaryOp(ast.Not(), operand):
                yield self._replaced(Kind.CONDITION, node, self._text(operand))
            case ast.IfExp(test):
                yield from self._negated([test])
            case ast.comprehension(ifs=tests):
                yield from self._negated(tests)
            case ast.Constant(bool() as value):
                yield self._replaced(Kind.CONSTANT, node, str(not value))
            case ast.Constant(int() | float() as value):
                yield self._replaced(Kind.CONSTANT, node, str(value + 1))
                less = str(value - 1) if value >= 1 else f"({value - 1})"
                yield self._replaced(Kind.CONSTANT, node, less)
            case ast.Name(name) if name in _TWINS:
                yield self._replaced(Kind.CALL, node, _TWINS[name])
            case ast.Call(func, args=arguments) if _name(func) not in _SYMMETRIC:
                # `clip(x, low, high)` is min(max(x, low), high).
                begin = 1 if _name(func) == "clip" else 0
                for first, second in pairwise(arguments[begin:]):
                    yield self._swapped(first, second)
            case _:
                pass

    def _of_statement(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.AugAssign(target, op, value):
                yield from self._operator(target, op, value)
            case ast.If(test) | ast.While(test):
                yield from self._negated([test])
            case ast.Return(ast.expr() as result) if not _is_constant(result):
                yield self._replaced(Kind.STATEMENT, result, "None")
            case ast.Expr(ast.Call()) | ast.Raise():
                yield self._replaced(Kind.STATEMENT, node, "pass")
            case ast.Continue():
                yield self._replaced(Kind.STATEMENT, node, "break")
            case ast.Break():
                yield self._replaced(Kind.STATEMENT, node, "continue")
            case _:
                pass

    def _operator(
        self, left: ast.expr, op: ast.AST, right: ast.expr
    ) -> Iterator[Mutant]:
        spelling, other = _OPERATORS.get(type(op), ("", ""))
        start, end = self._offsets(left)[1], self._offsets(right)[0]
        found = re.search(spelling.encode(), self._source[start:end])
        if spelling and found:
            kind = Kind.OPERATOR if isinstance(op, ast.operator) else Kind.CONDITION
            span = start + found.start(), start + found.end()
            yield Mutant(kind, self._path, self._source, *span, other.encode())

    def _negated(self, tests: Sequence[ast.expr]) -> Iterator[Mutant]:
        """Negate conditions that have no operators, which are changed anyway."""
        for test in tests:
            if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
                text = f"(not ({self._text(test)}))"
                yield self._replaced(Kind.CONDITION, test, text)

    def _swapped(self, first: ast.expr, second: ast.expr) -> Mutant:
        (start, after), (before, end) = self._offsets(first), self._offsets(second)
        between = self._source[after:before].decode()
        text = self._text(second) + between + self._text(first)
        span = start, end
        return Mutant(Kind.CALL, self._path, self._source, *span, text.encode())

    def _replaced(self, kind: Kind, node: ast.expr | ast.stmt, text: str) -> Mutant:
        span = self._offsets(node)
        return Mutant(kind, self._path, self._source, *span, text.encode())

    def _text(self, node: ast.expr) -> str:
        start, end = self._offsets(node)
        return self._source[start:end].decode()

    def _offsets(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._lines[node.lineno - 1] + node.col_offset,
            self._lines[node.end_lineno - 1] + node.end_col_offset,
        )


def _material(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node that can matter."""
    if isinstance(node, ast.Raise):
        return  # the words of an error
    reshapes = isinstance(node, ast.Call) and _name(node.func) == "reshape"
    for name, value in ast.iter_fields(node):
        several = isinstance(value, list)
        for child in cast("list[object]", value) if several else [value]:
            if not isinstance(child, ast.AST) or name in _TYPES or _idle(child):
                continue
            if reshapes and isinstance(child, ast.UnaryOp):
                continue  # Any negative length is the one that is left.
            yield child


def _idle(node: ast.AST) -> bool:
    """Whether nothing depends on a node: assertions, `__all__`, type checkers' lines.

    F-strings are left out, too: before Python 3.12 what is in them has no places.
    """
    match node:
        case ast.Assert() | ast.JoinedStr() | ast.If(ast.Name("TYPE_CHECKING")):
            return True
        case ast.Assign([ast.Name("__all__" | "__slots__")]):
            return True
        case ast.AnnAssign(annotation=ast.Name("TypeAlias")):
            return True
        case ast.Expr(ast.Call(ast.Name("assert_never"))):
            return True
        case ast.keyword(arg=str() as name):
            return name in _IDLE_KEYWORDS
        case _:
            return False


def _is_chance(node: ast.AST) -> bool:
    """Whether a change of an expression changes but which random numbers are drawn."""
    match node:
        case ast.Call(func):
            return _name(func) in _DRAWS
        case ast.BinOp(left, _, right):  # such as `seed + 7 * n`
            return "seed" in {_name(left), _name(right)}
        case _:
            return False


def _called(node: ast.expr) -> str:
    """Return the name of the function that an expression calls, or ""."""
    return _name(node.func) if isinstance(node, ast.Call) else ""


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.Tuple) and not getattr(node, "elts", ())


def _is_type(node: ast.expr) -> bool:
    """Whether this is the left of `Text | Line`, by its name."""
    while isinstance(node, ast.BinOp):
        node = node.left
    return re.fullmatch("[A-Z].*[a-z].*", _name(node)) is not None


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""

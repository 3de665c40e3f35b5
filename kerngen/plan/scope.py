"""The names that a plan file declares for a kernel: each before its use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar, final

from kerngen.plan import size as host
from kerngen.plan.adapter import FACTS
from kerngen.plan.functions import FUNCTIONS, OF_ONE
from kerngen.plan.lines import PlanLine
from kerngen.plan.size import MOST, Guard, Size
from kerngen.plan.text import INFIX
from kerngen.plan.tree import Axes

_Value = TypeVar("_Value")
_NO_FACTS: Final = frozenset[str]()


@final
@dataclass(slots=True)
class PlanNames:
    """The names declared so far, and parsing of texts that use them.

    `symbols` are those that sizes may have, dims and scalars; `sizes` are named by `let`;
    `_awaited` has the dims of axes that no line has declared yet, with the first line.
    """

    tensors: set[str] = field(default_factory=set[str])
    scalars: set[str] = field(default_factory=set[str])
    lengths: set[str] = field(default_factory=set[str])
    symbols: set[str] = field(default_factory=set[str])
    sizes: dict[str, Size] = field(default_factory=dict[str, Size])
    _awaited: dict[str, PlanLine] = field(default_factory=dict[str, PlanLine])

    def copy(self) -> PlanNames:
        """Return a copy; sizes that are then named in it are not named here."""
        return replace(self, sizes=dict(self.sizes))

    def declare(self, line: PlanLine, known: set[str], names: Iterable[str]) -> None:
        """Add names to `known`, a set of this scope; refuse the line if it repeats one."""
        for name in names:
            if name in known:
                line.refuse(f"'{name}' is declared twice")
            known.add(name)

    def size(self, line: PlanLine, text: str) -> Size:
        """Parse a text as a size over dims and scalars; refuse the line if it is none."""
        return self._parse(line, text, Parser.whole_size, _NO_FACTS)

    def guard(self, line: PlanLine, text: str, facts: frozenset[str] = FACTS) -> Guard:
        """Parse a text as a condition, which may use the adapter's facts named in `facts`."""
        return self._parse(line, text, Parser.whole_guard, facts)

    def _parse(
        self,
        line: PlanLine,
        text: str,
        read: Callable[[Parser], _Value],
        facts: frozenset[str],
    ) -> _Value:
        """Parse a text by a method of the parser; refuse the line if it fails."""
        try:
            return read(Parser(text, self.sizes, facts | self.symbols))
        except SizeSyntaxError as error:
            line.refuse(f"'{text}': {error}")

    def axes(self, line: PlanLine, text: str) -> Axes:
        """Parse a list of axis lengths, without its brackets."""
        return tuple(self.axis(line, each) for each in text.split(", ") if text)

    def axis(self, line: PlanLine, text: str) -> str | int:
        """Parse the length of an axis: a number, or a dim's name.

        A dim may be declared further below: outputs come before the lengths that are
        computed for them.  `check_lengths` refuses what nothing declares.
        """
        if text.isdecimal():
            return self.count(line, text)
        if not text.isidentifier():
            line.refuse(f"'{text}' is no axis")
        if text not in self.lengths:
            self._awaited.setdefault(text, line)
        return text

    def check_lengths(self) -> None:
        """Refuse the line of an axis whose dim no line has declared."""
        for name, line in self._awaited.items():
            if name not in self.lengths:
                line.refuse(f"'{name}' is no dim")

    def count(self, line: PlanLine, text: str) -> int:
        """Parse a number from 0 to 2^53."""
        if not text.isdecimal() or int(text) > MOST:
            line.refuse(f"expected a whole number of at most 2^53, got '{text}'")
        return int(text)


# The parser of sizes and guards, in the form that `text.py` prints
#
#     guard:  comparison (and comparison)*  |  comparison (or comparison)*
#     size:   atoms joined by + - * / %, of which * / % bind tighter
#     atom:   an integer, a name, function(size, ...), not(guard), if(guard, size, size),
#             or a guard or size in parentheses


_TOKEN: Final = re.compile(
    r"\s*(?:(?P<int>-?\d+)(?![\w.])|(?P<name>[A-Za-z_][\w.]*)|(?P<op>==|!=|<=|>=|[-+*/%<>(),]))"
)

# Functions that are read by the constructors that the compiler builds sizes with: they fold, so
# that a plan is read as the tree that was written.
_FOLDING: Final[Mapping[str, Callable[..., host.Size]]] = {
    "+": host.add,
    "*": host.multiply,
    "%": host.remainder,
    "ceil_div": host.ceil_div,
}


class SizeSyntaxError(ValueError):
    """Raised for a text that is neither a size nor a guard."""


@final
@dataclass(slots=True)
class Parser:
    """Parses one text by recursive descent, one token ahead.

    A size may have the `symbols`, and the `names` of sizes, which are replaced by these.
    `kind` ('int', 'name', 'op' or 'end') and `word` are the next token, which ends at `at`.
    """

    text: str
    names: Mapping[str, host.Size]
    symbols: frozenset[str]
    at: int = 0
    kind: str = field(default="", init=False)
    word: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._next()

    def whole_size(self) -> host.Size:
        """Parse the text as a size, to its end."""
        size = self._sized(self._expression(0))
        self._end()
        return size

    def whole_guard(self) -> host.Guard:
        """Parse the text as a condition, to its end."""
        guard = self._guarded(self._logic())
        self._end()
        return guard

    def _next(self) -> None:
        """Go to the next token."""
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            if self.text[self.at :].strip():
                raise SizeSyntaxError(f"unexpected {self.text[self.at :].strip()!r}")
            self.kind, self.word = "end", "the end"
            return
        self.at = match.end()
        self.kind = match.lastgroup or ""
        self.word = match[self.kind]

    def _take(self, word: str) -> None:
        if self.word != word or self.kind != "op":
            raise SizeSyntaxError(f"expected '{word}', got '{self.word}'")
        self._next()

    def _end(self) -> None:
        if self.kind != "end":
            raise SizeSyntaxError(f"unexpected '{self.word}'")

    def _sized(self, value: host.Size | host.Guard) -> host.Size:
        if isinstance(value, host.Size):
            return value
        raise SizeSyntaxError("expected a number, got a condition")

    def _guarded(self, value: host.Size | host.Guard) -> host.Guard:
        if isinstance(value, host.Guard):
            return value
        raise SizeSyntaxError("expected a condition, got a number")

    def _logic(self) -> host.Size | host.Guard:
        """Read conditions joined by `and`, or by `or`."""
        first = self._comparison()
        joint = self.word
        if self.kind != "name" or joint not in {"and", "or"}:
            return first
        guards = [self._guarded(first)]
        while self.kind == "name" and self.word == joint:
            self._next()
            guards.append(self._guarded(self._comparison()))
        return host.all_of(*guards) if joint == "and" else host.any_of(*guards)

    def _comparison(self) -> host.Size | host.Guard:
        left = self._expression(0)
        if self.word not in host.COMPARISONS:
            return left
        op = self.word
        self._next()
        right = self._sized(self._expression(0))
        return host.Compare(op, self._sized(left), right)

    def _expression(self, level: int) -> host.Size | host.Guard:
        """Read atoms joined by operators that bind tighter than a level, to the left."""
        left = self._atom()
        while self.kind == "op" and INFIX.get(self.word, 0) > level:
            op = self.word
            self._next()
            right = self._sized(self._expression(INFIX[op]))
            left = _applied(op, (self._sized(left), right))
        return left

    def _atom(self) -> host.Size | host.Guard:
        kind, word = self.kind, self.word
        self._next()
        if kind == "int":
            return host.Literal(_integer(word))
        if kind == "op" and word == "(":
            inner = self._logic()
            self._take(")")
            return inner
        if kind != "name":
            raise SizeSyntaxError(f"unexpected '{word}'")
        if word in {"true", "false"}:
            return host.Truth(word == "true")
        if self.kind == "op" and self.word == "(":
            return self._call(word)
        if word in self.names:
            return self.names[word]
        if word in self.symbols:
            return host.Symbol(word)
        raise SizeSyntaxError(f"'{word}' is neither a dim nor a scalar")

    def _call(self, function: str) -> host.Size | host.Guard:
        self._take("(")
        arguments = [self._logic()]
        while self.kind == "op" and self.word == ",":
            self._next()
            arguments.append(self._logic())
        self._take(")")
        if function == "not" and len(arguments) == 1:
            return host.negate(self._guarded(arguments[0]))
        if function == "if" and len(arguments) == 3:
            condition, *sizes = arguments
            return host.select(self._guarded(condition), *map(self._sized, sizes))
        if function not in FUNCTIONS or function in INFIX:
            raise SizeSyntaxError(f"there is no function '{function}'")
        return _applied(function, tuple(map(self._sized, arguments)))


def _integer(text: str) -> int:
    # By length first: Python refuses to convert texts of many thousand digits.
    if len(text) > len(str(-host.MOST)) or abs(int(text)) > host.MOST:
        raise SizeSyntaxError(f"{text[:20]} is beyond 2^53")
    return int(text)


def _applied(function: str, operands: tuple[host.Size, ...]) -> host.Size:
    if function == "-":
        left, right = operands
        return host.add(left, host.multiply(right, -1))
    if len(operands) != (1 if function in OF_ONE else 2):
        raise SizeSyntaxError(f"'{function}' of {len(operands)} operands")
    # `hostmath.ceil_div` is defined for a denominator above 0 alone.
    divisor = operands[-1]
    below = isinstance(divisor, host.Literal) and divisor.value <= 0
    if function == "ceil_div" and below:
        raise SizeSyntaxError("'ceil_div' by a number that is not above 0")
    if function in _FOLDING:
        return _FOLDING[function](*operands)
    return host.Apply(function, operands)

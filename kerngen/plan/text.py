"""Print sizes and guards: `m * min(max(ceil_div(n, 4096), 1), 1024)`.

Each language has its words for them, and one printer has the order, the parentheses and the
signs: `m * 2 - 1` is `d.m * 2n - 1n` in JavaScript.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never, final

from kerngen.plan import size as host
from kerngen.plan.functions import FUNCTIONS

INFIX: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
"""The precedence of the operators of sizes; calls and names bind tighter."""


@final
@dataclass(frozen=True, slots=True)
class Words:
    """The words of a language for sizes and conditions; in each, an operand replaces `{}`.

    - `calls`: each function as a call, and the operators that must be calls where a divisor
      may be zero
    - `both`, `either`, `negation`, `comparisons`: for `and`, `or`, `not` and comparisons
    - `literal`, `negative`: an integer that is not negative, or negative: `{}n` in JavaScript
    - `name`, `part`: the name of a dim or scalar, and one with a point: `camera.width`
    - `select`: a choice of two sizes; the condition comes first
    - `operators`: functions that are operators of the language; they are in parentheses, as
      languages disagree how tightly they bind
    """

    calls: Mapping[str, str]

    both: str = " and "
    either: str = " or "
    negation: str = "not({})"
    comparisons: Mapping[str, str] = field(default_factory=dict[str, str])
    literal: str = "{}"
    negative: str = "{}"
    name: str = "{}"
    part: str = "{}"
    select: str = "if({}, {}, {})"
    operators: Mapping[str, str] = field(default_factory=dict[str, str])


KERN: Final = Words({name: name + "({})" for name in FUNCTIONS if name not in INFIX})
"""The words of the kernel language, in which plan files are written."""


@final
@dataclass(frozen=True, slots=True)
class SizePrinter:
    """Prints sizes in the words of a language; a size in `names` is printed as that name."""

    names: Mapping[host.Size, str] = field(default_factory=dict["host.Size", str])
    words: Words = KERN

    def size(self, size: host.Size, level: int = 0) -> str:
        """Return the text of a size, in parentheses if its precedence is below `level`."""
        if size in self.names:
            return self.names[size]
        match size:
            case host.Literal(value):
                words = self.words
                return (words.literal if value >= 0 else words.negative).format(value)
            case host.Symbol(name):
                return (self.words.part if "." in name else self.words.name).format(
                    name
                )
            # The operators group to the left: `a - (b - c)` keeps its parentheses.
            case host.Apply(function, (first, *others)) if self._is_infix(size):
                own = INFIX[function]
                text = self.size(first, own)
                for each in others:
                    text += self._next(function, each, own + 1)
                return text if own >= level else f"({text})"
            case host.Apply(function, operands) if function in self.words.operators:
                operator = self.words.operators[function]
                return f"({operator.join(self.size(x, 3) for x in operands)})"
            case host.Apply(function, operands):
                call = self.words.calls[function]
                return call.format(", ".join(map(self.size, operands)))
            case host.Select(condition, then, otherwise):
                arguments = self.guard(condition), self.size(then), self.size(otherwise)
                return self.words.select.format(*arguments)
            case _:
                assert_never(size)

    def _is_infix(self, size: host.Apply) -> bool:
        """Whether a function is printed as an infix operator.

        A division is a call in `calls` unless it is by a literal that is not 0: WGSL's and
        the plan's x / 0 is x, that of other languages isn't.
        """
        if size.function in self.words.calls:
            by = size.operands[-1]
            return (
                size.function in INFIX
                and isinstance(by, host.Literal)
                and by.value != 0
            )
        return size.function in INFIX

    def _next(self, function: str, operand: host.Size, level: int) -> str:
        """Return an operand behind its operator: ` + n`, or ` - n` for `n * -1`."""
        if function == "+" and operand not in self.names:
            match operand:
                case host.Literal(value) if value < 0:
                    return f" - {self.size(host.Literal(-value))}"
                case host.Apply("*", (*factors, host.Literal(value))) if value < 0:
                    positive = host.multiply(*factors, -value)
                    return f" - {self.size(positive, level)}"
                case _:
                    pass
        return f" {function} {self.size(operand, level)}"

    def guard(self, guard: host.Guard) -> str:
        """Return the text of a condition."""
        match guard:
            case host.Truth(value):
                return "true" if value else "false"
            case host.Compare(op, left, right):
                sides = self.size(left), self.size(right)
                return f" {self.words.comparisons.get(op, op)} ".join(sides)
            case host.All(guards):
                return self.words.both.join(map(self._part, guards))
            case host.AnyOf(guards):
                return self.words.either.join(map(self._part, guards))
            case host.Not(inner):
                return self.words.negation.format(self.guard(inner))
            case _:
                assert_never(guard)

    def _part(self, guard: host.Guard) -> str:
        """Return the text of a condition within another: `and` and `or` never mix bare."""
        text = self.guard(guard)
        return f"({text})" if isinstance(guard, host.All | host.AnyOf) else text


PLAIN: Final = SizePrinter()
"""The printer without names of sizes, in the words of the kernel language."""


def to_text(size: host.Size) -> str:
    """Return the text of a size in a plan file, by the names of dims and scalars."""
    return PLAIN.size(size)


def guard_text(guard: host.Guard) -> str:
    """Return the text of a condition in a plan file."""
    return PLAIN.guard(guard)


def figures(guard: host.Guard, values: host.Values) -> Iterator[str]:
    """Yield the values in a call of what a condition depends on: `d is 12`, `12 % 8 is 4`."""
    known = {name: int(values[name]) for name in host.symbols(guard)}
    yield from (f"{name} is {value}" for name, value in known.items())
    # A printer that names each symbol by its value: `12 % 8` for `d % 8`.
    numbers: dict[host.Size, str] = {
        host.Symbol(n): str(value) for n, value in known.items()
    }
    printer = SizePrinter(numbers)
    for side in sides_of(guard):
        yield f"{printer.size(side)} is {host.evaluate(side, values)}"


def sides_of(guard: host.Guard) -> Iterator[host.Apply | host.Select]:
    """Yield the sides of a condition's comparisons that are computed, each once.

    `d % 8 == rest` has `d % 8`: symbols and literals are left out.
    """
    sides = dict.fromkeys(_sides(guard))
    yield from (side for side in sides if isinstance(side, host.Apply | host.Select))


def _sides(guard: host.Guard) -> Iterator[host.Size]:
    """Yield both sides of each comparison in a condition."""
    for part in (guard, *host.children(guard)):
        match part:
            case host.Compare(left=left, right=right):
                yield from (left, right)
            case host.All() | host.AnyOf() | host.Not() if part is not guard:
                yield from _sides(part)
            case _:
                pass

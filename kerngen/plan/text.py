"""Print sizes and guards: `m * min(max(ceil_div(n, 4096), 1), 1024)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, assert_never

from kerngen.plan.size import (
    All,
    AnyOf,
    Apply,
    Compare,
    Guard,
    Literal,
    Not,
    Select,
    Size,
    Symbol,
    Truth,
    Values,
    children,
    evaluate,
    multiply,
    symbols,
)

INFIX: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
"""How tightly the operators of sizes bind; what else there is binds tighter."""


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints sizes; those in `names` are printed as their names.

    A printer for another language has other words, and prints sizes in its own way.
    """

    AND: ClassVar = " and "
    OR: ClassVar = " or "
    NOT: ClassVar = "not"
    COMPARISONS: ClassVar[Mapping[str, str]] = {}
    """The comparisons that have another name than in `.kern`."""

    names: Mapping[Size, str] = field(default_factory=dict["Size", str])

    def size(self, size: Size, level: int = 0) -> str:
        """Return the text of a size, in parentheses if a precedence level needs them."""
        if size in self.names:
            return self.names[size]
        match size:
            case Literal(value):
                return repr(value)
            case Symbol(name):
                return name
            case Apply(function, operands) if function in INFIX:
                own = INFIX[function]
                first, *others = operands
                text = self.size(first, own)
                for each in others:
                    text += self._next(function, each, own + 1)
                return text if own >= level else f"({text})"
            case Apply(function, operands):
                return f"{function}({', '.join(map(self.size, operands))})"
            case Select(condition, then, otherwise):
                arguments = self.guard(condition), self.size(then), self.size(otherwise)
                return f"if({', '.join(arguments)})"
            case _:
                assert_never(size)

    def _next(self, function: str, operand: Size, level: int) -> str:
        """Return an operand behind its operator: ` + n`, or ` - n` for `n * -1`."""
        if function == "+" and operand not in self.names:
            match operand:
                case Literal(value) if value < 0:
                    return f" - {-value}"
                case Apply("*", (*factors, Literal(value))) if value < 0:
                    positive = multiply(*factors, -value)
                    return f" - {self.size(positive, level)}"
                case _:
                    pass
        return f" {function} {self.size(operand, level)}"

    def guard(self, guard: Guard) -> str:
        """Return the text of a condition."""
        match guard:
            case Truth(value):
                return "true" if value else "false"
            case Compare(op, left, right):
                sides = self.size(left), self.size(right)
                return f" {self.COMPARISONS.get(op, op)} ".join(sides)
            case All(guards):
                return self.AND.join(map(self._part, guards))
            case AnyOf(guards):
                return self.OR.join(map(self._part, guards))
            case Not(inner):
                return f"{self.NOT}({self.guard(inner)})"
            case _:
                assert_never(guard)

    def _part(self, guard: Guard) -> str:
        """Return the text of a condition within another: `and` and `or` never mix bare."""
        text = self.guard(guard)
        return f"({text})" if isinstance(guard, All | AnyOf) else text


PLAIN: Final = Printer()
"""Names nothing."""


def to_text(size: Size) -> str:
    """Return the text of a size, over the names of dims and scalars."""
    return PLAIN.size(size)


def guard_text(guard: Guard) -> str:
    """Return the text of a condition."""
    return PLAIN.guard(guard)


def figures(guard: Guard, values: Values) -> Iterator[str]:
    """Yield the values that a condition depends on: `d is 12`, `12 % 8 is 4`."""
    known = {name: int(values[name]) for name in symbols(guard)}
    yield from (f"{name} is {value}" for name, value in known.items())
    numbers: dict[Size, str] = {Symbol(n): str(value) for n, value in known.items()}
    printer = Printer(numbers)
    for side in sides_of(guard):
        yield f"{printer.size(side)} is {evaluate(side, values)}"


def sides_of(guard: Guard) -> Iterator[Apply | Select]:
    """Yield the sizes that the comparisons of a condition compute, each once."""
    sides = dict.fromkeys(_sides(guard))
    yield from (side for side in sides if isinstance(side, Apply | Select))


def _sides(guard: Guard) -> Iterator[Size]:
    """Yield both sides of each comparison in a condition."""
    for part in (guard, *children(guard)):
        match part:
            case Compare(left=left, right=right):
                yield from (left, right)
            case All() | AnyOf() | Not() if part is not guard:
                yield from _sides(part)
            case _:
                pass

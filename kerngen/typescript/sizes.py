"""Sizes and conditions of plans in JavaScript, over `d`, which has BigInts by name.

    m * min(ceil_div(n, 4096), 1024)   becomes   d.m * min(ceil_div(d.n, 4096n), 1024n)
    n % 4 == 0                         becomes   d.n % 4n === 0n

BigInts are exact, as the integers of Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, assert_never, final

from kerngen.plan.size import Apply, Guard, Literal, Select, Size, Symbol
from kerngen.plan.text import Printer
from kerngen.typescript.names import js_string

_INFIX: Final = {"+": 1, "*": 2, "/": 2, "%": 2}
"""How tightly operators bind; what else there is binds tighter."""
_BITS: Final = {"bit_and": "&", "bit_or": "|", "bit_xor": "^"}
_WRAPS: Final = {"wrap_i32": "asIntN", "wrap_u32": "asUintN"}
_CALLS: Final = {
    "/": "div",
    "%": "rem",
    "abs": "abs",
    "ceil_div": "ceilDiv",
    "floor_div": "floorDiv",
    "max": "max",
    "min": "min",
    "mod": "mod",
    "shift_left": "shiftLeft",
    "shift_right": "shiftRight",
}
"""What is called of `$host`."""


@final
@dataclass(frozen=True, slots=True)
class SizePrinter(Printer):
    """Prints sizes; those in `names` as calls of functions with these names."""

    AND: ClassVar = " && "
    OR: ClassVar = " || "
    NOT: ClassVar = "!"
    COMPARISONS: ClassVar[Mapping[str, str]] = {"==": "===", "!=": "!=="}

    def function(self, part: Size | Guard) -> str:
        """Return a size or a condition as a function of `d`."""
        if isinstance(part, Literal | Symbol | Apply | Select):
            return self.names.get(part) or f"(d) => {self.size(part)}"
        return f"(d) => {self.guard(part)}"

    def size(self, size: Size, level: int = 0) -> str:
        """Return an expression that binds at least as tightly as a level of operators."""
        if size in self.names:
            return f"{self.names[size]}(d)"
        match size:
            case Literal(value):
                return f"{value}n" if value >= 0 else f"({value}n)"
            case Symbol(name):
                return f"d.{name}" if name.isidentifier() else f"d[{js_string(name)}]"
            case Apply(("/" | "%") as function, (_, by)) if not _is_nonzero(by):
                return self._call(function, size.operands)
            case Apply(function, operands) if function in _INFIX:
                own = _INFIX[function]
                first, *others = operands
                text = self.size(first, own)
                for each in others:
                    text += self._next(function, each, own + 1)
                return text if own >= level else f"({text})"
            case Apply(function, operands):
                return self._call(function, operands)
            case Select(condition, then, otherwise):
                texts = self.guard(condition), self.size(then), self.size(otherwise)
                return "({} ? {} : {})".format(*texts)
            case _:
                assert_never(size)

    def _next(self, function: str, operand: Size, level: int) -> str:
        if function == "+" and isinstance(operand, Literal) and operand.value < 0:
            return f" - {-operand.value}n"
        return f" {function} {self.size(operand, level)}"

    def _call(self, function: str, operands: tuple[Size, ...]) -> str:
        if function in _BITS:
            text = f" {_BITS[function]} ".join(self.size(x, 3) for x in operands)
            return f"({text})"
        texts = [*map(self.size, operands)]
        if function in _WRAPS:
            return f"BigInt.{_WRAPS[function]}(32, {texts[0]})"
        return f"$host.{_CALLS[function]}({', '.join(texts)})"


def _is_nonzero(size: Size) -> bool:
    """Whether JavaScript divides by a size as WGSL does: it throws at zero."""
    return isinstance(size, Literal) and size.value != 0

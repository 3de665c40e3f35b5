"""Hazards: operations where ordinary arguments overflow f32 or cancel.

That is no fault of a compiler, and may be intended.  But most wrong results come from
such operations: `exp` of 100, a mean of no elements, a difference of squares.  Their
results have no bound, so `kerngen verify` can't check them, and reports them instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from kerngen.ir.nodes import ReduceKind, Statement
from kerngen.verify.meaning.functions import plain_value
from kerngen.verify.meaning.number import HIGHEST, HIGHEST_HALF, Array, BoundedArray

_OPERATORS: Final[Mapping[str, np.ufunc]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
_JOINS: Final[Mapping[str, np.ufunc]] = {"sum": np.add, "prod": np.multiply}
_WORDS: Final = {"sum": "sum", "prod": "product"}
_NOWHERE: Final = np.False_
_LOST: Final = 0.01
"""A result whose relative error may be larger has lost its digits: fewer than two are left."""
_MOSTLY: Final = 0.5
"""The fraction of a difference's elements that must lose their digits to be reported."""
_MORE: Final = " is not finite in f32"
_MORE_HALF: Final = " is more than an f16 holds"
_NONE: Final = " is not a number"
_DIGITS: Final = " loses all digits: both are rounded"


@final
@dataclass(frozen=True)
class Hazard:
    """A hazardous operation, with the smallest numbers for which it was seen."""

    statement: Statement
    kind: str
    text: str
    magnitude: float

    @property
    def line(self) -> int:
        """The statement's line; 0 if it has none."""
        return self.statement.span.line if self.statement.span else 0


@final
@dataclass
class HazardCollector:
    """Collects the hazards of a kernel: one of each kind for each statement."""

    found: dict[tuple[int, str], Hazard] = field(
        default_factory=dict[tuple[int, str], Hazard]
    )
    _seen: list[tuple[str, str, float]] = field(
        default_factory=list[tuple[str, str, float]]
    )

    def statement(
        self, statement: Statement, value: BoundedArray, *, is_half: bool = False
    ) -> None:
        """Keep the hazards seen in a statement, if they affect its value.

        They do if some of its elements have no bound, or, for cancellation, a large one.
        An overflow in a branch of an `if` that is not taken does not.
        """
        with np.errstate(all="ignore"):
            lost = not np.isfinite(value.error).all()
            rough = bool((value.error > _LOST * np.abs(value.value)).any())
        if is_half:
            lost = self._half(value) or lost
        for kind, text, magnitude in self._seen:
            key = id(statement), kind
            known = self.found.get(key)
            if (rough if kind == "cancellation" else lost) and (
                known is None or magnitude < known.magnitude
            ):
                self.found[key] = Hazard(statement, kind, text, magnitude)
        self._seen.clear()

    def operator(
        self, op: str, left: BoundedArray, right: BoundedArray, result: BoundedArray
    ) -> None:
        """Check an operator on floats for hazards."""
        if op not in _OPERATORS:
            return
        raw = _OPERATORS[op](left.value, right.value)

        def shown(a: float, b: float) -> str:
            return f"{a:.6g} {op} {b:.6g}"

        zero = np.logical_and(op == "/", right.value == 0)
        self._look((left, right), result, raw, shown, divides=zero)
        if op in {"+", "-"}:
            self._cancels((left, right), result, shown)

    def builtin(
        self, name: str, given: Sequence[BoundedArray], result: BoundedArray
    ) -> None:
        """Check a built-in on floats for hazards."""
        raw = plain_value(name, [each.value for each in given])
        if raw is not None:

            def shown(*values: float) -> str:
                return f"{name}({', '.join(f'{each:.6g}' for each in values)})"

            self._look(given, result, raw, shown)

    def reduction(
        self, kind: ReduceKind, terms: BoundedArray, axes: int, result: BoundedArray
    ) -> None:
        """Check a sum or product of floats for hazards."""
        if kind not in _JOINS:
            return
        over = tuple(range(axes))
        raw = _JOINS[kind].reduce(terms.value, axis=over)
        error = terms.error.max(over, initial=0.0)
        most = np.abs(terms.value).max(over, initial=0.0)
        count = int(np.prod(terms.value.shape[:axes], dtype=np.int64))

        def shown(largest: float) -> str:
            return f"the {_WORDS[kind]} of {count} terms up to {largest:.6g}"

        self._look([BoundedArray(most, error, error)], result, raw, shown)

    def _half(self, value: BoundedArray) -> bool:
        """Note numbers that overflow f16; return whether there are any."""
        over = np.isfinite(value.error) & (np.abs(value.value) > HIGHEST_HALF)
        self._add("overflow", over, [value], "{:.6g}".format, _MORE_HALF)
        return bool(over.any())

    def _look(
        self,
        given: Sequence[BoundedArray],
        result: BoundedArray,
        raw: Array,
        shown: Callable[..., str],
        divides: NDArray[np.bool_] | np.bool_ = _NOWHERE,
    ) -> None:
        """Note operations whose operands have bounds and whose result has none.

        The kind follows from `raw`, the result in double.
        """
        lost = ~np.isfinite(result.error)
        for each in given:
            lost = lost & np.isfinite(each.error)
        if not lost.any():
            return
        over = np.abs(raw) > HIGHEST
        self._add("division", lost & divides, given, shown, "")
        self._add("undefined", lost & ~divides & np.isnan(raw), given, shown, _NONE)
        self._add("overflow", lost & ~divides & over, given, shown, _MORE)

    def _cancels(
        self,
        given: Sequence[BoundedArray],
        result: BoundedArray,
        shown: Callable[..., str],
    ) -> None:
        """Note a difference of rounded numbers of which no two digits are left.

        Some elements are nearly equal by chance, so most of them must be.
        """
        value, error = np.abs(result.value), result.error
        lost = np.isfinite(error) & (value > 0) & (error > _LOST * value)
        for each in given:
            lost = lost & (each.error > 0) & (np.abs(each.value) > value / _LOST)
        if np.count_nonzero(lost) > _MOSTLY * lost.size:
            self._add("cancellation", lost, given, shown, _DIGITS)

    def _add(
        self,
        kind: str,
        where: Array,
        given: Iterable[BoundedArray],
        shown: Callable[..., str],
        says: str,
    ) -> None:
        """Note one element where `where` is true: the one with the smallest operands."""
        if not where.any():
            return
        spread = [np.broadcast_to(each.value, where.shape) for each in given]
        size = np.max([np.abs(each) for each in spread], axis=0)
        at = np.unravel_index(
            int(np.argmin(np.where(where, size, np.inf))), where.shape
        )
        text = shown(*(float(each[at]) for each in spread)) + says
        self._seen.append((kind, text, float(size[at])))

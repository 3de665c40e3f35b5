"""Proofs that sums of indices, lengths and scalars are never negative.

Where `t` ranges over `n`, `t + 1` and `n - 1 - t` are never negative, but `t - 1` may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.types import Scalar

Atom: TypeAlias = ir.IndexValue | ir.DimValue | ir.UniformValue | None
"""What a sum has a coefficient for; None is the number 1."""

Sum: TypeAlias = Counter[Atom]
"""A sum as coefficients: `2 * i - 3` is `{i: 2, None: -3}`."""


def length_of(extent: ir.Extent) -> ir.Expr:
    """Return the length of an axis as an expression."""
    if isinstance(extent, int):
        return ir.Constant(extent, Scalar.I32)
    return ir.DimValue(extent)


@final
@dataclass(frozen=True)
class Lengths:
    """The lengths of a kernel; `derived` has those that the host computes from others."""

    derived: Mapping[str, ir.Expr]

    @classmethod
    def of(cls, derived: Iterable[ir.DerivedDim]) -> Lengths:
        """Return the lengths of a kernel, given its derived dims."""
        return cls({dim.name: dim.value for dim in derived})

    def never_negative(self, expr: ir.Expr) -> bool:
        """Whether an integer is proven to be at least 0, for all lengths and all indices in it.

        A length over which an index ranges is taken to be 1 or more: otherwise the index has no
        value.
        """
        found = self._sum(expr)
        if found is None:
            return False
        # Replace each index by the end of its range at which the sum is least.
        ranged: set[str] = set()
        for atom, factor in [*found.items()]:
            if isinstance(atom, ir.IndexValue):
                extent = atom.index.extent
                ranged |= {extent} if isinstance(extent, str) else set()
                last = self._sum(length_of(extent))
                if last is None:
                    return False
                last[None] -= 1
                del found[atom]
                if factor < 0:  # least where the index is greatest
                    found = _joined(found, last, factor)
        return self._is_natural(found, ranged)

    def _is_natural(self, found: Sum, ranged: set[str]) -> bool:
        """Whether a sum without indices is at least 0; lengths in `ranged` are 1 or more."""
        least = found.pop(None, 0)
        for atom, factor in found.items():
            is_signed = isinstance(atom, ir.UniformValue) and atom.type is Scalar.I32
            if factor < 0 or is_signed:
                return False
            is_ranged = isinstance(atom, ir.DimValue) and atom.name in ranged
            least += factor if is_ranged else 0
        return least >= 0

    def _sum(self, expr: ir.Expr) -> Sum | None:
        """Return an integer expression as a sum, or None if it is none."""
        literal = as_literal(expr)
        if literal is not None:
            return Counter({None: literal})
        match expr:
            case ir.DimValue(name=name) if name in self.derived:
                return self._sum(self.derived[name])
            case ir.IndexValue() | ir.DimValue():
                return Counter({expr: 1})
            case ir.UniformValue(path=()) if expr.type in (Scalar.I32, Scalar.U32):
                return Counter({expr: 1})
            case ir.Cast(operand=operand) if expr.type in (Scalar.I32, Scalar.U32):
                return self._sum(operand) if operand.type.is_integer else None
            case ir.Unary(op="-", operand=operand):
                inner = self._sum(operand)
                return None if inner is None else _joined(Counter(), inner, -1)
            case ir.Binary(op="+" | "-" as op, left=left, right=right):
                one, other = self._sum(left), self._sum(right)
                if one is None or other is None:
                    return None
                return _joined(one, other, 1 if op == "+" else -1)
            case ir.Binary(op="*", left=left, right=right):
                for side, rest in ((left, right), (right, left)):
                    by, inner = as_literal(side), self._sum(rest)
                    if by is not None and inner is not None:
                        return _joined(Counter(), inner, by)
                return None
            case _:
                return None


def _joined(one: Sum, other: Sum, factor: int) -> Sum:
    """Return `one + factor * other`, without coefficients of 0."""
    total = Counter(one)
    for atom, coefficient in other.items():
        total[atom] += factor * coefficient
    return Counter({atom: c for atom, c in total.items() if c})

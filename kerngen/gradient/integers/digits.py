"""Forms with remainders: where `j % 2 == 0`, j equals `2 (j / 2)`.

So `j + 1 < 2 r` follows from `j < 2 r`: twice something is below twice r by 2 or more.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from kerngen.gradient.integers.forms import (
    Form,
    coefficient,
    combined,
    form_of,
    number,
    scaled,
)
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.nodes import Binary, Expr, IndexValue
from kerngen.ir.types import Scalar


def with_digits(form: Form, conditions: Iterable[Expr]) -> Form:
    """Replace each index whose remainder is known by a multiple plus the remainder."""
    for condition in conditions:
        found = _remainder(condition)
        if found is None:
            continue
        index, by, rest = found
        parts = coefficient(form, index)
        if parts is None or not parts[0]:
            continue
        quotient = form_of(Binary("/", index, number(by), Scalar.I32))
        value = combined("+", scaled(quotient, by), {(): rest} if rest else {})
        form = combined("+", combined("*", parts[0], value), parts[1])
    return form


def tightened(form: Form) -> Form:
    """Return a form that is at least 0, rounded down to a multiple of its factor.

    `2 r - 2 q - 1` is at least 0 where `2 r - 2 q - 2` is.
    """
    factor = gcd(*(own for monomial, own in form.items() if monomial))
    if factor < 2:
        return form
    last = form.get((), 0) // factor * factor
    kept = {monomial: own for monomial, own in form.items() if monomial}
    return {**kept, (): last} if last else kept


def _remainder(condition: Expr) -> tuple[IndexValue, int, int] | None:
    """Return an index, a number and the remainder that a condition gives for them."""
    match condition:
        case Binary(
            op="==" | "!=" as op,
            left=Binary(op="%", left=IndexValue() as index, right=right),
            right=rest,
        ):
            by, place = as_literal(right), as_literal(rest)
        case _:
            return None
    if by is None or place is None or by < 2 or not 0 <= place < by:
        return None
    if op == "==":
        return index, by, place
    return (index, by, 1 - place) if by == 2 else None

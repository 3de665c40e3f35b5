"""Planted faults: each rule, done wrong, makes the differences disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kerngen.gradient import adjoint, derive, handing, simplify
from kerngen.gradient.integers import solve
from kerngen.gradient.integers.forms import length, number
from kerngen.gradient.terms import Term, indices_of
from kerngen.ir.nodes import Binary, BuiltinCall, Construct, Expr, Index, Swizzle
from kerngen.ir.types import Scalar
from tests.gradient.cases import case_of


def _wrong_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    original: Callable[..., Any] = vars(adjoint.ReadAdjoints)["_binary"]

    def flipped(self: adjoint.ReadAdjoints, expr: Binary, term: Term) -> None:
        op = "+" if expr.op == "-" else expr.op
        original(self, replace(expr, op=op), term)

    monkeypatch.setattr(adjoint.ReadAdjoints, "_binary", flipped)


def _lost_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    def under(term: Term, conditions: tuple[Expr, ...]) -> Term:
        del conditions
        return term

    monkeypatch.setattr(adjoint, "_under", under)


def _lost_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solution of an equation may lie outside of its index's range."""

    def without(conditions: tuple[Expr, ...], facts: object) -> tuple[Expr, ...]:
        del facts
        return tuple(c for c in conditions if getattr(c, "op", "") not in {"<", ">="})

    monkeypatch.setattr(solve, "without_known", without)


def _range_off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(extent: str | int) -> Expr:
        return Binary("-", length(extent), number(1), Scalar.I32)

    monkeypatch.setattr(solve, "length", short)


def _doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    original: Callable[..., Any] = vars(adjoint.ReadAdjoints)["_add"]

    def twice(self: adjoint.ReadAdjoints, name: str, term: Term) -> None:
        original(self, name, term)
        original(self, name, term)

    monkeypatch.setattr(adjoint.ReadAdjoints, "_add", twice)


def _wrong_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    def partials(call: BuiltinCall) -> tuple[Expr, ...]:
        return (call,) * len(call.arguments)

    monkeypatch.setattr(adjoint, "partials", partials)


def _lost_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum over what a term does not depend on is the term once, not n times."""

    def spread(term: Term) -> Term:
        used = indices_of((*term.factors, *term.conditions))
        kept: tuple[Index, ...] = tuple(i for i in term.bound if i in used)
        return replace(term, bound=kept)

    monkeypatch.setattr(simplify, "_spread", spread)


def _careless_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_zero(self: object, terms: list[Term]) -> bool:
        del self
        return len(terms) == 1

    monkeypatch.setattr(simplify.Simplifier, "_is_zero", is_zero)


def _wrong_component(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read of `v.x` is of `v.y`, and so on."""
    original: Callable[..., Any] = vars(handing)["_adjoints"]

    def turned(expr: Expr, own: Expr) -> Iterator[tuple[Expr, Expr]]:
        for operand, found in original(expr, own):
            if isinstance(expr, Swizzle) and isinstance(found, Construct):
                *first, last = found.parts
                yield operand, replace(found, parts=(last, *first))
            else:
                yield operand, found

    monkeypatch.setattr(handing, "_adjoints", turned)


FAULTS = [
    (_wrong_sign, "norm", "layernorm"),
    (_lost_condition, "programs", "branches"),
    (_lost_range, "conv", "conv1d"),
    (_range_off_by_one, "programs", "window"),
    (_doubled, "programs", "lets_elsewhere"),
    (_wrong_partial, "elementwise", "tanh"),
    (_lost_count, "programs", "shared"),
    (_careless_proof, "softmax", "softmax"),
    (_wrong_component, "vectors", "components"),
]


@pytest.mark.parametrize(
    ("plant", "file", "name"), FAULTS, ids=[plant.__name__[1:] for plant, *_ in FAULTS]
)
def test_faults_are_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    file: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = case_of(file, name)
    right = case.derived()
    plant(monkeypatch)
    functions = {f.name: f for f in case.module.functions}
    wrong = derive(case.kernel, name=right.name, by=case.by, functions=functions)
    assert wrong.body != right.body
    assert not case.worst(wrong) < 1e-3

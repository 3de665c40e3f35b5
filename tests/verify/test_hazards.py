"""Kernels that are wrong in the usual ways: the report says where f32 has no number."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kerngen.cli.project import select
from kerngen.cli.settings import Project
from kerngen.ir.nodes import Constant, Role, Statement, Tensor
from kerngen.ir.types import Scalar
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.campaign import reference_way
from kerngen.verify.hazard_scan import hazards_of
from kerngen.verify.hazards import HazardCollector
from kerngen.verify.meaning.number import known, settle, subtract, unknown
from kerngen.verify.subjects import subjects
from tests.compile import library_of

FILE = Path(__file__).with_name("hazards.kern")

FOUND = {
    "naive": ("overflow", "exp(104.524) is not finite in f32"),
    "naive_gradient": ("overflow", "exp(104.524) is not finite in f32"),
    "spread": ("cancellation", "998891 - 998891 loses all digits: both are rounded"),
    "ratio": ("division", "0 / 0"),
    "root": ("undefined", "sqrt(-0.000882784) is not a number"),
    "root_beside_a_state": ("undefined", "sqrt(-0.000643902) is not a number"),
    "halves": ("overflow", "85849 is more than an f16 holds"),
    "running_powers": (
        "overflow",
        "the product of 4 terms up to 2.32221e+11 is not finite in f32",
    ),
    "powers": (
        "overflow",
        "the product of 4 terms up to 1.18999e+10 is not finite in f32",
    ),
}
"""What is told of each kernel; the others are sound."""


def hazards_in(text: str) -> list[list[str]]:
    """What is told of each kernel of a text."""
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        return [
            [each.text for each in hazards_of(Fitting(x, reference_way(x)))]
            for x in found["a.kern"]
        ]


def test_a_kernel_that_takes_no_small_call_has_no_hazards() -> None:
    """One that takes it has those of its scalars, too."""
    text = """
        kernel never(x: f32[n]) -> y: f32[n] {
            require n > 1000000000;
            y[i] = x[i] / 0.0;
        }
        kernel plain(x: f32[n], k: i32) -> y: f32[n] {
            y[i] = x[i] / f32(k - k);
        }
    """
    never, (plain,) = hazards_in(text)
    assert never == []
    assert plain.endswith(" / 0")


def test_terms_of_several_axes_are_counted() -> None:
    ((found,),) = hazards_in(
        "kernel f(x: f32[m, n]) -> y: f32[] { y = prod[i, j] 1e9 * x[i, j]; }"
    )
    assert found.startswith("the product of 16 terms up to ")


def test_what_leads_beyond_the_numbers_is_told() -> None:
    selection = select(FILE, Project())
    with subjects(selection.library(), [f.name for f in selection.files]) as found:
        (several,) = found.values()
        hazards = {
            each.kernel.name: hazards_of(Fitting(each, reference_way(each)))
            for each in several
        }
    assert {
        name: (each.kind, each.text)
        for name, every in hazards.items()
        for each in every
    } == FOUND
    assert len(hazards) > len(FOUND)
    assert hazards["naive"][0].line == 4
    assert hazards["naive_gradient"][0].line == FILE.read_text().count("\n")
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(np.float32(104.524)))


def test_a_hazard_is_that_of_the_statement_in_which_it_was_seen() -> None:
    first, second = (
        Statement(
            Tensor(name, Scalar.F32, (), Role.OUTPUT), (), Constant(1.0, Scalar.F32)
        )
        for name in "xy"
    )
    collector = HazardCollector()
    large, lost = known([1e30]), unknown((1,), Scalar.F32)
    collector.operator("*", large, large, lost)
    collector.statement(first, known([1.0]))  # a branch that is not taken
    collector.statement(second, lost)
    assert not collector.found
    collector.operator("*", large, large, lost)
    collector.operator("*", known([1e20]), known([1e20]), lost)
    collector.statement(second, lost)
    (found,) = collector.found.values()
    assert (found.statement, found.kind) == (second, "overflow")
    assert found.text == "1e+20 * 1e+20 is not finite in f32"
    assert found.line == 0  # a statement of no text
    collector.operator("*", known([-1e20]), known([1e20]), lost)
    collector.statement(second, lost)
    assert [*collector.found.values()] == [found], "the first of those alike"


def test_a_branch_that_is_not_taken_may_lose_digits() -> None:
    """Its statement is 0, and that is known."""
    target = Tensor("x", Scalar.F32, (), Role.OUTPUT)
    statement = Statement(target, (), Constant(1.0, Scalar.F32))
    off = np.array([0.5])
    left, right = settle(np.array([4.0]), off), settle(np.array([3.9999]), off)
    collector = HazardCollector()
    collector.operator("-", left, right, subtract(left, right))
    collector.statement(statement, known([0.0]))
    assert not collector.found


def test_equal_numbers_have_no_digits_to_lose() -> None:
    """Numbers that may be off are noted where their difference is left, and is no 0.

    It must be a hundredth of them, or less.
    """
    target = Tensor("x", Scalar.F32, (), Role.OUTPUT)
    statement = Statement(target, (), Constant(1.0, Scalar.F32))
    for other, kinds in ((4.0, []), (3.9999, ["cancellation"]), (3.5, [])):
        collector = HazardCollector()
        off = np.array([0.5])
        left, right = settle(np.array([4.0]), off), settle(np.array([other]), off)
        difference = subtract(left, right)
        collector.operator("-", left, right, difference)
        collector.statement(statement, difference)
        assert [each.kind for each in collector.found.values()] == kinds
